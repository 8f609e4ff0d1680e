//! The JSON schema of `fumehood.toml`, for editors. It is made from the same tables as the parser.

use serde_json::{Map, Value as Json, json};

use super::key::{
    APPROVALS, AUDIT, CANARY, CREDENTIAL, GATEWAY, Key, LIMITS, MINIMUM, MODEL, NETWORK, PROFILE, REGISTRY,
    REPOSITORY, ROLE, TOP,
};
use super::retention::RETENTION;

/// Returns the JSON schema of the operator's settings file.
pub fn schema() -> Json {
    let mut top = properties(TOP);
    top.insert("model".to_owned(), table(properties(MODEL), "Which model, and how it is reached."));
    top.insert(
        "approvals".to_owned(),
        table(properties(APPROVALS), "How people answer. Only the machine's file can hold this."),
    );
    let age = top.remove("retention").unwrap_or_default();
    let ages = table(properties(RETENTION), "How long what is kept stays, and how much of it.");
    top.insert("retention".to_owned(), json!({"anyOf": [age, ages]}));
    top.insert("audit".to_owned(), table(properties(AUDIT), "How the record is kept."));
    top.insert(
        "ceiling".to_owned(),
        table(properties(LIMITS), "The most that any run may use, whatever its profile."),
    );
    top.insert("minimum".to_owned(), minimum());
    let mut profile = properties(PROFILE);
    profile.append(&mut properties(LIMITS));
    profile.insert("minimum".to_owned(), minimum());
    let profiles = json!({
        "type": "object",
        "description": "Profiles of your own, each based on a built-in one.",
        "propertyNames": {"pattern": "^[A-Za-z0-9_][A-Za-z0-9_-]*$", "not": {"enum": ["default", "strict", "strict-build"]}},
        "additionalProperties": table(profile, "A profile of your own."),
    });
    top.insert("profile".to_owned(), profiles);
    let roles = json!({
        "type": "object",
        "description": "Who has which role, for rules that ask for somebody's yes.",
        "propertyNames": {"pattern": "^[a-z0-9]+(-[a-z0-9]+)*$", "not": {"enum": ["person"]}},
        "additionalProperties": table(properties(ROLE), "A role."),
    });
    top.insert("role".to_owned(), roles);
    let networks = json!({
        "type": "object",
        "description": "What actions may reach over the network, by names for `--allow-net`.",
        "propertyNames": {"pattern": "^[a-z0-9]+(-[a-z0-9]+)*$"},
        "additionalProperties": table(properties(NETWORK), "Rules that belong together."),
    });
    top.insert("network".to_owned(), networks);
    let credentials = json!({
        "type": "object",
        "description": "Credentials that stay outside of sandboxes, by names for `--credential`.",
        "propertyNames": {"pattern": "^[a-z0-9]+(-[a-z0-9]+)*$"},
        "additionalProperties": table(properties(CREDENTIAL), "A credential: where it is, and what it is for."),
    });
    top.insert("credential".to_owned(), credentials);
    top.insert("gateway".to_owned(), table(properties(GATEWAY), "What holds for all gateways."));
    top.insert("canary".to_owned(), table(properties(CANARY), "Made-up credentials that must not come out."));
    let registries = json!({
        "type": "object",
        "description": "Where packages come from, by names for `--allow-net registry:NAME`, and what may come.",
        "propertyNames": {"pattern": "^[a-z0-9]+(-[a-z0-9]+)*$"},
        "additionalProperties": table(properties(REGISTRY), "A registry of packages."),
    });
    top.insert("registry".to_owned(), registries);
    let repositories = json!({
        "type": "object",
        "description": "How sensitive the repositories in a directory are.",
        "propertyNames": {"pattern": "^/"},
        "additionalProperties": table(properties(REPOSITORY), "What the operator says of the repositories there."),
    });
    top.insert("repository".to_owned(), repositories);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "fumehood.toml",
        "type": "object",
        "properties": top,
        "additionalProperties": false,
    })
}

fn minimum() -> Json {
    table(properties(MINIMUM), "The least that must hold, or nothing runs.")
}

fn table(properties: Map<String, Json>, about: &str) -> Json {
    json!({"type": "object", "description": about, "properties": properties, "additionalProperties": false})
}

fn properties<T>(keys: &[Key<T>]) -> Map<String, Json> {
    let property = |key: &Key<T>| {
        let mut schema = key.form.schema();
        if key.name == "based_on" {
            schema = json!({"enum": ["default", "strict", "strict-build"]});
        }
        if let Json::Object(schema) = &mut schema {
            schema.insert("description".to_owned(), key.about.into());
        }
        (key.name.to_owned(), schema)
    };
    keys.iter().map(property).collect()
}

#[cfg(test)]
mod tests {
    use super::super::file::SettingsFile;
    use super::super::origin::Source;
    use super::*;

    fn agrees(text: &str) -> bool {
        let validator = jsonschema::validator_for(&schema()).expect("the schema is one");
        let value: toml::Table = text.parse().expect("is TOML");
        let json = serde_json::to_value(value).expect("has a JSON form");
        let parsed = SettingsFile::parse(text, Source::Operator("f.toml".into())).is_ok();
        assert_eq!(validator.is_valid(&json), parsed, "{text}");
        parsed
    }

    #[test]
    fn the_schema_takes_what_the_parser_takes() {
        for good in [
            "",
            "state_dir = \"/s\"\ndefault_profile = \"ci\"\nretention = \"30d\"\nrun_as = 61000\n",
            "[model]\nname = \"m\"\nbase_url = \"https://m.example\"\nkey_file = \"/k\"\n",
            "[audit]\nanchor_file = \"/mnt/heads\"\n",
            "[retention]\nlayers = \"30d\"\nlayers_max = \"20GiB\"\nincidents = \"1d\"\n",
            "[ceiling]\nmemory = 1024\ncpus = 1.5\ndisk = \"4 GiB\"\nfiles = 3\ndisk_mode = \"memory\"\n",
            "[role.release-manager]\npeople = [\"ada\", 1001]\ngroups = [\"ops\"]\n[role.x]\n",
            "[minimum]\nmemory_and_cpu = \"hard\"\n[profile.ci]\nbased_on = \"strict\"\n[profile.ci.minimum]\n",
            "[repository.\"/src\"]\nsensitivity = \"internal\"\n",
            "[registry.own]\nkind = \"npm\"\nindex = \"https://a.test/x\"\ndownloads = [\"https://b.test\"]\nknown = [\"@own/*\"]\n\
             cooldown = \"0s\"\nunknown_age = \"allow\"\nnew_names = \"refuse\"\nlockfile = \"record\"\nscripts = []\n",
        ] {
            assert!(agrees(good), "{good}");
        }
        for bad in [
            "xyzzy = 1\n",
            "state_dir = \"relative\"\n",
            "retention = 30\n",
            "retention = \"30 days\"\n",
            "[retention]\nlayers = 30\n",
            "[retention]\nlayers_max = \"30d\"\n",
            "[retention]\ntrials = \"30d\"\n",
            "run_as = 0\n",
            "[ceiling]\ncpus = 0\n",
            "[ceiling]\nmemory = \"lots\"\n",
            "[ceiling]\nmemory = 0\n",
            "[minimum]\nmemory_and_cpu = \"soft\"\n",
            "[profile.strict]\nmemory = 1\n",
            "[profile.ci]\nbased_on = \"ci\"\n",
            "model = 1\n",
            "[audit]\nanchor_file = \"heads\"\n",
            "[role.person]\npeople = [\"ada\"]\n",
            "[role.\"A b\"]\n",
            "[role.x]\npeople = \"ada\"\n",
            "[role.x]\npeople = [1.5]\n",
            "[role.x]\npeople = [[\"ada\"]]\n",
            "[role.x]\ngroups = [50]\n",
            "[role.x]\nusers = []\n",
            "[registry.own]\nkind = \"gopher\"\n",
            "[registry.own]\nindex = \"a.test\"\n",
            "[registry.own]\nknown = [\"a b\"]\n",
            "[registry.own]\ncooldown = 72\n",
            "[registry.\"A b\"]\n",
            "[repository.\"src\"]\nsensitivity = \"internal\"\n",
            "[repository.\"/src\"]\nsensitivity = \"secret\"\n",
        ] {
            assert!(!agrees(bad), "{bad}");
        }
    }
}
