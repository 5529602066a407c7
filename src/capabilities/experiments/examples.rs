//! Examples from the platform for the terms of the glossary, each in one sentence.

use std::collections::{BTreeMap, BTreeSet};

use super::{glossary::Example, replies::answers, rules, summary};
use crate::upgrade::{client::UpgradeClient, experiment::View, status::Status};

/// The maximum number of items that a sentence lists.
const MAX_LISTED: usize = 5;

/// Returns a sentence with an example, if the platform has one at the moment.
pub async fn of(client: &UpgradeClient, example: Example) -> Option<String> {
    match example {
        Example::Contexts => {
            let contexts = client.context_metadata().await.ok()?;
            let names: Vec<_> = contexts.keys().map(|name| format!("`{name}`")).collect();
            (!names.is_empty()).then(|| format!("The contexts here are {}.", join_words(&names)))
        }
        Example::GroupTypes => {
            let contexts = client.context_metadata().await.ok()?;
            let (name, known) = contexts.into_iter().find(|(_, known)| !known.group_types.is_empty())?;
            Some(format!("The group types of `{name}` are {}.", join_words(&known.group_types)))
        }
        Example::Experiment
        | Example::Conditions
        | Example::Points
        | Example::Units
        | Example::Afterwards
        | Example::Statuses
        | Example::Tags => {
            let mut all = client.all().await.ok()?.to_vec();
            // A running experiment is a better example.
            all.sort_by_key(|view| view.state != Status::Enrolling);
            from_experiments(&all, example)
        }
    }
}

fn from_experiments(all: &[View], example: Example) -> Option<String> {
    let complete = || all.iter().find(|view| !view.conditions.is_empty() && !view.decision_points.is_empty());
    Some(match example {
        Example::Contexts | Example::GroupTypes => return None,
        Example::Experiment => {
            let view = complete()?;
            let codes = view.codes();
            format!("For example, “{}” compares {} in `{}`.", view.name, join_words(&codes), view.context())
        }
        Example::Conditions => {
            let view = complete()?;
            format!("For example, “{}” has {}.", view.name, rules::weights_in_words(&view.conditions))
        }
        Example::Points => {
            let view = complete()?;
            let points: Vec<_> = view.decision_points.iter().map(|point| format!("`{}`", point.words())).collect();
            format!("For example, “{}” runs at {}.", view.name, join_words(&points))
        }
        Example::Units => {
            let view = all.iter().find(|view| view.assignment_unit == "group").or(all.first())?;
            format!(
                "For example, “{}” assigns {}.",
                view.name,
                answers::unit_words(&view.assignment_unit, view.group.as_deref())
            )
        }
        Example::Afterwards => {
            let view = all.first()?;
            format!("For example, after “{}” {}.", view.name, answers::afterwards(&summary::post_rule(view)))
        }
        Example::Statuses => {
            let mut counts: BTreeMap<Status, usize> = BTreeMap::new();
            for view in all {
                *counts.entry(view.state).or_default() += 1;
            }
            let counts: Vec<_> =
                counts.into_iter().map(|(status, count)| format!("{count} {}", status.web_name())).collect();
            match counts.is_empty() {
                true => return None,
                false => format!("Experiments here at the moment: {}.", join_words(&counts)),
            }
        }
        Example::Tags => {
            let tags: Vec<_> =
                all.iter().flat_map(|view| &view.tags).collect::<BTreeSet<_>>().into_iter().cloned().collect();
            match tags.is_empty() {
                true => return None,
                false => format!("Tags in use here: {}.", join_words(&tags)),
            }
        }
    })
}

/// Joins words as in `a, b and c`; those beyond [`MAX_LISTED`] are only counted.
fn join_words(words: &[String]) -> String {
    match words {
        [] => "none".to_owned(),
        [one] => one.clone(),
        several if several.len() > MAX_LISTED => {
            format!("{} and {} more", several[..MAX_LISTED].join(", "), several.len() - MAX_LISTED)
        }
        several => format!("{} and {}", several[..several.len() - 1].join(", "), several[several.len() - 1]),
    }
}
