//! x
#![forbid(unsafe_code)]
/// x
pub fn main() -> std::process::ExitCode { std::process::ExitCode::SUCCESS }
