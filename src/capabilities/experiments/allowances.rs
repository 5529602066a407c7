//! The changes that standing approvals can allow: simulated users, and starts and stops.

use countersign_capabilities::{Allowance, AllowancePlace, Counts};
use countersign_core::reply::{Fact, Text};
use countersign_graph::action::PrepareError;
use serde_json::Value;

use super::{
    access, actions, lookup, scope, testing,
    upgrade::{client::UpgradeClient, status::Status},
};

const RUNNING: &str = Status::Enrolling.stored();
const PAUSED: &str = Status::EnrollmentComplete.stored();

/// All allowances of this capability.
pub const ALL: &[Allowance] = &[
    Allowance {
        name: "simulate",
        synonyms: &["simulation", "simulations", "simulated_users", "simulate_users"],
        offered: "simulated users",
        which_place: "In which experiment?",
        how_much: "What is the maximum number of simulated users in total?",
        unit: ("simulated user", "simulated users"),
        most: 1_000,
        actions: &[testing::balance::NAME],
        counts: Counts::Measure(scope::USERS),
        measures: &[(scope::USERS, None)],
        thing,
        title: ("Allow simulated users in “", "” without asking each time?"),
        allows: "enroll simulated users (balance tests)",
        warning: "These tests then need no approval: each one runs as soon as someone in this conversation asks for it.",
        stays: Some("UpGrade removes simulated users only together with the experiment."),
        after: "After that, each test needs approval again. Tests already running continue.",
    },
    Allowance {
        name: "start_and_stop",
        synonyms: &["start", "stop", "starts_and_stops"],
        offered: "starts and stops",
        which_place: "In which experiment?",
        how_much: "What is the maximum number of starts and stops?",
        unit: ("start or stop", "starts and stops"),
        most: 20,
        actions: &[actions::status::NAME],
        counts: Counts::Each { measure: scope::STATUS, among: &[RUNNING, PAUSED], without: scope::START },
        measures: &[(scope::STATUS, Some(RUNNING)), (scope::STATUS, Some(PAUSED))],
        thing,
        title: ("Allow starts and stops of “", "” without asking each time?"),
        allows: "start, stop and resume",
        warning: "These changes then need no approval: each one runs as soon as someone in this conversation asks for it.",
        stays: None,
        after: "After that, each start and stop needs approval again.",
    },
];

/// Returns the id of the one experiment that a change is about.
fn thing(parameters: &Value) -> Option<&str> {
    parameters["experiment"].as_str().or_else(|| parameters["place"]["experiment"].as_str())
}

/// Returns the experiment with this name, or else the context with this name.
pub(super) async fn place(client: &UpgradeClient, name: &str) -> Result<AllowancePlace, PrepareError> {
    let request_with = |known: &str| format!("allow simulated users in {known}");
    match access::experiment(client, name, request_with).await {
        Ok(experiment) => {
            let view = experiment.view;
            let enrolled = client.enrollment(&[view.id]).await.ok().and_then(|all| all.into_iter().next());
            let enrolled = enrolled.map(|enrolled| enrolled.users);
            let words = match enrolled {
                None => "couldn't be read".to_owned(),
                Some(0) => "nobody".to_owned(),
                Some(1) => "1 user".to_owned(),
                Some(users) => format!("{users} users"),
            };
            let context = view.context().to_owned();
            Ok(AllowancePlace {
                id: Some(view.id.to_string()),
                words: Text::new().bold(&view.name).plain(format!(", {}, {context}", view.state.display())),
                name: view.name.clone(),
                context: Some(context),
                facts: vec![Fact::new("Enrolled", words)],
                // If the enrolment cannot be read, there may be real users.
                in_use: enrolled.is_none_or(|users| users > 0),
            })
        }
        Err(unknown @ PrepareError::Refusal(_)) => {
            let contexts = client.context_metadata().await?;
            let known: Vec<_> = contexts.into_keys().collect();
            let context = lookup::pick(&known, name).ok_or(unknown)?;
            Ok(AllowancePlace {
                id: None,
                name: context.clone(),
                context: Some(context.clone()),
                words: Text::new().plain("every experiment in ").code(context),
                facts: Vec::new(),
                in_use: true,
            })
        }
        Err(error) => Err(error),
    }
}
