//! The enrollment of experiments over time, in words and as a chart.

use countersign_core::reply::{Attachment, Part, Reply, Text};
use jiff::civil::Date;

use crate::{
    enrollment::Course,
    enrollment_chart::{self, Line},
};

/// The maximum number of days in the table.
const MAX_ROWS: usize = 7;

/// Returns the reply with the users of one experiment, or of two beside each other.
pub(crate) fn over_time(courses: &[Course]) -> Reply {
    let text = courses.iter().map(|course| Text::new().bold(course.name.as_str()).plain(in_words(course)));
    let reply = match courses {
        [_] => text.fold(Reply::default(), |reply, text| reply.and(Part::Text(text))),
        _ => Reply::default().and(Part::List(text.collect())),
    };
    let dates = dates(courses);
    if dates.is_empty() {
        return reply;
    }
    let column = |course: &Course| match courses {
        [_] => "New users".to_owned(),
        _ => format!("New in {}", course.name),
    };
    let columns = std::iter::once("Day".to_owned()).chain(courses.iter().map(column)).collect();
    let row = |date: &Date| {
        let new = courses.iter().map(|course| Text::from(new_on(course, *date).to_string()));
        std::iter::once(Text::from(date.strftime("%b %-d").to_string())).chain(new).collect()
    };
    let rows = dates.iter().rev().take(MAX_ROWS).map(row).collect();
    let mut reply = reply.and(Part::Table { columns, rows });
    if dates.len() > MAX_ROWS {
        reply = reply.hint(format!(
            "The table shows new users for the last {MAX_ROWS} days. The chart shows the running total for all {} days.",
            dates.len()
        ));
    }
    let lines: Vec<Line> = courses.iter().map(|course| line(course, &dates)).collect();
    let title = title(courses);
    match enrollment_chart::draw(&title, &dates, &lines) {
        Ok(bytes) => {
            let alt: Vec<_> = courses.iter().map(|course| format!("{}{}", course.name, in_words(course))).collect();
            reply.file(Attachment { name: "enrollment.png".to_owned(), title, alt: alt.join(" "), bytes })
        }
        Err(error) => {
            tracing::error!(error = format!("{error:#}"), "Cannot draw a chart");
            reply
        }
    }
}

fn in_words(course: &Course) -> String {
    let tests = match course.test_users {
        0 => String::new(),
        1 => " 1 test user of mine is left out.".to_owned(),
        tests => format!(" {tests} test users of mine are left out."),
    };
    let Some((first, _)) = course.days.first() else {
        return format!(": nobody is enrolled yet.{tests}");
    };
    let users = if course.enrolled == 1 { "user" } else { "users" };
    let most = course.days.iter().max_by_key(|(_, new)| *new);
    let most = most.map_or_else(String::new, |(date, new)| format!(", most on {} ({new})", date.strftime("%b %-d")));
    format!(": {} {users} since {}{most}.{tests}", course.enrolled, first.strftime("%b %-d, %Y"))
}

/// Returns the title of the chart, which also tells its numbers to people who cannot see it.
fn title(courses: &[Course]) -> String {
    let each = courses.iter().map(|course| format!("{} ({} users)", course.name, course.enrolled));
    format!("Total enrollment of {}", each.collect::<Vec<_>>().join(" and "))
}

/// Returns all days from the first to the last of any course.
fn dates(courses: &[Course]) -> Vec<Date> {
    let all = || courses.iter().flat_map(|course| &course.days).map(|(date, _)| *date);
    let (Some(first), Some(last)) = (all().min(), all().max()) else { return Vec::new() };
    first.series(jiff::Span::new().days(1)).take_while(|date| *date <= last).collect()
}

fn new_on(course: &Course, date: Date) -> u64 {
    course.days.iter().find(|(day, _)| *day == date).map_or(0, |(_, new)| *new)
}

fn line(course: &Course, dates: &[Date]) -> Line {
    let mut total = 0;
    let totals = dates.iter().map(|date| {
        total += new_on(course, *date);
        total
    });
    Line { name: course.name.clone(), totals: totals.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn course(name: &str, days: &[(&str, u64)]) -> Course {
        let days: Vec<(Date, u64)> = days.iter().map(|(date, new)| (date.parse().unwrap(), *new)).collect();
        Course { name: name.to_owned(), enrolled: days.iter().map(|(_, new)| new).sum(), test_users: 0, days }
    }

    #[test]
    fn one_experiment_is_told_in_words_a_table_and_a_picture() {
        let reply = over_time(&[course("Math Hints", &[("2026-11-18", 5), ("2026-11-19", 0), ("2026-11-20", 4)])]);
        let words = reply.words();
        assert!(words.contains("Math Hints: 9 users since Nov 18, 2026, most on Nov 18 (5)."), "{words}");
        assert!(reply.files.len() == 1 && reply.files[0].title == "Total enrollment of Math Hints (9 users)");
        let Some(Part::Table { columns, rows }) = reply.parts.get(1) else { panic!("no table: {words}") };
        assert_eq!(columns, &["Day", "New users"]);
        assert_eq!(rows.iter().map(|row| row[1].words()).collect::<Vec<_>>(), ["4", "0", "5"], "newest first");
    }

    #[test]
    fn two_experiments_are_beside_each_other_and_none_has_no_picture() {
        let some = course("A", &[("2026-11-18", 5)]);
        let other = course("B", &[("2026-11-20", 1)]);
        let reply = over_time(&[some, other]);
        let Some(Part::Table { columns, rows }) = reply.parts.get(1) else { panic!("no table") };
        assert_eq!(columns, &["Day", "New in A", "New in B"]);
        assert_eq!(rows.len(), 3, "with the day on which nobody came");
        assert_eq!(reply.files.len(), 1);
        let empty = over_time(&[course("C", &[])]);
        assert!(empty.words().contains("C: nobody is enrolled yet.") && empty.files.is_empty());
    }
}
