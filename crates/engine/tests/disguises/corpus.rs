//! The corpus: every class in every form, and what of it a seed chooses.
#![allow(dead_code, reason = "each test target uses its part")]

use super::classes::Class;
use super::forms::{Disguise, Kind, every_form};

/// The most disguises of one class.
const MOST: usize = 160;

/// Splits a line into words, as a shell does that knows nothing but quotes and backslashes.
pub(crate) fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None | Some('"'), '\\') => word.extend(rest.next()),
            (None, ' ') => words.push(std::mem::take(&mut word)),
            (_, c) => word.push(c),
        }
    }
    words.push(word);
    words
}

/// Returns disguises of what is denied: the plain command in every form, each other command as it stands, and other
/// spellings in forms that the seed chooses.
pub(crate) fn disguises(class: &Class, seed: u64) -> Vec<Disguise> {
    let mut all = every_form(&words(class.plain));
    all.extend(class.others().map(|(kind, line)| Disguise { kind, argv: words(line) }));
    let mut random = Random(seed);
    while all.len() < MOST {
        let Some(line) = random.choose(class.spellings) else { break };
        all.extend(random.choose(&every_form(&words(line))).cloned());
    }
    all.sort_by(|a, b| a.argv.cmp(&b.argv));
    all.dedup_by(|a, b| a.argv == b.argv);
    all
}

/// Returns commands that look like what is denied and are harmless: each as it stands, and in open forms.
pub(crate) fn neighbours(class: &Class, seed: u64) -> Vec<Disguise> {
    let mut random = Random(seed);
    let mut all = Vec::new();
    for line in class.neighbours {
        all.push(Disguise { kind: Kind::Spelling, argv: words(line) });
        let forms = every_form(&words(line));
        // A file that is made and run, or a link, is no neighbour: what it holds is not looked at here.
        let harmless: Vec<&Disguise> = forms.iter().filter(|form| form.kind != Kind::File).collect();
        all.extend((0..6).filter_map(|_| random.choose(&harmless).map(|form| (*form).clone())));
    }
    all
}

/// Numbers that look random and are the same for the same seed (xorshift64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn choose<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        let length = u64::try_from(from.len()).ok().filter(|length| *length > 0)?;
        let at = usize::try_from(self.next() % length).ok()?;
        from.get(at)
    }
}
