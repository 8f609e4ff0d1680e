//! What is found, what stays, and random secrets in random places.

use proptest::prelude::*;

use super::*;

fn key() -> Key {
    Key::of([7; 32])
}

fn knowing(values: &[&str]) -> Redactor {
    let redactor = Redactor::default();
    redactor.learn(&key(), values.iter().map(|value| ("NAME".to_owned(), value.as_bytes().to_vec())));
    redactor
}

fn clean(redactor: &Redactor, text: &str) -> String {
    redactor.clean_text(&key(), text).into_owned()
}

/// The token of a value by that name.
fn of(name: &str, value: &str) -> String {
    token(name, &key().digest(value.as_bytes()))
}

#[test]
fn a_known_value_is_replaced_in_each_form_by_the_same_token() {
    let value = "key-of-ours/1234";
    let redactor = knowing(&[value]);
    let token = of("NAME", value);
    for (text, expected) in [
        ("a key-of-ours/1234 b", format!("a {token} b")),
        ("6b65792d6f662d6f7572732f31323334", token.clone()),
        ("6B65792D6F662D6F7572732F31323334", token.clone()),
        ("x=key-of-ours%2F1234&y=%41", format!("x={token}&y=%41")),
        ("%6bey-of-ours%2f1234", token.clone()),
        (r#"{"k":"key-of-ours\/1234"}"#, format!(r#"{{"k":"{token}"}}"#)),
        (r"key-of-ours\u002f1234 \x6bey-of-ours/1234", format!("{token} {token}")),
        ("<b>key-of-ours&#47;1234</b>", format!("<b>{token}</b>")),
        // base64 of the value, of `k=` before it and of `user:` before it, in both alphabets.
        ("\"a2V5LW9mLW91cnMvMTIzNA==\"", format!("\"{token}\"")),
        ("az1rZXktb2Ytb3Vycy8xMjM0", token.clone()),
        ("basic dXNlcjprZXktb2Ytb3Vycy8xMjM0.", format!("basic d{token}.")),
    ] {
        let clean = clean(&redactor, text);
        let same = clean == expected || (text.starts_with("basic") && clean.contains(&token));
        assert!(same, "{text}: {clean}, not {expected}");
    }
}

#[test]
fn what_shows_by_itself_is_replaced_without_being_known() {
    let redactor = Redactor::default();
    let github = "ghp_q8Zr2LxP0vN5tYc7Wd1Kq8Zr2LxP0vN5tYc7";
    let text = format!("git push https://x:{github}@host/r; psql pg://ada:hu22!x@db/x");
    let expected = format!(
        "git push https://x:{}@host/r; psql pg://ada:{}@db/x",
        of("github-token", github),
        of("password-in-address", "hu22!x")
    );
    assert_eq!(clean(&redactor, &text), expected);
    assert_eq!(clean(&redactor, &expected), expected);
}

#[test]
fn overlapping_secrets_leave_nothing_of_either() {
    let redactor = knowing(&["abcd1234efgh", "1234efgh5678", "postgres://u:p4ssword@h"]);
    assert_eq!(clean(&redactor, "<abcd1234efgh5678>"), format!("<{}>", of("NAME", "abcd1234efgh")));
    let address = "postgres://u:p4ssword@h";
    assert_eq!(clean(&redactor, address), of("NAME", address));
}

#[test]
fn ordinary_text_stays_as_it_is() {
    let redactor = knowing(&["production", "short", "q8Zr2LxP0vN5"]);
    for text in [
        "production and short words; 100% of it",
        "test result: ok. 17 passed; 0 failed; finished in 0.96s",
        "https://example.org:443/a%20b?c=d git@github.com:a/b.git",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "password=changeme token: <token> API_KEY=your_api_key",
        "naïve 日本 \u{0}\u{1b}[1m",
    ] {
        assert!(matches!(redactor.clean_text(&key(), text), Cow::Borrowed(same) if same == text), "{text}");
    }
}

#[test]
fn what_was_cut_off_a_secret_goes_too() {
    let redactor = knowing(&["q8Zr2LxP0vN5"]);
    let cut = |head: &str, tail: &str| {
        let (head, tail) = redactor.clean_ends(&key(), head.as_bytes(), tail.as_bytes());
        (String::from_utf8_lossy(&head).into_owned(), String::from_utf8_lossy(&tail).into_owned())
    };
    let pair = |head: &str, tail: &str| (head.to_owned(), tail.to_owned());
    assert_eq!(cut("a q8Zr2LxP", "P0vN5 b"), pair("a ", " b"));
    assert_eq!(cut("a q8Z", "N5 b"), pair("a q8Z", "N5 b"));
    assert_eq!(cut("6138 71385a7232", "304e35 b"), pair("6138 ", "304e35 b"));
    assert_eq!(cut("", ""), pair("", ""));
}

#[test]
fn in_json_only_strings_change_and_bytes_that_are_no_text_are_looked_at() {
    let redactor = knowing(&["a\"b\\c1234", "q8Zr2LxP0vN5"]);
    let json = serde_json::json!({
        "q8Zr2LxP0vN5": 1,
        "text": "x a\"b\\c1234 y",
        "inner": serde_json::json!({ "deep": "a\"b\\c1234" }).to_string(),
        "file": { "hex": "ff71385a72324c785030764e35ff" },
    });
    let (quoted, plain) = (of("NAME", "a\"b\\c1234"), of("NAME", "q8Zr2LxP0vN5"));
    let clean = redactor.clean_json(&key(), &json.to_string()).into_owned();
    let value: serde_json::Value = serde_json::from_str(&clean).expect("is JSON");
    assert_eq!(value["q8Zr2LxP0vN5"], 1);
    assert_eq!(value["text"], format!("x {quoted} y"));
    assert_eq!(value["inner"], format!("{{\"deep\":\"{quoted}\"}}"));
    let file: model::OsText = serde_json::from_value(value["file"].clone()).expect("is bytes");
    assert_eq!(file.as_bytes(), [b"\xff", plain.as_bytes(), b"\xff"].concat());
}

/// Ways in which a program may write a value.
fn written(value: &str, before: &str, way: usize) -> String {
    let hex = |upper: bool| -> String {
        let digits =
            value.bytes().map(|byte| if upper { format!("{byte:02X}") } else { format!("{byte:02x}") });
        digits.collect()
    };
    let some = |byte: u8| match byte {
        b'a'..=b'm' | b'0'..=b'4' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    match way {
        0 => value.to_owned(),
        1 => hex(false),
        2 => hex(true),
        3 => value.bytes().map(some).collect(),
        4 => serde_json::Value::from(value).to_string(),
        way => base64(&[before.as_bytes(), value.as_bytes()].concat(), way % 2 == 0),
    }
}

/// Another implementation than the one that looks for it.
fn base64(bytes: &[u8], for_urls: bool) -> String {
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let last: &[u8] = if for_urls { b"-_" } else { b"+/" };
    let bits: String = bytes.iter().map(|byte| format!("{byte:08b}")).collect();
    let digit = |six: &[u8]| {
        let six = format!("{:0<6}", String::from_utf8_lossy(six));
        char::from([&digits[..], last].concat()[usize::from_str_radix(&six, 2).expect("six bits")])
    };
    let text: String = bits.as_bytes().chunks(6).map(digit).collect();
    let filled = text.len().div_ceil(4) * 4;
    format!("{text:=<filled$}")
}

proptest! {
    #[test]
    fn no_secret_stays_in_any_form_and_cleaning_twice_changes_nothing(
        value in "[!-~]{8,40}", before in "[ -~]{0,9}", around in "\\PC{0,30}", way in 0usize..7,
    ) {
        prop_assume!(is_looked_for(value.as_bytes()));
        let redactor = knowing(&[&value]);
        let text = format!("{around}\n{}\n{around}", written(&value, &before, way));
        let once = clean(&redactor, &text);
        let forms = forms_of(value.as_bytes());
        let stays = forms.iter().any(|form| once.contains(&*String::from_utf8_lossy(&form.bytes)));
        prop_assert!(!stays && once.contains(&of("NAME", &value)), "{text:?} became {once:?}");
        prop_assert_eq!(clean(&redactor, &once), once);
    }

    #[test]
    fn text_without_the_secret_is_unchanged(value in "[!-~]{8,40}", text in "[a-z ,.;()\\n]{0,200}") {
        let redactor = knowing(&[&value]);
        prop_assume!(!text.contains(&value));
        prop_assert_eq!(clean(&redactor, &text), text);
    }
}
