//! `[retention]`: how long what is kept stays, by classes, and how much of it.

use std::collections::BTreeMap;
use std::time::Duration;

use model::units::display_duration;
use model::{Bytes, EventClass, KeptClass};

use super::explain::{Row, about, row};
use super::key::Key;
use super::origin::{Origin, Sourced};
use super::value::Form;

/// One thing that can be set about retention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetentionSetting {
    /// What tasks made: layers, outputs and artifacts.
    Work(Duration),
    /// How long a class stays.
    Age(KeptClass, Duration),
    /// How many bytes of a class stay.
    Most(KeptClass, Bytes),
    /// How long what failed, was denied or tried what is not allowed stays at least.
    Incidents(Duration),
    /// How old events of the record have to be for `audit prune`.
    Events(EventClass, Duration),
}

/// How long what is kept stays, with where each value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetentionSettings {
    ages: BTreeMap<KeptClass, Sourced<Duration>>,
    most: BTreeMap<KeptClass, Sourced<Bytes>>,
    incidents: Sourced<Duration>,
    events: BTreeMap<EventClass, Sourced<Duration>>,
}

const DAY: Duration = Duration::from_secs(86_400);

/// How long each class stays where nobody says anything else.
const DEFAULTS: [(KeptClass, u32); 7] = [
    (KeptClass::Layers, 30),
    (KeptClass::Outputs, 30),
    (KeptClass::Artifacts, 30),
    (KeptClass::Overwritten, 90),
    (KeptClass::Contexts, 90),
    (KeptClass::Transcripts, 90),
    (KeptClass::Caches, 30),
];
const DEFAULT_INCIDENTS: u32 = 90;

macro_rules! age {
    ($name:literal, $class:ident, $about:literal) => {
        Key {
            name: $name,
            form: Form::Time,
            about: $about,
            make: |value| value.time().map(|age| RetentionSetting::Age(KeptClass::$class, age)),
        }
    };
}

macro_rules! most {
    ($name:literal, $class:ident, $about:literal) => {
        Key {
            name: $name,
            form: Form::Size,
            about: $about,
            make: |value| value.size().map(|bytes| RetentionSetting::Most(KeptClass::$class, bytes)),
        }
    };
}

macro_rules! events {
    ($name:literal, $class:ident, $about:literal) => {
        Key {
            name: $name,
            form: Form::Time,
            about: $about,
            make: |value| value.time().map(|age| RetentionSetting::Events(EventClass::$class, age)),
        }
    };
}

/// Keys of `[retention]`.
pub(super) const RETENTION: &[Key<RetentionSetting>] = &[
    age!(
        "layers",
        Layers,
        "How long layers stay once no task that can go on stands on them; checked out commits too."
    ),
    age!("outputs", Outputs, "How long what commands printed stays after their task is closed."),
    age!("artifacts", Artifacts, "How long artifacts stay after their task is closed."),
    age!(
        "overwritten",
        Overwritten,
        "How long `undo --applied` stays possible: what `apply` overwrote is kept for it."
    ),
    age!(
        "contexts",
        Contexts,
        "How long what models were sent stays after the tasks that it was for are closed."
    ),
    age!("transcripts", Transcripts, "How long the conversations of agents stay after their task is closed."),
    age!("caches", Caches, "How long what can be made again stays."),
    Key {
        name: "incidents",
        form: Form::Time,
        about: "How long what failed, was denied or tried what is not allowed stays at least, of every class but caches.",
        make: |value| value.time().map(RetentionSetting::Incidents),
    },
    most!("layers_max", Layers, "How much of layers stays; the oldest that nobody needs go first."),
    most!("outputs_max", Outputs, "How much of what commands printed stays; the oldest go first."),
    most!("artifacts_max", Artifacts, "How much of artifacts stays; the oldest go first."),
    most!("contexts_max", Contexts, "How much of what models were sent stays; the oldest goes first."),
    most!("caches_max", Caches, "How much of caches stays; the oldest go first."),
    events!(
        "record_requests",
        Requests,
        "After how long `audit prune` takes out of the record what was asked for."
    ),
    events!(
        "record_runs",
        Runs,
        "After how long `audit prune` takes out of the record what runs did and changed."
    ),
    events!(
        "record_network",
        Network,
        "After how long `audit prune` takes out of the record what was tried over the network."
    ),
];

impl RetentionSettings {
    pub(super) fn built_in() -> Self {
        let days = |days: u32| Sourced::built_in(DAY * days);
        Self {
            ages: DEFAULTS.map(|(class, number)| (class, days(number))).into(),
            most: BTreeMap::new(),
            incidents: days(DEFAULT_INCIDENTS),
            events: BTreeMap::new(),
        }
    }

    pub(super) fn add(&mut self, setting: RetentionSetting, origin: Origin) {
        match setting {
            RetentionSetting::Work(value) => {
                for class in [KeptClass::Layers, KeptClass::Outputs, KeptClass::Artifacts] {
                    self.ages.insert(class, Sourced { value, origin: origin.clone() });
                }
            }
            RetentionSetting::Age(class, value) => {
                self.ages.insert(class, Sourced { value, origin });
            }
            RetentionSetting::Most(class, value) => {
                self.most.insert(class, Sourced { value, origin });
            }
            RetentionSetting::Incidents(value) => self.incidents = Sourced { value, origin },
            RetentionSetting::Events(class, value) => {
                self.events.insert(class, Sourced { value, origin });
            }
        }
    }

    /// Returns what the engine goes by; `age` and `incidents` stand before what was set.
    pub fn resolved(&self, age: Option<Duration>, incidents: Option<Duration>) -> engine::Retention {
        let of = |class| self.ages.get(&class).map(|age| age.value);
        let layers = of(KeptClass::Layers).unwrap_or(Duration::MAX);
        let mut retention = engine::Retention::of(age.unwrap_or(layers))
            .with_incidents(incidents.unwrap_or(self.incidents.value));
        if age.is_none() {
            for (class, age) in &self.ages {
                retention = retention.with_age(*class, age.value);
            }
        }
        for (class, most) in &self.most {
            retention = retention.with_most(*class, most.value.get());
        }
        retention
    }

    /// Returns how old events of each class have to be for a prune; those of which nothing is said stay for good.
    pub fn events(&self) -> BTreeMap<EventClass, Duration> {
        self.events.iter().map(|(class, age)| (*class, age.value)).collect()
    }

    /// Returns how long what failed, was denied or tried what is not allowed stays at least.
    pub fn incidents(&self) -> Duration {
        self.incidents.value
    }

    pub(super) fn rows(&self) -> Vec<Row> {
        let one = |key: &str, value: &str, origin: &Origin| {
            row(&format!("retention.{key}"), value, origin, about(RETENTION, key))
        };
        let ages = self.ages.iter().map(|(class, age)| (class.name(), age));
        let ages = ages.chain([("incidents", &self.incidents)]);
        let ages = ages.map(|(key, age)| one(key, &display_duration(age.value), &age.origin));
        let bounded = RETENTION.iter().filter_map(|key| key.name.strip_suffix("_max"));
        let most = bounded.map(|class| {
            let key = format!("{class}_max");
            match self.most.iter().find(|(bounded, _)| bounded.name() == class) {
                Some((_, most)) => one(&key, &most.value.to_string(), &most.origin),
                None => one(&key, "unbounded", &Origin::BuiltIn),
            }
        });
        let events = EventClass::ALL.map(|class| {
            let key = format!("record_{class}");
            match self.events.get(&class) {
                Some(age) => one(&key, &display_duration(age.value), &age.origin),
                None => one(&key, "for good", &Origin::BuiltIn),
            }
        });
        ages.chain(most).chain(events).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::environment::Environment;
    use super::super::file::SettingsFile;
    use super::super::origin::Source;
    use super::super::{Settings, rows};
    use super::*;

    fn settings(text: &str, variable: Option<&str>) -> Settings {
        let file = SettingsFile::parse(text, Source::Operator("f.toml".into())).expect("is right");
        let environment = match variable {
            Some(age) => Environment::from([("HOME", "/h"), ("FUMEHOOD_RETENTION", age)]),
            None => Environment::from([("HOME", "/h")]),
        };
        Settings::resolve(vec![file], &environment, Vec::new()).expect("resolves")
    }

    #[test]
    fn each_class_has_an_age_of_its_own_and_nothing_is_lost_soon() {
        let built_in = settings("", None).retention.resolved(None, None);
        for (class, _) in DEFAULTS {
            assert!(built_in.age(class) >= DAY * 30, "{class}");
            assert_eq!(built_in.most(class), None, "{class}");
        }
        assert!(built_in.incidents() >= DAY * 90);
        assert!(settings("", None).retention.events().is_empty(), "the record stays whole");
        let text = "[retention]\nrecord_runs = \"400d\"\n";
        assert_eq!(settings(text, None).retention.events(), [(EventClass::Runs, DAY * 400)].into());
        let text = "[retention]\noutputs = \"3d\"\nincidents = \"1d\"\nlayers_max = \"2GiB\"\n";
        let set = settings(text, None).retention.resolved(None, None);
        assert_eq!((set.age(KeptClass::Outputs), set.age(KeptClass::Layers)), (DAY * 3, DAY * 30));
        assert_eq!((set.incidents(), set.most(KeptClass::Layers)), (DAY, Some(2 << 30)));
        let now = settings(text, None).retention.resolved(Some(DAY), None);
        assert_eq!(
            (now.age(KeptClass::Contexts), now.incidents()),
            (DAY, DAY),
            "an age that is given holds for all"
        );
    }

    #[test]
    fn one_age_is_that_of_what_tasks_made() {
        for settings in [settings("retention = \"2d\"\n", None), settings("", Some("2d"))] {
            let retention = settings.retention.resolved(None, None);
            assert_eq!(
                (retention.age(KeptClass::Outputs), retention.age(KeptClass::Contexts)),
                (DAY * 2, DAY * 90)
            );
        }
    }

    #[test]
    fn every_key_is_explained() {
        let rows = rows(&settings("[retention]\ncaches_max = \"1GiB\"\n", None)).expect("resolves");
        for key in RETENTION {
            let name = format!("retention.{}", key.name);
            assert!(rows.iter().any(|row| row.key == name), "{name}");
        }
        let found = rows.iter().find(|row| row.key == "retention.caches_max").expect("is there");
        assert_eq!((found.value.as_str(), found.origin.as_str()), ("1 GiB", "f.toml:2:1"));
    }
}
