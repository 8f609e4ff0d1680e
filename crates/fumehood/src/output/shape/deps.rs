//! Packages that came from registries: as a list, and as a CycloneDX document (ECMA-424, version 1.6).

use engine::store::StoredPackage;
use model::egress::{Algorithm, RegistryKind};
use model::{ActionId, TaskId, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Moment, moment};

/// `deps list --json` and `deps who-used --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DepsDocument {
    /// The files of packages that came, oldest first.
    pub packages: Vec<DepsRow>,
}

/// One file of a package that came.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DepsRow {
    /// What its registry speaks: `cargo`, `npm`, `pypi` or `debian`.
    pub kind: String,
    /// Its name, in the form that names are compared in.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The name of the registry in the settings.
    pub registry: String,
    /// What came, as `sha256:` and hexadecimal digits.
    pub digest: String,
    /// Whether a lockfile named this version.
    pub locked: bool,
    /// The task for which it came.
    #[schemars(with = "String")]
    pub task: TaskId,
    /// The action for which it came.
    #[schemars(with = "String")]
    pub action: ActionId,
    /// When that was recorded.
    #[schemars(with = "Moment")]
    #[serde(serialize_with = "moment")]
    pub at: Timestamp,
}

/// What came for one action, as a bill of materials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SbomDocument {
    bom_format: &'static str,
    spec_version: &'static str,
    version: u32,
    metadata: Metadata,
    components: Vec<Component>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    tools: Tools,
    component: Subject,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Tools {
    components: Vec<Subject>,
}

/// What a document is about, and what wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Subject {
    #[serde(rename = "type")]
    is: &'static str,
    #[serde(rename = "bom-ref", skip_serializing_if = "Option::is_none")]
    reference: Option<String>,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'static str>,
}

/// One file of a release: of a release that has several, each is a component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Component {
    #[serde(rename = "type")]
    is: &'static str,
    #[serde(rename = "bom-ref")]
    reference: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    name: String,
    version: String,
    hashes: Vec<Hash>,
    purl: String,
    properties: Vec<Property>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Hash {
    alg: &'static str,
    content: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Property {
    name: &'static str,
    value: String,
}

impl SbomDocument {
    /// Makes the document of one action.
    pub fn of(action: &ActionId, packages: &[StoredPackage]) -> Self {
        let tool = Subject {
            is: "application",
            reference: None,
            name: "fumehood".to_owned(),
            version: Some(env!("CARGO_PKG_VERSION")),
        };
        let about = Subject {
            is: "application",
            reference: Some(action.to_string()),
            name: action.to_string(),
            version: None,
        };
        Self {
            bom_format: "CycloneDX",
            spec_version: "1.6",
            version: 1,
            metadata: Metadata { tools: Tools { components: vec![tool] }, component: about },
            components: packages.iter().map(component).collect(),
        }
    }

    /// Returns it as it is written to a file.
    pub fn bytes(&self) -> Vec<u8> {
        // INVARIANT: it holds texts and numbers only, which all have a JSON form.
        let mut bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }
}

fn component(package: &StoredPackage) -> Component {
    let (group, name) = match package.name.split_once('/') {
        Some((scope, name)) => (Some(scope.to_owned()), name.to_owned()),
        None => (None, package.name.clone()),
    };
    let purl = purl(package);
    Component {
        is: "library",
        reference: format!("{purl}#{}", package.digest),
        group,
        name,
        version: package.version.clone(),
        hashes: vec![Hash {
            alg: algorithm(package.digest.algorithm),
            content: package.digest.hex().to_owned(),
        }],
        purl,
        properties: vec![
            Property { name: "fumehood:registry", value: package.registry.clone() },
            Property { name: "fumehood:locked", value: package.locked.to_string() },
        ],
    }
}

/// Returns the package URL: `pkg:TYPE/NAME@VERSION`, with its letters escaped as its specification has it.
fn purl(package: &StoredPackage) -> String {
    let kind = match package.kind {
        RegistryKind::Cargo => "cargo",
        RegistryKind::Npm => "npm",
        RegistryKind::Pypi => "pypi",
        RegistryKind::Debian => "deb/debian",
    };
    let name: Vec<String> = package.name.split('/').map(escaped).collect();
    format!("pkg:{kind}/{}@{}", name.join("/"), escaped(&package.version))
}

fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

fn algorithm(of: Algorithm) -> &'static str {
    match of {
        Algorithm::Sha1 => "SHA-1",
        Algorithm::Sha256 => "SHA-256",
        Algorithm::Sha384 => "SHA-384",
        Algorithm::Sha512 => "SHA-512",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_a_component_with_its_url_and_what_its_file_is() {
        let package = StoredPackage {
            kind: RegistryKind::Npm,
            name: "@types/node".to_owned(),
            version: "1.0.0+x".to_owned(),
            registry: "js".to_owned(),
            digest: format!("sha256:{}", "ab".repeat(32)).parse().expect("a checksum"),
            locked: true,
            task: TaskId::from_random([0; 10]),
            action: ActionId::from_random([1; 10]),
            at: Timestamp::from_nanos(1),
        };
        let document = SbomDocument::of(&package.action, std::slice::from_ref(&package));
        let json: serde_json::Value = serde_json::from_slice(&document.bytes()).expect("is JSON");
        assert_eq!((&json["bomFormat"], &json["specVersion"]), (&"CycloneDX".into(), &"1.6".into()));
        let one = &json["components"][0];
        assert_eq!(
            (&one["group"], &one["name"], &one["type"]),
            (&"@types".into(), &"node".into(), &"library".into())
        );
        assert_eq!(one["purl"], "pkg:npm/%40types/node@1.0.0%2Bx");
        assert_eq!(one["hashes"][0]["content"], "ab".repeat(32));
        assert_eq!(json["metadata"]["component"]["name"], package.action.to_string());
    }
}
