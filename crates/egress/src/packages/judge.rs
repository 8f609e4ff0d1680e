//! What may come: decided by the settings, the lockfiles and what was used before.

use std::collections::BTreeSet;
use std::time::Duration;

use model::egress::{Checksum, Lockfile, NamePattern, Registry, RegistryKind, Unlisted};
use model::text::escape;
use model::units::{Timestamp, display_duration};

use super::Known;
use super::alike::alike;
use super::release::Release;
use crate::Refusal;

/// Decides whether packages of a name may come at all.
pub(crate) fn name(registry: &Registry, known: &Known, name: &str) -> Result<(), Refusal> {
    let Registry { name: own, kind, .. } = registry;
    let named = |list: &BTreeSet<NamePattern>| list.iter().any(|pattern| pattern.matches(name));
    if named(&registry.deny) {
        return refuse("package-denied", format!("the settings deny `{name}` (`deny` of [registry.{own}])"));
    }
    if let Some((_, only)) = registry.elsewhere.iter().find(|(pattern, _)| pattern.matches(name)) {
        return refuse(
            "package-private",
            format!("`{name}` is private: only the registry `{only}` may give it"),
        );
    }
    if !registry.allow.is_empty() && !named(&registry.allow) {
        let why = format!("`{name}` is not among the names that may come (`allow` of [registry.{own}])");
        return refuse("package-not-allowed", why);
    }
    if known.uses(*kind, name) || named(&registry.known) || named(&registry.allow) {
        return Ok(());
    }
    let listed = registry.known.iter().chain(&registry.allow).filter_map(NamePattern::only);
    let needs = format!("a person who looked at it adds it to `known` of [registry.{own}]");
    // The names of Debian are given by its own people, and many of them are near each other: `libfoo1`, `libfoo2`.
    let told_apart = *kind != RegistryKind::Debian;
    let mut used = known.names(*kind).chain(listed).filter(|_| told_apart);
    if let Some(like) = used.find(|used| alike(used, name)) {
        return refuse(
            "package-look-alike",
            format!("`{name}` looks like `{like}`, which is used here: {needs}"),
        );
    }
    match registry.new_names {
        Unlisted::Allow => Ok(()),
        Unlisted::Refuse => refuse("package-new-name", format!("nobody here has used `{name}`: {needs}")),
    }
}

/// Decides whether a file of a release may come, before anything of it does.
pub(crate) fn release(
    registry: &Registry,
    known: &Known,
    (name, release): (&str, &Release),
    now: Timestamp,
) -> Result<(), Refusal> {
    let shown = format!("{name} {}", escape(&release.version));
    locked(registry, known, (name, release), &shown)?;
    age(registry, release, &shown, now)?;
    let runs = release.runs.as_ref().filter(|_| !may_run(registry, name));
    if let Some(runs) = runs {
        return Err(script(registry, &shown, runs));
    }
    match release.checksums.is_empty()
        && known.locked(registry.kind, name, &release.version).is_none_or(BTreeSet::is_empty)
    {
        true => refuse("package-no-digest", format!("nothing says what the file of {shown} must be")),
        false => Ok(()),
    }
}

/// Tells whether what a release runs when it is installed may come.
pub(crate) fn may_run(registry: &Registry, name: &str) -> bool {
    registry.scripts.iter().any(|pattern| pattern.matches(name))
}

/// Says that something runs when it is installed, and may not come for that.
pub(crate) fn script(registry: &Registry, shown: &str, runs: &str) -> Refusal {
    let own = &registry.name;
    let why =
        format!("{shown} runs {runs} when it is installed; `scripts` of [registry.{own}] would allow it");
    Refusal::new("package-install-script", why)
}

/// Says that a file is not what it must be.
pub(crate) fn differs(shown: &str, says: &str) -> Refusal {
    Refusal::new("package-digest", format!("the file of {shown} is not the one that {says}"))
}

fn locked(
    registry: &Registry,
    known: &Known,
    (name, release): (&str, &Release),
    shown: &str,
) -> Result<(), Refusal> {
    let Some(locked) = known.locked(registry.kind, name, &release.version) else {
        let enforced = registry.lockfile == Lockfile::Enforce && known.has_lock(registry.kind);
        return match enforced {
            true => refuse(
                "package-not-locked",
                format!(
                    "no lockfile of the workspace names {shown}: `lockfile = \"record\"` in [registry.{}] would let it come",
                    registry.name
                ),
            ),
            false => Ok(()),
        };
    };
    if contradict(locked, &release.checksums) {
        return Err(differs(shown, "the lockfile names"));
    }
    Ok(())
}

/// Tells whether two lists have digests of one algorithm, and none in common.
fn contradict(one: &BTreeSet<Checksum>, other: &BTreeSet<Checksum>) -> bool {
    let shared = one.iter().any(|own| other.iter().any(|other| own.algorithm == other.algorithm));
    shared && one.is_disjoint(other)
}

fn age(registry: &Registry, release: &Release, shown: &str, now: Timestamp) -> Result<(), Refusal> {
    let (own, cooldown) = (&registry.name, Duration::from_secs(registry.cooldown_s));
    if cooldown.is_zero() {
        return Ok(());
    }
    let Some(published) = release.published else {
        return match registry.unknown_age {
            Unlisted::Allow => Ok(()),
            Unlisted::Refuse => refuse(
                "package-age-unknown",
                format!(
                    "the registry does not tell when {shown} was published: `unknown_age = \"allow\"` in [registry.{own}] would let it come"
                ),
            ),
        };
    };
    // What is published in the future has no age.
    let age = now.since(published);
    if age >= cooldown {
        return Ok(());
    }
    let hours = Duration::from_secs(age.as_secs() / 3600 * 3600);
    let ago = if hours.is_zero() { "less than an hour".to_owned() } else { display_duration(hours) };
    let why = format!(
        "{shown} was published {ago} ago, and releases wait {} (`cooldown` of [registry.{own}])",
        display_duration(cooldown)
    );
    refuse("package-too-fresh", why)
}

fn refuse(reason: &'static str, why: String) -> Result<(), Refusal> {
    Err(Refusal::new(reason, why))
}

#[cfg(test)]
mod tests {
    use model::egress::Locked;

    use super::*;

    const HOUR: u64 = 3_600_000_000_000;

    fn registry() -> Registry {
        Registry::at("own", RegistryKind::Cargo, "https://index.test".parse().expect("a place"))
    }

    fn patterns(all: &[&str]) -> BTreeSet<NamePattern> {
        all.iter().map(|one| one.parse().expect("a pattern")).collect()
    }

    fn sum(byte: u8) -> Checksum {
        format!("sha256:{}", format!("{byte:02x}").repeat(32)).parse().expect("a checksum")
    }

    fn known() -> Known {
        let mut known = Known::default();
        known.use_before(RegistryKind::Cargo, ["serde".to_owned()]);
        known
    }

    fn locking(checksums: &[u8]) -> Known {
        let (name, version) = ("serde".to_owned(), "1.0.0".to_owned());
        let checksums = checksums.iter().map(|byte| sum(*byte)).collect();
        let mut known = known();
        known.lock([Locked { kind: RegistryKind::Cargo, name, version, checksums }]);
        known
    }

    fn of(version: &str, hours: Option<u64>) -> Release {
        Release {
            version: version.to_owned(),
            file: None,
            at: None,
            checksums: BTreeSet::from([sum(1)]),
            beside: BTreeSet::new(),
            published: hours.map(|hours| Timestamp::from_nanos(hours * HOUR)),
            runs: None,
        }
    }

    fn says(registry: &Registry, known: &Known, of: &Release) -> Result<(), &'static str> {
        release(registry, known, ("serde", of), Timestamp::from_nanos(1000 * HOUR))
            .map_err(|refusal| refusal.reason)
    }

    #[test]
    fn names_come_when_they_are_used_or_a_person_named_them() {
        let own = registry();
        let says = |registry: &Registry, text: &str| {
            name(registry, &known(), text).map_err(|refusal| refusal.reason)
        };
        assert_eq!(says(&own, "serde"), Ok(()));
        assert_eq!(says(&own, "serbe"), Err("package-look-alike"));
        assert_eq!(says(&own, "tokio"), Err("package-new-name"));
        let open = Registry { new_names: Unlisted::Allow, ..own.clone() };
        assert_eq!((says(&open, "tokio"), says(&open, "serbe")), (Ok(()), Err("package-look-alike")));
        let known = Registry { known: patterns(&["serbe", "tokio*"]), ..own.clone() };
        assert_eq!((says(&known, "serbe"), says(&known, "tokio-util")), (Ok(()), Ok(())));
        let denied = Registry { deny: patterns(&["serde"]), known: patterns(&["serde"]), ..own.clone() };
        assert_eq!(says(&denied, "serde"), Err("package-denied"));
        let allowed = Registry { allow: patterns(&["tokio"]), ..own.clone() };
        assert_eq!((says(&allowed, "tokio"), says(&allowed, "serde")), (Ok(()), Err("package-not-allowed")));
        let elsewhere = Registry {
            elsewhere: [("corp-*".parse().expect("a pattern"), "inner".to_owned())].into(),
            known: patterns(&["*"]),
            ..own
        };
        assert_eq!(
            (says(&elsewhere, "corp-x"), says(&elsewhere, "corporate")),
            (Err("package-private"), Ok(()))
        );
    }

    #[test]
    fn a_release_waits_and_what_has_no_age_is_decided_by_the_settings() {
        let (own, known) = (registry(), known());
        assert_eq!(says(&own, &known, &of("1.0.0", Some(928))), Ok(()));
        for fresh in [929, 1000, 2000] {
            assert_eq!(says(&own, &known, &of("1.0.0", Some(fresh))), Err("package-too-fresh"), "{fresh}");
        }
        assert_eq!(says(&own, &known, &of("1.0.0", None)), Err("package-age-unknown"));
        let lax = Registry { unknown_age: Unlisted::Allow, ..own.clone() };
        assert_eq!(says(&lax, &known, &of("1.0.0", None)), Ok(()));
        let none = Registry { cooldown_s: 0, ..own };
        assert_eq!(says(&none, &known, &of("1.0.0", Some(1000))), Ok(()));
    }

    #[test]
    fn a_lockfile_names_what_may_come_and_what_it_must_be() {
        let own = registry();
        assert_eq!(says(&own, &locking(&[1]), &of("1.0.0", Some(1))), Ok(()));
        assert_eq!(says(&own, &locking(&[2, 1]), &of("1.0.0", Some(1))), Ok(()));
        assert_eq!(says(&own, &locking(&[2]), &of("1.0.0", Some(1))), Err("package-digest"));
        assert_eq!(says(&own, &locking(&[1]), &of("1.0.1", Some(1))), Err("package-not-locked"));
        let record = Registry { lockfile: Lockfile::Record, ..own };
        assert_eq!(says(&record, &locking(&[1]), &of("1.0.1", Some(1))), Ok(()));
        assert_eq!(says(&record, &locking(&[2]), &of("1.0.0", Some(1))), Err("package-digest"));
        let bare = Release { checksums: BTreeSet::new(), ..of("1.0.0", Some(1)) };
        assert_eq!(says(&record, &locking(&[1]), &bare), Ok(()));
        assert_eq!(says(&record, &locking(&[]), &bare), Err("package-no-digest"));
        assert_eq!(says(&record, &known(), &bare), Err("package-no-digest"));
    }

    #[test]
    fn what_runs_when_it_is_installed_comes_only_when_it_is_named() {
        let own = registry();
        let runs = Release { runs: Some("`postinstall`".to_owned()), ..of("1.0.0", Some(1)) };
        assert_eq!(says(&own, &known(), &runs), Err("package-install-script"));
        let named = Registry { scripts: patterns(&["serde"]), ..own };
        assert_eq!(says(&named, &known(), &runs), Ok(()));
    }
}
