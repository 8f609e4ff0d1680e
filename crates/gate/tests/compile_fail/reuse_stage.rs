//! Two stages on one receipt.

fn go_on(_: gate::stages::At<gate::stages::Approval>) {}

fn twice(at: gate::stages::At<gate::stages::Approval>) {
    go_on(at);
    go_on(at);
}

fn main() {}
