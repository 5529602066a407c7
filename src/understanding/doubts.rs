//! What sounds like a change and is none: “don't start it”, “should I start it?”

use super::{
    changes, details, participants,
    situation::Situation,
    wish::{Talk, Understood, Wish},
    words::{Word, after, as_typed, skip},
};

/// “Don't start X.” A change that is being worked out is let go; otherwise nothing was asked for.
pub(super) fn refusal(words: &[Word], situation: &Situation) -> Option<Understood> {
    let words = skip(words, "no ,|no|wait ,|wait|stop ,|actually ,|actually|sorry ,|sorry");
    let rest = after(
        words,
        "don't|dont|do not|not|better not|we should not|we shouldn't|you should not|you shouldn't|i don't want to|\
         we don't want to|i don't want you to|no need to",
    )?;
    let found = participants::participant(rest).or_else(|| changes::change(rest, situation))?;
    let (action, done) = match &found.wish {
        Wish::Change { action, params } => {
            (action.as_str(), participle(action, params.get("status").and_then(|status| status.as_str())))
        }
        Wish::Unclear { .. } => ("update_experiment_status", "ended"),
        _ => return None,
    };
    let drafted = situation.draft.as_ref().is_some_and(|draft| draft.action == action);
    Some(if drafted { Wish::Drop } else { Wish::Talk(Talk::NothingDone(done)) }.into())
}

/// What is done to something by this action.
fn participle(action: &str, status: Option<&str>) -> &'static str {
    match (action, status) {
        ("create_experiment", _) => "created",
        ("delete_experiment", _) => "deleted",
        ("init_experiment_user", _) => "initialised",
        ("mark_decision_point", _) => "marked",
        ("get_decision_point_assignments", _) => "asked",
        (_, Some("start")) => "started",
        (_, Some("resume")) => "resumed",
        (_, Some("stop")) => "stopped",
        (_, Some("pause")) => "paused",
        (_, Some("cancel")) => "cancelled",
        (_, Some("archived")) => "archived",
        _ => "changed",
    }
}

/// “Should I start X?” That is not for a bot to say: it shows how things stand.
pub(super) fn whether(words: &[Word], situation: &Situation) -> Option<Understood> {
    let Wish::Change { params, .. } = considered(words, situation)? else { return None };
    let experiment = params.get("experiment").and_then(|name| name.as_str());
    Some(details::standing(experiment.map(str::to_owned)).into())
}

/// How to ask for the change that is only considered, if one is.
pub(super) fn request(words: &[Word], situation: &Situation) -> Option<String> {
    let Wish::Change { action, params } = considered(words, situation)? else { return None };
    let experiment = params.get("experiment")?.as_str()?;
    let verb = match (action.as_str(), params.get("status").and_then(|status| status.as_str())) {
        ("delete_experiment", _) => "delete",
        (_, Some("archived")) => "archive",
        (_, Some(status)) => status,
        _ => return Some(as_typed(after(words, ASKING)?)),
    };
    Some(format!("{verb} {experiment}"))
}

const ASKING: &str = "should i|should we|shall i|shall we|should you|is it safe to|is it ok to|is it okay to|\
    is it a good idea to|is it wise to|is it time to|would it be ok to|would it be wise to|you think i should|you think we should|\
    i wonder whether to|i wonder if i should|i wonder if we should";

/// The change that is only considered.
fn considered(words: &[Word], situation: &Situation) -> Option<Wish> {
    Some(changes::change(after(words, ASKING)?, situation)?.wish)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{
        considered_request,
        situation::{Draft, Situation},
        tests::{check, open_card, params},
    };

    #[test]
    fn agreeing_decides_nothing_about_a_card() {
        let waiting = Situation { open_cards: vec![open_card("Start “Math Hints”?")], ..Situation::default() };
        let agreements = ["ok", "Okay!", "👍🏽", ":+1:", "ok, go ahead", "sure", "<@U0BOT> yes", "don’t"];
        check(&waiting, &agreements.map(|said| (said, "talk cardwaits")));
        check(&Situation::default(), &agreements.map(|said| (said, "talk nothingasked")));
    }

    #[test]
    fn nothing_to_let_go_but_a_card() {
        let waiting = Situation { open_cards: vec![open_card("Start “Math Hints”?")], ..Situation::default() };
        let lets_go = [
            "never mind",
            "Forget it.",
            "cancel",
            "hold on, cancel that please",
            "wait, never mind",
            "wait, stop that",
            "please withdraw my request",
        ];
        check(&waiting, &lets_go.map(|said| (said, "talk cardwaits")));
        check(&Situation::default(), &[("never mind", "drop"), ("hang on, forget it", "drop")]);
        let draft = Draft { action: "create_experiment".into(), params: params(json!({})), asked: None };
        let drafting = Situation { draft: Some(draft), ..Situation::default() };
        let ends = ["hold on, cancel that please", "please withdraw it", "wait, stop that", "cancel it please", "stop"];
        check(&drafting, &ends.map(|said| (said, "drop")));
    }

    #[test]
    fn what_is_not_wished_is_no_change() {
        let talked = Situation { last_subject: Some("Math Hints".into()), ..Situation::default() };
        let shown = r#"read get_experiment_details {"experiment_id":"Math Hints"}"#;
        check(
            &talked,
            &[
                ("don't start Math Hints", r#"talk nothingdone("started")"#),
                ("No, do not delete it!", r#"talk nothingdone("deleted")"#),
                ("please don’t create experiment Foo", r#"talk nothingdone("created")"#),
                ("wait, don't finish it", r#"talk nothingdone("ended")"#),
                ("should I start Math Hints?", shown),
                ("do you think we should cancel it?", shown),
                ("Is it safe to set the weights of “Math Hints” to 70/30?", shown),
                ("shall we start?", shown),
            ],
        );
        let draft = Draft { action: "update_experiment_status".into(), params: params(json!({})), asked: None };
        check(&Situation { draft: Some(draft), ..talked.clone() }, &[("don't start it", "drop")]);
        for (said, request) in [
            ("should I start it?", Some("start Math Hints")),
            ("should we set the weights of “Math Hints” to 70/30?", Some("set the weights of “Math Hints” to 70/30")),
            ("show Math Hints", None),
        ] {
            let situation = Situation { said: said.into(), ..talked.clone() };
            assert_eq!(considered_request(&situation).as_deref(), request, "{said}");
        }
    }
}
