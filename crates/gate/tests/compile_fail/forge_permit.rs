//! A permit made out of what it would permit.

fn forge(subject: gate::Granted) -> gate::Permit {
    gate::Permit { subject }
}

fn main() {}
