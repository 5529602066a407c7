//! Who is who in a workspace, as Slack's Web API tells it.

use countersign_core::ids::{TeamId, UserId};
use serde_json::Value;

use super::{Identity, client::SlackClient, client_error::Error, field};

/// Where a token leads, from `auth.test`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Who we are.
    pub identity: Identity,
    /// Where.
    pub team: TeamId,
    /// The workspace's name.
    pub team_name: String,
    /// The workspace's address, such as `https://lab.slack.com/`: what links to messages begin with.
    pub url: Option<String>,
    /// Our bot (`B…`), by which our app can be looked up.
    pub bot: Option<String>,
}

/// A person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// How they are shown.
    pub name: String,
    /// Their time zone, such as `Europe/Berlin`.
    pub tz: Option<String>,
    /// Whether it is an app.
    pub is_bot: bool,
    /// Whether the account is switched off.
    pub deleted: bool,
    /// Whether it is a guest, in one channel or in several.
    pub is_guest: bool,
    /// Whether Slack says that they come from another workspace, and share no channel with us.
    pub is_stranger: bool,
    /// The workspaces that they belong to.
    pub teams: Vec<TeamId>,
    /// The organisation that they belong to.
    pub enterprise: Option<String>,
}

/// A user group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserGroup {
    /// `S…`
    pub id: String,
    /// What people know it by, without the `@`.
    pub handle: String,
}

impl SlackClient {
    /// Who a person is.
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
            is_bot: says(&user["is_bot"]),
            deleted: says(&user["deleted"]),
            is_guest: says(&user["is_restricted"]) || says(&user["is_ultra_restricted"]),
            is_stranger: says(&user["is_stranger"]),
            teams: home.chain(also).map(TeamId::from).collect(),
            enterprise: field::text(&answer, "/user/enterprise_user/enterprise_id").map(str::to_owned),
        })
    }
}

/// Whether a mark of an account is set. Whatever is no plain “no” is a yes: these marks take rights away.
fn says(mark: &Value) -> bool {
    !matches!(mark, Value::Null | Value::Bool(false))
}
