//! Changes: a verb, the experiment that is changed, and its new values.

use countersign_understanding::{
    lines::{longest_name, thing},
    phrases::Phrases as _,
};
use serde_json::{Map, Value};

use super::{
    ExperimentPhrases, bulk,
    clauses::{self, clauses},
    design, factors, free_text,
    intents::declined,
    members::who_of,
    new_ones::{begins_new, is_title, purpose, several_new, without_start},
    points::point_in_words,
    shares,
    situation::{Draft, Situation},
    slots,
    user_request::{Interpretation, UserRequest},
    values::is_arrow,
    words::{Word, after, as_typed, lower, sentence, skip, text, without_last},
};

pub(super) const CREATE: &str = "create_experiment";
pub(super) const UPDATE: &str = "update_experiment";
pub(super) const STATUS: &str = "update_experiment_status";
pub(super) const DELETE: &str = "delete_experiment";

/// Parses a change by the order of its words, from which polite phrases have been removed.
pub(super) fn change(words: &[Word], situation: &Situation) -> Option<Interpretation> {
    create(words, situation)
        .or_else(|| shares::one_share(words, situation))
        .or_else(|| shares::of_subject(words, situation))
        .or_else(|| renaming(words, situation))
        .or_else(|| set(words, situation))
        .or_else(|| update(words, situation))
        .or_else(|| ending(words, situation))
        .or_else(|| bulk::deletion(words, situation))
        .or_else(|| either(words, situation))
}

/// Returns the update of the experiment that `about` names, or a question if `about` or `over` has words
/// that are not used.
fn update_of(
    words: &[Word],
    about: &[Word],
    params: Map<String, Value>,
    over: &[Word],
    situation: &Situation,
) -> Interpretation {
    let name = thing(about, situation, &ExperimentPhrases).name();
    let named = name.map(|name| ("experiment".to_owned(), Value::from(name)));
    left_over(words, about, over, situation)
        .unwrap_or_else(|| checked(UPDATE, params.into_iter().chain(named).collect(), words))
}

/// Returns the reply to a request with unused words: those in `about` that are not part of the name, and
/// those in `over`. Returns `None` if there are none.
pub(super) fn left_over(
    words: &[Word],
    about: &[Word],
    over: &[Word],
    situation: &Situation,
) -> Option<Interpretation> {
    let is_small = |word: &Word| word.among("the our my an a called named experiment study ,");
    let outside_name: Vec<&Word> = match about.iter().position(|word| word.quoted) {
        Some(name) => {
            (0..about.len()).filter(|at| *at != name && !is_small(&about[*at])).map(|at| &about[at]).collect()
        }
        None => about[longest_name(about, &situation.today)..].iter().collect(),
    };
    let left: Vec<Word> = outside_name.into_iter().chain(over).cloned().collect();
    let used = words.iter().position(|word| word.quoted).map_or(&[][..], |name| &words[..=name]);
    let follows = !used.contains(left.first()?);
    Some(declined(&as_typed(&left), &as_typed(used), follows))
}

/// Returns the change, or a question if a name or condition without quotes contains words that probably
/// do not belong to it, such as “unless”.
fn checked(action: &str, params: Map<String, Value>, words: &[Word]) -> Interpretation {
    const RESTRICTIONS: [&str; 14] = [
        "that", "which", "but", "only", "if", "until", "unless", "except", "without", "ends", "starting", "not",
        "once", "keep",
    ];
    if let Some(asked) = params.get("tags").and_then(|tags| free_text::ask_about_tags(words, tags)) {
        return asked;
    }
    let free_texts = ["name", "new_name", "conditions", "tags"].into_iter().filter_map(|key| params.get(key));
    let texts = free_texts.flat_map(|value| value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice));
    for text in
        texts.filter_map(Value::as_str).filter(|text| !words.iter().any(|word| word.quoted && word.text == **text))
    {
        let written: Vec<&str> = text.split(' ').collect();
        let several = written.len() > 1
            && written.last().is_some_and(|last| ExperimentPhrases.vocabulary().things[1..].contains(last));
        let restriction =
            written.iter().position(|word| RESTRICTIONS.contains(word)).filter(|at| *at > 0 || written.len() > 1);
        if let Some(at) = restriction.or_else(|| several.then_some(0)) {
            return declined(&written[at..].join(" "), "", false); // also `create two experiments`
        }
    }
    UserRequest::change(action, params).into()
}

/// Parses `create experiment Foo in assign-prog with conditions a, b at Site/target`.
pub(super) fn create(words: &[Word], situation: &Situation) -> Option<Interpretation> {
    if after(words, "make the|make it|make this|make that").is_some() {
        return None; // it already exists
    }
    let is_new = begins_new(words);
    let words = without_start(words);
    let rest = match is_new {
        true => {
            after(words, "we need|i need|we want|i want|we would like|run|start|launch|try|do|plan").unwrap_or(words)
        }
        false => after(words, "create|make|set up|build|add|new|design|draft")?,
    };
    if let Some(several) = several_new(rest) {
        return Some(several);
    }
    let rest = skip(skip(rest, "me|us"), "a new|an|a|the|another|new");
    const WITHIN: &str = "within-subjects|within subjects|within-subject|within subject";
    let within = after(rest, WITHIN).filter(|rest| after(rest, "experiment|study|test|design").is_some());
    let rest = within.unwrap_or(rest);
    const ADAPTIVE: &str = "adaptive|multi-armed bandit|multi armed bandit|contextual bandit|bandit|thompson sampling|\
        thompson-sampling|reinforcement learning";
    let adaptive = after(rest, ADAPTIVE).filter(|rest| after(rest, "experiment|study|test|design|a/b test").is_some());
    let rest = adaptive.unwrap_or(rest);
    let grouped = after(rest, "group experiment").is_some();
    let factorial = after(rest, "factorial").is_some();
    const KINDS: &str = "group experiment|individual experiment|factorial experiment|factorial design|factorial study|\
        factorial test|experiment|a/b test|ab test|study|test";
    let (rest, names_kind) = match after(rest, KINDS) {
        Some(rest) => (rest, true),
        None => (rest, false),
    };
    let found = clauses(rest);
    let mut params = found.params.clone();
    let has_new_name = || {
        params.contains_key("context") || rest.first().is_some_and(|w| w.quoted) || is_title(found.front(), &words[1..])
    };
    if !names_kind && (is_new || !(words[0].is("create") && has_new_name())) {
        return None;
    }
    let front = without_last(found.front(), &[","]);
    let generic = front.last().is_some_and(|last| last.is("experiment") && last.text == last.lower);
    let mut front = if generic { without_last(&front[..front.len() - 1], &[","]).to_vec() } else { front.to_vec() };
    let mut beyond = found.beyond();
    if front.is_empty() && !params.contains_key("name") && matches!(beyond.as_slice(), [only] if only.quoted) {
        front = std::mem::take(&mut beyond);
    }
    // Other words after a name in quotes are no part of it.
    if let [name, more @ ..] = front.as_slice()
        && name.quoted
        && !more.iter().all(|word| word.any(&["experiment", "study", "test", "pilot"]))
    {
        beyond = [more, beyond.as_slice()].concat();
        front.truncate(1);
    }
    let name = text(&front);
    if let Some(draft) = situation.draft.as_ref().filter(|draft| !names_kind && draft.action == CREATE) {
        // `create Foo in mathstream` is the request of a button after an unknown context: it corrects
        // the draft.
        let known = draft.params.get("name").and_then(Value::as_str);
        if matches!(name.as_str(), "it" | "an experiment") || known == Some(name.as_str()) {
            return Some(UserRequest::Update(params).into());
        }
    }
    // Words that begin a part of the description do not belong to a name, even if the part was not
    // understood.
    const PART_OPENINGS: &[&str] =
        &["starting", "ending", "until", "include", "exclude", "including", "excluding", "grouped", "excludeall"];
    const CLAUSE_OPENINGS: &str = "that|which|where|to compare|comparing|to test|testing|with the same|like|similar to|where|whose|about|on|to see";
    let is_plain = front.first().is_some_and(|first| first.text == first.lower);
    let is_clause = is_plain && after(&front, CLAUSE_OPENINGS).is_some();
    let mut name = name;
    if let Some(purpose) = purpose(&front).filter(|_| is_clause && !params.contains_key("description")) {
        params.insert("description".to_owned(), purpose.into());
        name.clear();
    } else if is_clause {
        beyond.clone_from(&front);
        name.clear();
    } else if let Some(place) =
        (1..front.len()).find(|&i| front[i].any(PART_OPENINGS) && front[i].text == front[i].lower)
    {
        beyond = front[place..].to_vec();
        name = text(&front[..place]);
    } else if let (kept, left @ [_, ..]) = free_text::name(&front) {
        if !free_text::is_date(left) {
            return Some(free_text::ask_in(words, kept, left));
        }
        beyond = [left, beyond.as_slice()].concat();
        name = text(kept);
    }
    if !name.is_empty() {
        params.entry("name").or_insert_with(|| name.into());
    }
    if within.is_some() {
        params.entry("unit").or_insert_with(|| "within-subjects".into());
    }
    if adaptive.is_some() {
        params.entry("algorithm").or_insert_with(|| "adaptive".into());
    }
    if grouped {
        params.entry("unit").or_insert_with(|| "group".into());
    }
    if factorial {
        params.entry("factors").or_insert_with(|| Value::Array(Vec::new())); // leads to a question
    }
    if !beyond.is_empty() {
        return Some(Interpretation::partly_understood(&text(&beyond), CREATE, params));
    }
    let names_conditions = ["conditions", "factors"].iter().any(|key| params.contains_key(*key));
    if let Some(asked) = free_text::ask_about_conditions(words, &situation.said, &params).filter(|_| !names_conditions)
    {
        return Some(asked);
    }
    let found = checked(CREATE, params.clone(), words);
    let is_named = matches!(found.user_request, UserRequest::Unclear { .. });
    params.remove("name");
    Some(match is_named && !params.is_empty() {
        true => Interpretation { draft: Some(Box::new(Draft::begun(CREATE, params))), ..found },
        false => found,
    })
}

/// Phrases for the things that can be set, and the parameter of each.
const FIELDS: &[(&str, &str)] = &[
    ("weights|weight|assignment weights|weighting|split", "weights"),
    ("description", "description"),
    ("name", "new_name"),
    ("conditions", "conditions"),
    ("decision points|decision point", "decision_points"),
    ("tags|tag", "tags"),
    ("consistency rule|consistency", "consistency"),
    ("post-experiment rule|post experiment rule|post rule", "post_rule"),
    ("unit of assignment|assignment unit", "unit"),
    ("condition order|order of conditions|order", "condition_order"),
    ("filter mode", "filter_mode"),
    ("inclusion list", "inclusion"),
    ("exclusion list", "exclusion"),
    ("end date|end", "end_on"),
    ("context", "context"),
];

/// Parses the name of a parameter at the beginning. Returns the parameter and the words that follow.
pub(super) fn named_field(words: &[Word]) -> Option<(&'static str, &[Word])> {
    let words = skip(words, "the");
    FIELDS.iter().find_map(|(phrases, key)| Some((*key, after(words, phrases)?)))
}

/// Parses `rename X to Y` with words after the new name that do not belong to it, or may not.
fn renaming(words: &[Word], situation: &Situation) -> Option<Interpretation> {
    let rest = after(words, "rename|relabel|change the name of|change name of")?;
    let (about, named) = first_split(rest)?;
    let experiment = thing(about, situation, &ExperimentPhrases).name()?;
    let (kept, left) = free_text::name(named);
    let request = |name: &str| format!("rename “{experiment}” to “{name}”");
    match left {
        [] => None,
        left if kept[0].quoted => left_over(words, about, left, situation),
        left => Some(free_text::ask(kept, left, request)),
    }
}

/// Parses `set the weights of X to 70/30`, `change X's description to …` and `X weights -> 70/30`.
fn set(words: &[Word], situation: &Situation) -> Option<Interpretation> {
    let rest = after(words, "set|change|update|edit|modify|put|switch|make|adjust|move")
        .or_else(|| words.iter().any(is_arrow).then_some(words))?;
    let (about, to) = first_split(rest)?;
    let mut params = Map::new();
    if let Some((key, of)) = named_field(about)
        && let whose = after(of, "of|for|on|in")
        && (whose.is_some() || of.is_empty())
    {
        let named_later = if whose.is_none() { name_among_values(to) } else { None };
        if let Some((to, whose)) = named_later {
            let over = values(&mut params, key, &to);
            return Some(update_of(words, &[whose], params, &over, situation));
        }
        if whose.is_none() && situation.in_hand().is_some() {
            return None; // a correction of the present draft or card
        }
        let over = values(&mut params, key, to);
        return Some(update_of(words, whose.unwrap_or(of), params, &over, situation));
    }
    // `change Math Hints's weights to 70/30`, `change Math Hints weights to 70/30`
    for (phrases, key) in FIELDS {
        let about = skip(about, "the");
        let Some(whose) = phrases.split('|').find_map(|phrase| before(about, phrase)) else { continue };
        let over = values(&mut params, key, to);
        return Some(update_of(words, &whose, params, &over, situation));
    }
    None
}

/// Separates the only known name from the values around it: `60/40 and the description to 'abc' for Math Hints`.
fn name_among_values(words: &[Word]) -> Option<(Vec<Word>, Word)> {
    let mut names = (0..words.len()).filter(|at| words[*at].quoted && words[*at].kind.is_some());
    let at = names.next().filter(|_| names.next().is_none())?;
    let before = without_last(&words[..at], &["experiment", "study", "the"]);
    let (_, values) = before.split_last().filter(|(joint, _)| joint.any(&["for", "of", "on", "in"]))?;
    (!values.is_empty()).then(|| ([values, &words[at + 1..]].concat(), words[at].clone()))
}

/// Parses a value and further parameters after it: `foo and tags to x, y`. From the second one on, “to”
/// may be left out. Returns the words that are not part of any value.
fn values(params: &mut Map<String, Value>, key: &str, words: &[Word]) -> Vec<Word> {
    let (mut key, mut words, mut first) = (key, words, true);
    let mut over = Vec::new();
    loop {
        let following = (1..words.len()).filter(|&i| words[i].any(&[",", "and"])).find_map(|i| {
            let (key, bare) = named_field(skip(&words[i..], ", and|,|and"))?;
            let value = after(bare, "to|as").or((!first && !bare.is_empty()).then_some(bare))?;
            Some((i, key, value))
        });
        let end = following.map_or(words.len(), |(i, ..)| i);
        let value = &words[..end];
        let (kept, left) = match (key, value.first()) {
            ("new_name", Some(_)) => free_text::name(value),
            ("description", Some(first)) if !first.quoted => value.split_at(free_text::description(value)),
            _ => (value, &[][..]),
        };
        params.insert(key.to_owned(), field(key, kept));
        let share =
            |word: &Word| word.among(", and to percent") || word.text.trim_end_matches('%').parse::<f64>().is_ok();
        over.extend_from_slice(match key {
            "conditions" | "tags" | "inclusion" | "exclusion" => clauses::list(value).1,
            "end_on" => design::date(value).map_or(&[], |(_, rest)| rest),
            "weights" if by_condition(value).is_some() => &[],
            "weights" if value.len() > 1 && slots::fractions(value).is_none() && !value.iter().all(share) => {
                &value[1..]
            }
            _ if value.first().is_some_and(|first| first.quoted) => &value[1..],
            _ => left,
        });
        let Some((_, next_key, next_words)) = following else { return over };
        (key, words, first) = (next_key, next_words, false);
    }
}

/// Returns the weights of several conditions: `control 60%, variant 40%`; `None` if there are other words.
pub(super) fn by_condition(words: &[Word]) -> Option<Value> {
    let (by_code, rest) = slots::shares(words);
    (by_code.len() > 1 && rest.is_empty()).then_some(Value::Object(by_code))
}

/// Returns the words before a phrase, without a possessive `'s`, if the words end with the phrase.
fn before(words: &[Word], phrase: &str) -> Option<Vec<Word>> {
    let length = phrase.split(' ').count();
    let (whose, field) = words.split_at_checked(words.len().checked_sub(length)?)?;
    if whose.is_empty() || lower(field) != phrase || field.iter().any(|word| word.quoted) {
        return None;
    }
    let mut whose = whose.to_vec();
    if let Some(last) = whose.last_mut().filter(|last| !last.quoted) {
        for mark in ["'s", "’s"] {
            if let Some(stem) = last.text.strip_suffix(mark) {
                (last.text, last.lower) = (stem.to_owned(), stem.to_lowercase());
            }
        }
    }
    Some(whose)
}

/// Returns the words before and after the first “to” or “as”.
fn first_split(words: &[Word]) -> Option<(&[Word], &[Word])> {
    let place = words.iter().position(|word| word.any(&["to", "as"]) || is_arrow(word))?;
    let (before, after) = (&words[..place], &words[place + 1..]);
    (!before.is_empty() && !after.is_empty()).then_some((before, after))
}

/// Parses the value of a parameter into its JSON form.
pub(super) fn field(key: &str, words: &[Word]) -> Value {
    let items = || clauses::list(words).0;
    match key {
        "weights" => match words {
            [one] => slots::ratio(&one.text).unwrap_or_else(|| one.text.clone()).into(),
            many if let Some(by_code) = by_condition(many) => by_code,
            many if let Some(percent) = slots::fractions(many) => {
                percent.iter().map(ToString::to_string).collect::<Vec<_>>().join("/").into()
            }
            many => {
                let numbers: Vec<String> = many
                    .iter()
                    .map(|word| word.text.trim_end_matches('%').to_owned())
                    .filter(|word| word.parse::<f64>().is_ok())
                    .collect();
                if numbers.is_empty() { text(many).into() } else { numbers.join("/").into() }
            }
        },
        "conditions" => clauses::conditions_of(&items()).into(),
        "decision_points" if let Some(point) = point_in_words(words) => vec![point].into(),
        "decision_points" => {
            let points = words.iter().filter(|word| !word.is(",") && !word.is("and"));
            let points: Vec<String> =
                points.map(|word| slots::point(&word.text).unwrap_or_else(|| word.text.clone())).collect();
            points.into()
        }
        "start_on" | "end_on" => design::date(words).map_or_else(|| text(words), |(moment, _)| moment).into(),
        "factors" => factors::bare(words),
        "inclusion" | "exclusion" => who_of(&items()),
        "tags" => items().iter().map(|item| text(item)).collect::<Vec<_>>().into(),
        "consistency" | "post_rule" | "unit" => text(words).to_lowercase().into(),
        "description" => sentence(words).into(),
        "filter_mode" if words.len() == 1 => clauses::filter_mode(&words[0]).into(),
        _ => text(words).into(),
    }
}

/// Parses `update X with weights 70/30`.
fn update(words: &[Word], situation: &Situation) -> Option<Interpretation> {
    let rest = after(words, "update|edit|modify|change|adjust")?;
    let rest = skip(rest, "the experiment|experiment");
    let end =
        (1..rest.len()).find(|&i| rest[i].any(&["with", ",", "so", "by", "using"]) || clauses::begins_part(&rest[i..]));
    let (about, parts) = rest.split_at(end.unwrap_or(rest.len()));
    let about = without_last(about, &["to", "at", "as", "into"]);
    if about.is_empty() {
        return None;
    }
    // `change the weights of Math Hints`: the empty weights lead to a question.
    let weights = after(about, "the weights|weights|the weighting|weighting|the split|split");
    if let Some(whose) = weights.and_then(|of| after(of, "of|for|in")).filter(|_| parts.is_empty()) {
        let params = Map::from_iter([("weights".to_owned(), "".into())]);
        return Some(update_of(words, whose, params, &[], situation));
    }
    let found = clauses(parts);
    let over: Vec<Word> = [found.front().to_vec(), found.beyond()].concat();
    let mut params = found.params;
    if let Some(name) = params.remove("name") {
        params.insert("new_name".to_owned(), name);
    }
    Some(update_of(words, about, params, &over, situation))
}

/// Parses “end” and “finish”, which may mean one of two changes, into the question which is meant.
fn ending(words: &[Word], situation: &Situation) -> Option<Interpretation> {
    const ENDS: &str = "end|finish|conclude|close|kill|terminate|complete|wrap up|shut down|close down|close out";
    if let Some(name) = finished(words, ENDS) {
        return Some(which_ending(&name));
    }
    let rest = after(words, ENDS)?;
    let name = thing(rest, situation, &ExperimentPhrases).name()?;
    if let Some(left) = left_over(words, rest, &[], situation) {
        return Some(left);
    }
    Some(which_ending(&name))
}

/// Returns the question which of two endings is meant.
fn which_ending(name: &str) -> Interpretation {
    Interpretation::unclear(
        "Do you want to pause it (no new users; you can resume it) or cancel it permanently?",
        vec![format!("pause “{name}”"), format!("cancel “{name}”")],
    )
}

/// Parses `we've finished Math Hints, please close it`, and returns the name of the experiment.
fn finished(words: &[Word], ends: &str) -> Option<String> {
    const DONE: &str = "we have finished with|we have finished|we've finished with|we've finished|we finished|we are done with|\
        we're done with|we are finished with|we're finished with|i have finished|i've finished|i am done with|i'm done with|\
        done with|finished with|we have completed|we've completed|we completed";
    let rest = after(words, DONE)?;
    let end = rest
        .iter()
        .position(|word| word.quoted)
        .map_or_else(|| rest.iter().position(|word| word.is(",")), |at| Some(at + 1))?;
    let name = text(skip(&rest[..end], "the experiment|experiment|the study|the|our|my"));
    let tail = skip(skip(skip(&rest[end..], ","), "so|and"), "please|pls|you can|can you|could you|you may|let us");
    let closed = after(skip(tail, "please|now"), ends)?;
    let closed = without_last(closed, &["please", "now", "down", "up", "thanks", "for", "good"]);
    let is_it = after(closed, "it|that|this|that one|the experiment|the study").is_some_and(<[Word]>::is_empty);
    (is_it && !name.is_empty()).then_some(name)
}

/// Parses `start and stop Math Hints` into the question which is meant.
fn either(words: &[Word], situation: &Situation) -> Option<Interpretation> {
    const VERBS: &str = "start|begin|launch|run|resume|restart|stop|halt|pause|suspend|cancel|archive";
    let second = after(after(words, VERBS)?, "and|or").filter(|_| words[1].text == words[1].lower)?;
    let about = after(second, VERBS)?;
    let name = thing(about, situation, &ExperimentPhrases).name()?;
    if let Some(left) = left_over(words, about, &[], situation) {
        return Some(left);
    }
    let options = [&words[0], &second[0]].map(|verb| format!("{} “{name}”", verb.lower)).to_vec();
    Some(Interpretation::unclear("Which of the two should I do?", options))
}
