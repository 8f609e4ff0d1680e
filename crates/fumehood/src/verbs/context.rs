//! What every verb starts from: the settings, the caller, and the engine when it is needed.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use engine::{Engine, Workspace};
use model::Timestamp;
use model::action::Principal;
use model::egress::{Begin, Bounds, Ranges, SigningAuthority};
use sandbox::Identity;
use sandbox::view::wanted_variables;

use super::provider;
use super::secrets::secrets;
use super::user::{self, User};
use crate::args::Global;
use crate::error::CliError;
use crate::output::Console;
use crate::settings::{Accounts, Environment, Setting, Settings};

/// What every verb starts from.
pub(super) struct Context<'c> {
    pub(super) console: &'c Console,
    pub(super) environment: Environment,
    pub(super) settings: Settings,
    /// The current directory, as the kernel knows it.
    pub(super) cwd: PathBuf,
    pub(super) user: User,
}

/// Who commands run as when the caller is root and the workspace is root's, and no setting says otherwise: an id that
/// Debian and systemd leave free, so that no other process of the host has it.
const RUN_AS: u32 = 64_500;

/// Our own file, also when it has been replaced meanwhile.
const OURSELVES: &str = "/proc/self/exe";
/// The verb by which it is the gateway of a sandbox. Nobody types it.
const GATEWAY: &str = "__gateway";
/// The file of the state directory with what signs for clients inside.
const AUTHORITY: &str = "authority.json";

impl<'c> Context<'c> {
    pub(super) fn new(
        global: &Global,
        console: &'c Console,
        environment: Environment,
    ) -> Result<Self, CliError> {
        Self::with_flags(global, console, environment, Vec::new())
    }

    /// Takes further settings from the command line.
    pub(super) fn with_flags(
        global: &Global,
        console: &'c Console,
        environment: Environment,
        mut flags: Vec<(Setting, &'static str)>,
    ) -> Result<Self, CliError> {
        let cwd = std::env::current_dir()
            .map_err(CliError::system("tell the current directory: is it still there?"))?;
        if let Some(dir) = &global.state_dir {
            flags.push((Setting::StateDir(cwd.join(dir)), "--state-dir"));
        }
        let settings = Settings::load(&environment, flags)?;
        let user = user::caller(&environment)?;
        Ok(Self { console, environment, settings, cwd, user })
    }

    /// Opens the state directory.
    pub(super) fn engine(&self) -> Result<Engine, CliError> {
        self.engine_under(self.settings.state_dir.value.clone(), self.policy())
    }

    /// Opens a state directory under these rules.
    pub(super) fn engine_under(
        &self,
        state_dir: PathBuf,
        policy: engine::PolicySource,
    ) -> Result<Engine, CliError> {
        let wanted = wanted_variables();
        let wanted = wanted
            .into_iter()
            .filter_map(|name| Some((OsString::from(name), self.environment.get(name)?.to_owned())));
        let run_as = self.settings.run_as.as_ref().map_or(RUN_AS, |id| id.value);
        let config = engine::Config {
            state_dir,
            policy,
            helper_profile: self.settings.profile(Some("default"))?.profile,
            run_as: Identity { uid: run_as, gid: run_as },
            user: self.user.name.clone(),
            account: self.user.account,
            owners: self.user.accounts(),
            egress: self.settings.reachable()?,
            registries: self.settings.registries()?,
            credentials: self.credentials(),
            canaries: self.settings.canaries.iter().flat_map(|one| one.value.iter().cloned()).collect(),
            gateway: Some(gateway(&self.settings)),
            roles: self.roles(),
            answers: self.settings.answers.as_ref().map(|place| place.value.clone()),
            home: self.user.home.clone(),
            environment: wanted.collect(),
            secrets: secrets(&self.environment),
            anchor: self.anchor(),
            service_manager: self
                .environment
                .get("XDG_RUNTIME_DIR")
                .map(|place| Path::new(place).join("bus")),
        };
        let engine = Engine::open(config)?;
        for settled in engine.settled() {
            self.console.say(&format!("fumehood: {settled}"));
        }
        Ok(engine)
    }

    /// Returns the credentials of the settings. None of them is read for that.
    fn credentials(&self) -> Vec<engine::Credential> {
        let roots = roots(&self.settings);
        let tables = self.settings.credential_tables().into_iter();
        tables.map(|table| provider::credential(table, &self.environment, &roots)).collect()
    }

    /// Returns where signed heads of the record are kept elsewhere. That one is not must be heard, also by who wants quiet.
    fn anchor(&self) -> Option<engine::Anchor> {
        let lines = self.console.lines.clone();
        let tell = move |text: &str| {
            // When standard error is gone, there is nobody to tell, and it is on the record.
            let _ = lines.say(&format!("{text}\n"));
        };
        self.settings.anchor_file.as_ref().map(|file| engine::Anchor::new(file.value.clone(), tell))
    }

    /// Returns who has which role. Most settings name none, and then nobody has to be looked up.
    fn roles(&self) -> engine::Roles {
        if self.settings.roles.is_empty() {
            return engine::Roles::default();
        }
        engine::Roles::new(self.settings.roles(&Accounts::read(), self.user.account))
    }

    /// Returns the rules that decide. Where they cannot be had everything is denied, and what was recorded can still be
    /// looked at.
    pub(super) fn policy(&self) -> engine::PolicySource {
        self.settings
            .policy()
            .unwrap_or_else(|error| engine::PolicySource::Unusable(CliError::from(error).line()))
    }

    /// Returns the workspace that is named, or the one around the current directory.
    pub(super) fn workspace(&self, named: Option<&Path>) -> Result<Workspace, CliError> {
        Ok(Workspace::find(named, &self.cwd, &self.user.home, &self.settings.state_dir.value)?)
    }

    /// Returns who asks: a person, by the name that the system knows them by.
    pub(super) fn principal(&self) -> Principal {
        Principal::User(self.user.name.clone())
    }
}

/// Returns how the gateway of a sandbox is started: this very program, once more.
fn gateway(settings: &Settings) -> engine::GatewayProgram {
    engine::GatewayProgram {
        program: OURSELVES.into(),
        arguments: vec![GATEWAY.into()],
        begin: Begin { ranges: Ranges::default(), resolvers: Vec::new(), bounds: Bounds::default() },
        authority,
        roots: roots(settings),
    }
}

/// Returns the files with further roots.
fn roots(settings: &Settings) -> Vec<PathBuf> {
    settings.roots.iter().flat_map(|one| one.value.iter().cloned()).collect()
}

/// Returns what signs for clients inside, where a gateway looks into TLS. It is made when it is first needed.
fn authority(state: &Path, now: Timestamp) -> Result<SigningAuthority, String> {
    let authority = egress::tls::Authority::of_machine(&state.join(AUTHORITY), now);
    authority.map(SigningAuthority::from).map_err(|error| error.to_string())
}
