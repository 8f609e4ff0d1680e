//! Replaces a part of a document between two comments, and leaves the rest as people wrote it.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Replaces what stands between `<!-- NAME:start -->` and `<!-- NAME:end -->` in a file.
///
/// # Errors
/// When the file cannot be read or written, or has no such comments.
pub fn replace_in(path: &Path, name: &str, text: &str) -> Result<()> {
    let old = fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let (before, _, after) = cut(&old, name).with_context(|| no_place(path, name))?;
    let text = text.trim_end();
    let new = format!("{before}<!-- {name}:start -->\n{text}\n<!-- {name}:end -->{after}");
    fs::write(path, new).with_context(|| format!("cannot write `{}`", path.display()))
}

/// Returns what stands between `<!-- NAME:start -->` and `<!-- NAME:end -->` in a file.
///
/// # Errors
/// When the file cannot be read, or has no such comments.
pub fn read_in(path: &Path, name: &str) -> Result<String> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let (_, between, _) = cut(&text, name).with_context(|| no_place(path, name))?;
    Ok(between.to_owned())
}

/// Returns what stands before, between and behind the comments.
fn cut<'a>(text: &'a str, name: &str) -> Option<(&'a str, &'a str, &'a str)> {
    let (before, rest) = text.split_once(&format!("<!-- {name}:start -->"))?;
    let (between, after) = rest.split_once(&format!("<!-- {name}:end -->"))?;
    Some((before, between, after))
}

fn no_place(path: &Path, name: &str) -> String {
    format!(
        "`{}` has no place for `{name}`: two comments `<!-- {name}:start -->` and `<!-- {name}:end -->`",
        path.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_stands_between_the_comments_changes() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("a.md");
        let old = "a\n<!-- one:start -->\nold\n<!-- one:end -->\nb\n<!-- two:start --><!-- two:end -->\n";
        fs::write(&file, old).expect("it is written");
        assert_eq!(read_in(&file, "one").expect("there are comments"), "\nold\n");
        replace_in(&file, "one", "new\n").expect("there are comments");
        let new = "a\n<!-- one:start -->\nnew\n<!-- one:end -->\nb\n<!-- two:start --><!-- two:end -->\n";
        assert_eq!(fs::read_to_string(&file).expect("it is there"), new);
        replace_in(&file, "one", "new").expect("there are comments");
        assert_eq!(fs::read_to_string(&file).expect("it is there"), new, "and the same again");
        let error = replace_in(&file, "three", "x").expect_err("there are none");
        assert!(error.to_string().contains("no place for `three`"), "{error}");
    }
}
