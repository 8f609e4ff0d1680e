//! Variables of the environment that change nothing but how things look.

/// Names that no program takes a path, a program or an option from.
const HARMLESS: [&str; 19] = [
    "CI",
    "COLUMNS",
    "FORCE_COLOR",
    "LANG",
    "LC_ALL",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LC_NUMERIC",
    "LC_TIME",
    "LINES",
    "NO_COLOR",
    "PYTHONUNBUFFERED",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "SOURCE_DATE_EPOCH",
    "TERM",
    "GIT_OPTIONAL_LOCKS",
    "GIT_TERMINAL_PROMPT",
];

/// Names that scripts use for what they go through, and no program looks at.
const OF_LOOPS: [&str; 10] =
    ["dir", "entry", "file", "item", "line", "name", "number", "path_name", "test", "word"];

/// Tells whether a program does the same whatever this variable holds.
pub(crate) fn is_harmless(name: &str) -> bool {
    HARMLESS.contains(&name)
}

/// Tells whether a script may give a value to this variable without changing what programs do.
pub(crate) fn is_of_a_script(name: &str) -> bool {
    let letter = name.len() == 1 && name.bytes().all(|byte| byte.is_ascii_lowercase());
    letter || OF_LOOPS.contains(&name) || is_harmless(name)
}
