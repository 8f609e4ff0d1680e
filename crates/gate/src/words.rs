//! Words: questions in the form that Cedar takes. The only place that builds requests.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::LazyLock;

use cedar_policy::{
    Context, Entities, Entity, EntityId, EntityTypeName, EntityUid, Policy as CedarPolicy, PolicySet,
    Request, RestrictedExpression,
};
use model::action::Principal;
use model::{Action, Effect, EgressRule, Grant, OsText, Place, Quorum, WorkspacePath};

use crate::apply::Apply;
use crate::facts::{Classes, Progress};
use crate::question::{Question, Widening, access_name, classes_or_unknown, is_in_workspace};
use crate::reading::Reading;
use crate::said::Quorums;

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
    /// Content that is kept.
    Reading(&'a Reading),
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
            "HostPath",
            "Program",
            "Package",
            "Host",
            "Credential",
            "Ref",
            "Target",
            "Control",
            "Database",
            "Dataset",
            "Content",
        ];
        Self(names.into_iter().filter_map(|name| Some((name, name.parse().ok()?))).collect())
    }

    fn uid(&self, kind: &str, id: &str) -> Result<EntityUid, Unaskable> {
        let name = self.0.get(kind).ok_or(Unaskable)?;
        Ok(EntityUid::from_type_name_and_id(name.clone(), EntityId::new(id)))
    }
}

/// Returns the paths that rules name, as a question would write them.
pub(crate) fn named_paths(policies: &PolicySet) -> HashSet<String> {
    let named = policies.policies().flat_map(CedarPolicy::entity_literals);
    let paths = named.filter(|uid| uid.type_name().basename() == "Path");
    paths.map(|uid| uid.id().unescaped().to_owned()).collect()
}

/// Puts one question in Cedar's form: the request, and all the entities that its resource stands among.
pub(crate) fn put(
    question: &Question<'_>,
    about: About<'_>,
    given: &Quorums,
) -> Result<(Request, Entities), Unaskable> {
    Ok((put_request(question, about, given)?, entities(question, about, &|_| true)?))
}

/// Puts the request alone.
pub(crate) fn put_request(
    question: &Question<'_>,
    about: About<'_>,
    given: &Quorums,
) -> Result<Request, Unaskable> {
    let action = TYPES.uid("Action", question.action())?;
    let (resource, _) = resource(question, about, &|_| false)?;
    let context = Context::from_pairs(context(question, about, given)?).map_err(|_| Unaskable)?;
    // The schema is not asked here: these lines are its other half, and a test puts every kind of question to it.
    Request::new(principal(about)?, action, resource, context, None).map_err(|_| Unaskable)
}

/// Returns the entities that the resource of a question stands among. Of the directories of a path those that `is_named` by
/// some rule that it concerns are enough: no other one can change an answer, and each costs time at every question.
pub(crate) fn entities(
    question: &Question<'_>,
    about: About<'_>,
    is_named: &dyn Fn(&str) -> bool,
) -> Result<Entities, Unaskable> {
    let (_, described) = resource(question, about, is_named)?;
    let mut entities: Vec<Entity> = described.into_iter().collect();
    if let Question::Effect { .. } = question {
        // A rule about all effects names their group, and Cedar looks groups up among the entities.
        let groups = HashSet::from([TYPES.uid("Action", "effect")?]);
        let action = TYPES.uid("Action", question.action())?;
        entities.push(Entity::new(action, HashMap::new(), groups).map_err(|_| Unaskable)?);
    }
    Entities::from_entities(entities, None).map_err(|_| Unaskable)
}

impl<'a> About<'a> {
    fn principal(self) -> &'a Principal {
        match self {
            Self::Action { action, .. } => &action.request().principal,
            Self::Apply(apply) => apply.principal(),
            Self::Reading(reading) => reading.principal(),
        }
    }

    fn workspace(self) -> &'a OsText {
        match self {
            Self::Action { action, .. } => &action.start().workspace,
            Self::Apply(apply) => apply.workspace(),
            Self::Reading(reading) => reading.workspace(),
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

/// What a question is about, with what is said of it where something is.
type Resource = (EntityUid, Option<Entity>);

fn resource(
    question: &Question<'_>,
    about: About<'_>,
    is_named: &dyn Fn(&str) -> bool,
) -> Result<Resource, Unaskable> {
    let alone = |kind, id: &str| Ok((TYPES.uid(kind, id)?, None));
    match question {
        Question::Start { service: Some(service), .. } => alone("Service", service),
        Question::Look { path: Some(path), .. }
        | Question::Change { path, .. }
        | Question::ShowCredential(path) => path_resource(path, about.workspace(), is_named),
        Question::Effect { effect, .. } => object(effect, about.workspace(), is_named),
        Question::ReadRecord(reading) => alone("Content", reading.class().name()),
        Question::UseNetwork => alone("Network", "host"),
        Question::JoinNetwork { action, .. } => alone("Network", action.as_str()),
        Question::Reach { rule, .. } => {
            described("Host", &rule.to_string(), [("name", &rule.host.to_string())])
        }
        Question::WidenLimit(Widening { limit, .. }) => alone("Limit", limit),
        Question::ShowInput { input, .. } => alone("Input", &text(&input.source)),
        Question::Start { service: None, .. }
        | Question::Look { path: None, .. }
        | Question::UseTerminal
        | Question::Try
        | Question::Apply(_) => alone("Workspace", &text(about.workspace())),
    }
}

/// Returns what an effect is about.
fn object(
    effect: &Effect,
    workspace: &OsText,
    is_named: &dyn Fn(&str) -> bool,
) -> Result<Resource, Unaskable> {
    let named = |kind, name: &str| described(kind, name, [("name", name)]);
    match effect {
        Effect::Read { place } | Effect::Write { place } | Effect::Delete { place } => match place {
            Place::Workspace => Ok((TYPES.uid("Workspace", &text(workspace))?, None)),
            Place::Path(path) => path_resource(path, workspace, is_named),
            Place::Outside(path) => named("HostPath", &text(path)),
            Place::Anywhere => named("HostPath", "*"),
        },
        Effect::Run { program } => {
            let name = program.rsplit('/').next().unwrap_or_default();
            described("Program", program, [("name", name)])
        }
        Effect::Install { manager, package } => {
            let id = format!("{manager}/{package}");
            described("Package", &id, [("manager", manager.as_str()), ("name", package)])
        }
        Effect::Connect { host } => named("Host", host),
        Effect::UseCredential { credential } => named("Credential", credential),
        Effect::ChangeRef { repository, reference, .. } => {
            let id = format!("{repository}\0{reference}");
            described("Ref", &id, [("repository", repository.as_str()), ("name", reference)])
        }
        Effect::Publish { what: target }
        | Effect::Deploy { target }
        | Effect::Migrate { target }
        | Effect::Message { to: target } => named("Target", target),
        Effect::ChangeControl { control } => named("Control", control),
        Effect::QueryDatabase { database, .. } => named("Database", database),
        Effect::ShowDataset { dataset } => named("Dataset", dataset),
        Effect::Unknown { .. } => Ok((TYPES.uid("Workspace", &text(workspace))?, None)),
    }
}

/// Returns something with its attributes, all of them texts.
fn described<const N: usize>(
    kind: &str,
    id: &str,
    attributes: [(&str, &str); N],
) -> Result<Resource, Unaskable> {
    let uid = TYPES.uid(kind, id)?;
    let attributes = attributes.map(|(key, value)| (key.to_owned(), string(value)));
    let entity =
        Entity::new(uid.clone(), HashMap::from(attributes), HashSet::new()).map_err(|_| Unaskable)?;
    Ok((uid, Some(entity)))
}

/// Returns a path with its directories as parents, so that a rule can name a directory for all that is in it. They are all
/// parents of the path itself: a chain of them would have Cedar work out at each question who is above whom.
fn path_resource(
    path: &WorkspacePath,
    workspace: &OsText,
    is_named: &dyn Fn(&str) -> bool,
) -> Result<Resource, Unaskable> {
    let bytes = path.as_bytes();
    let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    let directories = ends.map(|end| text_of(&bytes[..end])).filter(|directory| is_named(directory));
    let directories = directories.map(|directory| TYPES.uid("Path", &directory));
    let workspace = std::iter::once(TYPES.uid("Workspace", &text(workspace)));
    let parents = directories.chain(workspace).collect::<Result<HashSet<_>, _>>()?;
    let name = text_of(bytes);
    let uid = TYPES.uid("Path", &name)?;
    let attributes = HashMap::from([("name".to_owned(), RestrictedExpression::new_string(name))]);
    let entity = Entity::new(uid.clone(), attributes, parents).map_err(|_| Unaskable)?;
    Ok((uid, Some(entity)))
}

type Pairs = Vec<(String, RestrictedExpression)>;

fn context(question: &Question<'_>, about: About<'_>, given: &Quorums) -> Result<Pairs, Unaskable> {
    let mut pairs = vec![("approvals".to_owned(), set(given.iter().map(Quorum::to_string)))];
    match about {
        About::Action { action, grant } => pairs.push(("request".to_owned(), request(action, grant)?)),
        About::Apply(apply) => pairs.extend([
            ("mode".to_owned(), string(apply.mode().name())),
            ("classes".to_owned(), set(apply.classes())),
            ("kinds".to_owned(), set(apply.kinds())),
        ]),
        About::Reading(reading) => pairs.push(("own".to_owned(), boolean(reading.is_own()))),
    }
    match (question, about) {
        (Question::Start { argv, .. }, About::Action { action, .. }) => {
            pairs.push(("program".to_owned(), program(argv, action)?));
        }
        (Question::Change { classes, .. }, _) => {
            pairs.push(("classes".to_owned(), set(classes_or_unknown(*classes))));
        }
        (Question::Effect { effect, classes }, _) => pairs.extend(effect_context(effect, *classes)),
        (Question::WidenLimit(widening), _) => pairs.extend([
            ("asked".to_owned(), long(widening.asked)),
            ("profile_allows".to_owned(), long(widening.profile_allows)),
        ]),
        (Question::ShowInput { named_by_person, .. }, _) => {
            pairs.push(("named_by_person".to_owned(), boolean(*named_by_person)));
        }
        (Question::Reach { rule, named_by_person }, _) => pairs.extend(reach_context(rule, *named_by_person)),
        (Question::JoinNetwork { known, .. }, _) => pairs.extend([
            ("same_task".to_owned(), boolean(known.is_some_and(|known| known.same_task))),
            ("running".to_owned(), boolean(known.is_some_and(|known| known.progress == Progress::Running))),
        ]),
        _ => {}
    }
    Ok(pairs)
}

/// Returns what policy is told of a rule beside its hosts. What it does not limit is an empty text or set.
fn reach_context(rule: &EgressRule, named_by_person: bool) -> [(String, RestrictedExpression); 8] {
    let text = |text: Option<String>| string(text.unwrap_or_default());
    [
        ("named_by_person", boolean(named_by_person)),
        ("port", long(rule.port.into())),
        ("protocol", string(rule.protocol.scheme())),
        ("methods", set(rule.methods.iter().map(model::egress::Method::as_str))),
        ("path", text(rule.path.as_ref().map(ToString::to_string))),
        ("credential", text(rule.credential.clone())),
        ("registry", text(rule.registry.clone())),
        ("inward", boolean(rule.is_inward())),
    ]
    .map(|(name, value)| (name.to_owned(), value))
}

/// Returns what policy is told of an effect beside what it is about.
fn effect_context(effect: &Effect, classes: Option<&Classes>) -> Option<(String, RestrictedExpression)> {
    let (name, value) = match effect {
        Effect::Write { .. } | Effect::Delete { .. } => ("classes", set(classes_or_unknown(classes))),
        Effect::ChangeRef { forced, .. } => ("forced", boolean(*forced)),
        Effect::QueryDatabase { access, .. } => ("access", string(access.name())),
        _ => return None,
    };
    Some((name.to_owned(), value))
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
        ("in_workspace", boolean(is_in_workspace(program, workspace, directory))),
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

fn boolean(value: bool) -> RestrictedExpression {
    RestrictedExpression::new_bool(value)
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

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use cedar_policy::Schema;
    use model::action::{Base, StartingPoint};
    use model::grant::{Input, Network};
    use model::{ActionId, ActionRequest, Change, ChangeKind, FileKind, Profile, TaskId, Timestamp, Tool};

    use super::*;
    use crate::apply::{ApplyMode, ApplySource};
    use crate::facts::Facts;
    use crate::policy::SCHEMA;
    use crate::question::questions_of;

    fn os(bytes: &[u8]) -> OsText {
        OsText::new(bytes).expect("no NUL")
    }

    fn path(text: &str) -> WorkspacePath {
        WorkspacePath::parse(text).expect("inside")
    }

    /// A grant that asks for everything there is.
    fn everything() -> Grant {
        let mut grant = Grant::under(Profile::default_profile());
        grant.profile.name = "strict".to_owned();
        grant.network = Network::Host;
        grant.terminal = true;
        grant.shown_credentials = vec![path("deep/er/.env")];
        grant.inputs = vec![Input { name: "data".to_owned(), source: os(b"/srv/\xff") }];
        grant
    }

    fn tools() -> [Tool; 6] {
        [
            Tool::Run { argv: vec![os(b"./a/\xfe"), os(b"x")] },
            Tool::Read { path: path("a") },
            Tool::List { path: None },
            Tool::Search { pattern: "x".to_owned(), path: Some(path("a/b")) },
            Tool::Write { path: path("a/b"), content: String::new() },
            Tool::Patch {
                paths: vec![path("a"), path("b")],
                diff: "--- a/a\n+++ b/b\n@@ -1 +1 @@\n-a\n+b\n".to_owned(),
            },
        ]
    }

    fn action(principal: Principal, tool: Tool) -> Action {
        let environment = BTreeMap::from([("A".to_owned(), os(b"1"))]);
        let request = ActionRequest { principal, tool, directory: None, environment, purpose: None };
        let start = StartingPoint { workspace: os(b"/ws/\xff"), base: Base::Live, layers: Vec::new() };
        let (id, task) = (ActionId::from_random([0; 10]), TaskId::from_random([0; 10]));
        Action::parse(id, task, request, everything(), start).expect("parses")
    }

    fn every_effect() -> BTreeSet<Effect> {
        let text = || "x\u{202e}".to_owned();
        let places =
            [Place::Workspace, Place::Path(path("a/b")), Place::Outside(os(b"/srv/\xff")), Place::Anywhere];
        let files = places.into_iter().flat_map(|place| {
            let (write, delete) =
                (Effect::Write { place: place.clone() }, Effect::Delete { place: place.clone() });
            [Effect::Read { place }, write, delete]
        });
        let others = [
            Effect::Run { program: "/bin/x".to_owned() },
            Effect::Install { manager: "npm".to_owned(), package: "*".to_owned() },
            Effect::Connect { host: "*".to_owned() },
            Effect::UseCredential { credential: text() },
            Effect::ChangeRef { repository: ".".to_owned(), reference: text(), forced: true },
            Effect::Publish { what: text() },
            Effect::Deploy { target: text() },
            Effect::Migrate { target: text() },
            Effect::Message { to: text() },
            Effect::ChangeControl { control: text() },
            Effect::QueryDatabase { access: model::DatabaseAccess::Schema, database: text() },
            Effect::ShowDataset { dataset: text() },
            Effect::Unknown { why: text() },
        ];
        files.chain(others).collect()
    }

    /// Puts a question, holds it against the schema, and returns the action that it asks about.
    fn fits(schema: &Schema, question: &Question<'_>, about: About<'_>) -> String {
        let given = Quorums::from([Quorum::person()]);
        let (request, entities) = put(question, about, &given).expect("can be put");
        let (principal, action, resource) = (request.principal(), request.action(), request.resource());
        let (principal, action, resource) =
            (principal.expect("known"), action.expect("known"), resource.expect("known"));
        let context = request.context().expect("known").clone();
        Request::new(principal.clone(), action.clone(), resource.clone(), context, Some(schema))
            .unwrap_or_else(|error| panic!("{question}: {error}"));
        Entities::from_entities(entities.iter().cloned(), Some(schema)).expect("the entities fit the schema");
        action.id().unescaped().to_owned()
    }

    #[test]
    fn every_question_fits_the_schema_and_every_action_of_the_schema_is_asked_about() {
        let (schema, warnings) = Schema::from_cedarschema_str(SCHEMA).expect("the schema can be read");
        assert_eq!(warnings.count(), 0);
        let mut facts = Facts::new(Profile::strict(), Timestamp::from_nanos(0));
        facts.declared = Some(every_effect());
        let mut asked = BTreeSet::new();
        let rule = "GET https://*.example.com/v1/**".parse().expect("a rule");
        let egress = Network::Egress(BTreeSet::from([rule]));
        let networks = [Network::Host, Network::Joined(ActionId::from_random([1; 10])), egress];
        let mut ask_all = |principal: Principal, tool, service| {
            let action = action(principal, tool);
            for network in networks.clone() {
                let grant = Grant { network, ..everything() };
                let about = About::Action { action: &action, grant: &grant };
                for question in questions_of(&action, &grant, &facts, service) {
                    asked.insert(fits(&schema, &question, about));
                }
            }
        };
        for tool in tools() {
            ask_all(Principal::User("ada".to_owned()), tool.clone(), None);
            ask_all(Principal::Agent("m".to_owned()), tool, None);
        }
        ask_all(Principal::Engine, Tool::Run { argv: vec![os(b"git")] }, Some("git"));
        asked.insert(fits_apply(&schema));
        asked.insert(fits_try(&schema));
        asked.insert(fits_reading(&schema));
        let groups: BTreeSet<&EntityUid> = schema.action_groups().collect();
        let known = schema.actions().filter(|action| !groups.contains(action));
        let known: BTreeSet<String> = known.map(|action| action.id().unescaped().to_owned()).collect();
        assert_eq!(asked, known);
    }

    #[test]
    fn directories_that_no_rule_names_change_no_answer() {
        let forms = [
            r#"forbid (principal, action, resource in Path::"a/b");"#,
            r#"forbid (principal, action, resource == Path::"a/b/c");"#,
            r#"forbid (principal, action, resource is Path in Path::"a");"#,
            r#"forbid (principal, action, resource) when { resource in [Path::"x", Path::"a/b"] };"#,
            r#"forbid (principal, action, resource) unless { !(resource in Path::"a") };"#,
            r#"forbid (principal, action, resource) when { if context.request.profile == "x" then false else resource in Path::"a" };"#,
            r#"forbid (principal, action, resource in Path::"\0ff/x");"#,
            r#"forbid (principal, action, resource in Workspace::"/ws");"#,
        ];
        let paths: [&[u8]; 7] = [b"a", b"a/b", b"a/b/c", b"a/b/c/d/e", b"ab/c", b"x/a/b", b"\xff/x/y"];
        let given = Quorums::new();
        let mut refused = 0;
        for form in forms {
            let policies: PolicySet =
                format!("permit (principal, action, resource); {form}").parse().expect("rules");
            let named = named_paths(&policies);
            for path in paths {
                let tool = Tool::Read {
                    path: WorkspacePath::parse(
                        <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(path),
                    )
                    .expect("inside"),
                };
                let (action, grant) = (action(Principal::User("ada".to_owned()), tool), everything());
                let about = About::Action { action: &action, grant: &grant };
                for question in questions_of(
                    &action,
                    &grant,
                    &Facts::new(Profile::strict(), Timestamp::from_nanos(0)),
                    None,
                ) {
                    let answer = |is_named: &dyn Fn(&str) -> bool| {
                        let request = put_request(&question, about, &given).expect("can be put");
                        let entities = entities(&question, about, is_named).expect("are known");
                        cedar_policy::Authorizer::new().is_authorized(&request, &policies, &entities)
                    };
                    let (all, some) = (answer(&|_| true), answer(&|path| named.contains(path)));
                    assert_eq!(all, some, "{form} {question}");
                    refused += usize::from(all.decision() == cedar_policy::Decision::Deny);
                }
            }
        }
        assert!(refused > 20, "{refused}");
    }

    fn fits_try(schema: &Schema) -> String {
        let action = action(Principal::Agent("m".to_owned()), Tool::Run { argv: vec![os(b"make")] });
        fits(schema, &Question::Try, About::Action { action: &action, grant: &everything() })
    }

    fn fits_reading(schema: &Schema) -> String {
        let workspace = model::task::WorkspaceKey { path: os(b"/ws"), device: 1, inode: 1 };
        let owner = Principal::User("ada".to_owned());
        let task = model::task::Task {
            id: TaskId::from_random([0; 10]),
            workspace,
            base: Base::Live,
            owner: owner.clone(),
            title: None,
            state: model::task::TaskState::Open,
            opened: Timestamp::from_nanos(0),
        };
        let class = model::ContentClass::Context;
        let reading = Reading::new(owner, &task, &ActionId::from_random([0; 10]), class);
        fits(schema, &Question::ReadRecord(&reading), About::Reading(&reading))
    }

    fn fits_apply(schema: &Schema) -> String {
        let (task, workspace) = (TaskId::from_random([0; 10]), os(b"/ws"));
        let source = ApplySource { task: &task, workspace: &workspace, layers: &[] };
        let file = FileKind::File;
        let change =
            Change { path: path("a"), kind: ChangeKind::Created, file, mode: 0o644, size: 0, ignored: false };
        let classes = BTreeSet::from(["ci-files".to_owned()]);
        let user = Principal::User("ada".to_owned());
        let apply = Apply::new(user, ApplyMode::Ask, source, &[change], classes);
        fits(schema, &Question::Apply(&apply), About::Apply(&apply))
    }

    #[test]
    fn names_that_differ_in_a_byte_differ_for_policy() {
        let names: BTreeSet<String> =
            [b"a\xff".as_slice(), b"a\xfe", "a\u{fffd}".as_bytes(), b"61ff", b"a"].map(text_of).into();
        assert_eq!(names.len(), 5);
    }
}
