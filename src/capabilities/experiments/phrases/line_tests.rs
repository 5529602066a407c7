//! Tests of the phrases in `lines.txt`.

use super::{situation::Situation, tests::check};

#[test]
fn consistency_rules_and_names_of_users() {
    let of_math_hints = r#"test_consistency_rules {"experiment":"Math Hints"}"#;
    check(
        &Situation { last_subject: Some("Math Hints".to_owned()), ..Situation::default() },
        &[
            ("test consistency rules for Math Hints", of_math_hints),
            ("test the consistency rule of “Math Hints”", of_math_hints),
            ("test consistency of it", of_math_hints),
            ("test its consistency rules", r#"test_consistency_rules {"experiment":"Math Hints"}"#),
            ("check the consistency rule of Math Hints", of_math_hints),
            ("does the consistency rule of Math Hints work?", of_math_hints),
            ("do the consistency rules of Math Hints hold?", of_math_hints),
            ("test the consistency rules", of_math_hints),
            ("run a consistency test for Math Hints", of_math_hints),
            (
                "set Math Hints back to inactive",
                r#"update_experiment_status {"experiment":"Math Hints","status":"inactive"}"#,
            ),
            (
                "rename the condition variant to treatment in “Math Hints”",
                r#"update_experiment {"conditions":[{"code":"treatment","was":"variant"}],"experiment":"Math Hints"}"#,
            ),
            (
                "include only u1, u2 in Math Hints",
                r#"update_experiment {"experiment":"Math Hints","filter_mode":"excludeAll","inclusion":["u1","u2"]}"#,
            ),
            (
                "exclude classId 5B and 6A from Math Hints",
                r#"update_experiment {"add_to_exclusion":["classId 5B","classId 6A"],"experiment":"Math Hints"}"#,
            ),
            (
                "put schools 12 and 13 on the exclusion list of Math Hints",
                r#"update_experiment {"add_to_exclusion":["school 12","school 13"],"experiment":"Math Hints"}"#,
            ),
            (
                "rename the control condition of “Math Hints” to baseline",
                r#"update_experiment {"conditions":[{"code":"baseline","was":"control"}],"experiment":"Math Hints"}"#,
            ),
            (
                "set the weights of Math Hints to “variant” 40%, “control” 60%",
                r#"update_experiment {"experiment":"Math Hints","weights":{"control":60.0,"variant":40.0}}"#,
            ),
            (
                "change Math Hints to 60% control and 40% variant",
                r#"update_experiment {"conditions":["control","variant"],"experiment":"Math Hints","weights":{"control":60.0,"variant":40.0}}"#,
            ),
            (
                "add “anna”, “start Math Hints”, u3 to the include list of Math Hints",
                r#"update_experiment {"add_to_inclusion":["anna","start Math Hints","u3"],"experiment":"Math Hints"}"#,
            ),
            ("deactivate Math Hints", r#"update_experiment_status {"experiment":"Math Hints","status":"deactivate"}"#),
            ("what is a consistency rule?", "term consistency rule"),
            ("generate 5 test users", r#"read generate_test_users {"users":5}"#),
            ("generate test users", "read generate_test_users"),
            ("generate 1,000 test users", r#"read generate_test_users {"users":1000}"#),
            ("generate 1.5 test users", "unclear"),
            // What asks for a change is not answered with a list.
            ("set all running experiments to inactive", "unclear"),
            ("make all running experiments paused", "unclear"),
            (
                "test the balance of Math Hints with 1,000 users",
                r#"test_condition_balance {"experiment":"Math Hints","users":1000}"#,
            ),
            ("give me some test users", "read generate_test_users"),
            (
                "make 10 test users with groups for Math Hints",
                r#"read generate_test_users {"experiment":"Math Hints","users":10,"with_groups":true}"#,
            ),
            (
                "create 20 simulated users with classId groups",
                r#"read generate_test_users {"group_type":"classId","users":20}"#,
            ),
            (
                "simulate user u1 in Zeta visiting SelectSection/area_model",
                r#"simulate_user_journey {"experiment":"Zeta","site":"SelectSection","target":"area_model","user":"u1"}"#,
            ),
            (
                "simulate user u1 visiting lesson-quiz question-hint with class 5B",
                r#"simulate_user_journey {"group":{"class":["5B"]},"site":"lesson-quiz","target":"question-hint","user":"u1"}"#,
            ),
            (
                "simulate user u5 in Class Hint Rollout with groups classId 5B visiting lesson-quiz/question-hint",
                r#"simulate_user_journey {"experiment":"Class Hint Rollout","group":{"classId":["5B"]},"site":"lesson-quiz","target":"question-hint","user":"u5"}"#,
            ),
            (
                "test the balance of Class Hint Rollout with fifty users",
                r#"test_condition_balance {"experiment":"Class Hint Rollout","users":50}"#,
            ),
            (
                "test the balance of Math Hints with a hundred users",
                r#"test_condition_balance {"experiment":"Math Hints","users":100}"#,
            ),
            ("enrol 5 users in Math Hints", r#"test_condition_balance {"experiment":"Math Hints","users":5}"#),
        ],
    );
}

#[test]
fn questions_about_the_last_subject() {
    let talked = Situation { last_subject: Some("Math Hints".into()), ..Situation::default() };
    let shown = |form: &str| format!(r#"read get_experiment_details {{"experiment_id":"Math Hints"{form}}}"#);
    let (usual, full, raw) = (shown(""), shown(r#","form":"full""#), shown(r#","form":"raw""#));
    check(
        &talked,
        &[
            ("what are the conditions?", &usual),
            ("What are its conditions?", &usual),
            ("show details", &usual),
            ("explain the setup", &full),
            ("in detail please", &full),
            ("show it in detail", &full),
            ("raw", &raw),
            ("show it as JSON", &raw),
        ],
    );
}

#[test]
fn questions() {
    check(
        &Situation::default(),
        &[
            ("Is UpGrade running?", "read check_upgrade_health"),
            ("is upgrade up", "read check_upgrade_health"),
            ("health check", "read check_upgrade_health"),
            ("What version is it?", "read check_upgrade_health"),
            ("which version of UpGrade are we on?", "read check_upgrade_health"),
            ("check the health", "read check_upgrade_health"),
            ("is it up?", "read check_upgrade_health"),
            (
                "what group types does livehint-ai know?",
                r#"read get_group_types_for_context {"context":"livehint-ai"}"#,
            ),
            ("list experiments", "read get_all_experiments"),
            ("List all experiments", "read get_all_experiments"),
            ("show me all the experiments please", "read get_all_experiments"),
            ("What experiments are there?", "read get_all_experiments"),
            ("which experiments do we have?", "read get_all_experiments"),
            ("How many experiments are there?", "read get_all_experiments"),
            ("can you list our experiments", "read get_all_experiments"),
            ("list the experiment names", "read get_experiment_names"),
            ("what is running?", r#"read get_all_experiments {"status":"enrolling"}"#),
            ("which experiments are running", r#"read get_all_experiments {"status":"enrolling"}"#),
            (
                "show running experiments in assign-prog",
                r#"read get_all_experiments {"context":"assign-prog","status":"enrolling"}"#,
            ),
            ("show experiments in assign-prog", r#"read get_all_experiments {"context":"assign-prog"}"#),
            ("list the paused experiments", r#"read get_all_experiments {"status":"enrollmentComplete"}"#),
            ("list experiments for the mathstream context", r#"read get_all_experiments {"context":"mathstream"}"#),
            ("list contexts", "read get_context_metadata"),
            ("What contexts are available?", "read get_context_metadata"),
            ("what conditions does assign-prog have?", r#"read get_conditions_for_context {"context":"assign-prog"}"#),
            (
                "What conditions are available in assign-prog?",
                r#"read get_conditions_for_context {"context":"assign-prog"}"#,
            ),
            ("show the group types of mathstream", r#"read get_group_types_for_context {"context":"mathstream"}"#),
            (
                "what decision points does assign-prog have?",
                r#"read get_decision_points_for_context {"context":"assign-prog"}"#,
            ),
            ("which decision points can I use?", "read get_decision_points_for_context"),
            ("what group types are available?", "read get_group_types_for_context"),
            (
                "which sites are there in mathstream?",
                r#"read get_decision_points_for_context {"context":"mathstream"}"#,
            ),
            (
                "show Math Hints in detail",
                r#"read get_experiment_details {"experiment_id":"Math Hints","form":"full"}"#,
            ),
            (
                "explain the setup of Math Hints",
                r#"read get_experiment_details {"experiment_id":"Math Hints","form":"full"}"#,
            ),
            (
                "describe “Math Hints” in short",
                r#"read get_experiment_details {"experiment_id":"Math Hints","form":"short"}"#,
            ),
            (
                "give me a short summary of Math Hints",
                r#"read get_experiment_details {"experiment_id":"Math Hints","form":"short"}"#,
            ),
            (
                "show the raw JSON of Math Hints",
                r#"read get_experiment_details {"experiment_id":"Math Hints","form":"raw"}"#,
            ),
            ("show Math Hints as JSON", r#"read get_experiment_details {"experiment_id":"Math Hints","form":"raw"}"#),
            ("what does assign-prog know?", r#"read get_context_metadata {"context":"assign-prog"}"#),
            ("what conditions does Math Hints have?", r#"read get_experiment_details {"experiment_id":"Math Hints"}"#),
            ("show Math Hints", r#"read get_experiment_details {"experiment_id":"Math Hints"}"#),
            ("details of the Math Hints experiment", r#"read get_experiment_details {"experiment_id":"Math Hints"}"#),
            ("explain “Reading Pace”", r#"read get_experiment_details {"experiment_id":"Reading Pace"}"#),
            ("tell me about Math Hints", r#"read get_experiment_details {"experiment_id":"Math Hints"}"#),
            ("status of Math Hints?", r#"read get_experiment_details {"experiment_id":"Math Hints"}"#),
            (
                "what's the status of the Running Test experiment?",
                r#"read get_experiment_details {"experiment_id":"Running Test"}"#,
            ),
            ("is Math Hints running?", r#"read get_experiment_details {"experiment_id":"Math Hints"}"#),
            ("what are the weights of Math Hints?", r#"read get_experiment_details {"experiment_id":"Math Hints"}"#),
            (
                "what condition would u1 get in assign-prog?",
                r#"get_decision_point_assignments {"context":"assign-prog","user":"u1"}"#,
            ),
            (
                "Which condition does user student-7 get in assign-prog?",
                r#"get_decision_point_assignments {"context":"assign-prog","user":"student-7"}"#,
            ),
            ("get assignments for u1", r#"get_decision_point_assignments {"user":"u1"}"#),
            (
                "show me the assignments of u1 in assign-prog",
                r#"get_decision_point_assignments {"context":"assign-prog","user":"u1"}"#,
            ),
            ("What have we accomplished?", "read get_execution_log"),
            ("what did you do so far?", "read get_execution_log"),
            ("what have we done in this thread", "read get_execution_log"),
            ("what was changed today?", r#"read get_execution_log {"when":"today"}"#),
            ("what about yesterday", r#"read get_execution_log {"when":"yesterday"}"#),
            ("what did we change in the last 3 days?", r#"read get_execution_log {"when":"last 3 days"}"#),
            ("what was done since Monday", r#"read get_execution_log {"when":"since Monday"}"#),
            ("what have we accomplished in this channel?", r#"read get_execution_log {"where":"channel"}"#),
            (
                "was anything turned down this week?",
                r#"read get_execution_log {"outcome":"rejected","when":"this week"}"#,
            ),
            ("who approved the stop of Math Hints", r#"read get_execution_log {"subject":"stop of Math Hints"}"#),
            ("who approved lesson video hints", r#"read get_execution_log {"subject":"lesson video hints"}"#),
            (
                "who asked for the change to Math Hints yesterday?",
                r#"read get_execution_log {"outcome":"any","subject":"Math Hints","when":"yesterday"}"#,
            ),
            ("who rejected that request", r#"read get_execution_log {"outcome":"rejected"}"#),
            (
                "did anybody touch Math Hints lately",
                r#"read get_execution_log {"subject":"Math Hints","when":"lately"}"#,
            ),
            ("did anybody touch it lately", r#"read get_execution_log {"when":"lately"}"#),
            ("history of Math Hints", r#"read get_execution_log {"outcome":"any","subject":"Math Hints"}"#),
        ],
    );
}

#[test]
fn terms_and_parameters_of_changes() {
    let explain = |arguments: &str| format!("read explain_upgrade_concept {arguments}");
    let both = explain(r#"{"concept":"weight","with":"consistency rule"}"#);
    let status = explain(r#"{"concept":"status"}"#);
    check(
        &Situation::default(),
        &[
            ("What concepts can you explain?", "read list_upgrade_concepts"),
            ("which terms do you know?", "read list_upgrade_concepts"),
            ("list the core terms", "read get_core_terms"),
            ("explain the assignment terms", "read get_assignment_terms"),
            ("How do weights and consistency rules work together?", &both),
            ("how do weights work with consistency rules?", &both),
            ("what's the difference between weights and consistency rules?", &both),
            ("what does status mean?", &status),
            ("help with statuses", &status),
            ("explain decision points and weights", &explain(r#"{"concept":"decision point","with":"weight"}"#)),
            ("explain the weather", &explain(r#"{"concept":"weather"}"#)),
            (
                "how do group units and exclude lists work together?",
                &explain(r#"{"concept":"unit of assignment","with":"exclusion list"}"#),
            ),
            ("explain Math Hints", r#"read get_experiment_details {"experiment_id":"Math Hints"}"#),
            (
                "what parameters are there for the status change?",
                r#"read explain_change {"action":"update_experiment_status"}"#,
            ),
            ("what does paused mean?", "term paused"),
            ("what is paused?", r#"read get_all_experiments {"status":"enrollmentComplete"}"#),
            ("What parameters does create take?", r#"read explain_change {"action":"create_experiment"}"#),
            ("what can I set when creating an experiment?", r#"read explain_change {"action":"create_experiment"}"#),
            ("help me create an experiment", r#"read explain_change {"action":"create_experiment"}"#),
            ("what parameters does update_experiment take?", r#"read explain_change {"action":"update_experiment"}"#),
            ("what can I change in an experiment?", r#"read explain_change {"action":"update_experiment"}"#),
            (
                "how do I change the status of an experiment?",
                r#"read explain_change {"action":"update_experiment_status"}"#,
            ),
            ("what do you need to delete an experiment?", r#"read explain_change {"action":"delete_experiment"}"#),
            ("parameters of init_experiment_user", r#"read explain_change {"action":"init_experiment_user"}"#),
            ("what do I need to initialize a user?", r#"read explain_change {"action":"init_experiment_user"}"#),
            (
                "what parameters does get_decision_point_assignments take",
                r#"read explain_change {"action":"get_decision_point_assignments"}"#,
            ),
            (
                "what parameters does test_condition_balance take?",
                r#"read explain_change {"action":"test_condition_balance"}"#,
            ),
            ("what do I need to test the balance?", r#"read explain_change {"action":"test_condition_balance"}"#),
            ("how do I test consistency rules?", r#"read explain_change {"action":"test_consistency_rules"}"#),
            (
                "what parameters does simulate_user_journey take?",
                r#"read explain_change {"action":"simulate_user_journey"}"#,
            ),
            ("how do I simulate a user?", r#"read explain_change {"action":"simulate_user_journey"}"#),
            ("how do I mark a decision point?", r#"read explain_change {"action":"mark_decision_point"}"#),
        ],
    );
}
