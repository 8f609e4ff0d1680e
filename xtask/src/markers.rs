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
    let new = replace(&old, name, text).with_context(|| {
        format!(
            "`{}` has no place for `{name}`: two comments `<!-- {name}:start -->` and `<!-- {name}:end -->`",
            path.display()
        )
    })?;
    fs::write(path, new).with_context(|| format!("cannot write `{}`", path.display()))
}

fn replace(old: &str, name: &str, text: &str) -> Option<String> {
    let (before, rest) = old.split_once(&format!("<!-- {name}:start -->"))?;
    let (_, after) = rest.split_once(&format!("<!-- {name}:end -->"))?;
    Some(format!("{before}<!-- {name}:start -->\n{}\n<!-- {name}:end -->{after}", text.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_stands_between_the_comments_changes() {
        let old = "a\n<!-- one:start -->\nold\n<!-- one:end -->\nb\n<!-- two:start --><!-- two:end -->\n";
        let new = replace(old, "one", "new\n").expect("there are comments");
        assert_eq!(
            new,
            "a\n<!-- one:start -->\nnew\n<!-- one:end -->\nb\n<!-- two:start --><!-- two:end -->\n"
        );
        assert_eq!(replace(&new, "one", "new").as_deref(), Some(new.as_str()));
        assert_eq!(replace(old, "three", "x"), None);
    }
}
