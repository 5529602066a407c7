//! Where free text ends: a name, a description.
//!
//! In quotes it ends with them. Otherwise it takes every word, unless they read as something else: a date, a reason or
//! another request at its end, conditions, or after a comma another part of a description. What may belong to it or not is
//! asked.

use countersign_understanding::dates;
use serde_json::{Map, Value};

use super::{
    changes::CREATE,
    clauses::{self, conditions, fixed, points, tags, weights},
    design::rare,
    situation::Draft,
    user_request::Interpretation,
    words::{self, Word, after, as_typed, skip, text},
};

/// Splits a new name from the words after it that read as something else.
pub(super) fn name(words: &[Word]) -> (&[Word], &[Word]) {
    if words.first().is_some_and(|first| first.quoted && first.kind.is_none()) {
        return words.split_at(1);
    }
    let ends = |at: &usize| {
        let rest = &words[*at..];
        let introduced = rest[0].among("by on until till from starting at in next this today tomorrow tonight");
        is_plain(&rest[0]) && (introduced && is_date(rest) || goes_on(rest))
    };
    words.split_at((1..words.len()).find(ends).unwrap_or(words.len()))
}

/// Returns true for a word in lower case, which a name in capitals does not contain.
fn is_plain(word: &Word) -> bool {
    word.text == word.lower && !word.quoted
}

/// Returns true if the words are a date and nothing else.
pub(super) fn is_date(words: &[Word]) -> bool {
    dates::moment(words, "").is_some_and(|(_, _, rest)| rest.is_empty())
}

/// Returns true if the words continue a request after its name: with a time, a reason or another request.
fn goes_on(words: &[Word]) -> bool {
    const CLAUSES: &str = "before|after|because|since|but|, but|so that|so we|so it|so they|so i|so people";
    const REQUESTS: &str = "leave|keep|nothing|don't|do not|never|not|change|set|make|add|remove|delete|start|stop|pause|\
        resume|cancel|archive|update|show|tell|use|let";
    let is_clause = after(words, CLAUSES).is_some_and(|rest| !rest.is_empty());
    let next = after(words, ", and|,|and").filter(|next| next.first().is_some_and(is_plain));
    is_clause || next.and_then(|next| after(next, REQUESTS)).is_some_and(|rest| !rest.is_empty())
}

/// Returns the number of words of a description at the beginning: up to another part after a comma or the end of a
/// sentence, or after “and” if that cannot be meant otherwise.
pub(super) fn description(words: &[Word]) -> usize {
    let is_certain = |part: &[Word]| {
        let has_number = part.iter().take(4).any(|word| word.text.contains(|c: char| c.is_ascii_digit()));
        has_number && (rare(part).is_some() || weights(part).is_some())
    };
    let is_part = |part: &[Word]| {
        let lists = after(part, "tags|tagged|tag it").is_some() && tags(part).is_some();
        let named = after(part, "context|the context|decision point|decision points|site|the site").is_some();
        let name = after(part, "the name|name").and_then(|name| skip(name, "is|to|of|:").first());
        let begins_name =
            |word: &Word| word.quoted || word.text.starts_with(|c: char| c.is_uppercase() || c.is_numeric());
        lists
            || named && (points(part).is_some() || clauses::context(part).is_some())
            || name.is_some_and(begins_name)
            || conditions(part).is_some()
            || fixed(part).is_some()
            || rare(part).is_some()
            || weights(part).is_some()
    };
    let ends = |at: &usize| match &words[*at] {
        comma if comma.is(",") => is_part(skip(&words[*at..], ", and with|, and|, with|,")),
        and if and.is("and") => is_certain(&words[at + 1..]),
        _ => words[at - 1].tail.contains(['.', ';', '!']) && is_part(&words[*at..]),
    };
    (1..words.len()).find(ends).unwrap_or(words.len())
}

/// Asks whether the words after a new name belong to it. `request` makes the request for a name.
pub(super) fn ask(kept: &[Word], left: &[Word], request: impl Fn(&str) -> String) -> Interpretation {
    let (short, whole) = (text(kept), text(&[kept, left].concat()));
    let left = as_typed(skip(left, ","));
    let question = format!("Is “{left}” part of the name? If not, I'd leave it out.");
    Interpretation::unclear(question, vec![request(&whole), request(&short)])
}

/// Asks the same of the name in a whole request for something new.
pub(super) fn ask_in(words: &[Word], kept: &[Word], left: &[Word]) -> Interpretation {
    let (all, whole) = (as_typed(words), as_typed(&[kept, left].concat()));
    ask(kept, left, |name| match name == text(kept) {
        true => all.replacen(&whole, name, 1),
        false => all.replacen(&whole, &format!("“{name}”"), 1),
    })
}

/// Asks whether words in a new name are its conditions: `Voice Test with tutor-a and tutor-b`, `Voice (a, b)`, `Voice with
/// two conditions`. `words` are the whole request, `said` is the message, and `params` has the name.
pub(super) fn ask_about_conditions(words: &[Word], said: &str, params: &Map<String, Value>) -> Option<Interpretation> {
    const OPENINGS: &str = "with|comparing|compares|between";
    const NOUNS: &[&str] = &["conditions", "condition", "arms", "variants"];
    let name = params.get("name")?.as_str()?;
    let all = as_typed(words);
    if words.iter().any(|word| word.quoted && word.text == name) || !all.contains(name) {
        return None;
    }
    let request = |new: &str| all.replacen(name, new, 1);
    let front = words::words(name);
    let opens =
        |at: &usize| is_plain(&front[*at]) && after(&front[*at..], OPENINGS).is_some_and(|rest| !rest.is_empty());
    let in_brackets = bracketed(said, &front);
    let mentions = front.iter().skip(1).any(|word| is_plain(word) && word.any(NOUNS));
    let Some(at) = in_brackets.or_else(|| (1..front.len()).find(opens)) else {
        let question = format!(
            "Is all of “{name}” the name? To set the conditions, say for example: conditions control and variant."
        );
        return mentions.then(|| Interpretation::unclear(question, vec![request(&format!("“{name}”"))]));
    };
    let (head, tail) = (as_typed(&front[..at]), &front[at..]);
    let listed = skip(skip(tail, OPENINGS), "the two|the|its|these|both|two|three");
    let (items, rest) = clauses::list(listed);
    let whole =
        if in_brackets.is_some() { format!("“{head} ({})”", as_typed(tail)) } else { format!("“{name}”") };
    if items.len() > 1 && items.iter().all(|item| item.len() == 1) && rest.is_empty() {
        let listed = as_typed(listed);
        let options = vec![request(&format!("{head} with conditions {listed}")), request(&whole)];
        return Some(Interpretation::unclear(format!("Are {listed} the conditions, or part of the name?"), options));
    }
    if in_brackets.is_some() || tail[0].is("between") {
        return None;
    }
    if mentions {
        let mut params = params.clone();
        params.insert("name".to_owned(), head.as_str().into());
        let question =
            format!("Which conditions should “{head}” have? Say for example: conditions control and variant.");
        let draft = Some(Box::new(Draft::begun(CREATE, params)));
        return Some(Interpretation { draft, ..Interpretation::unclear(question, Vec::new()) });
    }
    Some(ask_in(words, &front[..at], tail))
}

/// Returns the place at which the words end with those in brackets in the message. The words are without the brackets.
fn bracketed(said: &str, front: &[Word]) -> Option<usize> {
    let insides = said.match_indices('(').filter_map(|(at, _)| said[at + 1..].split_once(')'));
    insides.map(|(inside, _)| words::words(inside)).find_map(|inside| {
        let at = front.len().checked_sub(inside.len()).filter(|at| (1..front.len()).contains(at))?;
        (text(&front[at..]) == text(&inside)).then_some(at)
    })
}

/// Returns the place in a tag at which a date or another part of a description begins.
pub(super) fn other_part(tag: &[Word]) -> Option<usize> {
    const PARTS: &str = "the name|name|the description|description|the end date|end date|the start date|start date|\
        the context|context|the conditions|conditions|the weights|weights|decision points|decision point";
    let begins = |rest: &[Word]| after(rest, PARTS).is_some_and(|value| !value.is_empty()) || is_date(rest);
    (0..tag.len()).filter(|_| tag.len() > 1).find(|at| begins(&tag[*at..]))
}

/// Asks whether a date or another part in a tag belongs to it: `tags x, y name Foo`.
pub(super) fn ask_about_tags(words: &[Word], tags: &Value) -> Option<Interpretation> {
    let all = as_typed(words);
    let is_quoted = |tag: &&str| words.iter().any(|word| word.quoted && word.text == **tag);
    let typed = tags.as_array()?.iter().filter_map(Value::as_str).filter(|tag| !is_quoted(tag));
    typed.map(|tag| (tag, words::words(tag))).find_map(|(tag, typed)| {
        let at = other_part(&typed)?;
        let (kept, left) = (text(&typed[..at]), text(&typed[at..]));
        let asked = if kept.is_empty() { "a tag".to_owned() } else { format!("part of the tag “{kept}”") };
        let joined = [", and ", " and ", ", ", " "].map(|joint| format!("{joint}{left}"));
        let short = joined.iter().find(|part| all.contains(*part)).map(|part| all.replacen(part, "", 1));
        let options = std::iter::once(all.replacen(tag, &format!("“{tag}”"), 1)).chain(short).collect();
        Some(Interpretation::unclear(format!("Is “{left}” {asked}? If not, I'd leave it out."), options))
    })
}

#[cfg(test)]
mod tests {
    use super::super::{
        book,
        restrictions_tests::names,
        situation::{Draft, DraftQuestion, Situation},
        tests::check,
    };

    fn situation(said: &str) -> Situation {
        Situation { said: said.to_owned(), names: names().find(said), ..Situation::default() }
    }

    /// Checks each sentence in a situation with the names that it contains.
    #[track_caller]
    fn check_named(rows: &[(&str, &str)]) {
        for (said, expected) in rows {
            check(&situation(said), &[(said, expected)]);
        }
    }

    #[test]
    fn a_new_name_ends_with_its_quotes_or_before_a_date() {
        check_named(&[
            (
                "rename running test to 'Running Test v2' and nothing else",
                r#"update_experiment {"experiment":"running test","new_name":"Running Test v2"}"#,
            ),
            (
                "rename math hints to Hints B by friday",
                "unclear: rename “math hints” to “Hints B by friday” | rename “math hints” to “Hints B”",
            ),
            (
                "rename math hints to Hints for Friday Quiz",
                r#"update_experiment {"experiment":"math hints","new_name":"Hints for Friday Quiz"}"#,
            ),
            ("rename math hints to “Hints” except in class 5B", "unclear"),
            (
                "change the name of math hints to Hints B by friday",
                "unclear: rename “math hints” to “Hints B by friday” | rename “math hints” to “Hints B”",
            ),
            ("set the name of math hints to Hints B by friday", "unclear"),
            ("create experiment Hints B by friday in assign-prog", "unclear"),
            ("set the description of math hints to pilot, tags a and b", "unclear"),
        ]);
    }

    #[test]
    fn a_new_name_ends_before_a_time_a_reason_or_another_request() {
        for left in [
            "and leave the rest alone",
            "but leave the tags",
            "and don't touch the weights",
            "before monday",
            "after the exam",
            "because the old name is confusing",
            "since the old name is confusing",
            "so that people find it",
        ] {
            let said = format!("rename math hints to Hints B {left}");
            let asked = format!("unclear: rename “math hints” to “Hints B {left}” | rename “math hints” to “Hints B”");
            check_named(&[(&said, &asked)]);
        }
        check_named(&[
            (
                "rename math hints to Hints B, leave the rest",
                "unclear: rename “math hints” to “Hints B, leave the rest” | rename “math hints” to “Hints B”",
            ),
            (
                "create experiment Hints because of tests in assign-prog",
                "unclear: create experiment “Hints because of tests” in assign-prog | create experiment Hints in assign-prog",
            ),
            (
                "rename math hints to Before and After",
                r#"update_experiment {"experiment":"math hints","new_name":"Before and After"}"#,
            ),
            (
                "rename math hints to Leave and Keep",
                r#"update_experiment {"experiment":"math hints","new_name":"Leave and Keep"}"#,
            ),
        ]);
    }

    #[test]
    fn a_date_or_a_name_is_no_part_of_a_tag_or_a_description() {
        check_named(&[
            (
                "update running test with description \"Rich one\", tags r1, r2, end date 5 may 2027 18:00",
                r#"update_experiment {"description":"Rich one","end_on":"2027-05-05 18:00","experiment":"running test","tags":["r1","r2"]}"#,
            ),
            (
                "create experiment Foo in assign-prog tags x, y end date 5 may 2027",
                r#"create_experiment {"context":"assign-prog","end_on":"2027-05-05","name":"Foo","tags":["x","y"]}"#,
            ),
            (
                "create experiment Foo in assign-prog, description Nice one, start date 5 may 2027, end date 6 may 2027",
                r#"create_experiment {"context":"assign-prog","description":"Nice one","end_on":"2027-05-06","name":"Foo","start_on":"2027-05-05"}"#,
            ),
            (
                "update running test with description Nice one, name Quick, weights 30/70",
                r#"update_experiment {"description":"Nice one","experiment":"running test","new_name":"Quick","weights":"30/70"}"#,
            ),
            (
                "update running test with description Compares voice, name recall and tone",
                r#"update_experiment {"description":"Compares voice, name recall and tone","experiment":"running test"}"#,
            ),
            (
                "update running test with tags x, y name Quick",
                "unclear: update running test with tags x, “y name Quick” | update running test with tags x, y",
            ),
            (
                "update running test with tags x and 5 may 2027",
                "unclear: update running test with tags x and “5 may 2027” | update running test with tags x",
            ),
            (
                "update running test with tags x, “y name Quick”",
                r#"update_experiment {"experiment":"running test","tags":["x","y name Quick"]}"#,
            ),
            ("set the tags of running test to x, y end date 5 may 2027", "unclear"),
            ("tag running test with x, y name Quick", "unclear"),
        ]);
    }

    #[test]
    fn a_description_ends_where_another_part_begins() {
        let described =
            |more: &str| format!(r#"{{"context":"assign-prog","description":"Compares two intros",{more}}}"#);
        check_named(&[
            (
                "create experiment Foo in assign-prog, description Compares two intros, tags pilot and fall, ends after 50 users",
                &format!(
                    "create_experiment {}",
                    described(r#""ends_after_users":50,"name":"Foo","tags":["pilot","fall"]"#)
                ),
            ),
            (
                "create experiment Foo in assign-prog, description Compares two intros and ends after 50 users",
                &format!("create_experiment {}", described(r#""ends_after_users":50,"name":"Foo""#)),
            ),
            (
                "create experiment Foo in assign-prog, description Compares intros, hints and videos in class",
                r#"create_experiment {"context":"assign-prog","description":"Compares intros, hints and videos in class","name":"Foo"}"#,
            ),
        ]);
    }

    #[test]
    fn a_request_that_points_back_is_no_part_of_a_text() {
        let steps = |said: &str| book().steps(&situation(said)).join(" | ");
        assert_eq!(
            steps("set the description of math hints to pilot and start it"),
            "set the description of math hints to pilot | start it"
        );
        assert_eq!(
            steps("rename math hints to Hints B, tag it pilot, then start it"),
            "rename math hints to Hints B | tag it pilot | start it"
        );
        assert_eq!(
            steps("create experiment Foo in assign-prog, then try it with 100 simulated users"),
            "create experiment Foo in assign-prog | try it with 100 simulated users"
        );
        let subject = Situation { last_subject: Some("Foo".to_owned()), ..Situation::default() };
        check(
            &subject,
            &[
                ("tag it pilot", r#"update_experiment {"experiment":"Foo","tags":["+pilot"]}"#),
                ("try it with 100 simulated users", r#"test_condition_balance {"experiment":"Foo","users":100}"#),
            ],
        );
    }

    #[test]
    fn a_list_after_a_new_name_is_asked_about() {
        check_named(&[
            (
                "create experiment Voice Test with tutor-a and tutor-b",
                "unclear: create experiment Voice Test with conditions tutor-a and tutor-b | create experiment “Voice Test with tutor-a and tutor-b”",
            ),
            (
                "create experiment Voice Test with conditions tutor-a and tutor-b",
                r#"create_experiment {"conditions":["tutor-a","tutor-b"],"name":"Voice Test"}"#,
            ),
            (
                "create experiment “Voice Test with tutor-a and tutor-b”",
                r#"create_experiment {"name":"Voice Test with tutor-a and tutor-b"}"#,
            ),
        ]);
    }

    #[test]
    fn conditions_are_no_part_of_a_new_name() {
        let voice =
            r#"create_experiment {"conditions":["concrete","abstract"],"context":"assign-prog","name":"Voice 2"}"#;
        for described in [
            "with the concrete and abstract conditions in assign-prog",
            "with its conditions concrete and abstract in assign-prog",
            "comparing concrete with abstract in assign-prog",
            "comparing the concrete and abstract conditions in assign-prog",
            "in assign-prog with concrete and abstract",
        ] {
            check_named(&[(&format!("create experiment Voice 2 {described}"), voice)]);
        }
        check_named(&[
            ("create experiment “Voice 2” with concrete and abstract in assign-prog", voice),
            ("create experiment in assign-prog called Voice 2 with the concrete and abstract conditions", voice),
            (
                "create experiment Pace in assign-prog with control and variant at S/t, description Nice, tags x",
                r#"create_experiment {"conditions":["control","variant"],"context":"assign-prog","decision_points":["S / t"],"description":"Nice","name":"Pace","tags":["x"]}"#,
            ),
            (
                "create experiment Voice 5 (concrete, abstract) in assign-prog",
                "unclear: create experiment Voice 5 with conditions concrete, abstract in assign-prog | create experiment “Voice 5 (concrete, abstract)” in assign-prog",
            ),
            (
                "create experiment Voice 6 between concrete and abstract in assign-prog",
                "unclear: create experiment Voice 6 with conditions concrete and abstract in assign-prog | create experiment “Voice 6 between concrete and abstract” in assign-prog",
            ),
            (
                "create experiment Learning with Hints in assign-prog",
                "unclear: create experiment “Learning with Hints” in assign-prog | create experiment Learning in assign-prog",
            ),
            (
                "create experiment Learning With Hints in assign-prog",
                r#"create_experiment {"context":"assign-prog","name":"Learning With Hints"}"#,
            ),
            ("create experiment Hint Speed with two conditions in assign-prog", "unclear"),
            ("create experiment in assign-prog called Hint Speed with two conditions", "unclear"),
            (
                "create experiment Noisy conditions in assign-prog",
                "unclear: create experiment “Noisy conditions” in assign-prog",
            ),
            ("create experiment Pace in assign-prog with control", "unclear"),
        ]);
        let asked = super::super::tests::understand(&situation("create experiment Hint Speed with two conditions"));
        let draft = asked.draft.expect("the rest is kept");
        assert_eq!(draft.params["name"], "Hint Speed");
        check(
            &Situation { draft: Some(*draft), ..Situation::default() },
            &[("conditions concrete and abstract", r#"update {"conditions":["concrete","abstract"]}"#)],
        );
    }

    #[test]
    fn what_restricts_a_question_is_not_dropped() {
        check_named(&[
            ("list experiments created by me", "unclear: list experiments | list running experiments"),
            ("show my experiments", "unclear: list experiments | list running experiments"),
            ("stop all my experiments", "unclear: list experiments | list running experiments"),
            ("show our experiments", "read get_all_experiments"),
            ("which experiments did I create yesterday?", "unclear: list experiments | list running experiments"),
            ("which experiments did we create yesterday?", r#"read get_all_experiments {"created":"yesterday"}"#),
            ("give me the enrollment csv of math hints", "unclear: show “math hints”"),
            ("math hints weights -> 80/20", r#"update_experiment {"experiment":"math hints","weights":"80/20"}"#),
            (
                "include class 5B or 6A in math hints",
                "unclear: include class 5B and 6A in math hints | include class 5B in math hints | include class 6A in math hints",
            ),
        ]);
    }

    #[test]
    fn agreement_is_no_value() {
        for parameter in ["conditions", "context", "name", "decision_points", "weights"] {
            let asked = DraftQuestion { parameter: parameter.to_owned(), ..DraftQuestion::default() };
            let draft = Draft { asked: Some(asked), ..Draft::begun("create_experiment", serde_json::Map::new()) };
            let situation = Situation { draft: Some(draft), ..Situation::default() };
            check(&situation, &[("looks good", "unclear"), ("ok", "unclear"), ("lgtm", "unclear"), ("👍", "unclear")]);
        }
    }
}
