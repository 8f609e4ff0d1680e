//! Who may read what is kept: whoever the task belongs to, and nobody else unless a rule says so.

use gate::{Decision, Gate, Policy, Reading};
use model::action::{Base, Principal};
use model::event::Verdict;
use model::task::{Task, TaskState, WorkspaceKey};
use model::{ActionId, ContentClass, OsText, TaskId, Timestamp};

fn task(owner: Principal) -> Task {
    Task {
        id: TaskId::from_random([1; 10]),
        workspace: WorkspaceKey { path: OsText::literal("/ws"), device: 1, inode: 1 },
        base: Base::Live,
        owner,
        title: None,
        state: TaskState::Open,
        opened: Timestamp::from_nanos(0),
    }
}

fn asks(gate: &Gate, by: &Principal, owner: &Principal, class: ContentClass) -> Decision<Reading> {
    let action = ActionId::from_random([2; 10]);
    gate.decide_reading(Reading::new(by.clone(), &task(owner.clone()), &action, class))
}

fn user(name: &str) -> Principal {
    Principal::User(name.to_owned())
}

fn agent() -> Principal {
    Principal::Agent("m".to_owned())
}

#[test]
fn an_owner_reads_and_others_do_not() {
    let (ada, bob) = (user("ada"), user("bob"));
    for (name, text) in gate::BUNDLES {
        let gate = Gate::new(Policy::parse(text).expect("can be used"));
        let verdict =
            |by: &Principal, owner: &Principal| asks(&gate, by, owner, ContentClass::Output).record().verdict;
        assert_eq!(verdict(&ada, &ada), Verdict::Allow, "{name}");
        assert_eq!(verdict(&ada, &agent()), Verdict::Allow, "{name}");
        assert_eq!(verdict(&bob, &ada), Verdict::Deny, "{name}");
        assert_eq!(verdict(&agent(), &ada), Verdict::Deny, "{name}");
        assert_eq!(verdict(&agent(), &agent()), Verdict::Deny, "{name}");
        assert_eq!(verdict(&Principal::Engine, &ada), Verdict::Deny, "{name}");
    }
}

#[test]
fn a_rule_takes_one_class_away_from_everybody() {
    let text = gate::DEFAULT_BUNDLE.to_owned()
        + "@id(\"no-contexts\") @reason(\"prompts-are-closed\") @advice(\"ask the owner of the record\") @person_may_allow(\"false\")
           forbid (principal, action == Action::\"read-record\", resource == Content::\"context\");";
    let gate = Gate::new(Policy::parse(&text).expect("can be used"));
    let verdict = |class| asks(&gate, &user("ada"), &user("ada"), class).record().verdict;
    assert_eq!(
        (verdict(ContentClass::Output), verdict(ContentClass::Context)),
        (Verdict::Allow, Verdict::Deny)
    );
}
