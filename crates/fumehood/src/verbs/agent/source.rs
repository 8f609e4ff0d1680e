//! Where the model is: a server and its key, or a transcript that is played as one.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use ::agent::Secret;
use ::agent::replay::{ReplayServer, Transcript};
use model::Digest;
use model::text::escape;

use crate::error::CliError;
use crate::settings::KeySource;
use crate::verbs::context::Context;

/// The largest transcript that is read.
const TRANSCRIPT_MAX: u64 = 256 << 20;
/// The largest key file: a key has some dozen characters.
const KEY_MAX: u64 = 16 << 10;
/// What a played model is given as its key. It takes any.
const PLAYED_KEY: &str = "played";

/// Where the model is.
pub(in crate::verbs) struct ModelSource {
    /// Its name.
    pub(in crate::verbs) model: String,
    /// The address of its API.
    pub(in crate::verbs) base_url: String,
    /// Its key.
    pub(in crate::verbs) key: Secret,
    /// Digest of the transcript that is played in its place, when one is.
    pub(in crate::verbs) transcript: Option<Digest>,
    /// Plays until this value is gone.
    _server: Option<ReplayServer>,
}

impl ModelSource {
    /// Takes the transcript that is named, else the server and the key of the settings.
    pub(in crate::verbs) fn choose(context: &Context<'_>, replay: Option<&Path>) -> Result<Self, CliError> {
        match replay {
            Some(file) => {
                let path = context.cwd.join(file);
                Self::played(&read(&path, TRANSCRIPT_MAX)?, &path.to_string_lossy())
            }
            None => Self::served(context),
        }
    }

    /// Plays a transcript of this name as a server on the loopback of this machine.
    pub(in crate::verbs) fn played(bytes: &[u8], name: &str) -> Result<Self, CliError> {
        let transcript = Transcript::parse(bytes)
            .map_err(|error| CliError::Cannot(format!("cannot play `{}`: {error}", escape(name))))?;
        let model = transcript.header().model.clone();
        let server = ReplayServer::start(transcript).map_err(CliError::system("play the transcript"))?;
        Ok(Self {
            model,
            base_url: server.base_url(),
            key: Secret::new(PLAYED_KEY),
            transcript: Some(Digest::of(bytes)),
            _server: Some(server),
        })
    }

    fn served(context: &Context<'_>) -> Result<Self, CliError> {
        let model = &context.settings.model;
        let key = match model.key.as_ref().map(|key| &key.value) {
            Some(KeySource::Variable(name)) => {
                context.environment.get(name).and_then(|key| key.to_str()).map(str::to_owned)
            }
            Some(KeySource::File(path)) => Some(key_in(context, path)?),
            None => None,
        };
        let key = key.map(|key| key.trim().to_owned()).filter(|key| !key.is_empty());
        let key = key.ok_or_else(|| {
            CliError::Cannot(
                "there is no key for the model: set DEEPSEEK_API_KEY, or `key_file` below `[model]` in fumehood.toml, \
                 or play a transcript with --replay FILE"
                    .to_owned(),
            )
        })?;
        Ok(Self {
            model: model.name.value.clone(),
            base_url: model.base_url.value.clone(),
            key: Secret::new(key),
            transcript: None,
            _server: None,
        })
    }
}

/// Reads a key from a file of its own, and says so when others can read it too.
fn key_in(context: &Context<'_>, path: &Path) -> Result<String, CliError> {
    let key = String::from_utf8_lossy(&read(path, KEY_MAX)?).into_owned();
    if std::fs::metadata(path).is_ok_and(|found| found.mode() & 0o077 != 0) {
        let shown = escape(&path.to_string_lossy()).into_owned();
        context
            .console
            .say_always(&format!("fumehood: others can read the key in `{shown}`: `chmod 600` it"));
    }
    Ok(key)
}

fn read(path: &Path, most: u64) -> Result<Vec<u8>, CliError> {
    let failed = || CliError::file("read", path);
    let file = File::open(path).map_err(failed())?;
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).map_err(failed())?;
    if bytes.len() as u64 > most {
        return Err(failed()(std::io::ErrorKind::FileTooLarge.into()));
    }
    Ok(bytes)
}
