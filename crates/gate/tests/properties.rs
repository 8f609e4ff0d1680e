//! Properties: what is claimed changes nothing, another rule never widens, and what is given is never more than
//! what was asked for.

mod common;

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use common::*;
use gate::{DEFAULT_BUNDLE, Decision, Facts, Gate, LayerOf, Policy};
use model::action::Principal;
use model::grant::{Network, WorkspaceAccess};
use model::{Action, ActionRequest, Bytes, Grant, Profile, Tool};
use proptest::prelude::*;

static DEFAULT: LazyLock<Gate> = LazyLock::new(|| Gate::new(Policy::default_bundle().expect("usable")));

fn principals() -> impl Strategy<Value = Principal> {
    prop_oneof![Just(user()), Just(agent()), "[a-z]{1,8}".prop_map(Principal::Agent)]
}

fn tools() -> impl Strategy<Value = Tool> {
    let names = "[a-z]{1,4}(/[a-z]{1,4}){0,2}";
    prop_oneof![
        prop::collection::vec("[a-z./-]{1,6}", 1..4)
            .prop_map(|argv| run(&argv.iter().map(String::as_str).collect::<Vec<_>>())),
        names.prop_map(|name| Tool::Read { path: path(&name) }),
        names.prop_map(|name| write(&name)),
        prop::collection::vec(names, 1..3)
            .prop_map(|names| patch(&names.iter().map(String::as_str).collect::<Vec<_>>())),
        Just(Tool::List { path: None }),
        Just(Tool::Search { pattern: "x".to_owned(), path: None }),
    ]
}

fn other_action() -> model::ActionId {
    model::ActionId::from_random([9; 10])
}

fn grants() -> impl Strategy<Value = Grant> {
    let access = prop_oneof![Just(WorkspaceAccess::ReadOnly), Just(WorkspaceAccess::ReadWrite)];
    (any::<[bool; 2]>(), any::<bool>(), any::<bool>(), access, 1..9u64, 1..5000u32, 1..4000u64).prop_map(
        |([host, joined], terminal, credential, workspace, memory, processes, seconds)| {
            let mut grant = Grant { workspace, terminal, ..Grant::under(Profile::default_profile()) };
            grant.network = if host { Network::Host } else { Network::Loopback };
            if joined {
                grant.network = Network::Joined(other_action());
            }
            grant.shown_credentials.extend(credential.then(|| path(".env")));
            grant.profile.limits.memory = Bytes::gib(memory);
            grant.profile.limits.processes = processes;
            grant.profile.limits.wall_time = Duration::from_secs(seconds);
            grant
        },
    )
}

/// An action as it was asked for, and facts about it.
fn cases() -> impl Strategy<Value = (ActionRequest, Grant, Facts)> {
    let class =
        prop_oneof![Just([].as_slice()), Just(["tests"].as_slice()), Just(["ci-files", "tests"].as_slice())];
    (principals(), tools(), grants(), class).prop_map(|(principal, tool, grant, names)| {
        let facts = facts_with(&tool, names);
        (request(principal, tool), grant, facts)
    })
}

/// One more rule, of any kind that the schema allows.
fn forbids() -> impl Strategy<Value = String> {
    let principal = prop_oneof![Just("principal"), Just("principal is User"), Just("principal is Agent")];
    let scope = prop_oneof![
        Just((r#"action == Action::"run""#, r#"context.program.in_workspace"#)),
        Just((r#"action == Action::"run""#, r#"context.request.workspace == "read-write""#)),
        Just((r#"action == Action::"write""#, r#"context.classes.contains("tests")"#)),
        Just((r#"action in [Action::"read", Action::"write"]"#, r#"resource.name like "a*""#)),
        Just((r#"action == Action::"use-network""#, "true")),
        Just((r#"action == Action::"widen-limit""#, "context.asked > 6442450944")),
        Just((r#"action == Action::"use-terminal""#, "true")),
        Just((r#"action == Action::"show-credential""#, "true")),
        Just(("action", r#"!context.approvals.contains("person")"#)),
    ];
    let remedy = prop_oneof![
        Just(""),
        Just(r#"@approval("person")"#),
        Just(r#"@obligation("read-only")"#),
        Just(r#"@obligation("narrow-network")"#),
        Just(r#"@obligation("narrow-limits")"#),
        Just(r#"@obligation("narrow-terminal")"#),
    ];
    (principal, scope, remedy).prop_map(|(principal, (action, condition), remedy)| {
        format!(
            r#"@id("added") @reason("added") @advice("no") @person_may_allow("false") {remedy}
               forbid ({principal}, {action}, resource) when {{ {condition} }};"#
        )
    })
}

fn given(decision: &Decision) -> Option<&Grant> {
    match decision {
        Decision::Allow(authorization) | Decision::Narrow(authorization) => Some(authorization.grant()),
        Decision::RequireApproval(_) | Decision::Deny(_) => None,
    }
}

/// Whatever `tighter` gives, `wider` gives as well when it is asked for just that.
fn never_wider(
    tighter: &Gate,
    wider: &Gate,
    case: (ActionRequest, Grant, Facts),
) -> Result<(), TestCaseError> {
    let (request, grant, facts) = case;
    let decision = tighter.decide(parse(request.clone(), grant), &facts);
    if let Some(given) = given(&decision) {
        let again = wider.decide(parse(request, given.clone()), &facts);
        prop_assert!(matches!(again, Decision::Allow(_)), "{:?}", again.record());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_claimed_purpose_never_changes_a_decision(case in cases(), purpose in any::<String>()) {
        let (request, grant, facts) = case;
        let plain = DEFAULT.decide(parse(request.clone(), grant.clone()), &facts);
        let claiming = DEFAULT.decide(parse(ActionRequest { purpose: Some(purpose), ..request }, grant), &facts);
        prop_assert_eq!(plain.record(), claiming.record());
        prop_assert_eq!(plain.event(), claiming.event());
    }

    #[test]
    fn another_forbid_never_widens(case in cases(), forbid in forbids()) {
        let tighter = Policy::parse(&format!("{DEFAULT_BUNDLE}\n{forbid}")).expect("fits the schema");
        never_wider(&Gate::new(tighter), &DEFAULT, case)?;
    }

    #[test]
    fn a_repository_never_widens(case in cases(), forbid in forbids()) {
        let repository = Arc::new(Policy::of_repository(&forbid).expect("fits the schema"));
        never_wider(&DEFAULT.tightened_by(LayerOf::Repository, repository), &DEFAULT, case)?;
    }

    #[test]
    fn nothing_is_given_that_was_not_asked_for(case in cases()) {
        let (request, asked, facts) = case;
        let action: Action = parse(request, asked.clone());
        let decision = DEFAULT.decide(action, &facts);
        if let Some(given) = given(&decision) {
            let limits = &given.profile.limits;
            prop_assert!(limits.wider_than(&asked.profile.limits).is_empty());
            prop_assert!(limits.wider_than(&facts.profile.limits).is_empty());
            prop_assert!(given.network == asked.network || given.network == Network::Loopback);
            prop_assert!(given.workspace == asked.workspace || given.workspace == WorkspaceAccess::ReadOnly);
            prop_assert!(asked.terminal || !given.terminal);
            prop_assert!(given.shown_credentials.is_empty());
        }
    }

    #[test]
    fn the_same_question_has_the_same_answer(case in cases()) {
        let (request, grant, facts) = case;
        let ask = || DEFAULT.decide(parse(request.clone(), grant.clone()), &facts).event();
        prop_assert_eq!(ask(), ask());
    }
}
