//! Contests about the way out of a sandbox: requests and bytes through the gateway, beside forward proxies and slirp4netns.
//!
//! Server and client stand in `crates/egress/examples/bench_egress.rs`; the client speaks the words of [`super::served`]. All are
//! started where `/etc/hosts` knows the name of the server, in a mount namespace of their own: as root only.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::bench::contest::{Contender, Contest, Unit};
use crate::bench::{Place, served};
use crate::repo::Repo;
use crate::{account, run};

/// The contests of this module.
pub const NAMES: &[&str] = &[
    "egress-request",
    "egress-request-p99",
    "egress-load",
    "egress-bulk",
    "egress-tls-request",
    "egress-tls-request-p99",
    "egress-tls-bulk",
    "egress-memory",
];

/// Starts a program where a file stands in the place of `/etc/hosts`.
const WITH_HOSTS: [&str; 6] = [
    "--mount",
    "--propagation",
    "private",
    "sh",
    "-euc",
    "mount --bind \"$1\" /etc/hosts; shift; exec \"$@\"",
];
/// Starts a client in a network namespace that slirp4netns serves. Its first argument is the program, the rest is its own.
const SLIRP: &str = r#"
exec 3<&0
unshare --net sh -c 'until ip route | grep -q default; do sleep 0.02; done; exec "$@" <&3' client "$@" &
client=$!
own=$(readlink /proc/self/ns/net)
until [ "$(readlink /proc/$client/ns/net)" != "$own" ]; do sleep 0.02; done
slirp4netns --configure --mtu=65520 "$client" tap0 >/dev/null 2>&1 &
wait "$client"
"#;
/// The host's loopback, as slirp4netns shows it.
const HOST_OF_SLIRP: &str = "10.0.2.2";
/// How long a program may take until it listens.
const LISTENS_WITHIN: Duration = Duration::from_secs(20);

/// Returns a contest by its name.
pub fn contest<'a>(repo: &Repo, place: &'a Place, name: &str) -> Option<Result<Contest<'a>>> {
    let (id, title, what, tls, rounds) = match name {
        "egress-request" => {
            ("egress-request", "One request of many on a connection, the median", "median", false, 20)
        }
        "egress-request-p99" => {
            ("egress-request-p99", "The same, the slowest of a hundred", "p99", false, 20)
        }
        "egress-load" => ("egress-load", "1,600 requests on 32 connections", "load", false, 10),
        "egress-bulk" => ("egress-bulk", "64 MiB", "bulk", false, 10),
        "egress-tls-request" => {
            ("egress-tls-request", "One request of many over TLS, the median", "median", true, 20)
        }
        "egress-tls-request-p99" => {
            ("egress-tls-request-p99", "The same, the slowest of a hundred", "p99", true, 20)
        }
        "egress-tls-bulk" => ("egress-tls-bulk", "64 MiB over TLS", "bulk", true, 10),
        "egress-memory" => return Some(memory(repo, place)),
        _ => return None,
    };
    Some(Bench::ready(repo, place).and_then(|bench| {
        let Ways { contenders, absent } = bench.ways(what, tls)?;
        Ok(Contest { id, title, note: note(tls), unit: Unit::Milliseconds, rounds, contenders, absent })
    }))
}

fn note(tls: bool) -> String {
    let goal = match tls {
        false => {
            "Goal: passing through at least as fast as a forward proxy; more than slirp4netns by a multiple in bulk."
        }
        true => {
            "Goal: looked into within 10 % of a forward proxy that does not, and within 1.3 times at the slowest."
        }
    };
    format!("From a client to a server on the same machine. {goal}")
}

/// The server, and all that is needed to come to it.
struct Bench<'a> {
    place: &'a Place,
    own: PathBuf,
    client: PathBuf,
    ports: Ports,
    server: Running,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct Ports {
    http: u16,
    https: u16,
}

/// The ways of a contest, and those that are not there, with the reason.
struct Ways<'a> {
    contenders: Vec<Contender<'a>>,
    absent: Vec<(String, String)>,
}

/// A program that is ended with its contest.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl<'a> Bench<'a> {
    fn ready(repo: &Repo, place: &'a Place) -> Result<Self> {
        ensure!(
            account::is_root(),
            "the name of the server is made known to root's programs only: run this as root"
        );
        let words =
            ["build", "--release", "--locked", "--package", "fumehood-egress", "--example", "bench_egress"];
        run::succeed("build bench_egress", &mut repo.cargo(&words))?;
        let own = tempfile::Builder::new().prefix("egress.").tempdir_in(&place.scratch)?.keep();
        let workspace = own.join("workspace");
        fs::create_dir_all(&workspace)?;
        let client = workspace.join("client");
        fs::copy(repo.target.join("release/examples/bench_egress"), &client)?;
        fs::write(own.join("hosts"), "127.0.0.1 localhost\n127.0.0.1 bench.test\n")?;
        let mut server = run::command(&client);
        server.arg("serve").arg(workspace.join("root.pem")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut server = server.spawn().context("cannot start the server")?;
        let mut line = String::new();
        BufReader::new(server.stdout.take().context("it has no output")?).read_line(&mut line)?;
        let ports = serde_json::from_str(&line).with_context(|| format!("the server said `{line}`"))?;
        let bench = Self { place, own, client, ports, server: Running(server) };
        bench.settings()?;
        Ok(bench)
    }

    /// Writes settings with a table for each way through the gateway.
    fn settings(&self) -> Result<()> {
        let Ports { http, https } = self.ports;
        let tables = [
            ("through", format!("tcp://bench.test:{http}")),
            ("looked", format!("http://bench.test:{http}")),
            ("tls-through", format!("https://bench.test:{https}")),
            ("tls-looked", format!("GET https://bench.test:{https}/**")),
        ];
        let root = self.root();
        let mut text = format!("[gateway]\nroots = [{root:?}]\n");
        for (name, rule) in tables {
            text.push_str(&format!("[network.{name}]\nrules = [{rule:?}]\ninside = [\"127.0.0.0/8\"]\n"));
        }
        let folder = self.own.join("config/fumehood");
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("fumehood.toml"), text)?;
        Ok(())
    }

    fn root(&self) -> PathBuf {
        self.own.join("workspace/root.pem")
    }

    /// Returns a command that is started where the name of the server is known.
    fn knowing(&self, program: &Path) -> Command {
        let mut command = run::command("unshare");
        command.args(WITH_HOSTS).arg("hosts").arg(self.own.join("hosts")).arg(program);
        command
    }

    /// Returns the words that a client needs to come to the server.
    fn to_server(&self, tls: bool, host: &str) -> Vec<String> {
        let root = self.root().to_string_lossy().into_owned();
        match tls {
            false => vec![format!("http://{host}:{}", self.ports.http)],
            true => vec![format!("https://{host}:{}", self.ports.https), "--root".into(), root],
        }
    }

    /// Returns a client in a sandbox, with one table of the settings.
    fn inside(&self, table: &str) -> Command {
        let mut command = self.knowing(&self.place.fumehood);
        command.args(["--quiet", "run", "--stdin", "--new-task", "--apply", "never", "--allow-net", table]);
        command.arg("--workspace").arg(self.own.join("workspace")).arg("--").arg(&self.client);
        command.env("XDG_CONFIG_HOME", self.own.join("config"));
        command.env("FUMEHOOD_STATE_DIR", self.own.join(format!("state-{table}")));
        command
    }

    /// Returns the ways to ask.
    fn ways(self, what: &str, tls: bool) -> Result<Ways<'a>> {
        let (mut contenders, mut absent) = (Vec::new(), Vec::new());
        let words =
            |host: &str| [vec!["ask".to_owned(), what.to_owned()], self.to_server(tls, host)].concat();
        for proxy in [Proxy::Squid, Proxy::Tinyproxy] {
            match proxy.start(&self) {
                Ok((running, port)) => {
                    let mut command = self.knowing(&self.client);
                    command.args(words("bench.test")).args(["--proxy", &format!("127.0.0.1:{port}")]);
                    contenders.push(keeping(served::contender(proxy.name(), command), running));
                }
                Err(error) => absent.push((proxy.name().to_owned(), format!("{error:#}"))),
            }
        }
        let tables = match tls {
            false => [("gateway, passed through", "through"), ("gateway, looked into", "looked")],
            true => [("gateway, passed through", "tls-through"), ("gateway, looked into", "tls-looked")],
        };
        for (name, table) in tables {
            let mut command = self.inside(table);
            command.args(words("bench.test"));
            contenders.push(served::contender(name, command));
        }
        let mut slirp = self.knowing(Path::new("sh"));
        slirp.args(["-euc", SLIRP, "slirp"]).arg(&self.client).args(words(HOST_OF_SLIRP));
        contenders.push(served::contender("slirp4netns", slirp));
        let mut bare = self.knowing(&self.client);
        bare.args(words("bench.test"));
        contenders.push(served::contender("nothing between", bare));
        if let Some(last) = contenders.pop() {
            contenders.push(keeping(last, self.server));
        }
        Ok(Ways { contenders, absent })
    }
}

/// Lets a program run as long as a way is there.
fn keeping<'a>(mut way: Contender<'a>, running: Running) -> Contender<'a> {
    let attempt = move || {
        let _kept = &running;
        (way.attempt)()
    };
    Contender { name: way.name, attempt: Box::new(attempt) }
}

/// A forward proxy that passes everything on and writes nothing down.
#[derive(Debug, Clone, Copy)]
enum Proxy {
    Squid,
    Tinyproxy,
}

impl Proxy {
    fn name(self) -> &'static str {
        match self {
            Self::Squid => "squid",
            Self::Tinyproxy => "tinyproxy",
        }
    }

    fn start(self, bench: &Bench<'_>) -> Result<(Running, u16)> {
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let file = bench.own.join(self.name());
        let (text, words) = match self {
            Self::Squid => (
                format!(
                    "visible_hostname bench\nhttp_port 127.0.0.1:{port}\nhttp_access allow all\ncache deny all\naccess_log none\n\
                     cache_log /dev/null\npid_filename none\nshutdown_lifetime 0 seconds\nmax_filedescriptors 4096\n"
                ),
                ["-N", "-f"],
            ),
            Self::Tinyproxy => {
                (format!("Port {port}\nListen 127.0.0.1\nMaxClients 200\nLogLevel Critical\n"), ["-d", "-c"])
            }
        };
        fs::write(&file, text)?;
        let mut command = bench.knowing(Path::new(self.name()));
        command.args(words).arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut running = Running(command.spawn().with_context(|| format!("cannot start {}", self.name()))?);
        let begun = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            if let Some(status) = running.0.try_wait()? {
                bail!("ended with {status}");
            }
            ensure!(begun.elapsed() < LISTENS_WITHIN, "does not listen");
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok((running, port))
    }
}

/// What the gateway keeps in memory, alone and with a thousand connections.
fn memory<'a>(repo: &Repo, place: &'a Place) -> Result<Contest<'a>> {
    let bench = std::rc::Rc::new(Bench::ready(repo, place)?);
    let ways = [
        ("no connection", "through", false, 0),
        ("1,000 connections, passed through", "through", false, 1000),
        ("1,000 connections, looked into", "looked", false, 1000),
        ("1,000 connections, TLS looked into", "tls-looked", true, 1000),
    ];
    let contenders = ways.map(|(name, table, tls, number)| {
        let bench = std::rc::Rc::clone(&bench);
        Contender { name: name.to_owned(), attempt: Box::new(move || resident(&bench, table, tls, number)) }
    });
    Ok(Contest {
        id: "egress-memory",
        title: "Memory of the gateway",
        note: "Resident, of the gateway's own process. Goal: 15 MiB, and 32 KiB for each connection that passes through, 192 KiB \
               for each that is looked into."
            .into(),
        unit: Unit::Kibibytes,
        rounds: 3,
        contenders: contenders.into(),
        absent: Vec::new(),
    })
}

/// Opens connections through a gateway, and returns the KiB that it then has.
fn resident(bench: &Bench<'_>, table: &str, tls: bool, number: usize) -> Result<f64> {
    let mut command = bench.inside(table);
    command.arg("hold").arg(number.to_string()).args(bench.to_server(tls, "bench.test"));
    let mut holding = Running(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?);
    let mut line = String::new();
    BufReader::new(holding.0.stdout.take().context("it has no output")?).read_line(&mut line)?;
    ensure!(line.trim() == "ready", "the client said `{line}`");
    gateway_of(holding.0.id())
}

/// Returns the resident KiB of the gateway below a process.
fn gateway_of(ancestor: u32) -> Result<f64> {
    let read = |pid: &str, file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let field = |text: &str, name: &str| -> Option<u64> {
        text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
    };
    let is_below = |pid: &str| {
        let mut at = pid.parse::<u64>().ok();
        while let Some(process) = at.filter(|process| *process > 1 && *process != u64::from(ancestor)) {
            at = field(&read(&process.to_string(), "status"), "PPid:");
        }
        at == Some(u64::from(ancestor))
    };
    for entry in fs::read_dir("/proc")?.flatten() {
        let pid = entry.file_name().to_string_lossy().into_owned();
        if read(&pid, "cmdline").contains("__gateway") && is_below(&pid) {
            let kib = field(&read(&pid, "status"), "VmRSS:").context("it has no memory")?;
            return Ok(kib as f64);
        }
    }
    bail!("there is no gateway")
}
