//! A service manager that is played: it lets in, answers, refuses, says nothing, or says nonsense.

use std::io::Read;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::Mutex;
use std::thread::JoinHandle;

use super::*;

/// What the manager does when it is asked for a scope.
#[derive(Clone, Copy)]
enum Answer {
    /// Moves the process, after a signal that nobody asked for.
    Moves,
    /// Says yes and does nothing.
    Forgets,
    Refuses,
    SaysNothing,
    SaysNonsense,
    HangsUp,
    LetsNobodyIn,
}

/// A played manager.
struct Played {
    directory: tempfile::TempDir,
    /// What `/proc/self/cgroup` would say.
    groups: Arc<Mutex<String>>,
    /// The call that asked for a scope, as it came.
    asked: JoinHandle<Vec<u8>>,
}

impl Played {
    fn who(answer: Answer) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let listener = UnixListener::bind(directory.path().join("bus")).expect("a socket");
        let groups = Arc::new(Mutex::new("0::/user.slice/session-1.scope\n".to_owned()));
        let moved = Arc::clone(&groups);
        let asked = std::thread::spawn(move || serve(&listener, answer, &moved).unwrap_or_default());
        Self { directory, groups, asked }
    }

    fn ask(&self) -> Result<(), NoScope> {
        let own = || self.groups.lock().expect("nobody panicked").clone();
        ask(&self.directory.path().join("bus"), Duration::from_millis(500), own)
    }
}

fn serve(listener: &UnixListener, answer: Answer, groups: &Mutex<String>) -> io::Result<Vec<u8>> {
    let (stream, _) = listener.accept()?;
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let id: String =
        rustix::process::geteuid().as_raw().to_string().bytes().map(|b| format!("{b:02x}")).collect();
    assert_eq!(line, format!("\0AUTH EXTERNAL {id}\r\n"));
    if matches!(answer, Answer::LetsNobodyIn) {
        stream.get_mut().write_all(b"REJECTED EXTERNAL\r\n")?;
        return Ok(Vec::new());
    }
    stream.get_mut().write_all(b"OK 0123456789abcdef0123456789abcdef\r\n")?;
    line.clear();
    stream.read_line(&mut line)?;
    assert_eq!(line, "BEGIN\r\n");
    let hello = read_call(&mut stream)?;
    assert!(contains(&hello, b"Hello"));
    stream.get_mut().write_all(&message(2, &[(5, 1)], "s", b"\x04\0\0\0:1.7\0"))?;
    let asked = read_call(&mut stream)?;
    let refusal = message(3, &[(5, 2)], "s", b"\x0c\0\0\0no scope now\0");
    match answer {
        Answer::Moves => {
            stream.get_mut().write_all(&message(4, &[], "s", b"\x01\0\0\0x\0"))?;
            stream.get_mut().write_all(&message(2, &[(5, 2)], "o", b"\x02\0\0\0/1\0"))?;
            std::thread::sleep(Duration::from_millis(20));
            let start = asked.windows(9).position(|part| part == b"fumehood-").expect("a name");
            let name: Vec<u8> = asked[start..].iter().copied().take_while(|byte| *byte != 0).collect();
            let name = String::from_utf8(name).expect("text");
            *groups.lock().expect("nobody panicked") = format!("1:cpu:/\n0::/user.slice/app.slice/{name}\n");
        }
        Answer::Forgets => stream.get_mut().write_all(&message(2, &[(5, 2)], "o", b"\x02\0\0\0/1\0"))?,
        Answer::Refuses => stream.get_mut().write_all(&refusal)?,
        Answer::SaysNothing => drop(stream.read(&mut [0])?),
        Answer::SaysNonsense => stream.get_mut().write_all(&[0xff; 200])?,
        Answer::HangsUp | Answer::LetsNobodyIn => {}
    }
    Ok(asked)
}

/// Reads a call whole, by the lengths in it.
fn read_call(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 16];
    from.read_exact(&mut bytes)?;
    let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize;
    let length = number(12).next_multiple_of(8) + number(4);
    bytes.resize(16 + length, 0);
    from.read_exact(&mut bytes[16..])?;
    Ok(bytes)
}

/// Writes a message of a kind, with numbers as header fields, and a body.
fn message(kind: u8, fields: &[(u8, u32)], signature: &str, body: &[u8]) -> Vec<u8> {
    let mut header = Vec::new();
    for (code, value) in fields {
        header.extend([*code, 1, b'u', 0]);
        header.extend(value.to_le_bytes());
    }
    header.extend([8, 1, b'g', 0, 1, signature.as_bytes()[0], 0]);
    let mut bytes = vec![b'l', kind, 1, 1];
    bytes.extend(u32::try_from(body.len()).expect("it is short").to_le_bytes());
    bytes.extend(9u32.to_le_bytes());
    bytes.extend(u32::try_from(header.len()).expect("it is short").to_le_bytes());
    bytes.extend(header);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes.extend(body);
    bytes
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[test]
fn whoever_asks_is_moved_alone_into_a_delegated_scope() {
    let played = Played::who(Answer::Moves);
    played.ask().expect("a scope");
    let asked = played.asked.join().expect("the manager ends");
    for part in
        ["StartTransientUnit", "org.freedesktop.systemd1.Manager", "ssa(sv)a(sa(sv))", "inactive-or-failed"]
    {
        assert!(contains(&asked, part.as_bytes()), "{part}");
    }
    // `Delegate`, of the kind `b`, is true.
    assert!(contains(&asked, b"Delegate\0\x01b\0\x01\0\0\0"), "{asked:?}");
    let own = [&4u32.to_le_bytes()[..], &std::process::id().to_le_bytes()].concat();
    assert!(contains(&asked, &own), "one process, which is this one");
    assert!(asked.ends_with(&[0, 0, 0, 0]) || asked.ends_with(&[0; 8]), "no other units");
}

#[test]
fn every_other_answer_is_said_and_none_is_waited_for_too_long() {
    let expected = [
        (Answer::Forgets, "promised a scope"),
        (Answer::Refuses, "refused a scope: no scope now"),
        (Answer::SaysNothing, "no service manager answers"),
        (Answer::SaysNonsense, "begins with no byte order"),
        (Answer::HangsUp, "no service manager answers"),
        (Answer::LetsNobodyIn, "does not let this user in"),
    ];
    for (answer, words) in expected {
        let said = Played::who(answer).ask().expect_err("no scope").to_string();
        assert!(said.contains(words), "{said}");
    }
    let nowhere = ask(Path::new("/nonexistent/bus"), Duration::from_secs(1), String::new);
    assert!(matches!(nowhere, Err(NoScope::Silent { .. })), "{nowhere:?}");
}

#[test]
fn a_scope_is_known_by_the_last_part_of_the_group() {
    assert!(is_in("4:cpu:/x\n0::/user.slice/a.scope\n", "a.scope"));
    for other in ["0::/user.slice/a.scope/below\n", "0::/a.scope.d\n", "1:name=systemd:/a.scope\n", ""] {
        assert!(!is_in(other, "a.scope"), "{other:?}");
    }
}
