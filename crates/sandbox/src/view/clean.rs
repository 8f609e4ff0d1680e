//! Copies of tools' settings that hold only what `data/settings.txt` lists, and no secret.
//!
//! Guarantees: nothing that is not listed, nothing whose name or value looks like a secret, and no user or password in
//! an address gets into a copy. A file that cannot be read for certain gives no copy at all.

use model::text::escape;

use super::credentials::{names_secret, without_secret};
use super::data::{SETTINGS, rows};
use super::files::is_like;

/// A file format, with the tool whose settings are in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Cargo,
    Mise,
    Poetry,
    Uv,
    Npm,
    Pip,
    Git,
    Gradle,
    Go,
    Yarn,
    Bundler,
    Cabal,
    Maven,
}

/// A copy of settings.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Cleaned {
    pub(crate) text: String,
    /// The names of settings that were left out or changed because of a secret.
    pub(crate) secrets: Vec<String>,
}

impl Format {
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "cargo" => Self::Cargo,
            "mise" => Self::Mise,
            "poetry" => Self::Poetry,
            "uv" => Self::Uv,
            "npm" => Self::Npm,
            "pip" => Self::Pip,
            "git" => Self::Git,
            "gradle" => Self::Gradle,
            "go" => Self::Go,
            "yarn" => Self::Yarn,
            "bundler" => Self::Bundler,
            "cabal" => Self::Cabal,
            "maven" => Self::Maven,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Cargo => "cargo",
            Self::Mise => "mise",
            Self::Poetry => "poetry",
            Self::Uv => "uv",
            Self::Npm => "npm",
            Self::Pip => "pip",
            Self::Git => "git",
            Self::Gradle => "gradle",
            Self::Go => "go",
            Self::Yarn => "yarn",
            Self::Bundler => "bundler",
            Self::Cabal => "cabal",
            Self::Maven => "maven",
        }
    }

    /// Returns a copy of a settings file without secrets; nothing when the file is not what it should be.
    pub(crate) fn clean(self, file: &[u8]) -> Option<Cleaned> {
        let text = std::str::from_utf8(file).ok()?;
        match self {
            Self::Cargo | Self::Mise | Self::Poetry | Self::Uv => clean_toml(self, text),
            Self::Maven => super::clean_maven::clean(text),
            Self::Npm | Self::Gradle | Self::Go => clean_lines(self, text, '='),
            Self::Yarn | Self::Bundler | Self::Cabal => clean_lines(self, text, ':'),
            Self::Pip => clean_sections(self, text, |_, name| name.to_owned()),
            Self::Git => {
                clean_sections(self, text, |section, name| format!("{section}.{name}").to_lowercase())
            }
        }
    }

    fn lists(self, name: &str) -> bool {
        let listed = rows::<3>(SETTINGS).filter(|[format, ..]| *format == self.name());
        listed.into_iter().any(|[_, pattern, _]| is_like(name, pattern))
    }
}

fn clean_toml(format: Format, text: &str) -> Option<Cleaned> {
    let table: toml::Table = text.parse().ok()?;
    let mut cleaned = Cleaned::default();
    let patterns: Vec<Vec<&str>> = rows::<3>(SETTINGS)
        .filter(|[of, ..]| *of == format.name())
        .map(|[_, pattern, _]| pattern.split('.').collect())
        .collect();
    let kept = keep_table(table, &mut Vec::new(), &patterns, &mut cleaned.secrets);
    cleaned.text = toml::to_string(&kept).ok()?;
    Some(cleaned)
}

fn keep_table(
    table: toml::Table,
    path: &mut Vec<String>,
    patterns: &[Vec<&str>],
    secrets: &mut Vec<String>,
) -> toml::Table {
    let mut kept = toml::Table::new();
    for (name, value) in table {
        path.push(name);
        let value = keep_value(value, path, patterns, secrets);
        let name = path.pop().unwrap_or_default();
        kept.extend(value.map(|value| (name, value)));
    }
    kept
}

fn keep_value(
    value: toml::Value,
    path: &mut Vec<String>,
    patterns: &[Vec<&str>],
    secrets: &mut Vec<String>,
) -> Option<toml::Value> {
    if path.last().is_some_and(|name| names_secret(name)) {
        secrets.push(shown(path));
        return None;
    }
    match value {
        toml::Value::Table(table) => {
            let kept = keep_table(table, path, patterns, secrets);
            (!kept.is_empty()).then_some(toml::Value::Table(kept))
        }
        toml::Value::Array(items) if items.iter().any(toml::Value::is_table) => {
            let kept = items.into_iter().filter_map(|item| keep_value(item, path, patterns, secrets));
            Some(toml::Value::Array(kept.collect()))
        }
        value if !patterns.iter().any(|pattern| fits(path, pattern)) => {
            drop(value);
            None
        }
        toml::Value::Array(items) => {
            let before = secrets.len();
            let kept = items.into_iter().filter_map(|item| keep_text(item, path, secrets)).collect();
            (secrets.len() == before).then_some(toml::Value::Array(kept))
        }
        value => keep_text(value, path, secrets),
    }
}

fn keep_text(value: toml::Value, path: &[String], secrets: &mut Vec<String>) -> Option<toml::Value> {
    let toml::Value::String(text) = value else { return Some(value) };
    let kept = without_secret(&text);
    if kept.as_deref() != Some(&text) {
        secrets.push(shown(path));
    }
    kept.map(toml::Value::String)
}

fn fits(path: &[String], pattern: &[&str]) -> bool {
    match pattern.split_last() {
        Some((&"**", start)) => path.len() >= start.len() && fits(&path[..start.len()], start),
        _ => {
            path.len() == pattern.len()
                && path.iter().zip(pattern).all(|(name, pattern)| is_like(name, pattern))
        }
    }
}

fn shown(path: &[String]) -> String {
    path.join(".")
}

/// Cleans a file in which each setting is one line.
fn clean_lines(format: Format, text: &str, separator: char) -> Option<Cleaned> {
    let mut cleaned = Cleaned::default();
    for line in text.lines().filter(|line| is_setting(line)) {
        // What is indented belongs to the setting above, which then is not one line: it is left out.
        if line.starts_with([' ', '\t', '-']) {
            continue;
        }
        let Some((name, value)) = line.split_once(separator) else { continue };
        cleaned.keep(format, name.trim(), value, line);
    }
    Some(cleaned)
}

/// Cleans a file of sections in brackets.
fn clean_sections(format: Format, text: &str, full_name: impl Fn(&str, &str) -> String) -> Option<Cleaned> {
    let mut cleaned = Cleaned::default();
    let mut section = String::new();
    let mut written = String::new();
    // Git and pip read indented lines differently: for git they are settings, for pip they go on with the one above.
    let mut above_is_kept = false;
    for line in text.lines().filter(|line| is_setting(line)) {
        if let Some(inner) = line.trim().strip_prefix('[') {
            section = inner.split(']').next()?.trim().to_owned();
            above_is_kept = false;
            continue;
        }
        if format == Format::Pip && line.starts_with([' ', '\t']) {
            cleaned.keep_more(line, above_is_kept);
            continue;
        }
        let line = line.trim();
        let Some((name, value)) = line.split_once('=') else {
            above_is_kept = false;
            continue;
        };
        let before = cleaned.text.len();
        if written != section {
            cleaned.text.push_str(&format!("[{section}]\n"));
        }
        above_is_kept = cleaned.keep(format, &full_name(&section, name.trim()), value, line);
        if above_is_kept {
            written.clone_from(&section);
        } else {
            cleaned.text.truncate(before);
        }
    }
    Some(cleaned)
}

fn is_setting(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with(['#', ';', '!'])
}

impl Cleaned {
    /// Keeps one line when its setting is listed and holds no secret.
    fn keep(&mut self, format: Format, name: &str, value: &str, line: &str) -> bool {
        let is_list = name.strip_suffix("[]").unwrap_or(name);
        if names_secret(name) {
            self.secrets.push(name.to_owned());
            return false;
        }
        if !format.lists(is_list) {
            return false;
        }
        let kept = without_secret(value);
        if kept.as_deref() != Some(value) {
            self.secrets.push(name.to_owned());
        }
        let Some(kept) = kept else { return false };
        let start = line.strip_suffix(value).unwrap_or_default();
        self.text.push_str(&format!("{start}{kept}\n"));
        true
    }

    /// Keeps a line that goes on with the setting above.
    fn keep_more(&mut self, line: &str, above_is_kept: bool) {
        if !above_is_kept {
            return;
        }
        match without_secret(line) {
            Some(kept) => self.text.push_str(&format!("{kept}\n")),
            None => self.secrets.push("a further line of a setting".to_owned()),
        }
    }

    /// Returns a sentence about what was left out, when something was.
    pub(crate) fn reason(&self) -> Option<String> {
        if self.secrets.is_empty() {
            return None;
        }
        let names: Vec<String> = self.secrets.iter().map(|name| format!("`{}`", escape(name))).collect();
        Some(format!("a copy is shown without the secrets in {}", names.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean(format: Format, text: &str) -> Cleaned {
        format.clean(text.as_bytes()).expect("it parses")
    }

    #[test]
    fn cargo_keeps_its_mirror_and_loses_its_tokens() {
        let text = r#"
            [source.crates-io]
            replace-with = "mirror"
            [source.mirror]
            registry = "sparse+https://ada:hunter2@mirror.example/index/"
            [registry]
            token = "cioabcdefghijklmnopqrstuvwxyz0123456"
            [registries.work]
            index = "sparse+https://work.example/"
            token = "Bearer abc"
            credential-provider = ["cargo:token-from-stdout", "cat", "/home/ada/.token"]
            [env]
            DEPLOY_KEY = "x"
            RUST_TEST_THREADS = "2"
            [http]
            proxy = "http://ada:hunter2@proxy.example"
        "#;
        let cleaned = clean(Format::Cargo, text);
        for gone in ["hunter2", "token", "cio", "Bearer", "DEPLOY_KEY", "proxy", "ada"] {
            assert!(!cleaned.text.contains(gone), "{gone} in {}", cleaned.text);
        }
        for kept in [
            "replace-with = \"mirror\"",
            "sparse+https://mirror.example/index/",
            "RUST_TEST_THREADS",
            "work.example",
        ] {
            assert!(cleaned.text.contains(kept), "{kept} not in {}", cleaned.text);
        }
        let secrets = [
            "env.DEPLOY_KEY",
            "registries.work.credential-provider",
            "registries.work.token",
            "registry.token",
        ];
        assert!(
            secrets.iter().all(|name| cleaned.secrets.iter().any(|s| s == name)),
            "{:?}",
            cleaned.secrets
        );
    }

    #[test]
    fn npm_keeps_its_registries_and_loses_its_tokens() {
        let text = "registry=https://registry.example/\n@work:registry=https://work.example/npm/\n\
                    //work.example/npm/:_authToken=npm_0123456789abcdefghijklmnopqrstuvwxyz\n_auth=YWRhOmh1bnRlcjI=\n\
                    always-auth=true\nemail=ada@example.com\nfund=false\n; note\nca[]=\"x\"\n";
        let cleaned = clean(Format::Npm, text);
        let kept = "registry=https://registry.example/\n@work:registry=https://work.example/npm/\nfund=false\nca[]=\"x\"\n";
        assert_eq!(cleaned.text, kept);
        assert_eq!(cleaned.secrets, ["//work.example/npm/:_authToken", "_auth"]);
    }

    #[test]
    fn pip_keeps_its_sections_and_loses_passwords() {
        let text = "[global]\nindex-url = https://ada:hunter2@index.example/simple\nproxy = http://p\n\
                    find-links =\n    /opt/wheels\n    https://a:b@links.example/\n[install]\nno-index = true\n[x]\ny = 1\n";
        let cleaned = clean(Format::Pip, text);
        let kept = "[global]\nindex-url = https://index.example/simple\nfind-links =\n    /opt/wheels\n    \
                    https://links.example/\n[install]\nno-index = true\n";
        assert_eq!(cleaned.text, kept);
        assert_eq!(cleaned.secrets, ["index-url"]);
    }

    #[test]
    fn git_keeps_a_name_and_loses_the_rest() {
        let text = "[user]\n\tname = Ada Lovelace\n\temail = ada@example.com\n\tsigningKey = ABC\n[credential]\n\thelper = store\n\
                    [url \"https://ada:hunter2@host.example/\"]\n\tinsteadOf = https://host.example/\n[core]\n\tautocrlf = input\n\
                    \tsshCommand = ssh -i key\n[http]\n\textraHeader = Authorization: x\n";
        let cleaned = clean(Format::Git, text);
        assert_eq!(
            cleaned.text,
            "[user]\nname = Ada Lovelace\nemail = ada@example.com\n[core]\nautocrlf = input\n"
        );
    }

    #[test]
    fn gradle_keeps_memory_and_loses_passwords() {
        let text = "org.gradle.jvmargs=-Xmx2g\nmavenPassword=hunter2\nsigning.keyId=AB\nsigning.password=x\nmyRepoUser=ada\n";
        assert_eq!(clean(Format::Gradle, text).text, "org.gradle.jvmargs=-Xmx2g\n");
    }

    #[test]
    fn lists_in_files_with_colons_are_left_out_whole() {
        let yarn =
            "nodeLinker: node-modules\nnpmAuthToken: abc\nnpmScopes:\n  work:\n    npmAuthToken: abc\n";
        assert_eq!(clean(Format::Yarn, yarn).text, "nodeLinker: node-modules\n");
        let cabal =
            "repository hackage\n  url: http://ada:hunter2@host.example/\njobs: 4\npassword: hunter2\n";
        assert_eq!(clean(Format::Cabal, cabal).text, "jobs: 4\n");
    }

    #[test]
    fn what_does_not_parse_gives_no_copy() {
        assert_eq!(Format::Cargo.clean(b"[registry\ntoken = 1"), None);
        assert_eq!(Format::Npm.clean(b"\xff\xfe"), None);
        assert_eq!(Format::Maven.clean(b"<settings><mirrors>"), None);
    }
}
