//! The targets.

use std::ffi::OsString;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use agent::conversation::ToolCall;
use fumehood::settings::{SettingsFile, Source};
use model::text::{escape, escape_lines, is_hidden};
use model::{Event, OsText, Pathspecs, WorkspacePath};
use rustix::fs::MemfdFlags;
use serde::de::DeserializeOwned;

use crate::{Target, gateway, layer};

/// Every target, in order of the names.
pub const TARGETS: [Target; 31] = [
    Target { name: "agent-protocol", run: agent_protocol },
    Target { name: "audit-checkpoint", run: audit_checkpoint },
    Target { name: "audit-export", run: audit_export },
    Target { name: "audit-record", run: audit_record },
    Target { name: "base-stats", run: json::<engine::apply::BaseStats> },
    Target { name: "bwrap-arguments", run: bwrap_arguments },
    Target { name: "cgroup-mounts", run: cgroup_mounts },
    Target { name: "credential-shapes", run: credential_shapes },
    Target { name: "egress-hello", run: gateway::hello },
    Target { name: "egress-question", run: gateway::question },
    Target { name: "egress-request", run: gateway::request },
    Target { name: "egress-rule", run: gateway::rule },
    Target { name: "egress-socks", run: gateway::socks },
    Target { name: "egress-tunnel", run: gateway::tunnel },
    Target { name: "event", run: event },
    Target { name: "git-config", run: git_config },
    Target { name: "layer", run: layer::run },
    Target { name: "loader-cache", run: loader_cache },
    Target { name: "patch", run: patch },
    Target { name: "pathspec", run: pathspec },
    Target { name: "program", run: program },
    Target { name: "replay-request", run: replay_request },
    Target { name: "service-manager", run: service_manager },
    Target { name: "settings", run: settings },
    Target { name: "shell", run: shell },
    Target { name: "stream", run: stream },
    Target { name: "text", run: text },
    Target { name: "tool-call", run: tool_call },
    Target { name: "tool-settings", run: tool_settings },
    Target { name: "transcript", run: transcript },
    Target { name: "wire", run: wire },
];

fn service_manager(bytes: &[u8]) -> String {
    sandbox::cgroup::read_manager_message(bytes).map_or_else(|error| error.to_string(), |_| "read".to_owned())
}

fn agent_protocol(bytes: &[u8]) -> String {
    let message = json::<agent::protocol::FromAgent>(bytes);
    format!("{message} {}", json::<agent::conversation::Message>(bytes))
}

fn json<T: DeserializeOwned>(bytes: &[u8]) -> String {
    said(serde_json::from_slice::<T>(bytes).map(drop))
}

fn said<E: std::fmt::Display>(result: Result<(), E>) -> String {
    result.map_or_else(|error| error.to_string(), |()| "read".to_owned())
}

/// Says in a word how many.
pub(crate) fn size(number: usize) -> &'static str {
    match number {
        0 => "none",
        1 => "one",
        2..10 => "some",
        10..100 => "many",
        _ => "very many",
    }
}

fn audit_checkpoint(bytes: &[u8]) -> String {
    let key = audit::SigningKey::new(&audit::LogId::from_random([1; 10]), &[7; 32]);
    let text = String::from_utf8_lossy(bytes);
    let proof = audit::Proof::open(&text, key.public()).map(drop);
    let other = text.parse::<audit::PublicKey>();
    if let Ok(other) = &other {
        assert_eq!(other.to_string().parse().as_ref(), Ok(other), "a key reads as itself again");
    }
    match audit::read_checkpoints(bytes, key.public()) {
        Ok(heads) => {
            for head in &heads {
                let again = audit::Checkpoint::open(&head.to_string(), key.public());
                assert_eq!(again.as_ref(), Ok(head), "a head reads as itself again");
            }
            size(heads.len()).to_owned()
        }
        Err(error) => format!("{error} {} {}", said(proof), said(other.map(drop))),
    }
}

fn audit_export(bytes: &[u8]) -> String {
    match audit::verify_export(bytes, &audit::Anchors::default()) {
        Ok(verification) => format!("{verification:?}"),
        Err(error) => error.to_string(),
    }
}

fn audit_record(bytes: &[u8]) -> String {
    match audit::Record::from_line(&String::from_utf8_lossy(bytes)) {
        Ok(record) => {
            if let Ok(line) = record.to_line() {
                let again = audit::Record::from_line(&line);
                assert_eq!(again.as_ref(), Ok(&record), "a record reads as itself again");
            }
            let view = audit::view(&record);
            assert!(!view.contains(is_hidden), "{view:?}");
            view.get(60..).unwrap_or_default().to_owned()
        }
        Err(error) => error.to_string(),
    }
}

fn event(bytes: &[u8]) -> String {
    match serde_json::from_slice::<Event>(bytes) {
        Ok(event) => {
            let text = serde_json::to_string(&event).expect("an event can be written");
            let again: Event = serde_json::from_str(&text).expect("what was written can be read");
            assert_eq!(again, event, "an event reads as itself again");
            event.name().to_owned()
        }
        Err(error) => error.to_string(),
    }
}

fn bwrap_arguments(bytes: &[u8]) -> String {
    let arguments: Vec<OsString> =
        bytes.split(|byte| *byte == 0).map(|argument| OsString::from_vec(argument.to_vec())).collect();
    let more = |_| Ok(bytes.iter().rev().copied().collect());
    match fumehood::bwrap::parse(&arguments, &more) {
        Ok(_) => "read".to_owned(),
        Err(error) => error.to_string(),
    }
}

fn cgroup_mounts(bytes: &[u8]) -> String {
    let mut parts = bytes.splitn(2, |byte| *byte == 0);
    let (mounts, own) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    format!("{:?}", sandbox::cgroup::Hierarchies::parse(mounts, own).versions())
}

fn credential_shapes(bytes: &[u8]) -> String {
    format!("{:?}", inspect::credentials::shape_of(bytes))
}

fn git_config(bytes: &[u8]) -> String {
    let without = inspect::credentials::without_credentials(bytes);
    assert_eq!(inspect::credentials::without_credentials(&without), without, "nothing is left to take out");
    let hooks = inspect::credentials::hooks_path(bytes).is_some();
    format!("hooks {hooks}, changed {}", without != bytes)
}

fn loader_cache(bytes: &[u8]) -> String {
    let found = sandbox::view::foreign::in_loader_cache(bytes, "libc.so.6");
    format!("{} found", size(found.len()))
}

fn patch(bytes: &[u8]) -> String {
    match model::patch::parse(&String::from_utf8_lossy(bytes)) {
        Ok(patch) => {
            let again = model::patch::parse(&patch.diff);
            assert_eq!(again.as_ref(), Ok(&patch), "a patch reads as itself again");
            format!("{} files, {}", size(patch.paths.len()), said(patch.files().map(drop)))
        }
        Err(error) => error.to_string(),
    }
}

fn pathspec(bytes: &[u8]) -> String {
    let given: Vec<OsString> =
        bytes.split(|byte| *byte == b'\n').map(|line| OsString::from_vec(line.to_vec())).collect();
    let below = WorkspacePath::parse("src/deep").ok();
    match Pathspecs::parse(&given, below.as_ref()) {
        Ok(specs) => {
            let paths = ["src/deep/main.rs", "a", "src/a b/[x].txt", "Ä/ö"];
            let paths = paths.iter().filter_map(|path| WorkspacePath::parse(path).ok());
            let matches: Vec<bool> = paths.map(|path| specs.matches(&path)).collect();
            format!("{matches:?}")
        }
        Err(error) => error.to_string(),
    }
}

fn program(bytes: &[u8]) -> String {
    let memory = rustix::fs::memfd_create("program", MemfdFlags::CLOEXEC).expect("a file in memory");
    rustix::io::write(&memory, bytes).expect("is written");
    let path = format!("/proc/self/fd/{}", memory.as_raw_fd());
    match sandbox::view::foreign::program(Path::new(&path)) {
        Ok(kind) => format!("{} {}", kind.get(..12).unwrap_or_default(), size(kind.len())),
        Err(error) => error.to_string(),
    }
}

fn replay_request(bytes: &[u8]) -> String {
    said(agent::replay::read_request_head(bytes))
}

fn settings(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let repository = Source::Repository { commit: None, path: "fumehood.toml".into() };
    let kinds = [Source::Operator("/etc/fumehood.toml".into()), repository].map(|source| {
        match SettingsFile::parse(&text, source) {
            Ok(_) => "read".to_owned(),
            Err(problems) => problems.iter().take(2).map(|problem| problem.kind.to_string()).collect(),
        }
    });
    kinds.join("; ")
}

/// A script, and the same bytes as words of a command.
fn shell(bytes: &[u8]) -> String {
    let words =
        |words: Vec<Vec<u8>>| words.into_iter().filter_map(|word| OsText::new(word).ok()).collect::<Vec<_>>();
    let script = words(vec![b"sh".to_vec(), b"-c".to_vec(), bytes.to_vec()]);
    let argv = words(bytes.split(|byte| *byte == b' ').map(<[u8]>::to_vec).collect());
    let classes = [script, argv].map(|argv| {
        let workspace = Path::new("/ws");
        let command = effects::Command { argv: &argv, directory: None, workspace, variables: &[] };
        let found = effects::of_command(command);
        let classes: std::collections::BTreeSet<&str> = found.iter().map(model::Effect::class).collect();
        format!("{classes:?}").replace('"', "")
    });
    classes.join(" ")
}

fn stream(bytes: &[u8]) -> String {
    match agent::deepseek::read_stream(bytes) {
        Ok(turn) => format!("{} calls, {}", size(turn.tool_calls.len()), size(turn.finish_reason.len())),
        Err(error) => error,
    }
}

fn text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let (escaped, lines) = (escape(&text), escape_lines(&text));
    assert!(!escaped.contains(is_hidden), "{escaped:?}");
    assert!(!lines.contains(|c| is_hidden(c) && c != '\n' && c != '\t'), "{lines:?}");
    format!("{} {}", escaped == text, lines == text)
}

fn tool_call(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let (name, arguments) = text.split_once('\n').unwrap_or((&text, ""));
    let call = ToolCall { id: "1".to_owned(), name: name.to_owned(), arguments: arguments.to_owned() };
    match agent::tools::parse(&call, Path::new("/ws/space")) {
        Ok(_) => format!("read {name}"),
        Err(error) => error,
    }
}

fn tool_settings(bytes: &[u8]) -> String {
    let mut parts = bytes.splitn(2, |byte| *byte == b'\n');
    let format = String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    let file = parts.next().unwrap_or_default();
    let cleaned = sandbox::view::foreign::cleaned(&format, file);
    if let Some(text) = &cleaned {
        let again = sandbox::view::foreign::cleaned(&format, text.as_bytes());
        assert!(again.is_some(), "what was cleaned is of the same format");
    }
    format!("{format} {:?}", cleaned.map(|text| text.len() == file.len()))
}

fn transcript(bytes: &[u8]) -> String {
    match agent::replay::Transcript::parse(bytes) {
        Ok(transcript) => format!("{} turns", size(transcript.turns().len())),
        Err(error) => error.to_string(),
    }
}

/// What the launcher is sent, and what it sends: both ends read bytes of a process that may be another one.
fn wire(bytes: &[u8]) -> String {
    let plan = postcard::from_bytes::<launcher::plan::Plan>(bytes).map(drop);
    let there = postcard::from_bytes::<launcher::message::ToSandbox>(bytes).map(drop);
    let back = postcard::from_bytes::<launcher::message::FromSandbox>(bytes).map(drop);
    [plan, there, back].map(said).join("; ")
}
