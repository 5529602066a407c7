//! Parts of a new experiment that are those of another one: `create Foo with the same conditions as Math Hints`.

use serde_json::{Map, Value};

use super::{
    changes::{CREATE, create},
    clauses::clauses,
    copies::named,
    situation::{Draft, Situation},
    user_request::{Interpretation, UserRequest},
    words::{self, Word, after, skip, text, without_last},
};
use crate::actions::copy::{CONDITIONS_OF, COPY_OF, POINTS_OF};

/// Parts that are taken from other experiments.
struct Found {
    /// The experiments, by the parameter that names them.
    params: Map<String, Value>,
    /// The place of the words that describe them.
    from: usize,
    to: usize,
}

/// The phrases for each part, and the parameter that names the experiment whose part it is. Weights are copied together
/// with their conditions.
const PARTS: &[(&str, Option<&str>)] = &[
    ("conditions|condition|arms|variants", Some(CONDITIONS_OF)),
    ("decision points|decision point|points|sites and targets|site and target", Some(POINTS_OF)),
    ("design|set up|setup|set-up|settings|configuration|parameters|everything", Some(COPY_OF)),
    ("assignment weights|weights|weighting|split", None),
];

/// Parses a request for a new experiment with parts of another one.
pub(super) fn new_one(words: &[Word], situation: &Situation) -> Option<Interpretation> {
    let found = find(words, situation)?;
    let front = without_last(&words[..found.from], &[",", "and", "but"]);
    let rest = [front, skip(&words[found.to..], ", but|, and|but|and|except|,")].concat();
    let created = create(&rest, situation).or_else(|| {
        // The name of something new may be in lower case: `create foo with the same conditions as …`
        let (verb, name) = rest.split_first().filter(|(verb, name)| verb.is("create") && !name.is_empty())?;
        create(&[std::slice::from_ref(verb), words::words("experiment").as_slice(), name].concat(), situation)
    })?;
    Some(match (created.user_request, created.draft) {
        (UserRequest::Change { action, params }, _) => {
            UserRequest::Change { action, params: params.into_iter().chain(found.params).collect() }.into()
        }
        (UserRequest::Update(params), _) => {
            UserRequest::Update(params.into_iter().chain(found.params).collect()).into()
        }
        (user_request, Some(mut draft)) => {
            draft.params.extend(found.params);
            Interpretation { user_request, draft: Some(draft), ..created }
        }
        (user_request, None) => Interpretation { user_request, draft: None, ..created },
    })
}

/// Parses parts of another experiment for the new one in hand: `use the same conditions as Math Hints`, or `the same as
/// Math Hints` as the answer to a question. They take the place of what was given before.
pub(super) fn correction(words: &[Word], situation: &Situation, draft: &Draft) -> Option<Interpretation> {
    const OPENINGS: &str =
        "use|take|copy|with|give it|it has|it should have|it gets|make it|let us use|we want|and|but|so";
    let words = words::strip_objection(words);
    if draft.action != CREATE {
        return None;
    }
    let asked = draft.asked.as_ref().map(|asked| asked.parameter.as_str());
    let found = find(words, situation).or_else(|| same_as_asked(words, asked?, situation))?;
    let beyond = clauses(&words[found.to..]);
    if !skip(&words[..found.from], OPENINGS).is_empty() || !beyond.rest.is_empty() {
        return None;
    }
    let replaced: &[&str] = match found.params.keys().next()?.as_str() {
        _ if found.params.len() > 1 => &["conditions", "factors", "decision_points", "site", "target"],
        CONDITIONS_OF => &["conditions", "factors"],
        POINTS_OF => &["decision_points", "site", "target"],
        _ => &[],
    };
    let before =
        replaced.iter().filter(|key| draft.params.contains_key(**key)).map(|key| ((*key).to_owned(), Value::Null));
    Some(UserRequest::Update(before.chain(found.params).chain(beyond.params).collect()).into())
}

/// Returns true if the words only name parts of another experiment, or only another experiment after “the same as”.
pub(super) fn is_part(words: &[Word]) -> bool {
    let situation = Situation::default();
    find(words, &situation).is_some_and(|found| found.from == 0 && found.to == words.len())
        || same_as_asked(words, "conditions", &situation).is_some()
}

/// Parses `the same as Math Hints`, after a question for conditions or decision points.
fn same_as_asked(words: &[Word], asked: &str, situation: &Situation) -> Option<Found> {
    let key = match asked {
        "conditions" => CONDITIONS_OF,
        "decision_points" => POINTS_OF,
        _ => return None,
    };
    let rest = after(words, "the same as in|the same as|the same one as|same as in|same as")?;
    let (name, rest) = named(rest, situation);
    rest.is_empty().then(|| Found { params: Map::from_iter([(key.to_owned(), name.into())]), from: 0, to: words.len() })
}

/// Finds the parts that are taken from another experiment.
fn find(words: &[Word], situation: &Situation) -> Option<Found> {
    const SAME: &str = "with exactly the same|with the exact same|with the very same|with the same|using the same|\
        having the same|use the same|exactly the same|the exact same|the same|with same|same";
    const OF: &str = "with the|using the|use the|copy the|with|using|use";
    (0..words.len()).find_map(|from| {
        let same = || {
            let (keys, rest) = parts(after(&words[from..], SAME)?)?;
            let rest = after(rest, "as in|as for|as at|as|like in|like")?;
            let (name, rest) = known(rest, situation).unwrap_or_else(|| named(rest, situation));
            Some((keys, name, skip(rest, "has|have|does|uses")))
        };
        let of = || {
            let (keys, rest) = parts(after(&words[from..], OF)?)?;
            let (name, rest) = known(after(rest, "of|from|in")?, situation)?;
            Some((keys, name, rest))
        };
        let possessive = || {
            let (name, rest) = known(skip(after(&words[from..], OF)?, "the"), situation)?;
            let (keys, rest) = parts(rest)?;
            Some((keys, name, rest))
        };
        let like = || {
            const LIKE: &str = "just like|like|based on|modeled on|modelled on|similar to|identical to|the same as";
            let (name, rest) = known(skip(after(&words[from..], LIKE)?, "the"), situation)?;
            (from > 0).then_some((vec![COPY_OF], name, rest))
        };
        let (keys, name, rest) = same().or_else(of).or_else(possessive).or_else(like)?;
        let params = keys.into_iter().map(|key| (key.to_owned(), Value::from(name.as_str()))).collect();
        Some(Found { params, from, to: words.len() - rest.len() })
    })
}

/// Parses the names of parts: `conditions, weights and decision points`. Returns their parameters and the words after
/// them.
fn parts(words: &[Word]) -> Option<(Vec<&'static str>, &[Word])> {
    let mut keys = Vec::new();
    let mut rest = words;
    loop {
        let next = if rest.len() < words.len() { skip(rest, ", and|,|and|&|with") } else { rest };
        let next = skip(next, "the same|the|same");
        let Some((key, more)) = PARTS.iter().find_map(|(phrases, key)| Some((*key, after(next, phrases)?))) else {
            break;
        };
        keys.extend(key.filter(|key| !keys.contains(key)));
        rest = more;
    }
    (!keys.is_empty()).then_some((keys, rest))
}

/// Returns the name of the known experiment with which the words begin, and the words after it.
fn known<'a>(words: &'a [Word], situation: &Situation) -> Option<(String, &'a [Word])> {
    let subjects: Vec<&str> = situation
        .names
        .iter()
        .filter(|mention| mention.subject && mention.kind == "experiment")
        .map(|mention| mention.said.as_str())
        .collect();
    let is_known = |written: &str| {
        let stem = written.strip_suffix("'s").or_else(|| written.strip_suffix("’s")).unwrap_or(written);
        subjects.iter().find(|said| said.eq_ignore_ascii_case(stem) || said.eq_ignore_ascii_case(written)).copied()
    };
    let words = skip(words, "the experiment|experiment|the study|study");
    (1..=words.len()).rev().find_map(|end| Some((is_known(&text(&words[..end]))?.to_owned(), &words[end..])))
}

#[cfg(test)]
mod tests {
    use countersign_understanding::lexicon::Mention;
    use serde_json::json;

    use super::super::{
        situation::{Draft, DraftQuestion, Situation},
        tests::{check, params},
    };

    fn mentions() -> Situation {
        let (kind, name) = ("experiment".to_owned(), "Math Hints".to_owned());
        let mention = Mention { kind, said: name.clone(), name, subject: true, ..Mention::default() };
        Situation { names: vec![mention], ..Situation::default() }
    }

    #[test]
    fn a_new_experiment_takes_parts_of_another_one() {
        let conditions = r#"create_experiment {"conditions_of":"Math Hints","name":"Foo"}"#;
        let both = r#"create_experiment {"conditions_of":"Math Hints","name":"Foo","points_of":"Math Hints"}"#;
        check(
            &mentions(),
            &[
                ("create Foo with the same conditions as Math Hints", conditions),
                ("create Foo with the same conditions and weights as Math Hints", conditions),
                ("create an experiment called Foo using the same arms as “Math Hints”", conditions),
                ("create Foo with the conditions of Math Hints", conditions),
                ("create Foo with Math Hints's conditions", conditions),
                ("create Foo with the same conditions and decision points as Math Hints", both),
                (
                    "create experiment Copy A with the same conditions as Math Hints",
                    r#"create_experiment {"conditions_of":"Math Hints","name":"Copy A"}"#,
                ),
                (
                    "create Foo with the same design as Math Hints",
                    r#"create_experiment {"copy_of":"Math Hints","name":"Foo"}"#,
                ),
                ("create experiment Foo like Math Hints", r#"create_experiment {"copy_of":"Math Hints","name":"Foo"}"#),
                (
                    "create Foo in mathstream with the same conditions as Math Hints, 70/30",
                    r#"create_experiment {"conditions_of":"Math Hints","context":"mathstream","name":"Foo","weights":"70/30"}"#,
                ),
            ],
        );
        check(
            &Situation::default(),
            &[(
                "create foo with the same conditions as W One",
                r#"create_experiment {"conditions_of":"W One","name":"foo"}"#,
            )],
        );
    }

    #[test]
    fn the_parts_of_a_draft_can_be_those_of_another_experiment() {
        let asked = Some(DraftQuestion { parameter: "decision_points".to_owned(), ..DraftQuestion::default() });
        let params = params(json!({ "name": "Foo", "context": "assign-prog", "conditions": ["a", "b"] }));
        let draft = Some(Draft { action: "create_experiment".to_owned(), params, asked, unread: None });
        check(
            &Situation { draft, ..mentions() },
            &[
                ("use the same conditions as Math Hints", r#"update {"conditions":null,"conditions_of":"Math Hints"}"#),
                ("the same as Math Hints", r#"update {"points_of":"Math Hints"}"#),
                ("same decision point as Math Hints please", r#"update {"points_of":"Math Hints"}"#),
            ],
        );
    }
}
