//! Redaction: secrets are replaced by tokens before anything is kept.
//!
//! Guarantees: a value that was made known is found in each of its forms ([`model::redaction`]), also behind escapes;
//! what shows by itself that it is a credential (`inspect`) is found without being known. The token of a value is the
//! beginning of its digest under the key of the state directory, so that equal values can be told to be equal and none can
//! be told from its token. The same text with the same secrets gives the same text, and the work grows with the text alone.
//! Leaves to others: making secrets known before something is kept that may hold them, and asking for this (`store`).

mod escapes;
mod json;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

use aho_corasick::AhoCorasick;
use inspect::credentials::{Shaped, values_in};
use model::redaction::{Form, forms_of, is_looked_for, token, tokens};

use crate::store::Key;
use escapes::{Decoded, Kind};

/// The longest value that is looked for: the longest private keys are shorter.
const LONGEST: usize = 16 << 10;
/// The most values that are looked for, and the most bytes of them together: what finds them has a node for each byte of each
/// form, and credential files are anybody's.
const MOST: usize = 4096;
const MOST_BYTES: usize = 128 << 10;
/// The digits of base64 around a found form that can hold bits of the value too: one group.
const GROUP: usize = 4;
/// A part of a form shorter than this, where output was cut, says nothing of the value.
const LEAST_PART: usize = 4;

/// The secrets that are known by now.
#[derive(Default)]
pub(crate) struct Redactor(RwLock<Arc<Known>>);

/// Secrets that are known, and what finds them.
#[derive(Default)]
struct Known {
    values: Vec<Secret>,
    forms: Vec<(Form, usize)>,
    searcher: Option<AhoCorasick>,
}

#[derive(Clone)]
struct Secret {
    value: Vec<u8>,
    token: String,
}

/// Where something is that must not be kept, and what stands for it.
struct Hit {
    range: Range<usize>,
    token: String,
}

impl Redactor {
    /// Makes secrets known, each with a name. One that ordinary words could hold is not looked for.
    pub(crate) fn learn(&self, key: &Key, secrets: impl IntoIterator<Item = (String, Vec<u8>)>) {
        let known = self.known();
        let mut values = known.values.clone();
        let mut bytes: usize = values.iter().map(|secret| secret.value.len()).sum();
        for (name, value) in secrets {
            let value = value.trim_ascii().to_vec();
            let has_room = value.len() <= LONGEST && values.len() < MOST && bytes + value.len() <= MOST_BYTES;
            let is_new = || !values.iter().any(|secret| secret.value == value);
            if has_room && is_looked_for(&value) && is_new() {
                let token = token(&name, &key.digest(&value));
                bytes += value.len();
                values.push(Secret { value, token });
            }
        }
        if values.len() > known.values.len() {
            *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(Known::new(values));
        }
    }

    /// Returns bytes without secrets.
    pub(crate) fn clean<'t>(&self, key: &Key, text: &'t [u8]) -> Cow<'t, [u8]> {
        let hits = self.known().hits(key, text);
        if hits.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(replaced(text, &hits)) }
    }

    /// Returns a text without secrets.
    pub(crate) fn clean_text<'t>(&self, key: &Key, text: &'t str) -> Cow<'t, str> {
        match self.clean(key, text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(clean) => Cow::Owned(String::from_utf8_lossy(&clean).into_owned()),
        }
    }

    /// Returns JSON in which no string holds a secret; names of fields stay.
    pub(crate) fn clean_json<'t>(&self, key: &Key, text: &'t str) -> Cow<'t, str> {
        json::map_strings(text, |string| match self.clean(key, string) {
            Cow::Borrowed(_) => None,
            Cow::Owned(clean) => Some(clean),
        })
    }

    /// Returns the head and the tail of something without secrets and without what was cut off one.
    pub(crate) fn clean_ends(&self, key: &Key, head: &[u8], tail: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let known = self.known();
        let (head, tail) = known.whole_forms(head, tail);
        (self.clean(key, head).into_owned(), self.clean(key, tail).into_owned())
    }

    fn known(&self) -> Arc<Known> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Known {
    fn new(values: Vec<Secret>) -> Self {
        let of_one = |(index, secret): (usize, &Secret)| {
            forms_of(&secret.value).into_iter().map(move |form| (form, index)).collect::<Vec<_>>()
        };
        let forms: Vec<(Form, usize)> = values.iter().enumerate().flat_map(of_one).collect();
        let searcher = AhoCorasick::new(forms.iter().map(|(form, _)| &form.bytes));
        // INVARIANT: `learn` takes no more than the searcher has room for.
        let searcher = searcher.unwrap_or_else(|error| unreachable!("a bounded number of bytes: {error}"));
        Self { values, forms, searcher: Some(searcher) }
    }

    /// Finds what must not be kept, in order and without overlaps.
    fn hits(&self, key: &Key, text: &[u8]) -> Vec<Hit> {
        let mut hits = self.known_in(text);
        for decoded in Kind::ALL.into_iter().filter_map(|kind| Decoded::of(text, kind)) {
            let found = self.known_in(decoded.bytes());
            hits.extend(found.into_iter().map(|hit| Hit { range: decoded.original(&hit.range), ..hit }));
        }
        hits.extend(shown(key, text));
        merged(hits)
    }

    /// Finds the forms of what is known. Those that overlap become one as they come: of values that hold each other there can be
    /// many at each byte.
    fn known_in(&self, text: &[u8]) -> Vec<Hit> {
        let Some(searcher) = &self.searcher else { return Vec::new() };
        // Each with the secret that it is, and how long that alone is.
        let mut found: Vec<(Range<usize>, usize, usize)> = Vec::new();
        for one in searcher.find_overlapping_iter(text) {
            let (form, secret) = &self.forms[one.pattern().as_usize()];
            let mut range = around(text, one.range(), form);
            let (mut secret, mut longest) = (*secret, range.len());
            // INVARIANT: they come in the order of their ends, so what overlaps is at the end of what was found.
            while let Some((before, of, length)) = found.pop_if(|(before, ..)| range.start < before.end) {
                range = range.start.min(before.start)..range.end.max(before.end);
                if length >= longest {
                    (secret, longest) = (of, length);
                }
            }
            found.push((range, secret, longest));
        }
        let hit = |(range, secret, _): (Range<usize>, usize, usize)| {
            let token = self.values[secret].token.clone();
            Hit { range, token }
        };
        found.into_iter().map(hit).collect()
    }

    /// Takes the beginning of a form off the end of a head, and the end of one off the beginning of a tail: what stood
    /// between them is gone.
    fn whole_forms<'t>(&self, head: &'t [u8], tail: &'t [u8]) -> (&'t [u8], &'t [u8]) {
        let (mut from_head, mut from_tail) = (0, 0);
        for (form, _) in &self.forms {
            let form = form.bytes.as_slice();
            let backwards: Vec<u8> = form.iter().rev().copied().collect();
            let last = head.iter().skip(head.len().saturating_sub(form.len() - 1));
            let first = tail.iter().take(form.len() - 1).rev();
            from_head = from_head.max(beginning_at_the_end(form, last));
            from_tail = from_tail.max(beginning_at_the_end(&backwards, first));
        }
        let at_least = |part: usize| if part < LEAST_PART { 0 } else { part };
        (&head[..head.len() - at_least(from_head)], &tail[at_least(from_tail)..])
    }
}

/// Returns how much of the beginning of a form stands at the end of a text that is shorter than the form. In one pass, as
/// Knuth, Morris and Pratt do it: a form can repeat itself, and trying each length would take its square.
fn beginning_at_the_end<'t>(form: &[u8], text: impl Iterator<Item = &'t u8>) -> usize {
    // For each beginning of the form, how much of it stands at its own end again.
    let mut again = vec![0; form.len()];
    let advance = |again: &[usize], mut matched: usize, byte: u8| {
        while matched > 0 && byte != form[matched] {
            matched = again[matched - 1];
        }
        if byte == form[matched] { matched + 1 } else { matched }
    };
    for at in 1..form.len() {
        again[at] = advance(&again, again[at - 1], form[at]);
    }
    text.fold(0, |matched, byte| advance(&again, matched, *byte))
}

/// Finds what shows by itself that it is a credential. A token shows only that one was there.
fn shown(key: &Key, text: &[u8]) -> Vec<Hit> {
    let mut found = values_in(text);
    if found.is_empty() {
        return Vec::new();
    }
    let lossless = std::str::from_utf8(text).unwrap_or_default();
    let tokens: Vec<Range<usize>> = tokens(lossless).collect();
    // They are in order.
    let in_token = |range: &Range<usize>| {
        let next = tokens.partition_point(|token| token.end <= range.start);
        tokens.get(next).is_some_and(|token| token.start < range.end)
    };
    found.retain(|found| !in_token(&found.range));
    let hit = |found: Shaped| Hit {
        token: token(found.name, &key.digest(&text[found.range.clone()])),
        range: found.range,
    };
    found.into_iter().map(hit).collect()
}

/// Returns a found range with the digits of base64 around it that hold bits of the value too.
fn around(text: &[u8], found: Range<usize>, form: &Form) -> Range<usize> {
    let is_digit =
        |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'=');
    let count = |digits: usize, wanted: bool| if wanted { digits } else { 0 };
    let before = text[..found.start].iter().rev().take(GROUP).take_while(is_digit).count();
    let behind = text[found.end..].iter().take(GROUP).take_while(is_digit).count();
    found.start - count(before, form.begins_before)..found.end + count(behind, form.ends_behind)
}

/// Puts hits in order, and makes one of those that overlap: the longest says what it is.
fn merged(mut hits: Vec<Hit>) -> Vec<Hit> {
    hits.sort_by_key(|hit| (hit.range.start, std::cmp::Reverse(hit.range.end)));
    let mut merged: Vec<Hit> = Vec::new();
    let mut longest = 0;
    for hit in hits {
        match merged.last_mut() {
            Some(last) if hit.range.start < last.range.end => {
                last.range.end = last.range.end.max(hit.range.end);
                if hit.range.len() > longest {
                    (longest, last.token) = (hit.range.len(), hit.token);
                }
            }
            _ => {
                longest = hit.range.len();
                merged.push(hit);
            }
        }
    }
    merged
}

fn replaced(text: &[u8], hits: &[Hit]) -> Vec<u8> {
    let mut clean = Vec::with_capacity(text.len());
    let mut at = 0;
    for hit in hits {
        clean.extend_from_slice(&text[at..hit.range.start]);
        clean.extend_from_slice(hit.token.as_bytes());
        at = hit.range.end;
    }
    clean.extend_from_slice(&text[at..]);
    clean
}

#[cfg(test)]
mod tests;
