//! Accounts, people and user groups of a workspace, as Slack's Web API describes them.

use countersign_core::ids::{TeamId, UserId};
use serde_json::Value;

use super::{Identity, client::SlackClient, client_error::Error, field};

/// The account of a token, from `auth.test`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The bot's own user, and the workspace or organisation that it belongs to.
    pub identity: Identity,
    /// The workspace, or the organisation where Slack names no workspace.
    pub team: TeamId,
    /// The workspace's name.
    pub team_name: String,
    /// The workspace's address, such as `https://lab.slack.com/`: the beginning of links to messages.
    pub url: Option<String>,
    /// The bot (`B…`), by which the app can be looked up.
    pub bot: Option<String>,
}

/// A person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// The name the person is shown by.
    pub name: String,
    /// The person's time zone, such as `Europe/Berlin`.
    pub tz: Option<String>,
    /// True if the account is an app's.
    pub is_bot: bool,
    /// True if the account is deactivated.
    pub deleted: bool,
    /// True if the person is a guest, in one channel or in several.
    pub is_guest: bool,
    /// True if Slack says that the person is from another workspace and shares no channel with the bot.
    pub is_stranger: bool,
    /// The workspaces that the person belongs to.
    pub teams: Vec<TeamId>,
    /// The organisation that the person belongs to.
    pub enterprise: Option<String>,
}

/// A user group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserGroup {
    /// The group's id (`S…`).
    pub id: String,
    /// The name that people mention the group by, without the `@`.
    pub handle: String,
}

impl SlackClient {
    /// Returns the profile of a person.
    pub async fn user_info(&self, user: &UserId) -> Result<Person, Error> {
        let answer = self.get("users.info", &[("user", user.as_str())]).await?;
        let (asked, user) = (user, &answer["user"]);
        if user["id"] != asked.as_str() {
            return Err(Error::Decode); // somebody else's account says nothing of theirs
        }
        let home = field::first(&answer, &["/user/team_id", "/user/profile/team"]).into_iter();
        let also = user["enterprise_user"]["teams"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let names = ["/user/profile/display_name", "/user/real_name", "/user/profile/real_name", "/user/name"];
        Ok(Person {
            name: field::first(&answer, &names).ok_or(Error::Decode)?.to_owned(),
            tz: field::text(&answer, "/user/tz").map(str::to_owned),
            is_bot: is_marked(&user["is_bot"]),
            deleted: is_marked(&user["deleted"]),
            is_guest: is_marked(&user["is_restricted"]) || is_marked(&user["is_ultra_restricted"]),
            is_stranger: is_marked(&user["is_stranger"]),
            teams: home.chain(also).map(TeamId::from).collect(),
            enterprise: field::text(&answer, "/user/enterprise_user/enterprise_id").map(str::to_owned),
        })
    }
}

/// Returns true if a mark of an account is set. Anything but a plain “no” counts as set: these marks take rights away.
fn is_marked(mark: &Value) -> bool {
    !matches!(mark, Value::Null | Value::Bool(false))
}
