//! `bwrap`: what mini-swe-agent and DeepSeek Harness pass, word for word.

use std::fs;
use std::os::unix::fs::symlink;

use super::bench::{Answer, Bench};

/// The arguments of mini-swe-agent 2.4.6 for a command in a directory.
fn mini_swe_agent(directory: &str, command: &str) -> Vec<String> {
    let fixed = "--unshare-user-try --ro-bind /usr /usr --ro-bind /bin /bin --ro-bind /lib /lib --ro-bind-try /lib64 /lib64 \
                 --ro-bind /etc /etc --tmpfs /tmp --proc /proc --dev /dev --new-session --setenv PATH \
                 /usr/local/bin:/usr/sbin:/usr/bin:/bin --setenv PAGER cat --bind";
    let words =
        fixed.split_whitespace().chain([directory, directory, "--chdir", directory, "bash", "-c", command]);
    words.map(str::to_owned).collect()
}

/// The arguments of DeepSeek Harness 0.2.1.
fn deepseek_harness(workspace: Option<&str>, command: &str) -> Vec<String> {
    let mut words =
        vec!["--ro-bind", "/", "/", "--dev", "/dev", "--unshare-pid", "--proc", "/proc", "--die-with-parent"];
    if let Some(workspace) = workspace {
        words.extend(["--tmpfs", "/tmp", "--bind", workspace, workspace]);
    }
    words.extend(["--", "bash", "-c", command]);
    words.into_iter().map(str::to_owned).collect()
}

#[test]
fn mini_swe_agent_works_through_a_link_named_bwrap() {
    let bench = Bench::new();
    let executable = bench.path("bwrap");
    symlink(env!("CARGO_BIN_EXE_fumehood"), &executable).expect("links");
    let directory = bench.path("ws").to_str().expect("text").to_owned();
    let run = |command: &str| {
        let words = mini_swe_agent(&directory, command);
        Answer::of(bench.command_of(&executable, &words).output().expect("it starts"))
    };
    let first = run("pwd; echo $PAGER; echo fixed > README; exit 3");
    assert_eq!((first.code, first.out), (Some(3), format!("{directory}\ncat\n")));
    assert!(
        first.err.contains("narrowed: environment (only what --setenv gives), network (own loopback only)"),
        "{}",
        first.err
    );
    let next = run("cat README");
    assert_eq!(
        (next.out.as_str(), next.err.as_str()),
        ("fixed\n", ""),
        "the next command sees it, and no word of ours"
    );
    assert_eq!(bench.read("README"), "one\ntwo\nthree\n", "the host does not");
    let shown = bench.json(&["show", "--json"]);
    assert_eq!(shown["request"]["principal"], serde_json::json!({"kind": "agent", "name": "bwrap"}));
    let network = run("exec 3<>/dev/tcp/192.0.2.1/80");
    assert_ne!(network.code, Some(0));
    assert!(
        network.err.ends_with("network (own loopback only)\n"),
        "it fails, so the cause is said last: {network:?}"
    );
    assert!(bench.json(&["why", "--json"])["causes"][0]["code"] == "no-network");
}

#[test]
fn deepseek_harness_writes_reads_and_is_told_what_is_final() {
    let bench = Bench::new();
    let workspace = bench.path("ws").to_str().expect("text").to_owned();
    let run = |words: Vec<String>| bench.run(&[vec!["bwrap".to_owned()], words].concat());
    let wrote = run(deepseek_harness(Some(&workspace), "echo wrote > docs/page"));
    assert_eq!(wrote.code, Some(0), "{wrote:?}");
    let read = run(deepseek_harness(None, "cat docs/page; echo no > docs/page"));
    assert!(read.out == "wrote\n" && read.code != Some(0), "{read:?}");
    assert!(
        read.err.contains("Read-only file system"),
        "which the harness takes for a question to a person: {read:?}"
    );
    fs::write(bench.path("home/secret"), "secret\n").expect("writes");
    let home =
        run(deepseek_harness(Some(&workspace), &format!("cat {}", bench.path("home/secret").display())));
    assert!(home.code != Some(0) && !home.out.contains("secret"), "{home:?}");
    let fatal = run(vec!["--seccomp".to_owned(), "9".to_owned(), "true".to_owned()]);
    assert!(fatal.code == Some(125) && fatal.err.starts_with("fumehood: fatal: "), "{fatal:?}");
}

#[test]
fn the_rules_for_agents_hold_for_who_calls_bwrap() {
    let bench = Bench::new();
    let workspace = bench.path("ws").to_str().expect("text").to_owned();
    let command = deepseek_harness(Some(&workspace), "echo x > made");
    bench.run(&[vec!["bwrap".to_owned()], command].concat());
    let exported = bench.run(&["audit", "export"]).out;
    let requested =
        exported.lines().find(|line| line.contains("\"event\":\"requested\"")).expect("it is there");
    assert!(requested.contains("\"kind\":\"agent\""), "{requested}");
    let opened =
        exported.lines().find(|line| line.contains("\"event\":\"task-opened\"")).expect("it is there");
    assert!(opened.contains("\"kind\":\"user\""), "the task is the person's, who may apply it: {opened}");
    assert_eq!(bench.run(&["apply", "--yes"]).code, Some(0));
    assert!(bench.file("made").exists());
}
