//! Our own data files: fields, then a reason after `#`.

/// One line that says something.
pub(crate) struct Line<'a> {
    /// What stands before the reason, parted at blanks.
    pub(crate) fields: Vec<&'a str>,
    /// Why the line is there.
    pub(crate) reason: &'a str,
}

/// Returns the lines of a list without blank ones and comments.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')).map(|line| {
        let (fields, reason) = line.split_once(" # ").unwrap_or((line, ""));
        Line { fields: fields.split_whitespace().collect(), reason: reason.trim() }
    })
}
