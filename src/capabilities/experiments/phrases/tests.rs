//! Tests of the documented phrases: each sentence with its meaning. A new phrase of the grammar gets a
//! row here.

use serde_json::{Value, json};

use super::{
    book,
    situation::{Draft, DraftQuestion, OpenCard, RecentChange, Situation},
    user_request::Interpretation,
};

use countersign_understanding::checking;

/// Returns the interpretation of a message by the phrases about experiments.
pub(super) fn understand(situation: &Situation) -> Interpretation {
    book().understand(situation)
}

#[track_caller]
pub(super) fn check(situation: &Situation, table: &[(&str, &str)]) {
    checking::check(&book(), situation, table);
}

pub(super) fn open_card(title: &str) -> OpenCard {
    OpenCard {
        title: title.into(),
        approve: "Start experiment".into(),
        reject: "Cancel request".into(),
        typed: true,
        ..OpenCard::default()
    }
}

pub(super) fn params(value: Value) -> serde_json::Map<String, Value> {
    value.as_object().unwrap().clone()
}

#[test]
fn each_suggestion_is_read() {
    checking::check_offers(&book(), &Situation { last_subject: Some("Math Hints".to_owned()), ..Situation::default() });
}

#[test]
fn the_number_of_users_on_a_card_is_changed_alone() {
    let test = params(json!({ "experiment": "5609e020-132f-4d6e-8c46-f58853c10e65", "users": 200 }));
    let on_card = Some(Draft::begun("test_condition_balance", test));
    let open_cards = vec![open_card("Enroll 200 test users in “Math Hints”?")];
    let situation = Situation { on_card, open_cards, ..Situation::default() };
    check(&situation, &[("make it 50", r#"update {"users":50}"#), ("and with 80?", r#"update {"users":80}"#)]);
}

#[test]
fn talk_and_terms() {
    check(
        &Situation::default(),
        &[
            ("hello", "talk greeting"),
            ("Hi!", "talk greeting"),
            ("<@U0BOT> hey there", "talk greeting"),
            ("Thanks a lot!", "talk thanks"),
            ("help", "talk help"),
            ("What can you do?", "talk help"),
            ("how do I create an experiment?", r#"read explain_change {"action":"create_experiment"}"#),
            ("what is pending?", "talk pending"),
            ("how does approval work?", "talk approval"),
            ("What is A/B testing?", "term a/b testing"),
            ("what's an experiment", r#"read explain_upgrade_concept {"concept":"experiment"}"#),
            ("Explain conditions", r#"read explain_upgrade_concept {"concept":"condition"}"#),
            ("what is a weight?", r#"read explain_upgrade_concept {"concept":"weight"}"#),
            ("What are decision points?", r#"read explain_upgrade_concept {"concept":"decision point"}"#),
            ("what does context mean?", r#"read explain_upgrade_concept {"concept":"context"}"#),
            ("define unit of assignment", r#"read explain_upgrade_concept {"concept":"unit of assignment"}"#),
            ("What is the consistency rule?", "term consistency rule"),
            (
                "please explain the post-experiment rule",
                r#"read explain_upgrade_concept {"concept":"post-experiment rule"}"#,
            ),
            ("what is a segment?", "term segment"),
            ("what is a payload", "term payload"),
            ("what is enrolment?", "term enrollment"),
            ("what is a desicion point?", r#"read explain_upgrade_concept {"concept":"decision point"}"#),
            ("what does consistency rule mean", "term consistency rule"),
            ("what is UpGrade?", "term upgrade"),
            ("what is Countersign?", "term countersign"),
        ],
    );
}

#[test]
fn the_last_word_of_a_name_is_kept() {
    let plan = r#"create_experiment {"context":"mathstream","name":"Plan A","weights":"70/30"}"#;
    check(
        &Situation::default(),
        &[
            ("create experiment Plan A in mathstream, 70/30", plan),
            ("create experiment Plan A in mathstream with a 70/30 split", plan),
            ("create an experiment called Plan A in mathstream, 70/30", plan),
            ("create experiment plan a in mathstream", r#"create_experiment {"context":"mathstream","name":"plan a"}"#),
            (
                "create experiment Hints for A in assign-prog at Lobby/door",
                r#"create_experiment {"context":"assign-prog","decision_points":["Lobby / door"],"name":"Hints for A"}"#,
            ),
            (
                "create experiment Hints for B in assign-prog",
                r#"create_experiment {"context":"assign-prog","name":"Hints for B"}"#,
            ),
            (
                "create experiment Time to Log In in mathstream",
                r#"create_experiment {"context":"mathstream","name":"Time to Log In"}"#,
            ),
            (
                "create experiment Foo in mathstream comparing A vs B",
                r#"create_experiment {"conditions":["A","B"],"context":"mathstream","name":"Foo"}"#,
            ),
        ],
    );
}

#[test]
fn changes() {
    check(
        &Situation::default(),
        &[
            ("start Math Hints", r#"update_experiment_status {"experiment":"Math Hints","status":"start"}"#),
            (
                "Start the Math Hints experiment",
                r#"update_experiment_status {"experiment":"Math Hints","status":"start"}"#,
            ),
            (
                "could you please start the “Math Hints” experiment now?",
                r#"update_experiment_status {"experiment":"Math Hints","status":"start"}"#,
            ),
            (
                "stop the Running Test experiment",
                r#"update_experiment_status {"experiment":"Running Test","status":"stop"}"#,
            ),
            ("pause Running Test.", r#"update_experiment_status {"experiment":"Running Test","status":"pause"}"#),
            ("resume Running Test", r#"update_experiment_status {"experiment":"Running Test","status":"resume"}"#),
            (
                "cancel the experiment Math Hints",
                r#"update_experiment_status {"experiment":"Math Hints","status":"cancel"}"#,
            ),
            ("archive Math Hints", r#"update_experiment_status {"experiment":"Math Hints","status":"archived"}"#),
            ("Start math hint", r#"update_experiment_status {"experiment":"math hint","status":"start"}"#),
            ("strat Math Hints", r#"update_experiment_status {"experiment":"Math Hints","status":"start"}"#),
            ("set Math Hints to running", r#"update_experiment_status {"experiment":"Math Hints","status":"running"}"#),
            (
                "change the status of Math Hints to paused",
                r#"update_experiment_status {"experiment":"Math Hints","status":"paused"}"#,
            ),
            (
                "start d56d271d-a23c-4e9b-a163-b5fd658c5b03",
                r#"update_experiment_status {"experiment":"d56d271d-a23c-4e9b-a163-b5fd658c5b03","status":"start"}"#,
            ),
            ("start an experiment", r#"update_experiment_status {"status":"start"}"#),
            ("finish Math Hints", "unclear: pause “Math Hints” | cancel “Math Hints”"),
            ("delete Math Hints", r#"delete_experiment {"experiment":"Math Hints"}"#),
            ("remove the Math Hints experiment", r#"delete_experiment {"experiment":"Math Hints"}"#),
            ("rename Math Hints to Hints 2", r#"update_experiment {"experiment":"Math Hints","new_name":"Hints 2"}"#),
            (
                "set the weights of Math Hints to 70/30",
                r#"update_experiment {"experiment":"Math Hints","weights":"70/30"}"#,
            ),
            (
                "set the weights of Math Hints to one third / two thirds",
                r#"update_experiment {"experiment":"Math Hints","weights":"33/67"}"#,
            ),
            ("start Math Hints on 12/1", "unclear: start Math Hints on December 1 | start Math Hints on January 12"),
            (
                "change the weights of Math Hints to 60% / 40%",
                r#"update_experiment {"experiment":"Math Hints","weights":"60/40"}"#,
            ),
            (
                "change the description of Math Hints to Do hints help?",
                r#"update_experiment {"description":"Do hints help?","experiment":"Math Hints"}"#,
            ),
            (
                "update Math Hints with weights 70/30",
                r#"update_experiment {"experiment":"Math Hints","weights":"70/30"}"#,
            ),
            ("update Math Hints", r#"update_experiment {"experiment":"Math Hints"}"#),
            ("create an experiment", "create_experiment {}"),
            ("create experiment Foo", r#"create_experiment {"name":"Foo"}"#),
            (
                "Create a new experiment called Hint Timing in assign-prog",
                r#"create_experiment {"context":"assign-prog","name":"Hint Timing"}"#,
            ),
            (
                "I want to create an experiment named “Hints in Fractions” in assign-prog",
                r#"create_experiment {"context":"assign-prog","name":"Hints in Fractions"}"#,
            ),
            (
                "create experiment Foo with conditions control and hints",
                r#"create_experiment {"conditions":["control","hints"],"name":"Foo"}"#,
            ),
            (
                "create experiment Foo in assign-prog with conditions control, hints weights 70/30 at SelectSection/area_model",
                r#"create_experiment {"conditions":["control","hints"],"context":"assign-prog","decision_points":["SelectSection / area_model"],"name":"Foo","weights":"70/30"}"#,
            ),
            (
                "create an experiment Foo in assign-prog at SelectSection / area_model with conditions a, b and c and equal weights",
                r#"create_experiment {"conditions":["a","b","c"],"context":"assign-prog","decision_points":["SelectSection / area_model"],"name":"Foo"}"#,
            ),
            (
                "create a group experiment Foo in assign-prog, conditions control 60, hints 40, site SelectSection target area_model",
                r#"create_experiment {"conditions":[{"code":"control","weight":60.0},{"code":"hints","weight":40.0}],"context":"assign-prog","decision_points":["SelectSection / area_model"],"name":"Foo","unit":"group"}"#,
            ),
            (
                "create experiment Foo in assign-prog assigned by class",
                r#"create_experiment {"context":"assign-prog","group":"class","name":"Foo","unit":"group"}"#,
            ),
            ("initialize u1 in assign-prog", r#"init_experiment_user {"context":"assign-prog","user":"u1"}"#),
            ("initialize user u1 in assign-prog", r#"init_experiment_user {"context":"assign-prog","user":"u1"}"#),
            (
                "initialize user u1 with groups class 5B in assign-prog",
                r#"init_experiment_user {"context":"assign-prog","group":{"class":["5B"]},"user":"u1"}"#,
            ),
            (
                "init user u1 with groups class 5B and 5C, school North and working group class 5B",
                r#"init_experiment_user {"group":{"class":["5B","5C"],"school":["North"]},"user":"u1","working_group":{"class":"5B"}}"#,
            ),
            (
                "mark SelectSection/area_model for u1 with condition control",
                r#"mark_decision_point {"condition":"control","site":"SelectSection","target":"area_model","user":"u1"}"#,
            ),
            (
                "mark SelectSection / area_model for user u1 in Math Hints",
                r#"mark_decision_point {"experiment":"Math Hints","site":"SelectSection","target":"area_model","user":"u1"}"#,
            ),
            (
                "mark SelectSection/area_model for u1 in assign-prog with condition control",
                r#"mark_decision_point {"condition":"control","context":"assign-prog","site":"SelectSection","target":"area_model","user":"u1"}"#,
            ),
            (
                "mark SelectSection/area_model in the assign-prog context for u1 with control",
                r#"mark_decision_point {"condition":"control","context":"assign-prog","site":"SelectSection","target":"area_model","user":"u1"}"#,
            ),
        ],
    );
}

#[test]
fn pronouns_refer_to_the_last_subject() {
    let situation = Situation { last_subject: Some("Math Hints".into()), ..Situation::default() };
    check(
        &situation,
        &[
            ("start it", r#"update_experiment_status {"experiment":"Math Hints","status":"start"}"#),
            ("stop that experiment", r#"update_experiment_status {"experiment":"Math Hints","status":"stop"}"#),
            ("start the one we created", r#"update_experiment_status {"experiment":"Math Hints","status":"start"}"#),
            ("delete the experiment we just created", r#"delete_experiment {"experiment":"Math Hints"}"#),
            ("show it", r#"read get_experiment_details {"experiment_id":"Math Hints"}"#),
            ("what is its status? show that", "unclear"),
            ("is it running?", r#"read get_experiment_details {"experiment_id":"Math Hints"}"#),
            ("rename it to Hints 2", r#"update_experiment {"experiment":"Math Hints","new_name":"Hints 2"}"#),
            ("set the weights to 70/30", r#"update_experiment {"experiment":"Math Hints","weights":"70/30"}"#),
            ("cancel it", "unclear: cancel “Math Hints” | never mind"),
        ],
    );
}

#[test]
fn what_is_not_understood() {
    check(
        &Situation::default(),
        &[
            ("asdf", "unclear"),
            ("", "unclear"),
            ("🙂", "unclear"),
            ("the weather is nice", "unclear"),
            ("make the experiment better please", "unclear"),
            ("never mind", "drop"),
            ("undo", "talk nothingtoundo"),
            ("try again", "talk nothingtorepeat"),
            ("yes", "talk nothingasked"),
        ],
    );
    let asdf = understand(&Situation { said: "asdf".into(), ..Situation::default() });
    assert!(asdf.confidence < 0.7);
}

#[test]
fn answers_to_an_open_question() {
    let draft = |asked: &str| Situation {
        draft: Some(Draft {
            action: "create_experiment".into(),
            params: params(json!({ "name": "Foo" })),
            asked: Some(DraftQuestion {
                parameter: asked.into(),
                question: "Which?".into(),
                options: if asked == "context" { vec!["assign-prog".into(), "mathstream".into()] } else { Vec::new() },
            }),
            unread: None,
        }),
        ..Situation::default()
    };
    check(
        &draft("context"),
        &[
            ("assign-prog", r#"update {"context":"assign-prog"}"#),
            ("Assign-Prog", r#"update {"context":"assign-prog"}"#),
            ("in assign-prog please", r#"update {"context":"assign-prog"}"#),
            ("create it in assign-prog", r#"update {"context":"assign-prog"}"#),
            ("elsewhere", r#"update {"context":"elsewhere"}"#),
            (
                "assign-prog, conditions control and hints, at SelectSection/area_model",
                r#"update {"conditions":["control","hints"],"context":"assign-prog","decision_points":["SelectSection / area_model"]}"#,
            ),
            (
                "in assign-prog, oh and site SelectSection target area_model",
                r#"update {"context":"assign-prog","decision_points":["SelectSection / area_model"]}"#,
            ),
            ("never mind", "drop"),
            ("cancel that", "drop"),
            ("what contexts are there?", "read get_context_metadata"),
            ("list experiments", "read get_all_experiments"),
            ("start Math Hints", r#"update_experiment_status {"experiment":"Math Hints","status":"start"}"#),
            ("could it be that this is about something else entirely", "unclear"),
            (
                "mark S/t for u1 in Math Hints with condition control",
                r#"mark_decision_point {"condition":"control","experiment":"Math Hints","site":"S","target":"t","user":"u1"}"#,
            ),
        ],
    );
    check(
        &draft("conditions"),
        &[
            ("control and hints", r#"update {"conditions":["control","hints"]}"#),
            ("control, hints", r#"update {"conditions":["control","hints"]}"#),
            ("control, hints with weights 70/30", r#"update {"conditions":["control","hints"],"weights":"70/30"}"#),
            ("no, call it Bar", r#"update {"name":"Bar"}"#),
        ],
    );
    check(
        &draft("decision_points"),
        &[
            ("SelectSection/area_model", r#"update {"decision_points":["SelectSection / area_model"]}"#),
            (
                "SelectSection / area_model and Lobby/door",
                r#"update {"decision_points":["SelectSection / area_model","Lobby / door"]}"#,
            ),
            ("site SelectSection, target area_model", r#"update {"decision_points":["SelectSection / area_model"]}"#),
        ],
    );
    check(
        &draft("name"),
        &[
            ("Hint Timing", r#"update {"name":"Hint Timing"}"#),
            ("call it Hints in Fractions", r#"update {"name":"Hints in Fractions"}"#),
            ("Hint Timing, in assign-prog", r#"update {"context":"assign-prog","name":"Hint Timing"}"#),
            ("help", "talk help"),
        ],
    );
    check(
        &draft("weights"),
        &[("70/30", r#"update {"weights":"70/30"}"#), ("70 and 30", r#"update {"weights":"70/30"}"#)],
    );
}

#[test]
fn a_refused_request_can_be_corrected() {
    let refused = |action: &str, given: Value| Situation {
        draft: Some(Draft { action: action.into(), params: params(given), asked: None, unread: None }),
        ..Situation::default()
    };
    check(
        &refused("create_experiment", json!({ "name": "Foo", "weights": "70/40" })),
        &[
            ("weights 60/40", r#"update {"weights":"60/40"}"#),
            ("60/40", r#"update {"weights":"60/40"}"#),
            ("hello there my friend", "unclear"),
        ],
    );
    check(
        &refused("update_experiment", json!({ "experiment": "Math Hints" })),
        &[(
            "set the description of Math Hints to Do hints help?",
            r#"update_experiment {"description":"Do hints help?","experiment":"Math Hints"}"#,
        )],
    );
}

#[test]
fn corrections() {
    let card = Draft {
        action: "create_experiment".into(),
        params: params(json!({ "name": "Foo", "context": "assign-prog", "conditions": ["a", "b"] })),
        asked: None,
        unread: None,
    };
    let drafted = Situation { draft: Some(card.clone()), ..Situation::default() };
    let on_card =
        Situation { on_card: Some(card), open_cards: vec![open_card("Create “Foo”?")], ..Situation::default() };
    let table = [
        ("no, use mathstream", r#"update {"context":"mathstream"}"#),
        ("actually mathstream", r#"update {"context":"mathstream"}"#),
        ("no, at 60/40", r#"update {"weights":"60/40"}"#),
        ("make it 60/40", r#"update {"weights":"60/40"}"#),
        ("60/40 would be safer", r#"update {"weights":"60/40"}"#),
        ("should be 60/40", r#"update {"weights":"60/40"}"#),
        ("rather 60/40", r#"update {"weights":"60/40"}"#),
        ("better 60/40", r#"update {"weights":"60/40"}"#),
        ("at most 60/40 please", r#"update {"weights":"60/40"}"#),
        ("It should be 60/40.", r#"update {"weights":"60/40"}"#),
        ("60/40 would be better, please", r#"update {"weights":"60/40"}"#),
        ("I'd prefer 60/40", r#"update {"weights":"60/40"}"#),
        ("change the context to mathstream", r#"update {"context":"mathstream"}"#),
        ("use conditions x and y instead", r#"update {"conditions":["x","y"]}"#),
        ("no, call it Bar", r#"update {"name":"Bar"}"#),
        ("set the weights to 60/40", r#"update {"weights":"60/40"}"#),
        ("rename it to Gamma Ray", r#"update {"name":"Gamma Ray"}"#),
        ("no wait, name it Epsilon 2 instead", r#"update {"name":"Epsilon 2"}"#),
        ("actually use three conditions", "unclear"),
    ];
    check(&drafted, &table);
    check(&on_card, &table);
    let refused = Situation {
        draft: Some(Draft {
            action: "update_experiment_status".into(),
            params: params(json!({ "experiment": "Maht Hints", "status": "start" })),
            asked: None,
            unread: None,
        }),
        ..Situation::default()
    };
    check(
        &refused,
        &[
            ("Math Hints", r#"update {"experiment":"Math Hints"}"#),
            ("I meant Math Hints", r#"update {"experiment":"Math Hints"}"#),
            ("no, Reading Pace", r#"update {"experiment":"Reading Pace"}"#),
            ("asdf", "unclear"),
        ],
    );
}

#[test]
fn undo_finds_the_named_change() {
    let change = |what: &str, status: &str| RecentChange {
        what: what.into(),
        undo: Some(Draft {
            action: "update_experiment_status".into(),
            params: params(json!({ "experiment": "Math Hints", "status": status })),
            asked: None,
            unread: None,
        }),
        again: None,
    };
    let failed = RecentChange {
        again: change("", "stop").undo,
        undo: None,
        what: "Stop “Math Hints”: no one decided in time".into(),
    };
    let situation = Situation {
        recent_changes: vec![
            failed,
            change("Started “Math Hints”.", "stop"),
            change("Stopped “Reading Pace”.", "start"),
            RecentChange { what: "“Tour” was permanently deleted.".into(), undo: None, again: None },
        ],
        ..Situation::default()
    };
    check(
        &situation,
        &[
            ("undo", r#"update_experiment_status {"experiment":"Math Hints","status":"start"}"#),
            ("undo that please", r#"update_experiment_status {"experiment":"Math Hints","status":"start"}"#),
            ("undo the weather", "talk nothingtoundo"),
            ("try again", r#"update_experiment_status {"experiment":"Math Hints","status":"stop"}"#),
            ("try again: Stop “Math Hints”", r#"update_experiment_status {"experiment":"Math Hints","status":"stop"}"#),
            ("undo: Started “Math Hints”.", r#"update_experiment_status {"experiment":"Math Hints","status":"stop"}"#),
        ],
    );
}

proptest::proptest! {
    #[test]
    fn no_message_causes_a_panic(said in ".{0,200}", asked in "[a-z_]{0,12}") {
        let draft = Draft { asked: Some(DraftQuestion { parameter: asked, ..DraftQuestion::default() }), ..Draft::default() };
        for draft in [None, Some(draft)] {
            let interpretation = understand(&Situation { said: said.clone(), draft, ..Situation::default() });
            proptest::prop_assert!((0.0..=1.0).contains(&interpretation.confidence));
        }
    }

    #[test]
    fn no_order_of_words_causes_a_panic(
        said in proptest::collection::vec(proptest::sample::select(&[
            "create", "experiment", "in", "assign-prog", "with", "conditions", "a", ",", "and", "at", "S/t", "70/30", "weights", "the",
            "“x y”", "to", "set", "of", "is", "what", "mark", "for", "u1", "no", "use", "site", "target", "called", "user", "group", "working",
        ][..]), 0..14)
    ) {
        understand(&Situation { said: said.join(" "), ..Situation::default() });
    }
}
