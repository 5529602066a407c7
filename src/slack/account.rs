//! Who is who in a workspace, as Slack's Web API tells it.

use super::Identity;
use crate::ids::TeamId;

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
