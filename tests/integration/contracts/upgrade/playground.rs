//! What the playground starts with, and that it survives a restart.

use countersign_sandbox::upgrade::{Options, SandboxUpgrade};
use serde_json::{Value, json};

use super::replay::http;

#[tokio::test]
async fn there_is_one_of_everything_to_ask_about() {
    let sandbox = SandboxUpgrade::start(Options { seed: true, ..Options::default() }).await.unwrap();
    let states: Vec<_> = sandbox
        .names()
        .into_iter()
        .map(|name| {
            let state = sandbox.experiment(&name).unwrap()["state"].as_str().unwrap().to_owned();
            format!("{name}: {state}")
        })
        .collect();
    insta::assert_snapshot!(states.join("\n"), @r"
    Concrete Fractions: archived
    Chat Tone: completed
    Running Test: paused
    Lesson Video Hints: running
    Class Hint Rollout: running
    Math Hints: inactive
    ");
    let counted = |name: &str| {
        let id = sandbox.experiment(name).unwrap()["id"].clone();
        let url = format!("{}/stats/enrollment", sandbox.url());
        async move {
            let asked = json!({ "experimentIds": [id] });
            let told: Value = http().post(url).json(&asked).send().await.unwrap().json().await.unwrap();
            json!([told[0]["users"], told[0]["groups"]])
        }
    };
    assert_eq!(counted("Lesson Video Hints").await, json!([24, 0]));
    assert_eq!(counted("Class Hint Rollout").await, json!([24, 4]));
    assert_eq!(counted("Math Hints").await, json!([0, 0]));
}

#[tokio::test]
async fn the_world_survives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { seed: true, persist: Some(folder.path().join("upgrade.json")), ..Options::default() };
    let sandbox = SandboxUpgrade::start(options.clone()).await.unwrap();
    let id = sandbox.experiment("Math Hints").unwrap()["id"].as_str().unwrap().to_owned();
    let url = format!("{}/experiments/{id}", sandbox.url());
    assert_eq!(http().delete(url).send().await.unwrap().status(), 200);
    let before = sandbox.experiment("Class Hint Rollout");
    sandbox.stop().await;
    let again = SandboxUpgrade::start(options).await.unwrap();
    assert!(!again.contains("Math Hints"), "what was deleted is not planted again");
    assert_eq!(again.experiment("Class Hint Rollout"), before);
}
