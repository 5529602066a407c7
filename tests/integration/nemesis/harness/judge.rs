//! What is wrong with a thread once everything is quiet, by what people saw and the platform received, and nothing else.

use std::collections::BTreeMap;

use super::case::{self, Case, Change, Press, Said, Stands, Verb};

/// Something that may not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// An acknowledged request or press led to nothing.
    Lost,
    /// It came, but too late although no fault was present.
    Stuck,
    /// A change was made more often than it was approved.
    DoubleChange,
    /// A card or an answer stands there twice.
    Twin,
    /// A button that decides outlasted the decision.
    LiveButton,
    /// A change was made that nobody entitled had approved.
    NotEntitled,
    /// The thread says done, the ledger says it is not there.
    FalseSuccess,
    /// The thread says that nothing was changed, the ledger says that it was.
    FalseFailure,
    /// A line to the bot, or a press, got no answer.
    SilentDrop,
    /// The audit stream lacks an entry, has one out of order, or repeats one without saying so.
    Stream,
}

/// One violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) kind: Kind,
    pub(crate) what: String,
}

/// All that is wrong with a thread that is over.
pub(crate) fn judge(case: &Case, said: &[Said]) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut finds = |kind, what: String| found.push(Violation { kind, what });
    for what in &case.missing {
        finds(Kind::Lost, what.clone());
    }
    for what in &case.late {
        finds(Kind::Stuck, what.clone());
    }
    let mut changes: Vec<&Change> = case.effects.iter().map(|effect| &effect.change).collect();
    changes.extend(said.iter().filter_map(|said| said.card.as_ref()).map(|card| &card.change));
    changes.sort();
    changes.dedup();
    for change in changes {
        for (kind, what) in of_change(case, said, change) {
            finds(kind, format!("{:?} “{}”: {what}", change.to, change.experiment));
        }
    }
    for said in said.iter().filter(|said| said.card.is_none() && said.buttons.iter().any(|button| button == "stop")) {
        finds(Kind::LiveButton, format!("there is still a Stop button at: {}", said.words));
    }
    for what in twins(case, said) {
        finds(Kind::Twin, what);
    }
    for line in &case.lines {
        let answers = |said: &&Said| said.card.is_none() && said.ts > line.ts && said.words.contains(line.expects);
        if !said.iter().any(|said| answers(&said)) {
            finds(Kind::SilentDrop, format!("no answer to “{}”", line.words));
        }
    }
    for press in case.presses.iter().filter(|press| press.acknowledged) {
        if let Some(what) = unanswered(press, said) {
            finds(Kind::SilentDrop, what);
        }
    }
    found
}

/// Ledger, cards and decisions of one change, held against each other.
fn of_change(case: &Case, said: &[Said], change: &Change) -> Vec<(Kind, String)> {
    let mut found = Vec::new();
    let cards: Vec<_> = said
        .iter()
        .filter_map(|said| Some((said, said.card.as_ref()?)))
        .filter(|(_, card)| card.change == *change)
        .collect();
    let count = |stands: &dyn Fn(Stands) -> bool| cards.iter().filter(|(_, card)| stands(card.stands)).count();
    let effects: Vec<_> = case.effects.iter().filter(|effect| effect.change == *change).collect();
    let approvals: Vec<&Press> = case
        .presses
        .iter()
        .filter(|press| press.change == *change && press.entitled && matches!(press.verb, Verb::Approve | Verb::Yes))
        .collect();
    let mut approved: Vec<_> = approvals.iter().map(|press| &press.card).collect();
    approved.sort();
    approved.dedup();

    if let Some(effect) = effects.iter().find(|effect| !approvals.iter().any(|press| press.at <= effect.at)) {
        found.push((Kind::NotEntitled, format!("made at {} without a decision of anybody entitled", effect.at)));
    } else if effects.len() > approved.len().max(1) {
        found.push((Kind::DoubleChange, format!("made {} times, approved {} times", effects.len(), approved.len())));
    }
    let asked = case.asked.iter().filter(|asked| *asked == change).count();
    if cards.len() > asked.max(1) {
        found.push((Kind::Twin, format!("{} cards stand there, asked for {asked} times", cards.len())));
    }
    let done = count(&|stands| stands == Stands::Done);
    let open_minded = count(&|stands| matches!(stands, Stands::Unknown | Stands::Failed { denies: false }));
    let denying = count(&|stands| matches!(stands, Stands::Closed | Stands::Failed { denies: true }));
    if done > effects.len() {
        found.push((
            Kind::FalseSuccess,
            format!("{done} cards say that it was done, the ledger {} times", effects.len()),
        ));
    }
    if effects.len() > done + open_minded && denying > 0 {
        found.push((Kind::FalseFailure, "a card says that nothing was done, and the ledger has it".to_owned()));
    }
    if effects.len() > done + open_minded && denying == 0 && effects.len() <= approved.len().max(1) && !cards.is_empty()
    {
        let stands: Vec<_> = cards.iter().map(|(_, card)| card.stands).collect();
        found.push((Kind::Lost, format!("the ledger has it, and no card says so: {stands:?}")));
    }
    for (said, card) in &cards {
        let decided = case.presses.iter().any(|press| press.card == said.ts && press.entitled && press.acknowledged);
        match card.stands {
            Stands::Open if !effects.is_empty() || decided => {
                found.push((Kind::LiveButton, format!("the card {} can still be decided", said.ts)));
            }
            Stands::Open if case.missing.is_empty() => {
                found.push((Kind::LiveButton, format!("the card {} is open, and the thread is over", said.ts)));
            }
            Stands::Running => {
                found.push((Kind::Lost, format!("the card {} says for ever that it is running", said.ts)));
            }
            _ if said
                .buttons
                .iter()
                .any(|button| matches!(button.as_str(), "approve" | "reject" | "edit" | "stop")) =>
            {
                found.push((Kind::LiveButton, format!("the card {} is decided and has {:?}", said.ts, said.buttons)));
            }
            _ => {}
        }
    }
    found
}

/// What stands there twice.
fn twins(case: &Case, said: &[Said]) -> Vec<String> {
    let mut found = Vec::new();
    let mut by_nonce: BTreeMap<&str, usize> = BTreeMap::new();
    let mut by_words: BTreeMap<&str, usize> = BTreeMap::new();
    for said in said.iter().filter(|said| said.only_to.is_none()) {
        if let Some(nonce) = &said.nonce {
            *by_nonce.entry(nonce).or_default() += 1;
        }
        if said.card.is_none() {
            *by_words.entry(&said.words).or_default() += 1;
        }
    }
    let twice = by_nonce.iter().filter(|(_, times)| **times > 1);
    found.extend(twice.map(|(nonce, times)| format!("the post {nonce} stands there {times} times")));
    let done = said.iter().filter(|said| said.card.as_ref().is_some_and(|card| card.stands == Stands::Done)).count();
    let failed = said
        .iter()
        .filter(|said| said.card.as_ref().is_some_and(|card| !matches!(card.stands, Stands::Done | Stands::Open)))
        .count();
    for (words, times) in by_words {
        let asked = case.lines.iter().filter(|line| words.contains(line.expects)).count();
        let most = if case::tells_of_success(words) { done } else { asked.max(failed) }.max(1);
        if times > most {
            found.push(format!("these words stand there {times} times: {words}"));
        }
    }
    found
}

/// Whether somebody who pressed, and saw no warning sign, learnt nothing from it.
fn unanswered(press: &Press, said: &[Said]) -> Option<String> {
    if !matches!(press.verb, Verb::Approve | Verb::Reject) {
        return None;
    }
    let card = said.iter().find(|said| said.ts == press.card)?;
    let decided_by_them = card.words.lines().any(|line| {
        let decides = ["Approved by", "Rejected by", "Withdrawn by", "Closed by", "Edited by"];
        decides.iter().any(|verb| line.contains(verb)) && line.contains(&format!("<@{}>", press.by.id))
    });
    let told = |said: &Said| said.only_to.as_deref() == Some(press.by.id) && said.at() + 1 >= press.at.millis();
    if decided_by_them || said.iter().any(told) {
        return None;
    }
    let (name, verb, at) = (press.by.name, press.verb, press.at);
    Some(format!("{name} pressed ({verb:?}) at {at} on {}, which was acknowledged, and heard nothing", press.card))
}
