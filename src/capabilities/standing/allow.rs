//! `grant_standing_approval`: allows a limited number of changes of one kind without asking each time.

use std::{sync::Arc, time::Duration};

use countersign_capabilities::{
    Allowance, AllowancePlace, Capability, Things, dates,
    parameters::{missing, non_blank, refused},
    rows::Change,
};
use countersign_core::clock::{Clock, Timestamp};
use countersign_graph::action::{
    ActionInfo, ActionKind, ActionRecord, ErrorKind, Outcome, Performed, PrepareError, Proposal, Reader, Refusal,
    Scope, Undo,
};
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use super::{
    grant::{Bounds, Grant, GrantScope},
    register::{GrantRegister, GrantRegisterError},
    replies, revoke,
};

/// The name of the action.
pub const NAME: &str = "grant_standing_approval";

/// The measure with the names of the covered actions. People who may approve those may grant the standing approval.
pub const COVERS: &str = "covers";

/// The maximum duration of a standing approval, in days.
const MAX_DAYS: i64 = 31;

/// The dependencies of the action.
pub(super) struct Deps {
    pub(super) register: Arc<GrantRegister>,
    /// The capabilities that declare the changes that can be allowed, and the places.
    pub(super) capabilities: Vec<Arc<dyn Capability>>,
    pub(super) clock: Arc<dyn Clock>,
}

/// The parameters of the action.
#[derive(Deserialize, JsonSchema)]
struct GrantParameters {
    /// The kind of change to allow, such as `simulate` or `start_and_stop`. Required.
    #[serde(default)]
    what: Option<String>,
    /// The thing it applies to, by name or id; or the context, for everything in it. Required.
    #[serde(default)]
    within: Option<String>,
    /// The total amount: a number of users, or of times. Required.
    #[serde(default)]
    limit: Option<i64>,
    /// The end of the approval, such as `Friday` or `2027-01-15 09:00`; at most 31 days. Required.
    #[serde(default)]
    until: Option<String>,
}

/// Returns the action.
pub(super) fn action(deps: Deps) -> Arc<dyn ActionKind> {
    let info = ActionInfo::new(
        NAME,
        "Grants a standing approval: lets a limited number of simulated users, or of starts and stops, happen without asking \
         each time, until a certain moment. Use it when someone asks to allow or permit these in advance.",
    );
    // Adding the same standing approval again changes nothing.
    Arc::new(Change::new(
        deps,
        info,
        |row, asked, reader| Box::pin(prepare(&row.deps, asked, reader)),
        |row, bounds, record| Box::pin(send(&row.deps, bounds, record)),
    ))
}

async fn prepare(deps: &Deps, asked: GrantParameters, reader: Option<&Reader>) -> Result<Proposal, PrepareError> {
    let refuse = |reply| refused(ErrorKind::Validation, reply);
    let now = deps.clock.now();
    let zone = dates::time_zone(reader.and_then(|reader| reader.zone.as_deref()));
    let until = non_blank(asked.until.as_ref()).map(|until| parse_end(until, now, &zone)).transpose()?;
    if until.is_some_and(|until| until.since(now) > Duration::from_secs(MAX_DAYS.unsigned_abs() * 24 * 3600)) {
        return Err(refuse(replies::too_long(MAX_DAYS)));
    }
    let mut lacking = Vec::new();
    let all = deps.register.allowances();
    let allowance = match non_blank(asked.what.as_ref()) {
        Some(words) => Some(all.parse(words).ok_or_else(|| refuse(replies::unknown_kind(words)))?),
        None => {
            let options = all.all().iter().map(|one| one.offered.to_owned()).collect();
            lacking.push(missing("what", "What should be allowed in advance?", options));
            None
        }
    };
    let asks = allowance.or_else(|| all.all().first().copied()).ok_or_else(|| refuse(replies::nothing_here()))?;
    if non_blank(asked.within.as_ref()).is_none() {
        let names = match deps.things_of(asks) {
            Some(things) => things.places().await,
            None => Vec::new(),
        };
        lacking.push(missing("within", asks.which_place, names));
    }
    if asked.limit.is_none() {
        lacking.push(missing("limit", asks.how_much, Vec::new()));
    }
    if until.is_none() {
        lacking.push(missing("until", "Until when? For example Friday, or 2027-01-15 09:00.", Vec::new()));
    }
    let (Some(allowance), Some(name), Some(limit), Some(until)) =
        (allowance, non_blank(asked.within.as_ref()), asked.limit, until)
    else {
        return Err(Refusal::Missing(lacking).into());
    };
    let Some(limit) = u64::try_from(limit).ok().filter(|limit| (1..=allowance.most).contains(limit)) else {
        return Err(refuse(replies::amount_out_of_range(allowance, limit)));
    };
    let things = deps.things_of(allowance).ok_or_else(|| refuse(replies::nothing_here()))?;
    let place = things.place(name).await?;
    let within = match &place.id {
        Some(id) => GrantScope::Thing { id: id.clone(), name: place.name.clone() },
        None => GrantScope::Context(place.name.clone()),
    };
    let id = format!("sa-{}", &Uuid::new_v4().simple().to_string()[..6]);
    let bounds = Bounds { id, what: allowance.name.to_owned(), within, limit, until };
    let card = replies::allow_card(all, allowance, &bounds, &place);
    let undo = Undo {
        name: revoke::NAME.to_owned(),
        parameters: json!({ "id": bounds.id }),
        label: "Undo: end approval".to_owned(),
    };
    Ok(Proposal { undo: Some(undo), scope: scope(allowance, &bounds, &place), ..Proposal::new(bounds, card) })
}

async fn send(deps: &Deps, bounds: Bounds, record: &ActionRecord) -> Performed {
    let grant = Grant {
        team: record.thread.team.clone(),
        channel: record.thread.channel.clone(),
        action: record.id.clone(),
        asked_by: record.requested_by.clone(),
        granted_by: record.approved_by(),
        granted_at: deps.clock.now(),
        used: 0,
        uses: Vec::new(),
        revoked: None,
        bounds,
    };
    match deps.register.add(&grant).await {
        Ok(()) => {
            let allows = grant.bounds.words(deps.register.allowances());
            Performed::Ended(Outcome::done(record, json!({ "id": grant.bounds.id, "allows": allows })))
        }
        Err(GrantRegisterError::Full) => {
            let summary = "There are too many standing approvals. End one, then ask again.";
            Performed::Ended(revoke::failed(ErrorKind::Execution, summary))
        }
        Err(error) => Performed::NoAnswer { detail: error.to_string() },
    }
}

impl Deps {
    /// Returns the things of the capability that declares this allowance.
    fn things_of(&self, allowance: &Allowance) -> Option<&dyn Things> {
        let declares = |capability: &&Arc<dyn Capability>| {
            capability.info().allowances.iter().any(|one| one.name == allowance.name)
        };
        self.capabilities.iter().find(declares)?.things()
    }
}

/// Parses the end of a standing approval; a day without a time means 23:59.
fn parse_end(words: &str, now: Timestamp, zone: &TimeZone) -> Result<Timestamp, PrepareError> {
    let moment = dates::end_of(words, now, zone)?;
    let moment: Option<jiff::Timestamp> = moment.parse().ok();
    let unreadable = || refused(ErrorKind::Validation, replies::unavailable());
    moment.map(|moment| Timestamp(moment.as_millisecond())).ok_or_else(unreadable)
}

/// Returns the scope of a grant. People who may approve the covered changes may grant it, within the same envelopes.
fn scope(allowance: &Allowance, bounds: &Bounds, place: &AllowancePlace) -> Scope {
    let scope = match &place.id {
        Some(_) => Scope::default().of_subject(&*place.name),
        None => Scope::default(),
    };
    let scope = place.context.iter().fold(scope, |scope, context| scope.in_context(context));
    let scope = allowance.actions.iter().fold(scope, |scope, action| scope.measure(COVERS, *action));
    allowance.measures.iter().fold(scope, |scope, (measure, value)| match value {
        Some(value) => scope.measure(measure, *value),
        None => scope.measure(measure, bounds.limit),
    })
}
