//! `[upgrade]`: the settings of this capability, and the measures that envelopes can limit.

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context as _;
use countersign_config::{Kind, Measure, Problem, Section, SectionSpec, between, wrong_address};
use countersign_core::clock::Clock;
use countersign_services::google::TokenSource;
use secrecy::SecretString;
use serde::Deserialize;

use super::{
    scope,
    upgrade::{UpgradeConfig, client::UpgradeClient, sign_in::SignIn, status::Status},
};

/// `[upgrade]`: the experiment platform.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Upgrade {
    /// The address of its API, prefix included; also `UPGRADE_API_URL`. Without it there are no experiments.
    pub api_url: Option<String>,
    /// The time limit of a call, such as `"10s"`.
    #[serde(with = "humantime_serde")]
    pub timeout: Duration,
    /// The largest answer that is read, in megabytes.
    pub max_answer_mb: usize,
    /// The time for which the effect of a change that got no answer is looked for, such as `"1min"`.
    #[serde(with = "humantime_serde")]
    pub settle_within: Duration,
    /// The key file of a Google service account that signs in; also `UPGRADE_SERVICE_ACCOUNT`.
    pub service_account: Option<PathBuf>,
    /// The address that issues the service account's tokens, if not the one in the key file.
    pub token_uri: Option<String>,
    /// `UPGRADE_AUTH_TOKEN`, a token that does not expire.
    #[serde(skip)]
    pub auth_token: Option<SecretString>,
}

/// The specification of the section, for the loader of the settings.
pub const SECTION: SectionSpec = SectionSpec {
    name: "upgrade",
    defaults: include_str!("default.toml"),
    secrets: &[("auth_token", "UPGRADE_AUTH_TOKEN")],
    entry_secret: None,
    usual_names: &[("UPGRADE_API_URL", "api_url"), ("UPGRADE_SERVICE_ACCOUNT", "service_account")],
    optional: &["api_url", "service_account", "token_uri"],
    lists: &[],
    read: |values| Ok(Box::new(serde_json::from_value::<Upgrade>(values)?)),
};

/// The measures that envelopes can limit.
pub const MEASURES: &[Measure] = &[
    Measure {
        name: scope::STATUS,
        kind: Kind::Among {
            key: "statuses",
            known: &[
                Status::Inactive.stored(),
                Status::Scheduled.stored(),
                Status::Enrolling.stored(),
                Status::EnrollmentComplete.stored(),
                Status::Cancelled.stored(),
                Status::Archived.stored(),
            ],
        },
    },
    Measure {
        name: scope::WEIGHT,
        kind: Kind::Between {
            least: Some("least_weight"),
            most: "most_weight",
            range: (0.0, 100.0),
            tolerance: 0.01, // a weight is stored in single precision
            value: ("a weight of ", " %"),
            unit: " %",
            plural: "weights",
        },
    },
    Measure {
        name: scope::START,
        kind: Kind::When { earliest: "earliest_start", latest: "latest_start", verb: "starts" },
    },
    Measure { name: scope::END, kind: Kind::When { earliest: "earliest_end", latest: "latest_end", verb: "ends" } },
    Measure {
        name: scope::USERS,
        kind: Kind::Between {
            least: None,
            most: "most_users",
            range: (0.0, 1_000_000.0),
            tolerance: 0.0,
            value: ("", " simulated users"),
            unit: "",
            plural: "simulated users",
        },
    },
];

impl Section for Upgrade {
    fn add_secrets(&mut self, secret: &dyn Fn(&str) -> Option<SecretString>) {
        self.auth_token = secret("auth_token");
    }

    fn problems(&self) -> Vec<Problem> {
        let mut found = Vec::new();
        let mut expect = |holds: bool, key: &str, what: String| {
            if !holds {
                found.push(Problem { key: format!("upgrade.{key}"), what });
            }
        };
        if let Some(wrong) = self.api_url.as_deref().and_then(wrong_address) {
            expect(false, "api_url", wrong);
        }
        let no_path = self.service_account.as_ref().is_some_and(|path| path.as_os_str().is_empty());
        let what = "it is empty; expected a key file; otherwise leave it unset".to_owned();
        expect(!no_path, "service_account", what);
        for (key, time, most) in [("timeout", self.timeout, 120), ("settle_within", self.settle_within, 3600)] {
            if let Some(wrong) = between(time, 1, most) {
                expect(false, key, wrong);
            }
        }
        let mb = self.max_answer_mb;
        expect((1..=1024).contains(&mb), "max_answer_mb", format!("found {mb}; expected 1 to 1024 megabytes"));
        expect(
            self.service_account.is_none() || self.auth_token.is_none(),
            "service_account",
            "UPGRADE_AUTH_TOKEN is set as well; expected one of them".to_owned(),
        );
        if let Some(uri) = &self.token_uri {
            if let Some(wrong) = wrong_address(uri) {
                expect(false, "token_uri", wrong);
            }
            let what =
                "it says where the tokens of a service account come from, but upgrade.service_account is not set";
            expect(self.service_account.is_some(), "token_uri", what.to_owned());
        }
        found
    }

    fn boxed(&self) -> Box<dyn Section> {
        Box::new(self.clone())
    }
}

impl Upgrade {
    /// Creates a client for the platform.
    ///
    /// # Errors
    ///
    /// Fails if the address or the key file cannot be used.
    pub fn client(&self, clock: Arc<dyn Clock>) -> anyhow::Result<Arc<UpgradeClient>> {
        let base_url = self.api_url.as_deref().context("upgrade.api_url is not set")?;
        let base_url = base_url.parse().context("upgrade.api_url isn't a valid URL")?;
        let settings = UpgradeConfig { base_url, sign_in: self.sign_in(clock.clone())?, timeout: self.timeout };
        let client = UpgradeClient::new(settings).context("cannot set up the client for UpGrade")?;
        Ok(Arc::new(client.timed_by(clock).reading_at_most(self.max_answer_mb << 20)))
    }

    /// Returns the method of signing in to the platform.
    ///
    /// # Errors
    ///
    /// Fails if the key file cannot be used.
    pub fn sign_in(&self, clock: Arc<dyn Clock>) -> anyhow::Result<SignIn> {
        let Some(path) = &self.service_account else {
            return Ok(self.auth_token.clone().map_or(SignIn::Nobody, SignIn::Token));
        };
        let token_uri = self.token_uri.as_deref().map(str::parse).transpose();
        let token_uri = token_uri.context("upgrade.token_uri isn't a valid URL")?;
        let account = TokenSource::service_account(path, token_uri, self.timeout, clock);
        Ok(SignIn::ServiceAccount(Arc::new(account.context("upgrade.service_account")?)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use countersign_config::Envelope;

    fn problems(envelope: Value) -> Vec<String> {
        let envelope: Envelope = serde_json::from_value(envelope).unwrap();
        envelope.problems(&[MEASURES]).into_iter().map(|(key, _)| key).collect()
    }

    #[test]
    fn every_wrong_limit_is_reported() {
        let wrong = json!({
            "subjects": [" "],
            "statuses": ["running"],
            "least_weight": 60,
            "most_weight": 40,
            "earliest_start": "soon",
            "earliest_end": "2027-02-01",
            "latest_end": "2027-01-01T00:00:00Z",
            "most_users": -1,
            "most_user": 10,
        });
        let keys =
            ["subjects", "most_user", "statuses", "least_weight", "earliest_start", "earliest_end", "most_users"];
        assert_eq!(problems(wrong), keys);
        assert_eq!(problems(json!({ "subjects": ["A"], "statuses": "enrolling", "most_users": "many" })).len(), 2);
    }

    #[test]
    fn consistent_limits_are_accepted() {
        let fine = json!({
            "contexts": ["assign-prog"],
            "subjects": ["Math Hints"],
            "statuses": ["enrolling", "enrollmentComplete"],
            "least_weight": 10.0,
            "most_weight": 90,
            "earliest_start": "2027-01-15",
            "latest_start": "2027-01-15T09:00:00Z",
            "most_users": 0,
        });
        assert_eq!(problems(fine), Vec::<String>::new());
    }
}
