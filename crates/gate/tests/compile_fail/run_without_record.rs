//! A yes acted on before it is written down.

fn run(_: gate::Permit) {}

fn hurry(authorization: gate::Authorization) {
    run(authorization);
}

fn main() {}
