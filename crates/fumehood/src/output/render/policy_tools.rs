//! What the tools around policy find, for people.

use model::event::Verdict;
use model::text::escape;

use super::super::shape::{
    AllowedRow, ClaimWord, DirectionPart, DirectionWord, ExamplePart, ExplainDocument, LayerPart, LayerWord,
    LeftOut, PolicyDiffDocument, PolicyTestDocument, ProveDocument, ReplayDocument, ReplayExample, RulePart,
    SuggestDocument,
};
use super::super::style::Paint;
use super::policy::{decision, one_line};

/// Writes which rows of tables are answered otherwise than they must be.
pub fn policy_test(document: &PolicyTestDocument, paint: Paint) -> String {
    let mut text = String::new();
    for failure in &document.failures {
        let row = if failure.row.is_empty() { String::new() } else { format!(" ({})", escape(&failure.row)) };
        text.push_str(&format!(
            "{}: {}{row} {}",
            paint.bad("otherwise"),
            failure.place,
            escape(&failure.why)
        ));
        text.push_str(&format!("{}\n", by(&failure.reason_code, &failure.matched_rules)));
    }
    let (rows, failed) = (document.rows, document.failures.len());
    let summary = format!("{rows} rows, {} as expected, {failed} otherwise", rows - failed);
    let summary = if failed == 0 { paint.good(summary) } else { paint.bad(summary) };
    text.push_str(&format!("{summary}, by {}\n", document.rules_of));
    text
}

/// Says by which rules, and with which reason, in brackets.
fn by(reason: &str, rules: &[String]) -> String {
    let rules = match rules {
        [] => String::new(),
        rules => format!("by rule `{}`", escape(&rules.join("`, `"))),
    };
    match (reason, rules.as_str()) {
        ("", "") => String::new(),
        ("", rules) => format!(" ({rules})"),
        (reason, "") => format!(" ({})", escape(reason)),
        (reason, rules) => format!(" ({}, {rules})", escape(reason)),
    }
}

/// Writes what policy answers to a request, question by question.
pub fn explanation(document: &ExplainDocument, paint: Paint) -> String {
    let mut text = decision(&document.decision, paint);
    if let Some(then) = &document.recorded {
        let (action, word) = (&then.action, word(then.decision));
        let by = by(&then.reason_code, &then.matched_rules);
        text.push_str(&format!("  when {action} was asked for, the answer was `{word}`{by}\n"));
    }
    text.push_str(&format!("\n{}\n", paint.dim(format!("  what was asked of {}:", document.rules_of))));
    for question in &document.questions {
        text.push_str(&format!("    may this {}?\n", escape(&question.what)));
        let (action, about) = (escape(&question.action), escape(&question.resource));
        text.push_str(&format!("      {}\n", paint.dim(format!("{action} about {about}"))));
        text.push_str(&question.layers.iter().map(|layer| answer_of(layer, paint)).collect::<String>());
    }
    if !document.lifts.is_empty() {
        text.push_str(&format!("\n{}\n", paint.dim("  what would lift it:")));
    }
    text.push_str(&document.lifts.iter().map(|line| format!("    {line}\n")).collect::<String>());
    text
}

fn answer_of(layer: &LayerPart, paint: Paint) -> String {
    let word = match layer.says {
        LayerWord::Permitted => paint.good("permitted"),
        LayerWord::Forbidden => paint.bad("forbidden"),
        LayerWord::Silent => paint.bad("no rule permits it"),
        LayerWord::NothingAgainst => paint.good("nothing is said against it"),
        LayerWord::Failed => paint.bad("a rule cannot be evaluated"),
    };
    format!(
        "      {word} by the layer `{}`\n{}",
        escape(&layer.layer),
        layer.rules.iter().map(rule).collect::<String>()
    )
}

fn rule(rule: &RulePart) -> String {
    let line = rule.line.map(|line| format!(", line {line}")).unwrap_or_default();
    let mut text = format!("        `{}` ({}{line})\n", escape(&rule.rule), escape(&rule.reason_code));
    let facts: Vec<String> = rule.facts.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    if !facts.is_empty() {
        text.push_str(&format!("          it looks at {}\n", escape(&facts.join(", "))));
    }
    if !rule.advice.is_empty() {
        text.push_str(&format!("          instead: {}\n", escape(&rule.advice)));
    }
    text
}

/// Writes what was proved about rules.
pub fn proofs(document: &ProveDocument, paint: Paint) -> String {
    let mut text = String::new();
    for row in &document.claims {
        let word = match row.verdict {
            ClaimWord::Proved => paint.good("proved    "),
            ClaimWord::Refuted => paint.bad("refuted   "),
            ClaimWord::NotProved => paint.bad("not proved"),
        };
        text.push_str(&format!("{word}  {}: {}\n", paint.bold(escape(&row.claim)), escape(&row.says)));
        text.push_str(
            &row.why.iter().map(|why| format!("            {}\n", escape(why))).collect::<String>(),
        );
        text.push_str(
            &row.counterexample.iter().map(|found| example("but allowed is", found)).collect::<String>(),
        );
    }
    let proved = document.claims.iter().filter(|row| row.verdict == ClaimWord::Proved).count();
    let by = document.solver.as_ref().map(|solver| format!(", by {solver}")).unwrap_or_default();
    text.push_str(&format!(
        "{proved} of {} claims proved about {}{by}\n",
        document.claims.len(),
        document.rules_of
    ));
    text
}

/// Writes what becomes wider and narrower.
pub fn policy_diff(document: &PolicyDiffDocument, paint: Paint) -> String {
    let mut text = String::new();
    let mut alike = Vec::new();
    for row in &document.rows {
        let wider = side(&row.wider, paint.bad("wider   "), "now allowed is");
        let narrower = side(&row.narrower, paint.good("narrower"), "no more allowed is");
        if wider.is_none() && narrower.is_none() {
            alike.push(row.action.as_str());
        }
        for (word, more) in [wider, narrower].into_iter().flatten() {
            text.push_str(&format!("{word}  {}\n{more}", paint.bold(escape(&row.action))));
        }
    }
    if !alike.is_empty() {
        text.push_str(&format!("{}: {}\n", paint.dim("alike"), escape(&alike.join(", "))));
    }
    text.push_str(&format!("from {} to {}, by {}\n", document.from, document.to, document.solver));
    text
}

fn side(part: &DirectionPart, word: impl ToString, title: &str) -> Option<(String, String)> {
    match part.found {
        DirectionWord::Nothing => None,
        DirectionWord::Something => {
            Some((word.to_string(), part.example.iter().map(|found| example(title, found)).collect()))
        }
        DirectionWord::NotProved => {
            let why = part.why.as_deref().unwrap_or_default();
            Some((
                format!("not proved to be no {}", word.to_string().trim()),
                format!("            {}\n", escape(why)),
            ))
        }
    }
}

fn example(title: &str, found: &ExamplePart) -> String {
    let (principal, action, resource) =
        (escape(&found.principal), escape(&found.action), escape(&found.resource));
    let context = found.context.to_string();
    format!(
        "            {title}: {principal} {action} {resource}{}\n            with {}\n",
        escape(&by("", &found.rules)),
        escape(&context)
    )
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Allow => "allow",
        Verdict::Narrow => "allow, with less than was asked",
        Verdict::RequireApproval => "ask",
        Verdict::Deny => "deny",
    }
}

/// Writes what rules answer to the requests of the record.
pub fn replay(document: &ReplayDocument, paint: Paint) -> String {
    let mut text = String::new();
    for change in &document.changes {
        let (from, to) = (word(change.from), word(change.to));
        text.push_str(&format!("{}: {}\n", paint.bold(format!("{from} -> {to}")), change.actions));
        text.push_str(&change.examples.iter().map(replayed).collect::<String>());
        let more = change.actions - change.examples.len();
        if more > 0 {
            text.push_str(&format!("    and {more} more\n"));
        }
    }
    text.push_str(&document.left_out.iter().map(left_out).collect::<String>());
    let (decided, alike) = (document.decided, document.alike);
    let summary = match decided {
        0 => "no request of the record was decided again".to_owned(),
        _ => format!(
            "{decided} requests decided again by {}: {alike} alike, {} otherwise",
            document.rules_of,
            decided - alike
        ),
    };
    text.push_str(&format!("{summary}\n"));
    text
}

fn replayed(example: &ReplayExample) -> String {
    let (request, then) = (one_line(&escape(&example.request)), escape(&example.reason_then));
    let now = by(&example.reason_now, &example.rules_now);
    format!("    {}  {request}\n        it was {then}, and is now{now}\n", example.action)
}

fn left_out(left: &LeftOut) -> String {
    format!("not decided again: {} ({})\n", left.actions, escape(&left.why))
}

/// Writes a suggestion.
pub fn suggestion(document: &SuggestDocument, paint: Paint) -> String {
    let denied = by("", &document.denied_by);
    let request = one_line(&escape(&document.request));
    let mut text = format!("{}  {request}\n  denied by {}{denied}\n", document.action, document.rules_of);
    if let Some(why) = &document.refused {
        text.push_str(&format!("{}: {}\n", paint.bad("no suggestion"), escape(why)));
        return text;
    }
    text.push_str(&format!(
        "\n{}\n",
        paint.dim("These rules would allow it. Nothing was changed: put them into your file yourself.")
    ));
    for rule in &document.suggested {
        let head = match &rule.replaces {
            Some(id) => format!("// in place of `{id}`"),
            None => "// a new rule".to_owned(),
        };
        let lines = rule.text.lines().map(|line| format!("{}\n", escape(line)));
        text.push_str(&format!("\n{}\n{}", escape(&head), lines.collect::<String>()));
    }
    let (also, decided) = (document.also_allowed.len(), document.decided);
    text.push_str(&format!("\nof {decided} other requests of the record they would allow {also} more\n"));
    text.push_str(&document.also_allowed.iter().map(replayed).collect::<String>());
    let row = |row: &AllowedRow| format!("they would allow the row {} ({})\n", row.place, escape(&row.row));
    text.push_str(&document.rows_allowed.iter().map(row).collect::<String>());
    text.push_str(&document.left_out.iter().map(left_out).collect::<String>());
    text
}
