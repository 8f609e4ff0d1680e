//! The account of what a command does, as it is read.

use std::collections::BTreeSet;
use std::path::Path;

use model::{Effect, Place, WorkspacePath};

use crate::arg::{Arg, Known};
use crate::place::{Act, Directory, places};
use crate::variables::is_harmless;

/// How deep commands may stand inside commands. What is deeper is not read.
const DEPTH_MAX: usize = 24;
/// The most effects that are told apart. A person reads no more, and policy is asked about each.
const EFFECTS_MAX: usize = 128;
/// The most words of commands that are read, all together: a command that is started for each of many places, and inside
/// itself again, is read once for each of them.
const WORDS_MAX: usize = 32 << 10;
/// The most directories that a command may be in at one time.
const DIRECTORIES_MAX: usize = 8;

/// What was found so far, and where the command would be now.
pub(crate) struct Account<'a> {
    workspace: &'a Path,
    /// Every directory that it may be in; none when that is not known.
    directories: Vec<Directory>,
    effects: BTreeSet<Effect>,
    depth: usize,
    /// How many words of commands may still be read.
    words_left: usize,
    /// Whether the shell that reads is surely bash. Debian's `sh` reads some of what bash has as something else.
    is_bash: bool,
    /// Whether the thread that reads has the stack that a script needs.
    has_room: bool,
}

impl<'a> Account<'a> {
    pub(crate) fn new(workspace: &'a Path, directory: Option<&WorkspacePath>) -> Self {
        let start = directory.map_or_else(|| workspace.to_owned(), |path| workspace.join(path.as_path()));
        Self {
            workspace,
            directories: vec![Directory::new(start)],
            effects: BTreeSet::new(),
            depth: 0,
            words_left: WORDS_MAX,
            is_bash: false,
            has_room: false,
        }
    }

    pub(crate) fn into_effects(self) -> BTreeSet<Effect> {
        self.effects
    }

    pub(crate) fn add(&mut self, effect: Effect) {
        if self.effects.len() < EFFECTS_MAX {
            self.effects.insert(effect);
        } else if !self.effects.contains(&effect) {
            self.effects.insert(Effect::Unknown { why: format!("more than {EFFECTS_MAX} things at once") });
        }
    }

    pub(crate) fn unknown(&mut self, why: impl Into<String>) {
        self.add(Effect::Unknown { why: why.into() });
    }

    pub(crate) fn control(&mut self, control: impl Into<String>) {
        self.add(Effect::ChangeControl { control: control.into() });
    }

    /// Notes that something talks to a machine of which the name is known, or not.
    pub(crate) fn connect(&mut self, host: Option<&str>) {
        self.add(Effect::Connect { host: host.unwrap_or("*").to_owned() });
    }

    pub(crate) fn read(&mut self, path: &Arg) {
        self.at(path, Act::Read, |place| Effect::Read { place });
    }

    pub(crate) fn write(&mut self, path: &Arg) {
        self.at(path, Act::Write, |place| Effect::Write { place });
    }

    pub(crate) fn delete(&mut self, path: &Arg) {
        self.at(path, Act::Delete, |place| Effect::Delete { place });
    }

    /// Notes that the directory where it is is read.
    pub(crate) fn read_here(&mut self) {
        self.read(&Arg::exactly("."));
    }

    fn at(&mut self, path: &Arg, act: Act, effect: impl Fn(Place) -> Effect) {
        for place in places(path, act, &self.directories, self.workspace) {
            self.add(effect(place));
        }
    }

    /// Notes which variables a command sets for itself.
    pub(crate) fn set_variables(&mut self, names: &[&str]) {
        for name in names.iter().filter(|name| !is_harmless(name)) {
            self.unknown(format!("the variable {name} can change what programs do"));
        }
    }

    /// Goes into a directory, or stays, as when there is none of that name.
    pub(crate) fn enter(&mut self, path: &Arg) {
        self.read(path);
        let Some(text) = path.exact().filter(|text| *text != "-" && !text.starts_with('~')) else {
            self.directories.clear();
            return;
        };
        let new: Vec<Option<Directory>> =
            self.directories.iter().map(|directory| directory.join(Path::new(text))).collect();
        let known = new.iter().all(Option::is_some) && self.directories.len() * 2 <= DIRECTORIES_MAX;
        if known {
            self.directories.extend(new.into_iter().flatten());
        } else {
            self.directories.clear();
        }
    }

    /// Reads what is done again and again: where that goes elsewhere, each time starts somewhere else.
    pub(crate) fn repeatedly(&mut self, read: impl Fn(&mut Self)) {
        let before = self.directories.clone();
        read(self);
        if self.directories != before {
            self.directories.clear();
            read(self);
        }
    }

    /// Reads what is done in a directory that is not known.
    pub(crate) fn somewhere(&mut self, read: impl FnOnce(&mut Self)) {
        self.inside(|account| {
            account.directories.clear();
            read(account);
        });
    }

    pub(crate) fn is_bash(&self) -> bool {
        self.is_bash
    }

    /// Reads a script of a shell by its name.
    pub(crate) fn script_of(&mut self, shell: &str, text: &str) {
        let before = std::mem::replace(&mut self.is_bash, shell == "bash");
        self.inside(|account| account.script(text));
        self.is_bash = before;
    }

    /// Reads what stands inside, and comes back to the directories of before.
    pub(crate) fn inside(&mut self, read: impl FnOnce(&mut Self)) {
        let before = self.directories.clone();
        self.deeper(read);
        self.directories = before;
    }

    /// Reads what stands inside; where that goes to, the rest goes on.
    pub(crate) fn deeper(&mut self, read: impl FnOnce(&mut Self)) {
        if self.depth == DEPTH_MAX {
            self.unknown("commands inside commands, too deep to be read");
            return;
        }
        self.depth += 1;
        read(self);
        self.depth -= 1;
    }

    /// Takes so many words of what may still be read; tells whether there are as many.
    pub(crate) fn may_read(&mut self, words: usize) -> bool {
        let left = self.words_left.checked_sub(words);
        if left.is_none() {
            self.unknown("the command has too many words to be read");
        }
        self.words_left = left.unwrap_or(0);
        left.is_some()
    }

    pub(crate) fn has_room(&self) -> bool {
        self.has_room
    }

    /// Reads on a thread that has the stack for it.
    pub(crate) fn with_room(&mut self, read: impl FnOnce(&mut Self)) {
        self.has_room = true;
        read(self);
        self.has_room = false;
    }

    /// Notes that an argument of a program is not known before it runs.
    pub(crate) fn unknown_argument(&mut self, program: &str, arg: &Arg) {
        match arg.known {
            Known::Not | Known::Beginning => {
                self.unknown(format!("an argument of {program} is known only at run time"));
            }
            Known::Pattern => {
                self.unknown(format!(
                    "a file name can become an option of {program}: write `./{}`",
                    arg.text
                ));
            }
            Known::Exactly => self.unknown(format!("`{}` of {program} is not known here", arg.text)),
        }
    }
}
