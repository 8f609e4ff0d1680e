//! Reads `deny.toml` and holds the resolved dependencies against it: the part of cargo-deny that every change needs,
//! without the minutes that building cargo-deny takes on a small machine.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, Result};
use serde::Deserialize;
use spdx::{Expression, LicenseReq, ParseMode};

use crate::repo::{Metadata, Package, Repo};

/// Crates that bring a provider of cryptography for TLS. More than one in a program makes it choose at run time,
/// and panic where nobody chose.
const TLS_PROVIDERS: [&str; 6] = ["ring", "aws-lc-rs", "openssl-sys", "boring-sys", "native-tls", "mbedtls"];

/// The part of `deny.toml` that is read here.
#[derive(Debug, Deserialize)]
struct Rules {
    graph: Graph,
    licenses: Licenses,
    bans: Bans,
}

#[derive(Debug, Deserialize)]
struct Graph {
    targets: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Licenses {
    allow: Vec<String>,
    #[serde(default)]
    exceptions: Vec<Exception>,
}

#[derive(Debug, Deserialize)]
struct Exception {
    #[serde(rename = "crate")]
    name: String,
    allow: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Bans {
    deny: Vec<Ban>,
}

#[derive(Debug, Deserialize)]
struct Ban {
    #[serde(rename = "crate")]
    name: String,
    reason: String,
}

/// Names every dependency that is not allowed, and says why.
///
/// # Errors
/// When `deny.toml` cannot be read or the dependencies cannot be resolved.
pub fn faults(repo: &Repo) -> Result<Vec<String>> {
    let text = fs::read_to_string(repo.root.join("deny.toml")).context("cannot read `deny.toml`")?;
    let rules: Rules = toml::from_str(&text).context("`deny.toml` is not understood")?;
    let mut faults = BTreeSet::new();
    for target in &rules.graph.targets {
        let metadata = repo.metadata(&["--all-features", "--filter-platform", target])?;
        faults.extend(rules.faults(&metadata));
    }
    Ok(faults.into_iter().collect())
}

impl Rules {
    fn faults(&self, metadata: &Metadata) -> Vec<String> {
        let mut faults = providers(metadata);
        for package in &metadata.packages {
            faults.extend(self.ban(package));
            faults.extend(source_fault(package));
            faults.extend(self.licence_fault(package));
        }
        faults
    }

    fn ban(&self, package: &Package) -> Option<String> {
        let ban = self.bans.deny.iter().find(|ban| ban.name == package.name)?;
        Some(format!("{} {} is banned: {}", package.name, package.version, ban.reason))
    }

    fn licence_fault(&self, package: &Package) -> Option<String> {
        let name = format!("{} {}", package.name, package.version);
        let Some(text) = &package.license else { return Some(format!("{name} states no licence")) };
        let Ok(expression) = Expression::parse_mode(text, ParseMode::LAX) else {
            return Some(format!("{name} states a licence that is not understood: `{text}`"));
        };
        let exception = self.licenses.exceptions.iter().find(|exception| exception.name == package.name);
        let allowed = |wanted: &LicenseReq| {
            let wanted = wanted.to_string();
            self.licenses.allow.contains(&wanted)
                || exception.is_some_and(|exception| exception.allow.contains(&wanted))
        };
        (!expression.evaluate(allowed)).then(|| format!("{name} is under `{text}`, which is not allowed"))
    }
}

/// Names a package that comes from anywhere but this repository or the default registry.
fn source_fault(package: &Package) -> Option<String> {
    let source = package.source.as_deref()?;
    let elsewhere = source.starts_with("git+") || !source.starts_with("registry+");
    elsewhere.then(|| format!("{} {} comes from `{source}`", package.name, package.version))
}

/// Complains about more than one provider of cryptography for TLS, or more than one version of it.
fn providers(metadata: &Metadata) -> Vec<String> {
    let found: Vec<String> = metadata
        .packages
        .iter()
        .filter(|package| TLS_PROVIDERS.contains(&package.name.as_str()))
        .map(|package| format!("{} {}", package.name, package.version))
        .collect();
    if found.len() > 1 {
        vec![format!("more than one TLS provider: {}", found.join(", "))]
    } else {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Rules {
        let text = r#"
            [graph]
            targets = []
            [licenses]
            allow = ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"]
            exceptions = [{ crate = "known", allow = ["MPL-2.0"] }]
            [[bans.deny]]
            crate = "openssl"
            reason = "one TLS provider"
        "#;
        toml::from_str(text).expect("it is well formed")
    }

    fn package(name: &str, license: Option<&str>) -> Package {
        Package {
            id: name.to_owned(),
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            license: license.map(str::to_owned),
            source: None,
            manifest_path: "/x/Cargo.toml".into(),
            dependencies: Vec::new(),
            targets: Vec::new(),
            features: Default::default(),
        }
    }

    #[test]
    fn expressions_are_understood_and_not_searched() {
        for good in ["MIT", "MIT OR GPL-3.0-only", "Apache-2.0/MIT", "(MIT AND Apache-2.0) OR Zlib"] {
            assert_eq!(rules().licence_fault(&package("some", Some(good))), None, "{good}");
        }
        for bad in ["GPL-3.0-only", "MIT AND GPL-3.0-only", "MIT-0", "so to speak"] {
            assert!(rules().licence_fault(&package("some", Some(bad))).is_some(), "{bad}");
        }
        assert!(rules().licence_fault(&package("some", None)).is_some());
    }

    #[test]
    fn an_exception_is_for_one_crate() {
        assert_eq!(rules().licence_fault(&package("known", Some("MPL-2.0"))), None);
        assert!(rules().licence_fault(&package("other", Some("MPL-2.0"))).is_some());
    }

    #[test]
    fn bans_sources_and_a_second_provider_are_noticed() {
        assert!(rules().ban(&package("openssl", Some("MIT"))).is_some());
        let elsewhere = Package { source: Some("git+https://example.test/x".into()), ..package("x", None) };
        assert!(source_fault(&elsewhere).is_some());
        let packages = vec![package("ring", None), package("aws-lc-rs", None)];
        let metadata = Metadata { packages, workspace_members: Vec::new(), target_directory: "/t".into() };
        assert_eq!(providers(&metadata), ["more than one TLS provider: ring 1.0.0, aws-lc-rs 1.0.0"]);
    }
}
