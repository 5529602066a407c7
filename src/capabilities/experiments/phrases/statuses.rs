//! Corrections of the status in the present draft or card: `actually no, make it cancelled instead`, `pause it
//! instead`.

use countersign_understanding::{corrections::Correction, phrases::Phrases as _};
use serde_json::{Map, Value};

use super::{
    ExperimentPhrases,
    changes::STATUS,
    situation::{Draft, Situation},
    user_request::{Interpretation, UserRequest},
    values,
    words::Word,
};
use crate::upgrade::status::Status;

/// Parses another status for a change of a status that waits for a decision. A verb alone is not enough: `cancel it`
/// withdraws the request, `cancel it instead` corrects it.
pub(super) fn correction(words: &[Word], situation: &Situation) -> Option<Interpretation> {
    let draft = situation.in_hand().filter(|draft| draft.asked.is_none() && draft.action == STATUS)?;
    let found = Correction::of(words);
    let status = match found.value {
        [word] if found.is_marked => values::status(word)?,
        verb if found.replaces => with_verb(verb)?.into(),
        _ => return None,
    };
    Some(UserRequest::Update(with_status(draft, status)).into())
}

/// Returns the verb of `pause it` and `archive the experiment`.
fn with_verb(words: &[Word]) -> Option<&'static str> {
    let (first, about) = words.split_first()?;
    let verb = Status::ALL.into_iter().find_map(|status| status.verb(&first.lower)).filter(|_| !first.quoted)?;
    let mut about = about.iter().filter(|word| !word.is("the"));
    let points = |word: &Word| word.any(&["it", "that", "this"]) || word.any(ExperimentPhrases.vocabulary().things);
    about.all(points).then_some(verb.name)
}

/// Returns the corrected parameters. A time to start belongs to a scheduled start only.
fn with_status(draft: &Draft, status: Value) -> Map<String, Value> {
    let mut params = Map::new();
    let is_scheduled = status.as_str().and_then(Status::asked_for) == Some(Status::Scheduled);
    if draft.params.contains_key("start_on") && !is_scheduled {
        params.insert("start_on".to_owned(), Value::Null);
    }
    params.insert("status".to_owned(), status);
    params
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{
        changes::STATUS,
        situation::{Draft, Situation},
        tests::{check, open_card, params},
    };

    #[test]
    fn another_status_is_a_correction_of_the_card() {
        let change = json!({ "experiment": "Math Hints", "status": "stop" });
        let situation = Situation {
            on_card: Some(Draft { action: STATUS.into(), params: params(change), asked: None, unread: None }),
            open_cards: vec![open_card("Stop “Math Hints”?")],
            ..Situation::default()
        };
        let (cancelled, cancel) = (r#"update {"status":"cancelled"}"#, r#"update {"status":"cancel"}"#);
        check(
            &situation,
            &[
                ("actually no, make it cancelled instead", cancelled),
                ("make it cancelled", cancelled),
                ("no, cancelled", cancelled),
                ("cancelled instead", cancelled),
                ("actually no, cancel it instead", cancel),
                ("cancel it instead", cancel),
                ("no, archive the experiment instead please", r#"update {"status":"archive"}"#),
                ("rather pause it", r#"update {"status":"pause"}"#),
            ],
        );
    }
}
