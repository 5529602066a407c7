//! The experiment actions and tools over HTTP against the stand-in platform, without engine, Slack or model: prepare,
//! perform, read back; refusals; answers that are lost.

/// A snapshot of what people read, the same in every version of the platform.
macro_rules! reads {
    ($value:expr, @$snapshot:literal $(,)?) => {{
        let value = $value;
        insta::allow_duplicates! { insta::assert_snapshot!(value, @$snapshot) }
    }};
}

mod connections;
mod elsewhere;
mod experiments;
mod participants;
mod recorded_errors;
mod several_requests;
mod testing;
mod tools;
mod trouble;
mod truth;

use std::{sync::Arc, time::Duration};

use countersign::{
    app::installed,
    capabilities::Registry,
    clock::{SystemClock, Timestamp},
    config::Config,
    experiments::{
        Experiments,
        settings::Upgrade,
        upgrade::{UpgradeConfig, client::UpgradeClient, sign_in::SignIn},
    },
    graph::{
        action::{
            ActionKind, ActionRecord, Evidence, Outcome, Performed, Policy, PrepareError, Proposal, Refusal, Status,
        },
        keyring::Keyring,
        request::{Request, Times},
    },
    ids::ThreadId,
    reply::{Card, Reply},
};
use countersign_sandbox::upgrade::{Options, SandboxUpgrade, Version};
use serde_json::{Value, json};

/// What each of the four changes is asked with.
fn parameters(name: &str) -> Value {
    match name {
        "create_experiment" => {
            json!({ "name": "New", "context": "livehint-ai", "site": "chat", "target": "chat-tone" })
        }
        "update_experiment" => json!({ "experiment": "Math Hints", "weights": "70/30" }),
        "update_experiment_status" => json!({ "experiment": "Math Hints", "status": "start" }),
        _ => json!({ "experiment": "Math Hints" }),
    }
}

/// A platform and everything that can be done on it.
struct Bench {
    upgrade: SandboxUpgrade,
    registry: Registry,
}

fn registry(client: UpgradeClient) -> Registry {
    let settings = Config::load(None, &Default::default(), &installed::SETTINGS).expect("the defaults are fine");
    let settings: &Upgrade = settings.sections.get();
    let experiments = Experiments::with_client(Arc::new(client), settings, Arc::new(SystemClock));
    Registry::build(vec![Arc::new(experiments)]).expect("no name is there twice")
}

impl Bench {
    async fn start(version: Version) -> Self {
        Self::patient(version, Duration::from_secs(5)).await
    }

    /// With a client that gives up after `timeout`.
    async fn patient(version: Version, timeout: Duration) -> Self {
        let token = Some("token".to_owned());
        let upgrade =
            SandboxUpgrade::start(Options { version, token, ..Options::default() }).await.expect("a free port");
        let config = UpgradeConfig {
            base_url: upgrade.url().parse().expect("a URL"),
            sign_in: SignIn::Token("token".into()),
            timeout,
        };
        Self { upgrade, registry: registry(UpgradeClient::new(config).expect("a client")) }
    }

    fn action(&self, name: &str) -> &dyn ActionKind {
        self.registry.actions[name].as_ref()
    }

    /// Prepares what must be possible.
    async fn proposes(&self, name: &str, parameters: Value) -> Proposal {
        match self.action(name).prepare(&parameters, None).await {
            Ok(proposal) => proposal,
            Err(error) => panic!("{name} with {parameters} is not proposed: {error:?}"),
        }
    }

    /// The refusal of what must not be possible, as people read it.
    async fn refuses(&self, name: &str, parameters: Value) -> String {
        match self.action(name).prepare(&parameters, None).await {
            Err(PrepareError::Refusal(Refusal::Refused { reply, .. })) => read(&reply),
            Err(PrepareError::Refusal(Refusal::Missing(missing))) => missing
                .iter()
                .map(|missing| format!("{}: {} {:?}", missing.name, missing.question, missing.options))
                .collect::<Vec<_>>()
                .join("\n"),
            Err(PrepareError::Answered { reply, .. }) => format!("answered: {}", read(&reply)),
            Err(PrepareError::Unavailable { reply, .. }) => format!("unavailable: {}", read(&reply)),
            Ok(proposal) => panic!("{name} with {parameters} is proposed: {}", proposal.card.title),
        }
    }

    /// The approved action: what the engine would have before it performs.
    async fn approved(&self, name: &str, parameters: Value) -> ActionRecord {
        record(self.action(name), self.proposes(name, parameters).await)
    }

    /// Performs as the engine does: only if the preconditions still hold.
    async fn performs(&self, record: &ActionRecord) -> Performed {
        let action = self.action(&record.name);
        match action.preconditions(record).await {
            Ok(now) if now == *record.preconditions => action.perform(record).await,
            Ok(now) => panic!("the target changed: {:?} became {now}", record.preconditions),
            Err(outcome) => Performed::Ended(outcome),
        }
    }

    /// Prepares and performs what must succeed; the sentence about it.
    async fn does(&self, name: &str, parameters: Value) -> String {
        let record = self.approved(name, parameters).await;
        match self.performs(&record).await {
            Performed::Ended(outcome @ Outcome::Done { .. }) => outcome.summary().words(),
            other => panic!("{name} did not succeed: {other:?}"),
        }
    }

    /// How many changes the platform made.
    fn changes(&self) -> usize {
        self.upgrade.effects().len()
    }
}

fn record(action: &dyn ActionKind, proposal: Proposal) -> ActionRecord {
    let thread = ThreadId { team: "T1".into(), channel: "C1".into(), root: "1700000000.000100".into() };
    let policy = Policy { approvers: Vec::new(), own_request: true, needed: 1, typed: true, ..Policy::default() };
    let request = Request {
        thread: &thread,
        run: "R1".into(),
        kind: action,
        proposal,
        requested_by: "ana".into(),
        evidence: Evidence::default(),
        at: Timestamp(0),
        policy,
        slot: "card:A1".into(),
        times: Times::default(),
        keys: &Keyring::new(vec![vec![7; 32]]).unwrap(),
    };
    ActionRecord { id: "A1".into(), status: Status::Intent, revision: 3, ..request.into_record() }
}

/// A reply, then its buttons.
fn read(reply: &Reply) -> String {
    let buttons = reply.choices.iter().map(|choice| format!("[{} → {}]", choice.label, choice.says));
    std::iter::once(reply.words()).chain(buttons).collect::<Vec<_>>().join("\n")
}

/// A card as people read it.
fn card(card: &Card) -> String {
    let mut lines = vec![card.title.clone()];
    for fact in &card.facts {
        let before = fact.before.as_ref().map(|before| format!("{} → ", before.words())).unwrap_or_default();
        lines.push(format!("{}: {before}{}", fact.label, fact.after.words()));
    }
    lines.extend(card.warnings.iter().map(|warning| format!("⚠️ {}", warning.words())));
    lines.extend(card.notes.iter().map(|note| note.words()));
    let red = if card.irreversible { " (red)" } else { "" };
    lines.push(format!("[{}]{red} [{}]", card.approve, card.reject));
    lines.push(format!("✅ {}", card.done));
    lines.join("\n")
}

/// The sentence of an attempt that ended without success.
fn failure(performed: Performed) -> String {
    match performed {
        Performed::Ended(outcome @ (Outcome::Failed { .. } | Outcome::Unknown { .. })) => outcome.summary().words(),
        other => panic!("it did not fail: {other:?}"),
    }
}
