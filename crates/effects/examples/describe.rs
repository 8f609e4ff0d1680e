//! Says what a command would do: `cargo run -p fumehood-effects --example describe -- sh -c 'ls | tee list'`.
#![allow(clippy::print_stdout, reason = "an example prints what it found")]

use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use model::OsText;

#[allow(clippy::disallowed_methods, reason = "an example may read its own arguments")]
fn main() {
    let argv: Vec<OsText> =
        std::env::args_os().skip(1).filter_map(|arg| OsText::new(arg.into_vec()).ok()).collect();
    let command =
        effects::Command { argv: &argv, directory: None, workspace: Path::new("/ws"), variables: &[] };
    for effect in effects::of_command(command) {
        println!("{}: {effect}", effect.class());
    }
}
