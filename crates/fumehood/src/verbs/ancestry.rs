//! Whose process this is: a person's, or one that an agent started.
//!
//! A harness runs as the person whose agent it is, so neither the user nor a terminal tells them apart. What an agent came
//! through is noted when it comes; from then on an answer for a person is taken only from a process that does not descend
//! from one of those (however it made sessions and terminals in between), and that comes from a shell at a terminal, or
//! from outside of this pid namespace. What an agent left behind and gave a terminal of its own is not told from that:
//! docs/policy.md says so.
//!
//! Fields of `/proc/PID/stat` are those of proc_pid_stat(5).

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use engine::Engine;
use engine::store::ClientProcess;

use crate::error::CliError;

/// Where the system lists what can be a login shell (shells(5)).
const SHELLS: &str = "/etc/shells";
/// The name of the service manager, which takes on what lost its parents.
const MANAGER: &str = "systemd";
/// More than this many processes above one another are nobody's shell.
const DEPTH_MAX: usize = 512;

/// One process of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Process {
    pid: u32,
    start: u64,
    /// Whether it leads a session that has a terminal.
    leads_terminal: bool,
    is_shell: bool,
}

/// A process with those above it, nearest first.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    processes: Vec<Process>,
    end: End,
    /// The pid namespace that it is in.
    namespace: u64,
}

/// Where a line ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// At what takes on everything that lost its parents.
    Init,
    /// Outside of our pid namespace, where nothing inside can have come from.
    Outside,
    /// Where we could not look further.
    Unseen,
}

/// Returns the processes through which an agent came to us: those above us, up to the shell in which a person started it.
pub(super) fn client_processes() -> Vec<ClientProcess> {
    clients_of(&line())
}

/// Says why no answer for a person is taken from this process; nothing when it is taken.
pub(super) fn not_a_person(clients: &BTreeSet<ClientProcess>) -> Option<String> {
    refused(&line(), clients)
}

/// Refuses what only a person may do, where the process can be an agent's.
pub(super) fn refuse_agents(engine: &Engine, what: &str) -> Result<(), CliError> {
    match not_a_person(&engine.clients()?) {
        Some(why) => Err(CliError::Cannot(format!("only a person can {what}: this {why}"))),
        None => Ok(()),
    }
}

fn clients_of(line: &Line) -> Vec<ClientProcess> {
    // The first is ourselves.
    let above = line.processes.get(1..).unwrap_or_default();
    let end = match above.iter().rposition(|process| process.leads_terminal) {
        Some(at) if above[at].is_shell => at,
        Some(at) => at + 1,
        None => above.len(),
    };
    above[..end].iter().map(|process| process.as_client(line.namespace)).collect()
}

fn refused(line: &Line, clients: &BTreeSet<ClientProcess>) -> Option<String> {
    if clients.is_empty() {
        return None;
    }
    // Numbers of another namespace tell nothing, and whoever made it can show any line in it.
    if clients.iter().any(|client| client.namespace != line.namespace) {
        return Some(
            "comes from another pid namespace than an agent that was here: answer outside of it".to_owned(),
        );
    }
    let is_client = |process: &&Process| clients.contains(&process.as_client(line.namespace));
    if let Some(agent) = line.processes.iter().find(is_client) {
        return Some(format!(
            "comes from a process that an agent came through, or that such a one started (number {}): answer in another \
             terminal",
            agent.pid
        ));
    }
    let has_shell = line.processes.iter().any(|process| process.leads_terminal && process.is_shell);
    match line.end {
        End::Outside => None,
        End::Init if has_shell => None,
        End::Init | End::Unseen => Some(
            "comes from no shell at a terminal, and an agent was here: answer in a terminal of your own"
                .to_owned(),
        ),
    }
}

impl Process {
    fn as_client(&self, namespace: u64) -> ClientProcess {
        ClientProcess { pid: self.pid, start: self.start, namespace }
    }
}

/// Reads the line of this process.
fn line() -> Line {
    let shells = fs::read_to_string(SHELLS).unwrap_or_default();
    let shells: Vec<PathBuf> = shells
        .lines()
        .filter(|line| line.starts_with('/'))
        .filter_map(|path| fs::canonicalize(path).ok())
        .collect();
    let namespace = fs::metadata("/proc/self/ns/pid").map_or(0, |found| found.ino());
    let mut processes = Vec::new();
    let end = climb(&shells, &mut processes);
    Line { processes, end, namespace }
}

/// Reads ourselves and those above us.
fn climb(shells: &[PathBuf], processes: &mut Vec<Process>) -> End {
    let mut pid = std::process::id();
    // What is mounted there may be of another namespace, in which this number is somebody else.
    let ours = fs::read_link("/proc/self").ok().and_then(|own| own.to_str()?.parse().ok());
    if ours != Some(pid) {
        return End::Unseen;
    }
    while processes.len() <= DEPTH_MAX {
        let Some((parent, name, process)) = read(pid, shells) else { return End::Unseen };
        if pid == 1 || name == MANAGER {
            return End::Init;
        }
        processes.push(process);
        if parent == 0 {
            return End::Outside;
        }
        pid = parent;
    }
    End::Unseen
}

/// Reads one process: the number of its parent, its name, and what we want to know of it.
fn read(pid: u32, shells: &[PathBuf]) -> Option<(u32, String, Process)> {
    let place = Path::new("/proc").join(pid.to_string());
    let stat = fs::read(place.join("stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    let Stat { parent, name, session, terminal, start } = parse(&stat)?;
    let is_shell = fs::read_link(place.join("exe")).is_ok_and(|exe| shells.contains(&exe));
    let leads_terminal = session == pid && terminal != 0;
    Some((parent, name.to_owned(), Process { pid, start, leads_terminal, is_shell }))
}

/// The fields of `/proc/PID/stat` that are used.
struct Stat<'a> {
    parent: u32,
    name: &'a str,
    session: u32,
    terminal: i32,
    start: u64,
}

/// The name stands in parentheses and may hold anything, also parentheses.
fn parse(stat: &str) -> Option<Stat<'_>> {
    let (head, rest) = stat.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // Field 3 (state) is the first here.
    let field = |number: usize| fields.get(number - 3);
    Some(Stat {
        parent: field(4)?.parse().ok()?,
        name,
        session: field(6)?.parse().ok()?,
        terminal: field(7)?.parse().ok()?,
        start: field(22)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, start: u64) -> Process {
        Process { pid, start, leads_terminal: false, is_shell: false }
    }

    fn shell(pid: u32, start: u64) -> Process {
        Process { leads_terminal: true, is_shell: true, ..process(pid, start) }
    }

    fn line(processes: &[Process], end: End) -> Line {
        Line { processes: processes.to_vec(), end, namespace: 7 }
    }

    fn pids(clients: &[ClientProcess]) -> Vec<u32> {
        clients.iter().map(|client| client.pid).collect()
    }

    #[test]
    fn an_agent_is_what_stands_below_the_shell_of_a_person() {
        let (us, sh, harness, bash, terminal) =
            (process(50, 50), process(40, 40), process(30, 30), shell(20, 20), process(10, 10));
        let usual = [us.clone(), sh.clone(), harness.clone(), bash.clone(), terminal.clone()];
        assert_eq!(pids(&clients_of(&line(&usual, End::Init))), [40, 30]);
        // A terminal that the harness made for its own shell hides nothing.
        let pty = [us.clone(), shell(40, 40), harness.clone(), bash, terminal.clone()];
        assert_eq!(pids(&clients_of(&line(&pty, End::Init))), [40, 30]);
        // A harness that a terminal started itself, and one without any terminal.
        let leading = Process { is_shell: false, ..shell(30, 30) };
        let direct = [us.clone(), sh.clone(), leading, terminal.clone()];
        assert_eq!(pids(&clients_of(&line(&direct, End::Init))), [40, 30]);
        let service = [us, sh, harness, terminal];
        assert_eq!(pids(&clients_of(&line(&service, End::Init))), [40, 30, 10]);
    }

    #[test]
    fn an_answer_is_taken_from_a_shell_that_no_agent_started() {
        let clients = |all: &[(u32, u64)]| -> BTreeSet<ClientProcess> {
            let client = |(pid, start): &(u32, u64)| ClientProcess { pid: *pid, start: *start, namespace: 7 };
            all.iter().map(client).collect()
        };
        let agents = clients(&[(30, 300), (31, 310)]);
        let taken = |processes: &[Process], end, clients: &BTreeSet<ClientProcess>| {
            refused(&line(processes, end), clients).is_none()
        };
        let (us, sshd) = (process(90, 900), process(5, 5));
        assert!(taken(&[us.clone(), shell(80, 800), sshd.clone()], End::Init, &agents), "another login");
        assert!(!taken(&[us.clone(), process(30, 300), sshd.clone()], End::Init, &agents), "a child");
        assert!(
            !taken(&[us.clone(), shell(80, 800), process(31, 310), sshd.clone()], End::Init, &agents),
            "with a terminal"
        );
        let reused = [us.clone(), process(30, 777), shell(80, 600), sshd];
        assert!(taken(&reused, End::Init, &agents), "another one with the same number");
        // Cut off from its parents, and a leader of a terminal that is no shell.
        assert!(!taken(std::slice::from_ref(&us), End::Init, &agents));
        let program = Process { is_shell: false, ..shell(80, 800) };
        assert!(!taken(&[us.clone(), program], End::Init, &agents));
        // From outside of a container, and where nothing can be seen.
        assert!(taken(&[us.clone(), process(80, 800)], End::Outside, &agents));
        assert!(!taken(&[us.clone(), shell(80, 800)], End::Unseen, &agents));
        let elsewhere = BTreeSet::from([ClientProcess { pid: 30, start: 300, namespace: 8 }]);
        assert!(!taken(&[us.clone(), shell(80, 800)], End::Init, &elsewhere), "in a namespace of its own");
        assert!(!taken(std::slice::from_ref(&us), End::Outside, &elsewhere));
        assert!(taken(&[us], End::Init, &clients(&[])), "there is no agent");
    }

    #[test]
    fn a_name_cannot_pass_for_fields() {
        let stat = "7 (a) S 1 (b)) R 5 6 7 34816 6 4194304 1 2 3 4 5 6 7 8 20 0 1 0 4242 9 9";
        let Stat { parent, name, session, terminal, start } = parse(stat).expect("can be read");
        assert_eq!((parent, name, session, terminal, start), (5, "a) S 1 (b)", 7, 34816, 4242));
        assert!(parse("").is_none() && parse("7 (x) S 1").is_none());
    }

    #[test]
    fn our_own_line_can_be_read() {
        let line = super::line();
        assert_eq!(line.processes.first().map(|process| process.pid), Some(std::process::id()));
        assert!(line.processes.windows(2).all(|pair| pair[0].start >= pair[1].start), "{line:?}");
    }
}
