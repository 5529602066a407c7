//! Who is on a list: `add u1, u2 to the inclusion list of Math Hints`, `exclude class 5B from Math Hints`.

use serde_json::Map;

use super::{
    changes::{UPDATE, named},
    clauses::list,
    design::who,
    situation::Situation,
    wish::{Understood, Wish},
    words::{Word, after, skip, text},
};

/// A change of who is on a list.
pub(super) fn membership(words: &[Word], situation: &Situation) -> Option<Understood> {
    let (key, members, about) = on_a_list(words).or_else(|| by_verb(words))?;
    let (items, rest) = list(members);
    if items.is_empty() || !rest.is_empty() {
        return None;
    }
    let mut params = Map::new();
    named(&mut params, about, situation);
    params.insert(key, who(&items));
    Some(Wish::change(UPDATE, params).into())
}

/// `add the tag pilot to Math Hints`, `tag Math Hints with pilot and spring`, `remove the tag pilot from Math Hints`.
pub(super) fn tags(words: &[Word], situation: &Situation) -> Option<Understood> {
    let place = |rest: &[Word], at: &[&str]| rest.iter().rposition(|word| word.any(at)).filter(|at| *at > 0);
    let listed = |rest: &[Word], at: &[&str]| -> Option<(Vec<Word>, Vec<Word>)> {
        let rest = after(skip(rest, "the|a|another|a new|new"), "tags|tag|labels|label")?;
        let at = place(rest, at)?;
        Some((rest[..at].to_vec(), rest[at + 1..].to_vec()))
    };
    let by_verb = || {
        let rest = after(words, "tag|label")?;
        let at = place(rest, &["with", "as"])?;
        Some((rest[at + 1..].to_vec(), rest[..at].to_vec()))
    };
    let found = after(words, "add|put|attach").and_then(|rest| listed(rest, &["to", "on", "onto"])).or_else(by_verb);
    let (mark, (tags, about)) = match found {
        Some(found) => ('+', found),
        None => ('-', after(words, "remove|take|drop|delete").and_then(|rest| listed(rest, &["from", "off"]))?),
    };
    let (items, rest) = list(&tags);
    if items.is_empty() || !rest.is_empty() || about.is_empty() {
        return None;
    }
    let mut params = Map::new();
    named(&mut params, &about, situation);
    let tags: Vec<_> = items.iter().map(|tag| format!("{mark}{}", text(tag))).collect();
    params.insert("tags".to_owned(), tags.into());
    Some(Wish::change(UPDATE, params).into())
}

/// The parameter, the members, and the experiment's words.
type Said<'a> = (String, &'a [Word], &'a [Word]);

/// `add … to the inclusion list of …`, `take … off the exclusion list of …`.
fn on_a_list(words: &[Word]) -> Option<Said<'_>> {
    let (verb, rest) = match after(words, "add|put") {
        Some(rest) => ("add_to", rest),
        None => ("remove_from", after(words, "remove|take|delete|drop")?),
    };
    let place = rest.iter().rposition(|word| word.any(&["to", "on", "from", "off", "onto"]))?;
    let (members, list) = (&rest[..place], skip(&rest[place + 1..], "of the|the"));
    let (side, about) = match after(list, "inclusion list|inclusion lists|include list") {
        Some(about) => ("inclusion", about),
        None => ("exclusion", after(list, "exclusion list|exclusion lists|exclude list")?),
    };
    Some((format!("{verb}_{side}"), members, skip(about, "of|for|in")))
}

/// `exclude … from …`, `include … in …`.
fn by_verb(words: &[Word]) -> Option<Said<'_>> {
    let (key, rest, joins) = match after(words, "exclude") {
        Some(rest) => ("add_to_exclusion", rest, &["from", "in"]),
        None => ("add_to_inclusion", after(words, "include")?, &["in", "into"]),
    };
    let place = rest.iter().position(|word| word.any(joins))?;
    Some((key.to_owned(), &rest[..place], &rest[place + 1..]))
}
