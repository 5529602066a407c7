//! Starts with a restriction that is a change of its own: `start Math Hints for class 5B only` first limits who takes
//! part, then starts the experiment. The same holds for a number of users, people who are left out, weights, and a
//! length of time.

use countersign_understanding::{
    dates::number_word,
    phrases::{Phrases as _, Utterance},
};

use super::{
    ExperimentPhrases, clauses, slots,
    words::{Word, after, skip, text, without_last},
};

/// The verbs that start an experiment.
const STARTS: &str = "start|begin|launch|run|activate|enable|turn on|switch on|kick off|go live with|resume|restart";

/// Returns the two requests: the one for what restricts the start, and the start.
pub(super) fn in_steps(utterance: Utterance<'_>) -> Option<Vec<String>> {
    let about = after(utterance.words, STARTS)?;
    let verb = text(&utterance.words[..utterance.words.len() - about.len()]).to_lowercase();
    let about = skip(about, "the experiment|experiment|the study|the");
    let (name, rest) = about.split_first().filter(|(name, _)| name.quoted)?;
    let rest = skip(rest, "experiment|study");
    let experiment = &name.text;
    let first = limit(rest)
        .map(|users| format!("end “{experiment}” after {users}"))
        .or_else(|| left_out(rest).map(|members| format!("exclude {members} from “{experiment}”")))
        .or_else(|| weights(rest).map(|weights| format!("set the weights of “{experiment}” to {weights}")))
        .or_else(|| period(rest).map(|period| format!("end “{experiment}” in {period}")))
        .or_else(|| only(rest).map(|members| format!("include only {members} in “{experiment}”")))?;
    Some(vec![first, format!("{verb} “{experiment}”")])
}

/// Parses `for two weeks`, and nothing after it.
fn period(words: &[Word]) -> Option<String> {
    let [number, unit] = after(words, "for")? else { return None };
    let is_number = number.text.parse::<u32>().is_ok_and(|number| number > 0) || number_word(&number.lower).is_some();
    let is_unit = unit.any(&["day", "days", "week", "weeks", "month", "months"]);
    (is_number && is_unit).then(|| format!("{} {}", number.text, unit.lower))
}

/// Parses `with weights 70/30`, and nothing after it.
fn weights(words: &[Word]) -> Option<String> {
    const BEFORE: &str = "with the weights|with weights|with a split of|with a weighting of|with|weights|and the weights|\
        and weights|split";
    let [weights] = after(skip(words, ","), BEFORE)? else { return None };
    slots::ratio(&weights.text).filter(|_| !weights.quoted)
}

/// Parses the members in `but exclude class 5B`, `for everybody except u1 and u2`.
fn left_out(words: &[Word]) -> Option<String> {
    const BEFORE: &str = "but exclude|and exclude|but leave out|and leave out|but not for|but not in|but not|excluding|\
        leaving out|but without|without|except for|except in|except|for everyone but|for everybody but|for all but|\
        for everyone except|for everybody except|for all except|for everyone excluding|for everybody excluding";
    members(after(skip(words, ","), BEFORE)?)
}

/// Parses `but only with 200 users`, `for at most 20 groups`.
fn limit(words: &[Word]) -> Option<String> {
    const BEFORE: &str = ",|but|only|just|with|for|in|on|until|to|at most|at maximum|up to|no more than|not more than|a maximum of|\
        maximum|max|the first|limited to|exactly";
    let mut rest = words;
    while let Some(left) = after(rest, BEFORE) {
        rest = left;
    }
    let (number, of, ends) = slots::count(rest)?;
    let ends =
        ends.iter().all(|word| word.any(&["only", "max", "maximum", "at", "most", "in", "total", "please", ","]));
    (rest.len() < words.len() && ends && number > 0).then(|| format!("{number} {of}"))
}

/// Parses the members in `for class 5B only`, `but only in classes 5B and 6A`, `only for u1 and u2`.
fn only(words: &[Word]) -> Option<String> {
    const BEFORE: &str = ",|but|only|just|for|in|with|to";
    let mut rest = words;
    while let Some(left) = after(rest, BEFORE) {
        rest = left;
    }
    // “In Q1” names no user, but “for u1 only” does.
    let is_exclusive = words.iter().any(|word| word.any(&["only", "just", "alone"]));
    let names_kind = rest.len() > 1;
    members(rest).filter(|_| rest.len() < words.len() && (is_exclusive || names_kind))
}

/// Returns a list of users and groups as it was written; `None` if it is anything else.
fn members(words: &[Word]) -> Option<String> {
    let listed = without_last(words, &["only", "alone", "please", ",", "for", "now"]);
    let (items, after_list) = clauses::list(listed);
    let mut in_group = false;
    let is_member = |item: &Vec<Word>| match skip(item, "the") {
        [kind, id] if ExperimentPhrases.vocabulary().groups.contains(&kind.lower.as_str()) && is_id(id) => {
            in_group = true;
            true
        }
        [kind, id] => kind.any(&["user", "student", "users", "students"]) && is_id(id),
        [id] => is_id(id) && (in_group || id.text.contains(char::is_alphabetic)),
        _ => false,
    };
    (after_list.is_empty() && !items.is_empty() && items.iter().all(is_member)).then(|| text(listed))
}

/// Returns true if the word may be the id of a user or a group: it has a digit, or it is in quotes and no name.
fn is_id(word: &Word) -> bool {
    let has_digit = word.text.contains(|c: char| c.is_ascii_digit());
    let has_sign = word.text.contains(['%', '/', ':', '=']);
    if word.quoted { word.kind.is_none() } else { has_digit && !has_sign }
}

#[cfg(test)]
mod tests {
    use super::super::{
        book, restrictions_tests::names, situation::Situation, tests::understand, user_request::UserRequest,
    };

    fn situation(said: &str) -> Situation {
        Situation {
            said: said.to_owned(),
            names: names().find(said),
            today: "2026-11-22".to_owned(),
            ..Situation::default()
        }
    }

    /// Returns the requests that a message leads to, if the person agrees to the question.
    fn steps(said: &str) -> String {
        match understand(&situation(said)).user_request {
            UserRequest::Unclear { question, options } if question.starts_with("That takes more than one step") => {
                book().steps(&situation(&options[0])).join(" | ")
            }
            _ => String::new(),
        }
    }

    #[test]
    fn a_start_for_some_people_takes_two_steps() {
        let class = "include only class 5B in “Math Hints” | start “Math Hints”";
        let limit = "end “Math Hints” after 200 users | start “Math Hints”";
        for (said, expected) in [
            ("start Math Hints for class 5B only", class),
            ("please start Math Hints, but only in class 5B", class),
            ("start Math Hints only for class 5B", class),
            (
                "start Math Hints for classes 5B and 6A only",
                "include only classes 5B and 6A in “Math Hints” | start “Math Hints”",
            ),
            ("launch Math Hints for u1 and u2 only", "include only u1 and u2 in “Math Hints” | launch “Math Hints”"),
            ("start Math Hints but only with 200 users", limit),
            ("start Math Hints with at most 200 users", limit),
            ("start Math Hints for up to 200 students", limit),
            ("start Math Hints, but exclude class 5B", "exclude class 5B from “Math Hints” | start “Math Hints”"),
            (
                "start Math Hints for everybody but u1 and u2",
                "exclude u1 and u2 from “Math Hints” | start “Math Hints”",
            ),
            ("start Math Hints with weights 70/30", "set the weights of “Math Hints” to 70/30 | start “Math Hints”"),
            ("run Math Hints for two weeks", "end “Math Hints” in two weeks | run “Math Hints”"),
            ("start Math Hints except in mathstream", ""),
            ("start Math Hints for 20 minutes", ""),
            ("start Math Hints at 9:30", ""),
            ("start Math Hints in Q1", ""),
            ("start Math Hints for half of the students", ""),
            ("start Math Hints for the variant condition", ""),
            ("start Math Hints on Friday", ""),
            ("start Math Hints in 2 weeks", ""),
            ("start Math Hints in assign-prog", ""),
            ("start Math Hints", ""),
        ] {
            assert_eq!(steps(said), expected, "{said}");
        }
    }
}
