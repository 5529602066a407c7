//! The phrases about experiments.
//!
//! `lines.txt` has phrases, with their parts in a fixed or in any order, and `clauses.txt` parts of
//! descriptions; [`values`] parses the values in a line. Phrases that are too free for that are parsed
//! by functions: descriptions of experiments ([`clauses`], [`design`], [`factors`]) and the end of [`free_text`] in them, the
//! [`changes`] that contain them, lists and their filters ([`lists`]), several experiments at once ([`bulk`]), answers and
//! corrections ([`answers`], [`moments`], [`statuses`]), parts of other experiments ([`copies`], [`same`]), starts with a restriction ([`starts`]), and questions that are recognised by the things they mention
//! ([`reads`]).

mod answers;
mod bulk;
mod changes;
mod clauses;
mod copies;
mod design;
#[cfg(test)]
mod doubts_tests;
mod factors;
mod follow_ups;
mod free_text;
#[cfg(test)]
mod line_tests;
mod lists;
mod members;
mod moments;
mod new_ones;
#[cfg(test)]
mod phrasings;
mod points;
#[cfg(test)]
mod quotations_tests;
mod reads;
#[cfg(test)]
mod restrictions;
mod same;
mod shares;
mod so_far;
mod starts;
mod statuses;
#[cfg(test)]
mod steps_tests;
#[cfg(test)]
mod tests;
mod values;

use countersign_understanding::{
    intents,
    lines::Candidate,
    phrases::{Phrases, Utterance, Vocabulary},
    situation, slots,
    user_request::{self, Interpretation, UserRequest},
    words::{self, Word},
};
use serde_json::{Map, Value};

use super::{
    glossary,
    upgrade::status::{Status, Verb},
};

/// The tool that shows one experiment.
const DETAILS: &str = "get_experiment_details";
/// The tool that explains terms.
const EXPLAIN: &str = "explain_upgrade_concept";

/// Returns the request for the meaning of a term. It calls the tool only if the platform may have an
/// example.
fn explain(term: &'static glossary::Term) -> UserRequest {
    match term.example {
        Some(_) => UserRequest::read(EXPLAIN, [("concept", Some(term.name().to_owned()))]),
        None => UserRequest::Term { name: term.name(), meaning: term.meaning },
    }
}

/// The name of the capability that these phrases belong to.
const OWNER: &str = super::NAME;

/// The phrases about experiments.
pub struct ExperimentPhrases;

impl Phrases for ExperimentPhrases {
    fn vocabulary(&self) -> Vocabulary {
        Vocabulary {
            groups: &[
                "class",
                "school",
                "teacher",
                "district",
                "group",
                "classid",
                "schoolid",
                "classes",
                "schools",
                "instructorid",
            ],
            lists: &["conditions", "arms", "variants", "tags"],
            lines: include_str!("lines.txt"),
            unsupported_requests: "create a segment|delete the segment|create a feature flag|delete the feature flag|turn on the feature flag|\
         create a context|delete the context|add a context|create a user account|delete the user|delete user|delete all users|\
         restart upgrade|stop upgrade|upgrade the server|update upgrade|which condition is better|which condition wins|\
         which condition won|which variant is better|which variant won|is the difference significant|analyze the results|\
         analyse the results|show the results of|calculate the significance|what is the p-value|what is the p value|\
         what is the effect size|what is the confidence interval|what is the lift|what is the uplift|is it significant|\
         is the result significant|are the results significant|which condition performs better|which condition is winning|\
         which variant is winning|which variant performs better|is there a significant difference|compute the p-value|\
         calculate the p-value",
            help: HELP,
            simplest_requests: "*list experiments*, *show Math Hints*, *start Math Hints*",
            first_steps: &[
                ("List experiments", "list experiments"),
                ("Is UpGrade running?", "is UpGrade running?"),
                ("Create an experiment", "create an experiment"),
                ("What is A/B testing?", "what is A/B testing?"),
            ],
            ..Vocabulary::new(&["experiment", "experiments", "study", "studies"])
        }
    }

    fn slot(&self, kind: &str, utterance: Utterance<'_>) -> Vec<Candidate> {
        values::of(kind, utterance)
    }

    fn in_steps(&self, utterance: Utterance<'_>) -> Option<Vec<String>> {
        starts::in_steps(utterance)
    }

    fn finish_request(&self, user_request: UserRequest) -> UserRequest {
        match user_request {
            UserRequest::Read { tool, arguments } if tool == EXPLAIN && !arguments.contains_key("with") => {
                let term = arguments.get("concept").and_then(Value::as_str).and_then(glossary::exactly);
                term.map_or(UserRequest::Read { tool, arguments }, explain)
            }
            // “Show it” without a last subject.
            UserRequest::Read { tool, arguments } if tool == DETAILS && !arguments.contains_key("experiment_id") => {
                lists::all()
            }
            // “Stop everything” means what can be stopped.
            UserRequest::Change { action, params } if action == changes::STATUS => bulk::of_all(params),
            user_request => user_request,
        }
    }

    fn first(&self, utterance: Utterance<'_>) -> Option<Interpretation> {
        bulk::deletion(utterance.words, utterance.situation)
            .or_else(|| follow_ups::follow_up(utterance))
            .or_else(|| same::new_one(utterance.words, utterance.situation))
            .or_else(|| copies::copy(utterance.words, utterance.situation))
            .or_else(|| new_ones::new_one(utterance.words, utterance.situation))
    }

    fn change(&self, utterance: Utterance<'_>) -> Option<Interpretation> {
        changes::change(utterance.words, utterance.situation)
    }

    fn question(&self, utterance: Utterance<'_>) -> Option<Interpretation> {
        lists::list(utterance.words)
    }

    fn mentioned(&self, utterance: Utterance<'_>) -> Option<UserRequest> {
        reads::read(utterance.words, utterance.situation, utterance.is_question)
    }

    fn correction(&self, utterance: Utterance<'_>) -> Option<Interpretation> {
        // Before the lines, in which “my” means nothing.
        let own = lists::own(utterance.words).filter(|_| utterance.situation.draft.is_none());
        own.or_else(|| answers::correction(utterance.words, utterance.situation))
    }

    fn answer(&self, utterance: Utterance<'_>) -> Option<Interpretation> {
        answers::answer(utterance.words, utterance.situation, utterance.is_question)
    }

    fn value(&self, parameter: &str, words: &[Word]) -> Value {
        changes::field(parameter, words)
    }

    fn only_parts(&self, words: &[Word]) -> bool {
        let parts = clauses::clauses(words);
        parts.rest.is_empty() && !parts.params.is_empty() || same::is_part(words)
    }

    fn about(&self, params: &Map<String, Value>) -> Option<String> {
        let named = params.get("experiment").or_else(|| params.get("experiment_id"));
        named.and_then(Value::as_str).map(str::to_owned)
    }

    fn show_request(&self, name: Option<String>) -> Option<UserRequest> {
        Some(match name {
            Some(name) => UserRequest::read(DETAILS, [("experiment_id", Some(name))]),
            None => lists::all(),
        })
    }

    fn only_shows(&self, user_request: &UserRequest) -> bool {
        matches!(user_request, UserRequest::Read { tool, .. } if tool == DETAILS)
    }

    fn makes_new(&self, action: &str) -> bool {
        action == changes::CREATE
    }

    fn so_far(&self, action: &str, params: &Map<String, Value>) -> Option<String> {
        (action == changes::CREATE).then(|| so_far::words(params)).flatten()
    }

    fn past_participle(&self, action: &str, params: &Map<String, Value>) -> &'static str {
        match (action, params.get("status").and_then(Value::as_str)) {
            (changes::CREATE, _) => "created",
            (changes::DELETE, _) => "deleted",
            ("init_experiment_user", _) => "initialised",
            ("mark_decision_point", _) => "marked",
            ("get_decision_point_assignments", _) => "asked",
            (_, Some(status)) => verb(status).map_or("changed", |verb| verb.participle),
            _ => "changed",
        }
    }

    fn request(&self, action: &str, params: &Map<String, Value>) -> Option<String> {
        let experiment = self.about(params)?;
        let verb = match (action, params.get("status").and_then(Value::as_str)) {
            (changes::DELETE, _) => "delete",
            (_, status) => verb(status?)?.name,
        };
        Some(format!("{verb} {experiment}"))
    }
}

/// Returns the verb for a status as a request has it: a verb, or the name of a status.
fn verb(status: &str) -> Option<&'static Verb> {
    let asked = Status::asked_for(status)?;
    // “Set to inactive” may unschedule or deactivate it.
    asked.verb(status).or_else(|| asked.verbs().first().filter(|_| asked != Status::Inactive))
}

/// Returns a book with these phrases and the families of their tools and actions.
#[cfg(test)]
pub(crate) fn book() -> countersign_understanding::book::Book {
    let mut book = countersign_understanding::book::Book::default()
        .with("experiments", &ExperimentPhrases)
        .expect("the lines can be parsed");
    for family in super::families::all() {
        book.note_family(family.within, &family.tools, &family.actions);
    }
    book.note_service("UpGrade");
    book
}

/// The part of the reply to “help” about experiments.
const HELP: &str = "*Look up*\n\
    • “list experiments”, “what is running?”, “find experiments in assign-prog created this week”\n\
    • “show Math Hints”, “show it in detail”, “show it as JSON”\n\
    • “what conditions does assign-prog have?”, “is UpGrade running?”\n\
    • “what condition would u1 get in assign-prog?”\n\n\
    *Change*\n\
    • “create experiment Hint Timing in assign-prog with conditions control, variant at SelectSection/area_model”\n\
    • “start Math Hints”, “stop it”, “cancel Math Hints”, “delete Math Hints”\n\
    • “rename Math Hints to Hints 2”, “set the weights of Math Hints to 70/30”\n\
    • “initialize user u1 with groups classId 5B in assign-prog”\n\n\
    *Test*\n\
    • “test the balance of Math Hints with 200 users”, “test consistency rules for Math Hints”\n\
    • “simulate user u1 in Math Hints”, “generate 5 test users”\n\n\
    *And*\n\
    • “what have we done so far?”, “undo that”\n\
    • “what is a decision point?”, “what concepts can you explain?”, “what parameters does create take?”";
