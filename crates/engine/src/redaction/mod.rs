//! Redaction: secrets are replaced by tokens before anything is kept.
//!
//! Guarantees: a value that was made known is found in each of its forms ([`model::redaction`]), also behind percent signs;
//! what shows by itself that it is a credential (`inspect`) is found without being known. The token of a value is the
//! beginning of its digest under the key of the state directory, so that equal values can be told to be equal and none can
//! be told from its token. The same text with the same secrets gives the same text, and the work grows with the text alone.
//! Leaves to others: making secrets known before something is kept that may hold them, and asking for this (`store`).

mod json;
mod percent;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

use aho_corasick::AhoCorasick;
use inspect::credentials::{Shaped, values_in};
use model::redaction::{Form, forms_of, is_looked_for, token, tokens};

use crate::store::Key;

/// The longest value that is looked for: the longest private keys are shorter.
const LONGEST: usize = 16 << 10;
/// The most values that are looked for.
const MOST: usize = 4096;
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
        for (name, value) in secrets {
            let value = value.trim_ascii().to_vec();
            let has_room = value.len() <= LONGEST && values.len() < MOST;
            let is_new = || !values.iter().any(|secret| secret.value == value);
            if has_room && is_looked_for(&value) && is_new() {
                let token = token(&name, &key.digest(&value));
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
        if let Some(decoded) = percent::Decoded::of(text) {
            let found = self.known_in(decoded.bytes());
            hits.extend(found.into_iter().map(|hit| Hit { range: decoded.original(&hit.range), ..hit }));
        }
        hits.extend(shown(key, text));
        merged(hits)
    }

    fn known_in(&self, text: &[u8]) -> Vec<Hit> {
        let Some(searcher) = &self.searcher else { return Vec::new() };
        let found = searcher.find_overlapping_iter(text).map(|found| {
            let (form, secret) = &self.forms[found.pattern().as_usize()];
            Hit { range: around(text, found.range(), form), token: self.values[*secret].token.clone() }
        });
        found.collect()
    }

    /// Takes the beginning of a form off the end of a head, and the end of one off the beginning of a tail: what stood
    /// between them is gone.
    fn whole_forms<'t>(&self, head: &'t [u8], tail: &'t [u8]) -> (&'t [u8], &'t [u8]) {
        let parts = |form: &[u8]| LEAST_PART..form.len();
        let (mut from_head, mut from_tail) = (0, 0);
        for (form, _) in &self.forms {
            let form = form.bytes.as_slice();
            let begins = |part: &usize| head.ends_with(&form[..*part]);
            let ends = |part: &usize| tail.starts_with(&form[form.len() - *part..]);
            from_head = from_head.max(parts(form).rev().find(begins).unwrap_or(0));
            from_tail = from_tail.max(parts(form).rev().find(ends).unwrap_or(0));
        }
        (&head[..head.len() - from_head], &tail[from_tail..])
    }
}

/// Finds what shows by itself that it is a credential. A token shows only that one was there.
fn shown(key: &Key, text: &[u8]) -> Vec<Hit> {
    let mut found = values_in(text);
    if found.is_empty() {
        return Vec::new();
    }
    let lossless = std::str::from_utf8(text).unwrap_or_default();
    let tokens: Vec<Range<usize>> = tokens(lossless).collect();
    let overlaps = |a: &Range<usize>, b: &Range<usize>| a.start < b.end && b.start < a.end;
    found.retain(|found| !tokens.iter().any(|token| overlaps(&found.range, token)));
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
