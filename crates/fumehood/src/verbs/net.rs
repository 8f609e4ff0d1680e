//! `net`: what was tried over the network, what was refused, and what may be reached.

use std::collections::BTreeSet;

use engine::Engine;
use engine::store::StoredAction;
use model::egress::{EgressRule, HostPattern, PathPattern, Protocol, RuleError};
use model::grant::Network;
use model::text::escape;

use super::context::Context;
use super::look::{choose_action, of_stored};
use super::order::reached;
use super::policy;
use super::task::choose;
use crate::args::{NetExplainArgs, NetLogArgs, NetTestArgs};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::shape::{
    ActionDocument, NetExplainDocument, NetLogDocument, NetLogRow, NetPolicy, NetTestDocument, PolicyAnswer,
};
use crate::output::{Console, render};
use crate::settings::Settings;

/// Lists what the actions of a task tried to reach.
pub(super) fn log(context: &Context<'_>, args: &NetLogArgs) -> Result<Exit, CliError> {
    let engine = context.engine()?;
    let (task, actions) = match &args.action {
        Some(named) => {
            let action = engine.store().read(|reader| reader.find_action(named.as_str()))?;
            (action.task.clone(), vec![action])
        }
        None => {
            let task = choose(context, &engine, &args.which)?.id;
            let actions = engine.store().read(|reader| reader.actions(&task))?;
            (task, actions)
        }
    };
    let (mut attempts, dropped) = tried(context.console, &engine, &actions)?;
    attempts.retain(|row| !args.refused || row.tried.attempt.is_refused());
    if let Some(number) = args.number {
        attempts.drain(..attempts.len().saturating_sub(number as usize));
    }
    let document = NetLogDocument { task, attempts, dropped };
    context.console.answer(&document, |paint| render::net_log(&document, paint));
    Ok(Exit::Success)
}

/// Returns what actions tried, oldest first, and how much more there was.
fn tried(
    console: &Console,
    engine: &Engine,
    actions: &[StoredAction],
) -> Result<(Vec<NetLogRow>, u64), CliError> {
    let (mut rows, mut dropped) = (Vec::new(), 0);
    for action in actions {
        let document = of_stored(engine, action)?;
        say_pruned(console, &document);
        let Some(network) = document.network() else { continue };
        dropped += network.attempts_dropped + network.untold;
        let row = |tried: &_| NetLogRow { action: action.id.clone(), tried: Clone::clone(tried) };
        rows.extend(network.attempts.iter().map(row));
    }
    rows.sort_by_key(|row| row.tried.attempt.at);
    Ok((rows, dropped))
}

/// Says that what an action tried is not on the record any more.
fn say_pruned(console: &Console, document: &ActionDocument) {
    if document.is_pruned("network-attempts") {
        console.say(&format!(
            "fumehood: what {} tried over the network was pruned from the record",
            document.action
        ));
    }
}

/// Explains what an action could not reach.
pub(super) fn explain(context: &Context<'_>, args: &NetExplainArgs) -> Result<Exit, CliError> {
    let engine = context.engine()?;
    let action = choose_action(context, &engine, args.action.as_ref(), args.workspace.as_deref())?;
    let settings = &context.settings;
    let of_action = of_stored(&engine, &action)?;
    say_pruned(context.console, &of_action);
    let document = NetExplainDocument::of(&of_action, |rule| naming(settings, rule));
    context.console.answer(&document, |paint| render::net_explain(&document, paint));
    Ok(Exit::Success)
}

/// Returns the names of the tables that have a rule for all of this, as `--allow-net` takes them.
fn naming(settings: &Settings, rule: &EgressRule) -> Vec<String> {
    let covers = |rules: Option<BTreeSet<EgressRule>>| {
        rules.is_some_and(|rules| rules.iter().any(|own| lets(own, rule)))
    };
    let networks = settings.networks.keys().filter(|name| covers(settings.network(name))).cloned();
    // A table that does not say enough ended the start already.
    let of_registry = |name: &&String| covers(settings.registry(name).ok().flatten());
    let registries = settings.registries.keys().filter(of_registry).map(|name| format!("registry:{name}"));
    networks.chain(registries).collect()
}

/// Tells whether a rule lets all of another: also one that says where its names may lead, or what holds for it beside.
fn lets(own: &EgressRule, asked: &EgressRule) -> bool {
    let EgressRule { credential, registry, .. } = own.clone();
    own.covers(&EgressRule { credential, registry, ..asked.clone() })
}

/// Says whether something may be reached.
pub(super) fn test(context: &Context<'_>, args: &NetTestArgs) -> Result<Exit, CliError> {
    let asked = asked(args)?;
    let workspace = context.workspace(args.workspace.as_deref())?;
    let named: BTreeSet<EgressRule> = (context.settings.reachable()?.into_iter())
        .filter(|table| table.is_for(&workspace.path))
        .flat_map(|table| table.rules)
        .collect();
    let rules = match args.allow_net.as_slice() {
        [] => named.clone(),
        given => reached(&context.settings, given)?,
    };
    let rule = rules.iter().find(|rule| lets(rule, &asked));
    let policy = match rule {
        Some(rule) => Some(answered(context, args, rule, named)?),
        None => None,
    };
    let document = NetTestDocument {
        needs: rule.is_none().then(|| asked.to_string()),
        asked: asked.to_string(),
        rule: rule.map(ToString::to_string),
        named_by: rule.map(|rule| naming(&context.settings, rule)).unwrap_or_default(),
        looks_into_tls: rule.is_some_and(|rule| Network::Egress([rule.clone()].into()).looks_into_tls()),
        policy,
    };
    context.console.answer(&document, |paint| render::net_test(&document, paint));
    Ok(Exit::answer(document.policy.as_ref().is_some_and(|policy| policy.answer == PolicyAnswer::Allow)))
}

fn answered(
    context: &Context<'_>,
    args: &NetTestArgs,
    rule: &EgressRule,
    named: BTreeSet<EgressRule>,
) -> Result<NetPolicy, CliError> {
    let document = policy::reaching(context, args.workspace.as_deref(), rule.clone(), named)?;
    Ok(NetPolicy {
        answer: document.answer,
        reason: document.reason_code,
        advice: document.advice,
        rules: document.matched_rules,
    })
}

/// Returns the rule for exactly what is to be reached.
fn asked(args: &NetTestArgs) -> Result<EgressRule, CliError> {
    let cannot = |why: String| CliError::Cannot(format!("`{}`: {why}", escape(&args.url)));
    let bare = args.url.split(['?', '#']).next().unwrap_or_default();
    let rule: EgressRule = bare.parse().map_err(|error: RuleError| cannot(error.to_string()))?;
    if let HostPattern::Below(_) = rule.host {
        return Err(cannot("it names many hosts: name one of them".to_owned()));
    }
    if rule.protocol == Protocol::Tcp {
        return Ok(rule);
    }
    let path = rule
        .path
        .map_or_else(|| "/".parse::<PathPattern>().map_err(|error| cannot(error.to_string())), Ok)?;
    Ok(EgressRule { path: Some(path), methods: [args.method.clone()].into(), ..rule })
}
