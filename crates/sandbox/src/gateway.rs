//! The gateway of a sandbox, as its supervisor sees it: started with the sandbox, told what was granted, heard while the
//! command runs, started again when it ends too early, and ended with the sandbox.
//!
//! Guarantees: no command starts before the gateway has shown that it is confined; what it tells is handed on before the
//! next is heard, and a gateway whose words cannot be kept is closed for good; where none serves, what connects is refused
//! and never waits; when this value is finished or dropped, its process has ended.
//! Leaves to others: what may be reached (its rules), deciding by them (`egress`), and keeping what it tells (`engine`).

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Child;
use std::time::{Duration, Instant};

use launcher::plan::Entrance;
use launcher::wire;
use model::Event;
use model::egress::{Attempt, CredentialAlert, EgressRule, FromGateway, NetworkUse, ToGateway};
use model::evidence::Probe;
use rustix::net::sockopt::{Timeout, set_socket_timeout};

use crate::error::SandboxError;
use crate::spec::{GatewaySpec, Spec};
use crate::{service, wait, way_out};

/// How long a gateway may take until it serves. It takes milliseconds; only a machine without room takes longer.
const READY_WITHIN: Duration = Duration::from_secs(10);
/// How long what connects may wait for another gateway.
const BACK_WITHIN: Duration = Duration::from_secs(2);
/// How long a gateway may take to tell what is left, and to end.
const FINISH_WITHIN: Duration = Duration::from_secs(2);
/// How long a gateway may leave what it is told unheard.
const HEARS_WITHIN: Duration = Duration::from_secs(5);
/// How often another one is started.
const RESTARTS_MAX: u32 = 3;
/// How many attempts of one action the record takes. Above that it is closed: nothing passes that is not on record.
const ATTEMPTS_MAX: u64 = 100_000;
/// How many different alerts are listed with the end of an action; each is on the record.
const ALERTS_MAX: usize = 64;

/// Keeps what a gateway tells; an error is why it cannot be kept.
pub type Record<'a> = &'a mut dyn FnMut(&Event) -> Result<(), String>;

/// Says what became of the credentials of a run since it was asked last.
pub type Watch<'a> = &'a mut dyn FnMut() -> Watched;

/// What became of the credentials of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Watched {
    /// Those that may no longer be used, by name.
    pub ended: Vec<String>,
    /// Whether the run is to end at once.
    pub stop: bool,
}

/// How often what became of credentials is asked. One that is taken back is used no longer than this.
const WATCHES_EVERY: Duration = Duration::from_millis(100);

/// The gateway of one sandbox.
#[derive(Debug)]
pub(crate) struct Gateway {
    about: GatewaySpec,
    rules: BTreeSet<EgressRule>,
    /// Our duplicates of the sockets: nobody can make them again.
    entrances: Vec<(Entrance, OwnedFd)>,
    process: Option<Process>,
    /// When another one must serve, after one ended.
    back_by: Option<Instant>,
    /// When it is to be asked what became of its credentials.
    watch_at: Option<Instant>,
    told: u64,
    used: NetworkUse,
}

impl Gateway {
    /// Starts the gateway of a sandbox that has one, and tells it the rules. What comes to it does not exist yet.
    pub(crate) fn start(spec: &Spec) -> Result<Option<Self>, SandboxError> {
        let rules = spec.grant.network.egress();
        if rules.is_some() != spec.gateway.is_some() {
            return Err(match rules {
                Some(_) => SandboxError::Gateway("this program was started without one".to_owned()),
                None => SandboxError::OtherGrant,
            });
        }
        let Some((rules, about)) = rules.zip(spec.gateway.as_ref()) else { return Ok(None) };
        let mut gateway = Self {
            about: about.clone(),
            rules: rules.clone(),
            entrances: Vec::new(),
            process: None,
            back_by: None,
            watch_at: about.also.iter().any(is_watched).then(Instant::now),
            told: 0,
            used: NetworkUse::default(),
        };
        gateway.process = Some(gateway.begin().map_err(|error| SandboxError::Gateway(error.to_string()))?);
        Ok(Some(gateway))
    }

    /// Takes sockets that the launcher made; the last of them let it serve.
    pub(crate) fn take(
        &mut self,
        entrances: Vec<Entrance>,
        sockets: Vec<OwnedFd>,
        last: bool,
    ) -> Result<(), SandboxError> {
        if entrances.len() != sockets.len() {
            return Err(SandboxError::Gateway("a socket of the sandbox did not arrive".to_owned()));
        }
        self.entrances.extend(entrances.into_iter().zip(sockets));
        match self.process.as_ref().filter(|_| last) {
            Some(process) => self.open(process).map_err(|error| SandboxError::Gateway(error.to_string())),
            None => Ok(()),
        }
    }

    /// Waits until it serves, and returns what it tried and saw.
    pub(crate) fn ready(&mut self) -> Result<Vec<Probe>, SandboxError> {
        let failed = |why: String| Err(SandboxError::Gateway(why));
        let Some(process) = &mut self.process else { return failed("it is not there".to_owned()) };
        match process.hear_by(Instant::now() + READY_WITHIN) {
            Ok(Some(FromGateway::Ready(probes))) => {
                let open: Vec<Probe> = probes.iter().filter(|probe| !probe.held).cloned().collect();
                if open.is_empty() && !probes.is_empty() {
                    Ok(probes)
                } else {
                    Err(SandboxError::NotProved(open))
                }
            }
            Ok(Some(FromGateway::Failed(why))) => failed(why),
            Ok(Some(_)) => failed("it told of attempts before it served".to_owned()),
            Ok(None) => failed(process.end()),
            Err(error) => failed(format!("it was not heard of: {error}")),
        }
    }

    /// Returns the event by which the record knows that it serves.
    pub(crate) fn started(&self, probes: Vec<Probe>) -> Event {
        Event::GatewayStarted { rules: self.rules.iter().map(ToString::to_string).collect(), probes }
    }

    /// Returns what can be read when it tells something, or has ended.
    pub(crate) fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.process.as_ref().map(|process| process.socket.as_fd())
    }

    /// Returns when it must be looked after, also when it tells nothing.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.back_by.into_iter().chain(self.watch_at).min()
    }

    /// Hears what it tells.
    pub(crate) fn hear(&mut self, record: Record<'_>) {
        let Some(process) = &mut self.process else { return };
        match process.hear() {
            Ok(Some(FromGateway::Ready(probes))) => self.is_back(probes, record),
            Ok(Some(FromGateway::Failed(why))) => self.lost(&why, record),
            Ok(Some(FromGateway::Attempts(attempts))) => self.attempts(attempts, 0, record),
            Ok(Some(FromGateway::Dropped(dropped))) => self.attempts(Vec::new(), dropped, record),
            Ok(Some(FromGateway::Alert(alert))) => self.alert(alert, record),
            Ok(None) => {
                let why = process.end();
                self.lost(&why, record);
            }
            Err(error) => self.lost(&format!("what it said is not to be understood: {error}"), record),
        }
    }

    /// Closes a gateway that does not come back in time.
    pub(crate) fn look(&mut self, record: Record<'_>) {
        if self.back_by.is_some_and(|by| Instant::now() >= by) {
            let why = format!("no other one served within {} seconds", BACK_WITHIN.as_secs());
            self.close(&why, record);
        }
    }

    /// Asks what became of its credentials, when it is time, and takes those from it that ended. Tells whether the run is to
    /// end.
    pub(crate) fn watch(&mut self, watch: Watch<'_>, record: Record<'_>) -> bool {
        if self.watch_at.is_none_or(|at| Instant::now() < at) {
            return false;
        }
        self.watch_at = Some(Instant::now() + WATCHES_EVERY);
        let Watched { ended, stop } = watch();
        for credential in ended {
            // Another one that is started is not given it.
            self.about
                .also
                .retain(|one| !matches!(one, ToGateway::Credential(given) if given.name == credential));
            let told = ToGateway::Revoke { credential };
            // One that cannot be told may have ended by itself; in any case it is not left with the credential.
            if let Some(Err(error)) = self.process.as_ref().map(|process| process.say(&told, &[])) {
                self.lost(&format!("it could not be told that a credential ended: {error}"), record);
            }
        }
        stop
    }

    /// Ends it when everything inside has ended: what it has left to tell is heard first. Returns what it told in all.
    pub(crate) fn finish(mut self, record: Record<'_>) -> NetworkUse {
        self.entrances.clear();
        // A gateway that is not there has nothing to tell, and is not started again.
        let asked = self.process.as_ref().is_some_and(|process| process.say(&ToGateway::Finish, &[]).is_ok());
        let by = Instant::now() + FINISH_WITHIN;
        while asked && let Some(process) = &mut self.process {
            match process.hear_by(by) {
                Ok(Some(FromGateway::Attempts(attempts))) => self.attempts(attempts, 0, record),
                Ok(Some(FromGateway::Dropped(dropped))) => self.attempts(Vec::new(), dropped, record),
                Ok(Some(FromGateway::Alert(alert))) => self.alert(alert, record),
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(error) => {
                    self.close(&format!("it did not tell to the end: {error}"), record);
                }
            }
        }
        self.process = None;
        std::mem::take(&mut self.used)
    }

    fn begin(&self) -> io::Result<Process> {
        let (child, socket) = service::spawn_gateway(&self.about.program, &self.about.arguments)?;
        let process = Process { child, socket };
        set_socket_timeout(&process.socket, Timeout::Send, Some(HEARS_WITHIN))?;
        process.say(&ToGateway::Begin(Box::new(self.about.begin.clone())), &[])?;
        for rule in &self.rules {
            process.say(&ToGateway::Rule(Box::new(rule.clone())), &[])?;
        }
        self.about.also.iter().try_for_each(|message| process.say(message, &[]))?;
        Ok(process)
    }

    fn open(&self, process: &Process) -> io::Result<()> {
        for some in self.entrances.chunks(wire::FDS_MAX) {
            let told = some.iter().map(|(entrance, _)| way_out::told(*entrance)).collect();
            let sockets: Vec<_> = some.iter().map(|(_, socket)| socket.as_fd()).collect();
            process.say(&ToGateway::Entrances(told), &sockets)?;
        }
        process.say(&ToGateway::Open, &[])
    }

    fn attempts(&mut self, attempts: Vec<Attempt>, dropped: u64, record: Record<'_>) {
        attempts.iter().for_each(|attempt| self.used.add(attempt));
        self.used.untold += dropped;
        self.told += attempts.len() as u64;
        if let Err(why) = record(&Event::NetworkAttempts { attempts, dropped }) {
            self.close(&format!("what was tried could not be recorded: {why}"), record);
        } else if self.told >= ATTEMPTS_MAX {
            self.close(
                &format!("{ATTEMPTS_MAX} attempts are all that the record takes of one action"),
                record,
            );
        }
    }

    fn alert(&mut self, alert: CredentialAlert, record: Record<'_>) {
        if self.used.alerts.len() < ALERTS_MAX && !self.used.alerts.contains(&alert) {
            self.used.alerts.push(alert.clone());
        }
        if let Err(why) = record(&Event::CredentialAlert { alert }) {
            self.close(&format!("an alert could not be recorded: {why}"), record);
        }
    }

    /// Another one serves, when it has shown that it is confined.
    fn is_back(&mut self, probes: Vec<Probe>, record: Record<'_>) {
        if self.back_by.take().is_none() || probes.is_empty() || probes.iter().any(|probe| !probe.held) {
            self.close("another one was started and is not confined", record);
        } else if let Err(why) = record(&self.started(probes)) {
            self.close(&format!("its start could not be recorded: {why}"), record);
        }
    }

    /// Starts another one in the place of one that has ended. It has the time that is left since the first ended.
    fn lost(&mut self, why: &str, record: Record<'_>) {
        self.process = None;
        if self.used.restarts >= RESTARTS_MAX {
            return self.close(&format!("{why}, and was started {RESTARTS_MAX} times more"), record);
        }
        self.used.restarts += 1;
        self.back_by.get_or_insert_with(|| Instant::now() + BACK_WITHIN);
        if let Err(unkept) = record(&Event::GatewayEnded { why: why.to_owned(), again: true }) {
            return self.close(&format!("its end could not be recorded: {unkept}"), record);
        }
        match self.begin().and_then(|process| self.open(&process).map(|()| process)) {
            Ok(process) => self.process = Some(process),
            Err(error) => self.close(&format!("another one could not be started: {error}"), record),
        }
    }

    /// Lets nobody out any longer: with the last descriptor of a socket, what connects to it is refused.
    fn close(&mut self, why: &str, record: Record<'_>) {
        (self.process, self.back_by) = (None, None);
        self.entrances.clear();
        if self.used.closed.is_none() {
            self.used.closed = Some(why.to_owned());
            // When the record is the reason, the end of the action says it.
            let _ = record(&Event::GatewayEnded { why: why.to_owned(), again: false });
        }
    }
}

/// Tells whether what a gateway is told can come to an end before it.
fn is_watched(told: &ToGateway) -> bool {
    matches!(told, ToGateway::Credential(_) | ToGateway::Canary(_))
}

/// The process of a gateway. When this value goes, it has ended.
#[derive(Debug)]
struct Process {
    child: Child,
    socket: OwnedFd,
}

impl Process {
    fn say(&self, message: &ToGateway, sockets: &[BorrowedFd<'_>]) -> io::Result<()> {
        wire::send_bytes(&self.socket, &serde_json::to_vec(message)?, sockets)
    }

    fn hear(&mut self) -> io::Result<Option<FromGateway>> {
        let Some((bytes, _)) = wire::receive_bytes(&self.socket)? else { return Ok(None) };
        Ok(Some(serde_json::from_slice(&bytes)?))
    }

    fn hear_by(&mut self, by: Instant) -> io::Result<Option<FromGateway>> {
        wait::readable(self.socket.as_fd(), by)?;
        self.hear()
    }

    /// Ends it, and says how it had ended.
    fn end(&mut self) -> String {
        // One that has closed its socket is about to end by itself.
        let by = Instant::now() + Duration::from_millis(100);
        while Instant::now() < by && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ = self.child.kill();
        match self.child.wait() {
            Ok(status) => format!("it ended with {status}"),
            Err(error) => format!("it ended, and nobody knows how: {error}"),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use model::egress::{Begin, Bounds, Door, Ranges, Verdict};
    use model::units::{Bytes, Timestamp};

    use super::*;

    fn gateway() -> Gateway {
        let begin = Begin { ranges: Ranges::default(), resolvers: Vec::new(), bounds: Bounds::default() };
        Gateway {
            about: GatewaySpec {
                program: "/no/such/program".into(),
                arguments: Vec::new(),
                begin,
                also: Vec::new(),
            },
            rules: BTreeSet::new(),
            entrances: Vec::new(),
            process: None,
            back_by: None,
            watch_at: None,
            told: 0,
            used: NetworkUse::default(),
        }
    }

    fn attempt() -> Attempt {
        Attempt {
            at: Timestamp::from_nanos(1),
            door: Door::Direct,
            name: None,
            port: None,
            address: None,
            method: None,
            path: None,
            package: None,
            verdict: Verdict::Allowed { rule: "https://a.test".to_owned() },
            sent: Bytes::new(0),
            received: Bytes::new(0),
            continued: false,
        }
    }

    #[test]
    fn more_attempts_than_the_record_takes_close_it() {
        let (mut gateway, mut recorded) = (gateway(), 0);
        let mut record = |event: &Event| {
            recorded += usize::from(matches!(event, Event::NetworkAttempts { .. }));
            Ok(())
        };
        let many = vec![attempt(); 1000];
        for _ in 0..99 {
            gateway.attempts(many.clone(), 0, &mut record);
        }
        assert_eq!(gateway.used.closed, None);
        gateway.attempts(many, 0, &mut record);
        assert!(gateway.used.closed.is_some_and(|why| why.contains("100000 attempts")));
        assert_eq!(recorded, 100);
    }

    #[test]
    fn one_that_does_not_come_back_in_time_is_closed() {
        let (mut gateway, mut ended) = (gateway(), Vec::new());
        let mut record = |event: &Event| {
            ended.push(event.name());
            Ok(())
        };
        gateway.back_by = Some(Instant::now() + Duration::from_secs(60));
        gateway.look(&mut record);
        assert_eq!(gateway.used.closed, None);
        gateway.back_by = Some(Instant::now());
        gateway.look(&mut record);
        assert!(gateway.used.closed.is_some_and(|why| why.contains("no other one served")));
        assert_eq!((ended, gateway.back_by), (vec!["gateway-ended"], None));
    }

    #[test]
    fn one_that_cannot_be_started_again_is_closed_at_once() {
        let mut gateway = gateway();
        gateway.lost("it ended", &mut |_| Ok(()));
        assert_eq!(gateway.used.restarts, 1);
        assert!(gateway.used.closed.is_some_and(|why| why.contains("could not be started")));
    }
}
