//! Answers to an open question, corrections of what is being worked out, and “never mind”.

use serde_json::{Map, Value};

use super::{
    changes::field,
    clauses::{self, clauses},
    moments,
    situation::{Draft, Situation},
    wish::{Talk, Understood, Wish},
    words::{self, Word, after, lower, skip, text},
};

/// What lets go of whatever was asked for.
const NEVER_MIND: &[&str] = &[
    "never mind",
    "nevermind",
    "forget it",
    "forget that",
    "forget about it",
    "drop it",
    "drop that",
    "leave it",
    "scratch that",
    "scrap that",
    "scrap it",
    "actually forget it",
    "nvm",
    "not now",
    "don't bother",
];

/// What lets go of a request, and may be meant for the experiment that was talked about.
const CANCEL: &[&str] = &["cancel", "cancel that", "cancel it", "cancel this"];

/// What lets go of a request and of nothing else.
const WITHDRAW: &[&str] = &[
    "cancel the request",
    "cancel my request",
    "cancel this request",
    "cancel that request",
    "cancel the card",
    "cancel this card",
    "withdraw it",
    "withdraw that",
    "withdraw this",
    "withdraw the request",
    "withdraw my request",
    "withdraw this request",
    "take it back",
    "take that back",
    "call it off",
    "withdraw",
    "withdraw the card",
    "withdraw this card",
    "close the card",
    "close this card",
    "i changed my mind",
    "i've changed my mind",
    "i have changed my mind",
    "changed my mind",
    "we changed our mind",
    "don't",
    "dont",
    "not",
    "don't do it",
    "don't do that",
    "don't do this",
    "not do it",
    "not do that",
    "better not",
    "rather not",
    "i'd rather not",
];

/// What lets go of a request only after somebody called out to wait: else an experiment is to be stopped.
const STOP: &[&str] = &["stop that", "stop this", "stop it"];

/// What besides ends the questions about a change.
const ENDS_DRAFT: &[&str] = &[
    "stop",
    "stop it",
    "stop that",
    "abort",
    "quit",
    "exit",
    "no thanks",
    "no thank you",
    "none",
    "none of them",
    "no",
    "delete it",
];

/// Whether a whole message lets go of what its author asked for: “never mind”, “hold on, cancel that please”. A question
/// does so only where it is a request: “can you cancel that?”
pub fn lets_go(said: &str) -> bool {
    let all = words::words(said);
    let is_request = |pair: &[Word]| pair[0].any(&["can", "could", "will"]) && pair[1].any(&["you", "u"]);
    if said.trim_end().ends_with('?') && !all.windows(2).any(is_request) || all.iter().any(|word| word.quoted) {
        return false;
    }
    let (waits, rest) = after_wait(words::polite(&all));
    let plain = lower(rest);
    let listed = |list: &[&str]| list.contains(&plain.as_str());
    listed(NEVER_MIND) || listed(CANCEL) || listed(WITHDRAW) || waits && listed(STOP)
}

/// Whether a whole message ends the questions about a change: “stop that”, “no thanks”.
pub fn ends_draft(said: &str) -> bool {
    let all = words::words(said);
    ENDS_DRAFT.contains(&lower(words::polite(&all)).as_str())
}

/// What is not to be done: “don't start it”, “no, do not delete Math Hints”.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spared {
    /// The verb.
    pub verb: String,
    /// The name, where one is said.
    pub name: Option<String>,
}

/// What a whole message says is not to be done.
pub fn spared(said: &str) -> Option<Spared> {
    const VERBS: &[&str] =
        &["start", "stop", "pause", "resume", "delete", "archive", "schedule", "create", "change", "rename", "move"];
    let all = words::words(said);
    if said.trim_end().ends_with('?') {
        return None;
    }
    let (_, rest) = after_wait(words::polite(&all));
    let (verb, about) = after(rest, "don't|dont|not|never")?.split_first()?;
    let about = skip(about, "the experiment|experiment|the");
    let name = match lower(about).as_str() {
        "" | "it" | "that" | "this" | "that one" | "this one" => None,
        _ => Some(text(words::without_last(about, &["experiment"]))),
    };
    verb.any(VERBS).then(|| Spared { verb: verb.lower.clone(), name })
}

/// Whether a message takes back what was asked for before: “no, Running Test”, “actually …”, “… instead”.
pub fn says_no(said: &str) -> bool {
    const OPENINGS: &str = "no|nope|actually|oops|oh no|sorry|wait|i meant|i mean|rather|my mistake|hold on|hang on";
    let all = words::words(said);
    let words = words::polite(&all);
    after(words, OPENINGS).is_some() || words.last().is_some_and(|last| last.is("instead"))
}

/// The words after “hold on” and the like, and whether they were there.
fn after_wait(words: &[Word]) -> (bool, &[Word]) {
    const OPENINGS: &str = "hold on|hang on|wait a moment|wait a minute|wait a second|wait a sec|wait|one moment|\
        just a moment|stop ,|oh no|oh|oops|sorry|no|actually|my mistake|on second thought|on second thoughts|,";
    let mut rest = words;
    while let Some(left) = after(rest, OPENINGS).filter(|left| !left.is_empty()) {
        rest = words::polite(left);
    }
    (rest.len() < words.len(), rest)
}

/// “Never mind.” With nothing to let go but cards, it is said what decides about those.
pub(super) fn drop(words: &[Word], situation: &Situation) -> Option<Understood> {
    let (waits, rest) = after_wait(words);
    let (whole, plain) = (lower(words), lower(rest));
    let always = NEVER_MIND.contains(&plain.as_str()) || twice(rest);
    let cancels = CANCEL.contains(&plain.as_str());
    let holds_up = WITHDRAW.contains(&plain.as_str()) || waits && STOP.contains(&plain.as_str());
    let of_draft = cancels || holds_up || ENDS_DRAFT.contains(&whole.as_str());
    let nothing_but_cards = || match situation.open_cards.as_slice() {
        [] => Wish::Drop,
        _ => Wish::Talk(Talk::CardWaits),
    };
    match (always, of_draft, situation.draft.is_some()) {
        (true, _, true) | (_, true, true) => Some(Wish::Drop.into()),
        (true, _, false) => Some(nothing_but_cards().into()),
        (_, true, false) if holds_up && !situation.open_cards.is_empty() => Some(nothing_but_cards().into()),
        (_, true, false) if cancels => Some(match &situation.last_subject {
            Some(name) if situation.open_cards.is_empty() => {
                Understood::unclear("What should I cancel?", vec![format!("cancel “{name}”"), "never mind".to_owned()])
            }
            _ => nothing_but_cards().into(),
        }),
        _ => None,
    }
}

/// “Nvm, scrap that”: the same in two ways.
fn twice(words: &[Word]) -> bool {
    let parts: Vec<String> = words.split(|word| word.is(",")).map(lower).filter(|part| !part.is_empty()).collect();
    let lets_go = |part: String| NEVER_MIND.contains(&part.as_str()) || CANCEL.contains(&part.as_str());
    parts.len() > 1 && parts.into_iter().all(lets_go)
}

/// One of the answers that were offered.
pub(super) fn offered(words: &[Word], situation: &Situation) -> Option<Understood> {
    let asked = situation.draft.as_ref()?.asked.as_ref()?;
    let said = text(words).to_lowercase();
    let chosen = asked.options.iter().find(|option| option.to_lowercase() == said)?;
    let parts: Vec<Word> = super::words::words(chosen);
    Some(Wish::Update(Map::from_iter([(asked.parameter.clone(), value(&asked.parameter, &parts))])).into())
}

/// What may be set, in words.
const FIELDS: &str = "the context|context|the name|name|the weights|weights|the weight|weight|the conditions|conditions|\
    the description|description|the tags|tags|the post rule|post rule|the decision points|decision points|the decision point|decision point";

/// “No, use mathstream”: corrects the draft, or what is on the card.
pub(super) fn correction(words: &[Word], situation: &Situation) -> Option<Understood> {
    let draft = situation.in_hand()?;
    if let Some(moment) = moments::correction(words, situation) {
        return Some(moment);
    }
    let asked = draft.asked.as_ref().map(|asked| asked.parameter.as_str());
    if let (None | Some("weights"), Some(suggested)) = (asked, suggested(words)) {
        return Some(suggested);
    }
    const OPENINGS: &str = "no , use|no use|no , i meant|no i meant|no , i mean|no i mean|no , make it|no make it|no ,|no|actually , use|actually use|\
        actually , make it|actually make it|actually ,|actually|sorry ,|sorry|instead use|rather|i meant|i mean|make it|make that|use|change it to|change that to|let it be|\
        change|set|wait ,|wait|call it|name it";
    let plain = plainly(words);
    let creates = draft.action == "create_experiment";
    let renamed = after(plain, "call it|name it").or_else(|| after(plain, RENAME).filter(|_| creates));
    let rest = renamed.or_else(|| after(words, OPENINGS))?;
    if rest.is_empty() {
        return None;
    }
    let renames = renamed.is_some();
    if renames && draft.asked.as_ref().is_some_and(|asked| asked.parameter == "name") {
        return None; // the answer itself
    }
    if after(rest, FIELDS).is_some_and(|more| more.first().is_some_and(|word| word.any(&["of", "for"]))) {
        return None; // a change of its own: `set the description of Math Hints to …`
    }
    let rest =
        super::words::without_last(skip(rest, "use|make it|rather|with|it to|to|at|instead"), &["instead", "rather"]);
    if let Some((key, value)) = set_field(rest) {
        return Some(update([(key, value)]));
    }
    let found = clauses(rest);
    let mut params = found.params;
    let left = text(&found.rest);
    if !left.is_empty() {
        // “Call it Bar and put it in mathstream”: more than a name.
        let more = found.rest.iter().any(|word| word.any(&["and", ",", "not", "put", "but"]));
        if renames && more {
            return Some(Understood::all_but(&text(rest)));
        }
        if !params.is_empty() && found.rest.len() > 3 {
            return None; // more than a correction
        }
        let key = if renames { name_key(draft) } else { corrected(draft, &found.rest)? };
        params.entry(key.clone()).or_insert_with(|| value(&key, &found.rest));
    }
    (!params.is_empty()).then(|| Wish::Update(params).into())
}

/// `60/40 would be safer`, `it should be 60/40`: weights that are given as what would be better.
fn suggested(words: &[Word]) -> Option<Understood> {
    const BEFORE: &str = "i would prefer|i'd prefer|i prefer|i would rather have|i'd rather have|i would take|i'd take|\
        it should be|this should be|that should be|they should be|the weights should be|weights should be|should be|\
        better make it|better use|better to use|better|rather make it|rather use|rather|at most|at least|no more than|\
        try|maybe|perhaps|only|we should use|we should start with|start with|what about|how about|,|:|–|-|but|no|not this ,|with";
    const AFTER: &str = "would be safer|would be better|would be fine|would be ok|would be okay|would be enough|\
        would be right|would be best|would be good|would do|will do|would suffice|would be more careful|is safer|\
        is better|is enough|is fine|seems safer|seems better|feels safer|please|instead|rather|would be safer please|\
        would be better please|, please|to begin with|to start with";
    let mut rest = words;
    while let Some(left) = after(rest, BEFORE) {
        rest = left;
    }
    let (first, following) = skip(rest, "the weights|weights|a split of|a ratio of").split_first()?;
    let weights = clauses::ratio(&first.text)?;
    let said_so = rest.len() < words.len() || !following.is_empty();
    let fits = following.is_empty() || after(following, AFTER).is_some_and(<[_]>::is_empty);
    (said_so && fits).then(|| update([("weights".to_owned(), weights.into())]))
}

/// `the context to mathstream`, `weights to 60/40`.
fn set_field(words: &[Word]) -> Option<(String, Value)> {
    const FIELDS: &[(&str, &str)] = &[
        ("the context|context", "context"),
        ("the name|name", "name"),
        ("the weights|weights|the weight|weight", "weights"),
        ("the conditions|conditions", "conditions"),
        ("the description|description", "description"),
        ("the status|status", "status"),
        ("the experiment|experiment", "experiment"),
    ];
    FIELDS.iter().find_map(|(phrases, key)| {
        let given = after(after(words, phrases)?, "to|is|should be|=|as")?;
        (!given.is_empty()).then(|| ((*key).to_owned(), field(key, given)))
    })
}

fn name_key(draft: &Draft) -> String {
    let key = match draft.action.as_str() {
        "update_experiment" => "new_name",
        _ if draft.params.contains_key("experiment") => "experiment",
        _ => "name",
    };
    key.to_owned()
}

const RENAME: &str = "rename it to|rename it|rename this to|rename that to|rename to|change its name to";

/// The words without “no”, “wait” and the like in front.
fn plainly(mut words: &[Word]) -> &[Word] {
    while let Some(rest) = after(words, "no|wait|actually|sorry|oh|hm|,") {
        words = rest;
    }
    words
}

/// A correction of which nothing fits a field.
pub(super) fn unclear_correction(words: &[Word], situation: &Situation) -> Option<Understood> {
    let draft = situation.in_hand()?;
    let plain = plainly(words);
    let said = after(plain, "use|make it|change it to|change that to|rather|instead use").unwrap_or(plain);
    (draft.asked.is_none() && said.len() < words.len() && !said.is_empty()).then(|| Understood::all_but(&text(said)))
}

/// The parameter that loose words correct: by their form, then by what can be meant.
fn corrected(draft: &Draft, words: &[Word]) -> Option<String> {
    let has = |key: &str| draft.params.contains_key(key);
    let key = match words {
        [one] if clauses::ratio(&one.text).is_some() => "weights",
        [one] if !one.quoted && clauses::point(&one.text).is_some() => "decision_points",
        [one] if has("context") && !has("experiment") && one.text == one.lower => "context",
        _ => match &draft.asked {
            Some(asked) => &asked.parameter,
            None if has("experiment") => "experiment",
            None if has("context") && words.len() == 1 => "context",
            None => return None,
        },
    };
    Some(key.to_owned())
}

/// The answer to the open question; it may give other things along with it.
pub(super) fn answer(words: &[Word], situation: &Situation, asks: bool) -> Option<Understood> {
    let Some(draft) = &situation.draft else { return of_card(words, situation, asks) };
    let Some(asked) = &draft.asked else { return retold(words, draft, asks) };
    let key = asked.parameter.as_str();
    let words = skip(
        words,
        "it should be|it is|it will be|i think|let us use|use|call it|name it|the name is|make it|that would be|it's|in the|in|for the|at the|at|with|the|to|as",
    );
    // A name may contain anything, and a time looks like weights; elsewhere parts of a description are looked for first.
    let found =
        if matches!(key, "name" | "description" | "start_on" | "end_on") { plain_name(words) } else { clauses(words) };
    let mut found = found;
    if !matches!(key, "name" | "description") {
        found.rest.retain(|word| !word.any(&["oh", "um", "uh"])); // “assign-prog, oh and site …”
    }
    let mut params = found.params;
    if !found.rest.is_empty() && !params.contains_key(key) {
        let long = found.rest.len() > 6 && !matches!(key, "name" | "description" | "conditions" | "decision_points");
        if asks || long {
            return None;
        }
        let key = rather(key, &found.rest);
        params.insert(key.to_owned(), value(key, &found.rest));
    }
    if params.is_empty() || (asks && key != "description") {
        return None;
    }
    Some(Understood { wish: Wish::Update(params), confidence: 0.9 })
}

/// Parts of a description and nothing else, while a card is open or was just turned down: they change what is on it.
fn of_card(words: &[Word], situation: &Situation, asks: bool) -> Option<Understood> {
    situation.in_hand()?;
    let parts = clauses(words);
    (parts.rest.is_empty() && !parts.params.is_empty() && !asks).then(|| Wish::Update(parts.params).into())
}

/// The parameter that an answer gives, if it is plainly not the one that was asked for.
fn rather<'a>(asked: &'a str, words: &[Word]) -> &'a str {
    let slash = words.iter().any(|word| word.text.contains('/'));
    match (asked, words) {
        ("decision_points" | "conditions" | "context" | "weights", [one]) if one.is("individual") => "unit",
        ("decision_points", _) if !slash && clauses::list(words).0.len() > 1 => "conditions",
        _ => asked,
    }
}

fn plain_name(words: &[Word]) -> clauses::Clauses {
    match words.iter().position(|word| word.is(",")) {
        Some(comma) => {
            let mut found = clauses(&words[comma..]);
            found.rest = words[..comma].to_vec();
            found
        }
        None => clauses::Clauses { rest: words.to_vec(), ..clauses::Clauses::default() },
    }
}

/// A draft that was refused: the part that was wrong once more, or a misspelt name, alone.
fn retold(words: &[Word], draft: &Draft, asks: bool) -> Option<Understood> {
    if let ([one], true) = (words, draft.params.contains_key("weights"))
        && let Some(weights) = clauses::ratio(&one.text)
    {
        return Some(update([("weights".to_owned(), weights.into())]));
    }
    let limit = words::without_last(skip(words, "at most|up to|only"), &["please"]);
    if let ([one], true) = (limit, draft.params.contains_key("limit"))
        && one.text.parse::<u64>().is_ok()
    {
        return Some(update([("limit".to_owned(), one.text.clone().into())]));
    }
    let parts = clauses(words);
    if parts.rest.is_empty() && !parts.params.is_empty() && !asks {
        return Some(Wish::Update(parts.params).into());
    }
    let before = draft.params.get("experiment")?.as_str()?;
    let now = text(skip(words, "the|i meant|i mean"));
    let near = strsim::normalized_damerau_levenshtein(&before.to_lowercase(), &now.to_lowercase()) > 0.6
        || (now.len() > 3 && before.to_lowercase().contains(&now.to_lowercase()));
    (near && !asks).then(|| update([("experiment".to_owned(), now.into())]))
}

fn update<const N: usize>(params: [(String, Value); N]) -> Understood {
    Wish::Update(params.into_iter().collect()).into()
}

fn value(key: &str, words: &[Word]) -> Value {
    field(key, words)
}
