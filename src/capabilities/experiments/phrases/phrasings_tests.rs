//! Tests of the documented phrases as people type them: politely, in other words, and with typing errors.

use serde_json::json;

use super::{
    situation::{Draft, DraftQuestion, Situation},
    tests::{check, open_card, params},
};

#[test]
fn politeness_other_words_and_typing_errors() {
    let enrolled = r#"read get_experiment_details {"about":"enrollment","experiment_id":"Math Hints"}"#;
    let shown = r#"read get_experiment_details {"experiment_id":"Math Hints"}"#;
    let start = r#"update_experiment_status {"experiment":"Math Hints","status":"start"}"#;
    let weights = r#"update_experiment {"experiment":"Math Hints","weights":"70/30"}"#;
    let full = r#"read get_experiment_details {"experiment_id":"Math Hints","form":"full"}"#;
    let u1 = r#"get_decision_point_assignments {"context":"assign-prog","user":"u1"}"#;
    check(
        &Situation::default(),
        &[
            ("what have we got running atm", r#"read get_all_experiments {"status":"enrolling"}"#),
            ("whats a weight?", r#"read explain_upgrade_concept {"concept":"weight"}"#),
            ("do you know what a segment is?", "term segment"),
            ("could you tell me what conditions are?", r#"read explain_upgrade_concept {"concept":"condition"}"#),
            ("whats enrollmentComplete", "term paused"),
            ("whats running", r#"read get_all_experiments {"status":"enrolling"}"#),
            (
                "add student s1042 to the inclusion list of Math Hints",
                r#"update_experiment {"add_to_inclusion":["s1042"],"experiment":"Math Hints"}"#,
            ),
            ("need a new exp called Foo in assign-prog", r#"create_experiment {"context":"assign-prog","name":"Foo"}"#),
            ("which experiments arent running", r#"read get_all_experiments {"status":"not enrolling"}"#),
            ("set “Math Hints” to 70 30", weights),
            (
                "exclude everybody from class 5B and 6C in Math Hints",
                r#"update_experiment {"add_to_exclusion":["class 5B","class 6C"],"experiment":"Math Hints"}"#,
            ),
            (
                "start Math Hints, but not before december 7",
                r#"update_experiment_status {"experiment":"Math Hints","start_on":"December 7","status":"scheduled"}"#,
            ),
            (
                "when Math Hints ends everyone should get control",
                r#"update_experiment {"experiment":"Math Hints","post_rule":"assign control"}"#,
            ),
            (
                "stop all running experiments except “Math Hints”",
                r#"update_experiment_status {"all":{"except":["Math Hints"],"status":"running"},"status":"stop"}"#,
            ),
            ("what can I change in Math Hints?", r#"read explain_change {"action":"update_experiment"}"#),
            ("kill Math Hints", "unclear: pause “Math Hints” | cancel “Math Hints”"),
            ("tell me what is running", r#"read get_all_experiments {"status":"enrolling"}"#),
            ("which version is deployed here?", "read check_upgrade_health"),
            ("can you do a quick health check", "read check_upgrade_health"),
            ("list all expirements", "read get_all_experiments"),
            ("lsit all experiments", "read get_all_experiments"),
            ("do we have any experiments in assign-prog?", r#"read get_all_experiments {"context":"assign-prog"}"#),
            ("show everything", "read get_all_experiments"),
            ("could you show me the details for Math Hints?", shown),
            ("what about Math Hints?", shown),
            ("how many users are enrolled in Math Hints?", enrolled),
            ("how many users does Math Hints have?", enrolled),
            ("how many people in Math Hints", enrolled),
            ("what is “Math Hints”?", shown),
            ("what are Math Hints's conditions?", shown),
            ("which conditions does Math Hints compare?", shown),
            ("shwo Math Hints", shown),
            ("how is Math Hints set up?", full),
            ("hey, can u start Math Hints pls", start),
            ("get Math Hints going", start),
            ("turn on Math Hints", start),
            ("would you be able to start the Math Hints experiement?", start),
            ("turn off Math Hints", r#"update_experiment_status {"experiment":"Math Hints","status":"stop"}"#),
            ("delte Math Hints", r#"delete_experiment {"experiment":"Math Hints"}"#),
            (
                "creat an experiment called Foo in assign-prog",
                r#"create_experiment {"context":"assign-prog","name":"Foo"}"#,
            ),
            ("update Math Hints to 70/30", weights),
            ("change Math Hints's weights to 70/30", weights),
            ("change the Math Hints weights to 70/30", weights),
            (
                "set the weights of Math Hints to -10/110",
                r#"update_experiment {"experiment":"Math Hints","weights":"-10/110"}"#,
            ),
            ("can you tell me what condition user u1 would get in assign-prog?", u1),
            (
                "what condition would u3 get in Math Hints?",
                r#"get_decision_point_assignments {"context":"Math Hints","user":"u3"}"#,
            ),
            ("which condition will u1 see in assign-prog?", u1),
            (
                "initialize a user in assign-prog with group classId 5B",
                r#"init_experiment_user {"context":"assign-prog","group":{"classId":["5B"]}}"#,
            ),
            ("who approved that?", "read get_execution_log"),
            ("what have we acomplished?", "read get_execution_log"),
            ("show me what we did", "read get_execution_log"),
        ],
    );
}

#[test]
fn an_answer_may_give_another_parameter() {
    let asked = |parameter: &str| Situation {
        draft: Some(Draft {
            action: "create_experiment".into(),
            params: params(json!({ "name": "Foo", "context": "assign-prog" })),
            unread: None,
            asked: Some(DraftQuestion { parameter: parameter.into(), ..DraftQuestion::default() }),
        }),
        ..Situation::default()
    };
    check(
        &asked("decision_points"),
        &[
            ("individual", r#"update {"unit":"individual"}"#),
            ("control and variant", r#"update {"conditions":["control","variant"]}"#),
            ("conditions control, variant", r#"update {"conditions":["control","variant"]}"#),
            ("60/40", r#"update {"weights":"60/40"}"#),
            ("yes but not now", "unclear"),
        ],
    );
    let on_card = Situation {
        on_card: Some(Draft {
            action: "create_experiment".into(),
            params: params(json!({ "name": "Foo" })),
            asked: None,
            unread: None,
        }),
        open_cards: vec![open_card("Create “Foo”?")],
        ..Situation::default()
    };
    check(
        &on_card,
        &[
            ("weights to 70/30", r#"update {"weights":"70/30"}"#),
            ("yes but not now", "talk cardwaits"),
            ("maybe later", "talk cardwaits"),
            ("hold on", "talk cardwaits"),
        ],
    );
}

#[test]
fn unparsed_words_are_not_part_of_a_name() {
    let gamma = |group: &str| {
        format!(
            r#"create_experiment {{"context":"mathstream","decision_points":["lesson-quiz / question-hint"],"group":"{group}","name":"Gamma","unit":"group"}}"#
        )
    };
    let (by_class, by_teacher) = (gamma("classId"), gamma("teacherId"));
    check(
        &Situation::default(),
        &[
            ("create experiment Tau in assign-prog at SelectSection/area_model starting soon", "unclear"),
            ("create experiment Tau starting soon in assign-prog", "unclear"),
            ("create experiment Tau in assign-prog for fun and glory", "unclear"),
            (
                "create experiment Tau in assign-prog at S/t starting yesterday",
                r#"create_experiment {"context":"assign-prog","decision_points":["S / t"],"name":"Tau","start_on":"yesterday"}"#,
            ),
            (
                "create experiment Phi in assign-prog at S/t include u1, u2 and exclude u1",
                r#"create_experiment {"context":"assign-prog","decision_points":["S / t"],"exclusion":["u1"],"inclusion":["u1","u2"],"name":"Phi"}"#,
            ),
            (
                "create experiment Chi in assign-prog with excludeAll and inclusion list class 5B",
                r#"create_experiment {"context":"assign-prog","filter_mode":"excludeAll","inclusion":["class 5B"],"name":"Chi"}"#,
            ),
            (
                "create experiment Zeta in assign-prog tags algebra and pilot, include classId:5B, exclude u9, excludeAll, end after 100 users",
                r#"create_experiment {"context":"assign-prog","ends_after_users":100,"exclusion":["u9"],"filter_mode":"excludeAll","inclusion":["classId:5B"],"name":"Zeta","tags":["algebra","pilot"]}"#,
            ),
            (
                "create within-subjects experiment Beta in assign-prog",
                r#"create_experiment {"context":"assign-prog","name":"Beta","unit":"within-subjects"}"#,
            ),
            ("create experiment Gamma in mathstream at lesson-quiz/question-hint grouped by classId", &by_class),
            ("create an experiment Gamma in mathstream grouped by classId at lesson-quiz/question-hint", &by_class),
            ("create group experiment Gamma in mathstream by classId at lesson-quiz/question-hint", &by_class),
            (
                "create experiment Gamma in mathstream with unit group, group classId, at lesson-quiz/question-hint",
                &by_class,
            ),
            ("create an experiment Gamma in mathstream grouped by teacherId at lesson-quiz/question-hint", &by_teacher),
        ],
    );
}

#[test]
fn several_values_and_several_verbs() {
    let stop = r#"update_experiment_status {"experiment":"Lesson Video Hints","status":"stop"}"#;
    check(
        &Situation::default(),
        &[
            (
                "set description of Math Hints to foo and tags to x, y",
                r#"update_experiment {"description":"foo","experiment":"Math Hints","tags":["x","y"]}"#,
            ),
            (
                "update Math Hints weights to 70/30 and description to foo and tags x, y",
                r#"update_experiment {"description":"foo","experiment":"Math Hints","tags":["x","y"],"weights":"70/30"}"#,
            ),
            (
                "update Math Hints weights -10/110",
                r#"update_experiment {"experiment":"Math Hints","weights":"-10/110"}"#,
            ),
            ("please could you kindly stop the Lesson Video Hints experiment thank you", stop),
            ("start and stop Math Hints", "unclear: start “Math Hints” | stop “Math Hints”"),
            (
                "schedule Math Hints for yesterday",
                r#"update_experiment_status {"experiment":"Math Hints","start_on":"yesterday","status":"scheduled"}"#,
            ),
        ],
    );
}

#[test]
fn a_list_on_a_card_gets_another_item_of_the_same_kind() {
    let params = params(json!({ "experiment": "Math Hints", "add_to_exclusion": ["class 5B"] }));
    let on_card = Some(Draft { action: "update_experiment".to_owned(), params, asked: None, unread: None });
    let open_cards = vec![open_card("Change “Math Hints”?")];
    let situation = Situation { on_card, open_cards, ..Situation::default() };
    check(
        &situation,
        &[
            ("and 6A?", r#"update {"add_to_exclusion":["class 5B","class 6A"]}"#),
            ("also class 6A and 7C", r#"update {"add_to_exclusion":["class 5B","class 6A","class 7C"]}"#),
            ("no, 6A", r#"update {"add_to_exclusion":["class 6A"]}"#),
        ],
    );
}
