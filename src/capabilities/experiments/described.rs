//! Finds the experiments that a description fits: a part of the name, and where it runs, such as `the question hint one
//! on the lesson-stream`.
//!
//! A description chooses nothing: what it fits is suggested.

use countersign_understanding::lexicon::fold;

use super::upgrade::experiment::{ExperimentName, View};

/// The maximum number of experiments that are suggested.
const MAX_SUGGESTED: usize = 3;

/// Returns true if the words describe an experiment, instead of naming it: they have a word for it, such as “one”, or a
/// place.
pub(super) fn is_description(asked: &str) -> bool {
    const MARKS: &[&str] = &["one", "ones", "experiment", "study", "in", "on", "at", "of", "about", "with", "from"];
    fold(asked).split(' ').any(|word| MARKS.contains(&word)) && !meaningful(asked).is_empty()
}

/// Returns the experiments that have every word of a description in their names, contexts, decision points, conditions
/// or tags. Those with the most words in their names come first.
pub(super) fn fitting(all: &[View], asked: &str) -> Vec<ExperimentName> {
    let wanted = meaningful(asked);
    let fit = |view: &View| {
        let points = view.decision_points.iter().flat_map(|point| [Some(point.site.as_str()), point.target.as_deref()]);
        let conditions = view.conditions.iter().map(|condition| condition.condition_code.as_str());
        let around = points.flatten().chain(conditions).chain(view.tags.iter().map(String::as_str));
        let around: Vec<String> = around.chain([view.context()]).flat_map(words_of).collect();
        let name = words_of(&view.name);
        let in_name = wanted.iter().filter(|word| name.contains(word)).count();
        wanted.iter().all(|word| name.contains(word) || around.contains(word)).then_some(in_name)
    };
    let mut found: Vec<_> = all.iter().filter_map(|view| Some((fit(view)?, view))).collect();
    found.sort_by_key(|(in_name, view)| (std::cmp::Reverse(*in_name), view.name.clone(), view.id));
    let named = |(_, view): (usize, &View)| ExperimentName { id: view.id, name: view.name.clone() };
    found.into_iter().take(MAX_SUGGESTED).map(named).collect()
}

/// Returns the words of a description that distinguish experiments.
fn meaningful(asked: &str) -> Vec<String> {
    const EMPTY: &[&str] = &[
        "the",
        "a",
        "an",
        "one",
        "one's",
        "experiment",
        "study",
        "test",
        "in",
        "on",
        "at",
        "of",
        "for",
        "about",
        "with",
        "from",
        "that",
        "which",
        "is",
        "run",
        "our",
        "my",
        "and",
        "context",
        "page",
        "site",
    ];
    words_of(asked).into_iter().filter(|word| !EMPTY.contains(&word.as_str())).collect()
}

/// Returns the words of a text in the form in which they are compared: in the singular.
fn words_of(text: &str) -> Vec<String> {
    let singular = |word: &str| word.strip_suffix('s').filter(|stem| stem.len() > 2).unwrap_or(word).to_owned();
    fold(text).split(' ').filter(|word| !word.is_empty()).map(singular).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::upgrade::experiment::Experiment;

    fn view(name: &str, condition: &str, point: (&str, &str), id: u128) -> View {
        let raw = json!({
            "id": uuid::Uuid::from_u128(id), "name": name, "context": ["mathstream"], "state": "enrolling",
            "assignmentUnit": "individual", "postExperimentRule": "continue", "filterMode": "includeAll",
            "conditions": [{ "id": "c1", "conditionCode": condition, "assignmentWeight": 100.0, "order": 1 }],
            "partitions": [{ "id": "p1", "site": point.0, "target": point.1, "order": 1 }],
        });
        Experiment::from_value(&raw).unwrap().view
    }

    #[test]
    fn a_description_fits_by_name_and_surroundings() {
        let all = [
            view("Class Hint Rollout", "question-hint-default", ("lesson-quiz", "question-hint"), 1),
            view("Lesson Video Hints", "question-hint-default", ("lesson-stream", "lesson-video"), 2),
            view("Chat Tone", "tutor-a", ("chat", "chat-tone"), 3),
        ];
        for (asked, names) in [
            ("question hint one on the lesson-stream", &["Lesson Video Hints"][..]),
            ("the video one", &["Lesson Video Hints"]),
            ("hint experiment in mathstream", &["Class Hint Rollout", "Lesson Video Hints"]),
            ("tutor one in chat", &["Chat Tone"]),
            ("the fraction one", &[]),
        ] {
            let found: Vec<String> = fitting(&all, asked).into_iter().map(|named| named.name).collect();
            assert_eq!(found, names, "{asked}");
            assert!(is_description(asked), "{asked}");
        }
        for name in ["Maht Hints", "the one", "zebra"] {
            assert!(!is_description(name), "{name}");
        }
    }
}
