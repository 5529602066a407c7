//! Checks with the platforms that the contexts and things named in the settings exist.

use std::sync::Arc;

use countersign_capabilities::{Nameable, Things};
use countersign_config::{Approvals, Config, most_similar};
use countersign_core::clock::SystemClock;
use futures_util::future::join_all;

use super::{installed, stdout::describe_error};

/// Returns true if the settings name any context or envelope.
pub(super) fn names_any(config: &Config) -> bool {
    let Approvals { contexts, envelopes, .. } = &config.approvals;
    !contexts.is_empty() || !envelopes.is_empty()
}

/// Checks the contexts and things named in the settings. A missing context is an error, since its rules would never
/// apply; a missing thing is only a remark, since it may be created later.
pub(super) async fn run(config: &Config) -> Result<String, String> {
    let all = installed::capabilities(config, Arc::new(SystemClock)).map_err(|error| describe_error(&error))?;
    let mut nameable = Vec::new();
    for found in join_all(all.iter().filter_map(|capability| capability.things()).map(Things::nameable)).await {
        nameable.push(found?);
    }
    compare(&config.approvals, &nameable)
}

/// Compares the names in the settings with those that the platforms returned.
fn compare(settings: &Approvals, nameable: &[Nameable]) -> Result<String, String> {
    let contexts = || nameable.iter().flat_map(|there| there.contexts.iter().map(String::as_str));
    let rules = settings.contexts.keys().map(|context| (format!("approvals.contexts.{context}"), context, true));
    let envelopes = settings.envelopes.iter().flat_map(|(name, envelope)| {
        let key = format!("approvals.envelopes.{name}");
        envelope.contexts.iter().map(move |context| (key.clone(), context, false))
    });
    let mut wrong = Vec::new();
    for (key, context, exact) in rules.chain(envelopes) {
        // Rules match the exact name of a context, envelopes ignore its case.
        let is = |known: &str| if exact { known == context } else { same(known, context) };
        if !contexts().any(is) {
            let nearest = most_similar(context, contexts()).map(|nearest| format!("; the nearest is {nearest}"));
            wrong.push(format!("{key}: there is no context {context}{}", nearest.unwrap_or_default()));
        }
    }
    if !wrong.is_empty() {
        return Err(wrong.join("; "));
    }
    let things = || nameable.iter().flat_map(|there| there.things.iter().map(String::as_str));
    let kinds: Vec<&str> = nameable.iter().map(|there| there.thing).filter(|thing| !thing.is_empty()).collect();
    let kind = kinds.join(" or ");
    let mut remarks = Vec::new();
    for (name, envelope) in &settings.envelopes {
        for subject in envelope.subjects.iter().filter(|subject| !things().any(|known| same(known, subject))) {
            let nearest = most_similar(subject, things()).map(|nearest| format!("; the nearest is “{nearest}”"));
            let nearest = nearest.unwrap_or_default();
            remarks.push(format!("approvals.envelopes.{name}: there is no {kind} “{subject}” yet{nearest}"));
        }
    }
    Ok(if remarks.is_empty() { "everything named in the settings exists".to_owned() } else { remarks.join("; ") })
}

/// Compares names as envelopes do: without regard to case and surrounding spaces.
fn same(one: &str, other: &str) -> bool {
    one.trim().to_lowercase() == other.trim().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use countersign_config::{ContextRule, Envelope};

    #[test]
    fn a_context_has_to_exist_and_an_experiment_should() {
        let contexts = ["assign-prog", "mathstream"].map(str::to_owned);
        let experiments = ["Math Hints", "Running Test"].map(str::to_owned);
        // A context with rules, and the context and experiment of an envelope.
        let cases: [([&str; 3], Result<&str, &str>); 5] = [
            (["assign-prog", "Mathstream", "math hints "], Ok("everything named in the settings exists")),
            (
                ["assign-porg", "mathstream", "Math Hints"],
                Err("approvals.contexts.assign-porg: there is no context assign-porg; the nearest is assign-prog"),
            ),
            (
                ["Assign-prog", "mathstream", "Math Hints"],
                Err("approvals.contexts.Assign-prog: there is no context Assign-prog; the nearest is assign-prog"),
            ),
            (
                ["assign-prog", "mathsteam", "Math Hints"],
                Err("approvals.envelopes.pilot: there is no context mathsteam; the nearest is mathstream"),
            ),
            (
                ["assign-prog", "mathstream", "Maths Hints"],
                Ok("approvals.envelopes.pilot: there is no experiment “Maths Hints” yet; the nearest is “Math Hints”"),
            ),
        ];
        for ([rule, context, experiment], expected) in cases {
            let mut settings = Config::load(None, &Default::default(), &installed::SETTINGS).unwrap().approvals;
            settings.contexts.insert(rule.to_owned(), ContextRule::default());
            let envelope = Envelope {
                contexts: vec![context.to_owned()],
                subjects: vec![experiment.to_owned()],
                ..Envelope::default()
            };
            settings.envelopes.insert("pilot".to_owned(), envelope);
            let there = Nameable { thing: "experiment", contexts: contexts.to_vec(), things: experiments.to_vec() };
            let found = compare(&settings, &[there]);
            assert_eq!(found.as_deref().map_err(String::as_str), expected);
        }
    }
}
