//! Profiles as they hold: a built-in one, the operator's changes, every ceiling and every minimum.

use std::collections::BTreeMap;

use model::{Level, LimitKind, Limits, Profile};

use super::key::{LimitSetting, MinimumSetting, ProfileSetting, limit_key};
use super::nearest;
use super::origin::{Origin, Sourced};
use super::resolved::{Settings, SettingsError};
use crate::args::LimitOptions;

/// A profile as it holds, with where each part came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedProfile {
    /// The profile.
    pub profile: Profile,
    /// Where each key of it came from; what is not here is built in.
    pub origins: BTreeMap<&'static str, Origin>,
}

/// What a command line asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The profile with the options on it.
    pub profile: Profile,
    /// In what it is wider than the profile that holds. Whether that is given is for policy to decide.
    pub wider: Vec<LimitKind>,
}

impl Settings {
    /// Returns the profile of this name, or the default one.
    ///
    /// # Errors
    /// When there is no such profile.
    pub fn profile(&self, name: Option<&str>) -> Result<ResolvedProfile, SettingsError> {
        let (name, origin) = match name {
            Some(name) => (name, Origin::Flag("--profile")),
            None => (self.default_profile.value.as_str(), self.default_profile.origin.clone()),
        };
        let mut resolved = self.defined(name).ok_or_else(|| self.unknown_profile(name, origin))?;
        for ceiling in &self.ceiling {
            resolved.tighten(ceiling);
        }
        for minimum in &self.minimum {
            resolved.demand(minimum);
        }
        Ok(resolved)
    }

    /// Returns the names of all profiles, the built-in ones first.
    pub fn profile_names(&self) -> Vec<String> {
        let built_in = Profile::built_in().into_iter().map(|profile| profile.name);
        built_in.chain(self.profiles.keys().cloned()).collect()
    }

    /// Returns the profile as it is defined, without ceilings and minimums.
    fn defined(&self, name: &str) -> Option<ResolvedProfile> {
        let built_in = |name: &str| Profile::built_in().into_iter().find(|profile| profile.name == name);
        let Some(parts) = self.profiles.get(name) else {
            return built_in(name).map(|profile| ResolvedProfile { profile, origins: BTreeMap::new() });
        };
        let base = parts.iter().rev().find_map(|part| match &part.value {
            ProfileSetting::BasedOn(base) => built_in(base),
            _ => None,
        });
        let mut profile = base.unwrap_or_else(Profile::default_profile);
        name.clone_into(&mut profile.name);
        let mut resolved = ResolvedProfile { profile, origins: BTreeMap::new() };
        for part in parts {
            resolved.change(part);
        }
        Some(resolved)
    }

    fn unknown_profile(&self, name: &str, origin: Origin) -> SettingsError {
        let known = self.profile_names();
        let nearest = nearest(name, known.iter().map(String::as_str)).map(str::to_owned);
        SettingsError::UnknownProfile { name: name.to_owned(), origin, nearest }
    }
}

impl ResolvedProfile {
    fn change(&mut self, part: &Sourced<ProfileSetting>) {
        let key = match &part.value {
            ProfileSetting::BasedOn(_) => "based_on",
            ProfileSetting::Limit(limit) => {
                limit.set(&mut self.profile.limits);
                key_of(limit)
            }
            ProfileSetting::Minimum(minimum) => {
                let (least, level, key) = self.least(*minimum);
                *least = level;
                key
            }
            ProfileSetting::UnlistedProgram(answer) => {
                self.profile.unlisted_program = *answer;
                "unlisted_program"
            }
        };
        self.origins.insert(key, part.origin.clone());
    }

    fn tighten(&mut self, ceiling: &Sourced<LimitSetting>) {
        if ceiling.value.tighten(&mut self.profile.limits) {
            self.origins.insert(key_of(&ceiling.value), ceiling.origin.clone());
        }
    }

    fn demand(&mut self, minimum: &Sourced<MinimumSetting>) {
        let (least, level, key) = self.least(minimum.value);
        if level > *least {
            *least = level;
            self.origins.insert(key, minimum.origin.clone());
        }
    }

    fn least(&mut self, minimum: MinimumSetting) -> (&mut Level, Level, &'static str) {
        match minimum {
            MinimumSetting::MemoryAndCpu(level) => {
                (&mut self.profile.cgroup_limits, level, "minimum.memory_and_cpu")
            }
            MinimumSetting::DiskAndFiles(level) => {
                (&mut self.profile.disk_limits, level, "minimum.disk_and_files")
            }
            MinimumSetting::Reads(level) => (&mut self.profile.reads, level, "minimum.reads"),
        }
    }

    /// Returns the origin of one key of the profile.
    pub fn origin(&self, key: &str) -> &Origin {
        self.origins.get(key).unwrap_or(&Origin::BuiltIn)
    }

    /// Puts the options of a command line on the profile.
    pub fn asked(&self, options: &LimitOptions) -> Asked {
        let mut profile = self.profile.clone();
        let LimitOptions { memory, cpus, pids, disk, files, timeout, output_limit } = options.clone();
        let settings = [
            memory.map(LimitSetting::Memory),
            cpus.map(|cpus| LimitSetting::Millicpus(cpus.0)),
            pids.map(LimitSetting::Processes),
            disk.map(LimitSetting::Disk),
            files.map(LimitSetting::Files),
            timeout.map(LimitSetting::WallTime),
            output_limit.map(LimitSetting::Output),
        ];
        settings.into_iter().flatten().for_each(|setting| setting.set(&mut profile.limits));
        let wider = profile.limits.wider_than(&self.profile.limits);
        Asked { profile, wider }
    }
}

/// Returns the key that sets what a setting sets.
fn key_of(limit: &LimitSetting) -> &'static str {
    let kind = match limit {
        LimitSetting::Memory(_) => LimitKind::Memory,
        LimitSetting::Processes(_) => LimitKind::Processes,
        LimitSetting::Millicpus(_) => LimitKind::Cpu,
        LimitSetting::WallTime(_) => LimitKind::WallTime,
        LimitSetting::Disk(_) => LimitKind::Disk,
        LimitSetting::Files(_) => LimitKind::Files,
        LimitSetting::DiskMode(_) => return "disk_mode",
        LimitSetting::Output(_) => LimitKind::Output,
        LimitSetting::OpenFiles(_) => LimitKind::OpenFiles,
        LimitSetting::FileSize(_) => LimitKind::FileSize,
    };
    limit_key(kind)
}

/// Writes a limit the way `config explain` shows it.
pub(super) fn limit_text(limits: &Limits, key: &str) -> String {
    use model::limits::DiskMode;
    use model::units::display_duration;
    match key {
        "memory" => limits.memory.to_string(),
        "processes" => limits.processes.to_string(),
        "cpus" => match limits.millicpus {
            Some(millicpus) => crate::args::Millicpus(millicpus).to_string(),
            None => "all but a reserve".to_owned(),
        },
        "wall_time" => display_duration(limits.wall_time),
        "disk" => limits.disk.to_string(),
        "files" => limits.files.to_string(),
        "disk_mode" => match limits.disk_mode {
            DiskMode::Memory => "memory".to_owned(),
            DiskMode::Disk => "disk".to_owned(),
        },
        "output" => limits.output.to_string(),
        "open_files" => limits.open_files.to_string(),
        _ => limits.file_size.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model::Bytes;

    use super::super::environment::Environment;
    use super::super::file::SettingsFile;
    use super::super::origin::Source;
    use super::*;
    use crate::args::Millicpus;

    fn settings(text: &str) -> Settings {
        let file = SettingsFile::parse(text, Source::Operator("f.toml".into())).expect("is right");
        Settings::resolve(vec![file], &Environment::from([("HOME", "/h")]), Vec::new()).expect("resolves")
    }

    fn repository(text: &str) -> SettingsFile {
        let source =
            Source::Repository { commit: Some("0123456789abcdef".to_owned()), path: ".fumehood.toml".into() };
        SettingsFile::parse(text, source).expect("is right")
    }

    #[test]
    fn a_profile_of_one_s_own_starts_from_a_built_in_one() {
        let settings = settings(
            "[profile.ci]\nmemory = \"1GiB\"\nbased_on = \"strict\"\n[profile.ci.minimum]\nmemory_and_cpu = \"hard\"\n",
        );
        let ci = settings.profile(Some("ci")).expect("exists");
        assert_eq!((ci.profile.name.as_str(), ci.profile.limits.memory), ("ci", Bytes::gib(1)));
        assert_eq!(ci.profile.limits.processes, Profile::strict().limits.processes);
        assert_eq!(ci.profile.cgroup_limits, Level::Hard);
        assert_eq!(ci.origin("memory").to_string(), "f.toml:2:1");
        assert_eq!(ci.origin("processes"), &Origin::BuiltIn);
    }

    #[test]
    fn a_ceiling_holds_for_every_profile() {
        let settings = settings("[ceiling]\nmemory = \"1GiB\"\n[minimum]\nmemory_and_cpu = \"hard\"\n");
        for name in ["default", "strict", "strict-build"] {
            let resolved = settings.profile(Some(name)).expect("exists");
            assert!(resolved.profile.limits.memory <= Bytes::gib(1), "{name}");
            assert_eq!(resolved.profile.cgroup_limits, Level::Hard, "{name}");
        }
        assert_eq!(settings.profile(Some("strict")).expect("exists").origin("memory"), &Origin::BuiltIn);
    }

    #[test]
    fn a_repository_tightens_and_never_widens() {
        let operator = settings("[ceiling]\nmemory = \"1GiB\"\n[minimum]\ndisk_and_files = \"hard\"\n");
        let before = operator.profile(None).expect("exists").profile;
        let after = operator.tightened_by(repository(
            "[ceiling]\nmemory = \"64GiB\"\nwall_time = \"5m\"\n[minimum]\ndisk_and_files = \"absent\"\nmemory_and_cpu = \"hard\"\n",
        ));
        let resolved = after.profile(None).expect("exists");
        assert!(resolved.profile.limits.wider_than(&before.limits).is_empty());
        assert_eq!(resolved.profile.limits.wall_time, Duration::from_secs(300));
        assert_eq!(
            (resolved.profile.disk_limits, resolved.profile.cgroup_limits),
            (Level::Hard, Level::Hard)
        );
        assert_eq!(resolved.origin("wall_time").to_string(), "0123456789ab:.fumehood.toml:3:1");
    }

    #[test]
    fn options_that_ask_for_more_are_named() {
        let resolved = settings("").profile(Some("strict")).expect("exists");
        let options = LimitOptions {
            memory: Some(Bytes::gib(1)),
            cpus: Some(Millicpus(500)),
            timeout: Some(Duration::from_secs(5)),
            ..LimitOptions::default()
        };
        let asked = resolved.asked(&options);
        assert_eq!(asked.wider, [LimitKind::Memory]);
        assert_eq!(asked.profile.limits.millicpus, Some(500));
        assert_eq!(asked.profile.limits.wall_time, Duration::from_secs(5));
    }
}
