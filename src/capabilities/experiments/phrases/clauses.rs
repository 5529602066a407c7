//! The parts of a description of an experiment: `in assign-prog with conditions a, b, 70/30, at Site/target`.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::{
    ExperimentPhrases,
    design::{self, rare},
    free_text,
    shares::conditions_with_shares,
    situation::Situation,
    slots::{point, ratio},
    words::{Word, after, sentence, skip, text},
};

use countersign_understanding::{lines::Lines, phrases::Utterance};

/// The parsed parameters, and the words that belong to none of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Clauses {
    /// The values, by parameter.
    pub(super) params: Map<String, Value>,
    /// The words that belong to no parameter, in order.
    pub(super) rest: Vec<Word>,
    /// The number of words in `rest` that come before the first part.
    pub(super) before: usize,
}

impl Clauses {
    /// Returns the words before the first part. In the description of a new experiment, this is its
    /// name.
    pub(super) fn front(&self) -> &[Word] {
        without_joints(&self.rest[..self.before.min(self.rest.len())])
    }

    /// Returns the words after the beginning of the first part that are not understood.
    pub(super) fn beyond(&self) -> Vec<Word> {
        const POLITE: &[&str] = &["please", "thanks", "thank", "you", "too", "also", "oh", "me", "us", "it"];
        let has_meaning = |word: &&Word| !word.any(SMALL) && !word.any(POLITE);
        let beyond = &self.rest[self.before.min(self.rest.len())..];
        let Some(first) = beyond.iter().position(|word| has_meaning(&word)) else { return Vec::new() };
        let last = beyond.iter().rposition(|word| has_meaning(&word)).unwrap_or(first);
        beyond[first..=last].to_vec()
    }
}

const CONDITIONS: &str = "the following conditions|the conditions|conditions|condition|the arms|arms|variants";
const POINTS: &str = "the decision points|decision points|the decision point|decision point|points|point";
/// Connectives, which have no meaning of their own.
const SMALL: &[&str] = &[
    "with", "and", "at", "on", "in", "a", "an", "the", "using", "use", "of", "weights", "weight", "to", ",",
    "weighted", "split", "as", "for",
];

/// Returns true for a connective in lower case. With a capital letter, it is a code or a part of a name: `Plan A`.
fn is_small(word: &Word) -> bool {
    word.any(SMALL) && word.text == word.lower
}

/// Returns true if the last word is a connective, which then has no meaning of its own. The last word of a name has one:
/// `Hints for A`, `plan a`.
fn ends_with_connective(words: &[Word]) -> bool {
    const LETTERED: &str = "plan group test copy version variant option phase part type class school section cohort \
        series pilot experiment study team wave round unit level";
    let Some((last, before)) = words.split_last().filter(|(last, _)| last.any(SMALL)) else { return false };
    let ends_name = before.last().is_some_and(|word| {
        let is_lettered = last.is("a") && (word.quoted || word.among(LETTERED));
        word.tail.is_empty() && !word.is(",") && (!is_small(last) || is_lettered)
    });
    !ends_name
}

/// Returns the words without those at their end that join a part to them.
fn without_joints(mut words: &[Word]) -> &[Word] {
    while let [rest @ .., last] = words
        && !rest.is_empty()
        && last.text == last.lower
        && last.any(&[",", "with", "and", "at", "in", "on"])
    {
        words = rest;
    }
    words
}

/// Parses the parts of a description, in any order.
pub(super) fn clauses(words: &[Word]) -> Clauses {
    let mut found = Clauses::default();
    let mut parts = false;
    let mut rest = words;
    while let Some((first, others)) = rest.split_first() {
        let taken =
            part(rest).or_else(|| name(skip(rest, JOINTS))).or_else(|| described_conditions(rest)).or_else(|| {
                let ends_name = found.rest.last().is_some_and(|last| last.quoted && last.kind.is_none());
                bare_conditions(rest).filter(|_| parts || ends_name)
            });
        match taken {
            Some((params, after)) => {
                if !parts {
                    (parts, found.before) = (true, found.rest.len());
                }
                found.params.extend(params);
                rest = after;
            }
            None => {
                found.rest.push(first.clone());
                rest = others;
            }
        }
    }
    while ends_with_connective(&found.rest) {
        found.rest.pop();
    }
    if !parts {
        found.before = found.rest.len();
    }
    while found.rest.first().is_some_and(|word| word.is(",")) {
        found.rest.remove(0);
        found.before = found.before.saturating_sub(1);
    }
    found
}

/// Words between the parts of a description.
const JOINTS: &str = "and with|and at|with|and|at|on|using|use|has|having|,";

/// The readers of the parts, in the order in which they are tried.
const PARTS: &[for<'a> fn(&'a [Word]) -> Taken<'a>] = &[
    description,
    fixed,
    rare,
    conditions_with_shares,
    conditions,
    versus,
    compared,
    tags,
    |words| points(skip(words, "at|on")),
    weights,
];

/// Parses a part other than a name, after the words that join it to the one before.
fn part(words: &[Word]) -> Taken<'_> {
    let joined = skip(words, JOINTS);
    PARTS.iter().find_map(|read| read(joined)).or_else(|| context(words))
}

/// A parsed part: its parameters, and the words that follow.
pub(super) type Taken<'a> = Option<(Vec<(String, Value)>, &'a [Word])>;

/// Returns a part with one parameter.
pub(super) fn one<'a>(key: &str, value: impl Into<Value>, rest: &'a [Word]) -> Taken<'a> {
    Some((vec![(key.to_owned(), value.into())], rest))
}

/// Parses `description …`: a text in quotes, or else everything up to the end or to another part.
fn description(words: &[Word]) -> Taken<'_> {
    let after = after(words, "the description|a description|description|described as")?;
    let after = skip(skip(after, "of|to|as|is|saying"), ",");
    match after.split_first()? {
        (first, rest) if first.quoted => one("description", first.text.clone(), rest),
        _ => {
            let (described, rest) = after.split_at(free_text::description(after));
            one("description", sentence(described), rest)
        }
    }
}

/// Parses `conditions a, b and c`, optionally with weights.
pub(super) fn conditions(words: &[Word]) -> Taken<'_> {
    let counted = after(words, "the two|two|the three|three|the four|four|five|six|its|these");
    let counted = counted.filter(|_| words[0].text == words[0].lower).unwrap_or(words);
    let after = skip(after(counted, CONDITIONS)?, "are|is|to|of|called|named|should be");
    let (items, rest) = list(after);
    let codes = conditions_of(&items);
    (!codes.is_empty()).then(|| (vec![("conditions".to_owned(), Value::Array(codes))], rest))
}

/// Parses `control vs hints`, also after “compare” and the like.
fn versus(words: &[Word]) -> Taken<'_> {
    let start = skip(words, "comparing|compare|that compares|which compares|to compare|testing|:");
    let marks = &["vs", "versus", "vs."];
    let second = start.get(1).is_some_and(|word| word.any(marks));
    let is_code = |word: &Word| !is_small(word) && !word.text.contains('/');
    if !second || !start.first().is_some_and(is_code) {
        return None;
    }
    let mut codes = vec![Value::from(start[0].text.as_str())];
    let mut rest = &start[1..];
    while let [mark, code, more @ ..] = rest
        && mark.any(marks)
        && is_code(code)
    {
        codes.push(code.text.as_str().into());
        rest = more;
    }
    (codes.len() > 1).then(|| (vec![("conditions".to_owned(), codes.into())], rest))
}

/// Parses `comparing control, variant and concrete`, `comparing control with variant`: codes of one word each.
fn compared(words: &[Word]) -> Taken<'_> {
    let start = after(words, "comparing|that compares|which compares|to compare|compares")?;
    if words[0].text != words[0].lower {
        return None;
    }
    if let [one, joint, other, rest @ ..] = start
        && joint.any(&["with", "to", "against"])
        && ends_part(rest)
    {
        return codes(&[vec![one.clone()], vec![other.clone()]], rest);
    }
    let (items, rest) = list(skip(start, "the"));
    let are_codes = items.len() > 1 && items.iter().all(|item| item.len() == 1);
    let rest = skip(rest, "conditions|variants|arms");
    are_codes.then(|| (vec![("conditions".to_owned(), conditions_of(&items).into())], rest))
}

/// Parses `with the control and variant conditions`.
fn described_conditions(words: &[Word]) -> Taken<'_> {
    let start = after(skip(words, ",|and"), "with|using|between|of")?;
    let (items, rest) = list(skip(start, "the two|the|its|these|both|two|three|four"));
    let is_plain = rest.first().is_some_and(|noun| noun.text == noun.lower);
    let rest = after(rest, "conditions|variants|arms").filter(|rest| is_plain && ends_part(rest))?;
    codes(&items, rest)
}

/// Parses `with control and variant`, which is a part only after the name.
fn bare_conditions(words: &[Word]) -> Taken<'_> {
    let (items, rest) = list(after(skip(words, ",|and"), "with")?);
    codes(&items, rest).filter(|_| ends_part(rest))
}

/// Returns true if a part ends before these words.
fn ends_part(rest: &[Word]) -> bool {
    rest.first().is_none_or(|first| first.is(",")) || starts_clause(skip(rest, "and"))
}

/// Returns the items of a list as conditions, if there are several and each is a word that may be a code.
fn codes<'a>(items: &[Vec<Word>], rest: &'a [Word]) -> Taken<'a> {
    let is_code = |item: &Vec<Word>| matches!(item.as_slice(), [code] if !is_small(code) && number(code).is_none());
    let are_codes = items.len() > 1 && items.iter().all(is_code);
    are_codes.then(|| (vec![("conditions".to_owned(), conditions_of(items).into())], rest))
}

/// Returns the conditions in the items of a list: `control`, `control 70`, `control/hints`.
pub(super) fn conditions_of(items: &[Vec<Word>]) -> Vec<Value> {
    let mut codes = Vec::new();
    for item in items {
        match item.as_slice() {
            [one] if !one.quoted && one.text.contains('/') => {
                codes.extend(one.text.split('/').filter(|code| !code.is_empty()).map(Value::from));
            }
            [code @ .., weight] if !code.is_empty() && number(weight).is_some() => {
                codes.push(json!({ "code": text(code).trim_end_matches(':'), "weight": number(weight) }));
            }
            _ => codes.push(text(item).into()),
        }
    }
    codes
}

/// Parses a list, and returns its items and the words that follow. Items are separated by commas, “and”
/// and the like. A preposition or another part ends the list.
pub(super) fn list(words: &[Word]) -> (Vec<Vec<Word>>, &[Word]) {
    let mut items: Vec<Vec<Word>> = vec![Vec::new()];
    let mut rest = words;
    while let Some((word, others)) = rest.split_first() {
        if word.any(&[",", "and", "or", "vs", "versus", "&", "then"]) {
            if starts_clause(skip(rest, ", and|,|and")) {
                break;
            }
            items.push(Vec::new());
        } else if starts_clause(rest) {
            break;
        } else if let Some(last) = items.last_mut() {
            last.push(word.clone());
        }
        rest = others;
    }
    items.retain(|item| !item.is_empty());
    (items, rest)
}

/// Returns true if another part begins here.
pub(super) fn starts_clause(words: &[Word]) -> bool {
    let Some(first) = words.first() else { return false };
    first.among("in at on with for using weights weighted weight split description described assigned equal equally evenly site") || fixed(words).is_some()
        || design::begins(words)
        || after(words, "the tags|tags|tagged").is_some()
        || after(words, CONDITIONS).is_some()
        || after(words, POINTS).is_some()
        || (!first.quoted && ratio(&first.text).is_some())
        || (!first.quoted && first.text.contains('/') && ratio(&first.text).is_none() && point(&first.text).is_some())
}

/// Parses `70/30`, `weights 70, 30`, `equal weights`.
pub(super) fn weights(words: &[Word]) -> Taken<'_> {
    if let Some(rest) =
        after(words, "equal weights|equal weight|equally weighted|equally|an even split|even split|evenly")
    {
        return Some((Vec::new(), rest));
    }
    let named = after(words, "the weights|weights|weight|weighted|a split|split");
    let start = skip(named.unwrap_or(words), "to|of|at|are|be|as|should be|,");
    if let Some((first, rest)) = start.split_first()
        && !first.quoted
        && let Some(ratio) = ratio(&first.text)
    {
        return one("weights", ratio, skip(rest, "weights|weight|split"));
    }
    named?;
    let mut numbers = Vec::new();
    let mut rest = start;
    while let Some((word, others)) = rest.split_first() {
        match number(word) {
            Some(number) => numbers.push(number),
            None if word.any(&[",", "and", "to", "percent"]) && !numbers.is_empty() => {}
            None => break,
        }
        rest = others;
    }
    match numbers.is_empty() {
        true => None,
        false => one("weights", numbers, rest),
    }
}

fn number(word: &Word) -> Option<f64> {
    if word.quoted {
        None
    } else {
        word.text.trim_end_matches('%').parse().ok().filter(|number: &f64| number.is_finite())
    }
}

/// Parses one or several of `at Site/target` or `site X target Y`.
pub(super) fn points(words: &[Word]) -> Taken<'_> {
    if let Some(after_site) = after(words, "the site|site")
        && let [site, rest @ ..] = after_site
        && let [target, rest @ ..] = skip(rest, ", the target|, target|and target|target|with target|, and target")
        && !is_small(target)
    {
        return one("decision_points", vec![format!("{} / {}", site.text, target.text)], rest);
    }
    if let Some(pair) = site_or_target(words) {
        return Some(pair);
    }
    let named = after(words, POINTS);
    let mut rest = skip(named.unwrap_or(words), "are|is|to|at|called|of");
    // `decision point lesson-quiz question-hint`
    if let (Some(_), [site, target, more @ ..]) = (named, rest)
        && let Some(point) = two_words(site, target)
        && (more.is_empty() || starts_clause(skip(more, ",|and")))
    {
        return one("decision_points", vec![point], more);
    }
    let mut points = Vec::new();
    while let Some((word, others)) = skip(rest, ", and|,|and").split_first() {
        let Some(point) = (!word.quoted && ratio(&word.text).is_none()).then(|| point(&word.text)).flatten() else {
            break;
        };
        points.push(point);
        rest = others;
    }
    (!points.is_empty()).then(|| (vec![("decision_points".to_owned(), points.into())], rest))
}

/// Parses `target area_model, site SelectSection`, or one of the two.
fn site_or_target(words: &[Word]) -> Taken<'_> {
    let [target, rest @ ..] = after(words, "the target|target")? else { return None };
    if is_small(target) || target.text.contains('/') {
        return None;
    }
    if let Some([site, rest @ ..]) =
        after(rest, ", and the site|, and site|, the site|, site|and the site|and site|site|in the site")
        && !is_small(site)
    {
        return one("decision_points", vec![format!("{} / {}", site.text, target.text)], rest);
    }
    one("target", target.text.clone(), rest)
}

/// Returns two words as a decision point, if they look like a site and a target.
pub(super) fn two_words(site: &Word, target: &Word) -> Option<String> {
    let plain = |word: &Word| !word.any(SMALL) && !word.is(",") && !word.text.contains(['/', ':', '%', '=']);
    let is_code = |word: &Word| {
        word.quoted || word.text.contains(['_', '-']) || word.text.chars().skip(1).any(char::is_uppercase)
    };
    (plain(site) && plain(target) && (is_code(site) || is_code(target)))
        .then(|| format!("{} / {}", site.text, target.text))
}

/// Parses `in assign-prog`, `for the mathstream context`.
pub(super) fn context(words: &[Word]) -> Taken<'_> {
    let named = after(
        words,
        "in the context|in context|for context|for the context|the context|context|with context|to context",
    );
    if let Some(after) = named {
        let (first, rest) = skip(after, "to|is|of|called|,").split_first()?;
        return one("context", first.text.clone(), rest);
    }
    let after = skip(after(words, "in|within|for")?, "the");
    let (first, rest) = after.split_first()?;
    let followed = skip(rest, "context|app|application");
    let ends = rest.len() != followed.len()
        || starts_clause(rest)
        || first.tail.contains(':')
        || rest.first().is_none_or(|next| {
            next.among(", and called named comparing compare testing that which to where it max maximum limited without leave only about starting ending until from include exclude including excluding grouped")
        });
    // `Hints for B in assign-prog`: the context is what follows.
    let is_of_name = words[0].is("for") && rest.first().is_some_and(|next| next.any(&["in", "within"]));
    (ends && !is_of_name && !first.any(SMALL)).then_some(())?;
    one("context", first.text.clone(), followed)
}

/// Parses one of the parts in `clauses.txt`.
pub(super) fn fixed(words: &[Word]) -> Taken<'_> {
    static PARTS: LazyLock<Lines> =
        LazyLock::new(|| Lines::read(include_str!("clauses.txt")).expect("the parts can be read"));
    let situation = Situation::default();
    let (given, taken) = PARTS.begin(Utterance::of(words, &situation), &ExperimentPhrases, super::OWNER)?;
    Some((given.into_iter().collect(), &words[taken..]))
}

/// Returns the filter mode as the platform spells it.
pub(super) fn filter_mode(word: &Word) -> &str {
    match word.lower.as_str() {
        "excludeall" | "exclude" => "excludeAll",
        "includeall" | "include" => "includeAll",
        _ => &word.text,
    }
}

/// Parses `tags a, b`, `tag it a`.
pub(super) fn tags(words: &[Word]) -> Taken<'_> {
    let tagged = skip(after(words, "the tags|tags|tag|tagged")?, "it|them|this");
    let (items, rest) = list(skip(tagged, "to|as|are|is|with"));
    let tags: Vec<String> = items.iter().map(|item| text(item)).collect();
    (!tags.is_empty()).then(|| (vec![("tags".to_owned(), tags.into())], rest))
}

/// Parses `called Hint Timing`, up to the next part.
fn name(words: &[Word]) -> Taken<'_> {
    let after = after(words, "called|named|the name|name it|call it|name|titled")?;
    let after = skip(after, "to|is|should be|as");
    let (first, others) = after.split_first()?;
    if first.quoted {
        return one("name", first.text.clone(), others);
    }
    let end = (1..after.len()).find(|&i| after[i].is(",") || begins_part(&after[i..])).unwrap_or(after.len());
    one("name", text(without_joints(&after[..end])), &after[end..])
}

/// Returns true if a part of a description begins here, which ends a name that is not in quotes.
pub(super) fn begins_part(words: &[Word]) -> bool {
    part(words).is_some() || described_conditions(words).is_some()
}
