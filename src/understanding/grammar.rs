//! From words to a wish: the patterns, in the order in which they are tried.
//!
//! “Never mind” and offered answers come first, then whole requests, then what only makes sense as the answer to an open
//! question. So a person may ask something else in between, and an answer is never taken for a request it contains.

use serde_json::{Map, Value};

use super::{
    accounting, answers, bulk, capability, changes, doubts,
    intents::{self, Reading},
    participants, phrases, questions, reads,
    situation::Situation,
    standing, testing,
    wish::{Talk, Understood, Wish},
    words::{Word, after, lower, polite, words, words_with},
};

/// How sure it is that something is asked about which is only mentioned.
pub(super) const MENTIONED: f64 = 0.75;

/// What brings back a change that was described before: its words are not all in this sentence.
const BRINGS_BACK: &str = "undo|revert|take back|put back|roll back|rollback|try|retry|repeat|ask again|ask";

/// The longest message that can be a phrase. Reading one costs more than its length.
pub(super) const MOST_WORDS: usize = 250;

/// What a message is understood to be.
pub(super) fn understand(situation: &Situation) -> Understood {
    let typed = words(&situation.said);
    let plain = polite(&typed);
    if plain.is_empty() || plain.len() > MOST_WORDS {
        return Understood::nothing();
    }
    let asks = situation.said.trim_end().ends_with('?');
    const NEW: &[&str] = &["create", "make", "set", "build", "add", "new", "design", "draft", "creat"];
    let in_hand = situation.in_hand().is_some() || situation.draft.is_some();
    if !situation.names.is_empty() && (in_hand || plain[0].any(NEW)) {
        // A new name, an answer or a correction may hold a name that exists: these are read as they stand.
        let found = positional(&typed, plain, situation, asks);
        let creates = matches!(&found.wish, Wish::Change { action, .. } if action == "create_experiment");
        if creates || matches!(found.wish, Wish::Update(_) | Wish::Drop | Wish::Talk(_)) {
            return whole(found, plain, situation);
        }
    }
    let all = words_with(&situation.said, &situation.names);
    let words = polite(&all);
    let read = match leads(words, situation) {
        true => Vec::new(),
        false => intents::read(words, situation, asks, phrases::TABLE),
    };
    if let Some(Reading::Whole(wish)) = read.first() {
        return wish.clone().into();
    }
    let found = whole(positional(&all, words, situation, asks), words, situation);
    match read.into_iter().next() {
        Some(Reading::Partly { left, used, follows, .. }) if gives_way(&found) => {
            accounting::declined(&left, &used, follows)
        }
        _ if is_nothing(&found) && situation.draft.is_none() => {
            reads::read(words, situation, asks).map_or(found, |wish| Understood { wish, confidence: MENTIONED })
        }
        _ => found,
    }
}

/// Whether nothing was understood, and nothing is to be asked about it.
fn is_nothing(found: &Understood) -> bool {
    matches!(&found.wish, Wish::Unclear { question, options } if options.is_empty() && question.is_empty())
}

/// Whether what stands before requests comes first: “never mind”, an offered answer, “don't”, “should I”, a correction.
fn leads(words: &[Word], situation: &Situation) -> bool {
    answers::drop(words, situation)
        .or_else(|| answers::offered(words, situation))
        .or_else(|| doubts::refusal(words, situation))
        .or_else(|| doubts::whether(words, situation))
        .or_else(|| answers::correction(words, situation))
        .or_else(|| standing::standing(words, situation))
        .or_else(|| capability::unsupported(words))
        .is_some()
}

/// A change, if every word of it is accounted for; else what is left over is told.
fn whole(found: Understood, words: &[Word], situation: &Situation) -> Understood {
    match &found.wish {
        Wish::Change { action, params } if after(words, BRINGS_BACK).is_none() => {
            accounting::unaccounted(words, action, params, situation).unwrap_or(found)
        }
        // A button repeats all of the request, or there is none.
        Wish::Unclear { options, .. } if options.iter().any(|option| !option.starts_with("list ")) => {
            let offered = Map::from_iter([("experiment".to_owned(), Value::from(options.join(" ")))]);
            accounting::unaccounted(words, "delete_experiment", &offered, situation).unwrap_or(found)
        }
        _ => found,
    }
}

/// Whether a reading by position is rather none, beside a change with words left over.
fn gives_way(found: &Understood) -> bool {
    match &found.wish {
        Wish::Unclear { .. } => true,
        Wish::Read { tool, .. } => *tool == "get_experiment_details",
        _ => false,
    }
}

/// What words mean by their places.
fn positional(all: &[Word], words: &[Word], situation: &Situation, asks: bool) -> Understood {
    answers::drop(words, situation)
        .or_else(|| answers::offered(words, situation))
        .or_else(|| doubts::refusal(words, situation))
        .or_else(|| doubts::whether(words, situation))
        .or_else(|| answers::correction(words, situation))
        .or_else(|| standing::standing(words, situation))
        .or_else(|| capability::unsupported(words))
        .or_else(|| testing::test(words, situation))
        .or_else(|| participants::participant(words))
        .or_else(|| bulk::several(words))
        .or_else(|| request(all, words, situation, asks))
        .or_else(|| answers::answer(words, situation, asks))
        .or_else(|| respelt(words, situation, asks))
        .or_else(|| answers::unclear_correction(words, situation))
        .or_else(|| (situation.said.trim() == "?").then(|| Wish::Talk(Talk::Help).into()))
        .unwrap_or_else(Understood::nothing)
}

/// The same with its first word as it was meant, where that is one slip of the finger away.
fn respelt(words: &[Word], situation: &Situation, asks: bool) -> Option<Understood> {
    const FIRST: &[&str] = &[
        "create",
        "delete",
        "update",
        "change",
        "rename",
        "remove",
        "list",
        "show",
        "explain",
        "describe",
        "simulate",
        "initialize",
        "find",
        "what",
        "which",
        "test",
        "enroll",
        "schedule",
        "archive",
        "cancel",
        "start",
        "stop",
    ];
    let (first, rest) = words.split_first()?;
    if first.quoted || first.lower.len() < 4 || rest.is_empty() {
        return None;
    }
    let meant = FIRST.iter().find(|meant| strsim::damerau_levenshtein(meant, &first.lower) == 1)?;
    let mut respelt = words.to_vec();
    respelt[0].lower = (*meant).to_owned();
    let found = testing::test(&respelt, situation)
        .or_else(|| participants::participant(&respelt))
        .or_else(|| bulk::several(&respelt))
        .or_else(|| request(&respelt, &respelt, situation, asks))?;
    Some(Understood { confidence: found.confidence.min(0.8), ..found })
}

/// A whole request. While a question is open, a bare name is more likely its answer than a wish to see something.
fn request(all: &[Word], words: &[Word], situation: &Situation, asks: bool) -> Option<Understood> {
    let found = questions::talk(all)
        .map(Understood::from)
        .or_else(|| questions::question(words, situation))
        .or_else(|| changes::change(words, situation))?;
    let waiting = situation.draft.as_ref().is_some_and(|draft| draft.asked.is_some());
    match found.wish {
        Wish::Talk(Talk::NothingAsked)
            if waiting && situation.open_cards.is_empty() && questions::not_yet(&lower(words)) =>
        {
            Some(Understood::nothing()) // no answer either: the question stands
        }
        Wish::Talk(Talk::NothingAsked) if waiting => None,
        Wish::Talk(Talk::NothingAsked) if !situation.open_cards.is_empty() => Some(Wish::Talk(Talk::CardWaits).into()),
        Wish::Term(_) if waiting && !asks && words.len() == 1 => None,
        _ => Some(found),
    }
}
