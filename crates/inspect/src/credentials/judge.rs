//! Telling a value that somebody made up from one that a machine made.

/// Words that stand in for a value. In a random text of forty characters none of them is likely.
const PLACEHOLDERS: [&str; 22] = [
    "example",
    "placeholder",
    "changeme",
    "change_me",
    "change-me",
    "your_",
    "your-",
    "yourpass",
    "yourtoken",
    "dummy",
    "redacted",
    "replace",
    "insert_",
    "insert-",
    "xxxx",
    "****",
    "....",
    "notreal",
    "not-a-real",
    "fakefake",
    "todo",
    "sample",
];

/// Tells whether a value is a placeholder, one character over and over, or a run of the alphabet.
pub(super) fn looks_made_up(value: &[u8]) -> bool {
    let text = String::from_utf8_lossy(value).to_lowercase();
    is_placeholder(&text) || longest_run(text.as_bytes()) >= 8 || is_poor(text.as_bytes())
}

/// Tells whether a text in lower case stands in for a value, or refers to one that is elsewhere.
pub(super) fn is_placeholder(text: &str) -> bool {
    let refers = [
        "${",
        "{{",
        "$(",
        "<%",
        "%(",
        "#{",
        "$env:",
        "process.env",
        "os.environ",
        "env(",
        "getenv",
        "vault:",
    ];
    let is_bracketed = text.starts_with('<') && text.ends_with('>');
    let is_variable =
        text.starts_with('$') && text[1..].chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    text.is_empty()
        || is_bracketed
        || is_variable
        || refers.iter().any(|mark| text.contains(mark))
        || PLACEHOLDERS.iter().any(|word| text.contains(word))
}

/// Returns the length of the longest run in which each character is the one before, or the next in order.
fn longest_run(text: &[u8]) -> usize {
    let mut longest = 1;
    for step in [-1i16, 0, 1] {
        let mut run = 1;
        for pair in text.windows(2) {
            let follows = i16::from(pair[1]) - i16::from(pair[0]) == step;
            run = if follows { run + 1 } else { 1 };
            longest = longest.max(run);
        }
    }
    longest
}

/// Tells whether a text of some length has too few different characters for a key: a hexadecimal key of 32
/// characters has 13 to 16 of them nearly always.
fn is_poor(text: &[u8]) -> bool {
    let mut seen = [false; 256];
    text.iter().for_each(|byte| seen[usize::from(*byte)] = true);
    let different = seen.iter().filter(|seen| **seen).count();
    text.len() >= 16 && different < 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write_in_documents_is_made_up() {
        for value in [
            "AKIAIOSFODNN7EXAMPLE",
            "xxxxxxxxxxxxxxxxxxxx",
            "ghp_000000000000000000000000000000000000",
            "your_token_here",
            "${TOKEN}",
            "<token>",
            "$TOKEN",
            "0123456789abcdef0123456789abcdef",
            "abababababababababab",
            "{{ secrets.TOKEN }}",
            "changeme",
        ] {
            assert!(looks_made_up(value.as_bytes()), "{value}");
        }
    }

    #[test]
    fn what_a_machine_makes_is_not() {
        for value in ["q8Zr2LxP0vN5tYc7Wd1K", "9f1c0e7ab34d5826", "hunter2!", "correct horse"] {
            assert!(!looks_made_up(value.as_bytes()), "{value}");
        }
    }
}
