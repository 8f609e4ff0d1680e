//! The agent as a process: what the binary calls in its hidden subcommand.

use std::io::{Read, Write};
use std::net::SocketAddr;

use model::evidence::Probe;

use crate::conversation::Message;
use crate::deepseek::{Client, Endpoint, Retry, Settings, Timeouts};
use crate::protocol::{AgentSide, Failure, FailureKind, FromAgent, ProtocolError, Start};
use crate::redact::Secrets;
use crate::run_loop;

/// What the process must still be able to reach when it has given up everything else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reach {
    /// The addresses of the model's server. The process connects to these and to no other, opens no file, starts no
    /// process and no thread.
    pub addresses: Vec<SocketAddr>,
}

/// Says why the agent's process ended otherwise than by telling the engine so.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The engine is gone, or does not keep to the protocol.
    #[error("the agent lost the engine")]
    Engine(#[from] ProtocolError),
}

/// Runs the agent over its standard streams, from its first line to its last.
///
/// `confine` gives up the process's rights and returns what it then tried and saw; it is called once, when the name
/// of the model's server has been looked up and before the key is received. A failure, of the task or of `confine`,
/// is told to the engine and is no error here.
///
/// # Errors
/// When the engine is gone or does not keep to the protocol.
pub fn main_loop<R: Read, W: Write>(
    input: R,
    output: W,
    confine: impl FnOnce(&Reach) -> Result<Vec<Probe>, String>,
) -> Result<(), AgentError> {
    let mut side = AgentSide::new(input, output);
    let prepare = side.prepare()?;
    let endpoint = match Endpoint::resolve(&prepare.base_url, prepare.roots_pem.as_deref()) {
        Ok(endpoint) => endpoint,
        Err(error) => return fail(&mut side, error.kind(), error.with_causes()),
    };
    match confine(&Reach { addresses: endpoint.addresses().to_vec() }) {
        Ok(probes) => side.confined(probes)?,
        Err(reason) => {
            let message = format!("the agent could not give up its rights, so it does not run: {reason}");
            return fail(&mut side, FailureKind::Confinement, message);
        }
    }
    let (start, earlier) = side.start()?;
    work(&mut side, &endpoint, &start, earlier)
}

/// Does what the engine wants done.
fn work<R: Read, W: Write>(
    side: &mut AgentSide<R, W>,
    endpoint: &Endpoint,
    start: &Start,
    earlier: Vec<Message>,
) -> Result<(), AgentError> {
    if !start.workspace.as_path().is_absolute() {
        return fail(
            side,
            FailureKind::Start,
            format!("the workspace `{}` is not absolute", start.workspace),
        );
    }
    let secrets = match Secrets::new(&start.key, &start.secrets) {
        Ok(secrets) => secrets,
        Err(error) => return fail(side, FailureKind::Start, error.to_string()),
    };
    let settings = Settings {
        model: start.model.clone(),
        effort: start.effort,
        user: start.task.to_string(),
        turn_tokens: start.limits.turn_tokens,
        timeouts: Timeouts::default(),
        retry: Retry::default(),
    };
    let mut client = match Client::new(endpoint, &start.key, settings) {
        Ok(client) => client,
        Err(error) => return fail(side, error.kind(), error.with_causes()),
    };
    Ok(run_loop::run(side, &mut client, start, earlier, &secrets)?)
}

fn fail<R: Read, W: Write>(
    side: &mut AgentSide<R, W>,
    kind: FailureKind,
    message: String,
) -> Result<(), AgentError> {
    Ok(side.say(&FromAgent::Failed(Failure { kind, message }))?)
}
