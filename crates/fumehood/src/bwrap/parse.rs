//! Bubblewrap's arguments, as a typed list of what they ask for.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use model::text::escape;

/// What was asked for, in bubblewrap's terms.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BwrapRequest {
    /// What is to stand where, in order: a later one covers an earlier one.
    pub operations: Vec<Operation>,
    /// Whether the network is to be one of its own.
    pub own_network: bool,
    /// Where the command starts.
    pub chdir: Option<PathBuf>,
    /// Whether the caller's environment stays outside.
    pub clear_environment: bool,
    /// What happens to the environment, in order.
    pub environment: Vec<EnvChange>,
    /// The host name that was asked for.
    pub hostname: Option<OsString>,
    /// The user that was asked for.
    pub uid: Option<u32>,
    /// The group that was asked for.
    pub gid: Option<u32>,
    /// Capabilities that were asked for.
    pub capabilities: Vec<OsString>,
    /// The command and its arguments.
    pub argv: Vec<OsString>,
}

/// What is to stand at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Part of the host.
    Bind {
        /// Where it is on the host.
        source: PathBuf,
        /// Where it is to stand.
        destination: PathBuf,
        /// Whether it can be written.
        access: Access,
        /// Whether it may be missing.
        optional: bool,
    },
    /// Something of the sandbox's own.
    Fresh {
        /// What.
        kind: Fresh,
        /// Where it is to stand.
        destination: PathBuf,
    },
    /// What stands there becomes read-only.
    ReadOnly {
        /// Where.
        destination: PathBuf,
    },
    /// A link.
    Symlink {
        /// Where it points.
        target: PathBuf,
        /// Where it is to stand.
        destination: PathBuf,
    },
}

/// Whether a part of the host can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It can be read.
    ReadOnly,
    /// It can be read and written.
    ReadWrite,
    /// It can be read and written, and its device files work.
    Devices,
}

/// Something of the sandbox's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fresh {
    /// An empty file system in memory.
    Tmpfs,
    /// The processes.
    Proc,
    /// A few harmless devices.
    Dev,
    /// An empty directory.
    Directory,
}

/// One change of the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnvChange {
    /// Set a variable.
    Set(OsString, OsString),
    /// Take a variable away.
    Unset(OsString),
}

/// What the arguments are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parsed {
    /// A request to run something.
    Request(Box<BwrapRequest>),
    /// The question which version this is.
    Version,
    /// The question how it is used.
    Help,
}

/// Says why the arguments are no request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BwrapError {
    /// There is no such option.
    #[error("bubblewrap has no option `{}`", escape(.0))]
    Unknown(String),
    /// An option came without what it needs.
    #[error("`{flag}` needs {needs} after it")]
    Missing {
        /// The option.
        flag: String,
        /// How many arguments it takes.
        needs: String,
    },
    /// An option has a value that it cannot have.
    #[error("`{flag}` cannot be `{}`", escape(.value))]
    Value {
        /// The option.
        flag: String,
        /// The value.
        value: String,
    },
    /// An option that cannot be honoured.
    #[error("`{flag}` cannot be honoured: {why}")]
    NotHonoured {
        /// The option.
        flag: String,
        /// Why.
        why: &'static str,
    },
    /// No command was given.
    #[error("no command is given: put it after the options, as with bubblewrap")]
    NoCommand,
    /// More arguments than any caller has.
    #[error("there are more than {MOST} arguments")]
    TooMany,
}

/// As many as bubblewrap takes.
const MOST: usize = 9000;

/// Reads bubblewrap's arguments; `read_fd` returns what can be read from a descriptor (`--args`).
///
/// # Errors
/// When an option is unknown, lacks its arguments, or cannot be honoured.
pub fn parse(
    arguments: &[OsString],
    read_fd: &dyn Fn(u32) -> std::io::Result<Vec<u8>>,
) -> Result<Parsed, BwrapError> {
    let mut reader = Reader { rest: arguments.iter().rev().cloned().collect(), taken: 0, read_fd };
    let mut request = BwrapRequest::default();
    while let Some(argument) = reader.next()? {
        let Some(flag) = argument.to_str().filter(|text| text.starts_with("--")).map(str::to_owned) else {
            if argument.as_bytes().starts_with(b"-") {
                return Err(BwrapError::Unknown(argument.to_string_lossy().into_owned()));
            }
            reader.rest.push(argument);
            break;
        };
        match flag.as_str() {
            "--" => break,
            "--help" => return Ok(Parsed::Help),
            "--version" => return Ok(Parsed::Version),
            _ => reader.option(&flag, &mut request)?,
        }
    }
    request.argv = reader.rest.into_iter().rev().collect();
    if request.argv.first().is_none_or(|program| program.is_empty()) {
        return Err(BwrapError::NoCommand);
    }
    Ok(Parsed::Request(Box::new(request)))
}

struct Reader<'a> {
    /// What is left, last first.
    rest: Vec<OsString>,
    taken: usize,
    read_fd: &'a dyn Fn(u32) -> std::io::Result<Vec<u8>>,
}

impl Reader<'_> {
    fn next(&mut self) -> Result<Option<OsString>, BwrapError> {
        self.taken += 1;
        if self.taken > MOST { Err(BwrapError::TooMany) } else { Ok(self.rest.pop()) }
    }

    fn one(&mut self, flag: &str) -> Result<OsString, BwrapError> {
        let missing = || BwrapError::Missing { flag: flag.to_owned(), needs: "one argument".to_owned() };
        self.next()?.ok_or_else(missing)
    }

    fn path(&mut self, flag: &str) -> Result<PathBuf, BwrapError> {
        self.one(flag).map(PathBuf::from)
    }

    fn two(&mut self, flag: &str) -> Result<(OsString, OsString), BwrapError> {
        let missing = || BwrapError::Missing { flag: flag.to_owned(), needs: "two arguments".to_owned() };
        let first = self.next()?.ok_or_else(missing)?;
        Ok((first, self.next()?.ok_or_else(missing)?))
    }

    fn number(&mut self, flag: &str) -> Result<u32, BwrapError> {
        let value = self.one(flag)?.to_string_lossy().into_owned();
        value.parse().map_err(|_| BwrapError::Value { flag: flag.to_owned(), value })
    }

    fn bind(&mut self, flag: &str, access: Access, optional: bool) -> Result<Operation, BwrapError> {
        let (source, destination) = self.two(flag)?;
        Ok(Operation::Bind { source: source.into(), destination: destination.into(), access, optional })
    }

    fn fresh(&mut self, flag: &str, kind: Fresh) -> Result<Operation, BwrapError> {
        Ok(Operation::Fresh { kind, destination: self.path(flag)? })
    }

    fn option(&mut self, flag: &str, request: &mut BwrapRequest) -> Result<(), BwrapError> {
        if let Some(operation) = self.operation(flag)? {
            request.operations.push(operation);
            return Ok(());
        }
        match flag {
            "--unshare-all" | "--unshare-net" => request.own_network = true,
            "--share-net" => request.own_network = false,
            // Every run has all of these, asked for or not.
            "--unshare-user"
            | "--unshare-user-try"
            | "--unshare-ipc"
            | "--unshare-pid"
            | "--unshare-uts"
            | "--unshare-cgroup"
            | "--unshare-cgroup-try"
            | "--disable-userns"
            | "--assert-userns-disabled"
            | "--new-session"
            | "--die-with-parent"
            | "--level-prefix" => {}
            "--chdir" => request.chdir = Some(self.path(flag)?),
            "--clearenv" => {
                request.clear_environment = true;
                request.environment.clear();
            }
            "--setenv" => {
                let (name, value) = self.two(flag)?;
                request.environment.push(EnvChange::Set(name, value));
            }
            "--unsetenv" => request.environment.push(EnvChange::Unset(self.one(flag)?)),
            "--hostname" => request.hostname = Some(self.one(flag)?),
            "--uid" => request.uid = Some(self.number(flag)?),
            "--gid" => request.gid = Some(self.number(flag)?),
            "--cap-add" => request.capabilities.push(self.one(flag)?),
            "--cap-drop" => drop(self.one(flag)?), // None is ever held.
            "--args" => self.read_arguments(flag)?,
            _ => return Err(refusal(flag)),
        }
        Ok(())
    }

    fn operation(&mut self, flag: &str) -> Result<Option<Operation>, BwrapError> {
        let operation = match flag {
            "--bind" => self.bind(flag, Access::ReadWrite, false)?,
            "--bind-try" => self.bind(flag, Access::ReadWrite, true)?,
            "--dev-bind" => self.bind(flag, Access::Devices, false)?,
            "--dev-bind-try" => self.bind(flag, Access::Devices, true)?,
            "--ro-bind" => self.bind(flag, Access::ReadOnly, false)?,
            "--ro-bind-try" => self.bind(flag, Access::ReadOnly, true)?,
            "--tmpfs" => self.fresh(flag, Fresh::Tmpfs)?,
            "--proc" => self.fresh(flag, Fresh::Proc)?,
            "--dev" => self.fresh(flag, Fresh::Dev)?,
            "--dir" => self.fresh(flag, Fresh::Directory)?,
            "--remount-ro" => Operation::ReadOnly { destination: self.path(flag)? },
            "--symlink" => {
                let (target, destination) = self.two(flag)?;
                Operation::Symlink { target: target.into(), destination: destination.into() }
            }
            _ => return Ok(None),
        };
        Ok(Some(operation))
    }

    /// Puts the arguments that a descriptor holds, each ended by NUL, in the place of the option.
    fn read_arguments(&mut self, flag: &str) -> Result<(), BwrapError> {
        let number = self.number(flag)?;
        let wrong = |_| BwrapError::Value { flag: flag.to_owned(), value: number.to_string() };
        let bytes = (self.read_fd)(number).map_err(wrong)?;
        let bytes = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
        if bytes.is_empty() {
            return Ok(());
        }
        let arguments = bytes.split(|byte| *byte == 0).map(|word| OsStr::from_bytes(word).to_owned());
        let mut arguments: Vec<OsString> = arguments.collect();
        arguments.reverse();
        self.rest.append(&mut arguments);
        Ok(())
    }
}

/// Options of bubblewrap that we know and cannot honour, each with the reason.
const REFUSED: &[(&[&str], &str)] = &[
    (&["--seccomp", "--add-seccomp-fd"], "the sandbox has its own filter, and takes no other"),
    (&["--userns", "--userns2", "--pidns"], "every run has namespaces of its own"),
    (
        &["--overlay-src", "--overlay", "--tmp-overlay", "--ro-overlay"],
        "the workspace is an overlay already; give it with --bind",
    ),
    (
        &["--file", "--bind-data", "--ro-bind-data", "--bind-fd", "--ro-bind-fd"],
        "files are taken from the host by name only",
    ),
    (
        &["--info-fd", "--json-status-fd", "--sync-fd", "--block-fd", "--userns-block-fd"],
        "the caller gets no descriptor to steer or watch the sandbox by",
    ),
    (&["--lock-file"], "the workspace has a lock of its own"),
    (&["--exec-label", "--file-label"], "labels of SELinux are not set"),
    (&["--as-pid-1"], "the first process inside is Fumehood's own, which ends everything with the command"),
    (&["--argv0"], "the program gets the name that it was called by"),
    (
        &["--perms", "--size", "--chmod", "--mqueue"],
        "private places have a fixed mode, and one quota together",
    ),
];

fn refusal(flag: &str) -> BwrapError {
    match REFUSED.iter().find(|(flags, _)| flags.contains(&flag)) {
        Some((_, why)) => BwrapError::NotHonoured { flag: flag.to_owned(), why },
        None => BwrapError::Unknown(flag.to_owned()),
    }
}

impl BwrapRequest {
    /// Returns the environment that was asked for, after all changes.
    pub fn variables(&self) -> std::collections::BTreeMap<OsString, OsString> {
        let mut variables = std::collections::BTreeMap::new();
        for change in &self.environment {
            match change {
                EnvChange::Set(name, value) => variables.insert(name.clone(), value.clone()),
                EnvChange::Unset(name) => variables.remove(name),
            };
        }
        variables
    }
}

/// Reads a descriptor of this process by its number.
///
/// # Errors
/// When there is no such descriptor, it cannot be read, or holds more than any list of arguments.
pub fn read_descriptor(number: u32) -> std::io::Result<Vec<u8>> {
    use std::io::Read;
    const LARGEST: u64 = 8 << 20;
    let mut bytes = Vec::new();
    let file = std::fs::File::open(format!("/proc/self/fd/{number}"))?;
    file.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST { Err(std::io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    fn request(line: &str) -> Result<BwrapRequest, BwrapError> {
        let none = |_| Err(std::io::ErrorKind::NotFound.into());
        match parse(&words(line), &none)? {
            Parsed::Request(request) => Ok(*request),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_command_starts_at_the_first_word_that_is_no_option() {
        let request = request("--ro-bind / / --proc /proc bash -c --bind").expect("is right");
        assert_eq!(request.argv, words("bash -c --bind"));
        assert_eq!(request.operations.len(), 2);
        let request = self::request("--proc /proc -- --odd").expect("is right");
        assert_eq!(request.argv, words("--odd"));
    }

    #[test]
    fn what_is_incomplete_or_unknown_is_refused() {
        for (line, part) in [
            ("--bind /a", "needs two arguments"),
            ("--chdir", "needs one argument"),
            ("--uid x -- true", "cannot be `x`"),
            ("--proc /proc", "no command"),
            ("--proc /proc --", "no command"),
            ("--xyzzy -- true", "no option `--xyzzy`"),
            ("-x true", "no option `-x`"),
            ("--seccomp 3 -- true", "cannot be honoured"),
            ("--as-pid-1 true", "cannot be honoured"),
            ("--args 99 true", "cannot be `99`"),
        ] {
            let error = request(line).expect_err("is refused").to_string();
            assert!(error.contains(part), "{line}: {error}");
        }
    }

    #[test]
    fn every_option_of_bubblewrap_is_known() {
        // From the option list of bubblewrap 0.13; `bwrap --help` prints it.
        let options = "help version args argv0 level-prefix unshare-all share-net unshare-user unshare-user-try \
            unshare-ipc unshare-pid unshare-net unshare-uts unshare-cgroup unshare-cgroup-try userns userns2 \
            disable-userns assert-userns-disabled pidns uid gid hostname chdir clearenv setenv unsetenv lock-file \
            sync-fd bind bind-try dev-bind dev-bind-try ro-bind ro-bind-try bind-fd ro-bind-fd remount-ro \
            overlay-src overlay tmp-overlay ro-overlay exec-label file-label proc dev tmpfs mqueue dir file bind-data \
            ro-bind-data symlink seccomp add-seccomp-fd block-fd userns-block-fd info-fd json-status-fd new-session \
            die-with-parent as-pid-1 cap-add cap-drop perms size chmod";
        for option in options.split_whitespace() {
            let line = format!("--{option} 1 2 3 4");
            assert!(
                !matches!(parse(&words(&line), &|_| Ok(Vec::new())), Err(BwrapError::Unknown(_))),
                "{option}"
            );
        }
    }

    #[test]
    fn arguments_from_a_descriptor_stand_in_its_place() {
        let read = |number| {
            assert_eq!(number, 9);
            Ok(b"--bind\0/ws\0/ws\0--setenv\0A\0\0".to_vec())
        };
        let parsed = parse(&words("--args 9 --chdir /ws -- true"), &read).expect("is right");
        let Parsed::Request(request) = parsed else { panic!("{parsed:?}") };
        assert_eq!(request.operations.len(), 1);
        assert_eq!(request.variables().get(OsStr::new("A")), Some(&OsString::new()));
        assert_eq!((request.chdir, request.argv), (Some("/ws".into()), words("true")));
        // One that names itself ends at the limit.
        let endless = parse(&words("--args 9"), &|_| Ok(b"--args\09\0".to_vec()));
        assert_eq!(endless, Err(BwrapError::TooMany));
    }

    #[test]
    fn later_changes_of_the_environment_go_first() {
        let request =
            request("--setenv A 1 --setenv B 2 --clearenv --setenv A 3 --setenv C 4 --unsetenv C true");
        let request = request.expect("is right");
        assert!(request.clear_environment);
        assert_eq!(request.variables(), [("A".into(), "3".into())].into());
    }

    #[test]
    fn bytes_that_are_no_text_survive() {
        let odd = OsString::from_vec(b"/ws\xff".to_vec());
        let arguments = ["--bind".into(), odd.clone(), odd.clone(), "cat".into(), odd.clone()];
        let parsed = parse(&arguments, &|_| Ok(Vec::new())).expect("is right");
        let Parsed::Request(request) = parsed else { panic!("{parsed:?}") };
        assert_eq!(request.argv[1], odd);
    }
}
