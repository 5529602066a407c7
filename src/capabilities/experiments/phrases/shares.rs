//! Weights by condition: `control 30% and variant 70%` in a description, and the new weight of one condition: `give the
//! variant in Math Hints 80 percent`.

use countersign_understanding::{
    corrections::Correction,
    slots::{ratio, shares},
};
use serde_json::{Map, Value};

use super::{
    changes::{CREATE, UPDATE},
    clauses::Taken,
    situation::{Draft, Situation},
    user_request::{Interpretation, UserRequest},
    words::{Word, after, are, skip, strip_objection, without_last},
};

/// Parses suggested weights: `60/40 would be safer`, `it should be 60/40`.
pub(super) fn suggestion(words: &[Word]) -> Option<Interpretation> {
    const BEFORE: &str = "i would prefer|i'd prefer|i prefer|i would rather have|i'd rather have|i would take|i'd take|\
        this should be|that should be|they should be|the weights should be|weights should be|better to use|at most|at least|\
        no more than|try|maybe|perhaps|only|we should use|we should start with|start with|what about|how about|not this ,|with";
    const AFTER: &str = "would be safer|would be better|would be fine|would be ok|would be okay|would be enough|\
        would be right|would be best|would be good|would do|will do|would suffice|would be more careful|is safer|\
        is better|is enough|is fine|seems safer|seems better|feels safer|to begin with|to start with";
    let mut rest = Correction::of(words).value;
    while let Some(left) = after(rest, BEFORE) {
        rest = Correction::of(left).value;
    }
    let (first, following) = skip(rest, "the weights|weights|a split of|a ratio of").split_first()?;
    let weights = ratio(&first.text)?;
    let is_suggestion = rest.len() < words.len() || !following.is_empty();
    let fits = following.is_empty() || after(following, AFTER).is_some_and(<[_]>::is_empty);
    (is_suggestion && fits).then(|| Interpretation::update("weights", weights))
}

/// Parses new weights for the change in hand: `make the split 50/50`. If that change is not about the weights of its
/// experiment, such as a start, the weights are a change of their own.
pub(super) fn correction(words: &[Word], draft: &Draft) -> Option<Interpretation> {
    let weights = ("weights".to_owned(), Value::from(split(words).or_else(|| swapped(words, draft))?));
    if [CREATE, UPDATE].contains(&draft.action.as_str()) {
        return Some(UserRequest::Update(Map::from_iter([weights])).into());
    }
    let is_objection = strip_objection(words).len() < words.len(); // against that change
    let experiment = draft.params.get("experiment").filter(|_| !is_objection)?.clone();
    let params = Map::from_iter([("experiment".to_owned(), experiment), weights]);
    Some(Interpretation::whole(UserRequest::change(UPDATE, params)))
}

/// Parses “sorry, the other way round”: the two weights of the draft in the other order.
fn swapped(words: &[Word], draft: &Draft) -> Option<String> {
    const SWAPPED: &str = "other way round|the other way round|other way around|the other way around|vice versa|reversed|\
        swap them|swap it|swap the weights|switch them|switch them around|the reverse|i meant the other way round|\
        i meant the other way around|it is the other way round|it is the other way around|just the other way round";
    let said = without_last(strip_objection(words), &["please", "instead", ","]);
    let (one, other) = draft.params.get("weights")?.as_str()?.split_once('/').filter(|_| are(said, SWAPPED))?;
    (!other.contains('/')).then(|| format!("{}/{}", other.trim(), one.trim()))
}

/// Parses new weights for the experiment that the thread is about: `make the split 50/50`.
pub(super) fn of_subject(words: &[Word], situation: &Situation) -> Option<Interpretation> {
    let weights = ("weights".to_owned(), Value::from(split(words)?));
    let params = Map::from_iter([("experiment".to_owned(), situation.last_subject.clone()?.into()), weights]);
    Some(Interpretation::whole(UserRequest::change(UPDATE, params)))
}

/// Parses weights for all conditions in words that name the weights: `make the split 50/50`, `split it evenly`, `an even
/// split`.
fn split(words: &[Word]) -> Option<String> {
    const VERBS: &str = "make|set|change|put|switch|adjust|turn|have|use|do|go with|let us use|let us do";
    const WEIGHTS: &str =
        "the weights|the split|the ratio|the weighting|the distribution|the assignment weights|weights|split";
    const LINKS: &str = "to be|to|at|into|be|as|:";
    const EQUAL: &str =
        "even|evenly|equal|equally|half and half|half half|half/half|fifty fifty|fifty-fifty|fifty/fifty";
    let words =
        without_last(strip_objection(words), &["instead", "rather", "please", "then", "though", "everywhere", ","]);
    let verbless = skip(words, VERBS);
    let named = after(words, "split it|split them|split that").or_else(|| after(verbless, WEIGHTS));
    let value = named.or_else(|| after(verbless, "it|that|this|them")).unwrap_or(verbless);
    let value = skip(skip(value, LINKS), "an|a");
    let (weights, rest) = match after(value, EQUAL) {
        Some(rest) => ("equal".to_owned(), rest),
        None => {
            let (first, rest) = value.split_first().filter(|(first, _)| !first.quoted)?;
            (ratio(&first.text)?, rest)
        }
    };
    let last = skip(rest, "split|weights|weighting|distribution");
    let is_named = named.is_some() || last.len() < rest.len();
    (is_named && last.is_empty()).then_some(weights)
}

/// Parses conditions with their weights. They are the conditions of the experiment, in this order.
pub(super) fn conditions_with_shares(words: &[Word]) -> Taken<'_> {
    const NAMED: &str = "the weights|weights|weighted|a split of|split|the conditions|conditions|arms";
    let start = skip(skip(words, NAMED), "of|to|as|are|is|,|:");
    let (by_code, rest) = match shares(start) {
        (by_code, rest) if by_code.len() > 1 => (by_code, rest),
        // After “conditions”, numbers are read there.
        _ if after(words, NAMED).is_some() => return None,
        _ => bare_shares(start)?,
    };
    let written = |code: &str| start.iter().position(|word| word.text.trim_end_matches([':', '=']).starts_with(code));
    let mut codes: Vec<&String> = by_code.keys().collect();
    codes.sort_by_key(|code| written(code));
    let codes: Vec<Value> = codes.into_iter().map(|code| Value::from(code.as_str())).collect();
    Some((vec![("conditions".to_owned(), codes.into()), ("weights".to_owned(), Value::Object(by_code))], rest))
}

/// Parses conditions with numbers that add up to 100: `control 60 and variant 40`.
fn bare_shares(words: &[Word]) -> Option<(Map<String, Value>, &[Word])> {
    let mut by_code = Map::new();
    let (mut rest, mut sum) = (words, 0.0);
    while let [code, number, more @ ..] = skip(rest, ", and|,|and")
        && code.text.starts_with(char::is_alphabetic)
        && !code.any(&["after", "most", "than", "to", "up", "for", "max", "maximum", "limit", "end", "ends"])
        && let Ok(number) = number.text.parse::<f64>()
    {
        sum += number;
        by_code.insert(code.text.clone(), number.into());
        rest = more;
    }
    (by_code.len() > 1 && (sum - 100.0_f64).abs() < 0.5).then_some((by_code, rest))
}

/// Returns the parameters of an update with the new code of a condition in the list of conditions.
pub(super) fn with_renamed_condition(mut params: Map<String, Value>) -> Map<String, Value> {
    if let (Some(was), Some(code)) = (params.remove("was"), params.remove("code")) {
        params.insert("conditions".to_owned(), serde_json::json!([{ "was": was, "code": code }]));
    }
    params
}

/// Parses the new weight of one condition of an experiment that is named or was the last subject.
pub(super) fn one_share(words: &[Word], situation: &Situation) -> Option<Interpretation> {
    const SMALL: &str = "the condition arm in of for to at a weight share weights 's into students people should \
        get have be it its , users";
    let is_question = words.first().is_some_and(|first| first.any(&["does", "is", "has", "what", "how"]));
    let verb = after(words, "give|set|put|raise|lower|increase|reduce|decrease|change|make|assign|let|send");
    let states = words.iter().any(|word| word.is("should"));
    let rest = verb.or_else(|| states.then_some(words)).filter(|_| !is_question)?;
    let (mut share, mut code, mut name): (Option<f64>, Option<&Word>, Option<&Word>) = (None, None, None);
    let mut words = rest;
    while let Some((word, others)) = words.split_first() {
        words = others;
        let number = word.text.strip_suffix('%').or_else(|| after(others, "percent|%").map(|_| word.text.as_str()));
        if let Some(number) = number.filter(|_| !word.quoted).and_then(|number| number.parse::<f64>().ok()) {
            words = skip(others, "percent|%");
            match share {
                None => share = Some(number),
                Some(_) => return None,
            }
        } else if word.quoted && word.kind.as_deref().is_none_or(|kind| kind == "experiment") {
            match name {
                None => name = Some(word),
                Some(_) => return None,
            }
        } else if !word.among(SMALL) {
            match code {
                None if word.text.starts_with(char::is_alphabetic) && !word.text.contains('/') => code = Some(word),
                _ => return None,
            }
        }
    }
    let experiment = name.map(|word| word.text.clone()).or_else(|| situation.last_subject.clone())?;
    let weights = Map::from_iter([(code?.text.clone(), share?.into())]);
    let params =
        Map::from_iter([("experiment".to_owned(), experiment.into()), ("weights".to_owned(), Value::Object(weights))]);
    Some(Interpretation::whole(UserRequest::change(UPDATE, params)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{
        situation::{Draft, Situation},
        tests::{check, open_card, params},
    };

    fn card(action: &str, change: serde_json::Value) -> Situation {
        Situation {
            on_card: Some(Draft { action: action.into(), params: params(change), asked: None, unread: None }),
            open_cards: vec![open_card("Change “Math Hints”?")],
            last_subject: Some("Math Hints".to_owned()),
            ..Situation::default()
        }
    }

    #[test]
    fn another_split_edits_the_change_that_has_weights() {
        let (half, even) = (r#"update {"weights":"50/50"}"#, r#"update {"weights":"equal"}"#);
        check(
            &card("update_experiment", json!({ "experiment": "Math Hints", "weights": "70/30" })),
            &[
                ("make the split 50/50", half),
                ("change the split to 50:50", half),
                ("split it 50/50 please", half),
                ("no, a 50/50 split", half),
                ("make it an even split", even),
                ("split it evenly instead", even),
            ],
        );
    }

    #[test]
    fn another_split_is_a_change_of_its_own_beside_a_start() {
        let half = r#"update_experiment {"experiment":"Math Hints","weights":"50/50"}"#;
        check(
            &card("update_experiment_status", json!({ "experiment": "Math Hints", "status": "start" })),
            &[("make the split 50/50", half), ("set the weights to 50/50", half), ("50/50 split please", half)],
        );
        let subject = Situation { last_subject: Some("Math Hints".to_owned()), ..Situation::default() };
        check(&subject, &[("make the split 50/50", half)]);
    }

    #[test]
    fn the_weight_of_one_condition() {
        let eighty = r#"update_experiment {"experiment":"Math Hints","weights":{"variant":80.0}}"#;
        check(
            &Situation::default(),
            &[
                ("give the variant in “Math Hints” 80 percent", eighty),
                ("give 80% to the variant in “Math Hints”", eighty),
                ("the variant of “Math Hints” should get 80%", eighty),
                ("set the weight of variant in “Math Hints” to 80%", eighty),
            ],
        );
    }

    #[test]
    fn conditions_with_their_weights() {
        check(
            &Situation::default(),
            &[(
                "create Area Study in assign-prog at S/t with variant 70% and control 30%",
                r#"create_experiment {"conditions":["variant","control"],"context":"assign-prog","decision_points":["S / t"],"name":"Area Study","weights":{"control":30.0,"variant":70.0}}"#,
            )],
        );
    }
}
