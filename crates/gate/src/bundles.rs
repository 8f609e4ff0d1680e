//! Bundles: the policies that ship with the product. Each is one text, put together from files, so that what two of them
//! say alike stands in one place and anybody can read the whole of each.

/// The bundle that decides when no other is named.
pub const DEFAULT_BUNDLE: &str = concat!(
    include_str!("../policies/default.cedar"),
    include_str!("../policies/reach.cedar"),
    include_str!("../policies/reach-what-is-named.cedar")
);

/// Returns the text of a bundle that adds groups of rules to those of the default one.
macro_rules! default_and {
    ($about:literal $(, $group:literal)+) => {
        concat!(
            $about,
            "\n\n",
            include_str!("../policies/default.cedar"),
            $(include_str!(concat!("../policies/", $group))),+
        )
    };
}

/// The bundles, by their names: the default one, the one for people who want to be asked, and the six levels at which
/// more and more is left to agents.
pub const BUNDLES: [(&str, &str); 8] = [
    ("default", DEFAULT_BUNDLE),
    (
        "cautious",
        default_and!(
            "// The bundle `cautious`: the rules of `default`, and at the end what it adds to them.",
            "reach.cedar",
            "reach-asks.cedar",
            "cautious.cedar"
        ),
    ),
    ("level-1", include_str!("../policies/levels/read-only.cedar")),
    (
        "level-2",
        default_and!(
            "// The bundle `level-2`, restricted test repositories: `default`, and at the end what it takes away.",
            "levels/apply-asks-first.cedar",
            "levels/nothing-outside.cedar",
            "levels/connects-nothing.cedar",
            "levels/installs-nothing.cedar",
            "levels/controls-ask.cedar",
            "levels/databases-read.cedar"
        ),
    ),
    (
        "level-3",
        default_and!(
            "// The bundle `level-3`, controlled builds and tests: `default`, and at the end what it takes away.",
            "levels/apply-asks-first.cedar",
            "levels/nothing-outside.cedar",
            "levels/connect-asks.cedar",
            "reach.cedar",
            "reach-asks.cedar",
            "levels/new-packages-ask.cedar",
            "levels/controls-ask.cedar",
            "levels/databases-ask.cedar"
        ),
    ),
    (
        "level-4",
        default_and!(
            "// The bundle `level-4`, writes with a yes: `default`, and at the end what it takes away.",
            "levels/apply-asks-first.cedar",
            "levels/outside-asks.cedar",
            "levels/connect-asks.cedar",
            "reach.cedar",
            "reach-asks.cedar",
            "levels/new-packages-ask.cedar",
            "levels/controls-ask.cedar",
            "levels/databases-ask.cedar"
        ),
    ),
    (
        "level-5",
        default_and!(
            "// The bundle `level-5`, selected dependencies and network: `default`, and at the end what it takes away.",
            "levels/apply-asks-first.cedar",
            "levels/outside-asks.cedar",
            "reach.cedar",
            "reach-what-is-named.cedar",
            "levels/other-controls-ask.cedar",
            "levels/databases-ask.cedar"
        ),
    ),
    (
        "level-6",
        default_and!(
            "// The bundle `level-6`, bounded automation: `default`, and at the end what it takes away.",
            "levels/outside-asks.cedar",
            "reach.cedar",
            "reach-what-is-named.cedar",
            "levels/other-controls-ask.cedar",
            "levels/schemas-ask.cedar"
        ),
    ),
];
