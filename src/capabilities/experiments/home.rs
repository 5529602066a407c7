//! The section of the Home tab: the running experiments with their enrollment.

use countersign_capabilities::facts::{Facts, deadline};
use countersign_core::reply::{Part, Reply, Text};
use futures_util::future::join_all;
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::{
    SERVICE,
    listing::ListArguments,
    replies::answers::plus_tests,
    summary::{Details, Summary},
    upgrade::status::Status,
};

/// The maximum number of experiments whose enrollment is read.
const MAX_LISTED: usize = 5;

/// Returns the section.
pub(super) async fn section(facts: &Facts) -> Reply {
    let until = deadline();
    let running = ListArguments { status: Some(Status::Enrolling.stored().to_owned()), ..ListArguments::default() };
    let listed = match facts.read(SERVICE.name, "get_all_experiments", json!(running), until).await {
        Ok(fact) => fact.answer,
        Err(error) => return heading().and(Part::Text(Text::from(error.words()))),
    };
    let experiments: Vec<Summary> = listed["experiments"]
        .as_array()
        .into_iter()
        .flatten()
        .take(MAX_LISTED)
        .filter_map(|value| Summary::deserialize(value).ok())
        .collect();
    let details = experiments.iter().map(|experiment| async {
        let which = json!({ "experiment_id": experiment.id });
        let fact = facts.read(SERVICE.name, "get_experiment_details", which, until).await.ok()?;
        let details = Details::deserialize(&fact.answer).ok()?;
        Some((details.enrolled_users?, details.test_users))
    });
    let enrolled = join_all(details).await;
    drawn(&listed, &experiments, &enrolled)
}

fn heading() -> Reply {
    Reply::default().and(Part::Heading("Running experiments".to_owned()))
}

/// Draws the section. `enrolled` has the numbers of users and of test users of each experiment, if they could be read.
fn drawn(listed: &Value, experiments: &[Summary], enrolled: &[Option<(u64, u64)>]) -> Reply {
    if experiments.is_empty() {
        return heading().and(Part::Text(Text::from("No experiment is running.")));
    }
    let line = |(experiment, enrolled): (&Summary, &Option<(u64, u64)>)| {
        let line = Text::new().bold(&experiment.name).plain(" · ").code(&experiment.context).plain(" · ");
        line.plain(match enrolled {
            Some((1, tests)) => format!("1 user enrolled{}", plus_tests(*tests)),
            Some((users, tests)) => format!("{users} users enrolled{}", plus_tests(*tests)),
            None => "enrollment couldn't be read".to_owned(),
        })
    };
    let reply = heading().and(Part::List(experiments.iter().zip(enrolled).map(line).collect()));
    let total = listed["total"].as_u64().unwrap_or_default();
    match total.saturating_sub(experiments.len() as u64) {
        0 => reply,
        more => reply.hint(format!("{more} more: /upgrade list running")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn experiment(name: &str) -> Summary {
        let value = json!({ "id": "0a1b2c3d-0000-4000-8000-000000000000", "name": name, "status": "enrolling",
            "status_words": "Running", "context": "mathstream", "conditions": [], "decision_points": [] });
        Summary::deserialize(value).unwrap()
    }

    #[test]
    fn each_experiment_is_listed_with_its_enrollment() {
        let two = [experiment("Hints"), experiment("Videos")];
        let said = drawn(&json!({ "total": 4 }), &two, &[Some((24, 1000)), None]).words();
        assert!(said.contains("Hints · mathstream · 24 users enrolled, plus 1000 test users"), "{said}");
        assert!(said.contains("Videos · mathstream · enrollment couldn't be read"), "{said}");
        assert!(said.contains("2 more"), "{said}");
        assert!(drawn(&json!({ "total": 0 }), &[], &[]).words().contains("No experiment is running."));
    }
}
