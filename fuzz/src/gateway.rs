//! What the gateway hears from clients inside, and the rules that people write for it.

use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use egress::decide::Rules;
use egress::http::hook::{Hook, Later};
use egress::http::{Meant, Outside, Reached, Speaks, Target, Unreached, Way, serve};
use egress::{Context, Refusal, Upstream, heard};
use model::EgressRule;
use model::egress::{Attempt, Bounds, Door, HostName, Protocol, Ranges, Verdict};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::runtime::{Builder, Runtime};

use crate::targets::size;

const RULES: [&str; 4] =
    ["https://a.test", "GET http://a.test/open/**", "http://*.b.test:8080", "tcp://192.0.2.1:22"];

fn rules() -> Vec<EgressRule> {
    RULES.map(|rule| rule.parse().expect("a rule")).to_vec()
}

static CONTEXT: LazyLock<Context> = LazyLock::new(|| {
    let upstream = Upstream::new(&[], Default::default()).expect("needs nothing");
    let bounds = Bounds { questions: u32::MAX, ..Bounds::default() };
    Context::new(Rules::new(rules()), upstream, Ranges::default(), bounds)
});

/// A question for a name: what it is answered with is never the address of another range.
pub(crate) fn question(bytes: &[u8]) -> String {
    let Some(answer) = heard::question(&CONTEXT, bytes) else { return "no answer".to_owned() };
    assert_eq!(answer.get(..2), bytes.get(..2), "an answer is to its question");
    let told = CONTEXT.attempts.take().0.len();
    // RFC 1035, section 4.1.1.
    let code = match answer[3] & 15 {
        0 => "answered",
        1 => "malformed",
        3 => "no such name",
        4 => "not implemented",
        5 => "refused",
        _ => "another code",
    };
    format!("{code}, {} answers, {} told", size(usize::from(answer[7])), size(told))
}

/// The first message of TLS.
pub(crate) fn hello(bytes: &[u8]) -> String {
    match heard::hello(bytes) {
        Some((name, hides)) => format!("{} {hides}", name.is_some_and(|name| HostName::parse(&name).is_ok())),
        None => "none".to_owned(),
    }
}

/// A request for a tunnel.
pub(crate) fn tunnel(bytes: &[u8]) -> String {
    target(heard::tunnel(bytes))
}

/// A request of SOCKS.
pub(crate) fn socks(bytes: &[u8]) -> String {
    target(heard::socks(bytes))
}

/// What a client is read to ask for is a name or an address in its one spelling, and can be written as a rule.
fn target(asked: Option<(String, u16)>) -> String {
    let Some((host, port)) = asked else { return "nowhere".to_owned() };
    let rule: Result<EgressRule, _> = format!("tcp://{host}:{port}").parse();
    match rule {
        Ok(rule) => {
            assert_eq!(rule.to_string(), format!("tcp://{host}:{port}"), "a host has one spelling");
            if rule.is_inward() { "an address".to_owned() } else { "a name".to_owned() }
        }
        Err(error) => {
            assert_eq!(port, 0, "{host}: {error}");
            "port 0".to_owned()
        }
    }
}

/// A rule: what it says reads as itself again, and covers itself.
pub(crate) fn rule(bytes: &[u8]) -> String {
    match String::from_utf8_lossy(bytes).parse::<EgressRule>() {
        Ok(rule) => {
            assert_eq!(rule.to_string().parse().as_ref(), Ok(&rule), "a rule reads as itself again");
            assert!(rule.covers(&rule), "a rule covers itself");
            format!("{} {}", rule.protocol, rule.looks_inside())
        }
        // Its kind: the rest of the sentence is what was read.
        Err(error) => {
            format!("{error:?}").chars().take_while(|c| c.is_ascii_alphabetic() || *c == '(').collect()
        }
    }
}

/// A server that nobody reaches, and what was told of who tried.
#[derive(Default)]
struct Nowhere {
    rules: Vec<EgressRule>,
    told: Mutex<Vec<Attempt>>,
}

impl Outside for Nowhere {
    fn rules(&self) -> &[EgressRule] {
        &self.rules
    }

    fn connect<'a>(
        &'a self,
        target: &'a Target,
        rule: &'a EgressRule,
    ) -> Later<'a, Result<Reached, Unreached>> {
        assert!(target.is_of(rule), "{target:?} is not what {rule} is about");
        Box::pin(async { Err(Unreached::Failed("nobody is there".to_owned())) })
    }

    fn hook(&self, _registry: &str) -> Option<Arc<dyn Hook>> {
        None
    }

    fn count(&self, _way: Way, _bytes: usize) -> Result<(), Refusal> {
        Ok(())
    }

    fn tell(&self, attempt: Attempt) {
        self.told.lock().expect("nobody panicked").push(attempt);
    }
}

/// Requests to the HTTP proxy: none is let out that no rule takes, and each that is heard is told.
pub(crate) fn request(bytes: &[u8]) -> String {
    thread_local! {
        static RUNTIME: Runtime = paused().expect("a runtime");
    }
    let outside = Arc::new(Nowhere { rules: rules(), told: Mutex::default() });
    let answer = RUNTIME.with(|runtime| runtime.block_on(spoken(bytes, Arc::clone(&outside))));
    let told = outside.told.lock().expect("nobody panicked");
    for attempt in told.iter() {
        if let Verdict::Failed { rule, .. } | Verdict::Allowed { rule } = &attempt.verdict {
            assert!(RULES.contains(&rule.as_str()), "{rule}");
        }
    }
    let status = match answer.get(9..12) {
        Some(b"400") => "bad",
        Some(b"403") => "refused",
        Some(b"502") => "failed",
        Some(_) => "another status",
        None => "no answer",
    };
    format!("{} told, {status}", size(told.len()))
}

/// A runtime whose clock stands still while there is something to do, and else goes to the next time-out at once.
fn paused() -> std::io::Result<Runtime> {
    Builder::new_current_thread().enable_time().start_paused(true).build()
}

async fn spoken(bytes: &[u8], outside: Arc<Nowhere>) -> Vec<u8> {
    let (mut client, server) = duplex(1 << 20);
    let meant = Meant { target: None, protocol: Protocol::Http, door: Door::Proxy };
    let served = async {
        // A client that speaks no HTTP is an error, and no more than that.
        let _ = serve(server, Speaks::Http1, meant, outside).await;
    };
    let said = async {
        let mut answer = Vec::new();
        let _ = client.write_all(bytes).await;
        let _ = client.read_to_end(&mut answer).await;
        answer
    };
    let both = async { tokio::join!(served, said).1 };
    tokio::time::timeout(Duration::from_secs(600), both).await.expect("a client is answered or let go")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seed(name: &str) -> Vec<u8> {
        std::fs::read(format!("{}/seeds/{name}", env!("CARGO_MANIFEST_DIR"))).expect("is there")
    }

    #[test]
    fn the_seeds_come_as_far_as_they_should() {
        for (name, run, answer) in [
            ("egress-hello/plain", hello as fn(&[u8]) -> String, "true false"),
            ("egress-hello/hidden", hello, "true true"),
            ("egress-hello/pieces", hello, "true false"),
            ("egress-question/allowed", question, "answered, one answers, none told"),
            ("egress-question/below", question, "answered, one answers, none told"),
            ("egress-question/refused", question, "no such name, none answers, one told"),
            ("egress-request/get", request, "one told, failed"),
            ("egress-request/post", request, "one told, failed"),
            ("egress-request/two", request, "some told, refused"),
            ("egress-rule/1", rule, "https true"),
            ("egress-rule/2", rule, "tcp false"),
            ("egress-rule/3", rule, "http false"),
            ("egress-socks/name", socks, "a name"),
            ("egress-socks/four", socks, "an address"),
            ("egress-socks/six", socks, "an address"),
            ("egress-tunnel/name", tunnel, "a name"),
        ] {
            assert_eq!(run(&seed(name)), answer, "{name}");
        }
    }
}
