//! `get_enrollment_over_time`: the users of an experiment day by day, alone or beside those of another one.

use std::sync::Arc;

use async_trait::async_trait;
use countersign_capabilities::{Tool, ToolError, ToolInfo, moment};
use countersign_core::{
    clock::{Clock, Timestamp},
    reply::Reply,
};
use countersign_graph::action::Reader;
use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    access::{self, schema, tool_error},
    replies::enrollment as replies,
    tools::{arguments_as, as_tool_error},
};
use crate::upgrade::{
    client::UpgradeClient,
    participants::{DayEnrollment, EnrollmentDetail},
};

/// The name of the tool.
pub(super) const NAME: &str = "get_enrollment_over_time";

/// The maximum number of days in an answer; of more, the newest are shown.
const MAX_DAYS: usize = 400;

/// The format of days on the platform, such as `Fri Nov 20 2026`.
const DAY: &str = "%a %b %d %Y";

/// `get_enrollment_over_time`.
#[derive(Debug)]
pub(super) struct EnrollmentOverTime(pub(super) Arc<UpgradeClient>, pub(super) Arc<dyn Clock>);

#[derive(Deserialize, JsonSchema)]
struct EnrollmentArguments {
    /// The experiment, by id or name.
    experiment_id: String,
    /// Another experiment to show beside it, by id or name.
    #[serde(default)]
    beside: Option<String>,
}

/// The users of an experiment over time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Course {
    /// The name of the experiment.
    pub(super) name: String,
    /// The number of users now, without those of tests.
    pub(super) enrolled: u64,
    /// The number of users that tests of this bot enrolled.
    #[serde(default)]
    pub(super) test_users: u64,
    /// The number of new users on each day, the oldest first.
    pub(super) days: Vec<(Date, u64)>,
}

impl EnrollmentOverTime {
    async fn read(&self, arguments: &Value, zone: Option<&str>) -> Result<Value, ToolError> {
        let EnrollmentArguments { experiment_id, beside } = arguments_as(arguments)?;
        let mut courses = vec![self.course(&experiment_id, zone).await?];
        if let Some(other) = beside {
            courses.push(self.course(&other, zone).await?);
        }
        Ok(json!({ "courses": courses }))
    }

    async fn course(&self, asked: &str, zone: Option<&str>) -> Result<Course, ToolError> {
        let request_with = |name: &str| format!("show enrollment of {name} over time");
        let experiment = access::experiment(&self.0, asked, request_with).await.map_err(as_tool_error)?;
        let view = experiment.view;
        let offset = self.offset(zone);
        let (days, enrolled, tests) = tokio::join!(
            self.0.enrollment_by_day(view.id, offset),
            self.0.enrollment_detail(&view),
            self.0.own_tests().of(view.id)
        );
        let days = days.map_err(|error| tool_error(&error))?;
        let EnrollmentDetail { users: enrolled, test_users, .. } = enrolled.map_err(|error| tool_error(&error))?;
        let tests: Vec<_> = tests.iter().filter_map(|test| Some((day_of(test.at, offset)?, test.users()))).collect();
        Ok(Course { name: view.name, enrolled, test_users, days: by_date(&days, &tests) })
    }

    /// Returns the number of minutes to add to the time in a zone to get UTC.
    fn offset(&self, zone: Option<&str>) -> i64 {
        let now = jiff::Timestamp::from_millisecond(self.1.now().millis()).unwrap_or_default();
        let seconds = moment::time_zone(zone).to_offset(now).seconds();
        i64::from(-seconds / 60)
    }
}

/// Returns the day of a moment. `offset` is the number of minutes to add to the local time to get UTC.
fn day_of(at: Timestamp, offset: i64) -> Option<Date> {
    let moment = jiff::Timestamp::from_millisecond(at.millis() - offset * 60_000).ok()?;
    Some(moment.to_zoned(jiff::tz::TimeZone::UTC).date())
}

/// Returns the days in order, without the users of tests, which have the days of their beginnings: of a test around
/// midnight, some users are of the next day. Days that cannot be read are left out, as are those before the first user.
fn by_date(days: &[DayEnrollment], tests: &[(Date, u64)]) -> Vec<(Date, u64)> {
    let read = |day: &DayEnrollment| Date::strptime(DAY, &day.date).ok().map(|date| (date, day.users()));
    let mut days: Vec<(Date, u64)> = days.iter().filter_map(read).collect();
    days.sort_by_key(|(date, _)| *date);
    for (began, users) in tests {
        let mut left = *users;
        for (_, count) in days.iter_mut().filter(|(date, _)| date >= began).take(2) {
            let taken = left.min(*count);
            *count -= taken;
            left -= taken;
        }
    }
    let first = days.iter().position(|(_, users)| *users > 0).unwrap_or(days.len());
    let from = first.max(days.len().saturating_sub(MAX_DAYS));
    days.split_off(from)
}

#[async_trait]
impl Tool for EnrollmentOverTime {
    fn info(&self) -> ToolInfo {
        ToolInfo::new(
            NAME,
            "Shows how many users were enrolled in an experiment each day, as a chart, alone or beside another experiment.",
        )
    }

    fn schema(&self) -> Value {
        schema::<EnrollmentArguments>()
    }

    async fn call(&self, arguments: &Value, reader: Option<&Reader>) -> Result<Value, ToolError> {
        self.read(arguments, reader.and_then(|reader| reader.zone.as_deref())).await
    }

    fn present(&self, _: &Value, answer: &Value) -> Option<Reply> {
        let courses: Vec<Course> = serde_json::from_value(answer["courses"].clone()).ok()?;
        Some(replies::over_time(&courses))
    }

    fn subject(&self, _: &Value, answer: &Value) -> Option<String> {
        match answer["courses"].as_array()?.as_slice() {
            [only] => only["name"].as_str().map(str::to_owned),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use countersign_understanding::{checking::check, situation::Situation};

    use super::*;
    use crate::phrases::book;

    #[test]
    fn it_is_asked_for_in_words() {
        let of = r#"read get_enrollment_over_time {"experiment_id":"Math Hints"}"#;
        let both = r#"read get_enrollment_over_time {"beside":"Foo","experiment_id":"Math Hints"}"#;
        check(
            &book(),
            &Situation::default(),
            &[
                ("show enrollment of Math Hints over time", of),
                ("show the enrolment of Math Hints by day", of),
                ("plot enrollment for Math Hints", of),
                ("compare enrollment of Math Hints and Foo", both),
                ("compare the enrollment of Math Hints with Foo over time", both),
            ],
        );
    }

    fn day(date: &str, users: &[&[u64]]) -> DayEnrollment {
        let points = |counts: &&[u64]| {
            let point = |users: &u64| json!({ "id": "p", "users": users, "groups": 0 });
            json!({ "id": "c", "partitions": counts.iter().map(point).collect::<Vec<_>>() })
        };
        let conditions: Vec<Value> = users.iter().map(points).collect();
        serde_json::from_value(json!({ "date": date, "stats": { "id": "e", "conditions": conditions } })).unwrap()
    }

    #[test]
    fn days_are_in_order_from_the_first_user_and_each_user_counts_once() {
        let days = [
            day("Fri Nov 20 2026", &[&[3, 2], &[1, 0]]),
            day("Thu Nov 19 2026", &[&[0, 0], &[0, 0]]),
            day("Wed Nov 18 2026", &[&[5, 5], &[0, 0]]),
            day("Tue Nov 17 2026", &[&[0, 0], &[0, 0]]),
        ];
        let found: Vec<(String, u64)> =
            by_date(&days, &[]).into_iter().map(|(date, users)| (date.to_string(), users)).collect();
        let expected = [("2026-11-18", 5), ("2026-11-19", 0), ("2026-11-20", 4)];
        assert_eq!(found, expected.map(|(date, users)| (date.to_owned(), users)));
        let date = |day: i8| jiff::civil::date(2026, 11, day);
        let without_tests = by_date(&days, &[(date(18), 5), (date(19), 3)]);
        assert_eq!(without_tests, [(date(20), 1)], "a test around midnight");
    }

    #[test]
    fn the_recorded_answer_is_read() {
        let recorded = include_str!("../../../tests/fixtures/upgrade/6.5/459-stats-enrollment-date.json");
        let recorded: Value = serde_json::from_str(recorded).unwrap();
        let days: Vec<DayEnrollment> = serde_json::from_value(recorded["response"]["body"].clone()).unwrap();
        let found = by_date(&days, &[]);
        assert!(!found.is_empty() && found.iter().map(|(_, users)| users).sum::<u64>() > 0, "{found:?}");
    }
}
