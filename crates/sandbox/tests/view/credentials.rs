//! No credential of a home is seen, wherever it lies.

use crate::fixture::Bench;

const SECRET: &str = "hunter2-and-more-0123456789abcdef";

/// Files with a secret in them, below the home: places of credentials, and some inside tool homes.
const PLANTED: [&str; 74] = [
    ".ssh/id_ed25519",
    ".ssh/config",
    ".gnupg/private-keys-v1.d/x.key",
    ".aws/credentials",
    ".aws/sso/cache/x.json",
    ".azure/msal_token_cache.json",
    ".config/gcloud/application_default_credentials.json",
    ".boto",
    ".s3cfg",
    ".kube/config",
    ".minikube/client.key",
    ".docker/config.json",
    ".docker/contexts/tls/x/key.pem",
    ".config/containers/auth.json",
    ".terraform.d/credentials.tfrc.json",
    ".terraformrc",
    ".vault-token",
    ".git-credentials",
    ".config/git/credentials",
    ".gitconfig",
    ".config/git/config",
    ".config/gh/hosts.yml",
    ".config/hub",
    ".config/glab-cli/config.yml",
    ".netrc",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".pip/pip.conf",
    ".config/pip/pip.conf",
    ".condarc",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".cargo/config.toml",
    ".gem/credentials",
    ".bundle/config",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".gradle/gradle.properties",
    ".gradle/init.gradle",
    ".gradle/init.d/repositories.gradle",
    ".ivy2/.credentials",
    ".sbt/credentials",
    ".lein/profiles.clj",
    ".nuget/NuGet/NuGet.Config",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".hex/hex.config",
    ".pub-cache/credentials.json",
    ".conan2/credentials.json",
    ".cabal/config",
    ".local/share/uv/credentials/x.toml",
    ".config/uv/uv.toml",
    ".config/pypoetry/auth.toml",
    ".config/go/env",
    ".cache/huggingface/token",
    ".password-store/x.gpg",
    ".local/share/keyrings/login.keyring",
    ".pgpass",
    ".my.cnf",
    ".mozilla/firefox/x/logins.json",
    ".config/google-chrome/Default/Cookies",
    ".config/chromium/Default/Login Data",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".psql_history",
    ".viminfo",
    ".bashrc",
    ".profile",
    ".env",
    ".claude.json",
    ".codex/auth.json",
    "notes.txt",
];

/// Tool homes and directories on PATH that a person may have beside all that.
const TOOLS: [&str; 20] = [
    ".cargo/bin/cargo",
    ".cargo/registry/cache/x.crate",
    ".cargo/git/db/x/HEAD",
    ".rustup/toolchains/stable/bin/rustc",
    ".m2/repository/x.jar",
    ".m2/wrapper/x.zip",
    ".gradle/caches/x.jar",
    ".gradle/wrapper/x.zip",
    ".npm/_cacache/index",
    ".local/bin/tool",
    ".local/lib/python3.12/x.py",
    ".ivy2/cache/x.jar",
    ".sbt/boot/x.jar",
    ".hex/packages/x.tar",
    ".gem/ruby/3.1/x.rb",
    ".conan2/p/x",
    ".cabal/packages/x",
    ".pub-cache/hosted/x",
    ".nuget/packages/x",
    ".composer/vendor/bin/x",
];

fn home_with_everything() -> Bench {
    let bench = Bench::debian();
    for path in PLANTED {
        bench.file(&format!("/home/ada/{path}"), SECRET);
    }
    for path in TOOLS {
        bench.program(&format!("/home/ada/{path}"));
    }
    bench.file("/home/ada/other-project/.env", SECRET);
    bench
        .variable("PATH", "/home/ada/.cargo/bin:/home/ada/.local/bin:/home/ada/.composer/vendor/bin:/usr/bin")
}

#[test]
fn no_planted_credential_is_readable_and_the_tools_are() {
    let bench = home_with_everything();
    let seen = bench.view();
    let readable = seen.readable();
    for path in PLANTED {
        let path = format!("/home/ada/{path}");
        assert!(!readable.iter().any(|it| it == std::path::Path::new(&path)), "{path} is bound");
        let inside = seen.read(&path).unwrap_or_default();
        assert!(!inside.contains("hunter2"), "{path} holds the secret inside: {inside}");
    }
    for path in readable {
        let contents = std::fs::read_to_string(bench.at(path.to_str().unwrap())).unwrap();
        assert!(!contents.contains("hunter2"), "{} is seen", path.display());
    }
    for path in TOOLS {
        assert!(seen.read(&format!("/home/ada/{path}")).is_some(), "{path} is not seen");
    }
}

#[test]
fn every_place_of_the_table_is_out_of_sight_even_where_tools_look_for_it() {
    let table = include_str!("../../data/credentials.txt");
    let places: Vec<String> = table
        .lines()
        .filter_map(|line| Some(line.strip_prefix("~/")?.split(" | ").next()?.replace('*', "x")))
        .collect();
    assert!(places.len() > 150);
    let bench = Bench::debian();
    for place in &places {
        // A place may be a directory or a file; a place inside another one is covered by it.
        if places.iter().any(|other| other != place && place.starts_with(&format!("{other}/"))) {
            continue;
        }
        let holds_others = places.iter().any(|other| other.starts_with(&format!("{place}/")));
        let is_directory = holds_others || bench.at(&format!("/home/ada/{place}")).is_dir();
        let at =
            if is_directory { format!("/home/ada/{place}/secret") } else { format!("/home/ada/{place}") };
        bench.file(&at, SECRET);
    }
    // The most careless PATH: every parent of a credential is on it.
    let mut parents: Vec<String> = places
        .iter()
        .filter_map(|place| place.rsplit_once('/').map(|(parent, _)| format!("/home/ada/{parent}")))
        .collect();
    parents.dedup();
    let bench = bench.variable("PATH", &format!("{}:/home/ada:/home:/:/usr/bin", parents.join(":")));
    for path in bench.view().readable() {
        let contents = std::fs::read_to_string(bench.at(path.to_str().unwrap())).unwrap();
        assert!(!contents.contains("hunter2"), "{} is seen", path.display());
    }
}

#[test]
fn settings_are_copied_without_their_secrets_and_the_copy_says_so() {
    let bench = Bench::debian();
    bench.file(
        "/home/ada/.cargo/config.toml",
        "[source.crates-io]\nreplace-with = \"m\"\n[source.m]\nregistry = \"https://mirror.example/\"\n[registry]\ntoken = \"x\"\n",
    );
    bench
        .file("/home/ada/.npmrc", "registry=https://registry.example/\n//registry.example/:_authToken=abc\n");
    bench
        .file("/home/ada/.config/pip/pip.conf", "[global]\nindex-url = https://ada:hunter2@index.example/\n");
    bench.file("/home/ada/.yarnrc.yml", "\u{0}\nnodeLinker: pnp\n");
    bench.file("/home/ada/.config/uv/uv.toml", "index-url = [broken");
    let seen = bench.view();
    assert!(seen.read("/home/ada/.cargo/config.toml").unwrap().contains("https://mirror.example/"));
    assert!(seen.why_hidden("/home/ada/.cargo/config.toml").unwrap().contains("`registry.token`"));
    assert_eq!(seen.read("/home/ada/.npmrc").unwrap(), "registry=https://registry.example/\n");
    assert_eq!(
        seen.read("/home/ada/.config/pip/pip.conf").unwrap(),
        "[global]\nindex-url = https://index.example/\n"
    );
    assert_eq!(seen.read("/home/ada/.config/uv/uv.toml"), None);
    assert!(seen.why_hidden("/home/ada/.config/uv/uv.toml").unwrap().contains("cannot be read for certain"));
}

#[test]
fn git_knows_the_callers_name_and_the_workspace_and_nothing_else() {
    let bench = Bench::debian();
    bench.file(
        "/home/ada/.gitconfig",
        "[user]\n\tname = Ada\n\temail = ada@example.com\n[credential]\n\thelper = store\n[http]\n\textraHeader = x\n",
    );
    let text = bench.view().read("/home/ada/.gitconfig").unwrap();
    let expected =
        "[user]\nname = Ada\nemail = ada@example.com\n[safe]\n\tdirectory = \"/home/ada/project\"\n";
    assert_eq!(text, expected);
}

#[test]
fn scripts_and_stray_files_on_path_are_masked_when_they_hold_secrets() {
    let bench = Bench::debian().variable("PATH", "/home/ada/bin:/usr/bin");
    bench.program("/home/ada/bin/harmless");
    bench.file("/home/ada/bin/deploy", "#!/bin/sh\nexport API_TOKEN=abcdef0123456789\n");
    bench.mode("/home/ada/bin/deploy", 0o755);
    bench.file("/home/ada/bin/notes.txt", SECRET);
    bench.file("/home/ada/bin/.env", SECRET);
    bench.file("/home/ada/bin/.git/config", SECRET);
    bench.file("/home/ada/elsewhere/leaky", "#!/bin/sh\ncurl https://ada:hunter2@host.example/\n");
    bench.mode("/home/ada/elsewhere/leaky", 0o755);
    bench.link("/home/ada/bin/leaky", "../elsewhere/leaky");
    bench.program("/home/ada/elsewhere/linked");
    bench.link("/home/ada/bin/linked", "../elsewhere/linked");
    let seen = bench.view();
    for name in ["harmless", "linked"] {
        assert!(seen.read(&format!("/home/ada/bin/{name}")).is_some(), "{name}");
    }
    for name in ["deploy", "notes.txt", ".env", ".git/config", "leaky"] {
        assert_eq!(seen.read(&format!("/home/ada/bin/{name}")), None, "{name}");
    }
    assert!(seen.why_hidden("/home/ada/bin/deploy").is_some());
}

#[test]
fn secrets_in_the_callers_environment_stay_outside() {
    let bench = Bench::debian()
        .variable("AWS_SECRET_ACCESS_KEY", SECRET)
        .variable("SSH_AUTH_SOCK", "/run/agent")
        .variable("PIP_INDEX_URL", "https://ada:hunter2@index.example/")
        .variable("GOFLAGS", "-mod=mod")
        .variable("LANG", "de_DE.UTF-8");
    let seen = bench.view();
    for (name, value) in &seen.view.environment {
        assert!(!value.to_string().contains("hunter2"), "{name}");
    }
    assert_eq!(seen.variable("AWS_SECRET_ACCESS_KEY"), None);
    assert_eq!(seen.variable("SSH_AUTH_SOCK"), None);
    assert_eq!(seen.variable("GOFLAGS"), Some("-mod=mod"));
    assert_eq!(seen.variable("LANG"), Some("de_DE.UTF-8"));
    assert!(seen.why_hidden("PIP_INDEX_URL").is_some());
}
