//! Secrets are replaced before anything is kept: in what is asked, seen and printed, in each of their forms.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use model::redaction::tokens;
use serde_json::Value;

use super::bench::{Answer, Bench, fits};

/// Makes a secret that nobody knows, with the signs that encoders treat differently.
fn secret() -> String {
    let mut bytes = [0; 24];
    fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes)).expect("random bytes");
    let signs = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/=&@!~.:";
    bytes.iter().map(|byte| char::from(signs[usize::from(*byte) % signs.len()])).collect()
}

/// Writes a value in the forms that programs write, each by other code than looks for it.
fn forms(value: &str) -> Vec<String> {
    let each = |write: &dyn Fn(u8) -> String| value.bytes().map(write).collect::<String>();
    let strict = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'~' | b'.' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    let mut forms = vec![
        value.to_owned(),
        each(&|byte| format!("{byte:02x}")),
        each(&|byte| format!("{byte:02X}")),
        each(&strict),
        each(&|byte| format!("%{byte:02x}")),
    ];
    for before in ["", "u", "u:"] {
        forms.extend([false, true].map(|for_urls| base64(&format!("{before}{value}"), for_urls)));
    }
    forms
}

fn base64(text: &str, for_urls: bool) -> String {
    let last: &[u8] = if for_urls { b"-_" } else { b"+/" };
    let digits = [&b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"[..], last].concat();
    let bits: String = text.bytes().map(|byte| format!("{byte:08b}")).collect();
    let digit = |six: &[u8]| {
        let six = format!("{:0<6}", String::from_utf8_lossy(six));
        char::from(digits[usize::from_str_radix(&six, 2).expect("six bits")])
    };
    bits.as_bytes().chunks(6).map(digit).collect()
}

/// Fails when a file below a directory holds one of these texts.
pub(crate) fn nowhere(directory: &Path, texts: &[String]) {
    for entry in fs::read_dir(directory).expect("can be listed").map(|entry| entry.expect("an entry")) {
        let path = entry.path();
        if path.is_dir() {
            nowhere(&path, texts);
        } else if path.is_file() {
            let bytes = fs::read(&path).expect("can be read");
            let held = |text: &&String| bytes.windows(text.len()).any(|part| part == text.as_bytes());
            let held = texts.iter().find(held);
            assert!(held.is_none(), "{} holds {held:?} of {texts:?}", path.display());
        }
    }
}

/// Runs the program with a secret in its environment.
fn with(bench: &Bench, secret: &str, words: &[&str]) -> Answer {
    Answer::of(bench.command(words).env("API_TOKEN", secret).output().expect("it starts"))
}

fn token_of(text: &str) -> String {
    tokens(text).next().map(|token| text[token].to_owned()).unwrap_or_else(|| panic!("no token in {text}"))
}

#[test]
fn no_form_of_a_secret_is_in_the_state_directory_whoever_said_it() {
    for _ in 0..4 {
        let (bench, secret) = (Bench::new(), secret());
        let forms = forms(&secret);
        let (first, last) = secret.split_at(11);
        // As arguments, in pieces with time between them, on both streams, and as the words of a program inside.
        let script = "printf '%s\\n' \"$@\"; printf '%s' \"$A\"; sleep 0.1; printf '%s\\n' \"$B\"; /bin/echo \"$A$B\" >&2; \
                      echo ordinary words stay";
        let mut words = vec!["run", "-q", "--env"];
        let (a, b) = (format!("A={first}"), format!("B={last}"));
        words.extend([a.as_str(), "--env", b.as_str(), "--", "sh", "-c", script, "sh"]);
        words.extend(forms.iter().map(String::as_str));
        let answer = with(&bench, &secret, &words);
        assert_eq!(answer.code, Some(0), "{answer:?}");
        assert!(answer.out.contains(&secret), "whoever ran it sees what was printed: {answer:?}");
        nowhere(&bench.path("state"), &forms);
        let document = bench.json(&["show", "--json"]);
        fits("action", &document);
        let token = token_of(&document["request"]["argv"].to_string());
        assert!(token.starts_with("[secret:API_TOKEN:"), "{token}");
        let kept = bench.run(&["show", "--output"]).out;
        assert!(
            kept.contains(&format!("{token}\n{token}\n")) && kept.contains("ordinary words stay\n"),
            "{kept}"
        );
        assert_eq!(bench.run(&["audit", "verify"]).code, Some(0));
    }
}

#[test]
fn a_credential_of_the_workspace_and_one_that_shows_by_itself_are_not_kept_either() {
    let bench = Bench::new();
    let github = "ghp_q8Zr2LxP0vN5tYc7Wd1Kq8Zr2LxP0vN5tYc7";
    bench.write(".env", "DB_PASSWORD=hunter22x9\nPORT=3000\n");
    let answer =
        bench.run(&["run", "-q", "--", "echo", "hunter22x9", "3000", &format!("https://u:{github}@host/r")]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    nowhere(&bench.path("state"), &["hunter22x9".to_owned(), github.to_owned()]);
    let kept = bench.run(&["show", "--output"]).out;
    assert!(
        kept.contains("[secret:DB_PASSWORD:") && kept.contains(" 3000 https://u:[secret:github-token:"),
        "{kept}"
    );
}

#[test]
fn what_is_given_in_a_variable_is_not_kept_when_it_is_printed() {
    let bench = Bench::new();
    let words = [
        "run",
        "-q",
        "--env",
        "X=q8Zr2LxP0vN5tY",
        "--env",
        "MODE=production",
        "--",
        "sh",
        "-c",
        "echo $X $MODE",
    ];
    let answer = bench.run(&words);
    assert_eq!((answer.code, answer.out.as_str()), (Some(0), "q8Zr2LxP0vN5tY production\n"), "{answer:?}");
    nowhere(&bench.path("state"), &["q8Zr2LxP0vN5tY".to_owned()]);
    let kept = bench.run(&["show", "--output"]).out;
    assert!(kept.starts_with("[secret:X:") && kept.ends_with(" production\n"), "{kept}");
}

#[test]
fn a_yes_is_for_the_request_with_the_secret_that_is_not_kept() {
    let (bench, secret) = (Bench::new(), secret());
    bench.settings("policy = \"cautious\"\n");
    let made = ["run", "--", "touch", &format!("./made-{}", &secret.replace(['/', '='], "x"))];
    let secret = made[3].strip_prefix("./made-").expect("begins so").to_owned();
    let asked = with(&bench, &secret, &made);
    assert_eq!(asked.code, Some(126), "{asked:?}");
    let approval =
        bench.json(&["show", "--json"])["approval"]["approval"].as_str().expect("an id").to_owned();
    let dossier = bench.json(&["approvals", "show", &approval, "--json"]);
    assert!(
        dossier["measured"].is_null() && dossier.to_string().contains("it holds a secret"),
        "{dossier:#}"
    );
    let answer: Value = bench.json(&["approvals", "approve", &approval, "--yes", "--json"]);
    assert_eq!(answer["state"], "given", "{answer:#}");
    nowhere(&bench.path("state"), &forms(&secret));
    // What stands for it is another request.
    let token = token_of(&bench.json(&["show", "--json"])["request"]["argv"].to_string());
    assert_eq!(bench.run(&["run", "--", "touch", &format!("./made-{token}")]).code, Some(126));
    assert_eq!(with(&bench, &secret, &made).code, Some(0));
    assert_eq!(with(&bench, &secret, &made).code, Some(126), "it covers it once");
}

#[test]
fn what_was_given_a_secret_is_not_run_again_with_what_stands_for_it() {
    let (bench, secret) = (Bench::new(), secret());
    assert_eq!(with(&bench, &secret, &["run", "-q", "--", "echo", &secret]).code, Some(0));
    let action = bench.newest();
    let answer = bench.run(&["reproduce", &action]);
    assert!(
        answer.code == Some(125) && answer.err.contains("was given a secret, which is not kept"),
        "{answer:?}"
    );
}

#[test]
fn each_reading_of_what_was_printed_is_decided_and_on_the_record() {
    let bench = Bench::new();
    assert_eq!(bench.run(&["run", "-q", "--", "echo", "words"]).code, Some(0));
    let readings =
        || bench.run(&["audit", "show"]).out.lines().filter(|line| line.contains(" record-read ")).count();
    assert_eq!(
        (bench.run(&["show"]).code, readings()),
        (Some(0), 0),
        "what the record itself says is no content"
    );
    assert_eq!((bench.run(&["show", "--output"]).out.as_str(), readings()), ("words\n", 1));
    let rules = bench.run(&["policy", "show", "default"]).out
        + "@id(\"closed\") @reason(\"outputs-are-closed\") @advice(\"ask ada\") @person_may_allow(\"false\")\n\
           forbid (principal, action == Action::\"read-record\", resource == Content::\"output\");\n";
    let file = bench.path("home/closed.cedar");
    fs::write(&file, rules).expect("writes");
    bench.settings(&format!("policy = \"{}\"\n", file.display()));
    let closed = bench.run(&["show", "--output"]);
    assert_eq!((closed.code, closed.out.as_str(), readings()), (Some(125), "", 1), "{closed:?}");
    assert!(closed.err.contains("outputs-are-closed") && closed.err.contains("ask ada"), "{closed:?}");
}
