//! What the grammar says in its own words: greetings, help, and what it did not understand.

use super::{
    situation::{OpenCard, Situation},
    wish::Talk,
};

/// The buttons below it: label, and what is said when it is pressed.
pub(super) type Steps = &'static [(&'static str, &'static str)];

/// What somebody can begin with.
pub(super) const FIRST: Steps = &[
    ("List experiments", "list experiments"),
    ("Is UpGrade running?", "is UpGrade running?"),
    ("Create an experiment", "create an experiment"),
    ("What can you do?", "what can you do?"),
];

/// What to say, and what could be next.
pub(super) fn say(talk: Talk, situation: &Situation) -> (String, Steps) {
    const NEXT: Steps = &[("List experiments", "list experiments"), ("What can you do?", "what can you do?")];
    match talk {
        Talk::Greeting => ("Hello! Ask me about your experiments, or tell me what to change.".to_owned(), FIRST),
        Talk::Thanks => ("You're welcome.".to_owned(), &[]),
        Talk::Help => (
            HELP.to_owned(),
            &[
                ("List experiments", "list experiments"),
                ("Is UpGrade running?", "is UpGrade running?"),
                ("What is A/B testing?", "what is A/B testing?"),
            ],
        ),
        Talk::Pending => (pending(situation), &[]),
        Talk::Approval => (APPROVAL.to_owned(), &[]),
        Talk::NothingToUndo => (
            "There is nothing I could put back: the last change here has no way back, or there was none.".to_owned(),
            &[],
        ),
        Talk::NothingToRepeat => {
            ("There is nothing here to try again. Tell me in full what you would like.".to_owned(), &[])
        }
        Talk::NothingAsked => {
            ("I have no open question here. If you mean a card, please press its button.".to_owned(), NEXT)
        }
        Talk::NothingDone(what) => {
            let so_far = if situation.recent_changes.is_empty() { "" } else { " What was done here before stays." };
            let said = format!("All right, nothing was {what}.{so_far} {}", how_to_decide(&situation.open_cards));
            (said.trim_end().to_owned(), &[])
        }
        Talk::CardWaits => (format!("That decides nothing yet. {}", how_to_decide(&situation.open_cards)), &[]),
    }
}

/// Which cards wait, and what decides about them.
fn how_to_decide(open: &[OpenCard]) -> String {
    match open {
        [] => String::new(),
        [OpenCard { title, approve, reject, typed }] => {
            let typing = match typed {
                true => ", or type just “yes” or “no” in this thread.",
                false => ". A typed yes is not enough for this one.",
            };
            format!("A card is open: {title} Press **{approve}** or **{reject}** on it{typing}")
        }
        several => {
            let titles: Vec<String> = several.iter().map(|card| format!("• {}", card.title)).collect();
            format!("Several cards are open, so please press a button on the one you mean:\n{}", titles.join("\n"))
        }
    }
}

fn pending(situation: &Situation) -> String {
    let mut waiting: Vec<String> = situation.open_cards.iter().map(|card| format!("• {}", card.title)).collect();
    if let Some(asked) = situation.draft.as_ref().and_then(|draft| draft.asked.as_ref()) {
        waiting.push(format!("• My question: {}", asked.question));
    }
    match waiting.is_empty() {
        true => "Nothing is waiting in this thread.".to_owned(),
        false => format!("Waiting in this thread:\n{}", waiting.join("\n")),
    }
}

/// What was asked needs more than the grammar.
pub(super) const LOST: &str = "I could not make sense of that without my language model. Simple phrases work: *list experiments*, *show Math Hints*, *start Math Hints*, *what can you do?*";

const HELP: &str = "I look things up on UpGrade and prepare changes. Nothing is changed until someone here presses the button on the card I show.\n\n\
    *Look up*\n\
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

const APPROVAL: &str = "When you ask for a change, I work out exactly what would be done and show it on a card. Someone who is entitled to presses the button, and then that change, and nothing else, is made once. The card stays here as the record of who decided what, and when.";
