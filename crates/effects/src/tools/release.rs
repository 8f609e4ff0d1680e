//! Programs that reach people and what they use: deployments, images, migrations, forges.

use model::Effect;

use crate::account::Account;
use crate::arg::Arg;

/// What a few words of a command mean.
#[derive(Clone, Copy)]
enum Means {
    Deploy,
    Publish,
    Migrate,
    Message,
    /// It only asks, over the network.
    Asks,
}

/// Programs, and the words that say what they do. The first row that fits is taken; a row without words fits all.
const MEANINGS: &[(&str, &[&str], Means)] = &[
    ("kubectl", &["get"], Means::Asks),
    ("kubectl", &["describe"], Means::Asks),
    ("kubectl", &[], Means::Deploy),
    ("helm", &["list"], Means::Asks),
    ("helm", &[], Means::Deploy),
    ("terraform", &[], Means::Deploy),
    ("tofu", &[], Means::Deploy),
    ("pulumi", &[], Means::Deploy),
    ("ansible", &[], Means::Deploy),
    ("ansible-playbook", &[], Means::Deploy),
    ("aws", &[], Means::Deploy),
    ("gcloud", &[], Means::Deploy),
    ("az", &[], Means::Deploy),
    ("flyctl", &[], Means::Deploy),
    ("fly", &[], Means::Deploy),
    ("heroku", &[], Means::Deploy),
    ("vercel", &[], Means::Deploy),
    ("netlify", &[], Means::Deploy),
    ("wrangler", &[], Means::Deploy),
    ("serverless", &[], Means::Deploy),
    ("cap", &[], Means::Deploy),
    ("fab", &[], Means::Deploy),
    ("docker", &["push"], Means::Publish),
    ("podman", &["push"], Means::Publish),
    ("skopeo", &["copy"], Means::Publish),
    ("oras", &["push"], Means::Publish),
    ("goreleaser", &[], Means::Publish),
    ("gh", &["release"], Means::Publish),
    ("glab", &["release"], Means::Publish),
    ("gh", &["workflow", "run"], Means::Deploy),
    ("gh", &[], Means::Message),
    ("glab", &[], Means::Message),
    ("hub", &[], Means::Message),
    ("alembic", &[], Means::Migrate),
    ("flyway", &[], Means::Migrate),
    ("liquibase", &[], Means::Migrate),
    ("dbmate", &[], Means::Migrate),
    ("goose", &[], Means::Migrate),
    ("migrate", &[], Means::Migrate),
    ("prisma", &["migrate"], Means::Migrate),
    ("knex", &[], Means::Migrate),
    ("sqlx", &["migrate"], Means::Migrate),
    ("diesel", &["migration"], Means::Migrate),
    ("rails", &["db:migrate"], Means::Migrate),
];

pub(crate) fn read(account: &mut Account<'_>, name: &str, args: &[Arg]) -> bool {
    let words: Vec<&str> = args.iter().filter_map(Arg::exact).filter(|word| !word.starts_with('-')).collect();
    let fits = |(program, first, _): &&(&str, &[&str], Means)| *program == name && words.starts_with(first);
    let Some((_, _, means)) = MEANINGS.iter().find(fits) else { return false };
    let object = std::iter::once(name).chain(words.iter().copied()).take(4).collect::<Vec<_>>().join(" ");
    match means {
        Means::Deploy => account.add(Effect::Deploy { target: object }),
        Means::Publish => account.add(Effect::Publish { what: object }),
        Means::Migrate => account.add(Effect::Migrate { target: object }),
        Means::Message => account.add(Effect::Message { to: object }),
        Means::Asks => {}
    }
    account.connect(None);
    account.add(Effect::UseCredential { credential: name.to_owned() });
    account.unknown(format!("what {name} does at the other end is not known here"));
    true
}
