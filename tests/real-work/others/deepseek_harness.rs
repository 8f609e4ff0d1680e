//! DeepSeek Harness, as it comes from its authors: it starts each command by a runner that is named in its profile.

use serde_json::Value;

use super::{Told, served};
use crate::bench::Bench;

const INSTALL: &str = r#"
    set -eu
    python3 -m venv dsh && dsh/bin/pip install -q uv==0.5.14
    dsh/bin/pip download -q --no-deps --pre deepseek-harness-runtime-bin==0.2.1rc2
    echo '0a0a4eb85a22cd9339972e6a5ced77a27ec791353a5b220e3e10b8cdbbdeca39  deepseek_harness_runtime_bin-0.2.1rc2-py3-none-manylinux_2_28_x86_64.whl' | sha256sum -c --quiet >&2
    dsh/bin/uv pip install -q --no-deps --python dsh/bin/python deepseek_harness_runtime_bin-0.2.1rc2-py3-none-manylinux_2_28_x86_64.whl && rm deepseek_harness_runtime_bin-0.2.1rc2-py3-none-manylinux_2_28_x86_64.whl
"#;

/// What is said in a profile: the runner, no way around it, and nothing that calls out by itself. The played model speaks
/// the dialect of the server that plays it.
const PROFILE: &str = r"
- id: sandbox
  config: { runnerCommand: ['FUMEHOOD', bwrap], runnerFailureSignatures: ['fumehood: fatal'] }
- id: permission
  config:
    presets:
      read-only: { sandbox: read-only, approval: ask }
      workspace-write: { sandbox: workspace-write, approval: ask }
- id: session-telemetry-otel
  disabled: true
- id: session-title-llm
  disabled: true
- id: agent-default-model
  config: { provider: played, model: deepseek-flash }
- id: llm-pi-ai
  config:
    providers:
      played:
        api: openai-completions
        baseURL: 'SERVER'
        apiKeyEnv: PLAYED_KEY
        models: [{ id: deepseek-flash, contextWindow: 200000, maxTokens: 8000 }]
";

/// Lets it take these steps, and returns what it told the model after each.
pub(super) fn works(bench: &Bench, steps: &[String]) -> Vec<Told> {
    let top = bench.beside("");
    let installed = bench.outside(&format!("cd '{}'\n{INSTALL}", top.display()));
    assert_eq!(
        installed.code,
        Some(0),
        "this test needs DeepSeek Harness from the package registry: {installed:?}"
    );
    let server = served(steps, |step| serde_json::json!({ "description": "take a step", "command": step }));
    let profile = PROFILE.replace("FUMEHOOD", env!("CARGO_BIN_EXE_fumehood"));
    let profile = profile.replace("SERVER", &server.base_url());
    std::fs::write(bench.beside("profile.yml"), profile).expect("a file");
    let ran = bench.outside(&format!(
        "export FUMEHOOD_STATE_DIR='{top}state' DSH_HOME='{top}dsh-home' PLAYED_KEY=sk-played\n\
         exec '{top}dsh/bin/dsh' headless --patch '{top}profile.yml' --json 'Mend h11.'",
        top = top.display(),
    ));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let events = ran.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let results = events.filter(|event| event["type"] == "tool_result");
    results.map(|event| told(event["result"].as_str().unwrap_or_default())).collect()
}

/// It says how a command ended only when that was no success.
fn told(result: &str) -> Told {
    Told { passed: !result.contains("[exit code: "), text: result.to_owned() }
}
