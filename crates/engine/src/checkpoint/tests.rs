//! Checkpoints of layers made by hand, and everything that can come in between.
#![allow(clippy::disallowed_methods)]

use std::collections::BTreeSet;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::panic::AssertUnwindSafe;

use inspect::tree::Stack;
use model::WorkspacePath;
use rustix::fs::{FileType, mknodat};

use super::*;
use crate::fail_point::{Crash, arm, trace};
use crate::store::LayerState;

/// Every place of this module at which a crash could part two steps.
const PLACES: [&str; 7] = [
    "checkpoint: a layer is merged and not noted",
    "checkpoint: a layer is to be merged",
    "checkpoint: the directories of a new one are made",
    "checkpoint: the layers are noted",
    "checkpoint: the new one is in its place",
    "checkpoint: the old one is put aside",
    "checkpoint: what is left over holds nothing",
];

struct Bench {
    state: tempfile::TempDir,
    task: TaskId,
    layers: Vec<StoredLayer>,
}

impl Bench {
    /// Makes a task with layers. Each writes `common` and a file of its own, and deletes that of the one before it.
    fn new(layers: u8) -> Self {
        let task = TaskId::from_random([1; 10]);
        let mut bench = Self { state: tempfile::tempdir().expect("a directory"), task, layers: Vec::new() };
        (1..=layers).for_each(|number| bench.add(number));
        bench
    }

    fn places(&self) -> Places {
        Places::new(self.state.path())
    }

    fn add(&mut self, number: u8) {
        let action = ActionId::from_random([number; 10]);
        let upper = self.places().layer(&self.task, &action).join(UPPER);
        fs::create_dir_all(upper.join("directory")).expect("makes");
        for name in ["common".to_owned(), format!("directory/{number}")] {
            fs::write(upper.join(name), number.to_string()).expect("writes");
        }
        let gone = upper.join(format!("directory/{}", number.wrapping_sub(1)));
        mknodat(CWD, &gone, FileType::CharacterDevice, Mode::empty(), 0).expect("a whiteout");
        self.layers.push(StoredLayer { action, home: self.task.clone(), state: LayerState::Kept });
    }

    /// Makes the checkpoint of the runs, and holds what it shows against the layers that it should hold.
    fn make(&self) -> (usize, PathBuf) {
        let places = self.places();
        let (held, place) = Slot::of_runs(&places, &self.task).make(&self.layers, 2).expect("is made");
        let upper = place.join(UPPER);
        assert!(self.layers.len() - held <= 2, "at most two are apart");
        self.check(held, &upper);
        (held, upper)
    }

    fn check(&self, held: usize, upper: &Path) {
        let number = number(&self.layers[held - 1]);
        assert_eq!(fs::read_to_string(upper.join("common")).expect("is there"), number.to_string());
        let shown: BTreeSet<String> = fs::read_dir(upper.join("directory"))
            .expect("is listed")
            .flatten()
            .filter(|entry| !entry.file_type().expect("is known").is_char_device())
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        let followed = |layer: &StoredLayer| {
            self.layers[..held].iter().any(|next| self::number(next) == self::number(layer) + 1)
        };
        let expected = self.layers[..held].iter().filter(|layer| !followed(layer)).map(self::number);
        assert_eq!(shown, expected.map(|number| number.to_string()).collect());
        for layer in &self.layers {
            let own = self.places().layer(&self.task, &layer.action).join(UPPER).join("common");
            assert_eq!(fs::read_to_string(own).expect("is there"), self::number(layer).to_string());
        }
    }

    fn beside(&self) -> BTreeSet<String> {
        let entries = fs::read_dir(self.places().task(&self.task)).expect("is listed").flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }
}

fn number(layer: &StoredLayer) -> u8 {
    let numbers = 1..=u8::MAX;
    let is = |number: &u8| ActionId::from_random([*number; 10]) == layer.action;
    { numbers }.find(is).expect("one of ours")
}

#[test]
fn it_grows_by_the_layers_that_come_to_it() {
    let mut bench = Bench::new(5);
    let (held, upper) = bench.make();
    let first = fs::metadata(&upper).expect("is there").ino();
    assert_eq!(held, 3);
    bench.add(6);
    assert_eq!(bench.make().0, 4);
    assert_eq!(fs::metadata(&upper).expect("is there").ino(), first, "it was not made anew");
    let common = fs::metadata(upper.join("common")).expect("is there");
    let layer = bench.places().layer(&bench.task, &bench.layers[3].action).join("upper/common");
    assert_eq!(common.ino(), fs::metadata(layer).expect("is there").ino(), "nothing was copied");
    assert_eq!(bench.beside(), ["checkpoint", "layers"].map(String::from).into());
}

#[test]
fn what_was_undone_is_not_in_it() {
    let mut bench = Bench::new(8);
    assert_eq!(bench.make().0, 6);
    bench.layers.pop();
    assert_eq!(bench.make().0, 6, "one less beside it: it stays as it is");
    bench.layers.truncate(4);
    bench.add(20);
    assert_eq!(bench.make().0, 3);
    assert_eq!(bench.beside(), ["checkpoint", "layers"].map(String::from).into());
}

#[test]
fn after_a_kill_at_any_step_it_is_whole_again() {
    let mut seen = BTreeSet::new();
    // One goes on with what is there, one makes it anew because a layer was undone.
    for undone in [false, true] {
        for step in 0.. {
            let mut bench = Bench::new(6);
            bench.make();
            if undone {
                bench.layers.truncate(3);
            }
            bench.add(20);
            bench.add(21);
            arm(Some(step));
            let result = std::panic::catch_unwind(AssertUnwindSafe(|| bench.make()));
            seen.extend(trace());
            arm(None);
            let Err(crash) = result else { break };
            assert!(crash.is::<Crash>(), "only what we let die dies");
            let after = bench.layers.clone();
            bench.make();
            bench.layers = after[..4].to_vec();
            bench.make();
            assert_eq!(bench.beside(), ["checkpoint", "layers"].map(String::from).into(), "step {step}");
        }
    }
    assert_eq!(seen, PLACES.into());
}

#[test]
fn one_of_before_the_last_start_of_the_machine_is_made_anew() {
    let bench = Bench::new(5);
    let (_, upper) = bench.make();
    let note = upper.with_file_name("holds.json");
    let mut holds: serde_json::Value =
        serde_json::from_slice(&fs::read(&note).expect("reads")).expect("JSON");
    holds["boot"] = "another".into();
    fs::write(&note, holds.to_string()).expect("writes");
    // As a loss of power could leave it.
    fs::remove_file(upper.join("common")).expect("removes");
    bench.make();
}

#[test]
fn who_reads_it_goes_on_reading_what_it_opened() {
    let mut bench = Bench::new(20);
    bench.make();
    let places = bench.places();
    let slot = Slot::of_runs(&places, &bench.task);
    let trees = slot.open(&bench.layers).expect("opens").expect("is there");
    assert_eq!(trees.len(), 3);
    let mut reader = Stack::new(trees, Vec::new()).after();
    bench.add(21);
    bench.make();
    bench.make();
    let read = |reader: &mut inspect::Finder, name: &str| {
        let path = WorkspacePath::parse(name).expect("a path");
        reader.find(&path).expect("finds").map(|entry| entry.read(9).expect("reads"))
    };
    assert_eq!(read(&mut reader, "common"), Some(b"20".to_vec()));
    assert_eq!(read(&mut reader, "directory/18"), None);
    assert_eq!(read(&mut reader, "directory/20"), Some(b"20".to_vec()));
    assert_eq!(bench.beside().len(), 3, "what is read is still there");
    drop(reader);
    bench.make();
    assert_eq!(bench.beside(), ["checkpoint", "layers"].map(String::from).into());
}
