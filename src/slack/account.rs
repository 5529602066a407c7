//! Accounts, people and user groups of a workspace, from Slack's Web API.

use countersign_core::ids::{TeamId, UserId};
use serde_json::Value;

use super::{Identity, client::SlackClient, client_error::Error, field};

/// The account of a token, from `auth.test`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The bot's own user, and the workspace or organisation that it belongs to.
    pub identity: Identity,
    /// The workspace, or the organisation if Slack names no workspace.
    pub team: TeamId,
    /// The workspace's name.
    pub team_name: String,
    /// The workspace's address, such as `https://lab.slack.com/`, with which links to messages begin.
    pub url: Option<String>,
    /// The id of the bot (`B…`), with which the app can be looked up.
    pub bot: Option<String>,
}

/// A person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// The name that is shown for the person.
    pub name: String,
    /// The person's time zone, such as `Europe/Berlin`.
    pub tz: Option<String>,
    /// True if the account belongs to an app.
    pub is_bot: bool,
    /// True if the account is deactivated.
    pub deleted: bool,
    /// True if the person is a guest, in one channel or in several.
    pub is_guest: bool,
    /// True if the person is from another workspace and shares no channel with the bot, according to Slack.
    pub is_stranger: bool,
    /// The workspaces to which the person belongs.
    pub teams: Vec<TeamId>,
    /// The organisation to which the person belongs.
    pub enterprise: Option<String>,
}

/// A user group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserGroup {
    /// The group's id (`S…`).
    pub id: String,
    /// The name with which people mention the group, without the `@`.
    pub handle: String,
}

impl SlackClient {
    /// Returns the profile of a person.
    pub async fn user_info(&self, user: &UserId) -> Result<Person, Error> {
        let answer = self.get("users.info", &[("user", user.as_str())]).await?;
        let (asked, user) = (user, &answer["user"]);
        if user["id"] != asked.as_str() {
            return Err(Error::Decode); // the account of another person
        }
        let home = field::first(&answer, &["/user/team_id", "/user/profile/team"]).into_iter();
        let also = user["enterprise_user"]["teams"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let names = ["/user/profile/display_name", "/user/real_name", "/user/profile/real_name", "/user/name"];
        Ok(Person {
            name: field::first(&answer, &names).ok_or(Error::Decode)?.to_owned(),
            tz: field::text(&answer, "/user/tz").map(str::to_owned),
            is_bot: is_set(&user["is_bot"]),
            deleted: is_set(&user["deleted"]),
            is_guest: is_set(&user["is_restricted"]) || is_set(&user["is_ultra_restricted"]),
            is_stranger: is_set(&user["is_stranger"]),
            teams: home.chain(also).map(TeamId::from).collect(),
            enterprise: field::text(&answer, "/user/enterprise_user/enterprise_id").map(str::to_owned),
        })
    }
}

/// Returns true if a flag of an account is set. Anything but `null` and `false` counts as set, since these flags remove
/// rights.
fn is_set(flag: &Value) -> bool {
    !matches!(flag, Value::Null | Value::Bool(false))
}
