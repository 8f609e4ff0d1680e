//! Builds the launcher as a static program without relocations, to be carried inside the library.
//!
//! It has a target directory of its own below `OUT_DIR`, so that it never waits for the build that it is part of.
#![allow(clippy::disallowed_methods, reason = "a build script starts cargo and reads what cargo tells it")]

use std::env;
use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=launcher/src");
    println!("cargo::rerun-if-changed=launcher/Cargo.toml");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let target = env::var("TARGET")?;
    let target_directory = out.join("launcher");
    let mut cargo = Command::new(env::var("CARGO")?);
    cargo
        .args(["build", "--quiet", "--profile", "launcher", "--manifest-path", "launcher/Cargo.toml"])
        .args(["--bin", "fumehood-launcher", "--target", &target, "--target-dir"])
        .arg(&target_directory)
        .env("CARGO_ENCODED_RUSTFLAGS", "-Ctarget-feature=+crt-static\x1f-Crelocation-model=static")
        .env_remove("RUSTFLAGS")
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env_remove("CARGO_TARGET_DIR");
    if env::var_os("CARGO_FEATURE_MUTANTS").is_some() {
        cargo.args(["--features", "mutants"]);
    }
    if !cargo.status()?.success() {
        return Err("the launcher did not build; its errors are above".into());
    }
    let built = target_directory.join(target).join("launcher/fumehood-launcher");
    fs::copy(&built, out.join("launcher.bin"))?;
    let digest = model::Digest::of(&fs::read(&built)?);
    fs::write(out.join("launcher.sha256"), digest.to_string())?;
    Ok(())
}
