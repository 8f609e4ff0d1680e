//! What a program file needs before it can run: the loader and libraries of an ELF file, the interpreter of a script.

use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use object::elf::{DT_NEEDED, DT_RPATH, DT_RUNPATH, DT_STRSZ, DT_STRTAB, FileHeader32, FileHeader64};
use object::read::elf::{Dyn, FileHeader, ProgramHeader};
use object::{Endianness, FileKind, ReadCache, ReadRef, StringTable};

/// The kernel reads this much of a script's first line (`BINPRM_BUF_SIZE`).
const FIRST_LINE_MAX: usize = 256;

/// What kind of program a file is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// A program or library of machine code.
    Machine(Needs),
    /// A script: its interpreter and the one argument that the first line gives it.
    Script { interpreter: PathBuf, argument: Option<String> },
    /// Neither.
    Unknown,
}

/// What an ELF file needs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// The dynamic loader.
    pub(crate) loader: Option<PathBuf>,
    /// Names of libraries.
    pub(crate) libraries: Vec<String>,
    /// Where the file itself says that libraries are.
    pub(crate) search: Vec<PathBuf>,
    /// The machine, and whether it counts in 64 bits: libraries of another kind are passed over.
    pub(crate) machine: (u16, bool),
}

/// Looks at a file of the host.
pub(crate) fn program(path: &Path) -> std::io::Result<Program> {
    let mut file = File::open(path)?;
    let mut start = [0; FIRST_LINE_MAX];
    let length = file.read(&mut start)?;
    if let Some(line) = start[..length].strip_prefix(b"#!") {
        return Ok(script(line));
    }
    let cache = ReadCache::new(file);
    let origin = path.parent().unwrap_or(Path::new("/"));
    let needs = match FileKind::parse(&cache) {
        Ok(FileKind::Elf64) => needs::<FileHeader64<Endianness>, _>(&cache, origin),
        Ok(FileKind::Elf32) => needs::<FileHeader32<Endianness>, _>(&cache, origin),
        _ => None,
    };
    Ok(needs.map_or(Program::Unknown, Program::Machine))
}

fn script(line: &[u8]) -> Program {
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let (interpreter, argument) = line.trim().split_once([' ', '\t']).unwrap_or((line.trim(), ""));
    if !interpreter.starts_with('/') {
        return Program::Unknown;
    }
    let argument = argument.trim();
    Program::Script {
        interpreter: interpreter.into(),
        argument: (!argument.is_empty()).then(|| argument.to_owned()),
    }
}

fn needs<'a, Elf: FileHeader<Endian = Endianness>, R: ReadRef<'a>>(data: R, origin: &Path) -> Option<Needs> {
    let header = Elf::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, data).ok()?;
    let mut needs = Needs { machine: (header.e_machine(endian), header.is_type_64()), ..Needs::default() };
    let mut entries: &[Elf::Dyn] = &[];
    for segment in segments {
        if let Some(loader) = segment.interpreter(endian, data).ok()? {
            needs.loader = Some(path_of(loader));
        }
        if let Some(dynamic) = segment.dynamic(endian, data).ok()? {
            entries = dynamic;
        }
    }
    let value =
        |tag: i64| entries.iter().find(|entry| entry.tag(endian) == tag).map(|entry| entry.val(endian));
    let Some(address) = value(DT_STRTAB) else { return Some(needs) };
    let size = value(DT_STRSZ)?;
    let bytes =
        segments.iter().find_map(|segment| segment.data_range(endian, data, address, size).ok()?)?;
    let strings = StringTable::new(bytes, 0, bytes.len() as u64);
    for entry in entries {
        let Some(text) = entry.val32(endian).and_then(|at| strings.get(at).ok()) else { continue };
        match entry.tag(endian) {
            DT_NEEDED => needs.libraries.push(String::from_utf8_lossy(text).into_owned()),
            DT_RPATH | DT_RUNPATH => needs.search.extend(directories(text, origin)),
            _ => {}
        }
    }
    Some(needs)
}

fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(std::ffi::OsString::from_vec(bytes.to_vec()))
}

fn directories(text: &[u8], origin: &Path) -> Vec<PathBuf> {
    let text = String::from_utf8_lossy(text);
    let origin = origin.to_string_lossy();
    let directories =
        text.split(':').map(|part| part.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin));
    directories.map(PathBuf::from).filter(|directory| directory.is_absolute()).collect()
}

/// Returns where the dynamic loader's cache says that a library is: all of them, for every kind of processor.
///
/// The format is glibc's, "glibc-ld.so.cache1.1" (`sysdeps/generic/dl-cache.h`).
pub(crate) fn find_in_cache(cache: &[u8], library: &str) -> Vec<PathBuf> {
    const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
    const HEADER: usize = 48;
    const ENTRY: usize = 24;
    let Some(start) = cache.windows(MAGIC.len()).position(|window| window == MAGIC) else {
        return Vec::new();
    };
    let cache = &cache[start..];
    let number = |at: usize| Some(u32::from_ne_bytes(cache.get(at..at + 4)?.try_into().ok()?) as usize);
    let text = |at: usize| cache.get(at..)?.split(|byte| *byte == 0).next();
    let entries = number(MAGIC.len()).unwrap_or_default().min(cache.len() / ENTRY);
    let mut found = Vec::new();
    for at in (0..entries).map(|entry| HEADER + entry * ENTRY) {
        let (Some(key), Some(value)) = (number(at + 4), number(at + 8)) else { break };
        if text(key) == Some(library.as_bytes()) {
            found.extend(text(value).map(path_of));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_this_machine_says_what_it_needs() {
        let Ok(Program::Machine(needs)) = program(&std::env::current_exe().expect("a path")) else {
            panic!("this test is a program");
        };
        assert!(needs.libraries.iter().any(|name| name.starts_with("libc.")), "{needs:?}");
        assert!(needs.loader.expect("a loader").is_absolute());
    }

    #[test]
    fn scripts_name_their_interpreter() {
        let python =
            Program::Script { interpreter: "/usr/bin/env".into(), argument: Some("python3".to_owned()) };
        assert_eq!(script(b" /usr/bin/env python3 \nimport os"), python);
        assert_eq!(script(b"/bin/sh\n"), Program::Script { interpreter: "/bin/sh".into(), argument: None });
        assert_eq!(script(b"sh\n"), Program::Unknown);
    }

    #[test]
    fn foreign_bytes_are_no_program() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        for bytes in [
            &b""[..],
            b"\x7fELF",
            b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\xff\xff\xff\xff",
            b"MZ",
        ] {
            std::fs::write(file.path(), bytes).expect("written");
            assert_eq!(program(file.path()).expect("read"), Program::Unknown);
        }
    }

    #[test]
    fn a_cut_cache_is_read_as_far_as_it_goes() {
        let Ok(cache) = std::fs::read("/etc/ld.so.cache") else { return };
        assert!(!find_in_cache(&cache, "libc.so.6").is_empty());
        for end in (0..cache.len()).step_by(997) {
            find_in_cache(&cache[..end], "libc.so.6");
        }
    }
}
