//! What each verb does: ask the engine, show the answer, say how it ended.

mod agent;
mod ancestry;
mod answer;
mod apply;
mod approvals;
mod artifacts;
mod audit;
mod batch;
mod bwrap;
mod commits;
mod config;
mod context;
mod credential;
mod demo;
mod deps;
mod diff;
mod doctor;
mod elsewhere;
mod gateway;
mod history;
mod hold;
mod intake;
mod keep;
mod launch;
mod look;
mod mutant;
mod net;
mod order;
mod partial;
mod policy;
mod provider;
mod prune;
mod repository;
mod reproduce;
mod run;
mod secrets;
mod signals;
mod sink;
mod stop;
mod task;
mod terminal;
mod user;
mod vault;

use clap::CommandFactory;

use crate::args::{
    ApprovalsVerb, ArtifactsVerb, AuditVerb, Cli, ConfigVerb, CredentialVerb, DepsVerb, HoldVerb, NetVerb,
    PolicyVerb, TaskVerb, Verb,
};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::Console;
use crate::settings::Environment;
use context::Context;

/// Does what was asked for.
///
/// # Errors
/// When the program itself fails; a denial, or a command that fails, is an exit.
pub(crate) fn dispatch(cli: Cli, console: &Console, environment: Environment) -> Result<Exit, CliError> {
    let context = |global| Context::new(global, console, environment.clone());
    let global = &cli.global;
    match cli.verb {
        Verb::Run(args) => run::run(&context(global)?, &args),
        Verb::Shell(args) => run::shell(&context(global)?, &args),
        Verb::Agent(args) => agent::agent(global, console, environment.clone(), &args),
        Verb::AgentProcess => Ok(agent::process()),
        Verb::GatewayProcess => Ok(gateway::process(console)),
        Verb::Demo(args) => demo::demo(global, console, &environment, &args),
        Verb::Bwrap(args) => bwrap::bwrap(&context(global)?, &args),
        Verb::Task(args) => match args.verb {
            TaskVerb::New(args) => intake::new(&context(global)?, &args),
            TaskVerb::List(args) => task::list(&context(global)?, &args),
            TaskVerb::Show(args) => task::show(&context(global)?, &args.which),
            TaskVerb::Resume(args) => agent::resume(&context(global)?, &args),
            TaskVerb::Stop(args) => task::stop(&context(global)?, &args.which),
            TaskVerb::Freeze(args) => task::freeze(&context(global)?, &args),
        },
        Verb::Stop(args) => stop::stop(&context(global)?, &args),
        Verb::Reproduce(args) => reproduce::reproduce(&context(global)?, &args),
        Verb::Doctor(args) => doctor::doctor(&context(global)?, &args),
        Verb::Apply(args) => apply::apply(&context(global)?, &args),
        Verb::Diff(args) => diff::diff(&context(global)?, &args),
        Verb::Artifacts(args) => match args.verb {
            ArtifactsVerb::List(args) => artifacts::list(&context(global)?, &args),
            ArtifactsVerb::Get(args) => artifacts::get(&context(global)?, &args),
        },
        Verb::Deps(args) => match args.verb {
            DepsVerb::List(args) => deps::list(&context(global)?, &args),
            DepsVerb::WhoUsed(args) => deps::who_used(&context(global)?, &args),
            DepsVerb::Sbom(args) => deps::sbom(&context(global)?, &args),
        },
        Verb::Discard(args) => history::discard(&context(global)?, &args),
        Verb::Undo(args) => history::undo(&context(global)?, &args),
        Verb::Fork(args) => history::fork(&context(global)?, &args),
        Verb::Hold(args) => match args.verb {
            HoldVerb::Add(args) => hold::add(&context(global)?, &args),
            HoldVerb::List => hold::list(&context(global)?),
            HoldVerb::Lift(args) => hold::lift(&context(global)?, &args),
        },
        Verb::Gc(args) => keep::gc(&context(global)?, &args),
        Verb::Log(args) => look::log(&context(global)?, &args),
        Verb::Show(args) => look::show(&context(global)?, &args),
        Verb::Why(args) => look::why(&context(global)?, &args),
        Verb::Net(args) => match args.verb {
            NetVerb::Log(args) => net::log(&context(global)?, &args),
            NetVerb::Explain(args) => net::explain(&context(global)?, &args),
            NetVerb::Test(args) => net::test(&context(global)?, &args),
        },
        Verb::Credential(args) => match args.verb {
            CredentialVerb::List(_) => credential::list(&context(global)?),
            CredentialVerb::Show(args) => credential::show(&context(global)?, &args),
            CredentialVerb::Revoke(args) => credential::revoke(&context(global)?, &args),
            CredentialVerb::Rotate(args) => credential::rotate(&context(global)?, &args),
        },
        Verb::Audit(args) => match args.verb {
            AuditVerb::Show(args) => audit::show(&context(global)?, &args),
            AuditVerb::Verify(args) => audit::verify(&context(global)?, &args),
            AuditVerb::Export(args) => audit::export(&context(global)?, &args),
            AuditVerb::Checkpoint(args) => audit::checkpoint(&context(global)?, &args),
            AuditVerb::Prune(args) => prune::prune(&context(global)?, &args),
            AuditVerb::Key => audit::key(&context(global)?),
        },
        Verb::Policy(args) => match args.verb {
            PolicyVerb::Decide(args) => policy::decide(&context(global)?, &args),
            PolicyVerb::Check(args) => policy::check(&context(global)?, &args),
            PolicyVerb::Test(args) => policy::test(&context(global)?, &args),
            PolicyVerb::Explain(args) => policy::explain(&context(global)?, &args),
            PolicyVerb::Prove(args) => policy::prove(&context(global)?, &args),
            PolicyVerb::Diff(args) => policy::diff(&context(global)?, &args),
            PolicyVerb::Replay(args) => policy::replay(&context(global)?, &args),
            PolicyVerb::Suggest(args) => policy::suggest(&context(global)?, &args),
            PolicyVerb::Show(args) => policy::show(&context(global)?, &args),
        },
        Verb::Approvals(args) => match args.verb {
            ApprovalsVerb::List(args) => approvals::list(&context(global)?, &args),
            ApprovalsVerb::Show(args) => approvals::show(&context(global)?, &args),
            ApprovalsVerb::Approve(args) => approvals::approve(&context(global)?, &args),
            ApprovalsVerb::Deny(args) => approvals::deny(&context(global)?, &args),
            ApprovalsVerb::Revoke(args) => approvals::revoke(&context(global)?, &args),
            ApprovalsVerb::Export(args) => elsewhere::export(&context(global)?, &args),
            ApprovalsVerb::Sign(args) => elsewhere::sign(&context(global)?, &args),
            ApprovalsVerb::Stats => approvals::stats(&context(global)?),
            ApprovalsVerb::Render(args) => policy::render_request(&context(global)?, &args),
        },
        Verb::Config(args) => match args.verb {
            ConfigVerb::Explain(args) => config::explain(&context(global)?, &args),
            ConfigVerb::Check(args) => config::check(console, &environment, &args),
            ConfigVerb::Schema => Ok(config::schema(console)),
        },
        Verb::Completions(args) => {
            let mut script = Vec::new();
            clap_complete::generate(args.shell, &mut Cli::command(), "fumehood", &mut script);
            console.print_bytes(&script);
            Ok(Exit::Success)
        }
    }
}

/// Returns the long help of a verb.
fn help_of(verb: &str) -> String {
    let mut command = Cli::command();
    command.build();
    let verb = command.find_subcommand_mut(verb);
    verb.map(|verb| verb.render_long_help().to_string()).unwrap_or_default()
}
