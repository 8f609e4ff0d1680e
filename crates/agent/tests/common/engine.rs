//! An engine without a sandbox: it keeps the promises of the protocol and makes up what came of each call.

use std::collections::BTreeMap;
use std::io::{PipeReader, PipeWriter, pipe};
use std::thread::JoinHandle;

use agent::conversation::{CallId, Message};
use agent::protocol::{EngineSide, Failure, FromAgent, Proposal, ProtocolError, Running, Start, TurnRecord};
use agent::{AgentError, Reach, Stream, ToolResult, main_loop};
use model::event::{DecisionRecord, Verdict};
use model::evidence::Probe;
use model::{Digest, Ending, Layer, Tool};

/// What an engine keeps of a task: it outlives the agent's process.
#[derive(Default)]
pub struct Engine {
    pub messages: Vec<Message>,
    pub outcomes: BTreeMap<CallId, ToolResult>,
    pub runs: Vec<Proposal>,
    pub turns: Vec<TurnRecord>,
    pub heard: Vec<FromAgent>,
}

/// How one process of the agent ended.
#[derive(Debug)]
pub enum End {
    Finished(String),
    Failed(Failure),
    Killed,
}

/// What happens to a proposal when the agent is killed while it waits for the answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AtKill {
    /// The engine had not begun with it.
    NotSeen,
    /// The engine had done it and recorded its outcome.
    Done,
    /// The engine had begun, and died as well.
    Unknown,
}

impl Engine {
    /// Runs one process of the agent to its end.
    pub fn run(&mut self, base_url: &str, start: &Start) -> End {
        self.run_until(base_url, start, usize::MAX, AtKill::NotSeen)
    }

    /// Runs one process of the agent, and kills it when it has said so many things.
    pub fn run_until(&mut self, base_url: &str, start: &Start, most: usize, at_kill: AtKill) -> End {
        let (side, agent) = spawn();
        let confined = side.prepare(base_url, None).expect("the agent gives up its rights");
        let used = self.turns.iter().map(|turn| turn.usage);
        let tokens_used =
            used.map(|usage| usage.prompt_cache_hit + usage.prompt_cache_miss + usage.completion).sum();
        let start = Start { tokens_used, ..start.clone() };
        let mut running = confined.start(&start, &self.messages).expect("the agent starts");
        for heard in 1.. {
            let Some(said) = running.hear().expect("the agent keeps to the protocol") else {
                panic!("the agent ended without a word");
            };
            self.heard.push(said.clone());
            if heard > most {
                self.drop_at(&said, at_kill);
                drop(running);
                let _ = agent.join().expect("the agent does not crash");
                return End::Killed;
            }
            if let Some(end) = self.take(said, &mut running) {
                assert!(running.hear().expect("nothing follows").is_none());
                agent.join().expect("the agent does not crash").expect("the agent ends well");
                return end;
            }
        }
        unreachable!("a task ends");
    }

    /// Takes what was said just before the kill: of a proposal, as much as was done.
    fn drop_at(&mut self, said: &FromAgent, at_kill: AtKill) {
        let FromAgent::Propose(proposal) = said else { return };
        match at_kill {
            AtKill::NotSeen => {}
            AtKill::Done => drop(self.outcome(proposal)),
            AtKill::Unknown => {
                let reason = "the engine was stopped".to_owned();
                self.outcomes.insert(proposal.call, ToolResult::Unknown { reason });
            }
        }
    }

    fn take(&mut self, said: FromAgent, running: &mut Running<PipeReader, PipeWriter>) -> Option<End> {
        match said {
            FromAgent::Propose(proposal) => {
                let outcome = self.outcome(&proposal);
                running.answer(proposal.call, outcome).expect("the agent waits");
            }
            FromAgent::Message { message } => self.messages.push(message),
            FromAgent::Turn(turn) => self.turns.push(turn),
            FromAgent::Finished { summary } => return Some(End::Finished(summary)),
            FromAgent::Failed(failure) => return Some(End::Failed(failure)),
            FromAgent::Progress(_) | FromAgent::Confined { .. } => {}
        }
        None
    }

    /// Returns what came of a call; a call that was seen before is not run again.
    fn outcome(&mut self, proposal: &Proposal) -> ToolResult {
        if let Some(known) = self.outcomes.get(&proposal.call) {
            return known.clone();
        }
        self.runs.push(proposal.clone());
        let outcome = made_up(proposal, self.runs.len());
        self.outcomes.insert(proposal.call, outcome.clone());
        outcome
    }
}

fn made_up(proposal: &Proposal, run: usize) -> ToolResult {
    let ran = |status, stdout: String| ToolResult::Ran {
        ending: Ending::Exited { status },
        stdout: Stream::whole(stdout),
        stderr: Stream::default(),
        notes: Vec::new(),
    };
    match &proposal.tool {
        Tool::Write { path, .. } if path.as_bytes().starts_with(b".git/") => {
            ToolResult::Denied { decision: Box::new(denial()), notes: Vec::new() }
        }
        Tool::Run { argv } if argv.iter().any(|word| word.as_bytes().starts_with(b"fail")) => {
            ran(1, String::new())
        }
        Tool::Run { argv } if argv[0].as_bytes() == b"leak" => ran(0, format!("key={}\n", super::KEY)),
        Tool::Run { argv } if argv[0].as_bytes() == b"flood" => ran(0, "0123456789".repeat(100_000)),
        tool => ran(0, format!("run {run} was {}\n", tool.name())),
    }
}

pub fn denial() -> DecisionRecord {
    DecisionRecord {
        verdict: Verdict::Deny,
        rules: vec!["git-internals".into()],
        reason: "protected-path".into(),
        advice: "leave hooks to a person".into(),
        person_may_allow: false,
        grant: None,
        policy: Digest::of(b"policy"),
    }
}

type Agent = JoinHandle<Result<(), AgentError>>;

/// Starts an agent in a thread, with pipes for its standard streams.
pub fn spawn() -> (EngineSide<PipeReader, PipeWriter>, Agent) {
    spawn_with(|_| Ok(vec![probe(true)]))
}

pub fn spawn_with(
    confine: impl FnOnce(&Reach) -> Result<Vec<Probe>, String> + Send + 'static,
) -> (EngineSide<PipeReader, PipeWriter>, Agent) {
    let (from_engine, to_agent) = pipe().expect("a pipe");
    let (from_agent, to_engine) = pipe().expect("a pipe");
    let agent = std::thread::spawn(move || main_loop(from_engine, to_engine, confine));
    (EngineSide::new(from_agent, to_agent), agent)
}

pub fn probe(held: bool) -> Probe {
    Probe {
        name: "start-a-program".into(),
        layer: Layer::Seccomp,
        held,
        observed: "EPERM".into(),
        control: None,
    }
}

/// Waits for the agent's end and returns what it was.
pub fn end_of(agent: Agent) -> Result<(), ProtocolError> {
    match agent.join().expect("the agent does not crash") {
        Ok(()) => Ok(()),
        Err(AgentError::Engine(error)) => Err(error),
    }
}
