//! One permit made two.

fn twice(permit: gate::Permit) -> (gate::Permit, gate::Permit) {
    (permit.clone(), permit)
}

fn main() {}
