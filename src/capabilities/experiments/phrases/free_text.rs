//! Where free text ends: a name, a description.
//!
//! In quotes it ends with them. Otherwise it takes every word, unless they read as something else: a date at its end, or
//! after a comma another part of a description. What may belong to it or not is asked.

use countersign_understanding::dates;

use super::{
    clauses::{self, conditions, fixed, points, tags, weights},
    design::rare,
    user_request::Interpretation,
    words::{Word, after, as_typed, skip, text},
};

/// Splits a new name from the words after it that read as something else.
pub(super) fn name(words: &[Word]) -> (&[Word], &[Word]) {
    if words.first().is_some_and(|first| first.quoted && first.kind.is_none()) {
        return words.split_at(1);
    }
    let is_date = |at: &usize| {
        let introduced = words[*at].among("by on until till from starting at in next this");
        let named = words[*at].among("today tomorrow tonight");
        let date = dates::moment(&words[*at..], "").is_some_and(|(_, _, rest)| rest.is_empty());
        words[*at].text == words[*at].lower && (introduced || named) && date
    };
    words.split_at((1..words.len()).find(is_date).unwrap_or(words.len()))
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
        lists
            || named && (points(part).is_some() || clauses::context(part).is_some())
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
    let (short, left) = (text(kept), as_typed(left));
    let whole = format!("{short} {left}");
    let question = format!("Is “{left}” part of the name? If not, I'd leave it out.");
    Interpretation::unclear(question, vec![request(&whole), request(&short)])
}

/// Asks whether a list after a new name is its conditions: `Voice Test with tutor-a and tutor-b`. `words` are the whole
/// request, `front` what is taken for the name.
pub(super) fn ask_about_list(words: &[Word], front: &[Word]) -> Option<Interpretation> {
    if front.first()?.quoted {
        return None;
    }
    let with = (1..front.len()).find(|at| front[*at].is("with") && front[*at].text == front[*at].lower)?;
    let (items, rest) = clauses::list(&front[with + 1..]);
    let are_codes = items.len() > 1 && items.iter().all(|item| item.len() == 1) && rest.is_empty();
    are_codes.then(|| {
        let (all, name, head) = (as_typed(words), as_typed(front), as_typed(&front[..with]));
        let listed = as_typed(&front[with + 1..]);
        let options = vec![
            all.replacen(&name, &format!("{head} with conditions {listed}"), 1),
            all.replacen(&name, &format!("“{name}”"), 1),
        ];
        Interpretation::unclear(format!("Are {listed} the conditions, or part of the name?"), options)
    })
}

#[cfg(test)]
mod tests {
    use super::super::{
        book,
        restrictions::names,
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
