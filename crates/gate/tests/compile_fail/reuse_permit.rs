//! One permit spent two times.

fn run(_: gate::Permit) {}

fn twice(permit: gate::Permit) {
    run(permit);
    run(permit);
}

fn main() {}
