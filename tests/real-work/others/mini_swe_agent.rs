//! mini-swe-agent, as it comes from its authors: its bubblewrap environment calls a program by one name.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::Value;

use super::{Told, served};
use crate::bench::Bench;

const INSTALL: &str = r#"
    set -eu
    python3 -m venv mini && mini/bin/pip install -q uv==0.5.14
    mini/bin/pip download -q --no-deps mini-swe-agent==2.4.6
    echo 'a35463c553ac825c7773b03cfa69cd44958e3af20155dcc5711fdf9e4c67cd54  mini_swe_agent-2.4.6-py3-none-any.whl' | sha256sum -c --quiet >&2
    mini/bin/uv pip install -q --no-deps --python mini/bin/python -r 'REQUIREMENTS' mini_swe_agent-2.4.6-py3-none-any.whl
"#;

/// Lets it take these steps, and returns what it told the model after each.
pub(super) fn works(bench: &Bench, steps: &[String]) -> Vec<Told> {
    let requirements = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/real-work/mini-swe-agent.txt");
    let top = bench.beside("");
    let install = INSTALL.replace("REQUIREMENTS", requirements);
    let installed = bench.outside(&format!("cd '{}'\n{install}", top.display()));
    assert_eq!(
        installed.code,
        Some(0),
        "this test needs mini-swe-agent from the package registry: {installed:?}"
    );
    symlink(env!("CARGO_BIN_EXE_fumehood"), bench.beside("bwrap")).expect("a link");
    let server = served(steps, |step| serde_json::json!({ "command": step }));
    let ran = bench.outside(&format!(
        "export FUMEHOOD_STATE_DIR='{top}state' MSWEA_GLOBAL_CONFIG_DIR='{top}mini-config' MSWEA_CONFIGURED=true \
         MSWEA_COST_TRACKING=ignore_errors MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT=1 LITELLM_LOCAL_MODEL_COST_MAP=True \
         DEEPSEEK_API_KEY=sk-played DEEPSEEK_API_BASE='{url}'\n\
         exec '{top}mini/bin/mini' --model deepseek/deepseek-flash --task 'Mend h11.' --yolo --exit-immediately \
         --environment-class bubblewrap -c mini.yaml -c environment.executable='{top}bwrap' \
         -c environment.cwd=\"$PWD\" -c environment.timeout=300 --output '{top}trajectory.json'",
        top = top.display(),
        url = server.base_url(),
    ));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let trajectory = fs::read(bench.beside("trajectory.json")).expect("it wrote one");
    let trajectory: Value = serde_json::from_slice(&trajectory).expect("is JSON");
    assert_eq!(trajectory["info"]["exit_status"], "Submitted", "{:#}", trajectory["info"]);
    let messages = trajectory["messages"].as_array().expect("a list").iter();
    messages.filter(|message| message["role"] == "tool").map(|message| told(&message["extra"])).collect()
}

fn told(extra: &Value) -> Told {
    let text = extra["raw_output"].as_str().expect("a text").to_owned();
    Told { passed: extra["returncode"] == 0, text }
}
