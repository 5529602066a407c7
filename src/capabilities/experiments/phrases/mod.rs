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
mod phrasings_tests;
mod points;
#[cfg(test)]
mod quotations_tests;
mod reads;
#[cfg(test)]
mod restrictions_tests;
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
    phrases::{Division, Phrases, Shows, Stage, Utterance, Vocabulary, Wording},
    situation, slots,
    user_request::{self, Interpretation, UserRequest},
    words,
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
            subjects: &["experiment", "experiment_id"],
            own: &["new_name", "conditions", "name"],
            kinds: &["context"],
            repeats: &["test_condition_balance", "test_consistency_rules"],
            creates: &[changes::CREATE],
            shows: Some(Shows { one: (DETAILS, "experiment_id"), all: lists::LIST }),
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
            ..Vocabulary::new(&["experiment", "experiments", "exp", "exps", "study", "studies"])
        }
    }

    fn slot(&self, kind: &str, utterance: Utterance<'_>) -> Vec<Candidate> {
        values::of(kind, utterance)
    }

    fn divided(&self, utterance: Utterance<'_>) -> Option<Division> {
        starts::in_steps(utterance).map(Division::Suggested)
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
            UserRequest::Change { action, params } if action == changes::UPDATE => {
                UserRequest::change(&action, shares::with_renamed_condition(params))
            }
            user_request => user_request,
        }
    }

    fn read(&self, stage: Stage, utterance: Utterance<'_>) -> Option<Interpretation> {
        let Utterance { words, situation, is_question, .. } = utterance;
        match stage {
            Stage::Correction => {
                // Before the lines, in which “my” means nothing.
                let own = lists::own(words).filter(|_| situation.draft.is_none());
                own.or_else(|| answers::correction(words, situation))
            }
            Stage::First => bulk::deletion(words, situation)
                .or_else(|| follow_ups::narrowed(utterance))
                .or_else(|| same::new_one(words, situation))
                .or_else(|| copies::copy(words, situation))
                .or_else(|| new_ones::new_one(words, situation)),
            Stage::Question => lists::list(words),
            Stage::Change => changes::change(words, situation),
            Stage::Answer => answers::answer(words, situation, is_question),
            Stage::OfferedAnswer => answers::offered(words, situation),
            Stage::Parts => answers::parts(words),
            Stage::Mention => reads::read(words, situation, is_question).map(Interpretation::from),
        }
    }

    fn worded(&self, action: &str, params: &Map<String, Value>) -> Option<Wording> {
        let status = params.get("status").and_then(Value::as_str).and_then(verb);
        let (name, participle) = match action {
            changes::CREATE => (None, "created"),
            changes::DELETE => (Some("delete"), "deleted"),
            "init_experiment_user" => (None, "initialised"),
            "mark_decision_point" => (None, "marked"),
            "get_decision_point_assignments" => (None, "asked"),
            changes::STATUS => (status.map(|verb| verb.name), status.map_or("changed", |verb| verb.participle)),
            _ => return None,
        };
        let request = self.vocabulary().about(params).and_then(|experiment| Some(format!("{} {experiment}", name?)));
        let so_far = if action == changes::CREATE { so_far::words(params) } else { None };
        Some(Wording { participle, request, so_far })
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
pub(crate) fn book() -> countersign_understanding::phrase_book::PhraseBook {
    let mut book = countersign_understanding::phrase_book::PhraseBook::default()
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
