//! Content in the database: kept once however often it is given, in sealed pieces that others share.
//!
//! What a model is sent grows by a few messages each time and is the same before them. So it is cut where its bytes say so
//! (a rolling sum), and equal pieces are kept once: a conversation costs what it holds, not that times its turns.

use model::{ContentClass, Digest, Timestamp};
use rusqlite::{OptionalExtension as _, params};

use super::error::StoreError;
use super::row::{Raw, time};
use super::{Reader, Store, Writer};

/// No piece is smaller, but the last one of a content.
const LEAST: usize = 1 << 10;
/// No piece is larger.
const MOST: usize = 64 << 10;
/// One in so many places is a cut: pieces have about this size more than the least.
const CUT: u64 = (1 << 12) - 1;

/// Content that is about to be kept.
#[derive(Debug)]
pub struct Sealed {
    class: ContentClass,
    digest: Digest,
    pieces: Vec<SealedPiece>,
}

/// A piece under its name.
type SealedPiece = (Digest, Vec<u8>);

impl Sealed {
    /// Returns the digest of the content, by which it is found again.
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

impl Store {
    /// Takes the secrets out of content and seals it, ready to be kept.
    ///
    /// # Errors
    /// When the key of its class cannot be read or made.
    pub fn sealed(&self, class: ContentClass, content: &[u8]) -> Result<Sealed, StoreError> {
        let content = self.without_secrets(content);
        let seal = |piece: &[u8]| {
            // Under the key of the store: the digest of a short piece would give it away.
            let name = self.value_digest(piece);
            Ok((name, self.seal(class, &name.to_string(), piece)?))
        };
        let pieces = pieces(&content).into_iter().map(seal).collect::<Result<_, StoreError>>()?;
        Ok(Sealed { class, digest: Digest::of(&content), pieces })
    }

    /// Returns content by its digest; nothing when there is none.
    ///
    /// # Errors
    /// When it cannot be read, its key is gone, or it is not what was kept.
    pub fn content(&self, class: ContentClass, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(pieces) = self.read(|reader| reader.pieces(class, digest))? else { return Ok(None) };
        let open = |(name, sealed): SealedPiece| self.unseal(class, &name.to_string(), &sealed);
        let opened: Vec<Vec<u8>> = pieces.into_iter().map(open).collect::<Result<_, _>>()?;
        let content = opened.concat();
        match Digest::of(&content) == *digest {
            true => Ok(Some(content)),
            false => Err(StoreError::Sealed { class, why: "it is not what the record speaks of" }),
        }
    }
}

impl Reader<'_> {
    fn pieces(&self, class: ContentClass, digest: &Digest) -> Result<Option<Vec<SealedPiece>>, StoreError> {
        let sql = "SELECT pieces FROM contents WHERE class = ?1 AND digest = ?2";
        let mut select = self.connection.prepare_cached(sql)?;
        let found =
            select.query_row(params![class.name(), digest.as_bytes()], |row| row.get::<_, Vec<u8>>(0));
        let Some(names) = found.optional()? else { return Ok(None) };
        let mut piece =
            self.connection.prepare_cached("SELECT name, body FROM pieces WHERE class = ?1 AND name = ?2")?;
        let mut pieces = Vec::new();
        for name in names.chunks(32) {
            let row = piece.query_row(params![class.name(), name], |row| {
                Ok((row.get::<_, Raw<Digest>>(0)?.0, row.get(1)?))
            });
            let missing = StoreError::Sealed { class, why: "a piece of it is gone" };
            pieces.push(row.optional()?.ok_or(missing)?);
        }
        Ok(Some(pieces))
    }
}

impl Writer<'_> {
    /// Keeps content, and what it shares with others once.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep_content(&self, sealed: &Sealed, now: Timestamp) -> Result<(), StoreError> {
        let class = sealed.class.name();
        let sql = "INSERT OR IGNORE INTO pieces (class, name, body) VALUES (?1, ?2, ?3)";
        let mut insert = self.connection.prepare_cached(sql)?;
        for (name, body) in &sealed.pieces {
            insert.execute(params![class, name.as_bytes(), body])?;
        }
        let names: Vec<u8> = sealed.pieces.iter().flat_map(|(name, _)| *name.as_bytes()).collect();
        let sql = "INSERT INTO contents (class, digest, pieces, kept) VALUES (?1, ?2, ?3, ?4) \
                   ON CONFLICT (class, digest) DO UPDATE SET kept = excluded.kept";
        self.connection.prepare_cached(sql)?.execute(params![
            class,
            sealed.digest.as_bytes(),
            names,
            time(now)
        ])?;
        Ok(())
    }
}

/// Cuts content where its bytes say so: what is inserted changes the pieces around it, and no others.
fn pieces(content: &[u8]) -> Vec<&[u8]> {
    let (mut pieces, mut start, mut sum) = (Vec::new(), 0, 0u64);
    for (at, byte) in content.iter().enumerate() {
        sum = (sum << 1).wrapping_add(mixed(*byte));
        let length = at + 1 - start;
        if length >= MOST || (length >= LEAST && (sum >> 40) & CUT == 0) {
            pieces.push(&content[start..=at]);
            (start, sum) = (at + 1, 0);
        }
    }
    pieces.push(&content[start..]);
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

/// Spreads a byte over all bits (the finisher of SplitMix64).
fn mixed(byte: u8) -> u64 {
    let mut bits = (u64::from(byte) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(lines: std::ops::Range<usize>) -> Vec<u8> {
        lines.flat_map(|line| format!("{{\"line\":{line},\"twice\":{}}}\n", line * 2).into_bytes()).collect()
    }

    #[test]
    fn pieces_make_the_whole_and_what_is_added_changes_few_of_them() {
        let (before, longer) = (text(0..4000), text(0..4100));
        let (old, new) = (pieces(&before), pieces(&longer));
        assert_eq!(old.concat(), before);
        assert!(old.len() > 10 && old.iter().all(|piece| piece.len() <= MOST), "{}", old.len());
        let shared = old.iter().filter(|piece| new.contains(piece)).count();
        assert!(shared + 1 >= old.len(), "{shared} of {}", old.len());
        assert_eq!(pieces(b""), [] as [&[u8]; 0]);
    }

    #[test]
    fn content_without_any_place_to_cut_is_cut_all_the_same() {
        assert!(pieces(&[b'x'; 200_000]).iter().all(|piece| piece.len() <= MOST));
    }
}
