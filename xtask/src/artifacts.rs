//! Reads what cargo says it built: the test binaries, whose they are and where.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::repo::Repo;
use crate::run;

/// One line of `cargo … --message-format=json`.
#[derive(Debug, Deserialize)]
struct Message {
    reason: String,
    package_id: Option<String>,
    manifest_path: Option<PathBuf>,
    executable: Option<PathBuf>,
    target: Option<Target>,
    profile: Option<Profile>,
}

#[derive(Debug, Deserialize)]
struct Target {
    name: String,
    src_path: PathBuf,
}

#[derive(Debug, Deserialize)]
struct Profile {
    test: bool,
}

/// A test binary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestBinary {
    /// The package.
    pub package: String,
    /// The name of the target in it.
    pub target: String,
    /// The source file that the target starts from.
    pub source: PathBuf,
    /// The file to run.
    pub executable: PathBuf,
    /// The directory in which cargo would run it.
    pub package_directory: PathBuf,
}

/// Builds the test binaries of the workspace and returns them. What is built already is only listed.
///
/// # Errors
/// When they do not compile.
pub fn test_binaries(repo: &Repo) -> Result<Vec<TestBinary>> {
    binaries(repo, &["--workspace".to_owned()])
}

/// Builds the test binaries of some packages with these features, and returns them.
///
/// # Errors
/// When they do not compile.
pub fn test_binaries_of(repo: &Repo, packages: &[String], features: &[String]) -> Result<Vec<TestBinary>> {
    let packages = packages.iter().map(|name| format!("--package={name}"));
    binaries(repo, &packages.chain([format!("--features={}", features.join(","))]).collect::<Vec<_>>())
}

fn binaries(repo: &Repo, which: &[String]) -> Result<Vec<TestBinary>> {
    let mut cargo = repo.cargo(&["test", "--locked", "--no-run", "--message-format=json"]);
    cargo.args(which);
    let messages = run::output("build the test binaries", cargo.stderr(Stdio::piped()))?;
    parse(&String::from_utf8_lossy(&messages))
}

fn parse(messages: &str) -> Result<Vec<TestBinary>> {
    let mut binaries = Vec::new();
    for line in messages.lines().filter(|line| line.starts_with('{')) {
        let message: Message =
            serde_json::from_str(line).context("cargo reports in a form that is not known")?;
        binaries.extend(test_binary(message));
    }
    Ok(binaries)
}

fn test_binary(message: Message) -> Option<TestBinary> {
    let is_test = message.reason == "compiler-artifact" && message.profile?.test;
    let target = message.target?;
    let binary = TestBinary {
        package: package_name(&message.package_id?)?,
        target: target.name,
        source: target.src_path,
        executable: message.executable?,
        package_directory: message.manifest_path?.parent().map(Path::to_owned)?,
    };
    is_test.then_some(binary)
}

/// Returns the name in cargo's `path+file:///…/crates/model#fumehood-model@0.1.0` or `…/crates/fumehood#0.1.0`.
fn package_name(id: &str) -> Option<String> {
    let (path, fragment) = id.split_once('#')?;
    let name = match fragment.split_once('@') {
        Some((name, _)) => name,
        None => path.rsplit('/').next()?,
    };
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_packages_are_read_from_both_forms() {
        assert_eq!(
            package_name("path+file:///r/crates/model#fumehood-model@0.1.0").as_deref(),
            Some("fumehood-model")
        );
        assert_eq!(package_name("path+file:///r/crates/fumehood#0.1.0").as_deref(), Some("fumehood"));
    }

    #[test]
    fn only_test_binaries_are_taken() {
        let line = |test: bool| {
            format!(
                r#"{{"reason":"compiler-artifact","package_id":"path+file:///r/crates/x#x@0.1.0","manifest_path":"/r/crates/x/Cargo.toml","target":{{"name":"t","src_path":"/r/crates/x/tests/t.rs"}},"profile":{{"test":{test}}},"executable":"/t/x"}}"#
            )
        };
        let messages = [line(true), line(false), r#"{"reason":"build-finished","success":true}"#.to_owned()];
        let binaries = parse(&messages.join("\n")).expect("cargo's own form");
        let expected = TestBinary {
            package: "x".into(),
            target: "t".into(),
            source: "/r/crates/x/tests/t.rs".into(),
            executable: "/t/x".into(),
            package_directory: "/r/crates/x".into(),
        };
        assert_eq!(binaries, [expected]);
    }
}
