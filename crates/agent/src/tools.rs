//! The tools that are offered to a model, and how its calls become proposals.
//!
//! Guarantees: a call is taken only when its arguments are exactly what the schema says; everything else becomes a
//! text that tells the model what to change. Paths are inside the workspace as far as names can tell; the sandbox
//! holds that for links too.
//! Leaves to others: whether the proposal is allowed, and everything that it does.

use std::path::Path;

use model::{OsText, Tool, WorkspacePath};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::conversation::ToolCall;
use crate::redact;

/// What a call of the model means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meaning {
    /// Something is to be done.
    Propose {
        /// What.
        tool: Tool,
        /// Where a command starts; the top of the workspace when missing.
        directory: Option<WorkspacePath>,
    },
    /// The model says that the task is done.
    Finish {
        /// What it says it did.
        summary: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RunCommand {
    command: Value,
    directory: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OnePath {
    path: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MaybePath {
    path: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Search {
    pattern: String,
    path: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WriteFile {
    path: String,
    content: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ApplyPatch {
    patch: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Finish {
    summary: String,
}

/// Returns the tools as the model's server reads them.
pub fn offered() -> Vec<Value> {
    let path = |what: &str| json!({ "type": "string", "description": what });
    let command = json!({
        "description": "A shell command line (run by `bash -c`), or a program and its arguments as a list.",
        "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" }, "minItems": 1 }],
    });
    vec![
        function(
            "run_command",
            "Run a command in the sandbox. There is no network and no input.",
            json!({ "command": command, "directory": path("Where to start, from the top of the workspace.") }),
            &["command"],
        ),
        function("read_file", "Read a file.", json!({ "path": path("The file.") }), &["path"]),
        function(
            "list_directory",
            "List a directory.",
            json!({ "path": path("The directory; the top of the workspace when missing.") }),
            &[],
        ),
        function(
            "search",
            "Search files for a regular expression (POSIX extended).",
            json!({ "pattern": path("The expression."), "path": path("Where; everywhere when missing.") }),
            &["pattern"],
        ),
        function(
            "write_file",
            "Make a file, or replace it as a whole.",
            json!({ "path": path("The file."), "content": path("All that the file will hold.") }),
            &["path", "content"],
        ),
        function(
            "apply_patch",
            "Change files by a unified diff (`--- a/PATH`, `+++ b/PATH`, `@@ -1,3 +1,3 @@`).",
            json!({ "patch": path("The diff.") }),
            &["patch"],
        ),
        function(
            "finish",
            "End the task. Call it alone, when you have seen that the task is done, or that it cannot be.",
            json!({ "summary": path("What you did, what you checked, and what is left.") }),
            &["summary"],
        ),
    ]
}

fn function(name: &str, description: &str, properties: Value, required: &[&str]) -> Value {
    let parameters = json!({
        "type": "object", "properties": properties, "required": required, "additionalProperties": false,
    });
    json!({
        "type": "function",
        "function": { "name": name, "description": description, "parameters": parameters },
    })
}

/// Returns what a call means.
///
/// # Errors
/// With a text for the model when the call is not one that was offered.
pub fn parse(call: &ToolCall, workspace: &Path) -> Result<Meaning, String> {
    let inside = |path: &str| path_inside(path, workspace);
    let tool = match call.name.as_str() {
        "run_command" => return run_command(arguments(call)?, workspace),
        "finish" => {
            let Finish { summary } = arguments(call)?;
            return Ok(Meaning::Finish { summary });
        }
        "read_file" => {
            let OnePath { path } = arguments(call)?;
            Tool::Read { path: file_inside(&path, workspace)? }
        }
        "list_directory" => {
            let MaybePath { path } = arguments(call)?;
            Tool::List { path: path.as_deref().map(inside).transpose()?.flatten() }
        }
        "search" => {
            let Search { pattern, path } = arguments(call)?;
            if pattern.is_empty() || pattern.contains('\0') {
                return Err(
                    "`pattern` must be a regular expression that is not empty and holds no NUL".to_owned()
                );
            }
            Tool::Search { pattern, path: path.as_deref().map(inside).transpose()?.flatten() }
        }
        "write_file" => {
            let WriteFile { path, content } = arguments(call)?;
            refuse_marks(&content)?;
            Tool::Write { path: file_inside(&path, workspace)?, content }
        }
        "apply_patch" => {
            let ApplyPatch { patch } = arguments(call)?;
            apply_patch(&patch, workspace)?
        }
        other => return Err(unknown(other)),
    };
    Ok(Meaning::Propose { tool, directory: None })
}

fn run_command(arguments: RunCommand, workspace: &Path) -> Result<Meaning, String> {
    const SHAPE: &str = "`command` must be a command line, or a list of strings with the program first";
    let words: Vec<String> = match arguments.command {
        Value::String(line) if line.trim().is_empty() => return Err(SHAPE.to_owned()),
        Value::String(line) => ["bash".to_owned(), "-c".to_owned(), line].into(),
        Value::Array(words) => {
            let words = words.into_iter().map(|word| match word {
                Value::String(word) => Ok(word),
                _ => Err(SHAPE.to_owned()),
            });
            words.collect::<Result<_, _>>()?
        }
        _ => return Err(SHAPE.to_owned()),
    };
    if words.first().is_none_or(String::is_empty) {
        return Err(SHAPE.to_owned());
    }
    let argv = words.iter().map(|word| OsText::try_from(word.as_str()));
    let argv = argv.collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    let directory =
        arguments.directory.as_deref().map(|path| path_inside(path, workspace)).transpose()?.flatten();
    Ok(Meaning::Propose { tool: Tool::Run { argv }, directory })
}

fn apply_patch(text: &str, workspace: &Path) -> Result<Tool, String> {
    let patch = model::patch::parse(text).map_err(|error| error.to_string())?;
    for line in &patch.added {
        refuse_marks(line)?;
    }
    let paths = patch.paths.iter().map(|path| match Path::new(path) {
        path if path.is_absolute() => Err(format!(
            "`{}` is absolute: name files from the top of the workspace",
            model::text::escape(&path.to_string_lossy())
        )),
        _ => file_inside(path, workspace),
    });
    Ok(Tool::Patch { paths: paths.collect::<Result<_, _>>()?, diff: patch.diff })
}

/// Refuses content with a mark that stands where we took a secret out: writing it would destroy what stood there.
fn refuse_marks(content: &str) -> Result<(), String> {
    match redact::mark_in(content) {
        None => Ok(()),
        Some(mark) => Err(format!(
            "the text holds `{mark}`, which only stands for something that you may not read: writing it would \
             destroy the value. Change the other lines with apply_patch and leave this one out"
        )),
    }
}

fn arguments<T: DeserializeOwned>(call: &ToolCall) -> Result<T, String> {
    // Some models send nothing at all for a call without arguments.
    let text = if call.arguments.trim().is_empty() { "{}" } else { &call.arguments };
    let value: Value = serde_json::from_str(text).map_err(|error| {
        format!("the arguments of `{}` are not JSON: {error}. Send one JSON object", call.name)
    })?;
    if !value.is_object() {
        return Err(format!("the arguments of `{}` are not a JSON object: send one", call.name));
    }
    // From the text again, not from the value: that way a field that was given twice is noticed.
    serde_json::from_str(text).map_err(|error| {
        let expected = offered().into_iter().map(|tool| tool["function"].clone());
        let schema =
            expected.filter(|tool| tool["name"] == call.name.as_str()).map(|tool| tool["parameters"].clone());
        let schema = schema.map(|schema| schema.to_string()).collect::<String>();
        format!("the arguments of `{}` are not as agreed: {error}. The schema is {schema}", call.name)
    })
}

fn unknown(name: &str) -> String {
    let name = model::text::escape(name);
    let names: Vec<String> =
        offered().iter().filter_map(|tool| tool["function"]["name"].as_str().map(str::to_owned)).collect();
    format!("there is no tool `{name}`: there are {}", names.join(", "))
}

/// Returns a path from the top of the workspace; nothing for the top itself.
fn path_inside(path: &str, workspace: &Path) -> Result<Option<WorkspacePath>, String> {
    let given = Path::new(path);
    let relative = given.strip_prefix(workspace).unwrap_or(given);
    if relative.components().all(|part| part == std::path::Component::CurDir) {
        return Ok(None);
    }
    WorkspacePath::parse(relative).map(Some).map_err(|error| {
        format!("{error}. The workspace is `{}`", model::text::escape(&workspace.to_string_lossy()))
    })
}

fn file_inside(path: &str, workspace: &Path) -> Result<WorkspacePath, String> {
    path_inside(path, workspace)?
        .ok_or_else(|| "the path names the workspace itself: name a file inside it".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(name: &str, arguments: &str) -> Result<Meaning, String> {
        let call = ToolCall { id: "c".into(), name: name.into(), arguments: arguments.into() };
        parse(&call, Path::new("/ws/repo"))
    }

    fn path(text: &str) -> WorkspacePath {
        WorkspacePath::parse(text).expect("inside")
    }

    fn argv(words: &[&str]) -> Tool {
        Tool::Run { argv: words.iter().map(|word| OsText::try_from(*word).expect("no NUL")).collect() }
    }

    fn proposed(tool: Tool) -> Result<Meaning, String> {
        Ok(Meaning::Propose { tool, directory: None })
    }

    #[test]
    fn a_command_line_goes_to_bash_and_a_list_goes_as_it_is() {
        let line = parsed("run_command", r#"{"command":"make test | tail"}"#);
        assert_eq!(line, proposed(argv(&["bash", "-c", "make test | tail"])));
        let list = parsed("run_command", r#"{"command":["ls","-l","a b"],"directory":"/ws/repo/src"}"#);
        assert_eq!(
            list,
            Ok(Meaning::Propose { tool: argv(&["ls", "-l", "a b"]), directory: Some(path("src")) })
        );
    }

    #[test]
    fn each_file_tool_becomes_its_proposal() {
        assert_eq!(parsed("read_file", r#"{"path":"./a/b"}"#), proposed(Tool::Read { path: path("a/b") }));
        assert_eq!(parsed("read_file", r#"{"path":"/ws/repo/a"}"#), proposed(Tool::Read { path: path("a") }));
        for top in ["", "{}", r#"{"path":"."}"#, r#"{"path":"/ws/repo/"}"#, r#"{"path":null}"#] {
            assert_eq!(parsed("list_directory", top), proposed(Tool::List { path: None }), "{top}");
        }
        let search = Tool::Search { pattern: "a+".into(), path: Some(path("src")) };
        assert_eq!(parsed("search", r#"{"pattern":"a+","path":"src"}"#), proposed(search));
        let write = Tool::Write { path: path("a"), content: "x\n".into() };
        assert_eq!(parsed("write_file", r#"{"path":"a","content":"x\n"}"#), proposed(write));
        assert_eq!(parsed("finish", r#"{"summary":"done"}"#), Ok(Meaning::Finish { summary: "done".into() }));
    }

    #[test]
    fn a_patch_is_taken_with_the_files_that_it_names() {
        let diff = "--- a/src/x\n+++ b/src/x\n@@ -1 +1 @@\n-a\n+b\n";
        let taken = parsed("apply_patch", &json!({ "patch": diff }).to_string());
        assert_eq!(taken, proposed(Tool::Patch { paths: vec![path("src/x")], diff: diff.into() }));
        let out = "--- a/../x\n+++ b/../x\n@@ -1 +1 @@\n-a\n+b\n";
        let refused = parsed("apply_patch", &json!({ "patch": out }).to_string()).expect_err("climbs");
        assert!(refused.contains("climbs"), "{refused}");
    }

    #[test]
    fn arguments_that_are_not_as_agreed_are_handed_back() {
        let cases = [
            ("read_file", r#"{"path":"a""#, "not JSON"),
            ("read_file", "[]", "not a JSON object"),
            ("read_file", "{}", "missing field `path`"),
            ("read_file", r#"{"path":1}"#, "invalid type"),
            ("read_file", r#"{"path":"a","line":1}"#, "unknown field `line`"),
            ("read_file", r#"{"path":"a","path":"b"}"#, "duplicate field `path`"),
            ("read_file", r#"{"path":"/etc/passwd"}"#, "outside the workspace"),
            ("read_file", r#"{"path":"/ws/repository"}"#, "outside the workspace"),
            ("read_file", r#"{"path":"../x"}"#, "climbs with `..`"),
            ("read_file", r#"{"path":"/ws/repo/../../etc/passwd"}"#, "climbs with `..`"),
            ("read_file", r#"{"path":"a\u0000b"}"#, "NUL"),
            ("read_file", r#"{"path":"."}"#, "the workspace itself"),
            ("run_command", r#"{"command":[]}"#, "must be a command line"),
            ("run_command", r#"{"command":" "}"#, "must be a command line"),
            ("run_command", r#"{"command":["ls",1]}"#, "must be a command line"),
            ("run_command", r#"{"command":{"x":1}}"#, "must be a command line"),
            ("run_command", r#"{"command":["a\u0000"]}"#, "NUL"),
            ("search", r#"{"pattern":""}"#, "not empty"),
            ("apply_patch", r#"{"patch":""}"#, "unified diff"),
            ("write_file", r#"{"path":"a","content":"k=[redacted:api-key]"}"#, "may not read"),
            ("shell", "{}", "there is no tool `shell`: there are run_command"),
            ("", "{}", "there is no tool"),
        ];
        for (name, arguments, expected) in cases {
            let refused = parsed(name, arguments).expect_err("is refused");
            assert!(refused.contains(expected), "{name} {arguments} gave: {refused}");
        }
    }

    #[test]
    fn every_offered_schema_is_closed_and_names_what_it_requires() {
        for tool in offered() {
            let parameters = &tool["function"]["parameters"];
            assert_eq!(parameters["additionalProperties"], false);
            for required in parameters["required"].as_array().expect("a list") {
                assert!(parameters["properties"][required.as_str().expect("a name")].is_object());
            }
        }
    }
}
