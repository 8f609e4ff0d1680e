//! Forms: ways to ask for a command in other words, whatever command it is.
//!
//! An open form leaves the words of the command where a reader of shells finds them; a veiled one hides them in a
//! variable, a code, a language that nobody reads, or a file. They were reviewed one by one: each does what the command does.
#![allow(dead_code, reason = "each test target uses its part")]

/// How a command is disguised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    /// Quotes, backslashes and pieces.
    Quoting,
    /// Shells, and words of the shell that run others.
    Shell,
    /// Programs that start another one.
    Wrapper,
    /// Before, behind or inside other commands.
    Order,
    /// The command itself, spelled in another way.
    Spelling,
    /// Another program with the same effect.
    Tool,
    /// Variables and arguments that are known only at run time.
    Variable,
    /// Languages of interpreters and programs.
    Language,
    /// Encodings that are taken off on the way to a shell.
    Encoding,
    /// Files that hold the command, links and copies of its program.
    File,
}

impl Kind {
    pub(crate) const ALL: [Self; 10] = [
        Self::Quoting,
        Self::Shell,
        Self::Wrapper,
        Self::Order,
        Self::Spelling,
        Self::Tool,
        Self::Variable,
        Self::Language,
        Self::Encoding,
        Self::File,
    ];

    /// Tells whether the words of the command are there to be read.
    pub(crate) fn is_open(self) -> bool {
        matches!(self, Self::Quoting | Self::Shell | Self::Wrapper | Self::Order | Self::Spelling)
    }
}

/// Scripts around a command, each for a shell. `@command@` is the command, quoted; `@quoted@` is it as one word; the codes
/// are those of the command.
const SCRIPTS: &[(Kind, &str, &str)] = &[
    (Kind::Shell, "dash", "@command@"),
    (Kind::Shell, "bash", "@command@"),
    (Kind::Shell, "sh", "sh -c @quoted@"),
    (Kind::Shell, "bash", "bash -c \"sh -c @quoted@\""),
    (Kind::Shell, "sh", "eval @quoted@"),
    (Kind::Shell, "sh", "eval @command@"),
    (Kind::Shell, "sh", "command @command@"),
    (Kind::Shell, "sh", "exec @command@"),
    (Kind::Shell, "bash", "exec -a ls @command@"),
    (Kind::Shell, "sh", "trap @quoted@ EXIT"),
    (Kind::Shell, "sh", "watch -n 1 @quoted@"),
    (Kind::Order, "sh", "true; @command@"),
    (Kind::Order, "sh", "@command@\ntrue"),
    (Kind::Order, "sh", "ls && @command@"),
    (Kind::Order, "sh", "false || @command@"),
    (Kind::Order, "sh", "@command@ & wait"),
    (Kind::Order, "sh", "(@command@)"),
    (Kind::Order, "sh", "{ @command@\n}"),
    (Kind::Order, "sh", "! @command@"),
    (Kind::Order, "sh", "if true; then @command@\nfi"),
    (Kind::Order, "sh", "if @command@\nthen :; fi"),
    (Kind::Order, "sh", "while @command@\ndo break; done"),
    (Kind::Order, "sh", "until @command@\ndo break; done"),
    (Kind::Order, "sh", "for i in 1; do @command@\ndone"),
    (Kind::Order, "sh", "case x in x) @command@\n;; esac"),
    (Kind::Order, "sh", "echo \"$(@command@\n)\""),
    (Kind::Order, "sh", "echo `@command@`"),
    (Kind::Order, "bash", "cat <(@command@\n)"),
    (Kind::Order, "sh", "cat <<E\n$(@command@\n)\nE\n"),
    (Kind::Order, "sh", "@command@ | cat"),
    (Kind::Order, "sh", "yes | @command@"),
    (Kind::Order, "sh", "@command@ >/dev/null 2>&1"),
    (Kind::Order, "sh", "f() { @command@\n}; f"),
    (Kind::Order, "sh", "cd . && @command@"),
    (Kind::Order, "sh", "# nothing to see\n@command@"),
    (Kind::Order, "sh", "LC_ALL=C @command@"),
    (Kind::Order, "bash", "time @command@"),
    (Kind::Variable, "sh", "x=@quoted@; $x"),
    (Kind::Variable, "sh", "x=@quoted@; eval \"$x\""),
    (Kind::Variable, "sh", "set -- @command@; \"$@\""),
    (Kind::Variable, "sh", "a=@program@; $a @rest@"),
    (Kind::Variable, "sh", "a=@program@; \"${a}\" @rest@"),
    (Kind::Variable, "bash", "x=(@command@); \"${x[@]}\""),
    (Kind::Variable, "sh", "$(echo @program@) @rest@"),
    (Kind::Variable, "sh", "$(printf %s @program@) @rest@"),
    (Kind::Variable, "bash", "alias z=@quoted@; shopt -s expand_aliases; z"),
    (Kind::Variable, "sh", "echo @quoted@ | xargs -I{} sh -c '{}'"),
    (Kind::Variable, "sh", "read x <<E\n@command@\nE\n$x"),
    (Kind::Variable, "sh", "PATH=/ws/bin:$PATH @command@"),
    (Kind::Language, "sh", "awk 'BEGIN{while((getline l)>0) system(l)}' <<'E'\n@command@\nE\n"),
    (Kind::Language, "sh", "make -f - <<'E'\nall:\n\t@command@\nE\n"),
    (Kind::Language, "sh", "git -c alias.z=!@quoted@ z"),
    (Kind::Language, "sh", "env -S @quoted@"),
    (Kind::Language, "sh", "zsh -c @quoted@"),
    (Kind::Language, "sh", "ksh -c @quoted@"),
    (Kind::Language, "sh", "script -qc @quoted@ /dev/null"),
    (Kind::Language, "sh", "ssh localhost @quoted@"),
    (Kind::Language, "sh", "vim -c :!@quoted@"),
    (Kind::Language, "sh", "gdb -batch -ex @quoted@"),
    (Kind::Language, "sh", "npm exec -c @quoted@"),
    (Kind::Language, "sh", "parallel ::: @quoted@"),
    (Kind::Language, "sh", "expect -c @quoted@"),
    (Kind::Language, "sh", "tar -cf /dev/null --checkpoint=1 --checkpoint-action=exec=@quoted@ README.md"),
    (Kind::Encoding, "sh", "sh <<'E'\n@command@\nE\n"),
    (Kind::Encoding, "bash", "bash <<< @quoted@"),
    (Kind::Encoding, "sh", "echo @quoted@ | sh"),
    (Kind::Encoding, "sh", "echo @quoted@ | rev | rev | sh"),
    (Kind::Encoding, "sh", "echo @quoted@ | tr a a | bash -s"),
    (Kind::Encoding, "sh", "base64 -d <<'E' | sh\n@base64@\nE\n"),
    (Kind::Encoding, "sh", "eval \"$(echo @base64@ | base64 -d)\""),
    (Kind::Encoding, "bash", "bash -c \"$(base64 -d <<< @base64@)\""),
    (Kind::Encoding, "sh", "echo @hex@ | xxd -r -p | sh"),
    (Kind::Encoding, "sh", "printf '@octal@' | sh"),
    (Kind::Encoding, "sh", "eval \"$(printf '@octal@')\""),
    (Kind::Encoding, "bash", "eval $'@escaped@'"),
    (Kind::Encoding, "sh", "perl -e 'system pack \"H*\", \"@hex@\"'"),
    (Kind::Encoding, "sh", "python3 -c 'import os; os.system(bytes.fromhex(\"@hex@\").decode())'"),
    (
        Kind::Encoding,
        "sh",
        "node -e 'require(\"child_process\").execSync(Buffer.from(\"@hex@\", \"hex\").toString())'",
    ),
    (Kind::Encoding, "sh", "ruby -e 'system [\"@hex@\"].pack(\"H*\")'"),
    (Kind::File, "sh", "echo @quoted@ > s.sh; sh s.sh"),
    (Kind::File, "sh", "echo @quoted@ > s.sh; . ./s.sh"),
    (Kind::File, "sh", "sh ./scripts/release.sh"),
    (Kind::File, "sh", "cp \"$(command -v @program@)\" ./tool; ./tool @rest@"),
    (Kind::File, "sh", "ln -s /usr/bin/@program@ tool; ./tool @rest@"),
    (Kind::File, "sh", "./node_modules/.bin/@program@ @rest@"),
    (Kind::File, "sh", "make release"),
    (Kind::File, "sh", "npm run release"),
];

/// Programs that start the command, which stands behind them word by word.
const WRAPPERS: &[&[&str]] = &[
    &["env"],
    &["env", "LC_ALL=C"],
    &["/usr/bin/env"],
    &["nice", "-n", "5"],
    &["timeout", "60"],
    &["stdbuf", "-oL"],
    &["setsid"],
    &["nohup"],
    &["ionice", "-c", "3"],
    &["time", "-p"],
    &["flock", "lock"],
    &["sudo"],
    &["unbuffer"],
    &["xargs", "-a", "/dev/null"],
    &["env", "nice", "timeout", "5"],
    &["busybox", "env"],
];

/// One disguise.
#[derive(Debug, Clone)]
pub(crate) struct Disguise {
    pub(crate) kind: Kind,
    pub(crate) argv: Vec<String>,
}

/// Writes a word so that a shell takes every character of it for itself.
pub(crate) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn doubly_quoted(word: &str) -> String {
    let escape = |c: char| if "\"\\$`".contains(c) { format!("\\{c}") } else { c.to_string() };
    format!("\"{}\"", word.chars().map(escape).collect::<String>())
}

fn with_backslashes(word: &str) -> String {
    word.chars().map(|c| format!("\\{c}")).collect()
}

fn in_pieces(word: &str) -> String {
    word.chars().map(|c| quoted(&c.to_string())).collect()
}

fn half_quoted(word: &str) -> String {
    let middle = word.char_indices().nth(1).map_or(word.len(), |(at, _)| at);
    format!("{}\"\"{}", quoted(&word[..middle]), quoted(&word[middle..]))
}

/// Quotes a word only where a shell would read it in another way.
fn sparingly(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@+=,~".contains(c);
    if word.chars().all(is_plain) { word.to_owned() } else { quoted(word) }
}

/// Returns a command in every form, each once.
pub(crate) fn every_form(argv: &[String]) -> Vec<Disguise> {
    let shell = |kind, shell: &str, script: String| Disguise {
        kind,
        argv: vec![shell.to_owned(), "-c".to_owned(), script],
    };
    let written = |word: fn(&str) -> String| argv.iter().map(|arg| word(arg)).collect::<Vec<_>>().join(" ");
    let quotings = [quoted, doubly_quoted, with_backslashes, in_pieces, half_quoted];
    let mut all: Vec<Disguise> =
        quotings.iter().map(|word| shell(Kind::Quoting, "sh", written(*word))).collect();
    let plain = written(sparingly);
    all.extend(WRAPPERS.iter().map(|before| Disguise {
        kind: Kind::Wrapper,
        argv: before.iter().map(|word| (*word).to_owned()).chain(argv.iter().cloned()).collect(),
    }));
    let command = written(quoted);
    let find = format!("find . -maxdepth 0 -exec {command} \\;");
    all.push(shell(Kind::Wrapper, "sh", find));
    all.extend(
        SCRIPTS.iter().map(|(kind, name, form)| shell(*kind, name, filled(form, argv, &command, &plain))),
    );
    all
}

/// Puts a command into a form.
fn filled(form: &str, argv: &[String], command: &str, plain: &str) -> String {
    let rest = argv[1..].iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    let bytes = |one: fn(u8) -> String| command.bytes().map(one).collect::<String>();
    form.replace("@command@", command)
        .replace("@quoted@", &quoted(plain))
        .replace("@program@", &argv[0])
        .replace("@rest@", &rest)
        .replace("@base64@", &base64(command.as_bytes()))
        .replace("@hex@", &bytes(|byte| format!("{byte:02x}")))
        .replace("@octal@", &bytes(|byte| format!("\\{byte:03o}")))
        .replace("@escaped@", &bytes(|byte| format!("\\x{byte:02x}")))
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |chunk: &[u8]| {
        let bits = (0..3).fold(0u32, |bits, at| bits << 8 | u32::from(chunk.get(at).copied().unwrap_or(0)));
        (0..4)
            .map(|at| match at > chunk.len() {
                true => '=',
                false => char::from(LETTERS[(bits >> (18 - 6 * at)) as usize & 63]),
            })
            .collect::<String>()
    };
    bytes.chunks(3).map(group).collect()
}
