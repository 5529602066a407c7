//! The rest of a plan that ended early: “what is left of the plan?” lists it, and “go on” offers it as another plan. Of a
//! plan whose card is open, everything is left.
//!
//! The rest is offered on a card and not begun: a person stopped the plan or a step failed, so the steps are looked at
//! again first. The rest without a step that a later condition looks at cannot be carried out, which is said instead.

use countersign_capabilities::Registry;
use countersign_core::reply::Reply;
use countersign_graph::action::ActionRecord;

use super::{replies, state::AgentState};

/// A message about the rest of a plan. `names_plan` is true if it can be about nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About {
    /// “What is left?”
    Left { names_plan: bool },
    /// “Go on.”
    GoOn { names_plan: bool },
}

/// The reaction to a message about the rest of a plan.
#[derive(Debug, PartialEq)]
pub(super) enum Reaction {
    /// An answer.
    Say(Reply),
    /// The card of a plan of these requests, by this action.
    Offer(&'static str, Vec<String>),
}

impl AgentState {
    /// Returns the reaction to the message of this turn, if that is about the rest of a plan.
    /// `open` are the actions of the thread that wait for a person.
    pub(super) fn about_rest_of_plan(&self, registry: &Registry, open: &[ActionRecord]) -> Option<Reaction> {
        if self.plan().is_some() {
            return None; // it is a step of a plan
        }
        if let (Some(About::Left { .. } | About::GoOn { names_plan: true }), Some(shown), true) =
            (about(&self.turn.said), shown_plan(registry.plan_action(), open), self.plans.is_empty())
        {
            return Some(Reaction::Say(replies::plan_on_card(&shown.card.facts)));
        }
        let rest = &self.rest_of_plan;
        Some(Reaction::Say(match (about(&self.turn.said)?, self.plans.last()) {
            (About::Left { .. } | About::GoOn { names_plan: true }, Some(plan)) => {
                replies::plan_in_progress(&plan.lines())
            }
            (About::GoOn { .. }, _) if self.draft.is_some() => return None,
            (About::GoOn { names_plan: false }, Some(_)) => return None,
            (About::Left { names_plan } | About::GoOn { names_plan }, None) if rest.is_empty() => {
                names_plan.then(replies::no_rest_of_plan)?
            }
            (About::Left { .. }, None) => replies::rest_of_plan(rest),
            (About::GoOn { .. }, None) => {
                let known = |capability: &str| registry.carries_out(capability);
                match registry.plan_of(self.turn.number, rest).checked(&known, &[]) {
                    Ok(_) => return Some(Reaction::Offer(registry.plan_action()?, rest.clone())),
                    Err(fault) => replies::plan_fault(&fault, rest),
                }
            }
        }))
    }

    /// Returns true if there is a plan, or the rest of one, and these words are about it.
    pub(super) fn asks_about_rest_of_plan(&self, said: &str) -> bool {
        (!self.rest_of_plan.is_empty() || !self.plans.is_empty()) && about(said).is_some()
    }
}

/// Returns the newest open card of a plan, which this action shows.
fn shown_plan<'a>(plan_action: Option<&str>, open: &'a [ActionRecord]) -> Option<&'a ActionRecord> {
    let plans = open.iter().filter(|record| plan_action == Some(record.name.as_str()));
    plans.max_by_key(|record| record.requested_at)
}

/// Reads a message about the rest of a plan.
fn about(said: &str) -> Option<About> {
    const LEFT: &[&str] = &["what is left", "what's left", "what remains", "what is left to do", "what's left to do"];
    const LEFT_OF_PLAN: &[&str] = &[
        "what is left of the plan",
        "what's left of the plan",
        "what remains of the plan",
        "what is the rest of the plan",
        "what's the rest of the plan",
        "show the rest of the plan",
        "show me the rest of the plan",
        "which steps are left",
        "what steps are left",
        "which steps remain",
    ];
    const GO_ON: &[&str] = &["go on", "continue", "carry on", "keep going", "do the rest", "the rest"];
    const GO_ON_WITH_PLAN: &[&str] = &[
        "go on with the plan",
        "continue the plan",
        "continue with the plan",
        "carry on with the plan",
        "resume the plan",
        "finish the plan",
        "go on with the rest",
        "continue with the rest",
        "carry on with the rest",
        "do the rest of the plan",
    ];
    const FILLERS: &[&str] = &["please", "ok", "okay", "now", "then", "just", "and", "so"];
    let said = said.to_lowercase().replace('’', "'");
    let punctuation = |c: char| !c.is_alphanumeric();
    let words = said.split_whitespace().filter(|word| !word.starts_with("<@"));
    let words: Vec<&str> = words
        .map(|word| word.trim_matches(punctuation))
        .filter(|word| !word.is_empty() && !FILLERS.contains(word))
        .collect();
    let plain = words.join(" ").replace("that plan", "the plan").replace("this plan", "the plan");
    let is_one_of = |phrases: &[&str]| phrases.contains(&plain.as_str());
    if is_one_of(LEFT_OF_PLAN) || is_one_of(LEFT) {
        return Some(About::Left { names_plan: is_one_of(LEFT_OF_PLAN) });
    }
    let goes_on = is_one_of(GO_ON_WITH_PLAN) || is_one_of(GO_ON);
    goes_on.then(|| About::GoOn { names_plan: is_one_of(GO_ON_WITH_PLAN) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_a_plan_is_asked_for_in_several_ways() {
        for (said, expected) in [
            ("What is left of the plan?", Some(About::Left { names_plan: true })),
            ("what’s left?", Some(About::Left { names_plan: false })),
            ("<@UBOT> which steps are left?", Some(About::Left { names_plan: true })),
            ("go on", Some(About::GoOn { names_plan: false })),
            ("Ok, please continue.", Some(About::GoOn { names_plan: false })),
            ("continue with that plan", Some(About::GoOn { names_plan: true })),
            ("do the rest of the plan", Some(About::GoOn { names_plan: true })),
            ("continue enrolling", None),
            ("go ahead", None),
            ("what is left of the budget?", None),
            ("", None),
        ] {
            assert_eq!(about(said), expected, "{said}");
        }
    }

    fn said(text: &str, rest: &[&str]) -> Option<Reaction> {
        let mut state = AgentState {
            rest_of_plan: rest.iter().map(|request| (*request).to_owned()).collect(),
            ..AgentState::default()
        };
        state.turn.said = text.to_owned();
        state.about_rest_of_plan(&Registry::default(), &[])
    }

    fn words(reaction: Option<Reaction>) -> String {
        match reaction {
            Some(Reaction::Say(reply)) => reply.words(),
            other => panic!("no answer: {other:?}"),
        }
    }

    #[test]
    fn the_rest_is_listed_and_a_condition_without_its_result_is_told() {
        let left = words(said("what is left?", &["stop A", "delete A"]));
        assert!(left.contains("stop A") && left.contains("delete A"), "{left}");
        let why = words(said("go on", &["only if it is even, start A"]));
        assert!(why.contains("“only if it is even, start A”"), "{why}");
    }

    #[test]
    fn without_a_rest_only_words_about_a_plan_are_answered() {
        assert_eq!(said("go on", &[]), None);
        assert_eq!(said("what is left?", &[]), None);
        assert!(words(said("continue the plan", &[])).contains("no plan"));
    }
}
