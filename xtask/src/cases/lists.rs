//! The two committed lists beside the cases: which cases may be "not applicable", and which layer holds which case.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use model::Layer;

/// As whom cases are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// As root.
    Root,
    /// As an ordinary user.
    User,
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Root => "root",
            Self::User => "user",
        })
    }
}

/// Cases that may be "not applicable", with the reason.
#[derive(Debug, Default)]
pub struct Allowed(BTreeMap<(String, Who), String>);

impl Allowed {
    /// Reads lines of `CASE root|user|any REASON`.
    ///
    /// # Errors
    /// When a line has no reason or names nobody.
    pub fn parse(text: &str) -> Result<Self> {
        let mut allowed = BTreeMap::new();
        for line in lines(text) {
            let (case, rest) = word(line).with_context(|| format!("`{line}` has no second word"))?;
            let (who, reason) = word(rest).with_context(|| format!("`{line}` gives no reason"))?;
            let who: &[Who] = match who {
                "root" => &[Who::Root],
                "user" => &[Who::User],
                "any" => &[Who::Root, Who::User],
                other => bail!("`{other}` is none of root, user and any, in `{line}`"),
            };
            allowed.extend(who.iter().map(|who| ((case.to_owned(), *who), reason.to_owned())));
        }
        Ok(Self(allowed))
    }

    /// Returns the reason for which a case may be "not applicable".
    pub fn reason(&self, case: &str, who: Who) -> Option<&str> {
        self.0.get(&(case.to_owned(), who)).map(String::as_str)
    }

    /// Returns the cases that are named.
    pub fn cases(&self) -> BTreeSet<&str> {
        self.0.keys().map(|(case, _)| case.as_str()).collect()
    }
}

/// What holds a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holder {
    /// A layer of the sandbox.
    Layer(Layer),
    /// The policy: the action is refused before it starts.
    Policy,
    /// The inspection before changes are written to the host's directory.
    Apply,
}

/// What holds each case; several holders all have to be on.
#[derive(Debug, Default)]
pub struct Holders(BTreeMap<String, Vec<Holder>>);

impl Holders {
    /// Reads lines of `CASE HOLDER[,HOLDER…] REASON`.
    ///
    /// # Errors
    /// When a line names a layer that there is not, gives no reason, or repeats a case.
    pub fn parse(text: &str) -> Result<Self> {
        let mut holders = BTreeMap::new();
        for line in lines(text) {
            let (case, rest) = word(line).with_context(|| format!("`{line}` has no second word"))?;
            let (names, _reason) = word(rest).with_context(|| format!("`{line}` gives no reason"))?;
            let named = names.split(',').map(holder).collect::<Result<Vec<_>>>()?;
            if holders.insert(case.to_owned(), named).is_some() {
                bail!("`{case}` has two lines");
            }
        }
        Ok(Self(holders))
    }

    /// Returns what holds a case; nothing for ordinary work.
    pub fn of(&self, case: &str) -> &[Holder] {
        self.0.get(case).map_or(&[], Vec::as_slice)
    }

    /// Returns the cases that are named.
    pub fn cases(&self) -> BTreeSet<&str> {
        self.0.keys().map(String::as_str).collect()
    }
}

/// Reads both lists from the folder above the cases.
///
/// # Errors
/// When one is missing or has a line that is not understood.
pub fn read(tests: &Path) -> Result<(Allowed, Holders)> {
    let text = |name: &str| {
        fs::read_to_string(tests.join(name)).with_context(|| format!("cannot read `tests/{name}`"))
    };
    let allowed =
        Allowed::parse(&text("cases-allowed-na.txt")?).context("in `tests/cases-allowed-na.txt`")?;
    let holders = Holders::parse(&text("cases-layers.txt")?).context("in `tests/cases-layers.txt`")?;
    Ok((allowed, holders))
}

fn holder(name: &str) -> Result<Holder> {
    match name {
        "policy" => Ok(Holder::Policy),
        "apply" => Ok(Holder::Apply),
        layer => serde_json::from_value(layer.into())
            .map(Holder::Layer)
            .with_context(|| format!("there is no layer `{layer}`")),
    }
}

/// Returns the lines that say something.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Splits the first word off; nothing when nothing follows it.
fn word(text: &str) -> Option<(&str, &str)> {
    text.split_once(char::is_whitespace).map(|(first, rest)| (first, rest.trim_start()))
}

#[cfg(test)]
mod tests {
    use model::LimitKind;

    use super::*;

    #[test]
    fn a_reason_is_demanded() {
        assert!(Allowed::parse("PX-01 any").is_err());
        assert!(Allowed::parse("PX-01 somebody because").is_err());
        let allowed = Allowed::parse("# why\n\nPX-01 user because of this\n").expect("it has a reason");
        assert_eq!(allowed.reason("PX-01", Who::User), Some("because of this"));
        assert_eq!(allowed.reason("PX-01", Who::Root), None);
    }

    #[test]
    fn holders_are_layers_limits_policy_and_apply() {
        let holders =
            Holders::parse("RS-02 disk,apply a reason\nPR-01 pid-namespace another").expect("they exist");
        assert_eq!(holders.of("RS-02"), [Holder::Layer(Layer::Limit(LimitKind::Disk)), Holder::Apply]);
        assert_eq!(holders.of("PR-01"), [Holder::Layer(Layer::PidNamespace)]);
        assert!(holders.of("WK-01").is_empty());
    }

    #[test]
    fn a_layer_that_there_is_not_is_refused() {
        assert!(Holders::parse("PR-01 magic a reason").is_err());
        assert!(Holders::parse("PR-01 root a reason\nPR-01 root a reason").is_err());
    }
}
