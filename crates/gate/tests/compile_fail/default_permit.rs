//! A permit out of nothing.

fn nothing() -> gate::Permit {
    gate::Permit::default()
}

fn main() {}
