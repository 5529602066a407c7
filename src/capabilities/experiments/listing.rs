//! The filter and the order of a list of experiments.
//!
//! The platform's own search sorts only within a page, so all experiments are read and sorted here.

use std::cmp::Reverse;

use countersign_capabilities::dates::period::{self, Period};
use countersign_core::reply::Reply;
use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::replies::refusals;
use crate::upgrade::{experiment::View, status::Status};

/// The number of experiments on a page.
pub const PAGE_SIZE: usize = 10;

/// The level of detail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// Only the essentials: “in short”.
    Short,
    /// The usual detail.
    #[default]
    Normal,
    /// Everything: “in detail”.
    Full,
    /// The data, as a JSON file in the thread: “raw”, “as JSON”.
    Raw,
}

impl Form {
    fn is_normal(&self) -> bool {
        *self == Self::Normal
    }
}

/// The filter and order of a list. A member that is left out does not limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ListArguments {
    /// Only those in this context, such as `assign-prog`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Only those with this status, such as `inactive`, `running`, `paused` or `archived`;
    /// several as `archived or cancelled`, all the others as `not running`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Only those with a decision point that has this site or target, such as `area_model`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Only those with this tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Only those with these words in their name or description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
    /// Only those created then: `today`, `this week`, `last month`, `last 3 days`, `2026-11-01`, `since 2026-11-01`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// Only those last changed then, in the same words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed: Option<String>,
    /// The order: `name` (default), `status`, `context`, `newest`, `oldest` or `changed` (last changed first).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub sort: Option<Sort>,
    /// Which page of ten to show, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<usize>,
    /// `short`, `normal` (default), `full`, or `raw` for a JSON file in the thread.
    #[serde(skip_serializing_if = "Form::is_normal")]
    #[schemars(with = "String")]
    pub form: Form,
}

/// The order of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sort {
    /// By name.
    Name,
    /// By status, then name.
    Status,
    /// By context, then name.
    Context,
    /// The newest first.
    Newest,
    /// The oldest first.
    Oldest,
    /// The one changed last first.
    Changed,
}

/// A parsed filter.
#[derive(Debug)]
pub struct Filter<'a> {
    arguments: &'a ListArguments,
    status: Option<Statuses>,
    created: Option<Period>,
    changed: Option<Period>,
}

/// The statuses that a list is limited to, or that it excludes if `negated`.
#[derive(Debug)]
struct Statuses {
    negated: bool,
    named: Vec<Status>,
}

impl Statuses {
    /// Parses statuses, such as `archived or cancelled` or `not running`.
    fn parse(words: &str) -> Option<Self> {
        let plain = words.trim().to_lowercase().replace(" or ", ",").replace(" and ", ",");
        let (negated, listed) = plain.strip_prefix("not ").map_or((false, plain.as_str()), |listed| (true, listed));
        let listed = listed.split(',').map(str::trim).filter(|word| !word.is_empty());
        let named = listed.map(Status::asked_for).collect::<Option<Vec<_>>>()?;
        (!named.is_empty()).then_some(Self { negated, named })
    }

    fn contains(&self, status: Status) -> bool {
        self.named.contains(&status) != self.negated
    }

    fn words(&self) -> String {
        let named: Vec<_> = self.named.iter().map(|status| status.display()).collect();
        format!("{}{}", if self.negated { "not " } else { "" }, named.join(" or "))
    }
}

impl ListArguments {
    /// Parses the filter. Periods are relative to `today`.
    ///
    /// # Errors
    ///
    /// The reply about an unknown status or period.
    pub fn parse_filter(&self, today: Date) -> Result<Filter<'_>, Reply> {
        let status = self.status.as_deref().map(|words| {
            let known = Status::REQUESTED.map(Status::display);
            Statuses::parse(words).ok_or_else(|| refusals::not_one_of("status", words, &known))
        });
        let time = |words: &Option<String>| {
            let words = words.as_deref();
            words.map(|words| period::parse(words, today).ok_or_else(|| refusals::no_time(words))).transpose()
        };
        Ok(Filter {
            arguments: self,
            status: status.transpose()?,
            created: time(&self.created)?,
            changed: time(&self.changed)?,
        })
    }

    /// Returns the filter in words: `running, in assign-prog, created today`.
    pub fn words(&self) -> String {
        let status = self.status.as_deref().map(|words| match Statuses::parse(words) {
            Some(statuses) => statuses.words(),
            None => words.to_owned(),
        });
        let with = |before: &str, words: &Option<String>| words.as_deref().map(|words| format!("{before} {words}"));
        let about = self.search.as_deref().map(|words| format!("about “{words}”"));
        let parts = [
            status,
            with("in", &self.context),
            with("at", &self.at),
            with("tagged", &self.tag),
            about,
            with("created", &self.created),
            with("changed", &self.changed),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// Returns the request for a page of this list.
    pub fn request(&self, page: usize) -> String {
        let mut said = "list".to_owned();
        let mut say = |words: String| said = format!("{said} {words}");
        if let Some(words) = &self.status {
            say(Statuses::parse(words).map_or(words.clone(), |statuses| statuses.words()));
        }
        say("experiments".to_owned());
        let quoted = |words: &str| if words.contains(' ') { format!("“{words}”") } else { words.to_owned() };
        let clauses = [("in", &self.context), ("at", &self.at), ("tagged", &self.tag), ("about", &self.search)];
        for (before, words) in clauses.into_iter().filter_map(|(before, words)| Some((before, words.as_deref()?))) {
            say(format!("{before} {}", quoted(words)));
        }
        for (before, words) in [("created", &self.created), ("changed", &self.changed)] {
            if let Some(words) = words {
                say(format!("{before} {words}"));
            }
        }
        match self.sort {
            None => {}
            Some(Sort::Name) => say("by name".to_owned()),
            Some(Sort::Status) => say("by status".to_owned()),
            Some(Sort::Context) => say("by context".to_owned()),
            Some(Sort::Newest) => say("newest first".to_owned()),
            Some(Sort::Oldest) => say("oldest first".to_owned()),
            Some(Sort::Changed) => say("by last change".to_owned()),
        }
        match self.form {
            Form::Normal => {}
            Form::Short => say("in short".to_owned()),
            Form::Full => say("in detail".to_owned()),
            Form::Raw => say("raw".to_owned()),
        }
        if page > 1 {
            say(format!("page {page}"));
        }
        said
    }

    /// Returns the requested order. The default is the newest first if the list is limited to a
    /// period, otherwise by name.
    pub fn order(&self) -> Sort {
        self.sort.unwrap_or(match (&self.created, &self.changed) {
            (Some(_), _) => Sort::Newest,
            (None, Some(_)) => Sort::Changed,
            (None, None) => Sort::Name,
        })
    }
}

impl Filter<'_> {
    /// Returns the experiments of `all` that match, in order.
    pub fn of<'e>(&self, all: &'e [View]) -> Vec<&'e View> {
        let mut found: Vec<_> = all.iter().filter(|view| self.fits(view)).collect();
        let by_name = |e: &&View| (e.name.to_lowercase(), e.id);
        found.sort_by_cached_key(by_name);
        match self.arguments.order() {
            Sort::Name => {}
            Sort::Status => {
                let place = |status| Status::ALL.iter().position(|other| *other == status);
                found.sort_by_key(|e| place(e.state).unwrap_or(Status::ALL.len()));
            }
            Sort::Context => found.sort_by(|a, b| a.context().cmp(b.context())),
            Sort::Newest => found.sort_by_key(|e| Reverse(e.created_at.as_deref())),
            Sort::Oldest => found.sort_by_key(|e| e.created_at.as_deref()),
            Sort::Changed => found.sort_by_key(|e| Reverse(e.updated_at.as_deref())),
        }
        found
    }

    fn fits(&self, view: &View) -> bool {
        let within = |period: Option<Period>, moment: Option<&str>| {
            period.is_none_or(|period| moment.is_some_and(|moment| period.contains(moment)))
        };
        let contains = |text: &str, words: &str| text.to_lowercase().contains(&words.to_lowercase());
        let ListArguments { context, at, tag, search, .. } = self.arguments;
        let is_at = |wanted: &str| {
            let is_wanted = |word: &str| word.eq_ignore_ascii_case(wanted);
            view.decision_points
                .iter()
                .any(|point| is_wanted(&point.site) || point.target.as_deref().is_some_and(is_wanted))
        };
        self.status.as_ref().is_none_or(|statuses| statuses.contains(view.state))
            && context.as_deref().is_none_or(|context| view.context().eq_ignore_ascii_case(context))
            && at.as_deref().is_none_or(is_at)
            && tag.as_deref().is_none_or(|wanted| view.tags.iter().any(|tag| tag.eq_ignore_ascii_case(wanted)))
            && search.as_deref().is_none_or(|words| contains(&view.name, words) || contains(&view.description, words))
            && within(self.created, view.created_at.as_deref())
            && within(self.changed, view.updated_at.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn experiment(name: &str, state: &str, context: &str, created: &str) -> View {
        serde_json::from_value(json!({
            "id": uuid::Uuid::new_v4(), "name": name, "state": state, "context": [context], "tags": ["Hints"],
            "createdAt": format!("{created}T08:00:00.000Z"), "updatedAt": format!("{created}T09:00:00.000Z"),
        }))
        .unwrap()
    }

    fn found(which: serde_json::Value) -> Vec<String> {
        let all = [
            experiment("beta", "enrolling", "assign-prog", "2026-11-20"),
            experiment("Alpha", "inactive", "assign-prog", "2026-11-19"),
            experiment("gamma", "paused", "mathstream", "2026-10-01"),
        ];
        let which: ListArguments = serde_json::from_value(which).unwrap();
        let filter = which.parse_filter(Date::constant(2026, 11, 20)).unwrap();
        filter.of(&all).into_iter().map(|e| e.name.clone()).collect()
    }

    #[test]
    fn every_filter_and_every_order() {
        assert_eq!(found(json!({})), ["Alpha", "beta", "gamma"], "by name, whatever the case");
        assert_eq!(found(json!({ "status": "running" })), ["beta"]);
        assert_eq!(found(json!({ "status": "running or inactive" })), ["Alpha", "beta"]);
        assert_eq!(found(json!({ "status": "not running" })), ["Alpha", "gamma"]);
        assert_eq!(found(json!({ "context": "Assign-Prog" })), ["Alpha", "beta"]);
        assert_eq!(found(json!({ "tag": "hints", "search": "ET" })), ["beta"]);
        assert_eq!(found(json!({ "created": "this week" })), ["beta", "Alpha"], "the newest first");
        assert_eq!(found(json!({ "changed": "today" })), ["beta"]);
        assert_eq!(found(json!({ "sort": "oldest" })), ["gamma", "Alpha", "beta"]);
        assert_eq!(found(json!({ "sort": "status" })), ["Alpha", "beta", "gamma"]);
        assert_eq!(found(json!({ "sort": "context" })), ["Alpha", "beta", "gamma"]);
    }

    #[test]
    fn a_filter_names_statuses_as_the_rows_do() {
        for (status, words) in [
            ("cancelled", "cancelled"),
            ("completed", "cancelled"),
            ("enrolling or cancelled", "running or cancelled"),
            ("not paused", "not paused"),
        ] {
            let which = ListArguments { status: Some(status.into()), ..ListArguments::default() };
            assert_eq!(which.words(), words);
            assert_eq!(which.request(1), format!("list {words} experiments"));
        }
    }

    #[test]
    fn an_unknown_period_is_refused() {
        let which = ListArguments { created: Some("soon".into()), ..ListArguments::default() };
        let refused = which.parse_filter(Date::constant(2026, 11, 20)).unwrap_err();
        assert!(refused.words().starts_with("I couldn't read “soon” as a time"), "{}", refused.words());
    }
}
