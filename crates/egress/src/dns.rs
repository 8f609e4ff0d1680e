//! Questions for names: each name that some rule could allow has an address of its own inside, and no other name exists.
//!
//! Guarantees: no question of the workload leaves the machine; an answer for a name is the same as long as the action lasts;
//! what is no question is not answered, and never a panic.

use std::sync::atomic::Ordering;

use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::opt::EdnsOption;
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};
use model::egress::{Door, HostName};

use crate::attempts::{attempt, refused};
use crate::context::Context;
use crate::refusal::Refusal;

/// How long an answer may be remembered, in seconds. It does not change, but a client that remembers nothing asks again soon.
const TTL: u32 = 60;
/// What a client without EDNS takes in one datagram (RFC 1035, section 4.2.1).
const DATAGRAM_MAX: u16 = 512;
/// What we take and give in one datagram at most (DNS Flag Day 2020).
const DATAGRAM_OURS: u16 = 1232;
/// The option that says why there is no answer (RFC 8914, section 2), and its codes for what is blocked and forbidden.
const EXTENDED_ERROR: u16 = 15;
const BLOCKED: u16 = 15;

/// How a question came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    /// As a datagram, which is answered with one that is not longer than the client takes.
    Datagram,
    /// On a stream.
    Stream,
}

/// Answers a question; nothing when it is none.
pub(crate) fn answer(context: &Context, bytes: &[u8], transport: Transport) -> Option<Vec<u8>> {
    let message = match Message::from_vec(bytes) {
        Ok(message) => message,
        Err(_) => return malformed(bytes),
    };
    if message.metadata.message_type != MessageType::Query {
        return None;
    }
    let mut reply = Message::response(message.metadata.id, message.metadata.op_code);
    reply.metadata.recursion_desired = message.metadata.recursion_desired;
    reply.metadata.recursion_available = true;
    reply.add_queries(message.queries.iter().cloned());
    let mut edns = message.edns.as_ref().map(|_| {
        let mut edns = Edns::new();
        edns.set_max_payload(DATAGRAM_OURS);
        edns
    });
    reply.metadata.response_code = match message.queries.as_slice() {
        _ if message.metadata.op_code != OpCode::Query => ResponseCode::NotImp,
        [query] if query.query_class() == DNSClass::IN => match about(context, query) {
            Ok(answers) => {
                reply.add_answers(answers);
                ResponseCode::NoError
            }
            Err(refusal) => {
                explain(edns.as_mut(), &refusal);
                ResponseCode::NXDomain
            }
        },
        [_] => ResponseCode::Refused,
        _ => ResponseCode::FormErr,
    };
    if let Some(edns) = edns {
        reply.set_edns(edns);
    }
    let room = message
        .edns
        .as_ref()
        .map_or(DATAGRAM_MAX, |edns| edns.max_payload().clamp(DATAGRAM_MAX, DATAGRAM_OURS));
    let bytes = reply.to_vec().ok()?;
    match transport {
        Transport::Datagram if bytes.len() > usize::from(room) => reply.truncate().to_vec().ok(),
        Transport::Datagram | Transport::Stream => Some(bytes),
    }
}

/// Answers what has the beginning of a question and is none (RFC 1035, section 4.1.1).
fn malformed(bytes: &[u8]) -> Option<Vec<u8>> {
    let [high, low, flags, ..] = bytes else { return None };
    let is_answer = flags & 0x80 != 0;
    if is_answer || bytes.len() < 12 {
        return None;
    }
    let id = u16::from_be_bytes([*high, *low]);
    Message::error_msg(id, OpCode::Query, ResponseCode::FormErr).to_vec().ok()
}

fn about(context: &Context, query: &Query) -> Result<Vec<Record>, Refusal> {
    let written = query.name().to_ascii();
    let kind = query.query_type();
    let looked_up = look_up(context, written.trim_end_matches('.'), kind);
    // Which kind of address a client asks for first says nothing; and where a name leads, the connection tells.
    if let Err(refusal) = &looked_up {
        context.attempts.note(attempt(
            Door::Dns,
            written.trim_end_matches('.').to_owned(),
            None,
            refused(refusal),
        ));
    }
    let record = |data| Record::from_rdata(query.name().clone(), TTL, data);
    Ok(looked_up?.into_iter().map(record).collect())
}

fn look_up(context: &Context, written: &str, kind: RecordType) -> Result<Vec<RData>, Refusal> {
    if context.questions.fetch_add(1, Ordering::Relaxed) >= u64::from(context.bounds.questions) {
        return Err(Refusal::new("too-many-questions", "this action has asked for more names than one may"));
    }
    if let Some(address) = address_of_reverse(written) {
        return Ok(match (kind, context.names().name_of(address)) {
            (RecordType::PTR, Some(name)) => pointer(name).into_iter().collect(),
            _ => Vec::new(),
        });
    }
    let name = HostName::parse(written).map_err(|error| Refusal::new("no-name", error.to_string()))?;
    context.rules.name(&name)?;
    let addresses = context.names().addresses_of(&name);
    let (v4, v6) = addresses
        .ok_or_else(|| Refusal::new("too-many-names", "this action has asked for more names than one may"))?;
    Ok(match kind {
        RecordType::A => vec![RData::A(v4.into())],
        RecordType::AAAA => vec![RData::AAAA(v6.into())],
        // The name exists, and has nothing else that a client would need here.
        _ => Vec::new(),
    })
}

fn pointer(name: &HostName) -> Option<RData> {
    let name = Name::from_ascii(format!("{name}.")).ok()?;
    Some(RData::PTR(hickory_proto::rr::rdata::PTR(name)))
}

/// Reads the address in a name for looking up whose it is.
fn address_of_reverse(written: &str) -> Option<std::net::IpAddr> {
    let name = Name::from_ascii(format!("{written}.")).ok()?;
    let network = name.parse_arpa_name().ok()?;
    (network.prefix_len() == network.max_prefix_len()).then(|| network.addr())
}

/// Says in an answer why there is none.
fn explain(edns: Option<&mut Edns>, refusal: &Refusal) {
    let Some(edns) = edns else { return };
    let mut data = BLOCKED.to_be_bytes().to_vec();
    let end = refusal.why.floor_char_boundary(200);
    data.extend_from_slice(&refusal.why.as_bytes()[..end]);
    edns.options_mut().insert(EdnsOption::Unknown(EXTENDED_ERROR, data));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn context() -> Context {
        Context::for_tests(&["https://a.test", "https://*.b.test"])
    }

    fn ask(context: &Context, name: &str, kind: RecordType) -> Message {
        let mut message = Message::query();
        message.add_query(Query::query(Name::from_ascii(name).expect("a name"), kind));
        message.set_edns(Edns::new());
        let bytes = answer(context, &message.to_vec().expect("can be written"), Transport::Datagram);
        Message::from_vec(&bytes.expect("is answered")).expect("can be read")
    }

    #[test]
    fn a_name_of_a_rule_has_addresses_inside_and_keeps_them() {
        let context = context();
        for name in ["a.test.", "x.b.test.", "A.Test."] {
            let (v4, v6) = (ask(&context, name, RecordType::A), ask(&context, name, RecordType::AAAA));
            assert_eq!((v4.metadata.response_code, v4.answers.len()), (ResponseCode::NoError, 1), "{name}");
            assert_eq!(v6.answers.len(), 1);
            assert_eq!(ask(&context, name, RecordType::A).answers[0].data, v4.answers[0].data);
        }
        let data = |name| ask(&context, name, RecordType::A).answers[0].data.clone();
        assert_eq!(data("a.test."), data("A.TEST."));
        assert_ne!(data("a.test."), data("x.b.test."));
        assert!(context.attempts.take().0.is_empty());
    }

    #[test]
    fn letters_before_an_allowed_name_are_told_to_no_server() {
        let rules = ["https://*.b.test"].map(|rule| rule.parse().expect("a rule")).to_vec();
        let upstream = crate::upstream::Upstream::fixed(|name| panic!("{name} was asked for"));
        let (ranges, bounds) = (Default::default(), Default::default());
        let context = Context::new(crate::decide::Rules::new(rules), upstream, ranges, bounds);
        for (kind, answers) in
            [(RecordType::A, 1), (RecordType::AAAA, 1), (RecordType::TXT, 0), (RecordType::NULL, 0)]
        {
            let reply = ask(&context, "73656372657420746f206c656176652074686973.b.test.", kind);
            assert_eq!(reply.answers.len(), answers, "{kind}");
        }
    }

    #[test]
    fn every_other_name_does_not_exist_and_that_is_told_and_said_why() {
        let context = context();
        for name in ["b.test.", "evila.test.", "a.test.evil.test.", "localhost.", "1.", "example.com.", "."] {
            let reply = ask(&context, name, RecordType::A);
            assert_eq!(
                (reply.metadata.response_code, reply.answers.len()),
                (ResponseCode::NXDomain, 0),
                "{name}"
            );
            let edns = reply.edns.expect("was asked for");
            assert!(edns.option(EXTENDED_ERROR.into()).is_some(), "{name}");
        }
        let (told, _) = context.attempts.take();
        assert_eq!(told.len(), 7);
        assert!(told.iter().all(model::egress::Attempt::is_refused));
    }

    #[test]
    fn other_kinds_of_a_name_that_exists_are_empty() {
        let context = context();
        for kind in [RecordType::TXT, RecordType::HTTPS, RecordType::MX, RecordType::CNAME, RecordType::NS] {
            let reply = ask(&context, "a.test.", kind);
            assert_eq!(
                (reply.metadata.response_code, reply.answers.len()),
                (ResponseCode::NoError, 0),
                "{kind}"
            );
        }
    }

    #[test]
    fn an_address_inside_leads_back_to_its_name() {
        let context = context();
        let RData::A(address) = ask(&context, "a.test.", RecordType::A).answers[0].data.clone() else {
            panic!("an address")
        };
        let mut parts: Vec<String> = address.octets().iter().map(u8::to_string).collect();
        parts.reverse();
        let reply = ask(&context, &format!("{}.in-addr.arpa.", parts.join(".")), RecordType::PTR);
        assert_eq!(reply.answers[0].data.to_string(), "a.test.");
    }

    #[test]
    fn questions_are_bounded() {
        let mut context = context();
        context.bounds.questions = 2;
        let code = |name| ask(&context, name, RecordType::A).metadata.response_code;
        assert_eq!(
            [code("a.test."), code("a.test."), code("a.test.")],
            [ResponseCode::NoError, ResponseCode::NoError, ResponseCode::NXDomain]
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered_or_not_and_never_more(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let context = context();
            for transport in [Transport::Datagram, Transport::Stream] {
                if let Some(reply) = answer(&context, &bytes, transport) {
                    prop_assert_eq!(&reply[..2], &bytes[..2]);
                    prop_assert!(reply[2] & 0x80 != 0, "it is an answer");
                }
            }
        }
    }
}
