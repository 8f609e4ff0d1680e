//! Names as a file system that folds them would see them.

/// Returns the names of a path, folded: what HFS+, NTFS, and ext4 with case folding take for the same name becomes
/// the same text (CVE-2014-9390, CVE-2019-1352, CVE-2025-59944).
pub(crate) fn folded_names(path: &[u8]) -> Vec<String> {
    // NTFS takes a backslash for a separator, too.
    path.split(|byte| matches!(byte, b'/' | b'\\')).map(folded).filter(|name| !name.is_empty()).collect()
}

fn folded(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    // What follows a colon names a stream of the same file on NTFS.
    let name = name.split(':').next().unwrap_or_default();
    let is_plain = name.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    let mut lower = if is_plain { name.to_ascii_lowercase() } else { folded_slowly(name) };
    // Windows drops dots and spaces at the end.
    lower.truncate(lower.trim_end_matches(['.', ' ']).len());
    lower
}

fn folded_slowly(name: &str) -> String {
    // HFS+ and ext4 drop characters that cannot be seen.
    let seen = name.chars().filter(|c| !model::text::is_hidden(*c));
    // By way of capital letters, because `ſ` and `K` fold to `s` and `k` only so.
    seen.flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}
