//! Where things are: the repository, its target directory, and the programs that were built into it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::run;

/// The repository that this task belongs to.
#[derive(Debug, Clone)]
pub struct Repo {
    /// The top directory.
    pub root: PathBuf,
    /// Where cargo puts what it builds.
    pub target: PathBuf,
}

/// The part of `cargo metadata` that tells about one package.
#[derive(Debug, Clone, Deserialize)]
pub struct Package {
    /// The identifier that other parts of the answer refer to.
    pub id: String,
    /// The name.
    pub name: String,
    /// The version.
    pub version: String,
    /// The licence expression.
    pub license: Option<String>,
    /// Where it comes from; nothing for our own.
    pub source: Option<String>,
    /// Its manifest.
    pub manifest_path: PathBuf,
    /// What it depends on.
    pub dependencies: Vec<Dependency>,
    /// What it builds.
    pub targets: Vec<Target>,
    /// Its features.
    pub features: std::collections::BTreeMap<String, Vec<String>>,
}

/// One dependency, as the manifest states it.
#[derive(Debug, Clone, Deserialize)]
pub struct Dependency {
    /// The name of the package.
    pub name: String,
    /// `dev`, `build` or nothing.
    pub kind: Option<String>,
}

/// One thing that a package builds.
#[derive(Debug, Clone, Deserialize)]
pub struct Target {
    /// The name.
    pub name: String,
    /// `lib`, `bin`, `test`, …
    pub kind: Vec<String>,
    /// The source file that it starts from.
    pub src_path: PathBuf,
}

/// The answer of `cargo metadata`.
#[derive(Debug, Clone, Deserialize)]
pub struct Metadata {
    /// The packages.
    pub packages: Vec<Package>,
    /// The identifiers of our own packages.
    pub workspace_members: Vec<String>,
    /// Where cargo puts what it builds.
    pub target_directory: PathBuf,
}

impl Metadata {
    /// Returns our own packages.
    pub fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| self.workspace_members.contains(&package.id))
    }
}

impl Repo {
    /// Finds the repository.
    ///
    /// # Errors
    /// When cargo cannot read its manifests.
    pub fn find() -> Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask has no parent directory")?;
        let target = metadata(root, &["--no-deps"])?.target_directory;
        Ok(Self { root: root.to_owned(), target })
    }

    /// Returns what cargo knows about the packages.
    ///
    /// # Errors
    /// When cargo cannot read the manifests or, without `--no-deps` among `options`, resolve the dependencies.
    pub fn metadata(&self, options: &[&str]) -> Result<Metadata> {
        metadata(&self.root, options)
    }

    /// Returns a cargo command that stands in the repository.
    pub fn cargo(&self, words: &[&str]) -> std::process::Command {
        let mut cargo = run::cargo();
        cargo.current_dir(&self.root).args(words);
        cargo
    }

    /// Returns the path of the program, as built for release.
    pub fn fumehood(&self) -> PathBuf {
        self.target.join("release/fumehood")
    }

    /// Returns the path of the program that `cargo test` builds for the tests.
    pub fn tested_fumehood(&self) -> PathBuf {
        self.target.join("debug/fumehood")
    }

    /// Builds the program for release.
    ///
    /// # Errors
    /// When it does not compile.
    pub fn build_fumehood(&self) -> Result<PathBuf> {
        let mut cargo = self.cargo(&["build", "--release", "--locked", "--package", "fumehood"]);
        run::succeed("build fumehood for release", &mut cargo)?;
        Ok(self.fumehood())
    }
}

fn metadata(root: &Path, options: &[&str]) -> Result<Metadata> {
    let mut cargo = run::cargo();
    cargo.current_dir(root).args(["metadata", "--format-version", "1", "--locked"]).args(options);
    let answer = run::output("read the manifests", &mut cargo)?;
    serde_json::from_slice(&answer).context("cannot read the answer of `cargo metadata`")
}
