//! Whether the contexts and experiments that the settings name exist: what can only be told by asking the platform.

use std::sync::Arc;

use super::{parts, stdout::told};
use crate::{clock::SystemClock, config::Approvals, config::Config};

/// Whether there is anything to ask about.
pub(super) fn names_any(config: &Config) -> bool {
    let Approvals { contexts, envelopes, .. } = &config.approvals;
    !contexts.is_empty() || !envelopes.is_empty()
}

/// What the settings name of the platform, and what is wrong with it. A rule for a context that does not exist never
/// applies, so that is wrong; an experiment may be made later, so one that does not exist is only remarked on.
pub(super) async fn run(config: &Config) -> Result<String, String> {
    let client = parts::upgrade(config, Arc::new(SystemClock)).map_err(|error| told(&error))?;
    let known = client.context_metadata().await.map_err(|error| error.to_string())?;
    let known: Vec<String> = known.into_keys().collect();
    let experiments = client.names().await.map_err(|error| error.to_string())?;
    let experiments: Vec<String> = experiments.into_iter().map(|named| named.name).collect();
    told_of(&config.approvals, &known, &experiments)
}

/// The same, once the platform has answered.
fn told_of(settings: &Approvals, contexts: &[String], experiments: &[String]) -> Result<String, String> {
    let rules = settings.contexts.keys().map(|context| (format!("approvals.contexts.{context}"), context, true));
    let envelopes = settings.envelopes.iter().flat_map(|(name, envelope)| {
        let key = format!("approvals.envelopes.{name}");
        envelope.contexts.iter().map(move |context| (key.clone(), context, false))
    });
    let mut wrong = Vec::new();
    for (key, context, exact) in rules.chain(envelopes) {
        // A rule is found by the exact name; an envelope by the name in whichever case.
        let is = |known: &String| if exact { known == context } else { same(known, context) };
        if !contexts.iter().any(is) {
            let nearest = parts::nearest(context, contexts.iter().map(String::as_str))
                .map(|nearest| format!("; the nearest is {nearest}"));
            wrong.push(format!("{key}: there is no context {context}{}", nearest.unwrap_or_default()));
        }
    }
    if !wrong.is_empty() {
        return Err(wrong.join("; "));
    }
    let mut remarks = Vec::new();
    for (name, envelope) in &settings.envelopes {
        for experiment in &envelope.experiments {
            if !experiments.iter().any(|known| same(known, experiment)) {
                let nearest = parts::nearest(experiment, experiments.iter().map(String::as_str))
                    .map(|nearest| format!("; the nearest is “{nearest}”"));
                let nearest = nearest.unwrap_or_default();
                remarks.push(format!("approvals.envelopes.{name}: there is no experiment “{experiment}” yet{nearest}"));
            }
        }
    }
    Ok(if remarks.is_empty() { "all that the settings name exist".to_owned() } else { remarks.join("; ") })
}

/// As envelopes compare names.
fn same(one: &str, other: &str) -> bool {
    one.trim().to_lowercase() == other.trim().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ContextRule, Envelope};

    #[test]
    fn a_context_has_to_exist_and_an_experiment_should() {
        let contexts = ["assign-prog", "mathstream"].map(str::to_owned);
        let experiments = ["Math Hints", "Running Test"].map(str::to_owned);
        // A context with rules; a context and an experiment of an envelope.
        let cases: [([&str; 3], Result<&str, &str>); 5] = [
            (["assign-prog", "Mathstream", "math hints "], Ok("all that the settings name exist")),
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
            let mut settings = Config::load(None, &Default::default()).unwrap().approvals;
            settings.contexts.insert(rule.to_owned(), ContextRule::default());
            let envelope = Envelope {
                contexts: vec![context.to_owned()],
                experiments: vec![experiment.to_owned()],
                ..Envelope::default()
            };
            settings.envelopes.insert("pilot".to_owned(), envelope);
            let found = told_of(&settings, &contexts, &experiments);
            assert_eq!(found.as_deref().map_err(String::as_str), expected);
        }
    }
}
