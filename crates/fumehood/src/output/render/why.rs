//! Why something was stopped, for people.

use super::super::shape::{ActionDocument, Cause, WhyDocument};
use super::super::style::Paint;

/// Explains each cause in a sentence, with the rule or layer and the next step.
pub fn why(action: &ActionDocument, document: &WhyDocument, paint: Paint) -> String {
    if document.causes.is_empty() {
        let mut text = format!("nothing was seen to stand in the way of {}\n", paint.name(&document.action));
        // Tools of packages are told to work offline, so they give up before they try the network.
        if let Some(end) = action.end.as_ref().filter(|end| !end.ending.succeeded()) {
            text.push_str(&format!(
                "  it {} by itself: `fumehood show --output` shows what it printed\n",
                end.ending
            ));
            if action.network().is_none() {
                text.push_str(
                    "  inside there is no network, and package managers work offline: fetch what they need outside first, \
                     or ask for a way out with --allow-net\n",
                );
            }
        }
        return text;
    }
    document.causes.iter().map(|cause| one(cause, paint)).collect::<Vec<_>>().join("\n")
}

fn one(cause: &Cause, paint: Paint) -> String {
    let mut text = format!("{}\n", paint.bold(&cause.sentence));
    let by = match (&cause.layer, cause.rules.as_slice()) {
        (Some(layer), _) => format!("held by the layer `{layer}`"),
        (None, []) => String::new(),
        (None, [rule]) => format!("decided by the rule `{}`", model::text::escape(rule)),
        (None, rules) => format!("decided by the rules `{}`", model::text::escape(&rules.join("`, `"))),
    };
    let code = model::text::escape(&cause.code);
    let by = if by.is_empty() { format!("code {code}") } else { format!("{by}, code {code}") };
    text.push_str(&format!("  {}\n", paint.dim(by)));
    for next in &cause.next {
        text.push_str(&format!("  {next}\n"));
    }
    if cause.person_may_allow {
        text.push_str("  a person can allow it\n");
    }
    text
}
