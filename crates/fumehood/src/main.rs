//! The program `fumehood`.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    fumehood::main()
}
