//! The Merkle tree over a log (RFC 6962, section 2.1): one hash for all records up to a place, and short proofs that a
//! longer log only adds to a shorter one.
//!
//! A leaf is the digest of a record and nothing else of it, so what the tree says of a record still holds when the text
//! of its event is gone. Leaves are taken in one at a time and only the roots of complete subtrees are kept, one for each
//! bit of the size: a log of any length is checked in the memory of a few hashes, and a tree goes on where it stood.

use std::ops::Range;

use model::Digest;
use sha2::{Digest as _, Sha256};

/// The tree over the records so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tree {
    size: u64,
    /// Roots of complete subtrees, the largest first.
    peaks: Vec<Digest>,
}

impl Tree {
    /// Returns the tree that has this size and these roots of complete subtrees; nothing when there cannot be one.
    pub fn resume(size: u64, peaks: Vec<Digest>) -> Option<Self> {
        (peaks.len() == size.count_ones() as usize).then_some(Self { size, peaks })
    }

    /// Adds a record by its digest.
    pub fn push(&mut self, record: &Digest) {
        self.add(hash(&[LEAF, record.as_bytes()]));
    }

    fn add(&mut self, leaf: Digest) {
        let mut node = leaf;
        for _ in 0..self.size.trailing_ones() {
            // INVARIANT: there is a root for each bit of the size.
            if let Some(left) = self.peaks.pop() {
                node = parent(&left, &node);
            }
        }
        self.peaks.push(node);
        self.size += 1;
    }

    /// Returns the number of records.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the roots of complete subtrees, the largest first: what [`Self::resume`] takes.
    pub fn peaks(&self) -> &[Digest] {
        &self.peaks
    }

    /// Returns the hash of the whole tree.
    pub fn root(&self) -> Digest {
        let root = self.peaks.iter().rev().copied().reduce(|right, left| parent(&left, &right));
        root.unwrap_or_else(|| Digest::of(b""))
    }
}

const LEAF: &[u8] = &[0];
const NODE: &[u8] = &[1];

fn parent(left: &Digest, right: &Digest) -> Digest {
    hash(&[NODE, left.as_bytes(), right.as_bytes()])
}

fn hash(parts: &[&[u8]]) -> Digest {
    let mut hasher = Sha256::new();
    parts.iter().for_each(|part| hasher.update(part));
    Digest::from_bytes(hasher.finalize().into())
}

/// Makes the proof that a tree only adds to a smaller one, out of all its records in order.
#[derive(Debug)]
pub struct Prover {
    /// What each hash of the proof stands for, and how much of that has been seen.
    spans: Vec<(Range<u64>, Tree)>,
    seen: u64,
}

impl Prover {
    /// Starts a proof between two sizes; nothing when the first is not the smaller one.
    pub fn new(old: u64, new: u64) -> Option<Self> {
        let spans = (old <= new).then(|| spans(old, new))?;
        Some(Self { spans: spans.into_iter().map(|span| (span, Tree::default())).collect(), seen: 0 })
    }

    /// Takes the next record of the log by its digest.
    pub fn push(&mut self, record: &Digest) {
        let seen = self.seen;
        let wanted = self.spans.iter_mut().filter(|(span, _)| span.contains(&seen));
        wanted.for_each(|(_, tree)| tree.push(record));
        self.seen += 1;
    }

    /// Returns the proof.
    pub fn finish(self) -> Vec<Digest> {
        self.spans.iter().map(|(_, tree)| tree.root()).collect()
    }
}

/// Returns the leaves below each hash of a proof, in the order of RFC 6962, section 2.1.2.
fn spans(old: u64, new: u64) -> Vec<Range<u64>> {
    let mut found = Vec::new();
    let (mut old, mut part, mut whole) = (old, 0..new, true);
    // Goes down to where the smaller tree ends. What is left aside on the way belongs to the proof, the lowest first.
    while old > 0 && old < part.end - part.start {
        let left = 1 << (part.end - part.start - 1).ilog2();
        let middle = part.start + left;
        if old <= left {
            found.push(middle..part.end);
            part.end = middle;
        } else {
            found.push(part.start..middle);
            (part.start, old, whole) = (middle, old - left, false);
        }
    }
    if !whole {
        found.push(part);
    }
    found.reverse();
    found
}

/// Tells whether a proof shows that the tree of the size `new` with the root `new_root` begins with all of the tree of the
/// size `old` with the root `old_root` (RFC 9162, section 2.1.4.2).
pub fn is_consistent(old: u64, old_root: &Digest, new: u64, new_root: &Digest, proof: &[Digest]) -> bool {
    if old == 0 {
        return proof.is_empty() && *old_root == Tree::default().root();
    }
    if old >= new {
        return proof.is_empty() && (old, old_root) == (new, new_root);
    }
    // A smaller tree that is complete stands in the larger one as it is.
    let mut proof = proof.iter();
    let first = if old.is_power_of_two() { Some(old_root) } else { proof.next() };
    let Some(first) = first.copied() else { return false };
    let complete = (old - 1).trailing_ones();
    let (mut one, mut other) = ((old - 1) >> complete, (new - 1) >> complete);
    let (mut old_found, mut new_found) = (first, first);
    for node in proof {
        if other == 0 {
            return false;
        }
        if one & 1 == 1 || one == other {
            old_found = parent(node, &old_found);
            new_found = parent(node, &new_found);
            let up = if one == 0 { 0 } else { one.trailing_zeros() };
            (one, other) = (one >> up, other >> up);
        } else {
            new_found = parent(&new_found, node);
        }
        (one, other) = (one >> 1, other >> 1);
    }
    other == 0 && old_found == *old_root && new_found == *new_root
}

#[cfg(test)]
mod tests {
    use ct_merkle::ConsistencyProof;
    use ct_merkle::mem_backed_tree::MemoryBackedTree;
    use proptest::prelude::*;

    use super::*;

    fn records(number: u64) -> Vec<Digest> {
        (0..number).map(|n| Digest::of(&n.to_be_bytes())).collect()
    }

    fn tree(records: &[Digest]) -> Tree {
        let mut tree = Tree::default();
        records.iter().for_each(|record| tree.push(record));
        tree
    }

    fn proof(old: u64, records: &[Digest]) -> Vec<Digest> {
        let mut prover = Prover::new(old, records.len() as u64).expect("is smaller");
        records.iter().for_each(|record| prover.push(record));
        prover.finish()
    }

    /// Another implementation of the same tree.
    fn other(records: &[Digest]) -> MemoryBackedTree<Sha256, Vec<u8>> {
        let mut other = MemoryBackedTree::new();
        records.iter().for_each(|record| other.push(record.as_bytes().to_vec()));
        other
    }

    fn root_of(tree: &MemoryBackedTree<Sha256, Vec<u8>>) -> Digest {
        Digest::from_bytes((*tree.root().as_bytes()).into())
    }

    /// What transparency logs are tested with everywhere: eight leaves, and the root after each.
    const LEAVES: [&[u8]; 8] =
        [b"", b"\x00", b"\x10", b"\x20\x21", b"\x30\x31", b"@ABC", b"PQRSTUVW", b"`abcdefghijklmno"];
    const ROOTS: [&str; 9] = [
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    ];

    #[test]
    fn the_tree_is_the_one_that_every_transparency_log_has() {
        let mut tree = Tree::default();
        assert_eq!(tree.root().to_string(), ROOTS[0]);
        for (leaf, root) in LEAVES.iter().zip(&ROOTS[1..]) {
            tree.add(hash(&[LEAF, leaf]));
            assert_eq!(tree.root().to_string(), *root);
        }
    }

    #[test]
    fn a_proof_holds_for_its_two_trees_and_no_others() {
        let all = records(40);
        for new in 1..=all.len() {
            for old in 0..=new {
                let (one, other) = (tree(&all[..old]).root(), tree(&all[..new]).root());
                let proof = proof(old as u64, &all[..new]);
                let (old, new) = (old as u64, new as u64);
                assert!(is_consistent(old, &one, new, &other, &proof), "{old} {new}");
                let wrong = Digest::of(b"x");
                assert!(!is_consistent(old, &wrong, new, &other, &proof), "{old} {new}");
                assert!(old == 0 || !is_consistent(old, &one, new, &wrong, &proof), "{old} {new}");
                let longer = [&proof[..], &[wrong]].concat();
                assert!(!is_consistent(old, &one, new, &other, &longer), "{old} {new}");
                for place in 0..proof.len() {
                    let mut changed = proof.clone();
                    changed[place] = wrong;
                    assert!(!is_consistent(old, &one, new, &other, &changed), "{old} {new} {place}");
                    assert!(!is_consistent(old, &one, new, &other, &proof[..place]), "{old} {new} {place}");
                }
            }
        }
        assert!(Prover::new(2, 1).is_none());
    }

    #[test]
    fn a_log_that_was_written_anew_has_no_proof() {
        let mut all = records(20);
        let old = tree(&all[..13]).root();
        all[4] = Digest::of(b"another");
        assert!(!is_consistent(13, &old, 20, &tree(&all).root(), &proof(13, &all)));
    }

    proptest! {
        #[test]
        fn another_implementation_finds_the_same_roots_and_takes_the_same_proofs(new in 1u64..200, old in 1u64..200) {
            prop_assume!(old <= new);
            let all = records(new);
            let (one, other) = (other(&all[..old as usize]), other(&all));
            prop_assert_eq!(tree(&all).root(), root_of(&other));
            let theirs = other.prove_consistency((new - old) as usize);
            let ours = proof(old, &all);
            let bytes: Vec<u8> = ours.iter().flat_map(|digest| *digest.as_bytes()).collect();
            prop_assert_eq!(theirs.as_bytes(), &bytes[..]);
            let ours = ConsistencyProof::try_from_bytes(bytes).expect("whole digests");
            prop_assert!(other.root().verify_consistency(&one.root(), &ours).is_ok());
        }

        #[test]
        fn a_tree_goes_on_where_it_stood(before in 0u64..200, after in 0u64..50) {
            let all = records(before + after);
            let stood = tree(&all[..before as usize]);
            let mut tree_again = Tree::resume(stood.size(), stood.peaks().to_vec()).expect("fits");
            all[before as usize..].iter().for_each(|record| tree_again.push(record));
            prop_assert_eq!(tree_again.root(), tree(&all).root());
            prop_assert!(Tree::resume(before, [stood.peaks(), &[Digest::of(b"x")]].concat()).is_none());
        }

        #[test]
        fn no_proof_makes_it_panic(old: u64, new: u64, proof in proptest::collection::vec(any::<[u8; 32]>(), 0..70)) {
            let proof: Vec<Digest> = proof.into_iter().map(Digest::from_bytes).collect();
            let root = Digest::of(b"root");
            prop_assert!(old == new || !is_consistent(old, &root, new, &root, &proof));
        }
    }
}
