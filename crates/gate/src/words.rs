//! Words: questions in the form that Cedar takes. The only place that builds requests.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::LazyLock;

use cedar_policy::{
    Context, Entities, Entity, EntityId, EntityTypeName, EntityUid, Request, RestrictedExpression,
};
use model::action::Principal;
use model::{Action, Grant, OsText, WorkspacePath};

use crate::apply::Apply;
use crate::question::{Question, Widening, access_name, classes_or_unknown, is_in_workspace};

/// What the questions about one thing have in common.
#[derive(Clone, Copy)]
pub(crate) enum About<'a> {
    /// An action, with the grant that it would get.
    Action {
        /// The action.
        action: &'a Action,
        /// The grant.
        grant: &'a Grant,
    },
    /// Changes for the host.
    Apply(&'a Apply),
}

/// Says that a question could not be put; then nothing is permitted.
#[derive(Debug)]
pub(crate) struct Unaskable;

/// The names of types, parsed once.
static TYPES: LazyLock<Types> = LazyLock::new(Types::new);

struct Types(HashMap<&'static str, EntityTypeName>);

impl Types {
    fn new() -> Self {
        let names = [
            "Action",
            "User",
            "Agent",
            "Engine",
            "Workspace",
            "Path",
            "Network",
            "Limit",
            "Input",
            "Service",
        ];
        Self(names.into_iter().filter_map(|name| Some((name, name.parse().ok()?))).collect())
    }

    fn uid(&self, kind: &str, id: &str) -> Result<EntityUid, Unaskable> {
        let name = self.0.get(kind).ok_or(Unaskable)?;
        Ok(EntityUid::from_type_name_and_id(name.clone(), EntityId::new(id)))
    }
}

/// Puts one question in Cedar's form: the request, and the entities that its resource stands among.
pub(crate) fn put(
    question: &Question<'_>,
    about: About<'_>,
    roles: &BTreeSet<String>,
) -> Result<(Request, Entities), Unaskable> {
    let action = TYPES.uid("Action", question.action())?;
    let (resource, entities) = resource(question, about)?;
    let context = Context::from_pairs(context(question, about, roles)?).map_err(|_| Unaskable)?;
    // The schema is not asked here: these lines are its other half, and a test puts every kind of question to it.
    let request = Request::new(principal(about)?, action, resource, context, None).map_err(|_| Unaskable)?;
    Ok((request, entities))
}

impl<'a> About<'a> {
    fn principal(self) -> &'a Principal {
        match self {
            Self::Action { action, .. } => &action.request().principal,
            Self::Apply(apply) => apply.principal(),
        }
    }

    fn workspace(self) -> &'a OsText {
        match self {
            Self::Action { action, .. } => &action.start().workspace,
            Self::Apply(apply) => apply.workspace(),
        }
    }
}

fn principal(about: About<'_>) -> Result<EntityUid, Unaskable> {
    match about.principal() {
        Principal::User(name) => TYPES.uid("User", name),
        Principal::Agent(name) => TYPES.uid("Agent", name),
        Principal::Engine => TYPES.uid("Engine", "engine"),
    }
}

fn resource(question: &Question<'_>, about: About<'_>) -> Result<(EntityUid, Entities), Unaskable> {
    let alone = |kind, id: &str| Ok((TYPES.uid(kind, id)?, Entities::empty()));
    match question {
        Question::Start { service: Some(service), .. } => alone("Service", service),
        Question::Look { path: Some(path), .. }
        | Question::Change { path, .. }
        | Question::ShowCredential(path) => path_resource(path, about.workspace()),
        Question::UseNetwork => alone("Network", "host"),
        Question::WidenLimit(Widening { limit, .. }) => alone("Limit", limit),
        Question::ShowInput { input, .. } => alone("Input", &text(&input.source)),
        Question::Start { service: None, .. }
        | Question::Look { path: None, .. }
        | Question::UseTerminal
        | Question::Apply(_) => alone("Workspace", &text(about.workspace())),
    }
}

/// Returns a path with its directories as parents, so that a rule can name a directory for all that is in it.
fn path_resource(path: &WorkspacePath, workspace: &OsText) -> Result<(EntityUid, Entities), Unaskable> {
    let mut parent = TYPES.uid("Workspace", &text(workspace))?;
    let mut entities = vec![Entity::new_no_attrs(parent.clone(), HashSet::new())];
    let bytes = path.as_bytes();
    let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    for end in ends.chain([bytes.len()]) {
        let name = text_of(&bytes[..end]);
        let uid = TYPES.uid("Path", &name)?;
        let attributes = HashMap::from([("name".to_owned(), RestrictedExpression::new_string(name))]);
        entities.push(Entity::new(uid.clone(), attributes, HashSet::from([parent])).map_err(|_| Unaskable)?);
        parent = uid;
    }
    Ok((parent, Entities::from_entities(entities, None).map_err(|_| Unaskable)?))
}

type Pairs = Vec<(String, RestrictedExpression)>;

fn context(question: &Question<'_>, about: About<'_>, roles: &BTreeSet<String>) -> Result<Pairs, Unaskable> {
    let mut pairs = vec![("approvals".to_owned(), set(roles))];
    match about {
        About::Action { action, grant } => pairs.push(("request".to_owned(), request(action, grant)?)),
        About::Apply(apply) => pairs.extend([
            ("mode".to_owned(), string(apply.mode().name())),
            ("classes".to_owned(), set(apply.classes())),
            ("kinds".to_owned(), set(apply.kinds())),
        ]),
    }
    match (question, about) {
        (Question::Start { argv, .. }, About::Action { action, .. }) => {
            pairs.push(("program".to_owned(), program(argv, action)?));
        }
        (Question::Change { classes, .. }, _) => {
            pairs.push(("classes".to_owned(), set(&classes_or_unknown(*classes))));
        }
        (Question::WidenLimit(widening), _) => pairs.extend([
            ("asked".to_owned(), long(widening.asked)),
            ("profile_allows".to_owned(), long(widening.profile_allows)),
        ]),
        (Question::ShowInput { named_by_person, .. }, _) => {
            pairs.push(("named_by_person".to_owned(), RestrictedExpression::new_bool(*named_by_person)));
        }
        _ => {}
    }
    Ok(pairs)
}

fn request(action: &Action, grant: &Grant) -> Result<RestrictedExpression, Unaskable> {
    record([
        ("environment", set(action.request().environment.keys())),
        ("profile", string(&grant.profile.name)),
        ("workspace", string(access_name(grant.workspace))),
    ])
}

fn program(argv: &[OsText], action: &Action) -> Result<RestrictedExpression, Unaskable> {
    let program = argv.first().ok_or(Unaskable)?;
    let name = program.as_bytes().rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let directory = action.request().directory.as_ref();
    let workspace: &Path = action.start().workspace.as_path();
    record([
        ("name", string(text_of(name))),
        ("path", string(text(program))),
        ("in_workspace", RestrictedExpression::new_bool(is_in_workspace(program, workspace, directory))),
    ])
}

fn record<const N: usize>(
    fields: [(&str, RestrictedExpression); N],
) -> Result<RestrictedExpression, Unaskable> {
    let fields = fields.into_iter().map(|(key, value)| (key.to_owned(), value));
    RestrictedExpression::new_record(fields).map_err(|_| Unaskable)
}

fn set<T: AsRef<str>>(values: impl IntoIterator<Item = T>) -> RestrictedExpression {
    RestrictedExpression::new_set(values.into_iter().map(|value| string(value.as_ref())))
}

fn string(value: impl Into<String>) -> RestrictedExpression {
    RestrictedExpression::new_string(value.into())
}

/// Numbers beyond what Cedar counts with become its largest one.
fn long(value: u64) -> RestrictedExpression {
    RestrictedExpression::new_long(i64::try_from(value).unwrap_or(i64::MAX))
}

fn text(bytes: &OsText) -> String {
    text_of(bytes.as_bytes())
}

/// Returns bytes as text for Cedar. What is not UTF-8 is written in hexadecimal after a NUL, which no path or
/// argument can hold, so that two different names never become the same text.
fn text_of(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().fold("\0".to_owned(), |text, byte| format!("{text}{byte:02x}")),
    }
}
