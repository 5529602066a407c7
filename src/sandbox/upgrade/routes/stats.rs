//! Enrolment statistics. As on the platform, conditions are identified by id.

use std::collections::BTreeSet;

use jiff::{ToSpan as _, civil::Date};
use serde_json::{Value, json};

use super::{Call, checked};
use crate::upgrade::{
    failure::{Failure, Outcome},
    validate,
    world::{Enrollment, Experiment, World, is_id},
};

/// The number of participants.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Count {
    pub(crate) users: usize,
    pub(crate) groups: usize,
}

impl Count {
    fn of<'a>(rows: impl Iterator<Item = &'a Enrollment>) -> Self {
        let (mut users, mut groups) = (BTreeSet::new(), BTreeSet::new());
        for row in rows {
            users.insert(&row.user);
            groups.extend(&row.group);
        }
        Self { users: users.len(), groups: groups.len() }
    }

    fn over(self, mut value: Value) -> Value {
        value["users"] = json!(self.users);
        value["groups"] = json!(self.groups);
        value
    }
}

fn rows<'a>(world: &'a World, id: &'a str) -> impl Iterator<Item = &'a Enrollment> {
    world.enrollments.iter().filter(move |row| row.experiment == id)
}

/// Counts the participants of an experiment.
pub(crate) fn count(world: &World, experiment: &Experiment) -> Count {
    Count::of(rows(world, &experiment.row.id))
}

/// `POST /stats/enrollment`
pub(crate) fn summary(world: &mut World, call: &Call) -> Outcome {
    checked(&validate::text_lists(&call.body, &["experimentIds"]))?;
    let ids = call.body["experimentIds"].as_array().into_iter().flatten().filter_map(Value::as_str);
    Ok(ids.map(|id| Count::of(rows(world, id)).over(json!({ "id": id }))).collect())
}

/// `GET /check/individualAssignment`: all enrolments, one row for each user and experiment.
pub(crate) fn enrolled(world: &mut World, _: &Call) -> Outcome {
    let mut seen = BTreeSet::new();
    let first = world.enrollments.iter().filter(|row| seen.insert((&row.experiment, &row.user)));
    let rows = first.map(|row| {
        json!({
            "experimentId": row.experiment, "userId": row.user, "groupId": row.group, "conditionId": row.condition,
            "enrollmentCode": "participant enrolled via algorithm",
        })
    });
    Ok(rows.collect())
}

fn wanted<'a>(world: &'a World, call: &'a Call) -> Result<(&'a str, &'a Experiment), Failure> {
    let id = call.text("experimentId").unwrap_or_default();
    if !is_id(id) {
        return Err(Failure::not_a_uuid_bare(id));
    }
    let missing = || Failure::unhandled_exception("Cannot read properties of null (reading 'conditions')");
    Ok((id, world.experiment(id).ok_or_else(missing)?))
}

/// `POST /stats/enrollment/detail`
pub(crate) fn detail(world: &mut World, call: &Call) -> Outcome {
    checked(&validate::texts(&call.body, &["experimentId"]))?;
    let (id, experiment) = wanted(world, call)?;
    let conditions =
        tree(experiment, true, |condition, point| {
            Count::of(rows(world, id).filter(|row| {
                row.condition.as_deref() == Some(condition) && point.is_none_or(|point| row.point == point)
            }))
        });
    Ok(count(world, experiment).over(json!({
        "id": id,
        "usersExcluded": world.exclusions.iter().filter(|row| row.experiment == id).count(),
        "groupsExcluded": world.group_exclusions.iter().filter(|row| row.experiment == id).count(),
        "conditions": conditions,
    })))
}

fn tree(experiment: &Experiment, with_totals: bool, count: impl Fn(&str, Option<&str>) -> Count) -> Value {
    let conditions = experiment.in_order().into_iter().map(|condition| {
        let points = experiment
            .points
            .iter()
            .map(|point| count(&condition.id, Some(&point.id)).over(json!({ "id": point.id })))
            .collect::<Vec<_>>();
        let shown = json!({ "id": condition.id, "partitions": points });
        if with_totals { count(&condition.id, None).over(shown) } else { shown }
    });
    conditions.collect()
}

/// `POST /stats/enrollment/date`: the same tree for each day of a period, newest first.
pub(crate) fn by_day(world: &mut World, call: &Call) -> Outcome {
    checked(&validate::by_day(&call.body))?;
    let (id, experiment) = wanted(world, call)?;
    // The offset is that of JavaScript: the number of minutes to add to get UTC.
    let offset = call.body["clientOffset"].as_i64().unwrap_or_default();
    let day = |millis: i64| {
        let moment = jiff::Timestamp::from_millisecond(millis - offset * 60_000).unwrap_or_default();
        moment.to_zoned(jiff::tz::TimeZone::UTC).date()
    };
    let today = day(world.now.millis());
    let first_row = rows(world, id).map(|row| day(row.at.millis())).min().unwrap_or(today);
    let days = days(call.text("dateEnum").unwrap_or_default(), first_row, today);
    let shown = days.into_iter().map(|date| {
        let stats = tree(experiment, false, |condition, point| {
            Count::of(rows(world, id).filter(|row| {
                row.condition.as_deref() == Some(condition)
                    && point.is_none_or(|point| row.point == point)
                    && day(row.at.millis()) == date
            }))
        });
        json!({ "date": date.strftime("%a %b %d %Y").to_string(), "stats": { "id": id, "conditions": stats } })
    });
    Ok(shown.collect())
}

fn days(period: &str, first_row: Date, today: Date) -> Vec<Date> {
    let back = |span: jiff::Span| today.checked_sub(span).unwrap_or(today);
    let from = match period {
        "last_seven_days" => back(6.days()),
        "last_two_weeks" => back(13.days()),
        "last_one_month" => back(1.months()),
        "last_three_months" => back(3.months()),
        "last_six_months" => back(6.months()),
        "last_twelve_months" => back(12.months()),
        _ => first_row,
    };
    let mut days = vec![today];
    while let Some(before) = days.last().and_then(|day| day.yesterday().ok()).filter(|before| *before >= from) {
        days.push(before);
    }
    days
}
