//! Writes the table of docs/levels.md: `cargo run -p fumehood-gate --example levels`.

#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../tests/levels/table.rs"]
mod table;

#[allow(clippy::print_stdout, reason = "its output is the table")]
fn main() {
    print!("{}", table::document());
}
