//! `get_enrollment_over_time`: the users of an experiment day by day, alone or beside those of another one.

use std::sync::Arc;

use countersign_capabilities::{Tool, ToolError, ToolInfo, dates, rows::Read};
use countersign_core::clock::Timestamp;
use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    access::{self, Deps},
    replies::enrollment as replies,
};
use crate::upgrade::participants::{DayEnrollment, EnrollmentDetail};

/// The name of the tool.
pub(super) const NAME: &str = "get_enrollment_over_time";

/// The maximum number of days in an answer; of more, the newest are shown.
const MAX_DAYS: usize = 400;

/// The format of days on the platform, such as `Fri Nov 20 2026`.
const DAY: &str = "%a %b %d %Y";

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

/// Returns `get_enrollment_over_time`.
pub(super) fn tool(deps: Deps) -> Arc<dyn Tool> {
    let info = ToolInfo::new(
        NAME,
        "Shows how many users were enrolled in an experiment each day, as a chart, alone or beside another experiment.",
    );
    Arc::new(Read {
        present: |_, _, answer| {
            let courses: Vec<Course> = serde_json::from_value(answer["courses"].clone()).ok()?;
            Some(replies::over_time(&courses))
        },
        subject: |_, answer| match answer["courses"].as_array()?.as_slice() {
            [only] => only["name"].as_str().map(str::to_owned),
            _ => None,
        },
        ..Read::new(deps, info, |deps, EnrollmentArguments { experiment_id, beside }, reader| {
            Box::pin(async move {
                let zone = reader.and_then(|reader| reader.zone.as_deref());
                let mut courses = vec![course(deps, &experiment_id, zone).await?];
                if let Some(other) = beside {
                    courses.push(course(deps, &other, zone).await?);
                }
                Ok(json!({ "courses": courses }))
            })
        })
    })
}

async fn course(Deps { client, clock }: &Deps, asked: &str, zone: Option<&str>) -> Result<Course, ToolError> {
    let request_with = |name: &str| format!("show enrollment of {name} over time");
    let view = access::experiment_asked_about(client, asked, request_with).await?.view;
    // The number of minutes to add to the time in the zone to get UTC.
    let now = jiff::Timestamp::from_millisecond(clock.now().millis()).unwrap_or_default();
    let offset = i64::from(-dates::time_zone(zone).to_offset(now).seconds() / 60);
    let (days, enrolled, tests) = tokio::join!(
        client.enrollment_by_day(view.id, offset),
        client.enrollment_detail(&view),
        client.own_tests().of(view.id)
    );
    let (days, EnrollmentDetail { users: enrolled, test_users, .. }) = (days?, enrolled?);
    let tests: Vec<_> = tests.iter().filter_map(|test| Some((day_of(test.at, offset)?, test.users()))).collect();
    Ok(Course { name: view.name, enrolled, test_users, days: by_date(&days, &tests) })
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

#[cfg(test)]
mod tests {
    use countersign_understanding::{checking::check, situation::Situation};
    use serde_json::Value;

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
