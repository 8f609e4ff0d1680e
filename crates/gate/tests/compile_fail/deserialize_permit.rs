//! A permit out of a file.

use serde::Deserialize;

fn read(text: &str) -> gate::Permit {
    gate::Permit::deserialize(&mut serde_json::Deserializer::from_str(text)).unwrap()
}

fn main() {}
