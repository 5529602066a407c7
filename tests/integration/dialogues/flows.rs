//! Every flow twice: with the grammar alone, and with a language model at the other end of the wire that answers as the
//! grammar does. People read the same, every request keeps the rules of the Messages API, and what it costs is in
//! `docs/model-costs.md`.

use std::fs;

use countersign_playground::model_stand_in;
use countersign_sandbox::model::{Cost, SandboxModel};
use futures_util::{StreamExt as _, stream};

use super::{scripted, testing::without_run};
use crate::support::bot::TestBot;

/// What happens in a thread.
enum Act {
    /// Somebody says something.
    Says(&'static str),
    /// Bo presses a button.
    Clicks(&'static str),
}
use Act::{Clicks, Says};

struct Flow {
    name: &'static str,
    acts: &'static [Act],
}

const fn flow(name: &'static str, acts: &'static [Act]) -> Flow {
    Flow { name, acts }
}

const FLOWS: &[Flow] = &[
    flow("Greeting", &[Says("hello")]),
    flow("Explain a concept", &[Says("what is an app context?")]),
    flow("How two concepts work together", &[Says("how do weights and consistency rules work together?")]),
    flow("List the concepts", &[Says("what concepts can you explain?")]),
    flow("Explain an action", &[Says("what parameters does creating an experiment have?")]),
    flow("Version", &[Says("what version is UpGrade?")]),
    flow("List experiments", &[Says("show experiments in assign-prog")]),
    flow("Created today", &[Says("find experiments created today")]),
    flow("Details", &[Says("show details of Math Hints")]),
    flow("Conditions of a context", &[Says("what conditions does assign-prog have?")]),
    flow(
        "Create, all at once",
        &[
            Says(
                "create an experiment Hint Timing in assign-prog with conditions control, variant weights 70/30 at SelectSection/area_model",
            ),
            Clicks("Create experiment"),
        ],
    ),
    flow(
        "Create, asked for the rest",
        &[
            Says("create an experiment"),
            Says("Hint Timing"),
            Says("assign-prog"),
            Says("SelectSection/area_model"),
            Clicks("Create experiment"),
        ],
    ),
    flow("Start", &[Says("start the Math Hints experiment"), Clicks("Start experiment")]),
    flow(
        "Start, then show, in one message",
        &[Says("start Math Hints and then show it in short"), Clicks("Start experiment")],
    ),
    flow("Start, rejected", &[Says("start the Math Hints experiment"), Clicks("Reject…")]),
    flow("Change weights", &[Says("set the weights of Math Hints to 70/30"), Clicks("Update experiment")]),
    flow("Archive several", &[Says("archive all completed experiments"), Clicks("Archive 1 experiment")]),
    flow("Delete", &[Says("delete Chat Tone"), Clicks("Delete permanently")]),
    flow("Initialise a user", &[Says("initialize user u2 with groups classId 5B"), Clicks("Initialize user")]),
    flow("What would a user get", &[Says("what condition would u3 get in assign-prog?")]),
    flow("Simulate a visit", &[Says("simulate user u1 visiting SelectSection absolute_value_plot_equality")]),
    flow("Test the balance", &[Says("test condition balance of Lesson Video Hints with 20 users")]),
    flow("An experiment that does not exist", &[Says("start Mth Hints")]),
    flow("Not understood", &[Says("please make it nicer somehow")]),
    flow("What was done", &[Says("start Math Hints"), Clicks("Start experiment"), Says("what have we accomplished?")]),
];

/// What people read of a flow that `who` goes through.
async fn played(flow: &Flow, bot: &TestBot, who: &str) -> Vec<String> {
    let mut heard = Vec::new();
    let mut thread = None;
    for act in flow.acts {
        match (act, &mut thread) {
            (Says(words), none @ None) => *none = Some(bot.user(who).says(words).await),
            (Says(words), Some(thread)) => thread.says(who, words).await,
            (Clicks(label), Some(thread)) => thread.clicks("bo", label).await,
            (Clicks(label), None) => panic!("nobody has asked for {label}"),
        }
        heard.extend(thread.as_mut().map(|thread| without_run(&thread.heard())));
    }
    heard
}

/// A model that answers as the grammar does.
async fn model() -> SandboxModel {
    let model = SandboxModel::start(0).await.unwrap();
    model.answers_by(model_stand_in::answers().unwrap());
    model
}

/// A bot that asks it.
async fn asking(model: &SandboxModel) -> TestBot {
    TestBot::with_settings(scripted::asking(model)).await
}

async fn both_ways(flow: &'static Flow) -> (&'static str, Cost) {
    let bot = TestBot::start().await;
    let with_the_grammar = played(flow, &bot, "ana").await;
    bot.finish().await;

    // The cache knows what never changes: somebody else has gone the same way before, on a platform of their own.
    let model = model().await;
    let bot = asking(&model).await;
    played(flow, &bot, "cy").await;
    bot.finish().await;

    let bot = asking(&model).await;
    let before = model.cost();
    let with_a_model = played(flow, &bot, "ana").await;
    let after = model.cost();
    bot.finish().await;
    assert_eq!(model.violations(), Vec::<String>::new(), "{}", flow.name);
    assert_eq!(with_a_model, with_the_grammar, "{}", flow.name);
    let cost = Cost {
        calls: after.calls - before.calls,
        fresh: after.fresh - before.fresh,
        cached: after.cached - before.cached,
        answered: after.answered - before.answered,
    };
    (flow.name, cost)
}

/// The table of the document: flow, calls, fresh, cached, answered.
fn documented(text: &str) -> Vec<(String, [u64; 4])> {
    let rows = text.lines().filter_map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [name, calls, fresh, cached, answered] = cells[..] else { return None };
        let number = |cell: &str| cell.replace(',', "").parse::<u64>().ok();
        Some((name.to_owned(), [number(calls)?, number(fresh)?, number(cached)?, number(answered)?]))
    });
    rows.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_model_people_read_the_same_and_the_costs_are_documented() {
    let costs: Vec<(&str, Cost)> = stream::iter(FLOWS).map(both_ways).buffered(4).collect().await;
    let row = |(name, cost): &(&str, Cost)| {
        let Cost { calls, fresh, cached, answered } = cost;
        format!("| {name} | {calls} | {fresh} | {cached} | {answered} |")
    };
    let table = costs.iter().map(row).collect::<Vec<_>>().join("\n");
    let written = documented(&fs::read_to_string("docs/model-costs.md").unwrap());
    let close = |ours: u64, theirs: u64| ours.abs_diff(theirs) <= theirs / 20 + 10;
    let same = costs.len() == written.len()
        && costs.iter().zip(&written).all(|((name, cost), (title, [calls, fresh, cached, answered]))| {
            name == title
                && cost.calls == *calls
                && close(cost.fresh, *fresh)
                && close(cost.cached, *cached)
                && close(cost.answered, *answered)
        });
    assert!(same, "docs/model-costs.md has another table than was measured:\n{table}");
    for (name, cost) in
        costs.iter().filter(|(name, _)| ["Start", "Start, rejected", "Delete", "Change weights"].contains(name))
    {
        assert!(cost.calls == 1 && cost.fresh + cost.cached <= 4_000, "{name}: a clear change, {cost:?}");
    }
    for (name, cost) in costs.iter().take(10) {
        assert!(cost.calls <= 2, "{name}: a question, {cost:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_late_in_a_thread_costs_what_an_early_one_costs() {
    let model = model().await;
    let bot = asking(&model).await;
    let says = [
        "list experiments",
        "what is a decision point?",
        "show details of Running Test",
        "what conditions does assign-prog have?",
    ];
    let thread = bot.user("ana").says("hello").await;
    let mut tokens = Vec::new();
    for turn in 1..=100 {
        let before = model.cost();
        thread.says("ana", says[turn % says.len()]).await;
        let after = model.cost();
        tokens.push(after.fresh + after.cached + after.answered - before.fresh - before.cached - before.answered);
    }
    bot.finish().await;
    assert_eq!(model.violations(), Vec::<String>::new());
    // Both are turns with the same words.
    assert!(tokens[99] * 10 <= tokens[19] * 12, "turn 20: {} tokens, turn 100: {}", tokens[19], tokens[99]);
}
