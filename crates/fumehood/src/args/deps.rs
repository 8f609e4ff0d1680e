//! The arguments of `deps`.

use std::str::FromStr;

use clap::{Args, Subcommand};

use super::value::{ActionName, TaskName};

/// Arguments of `deps`.
#[derive(Debug, Args)]
pub struct DepsArgs {
    /// What is to be done.
    #[command(subcommand)]
    pub verb: DepsVerb,
}

/// What can be asked about packages.
#[derive(Debug, Subcommand)]
pub enum DepsVerb {
    /// List the packages that came from registries
    List(DepsListArgs),
    /// Find the tasks and actions for which a package came
    WhoUsed(DepsWhoUsedArgs),
    /// Write what came for an action as a CycloneDX document
    Sbom(DepsSbomArgs),
}

const LIST_EXAMPLES: &str = "\
Examples:
  fumehood deps list
  fumehood deps list task-aaaaaaaaaaaaaaaa --json

Listed is what came whole and was what its registry and the lockfile say. What was refused is in `fumehood why`.";

/// Arguments of `deps list`.
#[derive(Debug, Args)]
#[command(after_long_help = LIST_EXAMPLES)]
pub struct DepsListArgs {
    /// Only what came for this task
    #[arg(value_name = "TASK")]
    pub task: Option<TaskName>,
}

const WHO_USED_EXAMPLES: &str = "\
Examples:
  fumehood deps who-used left-pad
  fumehood deps who-used serde_json@1.0.0 --json

Exit code 1 when nobody did.";

/// Arguments of `deps who-used`.
#[derive(Debug, Args)]
#[command(after_long_help = WHO_USED_EXAMPLES)]
pub struct DepsWhoUsedArgs {
    /// The package, and its version where only one is meant
    #[arg(value_name = "NAME[@VERSION]")]
    pub package: PackageName,
}

const SBOM_EXAMPLES: &str = "\
Examples:
  fumehood deps sbom act-aaaaaaaaaaaaaaaa > sbom.cdx.json

The document is CycloneDX 1.6 as JSON, also without --json: a component for each file of a release, with its digest.";

/// Arguments of `deps sbom`.
#[derive(Debug, Args)]
#[command(after_long_help = SBOM_EXAMPLES)]
pub struct DepsSbomArgs {
    /// The action
    #[arg(value_name = "ACTION")]
    pub action: ActionName,
}

/// A package by its name, and by one of its versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageName {
    /// The name, as it was written.
    pub name: String,
    /// The version.
    pub version: Option<String>,
}

/// Says why a text names no package.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it names no package: write NAME or NAME@VERSION, for example `serde_json@1.0.0` or `@types/node`")]
pub struct PackageNameError;

impl FromStr for PackageName {
    type Err = PackageNameError;

    fn from_str(text: &str) -> Result<Self, PackageNameError> {
        // The first letter of a name with a scope is an `@` too.
        let (name, version) = match text.rfind('@').filter(|at| *at > 0) {
            Some(at) => (&text[..at], Some(text[at + 1..].to_owned())),
            None => (text, None),
        };
        let wrong = name.is_empty() || name == "@" || version.as_ref().is_some_and(String::is_empty);
        if wrong { Err(PackageNameError) } else { Ok(Self { name: name.to_owned(), version }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_stands_after_the_last_sign_and_a_scope_before_the_first() {
        let of = |text: &str| text.parse::<PackageName>().map(|one| (one.name, one.version));
        let both = |name: &str, version: Option<&str>| Ok((name.to_owned(), version.map(str::to_owned)));
        assert_eq!(of("serde"), both("serde", None));
        assert_eq!(of("serde@1.0.0"), both("serde", Some("1.0.0")));
        assert_eq!(of("@types/node"), both("@types/node", None));
        assert_eq!(of("@types/node@22.0.0"), both("@types/node", Some("22.0.0")));
        for wrong in ["", "@", "serde@"] {
            assert_eq!(of(wrong), Err(PackageNameError), "{wrong}");
        }
    }
}
