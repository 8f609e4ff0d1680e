//! What was kept elsewhere and vouches for a log, and its comparison with the log while that is read.

use crate::checkpoint::Checkpoint;
use crate::head::Head;
use crate::merkle::Tree;
use crate::prune::Prunes;
use crate::verify::{Broken, Flaw, Verification};

/// Heads of a log that were kept where its writer could not reach them.
#[derive(Debug, Clone, Default)]
pub struct Anchors {
    heads: Vec<Head>,
    /// In order of their places.
    signed: Vec<Checkpoint>,
}

impl Anchors {
    /// Adds a head without a signature: the place where it was kept is all that vouches for it.
    #[must_use]
    pub fn and_head(mut self, head: Head) -> Self {
        self.heads.push(head);
        self.heads.sort_by_key(|head| head.seq);
        self
    }

    /// Adds signed heads.
    #[must_use]
    pub fn and_signed(mut self, heads: impl IntoIterator<Item = Checkpoint>) -> Self {
        self.signed.extend(heads);
        self.signed.sort_by_key(|checkpoint| checkpoint.head().seq);
        self
    }

    /// Returns the first place for which two signed heads name different records. That needs no log to be seen.
    fn fork(&self) -> Option<u64> {
        let split =
            |pair: &[Checkpoint]| pair[0].head().seq == pair[1].head().seq && !pair[0].agrees(&pair[1]);
        self.signed.windows(2).find(|pair| split(pair)).map(|pair| pair[0].head().seq)
    }

    fn all(&self) -> impl Iterator<Item = &Head> {
        self.heads.iter().chain(self.signed.iter().map(Checkpoint::head))
    }
}

/// Compares a log with its anchors while it is read. Without signed heads there is no tree to grow, and none is.
pub(crate) struct Watch<'a> {
    anchors: &'a Anchors,
    heads: &'a [Head],
    signed: &'a [Checkpoint],
    tree: Tree,
    /// The last record that a head vouched for.
    vouched: u64,
}

impl<'a> Watch<'a> {
    /// Starts before the first record.
    pub(crate) fn start(anchors: &'a Anchors, genesis: &Head) -> Result<Self, Broken> {
        let mut watch = Self {
            anchors,
            heads: &anchors.heads,
            signed: &anchors.signed,
            tree: Tree::default(),
            vouched: 0,
        };
        if let Some(other) = anchors.all().find(|head| head.log != genesis.log) {
            return Err(Broken { record: 0, flaw: Flaw::OtherHead { log: other.log.clone() } });
        }
        watch.compare(genesis).map_or(Ok(watch), Err)
    }

    /// Takes the next record.
    pub(crate) fn saw(&mut self, last: &Head) -> Option<Broken> {
        if !self.signed.is_empty() {
            self.tree.push(&last.digest);
        }
        self.compare(last)
    }

    fn compare(&mut self, last: &Head) -> Option<Broken> {
        let heads = self.heads.partition_point(|head| head.seq <= last.seq);
        let signed = self.signed.partition_point(|checkpoint| checkpoint.head().seq <= last.seq);
        if heads + signed == 0 {
            return None;
        }
        let (heads, signed) = (self.take_heads(heads), self.take_signed(signed));
        let holds = heads.iter().all(|head| head == last)
            && signed.iter().all(|checkpoint| checkpoint.names(&self.tree, &last.digest));
        if holds {
            self.vouched = last.seq;
            return None;
        }
        let forked = signed.windows(2).any(|pair| !pair[0].agrees(&pair[1]));
        let flaw =
            if forked { Flaw::Forked } else { Flaw::Rewritten { from: last.seq.min(self.vouched + 1) } };
        Some(Broken { record: last.seq, flaw })
    }

    fn take_heads(&mut self, number: usize) -> &'a [Head] {
        let (taken, left) = self.heads.split_at(number);
        self.heads = left;
        taken
    }

    fn take_signed(&mut self, number: usize) -> &'a [Checkpoint] {
        let (taken, left) = self.signed.split_at(number);
        self.signed = left;
        taken
    }

    /// Says what was found of a log whose records follow on each other, and which ends here.
    pub(crate) fn finish(self, end: Head, prunes: Prunes) -> Verification {
        let beyond = self.anchors.all().map(|head| head.seq).max();
        if let Some(beyond) = beyond.filter(|beyond| *beyond > end.seq) {
            return Verification::Broken(match self.anchors.fork() {
                Some(record) => Broken { record, flaw: Flaw::Forked },
                None => Broken { record: end.seq + 1, flaw: Flaw::Cut { ends: beyond } },
            });
        }
        match (prunes.finish(self.vouched), beyond) {
            (Err(found), _) => Verification::Broken(found),
            (Ok(pruned), None) => Verification::Consistent { end, pruned },
            (Ok(pruned), Some(_)) => {
                let signed_heads = self.anchors.signed.len() as u64;
                Verification::Anchored { end, anchored: self.vouched, signed_heads, pruned }
            }
        }
    }
}
