//! Checks that a payload is for this app and for the workspace in which it is installed.
//!
//! Every payload names the app (`api_app_id`) and the workspace. The field for the workspace depends on the kind of
//! payload: in a channel that is shared with another workspace, `team_id` of an event may be the other one, while
//! `authorizations` or `context_team_id` name ours; a view has `app_installed_team_id`. The workspace of the author is
//! not checked here, but where it matters.

use std::sync::{Arc, OnceLock};

use countersign_core::ids::{TeamId, UserId};
use serde_json::Value;

use super::field::{first, text};

/// The reason for refusing another app's payload.
pub const ANOTHER_APP: &str = "another_app";

/// The reason for refusing a payload about another workspace.
pub const ANOTHER_TEAM: &str = "another_team";

/// The bot's identity in the workspace, from `auth.test` and `bots.info`. It is needed to recognise mentions of the
/// bot, its own messages, and payloads that are not for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The bot's user (`U…`).
    pub user: UserId,
    /// The workspace; `None` if the app is installed in a whole organisation.
    pub team: Option<TeamId>,
    /// The organisation, if the workspace is in one.
    pub enterprise: Option<String>,
    /// The app (`A…`), once it is known.
    app: Arc<OnceLock<String>>,
}

impl Identity {
    /// Returns the identity of this user, with the workspace and the app not known yet.
    pub fn of(user: impl Into<UserId>) -> Self {
        Self { user: user.into(), team: None, enterprise: None, app: Arc::default() }
    }

    /// Returns the same identity in this workspace, or in all of this organisation.
    #[must_use]
    pub fn within(self, team: Option<TeamId>, enterprise: Option<String>) -> Self {
        Self { team, enterprise, ..self }
    }

    /// Returns the bot's app (`A…`), once it is known.
    pub fn app(&self) -> Option<&str> {
        self.app.get().map(String::as_str)
    }

    /// Records the app (`A…`). Only the first call has an effect.
    pub fn learn_app(&self, app: &str) {
        self.app.get_or_init(|| app.to_owned());
    }

    /// Returns the workspace of a payload: ours, or the one that it names if the app is installed in a whole
    /// organisation.
    pub(super) fn team_or(&self, named: TeamId) -> TeamId {
        self.team.clone().unwrap_or(named)
    }

    /// Returns the reason why an event is not for this app; `None` if it is.
    pub(super) fn refuses_event(&self, body: &Value) -> Option<&'static str> {
        let shared = body["is_ext_shared_channel"] == true;
        let authorized = body["authorizations"].as_array().into_iter().flatten();
        let also = authorized.map(|one| text(one, "/team_id")).chain([text(body, "/context_team_id")]);
        let named = std::iter::once(text(body, "/team_id")).chain(also.filter(|_| shared));
        let named: Vec<&str> = named.flatten().collect();
        let enterprise = first(body, &["/enterprise_id", "/context_enterprise_id", "/authorizations/0/enterprise_id"]);
        self.refuses(body, &named, enterprise)
    }

    /// Returns the reason why an interaction is not for this app; `None` if it is.
    pub(super) fn refuses_interaction(&self, payload: &Value) -> Option<&'static str> {
        let mut named: Vec<&str> = match text(payload, "/view/app_installed_team_id") {
            Some(installed) => vec![installed],
            None => text(payload, "/team/id").into_iter().collect(),
        };
        let enterprise = text(payload, "/enterprise/id");
        if named.is_empty() && self.enterprise.is_none() {
            named.extend(text(payload, "/user/team_id"));
        }
        self.refuses(payload, &named, enterprise)
    }

    /// Returns the reason why a command is not for this app; `None` if it is.
    pub(super) fn refuses_command(&self, fields: &Value) -> Option<&'static str> {
        let named: Vec<&str> = text(fields, "/team_id").into_iter().collect();
        self.refuses(fields, &named, text(fields, "/enterprise_id"))
    }

    fn refuses(&self, payload: &Value, teams: &[&str], enterprise: Option<&str>) -> Option<&'static str> {
        let ours = match &self.team {
            Some(_) if teams.is_empty() => self.enterprise.is_some() && self.enterprise.as_deref() == enterprise,
            Some(team) => teams.contains(&team.as_str()),
            None => self.enterprise.is_none() || self.enterprise.as_deref() == enterprise,
        };
        let app = text(payload, "/api_app_id");
        match (self.app(), app) {
            (Some(known), Some(app)) if known != app => return Some(ANOTHER_APP),
            // The payload came with our signature or over our socket, for our workspace, so it is for our app.
            (None, Some(app)) if ours && self.team.is_some() => self.learn_app(app),
            _ => {}
        }
        (!ours).then_some(ANOTHER_TEAM)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn us() -> Identity {
        let us = Identity::of("U0BOT").within(Some("T1".into()), None);
        us.learn_app("A1");
        us
    }

    #[test]
    fn an_event_of_another_app_or_workspace_is_refused() {
        for (body, why) in [
            (json!({ "api_app_id": "A1", "team_id": "T1" }), None),
            (json!({ "api_app_id": "A2", "team_id": "T1" }), Some(ANOTHER_APP)),
            (json!({ "api_app_id": "A1", "team_id": "T2" }), Some(ANOTHER_TEAM)),
            (json!({ "api_app_id": "A1" }), Some(ANOTHER_TEAM)),
            (
                json!({ "api_app_id": "A1", "team_id": "T2", "authorizations": [{ "team_id": "T1" }] }),
                Some(ANOTHER_TEAM),
            ),
            (
                json!({ "api_app_id": "A1", "team_id": "T2", "is_ext_shared_channel": true,
                    "authorizations": [{ "team_id": "T1" }] }),
                None,
            ),
            (
                json!({ "api_app_id": "A1", "team_id": "T2", "is_ext_shared_channel": true, "context_team_id": "T1" }),
                None,
            ),
            (
                json!({ "api_app_id": "A1", "team_id": "T2", "is_ext_shared_channel": true, "context_team_id": "T2" }),
                Some(ANOTHER_TEAM),
            ),
        ] {
            assert_eq!(us().refuses_event(&body), why, "{body}");
        }
    }

    #[test]
    fn a_click_or_command_of_another_app_or_workspace_is_refused() {
        for (payload, why) in [
            (json!({ "api_app_id": "A1", "team": { "id": "T1" } }), None),
            (json!({ "api_app_id": "A2", "team": { "id": "T1" } }), Some(ANOTHER_APP)),
            (json!({ "api_app_id": "A1", "team": { "id": "T2" } }), Some(ANOTHER_TEAM)),
            (json!({ "api_app_id": "A1", "team": null, "user": { "team_id": "T1" } }), None),
            (json!({ "api_app_id": "A1", "team": null, "user": { "team_id": "T2" } }), Some(ANOTHER_TEAM)),
            (json!({ "team": { "id": "T2" }, "view": { "app_installed_team_id": "T1" } }), None),
            (json!({ "team": { "id": "T1" }, "view": { "app_installed_team_id": "T2" } }), Some(ANOTHER_TEAM)),
        ] {
            assert_eq!(us().refuses_interaction(&payload), why, "{payload}");
        }
        assert_eq!(us().refuses_command(&json!({ "api_app_id": "A1", "team_id": "T1" })), None);
        assert_eq!(us().refuses_command(&json!({ "api_app_id": "A1", "team_id": "T2" })), Some(ANOTHER_TEAM));
        assert_eq!(us().refuses_command(&json!({ "api_app_id": "A2", "team_id": "T1" })), Some(ANOTHER_APP));
    }

    #[test]
    fn an_app_that_is_installed_in_an_organisation_accepts_all_its_workspaces() {
        let us = Identity::of("U0BOT").within(None, Some("E1".to_owned()));
        let press = |enterprise: &str| json!({ "team": null, "enterprise": { "id": enterprise } });
        assert_eq!(us.refuses_interaction(&press("E1")), None);
        assert_eq!(us.refuses_interaction(&press("E2")), Some(ANOTHER_TEAM));
        assert_eq!(us.refuses_event(&json!({ "team_id": "T7", "enterprise_id": "E1" })), None);
        let us = Identity::of("U0BOT").within(Some("T1".into()), Some("E1".to_owned()));
        assert_eq!(us.refuses_interaction(&press("E1")), None);
        assert_eq!(us.refuses_event(&json!({ "team_id": "T7", "enterprise_id": "E1" })), Some(ANOTHER_TEAM));
    }

    #[test]
    fn the_app_is_learned_from_the_first_payload_for_our_workspace() {
        let us = Identity::of("U0BOT").within(Some("T1".into()), None);
        assert_eq!(us.refuses_event(&json!({ "api_app_id": "A2", "team_id": "T2" })), Some(ANOTHER_TEAM));
        assert_eq!(us.refuses_event(&json!({ "api_app_id": "A1", "team_id": "T1" })), None);
        assert_eq!(us.refuses_event(&json!({ "api_app_id": "A2", "team_id": "T1" })), Some(ANOTHER_APP));
    }
}
