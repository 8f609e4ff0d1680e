//! What a package of npm runs when it is installed, read off its tarball while it passes.
//!
//! What a registry lists of a version was said by who published it, and need not be what is in the file; npm goes by the file.
//! So all `package.json` of the package and of those bundled with it are read, as npm's unpacker reads the archive. What
//! two programs could read differently is refused.

use std::io::{self, Write};

use flate2::write::MultiGzDecoder;
use model::text::escape;
use serde_json::Value;

use super::npm;

/// The size of a block of a tar archive, in bytes (POSIX, pax interchange format).
const BLOCK: usize = 512;
/// The largest entry that is read.
const READ_MAX: u64 = 4 << 20;
/// The most bytes that an archive may unpack to.
const UNPACKED_MAX: u64 = 8 << 30;
/// How every gzip file begins (RFC 1952).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// An archive that passes.
pub(crate) struct Archive {
    inner: MultiGzDecoder<Entries>,
    first: Vec<u8>,
}

impl Default for Archive {
    fn default() -> Self {
        Self { inner: MultiGzDecoder::new(Entries::default()), first: Vec::new() }
    }
}

impl Archive {
    /// Reads on.
    ///
    /// # Errors
    /// With why it cannot be read.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Result<(), String> {
        let missing = GZIP.len().saturating_sub(self.first.len());
        self.first.extend(piece.iter().take(missing));
        if self.first.len() == GZIP.len() && self.first != GZIP {
            return Err("it is no gzip file".to_owned());
        }
        self.inner.write_all(piece).map_err(|error| error.to_string())
    }

    /// Says what is run, once all was read.
    ///
    /// # Errors
    /// With why it cannot be read.
    pub(crate) fn end(mut self) -> Result<Option<String>, String> {
        self.inner.try_finish().map_err(|error| error.to_string())?;
        self.inner.get_ref().runs()
    }
}

/// What an archive unpacks to.
#[derive(Debug, Default)]
struct Entries {
    /// What of a header, or of an entry that is read, has come.
    part: Vec<u8>,
    /// The entry that comes, when its header has.
    entry: Option<Entry>,
    /// What headers before an entry say of it.
    path: Option<String>,
    size: Option<u64>,
    unpacked: u64,
    scripts: Option<String>,
    builds: bool,
    says_no_build: bool,
}

#[derive(Debug)]
struct Entry {
    is: Is,
    size: u64,
    /// How much of it, and of what fills its last block, has not come.
    left: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Is {
    /// What says something of the next entry.
    More,
    /// The path of the next entry.
    Path,
    /// What npm goes by.
    Manifest,
    /// Anything else.
    Other,
}

impl Write for Entries {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.unpacked += bytes.len() as u64;
        if self.unpacked > UNPACKED_MAX {
            return Err(io::Error::other("it unpacks to too much"));
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            rest = self.take(rest).map_err(io::Error::other)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Entries {
    /// Takes what it needs next, and returns what is left.
    fn take<'b>(&mut self, bytes: &'b [u8]) -> Result<&'b [u8], String> {
        let Some(entry) = &mut self.entry else {
            let (now, rest) = bytes.split_at(bytes.len().min(BLOCK - self.part.len()));
            self.part.extend_from_slice(now);
            if self.part.len() == BLOCK {
                let block = std::mem::take(&mut self.part);
                self.header(&block)?;
            }
            return Ok(rest);
        };
        let (now, rest) = bytes.split_at(bytes.len().min(usize::try_from(entry.left).unwrap_or(usize::MAX)));
        if entry.is != Is::Other {
            self.part.extend_from_slice(now);
        }
        entry.left -= now.len() as u64;
        if entry.left == 0 {
            self.entry_is_over()?;
        }
        Ok(rest)
    }

    fn header(&mut self, block: &[u8]) -> Result<(), String> {
        if block.iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        if number(&block[148..156])? != sum(block) {
            return Err("a header of the archive has a wrong sum".to_owned());
        }
        let is = match block[156] {
            b'x' => Is::More,
            b'L' => Is::Path,
            // What holds for all entries could rename each of them; git writes only a comment there.
            b'g' => Is::Other,
            kind => self.file(kind, block)?,
        };
        let own = matches!(block[156], b'x' | b'L' | b'g' | b'K' | b'N');
        let size = if own { None } else { self.size.take() };
        let size = size.map_or_else(|| number(&block[124..136]), Ok)?;
        // Links and directories have nothing behind them, whatever size they say.
        let size = if matches!(block[156], b'1'..=b'6') { 0 } else { size };
        if is != Is::Other && size > READ_MAX {
            return Err("what says what it runs is too large".to_owned());
        }
        let left = size.checked_next_multiple_of(BLOCK as u64).ok_or("an entry is too large")?;
        self.entry = Some(Entry { is, size, left });
        if left == 0 { self.entry_is_over() } else { Ok(()) }
    }

    fn file(&mut self, kind: u8, block: &[u8]) -> Result<Is, String> {
        let path = match self.path.take() {
            Some(path) => path,
            None => path_of(block),
        };
        let parts: Vec<String> = path
            .split('/')
            .filter(|part| !part.is_empty() && *part != ".")
            .map(str::to_ascii_lowercase)
            .collect();
        if parts.iter().any(|part| part == "..") {
            return Err(format!("its archive has the path `{}`", escape(&path)));
        }
        let is_package = parts.len() <= 2 || parts.iter().any(|part| part == "node_modules");
        let last = parts.last().map(String::as_str).filter(|_| is_package);
        let is_file = matches!(kind, b'0' | 0 | b'7');
        match last {
            Some("package.json") if is_file => Ok(Is::Manifest),
            Some("package.json" | "binding.gyp") if matches!(kind, b'1' | b'2') => {
                Err(format!("its archive has a link at `{}`", escape(&path)))
            }
            Some("binding.gyp") if is_file => {
                self.builds = true;
                Ok(Is::Other)
            }
            _ => Ok(Is::Other),
        }
    }

    fn entry_is_over(&mut self) -> Result<(), String> {
        let Some(Entry { is, size, .. }) = self.entry.take() else { return Ok(()) };
        let mut content = std::mem::take(&mut self.part);
        content.truncate(usize::try_from(size).unwrap_or(usize::MAX));
        match is {
            Is::Other => Ok(()),
            Is::Path => {
                let path = content.split(|byte| *byte == 0).next().unwrap_or_default();
                self.path = Some(String::from_utf8_lossy(path).into_owned());
                Ok(())
            }
            Is::More => self.more(&content),
            Is::Manifest => self.manifest(&content),
        }
    }

    /// Reads the records of a pax header: `LENGTH KEY=VALUE` and a new line.
    fn more(&mut self, content: &[u8]) -> Result<(), String> {
        let mut rest = content;
        while let Some(space) = rest.iter().position(|byte| *byte == b' ') {
            let length =
                std::str::from_utf8(&rest[..space]).ok().and_then(|digits| digits.parse::<usize>().ok());
            let length = length
                .filter(|length| (space + 2..=rest.len()).contains(length))
                .ok_or("a header of its archive is none")?;
            let record = String::from_utf8_lossy(&rest[space + 1..length - 1]).into_owned();
            match record.split_once('=') {
                Some(("path", path)) => self.path = Some(path.to_owned()),
                Some(("size", size)) => {
                    self.size = Some(size.parse().map_err(|_| "a size in its archive is none")?)
                }
                _ => {}
            }
            rest = &rest[length..];
        }
        Ok(())
    }

    fn manifest(&mut self, content: &[u8]) -> Result<(), String> {
        let manifest: Value = serde_json::from_slice(content)
            .map_err(|error| format!("a `package.json` in it is none: {error}"))?;
        self.scripts = self.scripts.take().or_else(|| npm::scripts(&manifest["scripts"]));
        self.says_no_build |= manifest["gypfile"] == Value::Bool(false);
        Ok(())
    }

    fn runs(&self) -> Result<Option<String>, String> {
        if self.entry.is_some() || !self.part.is_empty() {
            return Err("its archive breaks off".to_owned());
        }
        let build = || (self.builds && !self.says_no_build).then(|| "a build by `binding.gyp`".to_owned());
        Ok(self.scripts.clone().or_else(build))
    }
}

fn path_of(block: &[u8]) -> String {
    let text = |field: &[u8]| {
        let field = field.split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(field).into_owned()
    };
    let (name, prefix) = (text(&block[..100]), text(&block[345..500]));
    let has_prefix = &block[257..263] == b"ustar\0" && !prefix.is_empty();
    if has_prefix { format!("{prefix}/{name}") } else { name }
}

/// Reads a number as octal digits, or as bytes after a first one with its highest bit set.
fn number(field: &[u8]) -> Result<u64, String> {
    if field.first().is_some_and(|first| first & 0x80 != 0) {
        let rest = &field[field.len().saturating_sub(8)..];
        return Ok(rest.iter().fold(0, |all, byte| all << 8 | u64::from(*byte)) & (u64::MAX >> 1));
    }
    let text = String::from_utf8_lossy(field);
    let digits = text.trim_matches(|letter: char| letter == '\0' || letter == ' ');
    if digits.is_empty() {
        return Ok(0);
    }
    u64::from_str_radix(digits, 8).map_err(|_| "a number in its archive is none".to_owned())
}

/// Returns the sum of a header, with spaces where the sum itself stands.
fn sum(block: &[u8]) -> u64 {
    let all = block.iter().enumerate();
    all.map(|(at, byte)| if (148..156).contains(&at) { 32 } else { u64::from(*byte) }).sum()
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn entry(kind: u8, path: &str, content: &[u8]) -> Vec<u8> {
        let mut block = vec![0; BLOCK];
        block[..path.len()].copy_from_slice(path.as_bytes());
        block[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
        block[156] = kind;
        block[257..265].copy_from_slice(b"ustar\x0000");
        let sum = sum(&block);
        block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        block.extend_from_slice(content);
        block.resize(block.len().next_multiple_of(BLOCK), 0);
        block
    }

    fn packed(entries: &[Vec<u8>]) -> Vec<u8> {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(&[entries.concat(), vec![0; 2 * BLOCK]].concat()).expect("packs");
        gzip.finish().expect("packs")
    }

    fn read(bytes: &[u8], piece: usize) -> Result<Option<String>, String> {
        let mut archive = Archive::default();
        bytes.chunks(piece).try_for_each(|piece| archive.push(piece))?;
        archive.end()
    }

    const PLAIN: &[u8] = br#"{"name":"a","scripts":{"test":"x"}}"#;
    const RUNS: &[u8] = br#"{"name":"a","scripts":{"postinstall":"x"}}"#;

    #[test]
    fn what_is_run_is_found_wherever_npm_looks() {
        let manifest = |path: &str, content: &[u8]| entry(b'0', path, content);
        let pax = entry(b'x', "p", b"29 path=package/package.json\n");
        let long = entry(b'L', "l", b"package/package.json\0");
        for (entries, runs) in [
            (vec![manifest("package/package.json", PLAIN)], None),
            (vec![manifest("package/package.json", RUNS)], Some("`postinstall`")),
            (vec![manifest("other/./package.json", RUNS)], Some("`postinstall`")),
            (
                vec![manifest("package/package.json", PLAIN), manifest("package/package.json", RUNS)],
                Some("`postinstall`"),
            ),
            (vec![pax, manifest("package/x", RUNS)], Some("`postinstall`")),
            (vec![long, manifest("package/x", RUNS)], Some("`postinstall`")),
            (vec![manifest("package/node_modules/b/package.json", RUNS)], Some("`postinstall`")),
            (vec![manifest("package/examples/package.json", RUNS)], None),
            (
                vec![manifest("package/package.json", PLAIN), manifest("package/binding.gyp", b"{}")],
                Some("a build by `binding.gyp`"),
            ),
            (
                vec![
                    manifest("package/package.json", br#"{"gypfile":false}"#),
                    manifest("package/binding.gyp", b"{}"),
                ],
                None,
            ),
        ] {
            let bytes = packed(&entries);
            for piece in [1, 7, bytes.len()] {
                assert_eq!(read(&bytes, piece), Ok(runs.map(str::to_owned)));
            }
        }
    }

    #[test]
    fn what_could_be_read_differently_is_refused() {
        let plain = entry(b'0', "package/package.json", PLAIN);
        let mut wrong = plain.clone();
        wrong[0] ^= 1;
        for (bytes, why) in [
            (packed(&[wrong]), "wrong sum"),
            (packed(&[entry(b'2', "package/package.json", b"")]), "a link"),
            (packed(&[entry(b'0', "package/../package.json", PLAIN)]), "the path"),
            (packed(&[entry(b'0', "package/package.json", b"{")]), "is none"),
            (packed(&[entry(b'x', "p", b"999 path=x\n"), plain.clone()]), "is none"),
            (plain.clone(), "no gzip"),
            (packed(std::slice::from_ref(&plain))[..40].to_vec(), ""),
            (packed(&[plain[..BLOCK + 3].to_vec()]), ""),
        ] {
            let read = read(&bytes, 5);
            assert!(read.clone().is_err_and(|error| error.contains(why)), "{why}: {read:?}");
        }
    }
}
