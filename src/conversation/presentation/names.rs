//! The names of user groups and people, where they must appear without a notification.
//!
//! Slack renders `<!subteam^S…>` and `<@U…>` with the name, but notifies the people. A name without
//! a notification is therefore stored as an id ([`Span::Group`], [`Span::Name`]), looked up when it
//! is drawn, and shown as plain text. A lookup has a short time-out. If it fails, a group is shown
//! by its id, and a person as a mention that Slack renders.

use std::{
    borrow::Cow,
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use countersign_core::{
    cause,
    clock::{Clock, Timestamp},
    ids::UserId,
    recent::Recent,
    reply::{CardState, Part, Reply, Span, Text},
};
use countersign_graph::action::{ActionRecord, Approver};
use countersign_slack::{client::SlackClient, client_error::Error};
use futures_util::future::join_all;
use tokio::time::timeout;

/// The maximum age of a cached name.
const MAX_AGE: Duration = Duration::from_secs(600);

/// The minimum time between a failed lookup and the next attempt.
const RETRY_AFTER: Duration = Duration::from_secs(60);

/// The time-out of a lookup, for which a message is delayed.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(1);

/// The maximum number of people whose names are cached. If there are more, all are removed.
const MAX_PEOPLE: usize = 1000;

/// A cached lookup of the names of a workspace's user groups and people.
#[derive(Clone)]
pub struct Names(Arc<Inner>);

struct Inner {
    slack: SlackClient,
    clock: Arc<dyn Clock>,
    groups: Mutex<Option<Cached<Handles>>>,
    people: Recent<UserId, Cached<Option<String>>>,
}

/// The handle of each group by its id, with the `@`.
type Handles = Arc<HashMap<String, String>>;

/// The result of a lookup, and the time until which it is not repeated.
#[derive(Clone)]
struct Cached<T> {
    value: T,
    until: Timestamp,
}

/// The names for one text, reply or card.
#[derive(Clone, Debug, Default)]
pub struct ResolvedNames {
    groups: Handles,
    people: HashMap<UserId, String>,
}

impl Names {
    /// Creates the lookup for this workspace.
    pub fn new(slack: SlackClient, clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Inner { slack, clock, groups: Mutex::default(), people: Recent::new(MAX_PEOPLE) }))
    }

    /// Returns the names of the user groups in the policies of these actions.
    pub async fn of_approvers<'a>(&self, records: impl IntoIterator<Item = &'a ActionRecord>) -> ResolvedNames {
        let is_group = |approver: &Approver| matches!(approver, Approver::Group(_));
        let names_any = records.into_iter().any(|record| {
            let policy = &record.policy;
            let more = policy.escalation.iter().map(|escalation| &escalation.approvers);
            std::iter::once(&policy.approvers).chain(&policy.also).chain(more).flatten().any(is_group)
        });
        let groups = if names_any { self.handles().await } else { Handles::default() };
        ResolvedNames { groups, ..ResolvedNames::default() }
    }

    /// Returns the cached names of the user groups, for callers that cannot wait.
    pub fn known(&self) -> ResolvedNames {
        let groups = self.cached_handles().map(|known| known.value).unwrap_or_default();
        ResolvedNames { groups, ..ResolvedNames::default() }
    }

    /// Returns the reply with ids replaced by names.
    pub async fn in_reply<'a>(&self, reply: &'a Reply) -> Cow<'a, Reply> {
        let spans: Vec<&Span> = texts(reply).into_iter().flat_map(|text| &text.0).collect();
        match self.of(&spans).await {
            Some(resolved) => Cow::Owned(resolved.in_reply(reply.clone())),
            None => Cow::Borrowed(reply),
        }
    }

    /// Returns the state of a card with ids replaced by names.
    pub async fn in_state(&self, state: CardState) -> CardState {
        let resolved = match &state {
            CardState::Open { deciders, .. } => self.of(&deciders.0.iter().collect::<Vec<_>>()).await,
            CardState::Running { .. } | CardState::Closed { .. } => None,
        };
        resolved.unwrap_or_default().in_state(state)
    }

    /// Returns the names of all groups and people in these spans; `None` if there are none.
    async fn of(&self, spans: &[&Span]) -> Option<ResolvedNames> {
        let mut people: Vec<&UserId> = Vec::new();
        for span in spans {
            match span {
                Span::Name(user) if !people.contains(&user) => people.push(user),
                _ => {}
            }
        }
        let has_groups = spans.iter().any(|span| matches!(span, Span::Group(_)));
        if people.is_empty() && !has_groups {
            return None;
        }
        let people =
            join_all(people.into_iter().map(|user| async move { Some((user.clone(), self.person(user).await?)) }));
        let groups = async { if has_groups { self.handles().await } else { Handles::default() } };
        let (groups, people) = tokio::join!(groups, people);
        Some(ResolvedNames { groups, people: people.into_iter().flatten().collect() })
    }

    /// Returns the handles of all groups. If Slack isn't answering, the last known ones are
    /// returned.
    async fn handles(&self) -> Handles {
        let (now, known) = (self.0.clock.now(), self.cached_handles());
        if let Some(known) = known.as_ref().filter(|known| now < known.until) {
            return known.value.clone();
        }
        let asked =
            timeout(LOOKUP_TIMEOUT, self.0.slack.usergroups()).await.unwrap_or(Err(Error::NoAnswer("too slow")));
        let known = match asked {
            Ok(groups) => {
                let handles = groups.into_iter().map(|group| (group.id, format!("@{}", group.handle)));
                Cached { value: Arc::new(handles.collect()), until: now + MAX_AGE }
            }
            Err(error) => {
                tracing::warn!(error = cause::chain(&error), "Cannot look up the names of user groups");
                Cached { value: known.map(|known| known.value).unwrap_or_default(), until: now + RETRY_AFTER }
            }
        };
        *self.0.groups.lock().expect("no holder panics") = Some(known.clone());
        known.value
    }

    fn cached_handles(&self) -> Option<Cached<Handles>> {
        self.0.groups.lock().expect("no holder panics").clone()
    }

    /// Returns the name of a person. If Slack isn't answering, the last known name is returned, if
    /// any.
    async fn person(&self, user: &UserId) -> Option<String> {
        let now = self.0.clock.now();
        let known = self.0.people.get(user);
        if let Some(known) = known.as_ref().filter(|known| now < known.until) {
            return known.value.clone();
        }
        let asked =
            timeout(LOOKUP_TIMEOUT, self.0.slack.user_info(user)).await.unwrap_or(Err(Error::NoAnswer("too slow")));
        let known = match asked {
            Ok(person) => Cached { value: Some(person.name), until: now + MAX_AGE },
            Err(error) => {
                tracing::warn!(error = cause::chain(&error), "Cannot look up the name of a person");
                Cached { value: known.and_then(|known| known.value), until: now + RETRY_AFTER }
            }
        };
        self.0.people.set(user.clone(), known.clone());
        known.value
    }
}

impl ResolvedNames {
    /// Returns the text with ids replaced by names. A group is formatted as code, in which Slack
    /// does not parse mentions.
    pub fn in_text(&self, text: Text) -> Text {
        let named = text.0.into_iter().map(|span| match &span {
            Span::Group(id) => self.groups.get(id).map_or(span, |handle| Span::Code(handle.clone())),
            Span::Name(user) => self.people.get(user).map_or(span, |name| Span::Plain(name.clone())),
            _ => span,
        });
        Text(named.collect())
    }

    /// Returns the reply with ids replaced by names.
    pub fn in_reply(&self, mut reply: Reply) -> Reply {
        for text in texts_mut(&mut reply) {
            *text = self.in_text(std::mem::take(text));
        }
        reply
    }

    /// Returns the state of a card with ids replaced by names.
    pub fn in_state(&self, mut state: CardState) -> CardState {
        if let CardState::Open { deciders, .. } = &mut state {
            *deciders = self.in_text(std::mem::take(deciders));
        }
        state
    }
}

/// Returns all texts of a reply that may contain names of groups or people.
fn texts(reply: &Reply) -> Vec<&Text> {
    let mut texts = Vec::new();
    for part in &reply.parts {
        match part {
            Part::Text(text) | Part::Note(text) => texts.push(text),
            Part::List(points) => texts.extend(points),
            Part::Facts(facts) => texts.extend(facts.iter().map(|(_, fact)| fact)),
            Part::Table { rows, .. } => texts.extend(rows.iter().flatten()),
            Part::Heading(_) | Part::Markdown(_) | Part::Code(_) => {}
        }
    }
    texts
}

/// Returns the same texts as [`texts`], mutably.
fn texts_mut(reply: &mut Reply) -> Vec<&mut Text> {
    let mut texts = Vec::new();
    for part in &mut reply.parts {
        match part {
            Part::Text(text) | Part::Note(text) => texts.push(text),
            Part::List(points) => texts.extend(points),
            Part::Facts(facts) => texts.extend(facts.iter_mut().map(|(_, fact)| fact)),
            Part::Table { rows, .. } => texts.extend(rows.iter_mut().flatten()),
            Part::Heading(_) | Part::Markdown(_) | Part::Code(_) => {}
        }
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presentation::render;

    #[test]
    fn names_never_cause_a_notification() {
        let named = Text::from("by ").name("U2".into()).plain(", ").group("S1").plain(" or ").group("S2");
        let reply = Reply::text(named.clone()).hint(named);
        let drawn = |reply: Reply| {
            let message = render::reply(&reply);
            (message.text.clone(), message.blocks[0]["text"]["text"].as_str().unwrap().to_owned())
        };
        let resolved = |handle: &str, name: &str| ResolvedNames {
            groups: Arc::new([("S1".to_owned(), handle.to_owned())].into()),
            people: [(UserId::from("U2"), name.to_owned())].into(),
        };
        let (text, block) = drawn(resolved("@stats", "Bo").in_reply(reply.clone()));
        assert_eq!(text, "by Bo, @stats or S2\nby Bo, @stats or S2");
        assert_eq!(block, "by Bo, `@stats` or `S2`", "a group without a known name is shown by its id");
        let (text, block) = drawn(resolved("@a`<!here>", "<!channel> <@U3>").in_reply(reply));
        for drawn in [text, block] {
            assert!(!drawn.contains("<!") && !drawn.contains("<@"), "{drawn}");
        }
    }
}
