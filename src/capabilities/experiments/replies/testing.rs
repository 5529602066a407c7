//! The replies about tests with simulated participants.

use countersign_core::{
    ids::UserId,
    reply::{Attachment, Card, Choice, Fact, Part, Reply, Text},
};

use crate::{
    rules::number,
    testing::{
        balance::{MAX_DURATION, MAX_USERS, Share, Tally, Test},
        chart::{self, Counted, Row},
        conditions::UNUSUAL,
        fit::{self, Fit},
        journey::Journey,
        simulated::{GROUP_SIZE, Received, name},
        split::ExpectedCount,
    },
    upgrade::{error::Error, experiment::View, status::Status},
};

/// The p-value below which counts do not fit the weights.
const SIGNIFICANCE_LEVEL: f64 = 0.001;
/// The maximum length of a quoted reason, in characters.
const MAX_REASON_LENGTH: usize = 200;

/// Returns the card of a test of condition balance.
pub fn card(test: &Test, enrolled: Option<u64>) -> Card {
    let Test { experiment_name, place, users, conditions, .. } = test;
    let mut facts = vec![
        Fact::new("Users", users_in_words(test)),
        Fact::new("Decision point", Text::new().plain(super::outcomes::place(&place.site, Some(&place.target)))),
        Fact::new("Expected", shares(conditions)),
        Fact::new(
            "Limits",
            format!("{users} users, this experiment only, at most {} minutes", MAX_DURATION.as_secs() / 60),
        ),
    ];
    if let Some(kind) = &place.group {
        facts.insert(1, Fact::new("Groups", format!("{GROUP_SIZE} users in each {kind}; each group is assigned once")));
    }
    let real = enrolled.filter(|enrolled| *enrolled > 0);
    let mut warnings = vec![Text::from("UpGrade removes enrolled users only together with the experiment.")];
    if let Some(real) = real {
        warnings.push(Text::from(format!("{} already enrolled, so the data will be mixed.", are(real))));
    }
    Card {
        facts,
        warnings,
        notes: vec![Text::from("You can stop it midway; users enrolled by then stay enrolled.")],
        irreversible: real.is_some(),
        ..Card::new(
            format!("Enroll {users} test {} in “{experiment_name}”?", if *users == 1 { "user" } else { "users" }),
            "Enroll test users",
            format!("Enrolled {users} test users in “{experiment_name}”."),
        )
    }
}

fn are(users: u64) -> String {
    if users == 1 { "1 user is".to_owned() } else { format!("{users} users are") }
}

fn users_in_words(test: &Test) -> Text {
    let text = Text::new().code(name(&test.run, 0));
    if test.users > 1 { text.plain(" to ").code(name(&test.run, test.users - 1)) } else { text }
}

fn shares(conditions: &[Share]) -> String {
    let words: Vec<_> = conditions.iter().map(|share| format!("{} {}%", share.code, number(share.weight))).collect();
    words.join(", ")
}

/// Returns the card of a user's journey.
pub fn journey_card(journey: &Journey, view: &View) -> Card {
    let Journey { user, experiment_name, place, group, working_group } = journey;
    let running = view.state == Status::Enrolling;
    let mut facts = vec![
        Fact::new("User", Text::new().code(user)),
        Fact::new(
            "Experiment",
            Text::new().bold(experiment_name).plain(format!(" ({}, {})", view.state.display(), place.context)),
        ),
        Fact::new("Decision point", super::outcomes::place(&place.site, Some(&place.target))),
        Fact::new("Steps", "initialize the user, request the condition, record the visit"),
    ];
    let groups: Vec<_> = group.iter().flatten().map(|(kind, ids)| format!("{kind}: {}", ids.join(", "))).collect();
    if !groups.is_empty() {
        facts.insert(1, Fact::new("Groups", groups.join("; ")));
    }
    let mut warnings = Vec::new();
    if running {
        warnings.push(Text::from("The visit enrolls the user, and the platform can't undo that."));
    } else {
        warnings.push(Text::from(format!(
            "The experiment is {}, so the user will most likely get no condition.",
            view.state.display()
        )));
    }
    if let Some(kind) = &place.group
        && !working_group.as_ref().is_some_and(|groups| groups.contains_key(kind))
    {
        warnings.push(Text::from(format!(
            "This experiment assigns by {kind}, and no working group is given. Unless the platform knows one for this user, the user gets no condition."
        )));
    }
    Card {
        facts,
        warnings,
        ..Card::new(
            format!("Send user “{user}” through “{experiment_name}”?"),
            "Simulate visit",
            format!("Sent “{user}” through “{experiment_name}”."),
        )
    }
}

/// Says that the user got a condition and is enrolled.
pub fn visit_succeeded(journey: &Journey, received: &Received) -> Text {
    let place = super::outcomes::place(&journey.place.site, Some(&journey.place.target));
    let levels = received.levels.as_ref().map_or_else(String::new, |levels| format!(" ({levels})"));
    let text = Text::new().code(&journey.user).plain(" got ").bold(&received.code);
    let text = text.plain(format!("{levels} at {place} in “"));
    text.bold(&journey.experiment_name).plain("” and is enrolled.")
}

/// Says that the user got nothing, with the reason if it is known.
pub fn got_nothing(journey: &Journey, view: Option<&View>) -> Text {
    let place = super::outcomes::place(&journey.place.site, Some(&journey.place.target));
    let text = Text::new().code(&journey.user).plain(format!(" got no condition at {place} in “"));
    let text = text.bold(&journey.experiment_name).plain("”, so the visit was not recorded: ");
    let why = match view {
        None => "the experiment can no longer be read.".to_owned(),
        Some(view) if view.state == Status::EnrollmentComplete => {
            "it is paused, and new users get the application's default.".to_owned()
        }
        Some(view) if view.state != Status::Enrolling => {
            format!("it is {} and assigns no conditions.", view.state.display())
        }
        Some(View { group: Some(kind), assignment_unit, .. }) if assignment_unit == "group" => {
            format!("it assigns by {kind}, and none of this user's groups is their working group.")
        }
        Some(view) if view.filter_mode == "excludeAll" => "only users on its inclusion list are included.".to_owned(),
        Some(_) => "the user is excluded, or is enrolled in another experiment at this decision point.".to_owned(),
    };
    text.plain(why)
}

/// Says that no experiment has this point.
pub fn no_experiment_at_point(site: &str, target: &str) -> Reply {
    let text = Text::from("No experiment has the decision point ").bold(super::outcomes::place(site, Some(target)));
    Reply::text(text.plain(", so a user would get no condition there.")).choice("List experiments", "list experiments")
}

/// Refuses a test with too many users, or with none.
pub fn not_so_many() -> Reply {
    Reply::text(format!("A test can have 1 to {MAX_USERS} users. How many?"))
}

/// Returns the choice to make an experiment run, and then to test its balance.
fn then_test(reply: Reply, label: &str, verb: &str, name: &str, users: u32) -> Reply {
    reply.choice(label, format!("{verb} “{name}” and then test the balance of “{name}” with {users} users"))
}

/// Returns the expected split of an experiment that has not started, with one draw beside it.
pub fn expected_only(test: &Test, tally: &Tally, expected: &[ExpectedCount]) -> Reply {
    let name = &test.experiment_name;
    let drawn = tally.drawn();
    let of_each: Vec<_> = test.conditions.iter().zip(expected).collect();
    let means: Vec<_> = of_each.iter().map(|(share, count)| format!("{} {}", share.code, count.mean.round())).collect();
    let (what, column) =
        if test.place.group.is_some() { ("group", "Simulated groups") } else { ("user", "Simulated users") };
    let plural = if drawn == 1 { "" } else { "s" };
    let text = Text::from("“").bold(name).plain(format!(
        "” is inactive, so nobody was enrolled. Of {drawn} {what}{plural}, expect about {}.",
        means.join(", ")
    ));
    let rows = of_each.iter().zip(rows(test, tally)).map(|((share, count), row)| {
        vec![
            Text::new().code(&share.code),
            Text::from(format!("{}%", number(share.weight))),
            Text::from(format!("{:.1}", count.mean)),
            Text::from(format!("{} to {}", count.least, count.most)),
            Text::from(row.count.to_string()),
        ]
    });
    let columns = ["Condition", "Weight", "Expected", "95% range", column].map(str::to_owned).to_vec();
    let mut reply = Reply::text(text).and(Part::Table { columns, rows: rows.collect() });
    reply = reply.and(Part::Text(Text::from(
        "95% of the time, each count lands in its range. The last column is one simulated assignment of made-up users with UpGrade's own rule.",
    )));
    if let Some(fit) = fit_of(test, tally) {
        reply = reply.and(Part::Text(verdict(&fit)));
    }
    let reply = with_chart(reply, test, tally, Counted::Drawn);
    then_test(reply, "Start it, then test", "start", name, test.users)
}

/// Says that no experiment can be tested with simulated users.
pub fn none_to_test() -> Reply {
    Reply::text("No experiment can be tested now: only those that are inactive, running or paused can.")
        .choice("List experiments", "list experiments")
}

/// Says that only a running experiment enrols users.
pub fn not_running(name: &str, status: Status, users: u32) -> Reply {
    let text = Text::from("“")
        .bold(name)
        .plain(format!("” is {}. Users are enrolled only while it is running.", status.display()));
    let reply = Reply::text(text);
    match status {
        Status::EnrollmentComplete => then_test(reply, "Resume it, then test", "resume", name, users),
        _ => reply.choice("Running experiments", "list running experiments"),
    }
}

/// Says that a within-subjects design has no balance to test.
pub fn not_within_subjects(name: &str) -> Reply {
    Reply::text(
        Text::from("In “")
            .bold(name)
            .plain("” each user gets every condition (within subjects), so there is no balance to test."),
    )
}

/// Says that the experiment has no decision point that a user could visit.
pub fn no_visitable_point(name: &str) -> Reply {
    Reply::text(Text::from("“").bold(name).plain("” has no decision point with a target, so nobody can visit it."))
}

/// Returns the numbers of users with problems; empty if there are none.
pub fn troubles(tally: &Tally) -> Text {
    let count = |count: u64, what: &str| (count > 0).then(|| format!("{count} {what}"));
    let all = [
        count(tally.nothing_given, "got no condition"),
        count(tally.failed, "failed"),
        count(tally.silent, "without an answer"),
    ];
    let all: Vec<_> = all.into_iter().flatten().collect();
    if all.is_empty() { Text::new() } else { Text::from(all.join(", ")) }
}

/// Returns the result, in one sentence.
pub fn summary(test: &Test, tally: &Tally) -> Text {
    let users = match tally.enrolled {
        all if all == u64::from(test.users) => format!("{all}"),
        some => format!("{some} of {}", test.users),
    };
    let text = Text::from(format!("Enrolled {users} test users in “"));
    let text = text.bold(&test.experiment_name).plain(format!("”: {}.", counts(test, tally)));
    match fit_of(test, tally) {
        Some(fit) if fit.p < SIGNIFICANCE_LEVEL => text.plain(" That doesn't fit the weights."),
        Some(fit) if fit.p < UNUSUAL => text.plain(" That is unusual for these weights."),
        Some(_) => text.plain(" That fits the weights."),
        None => text,
    }
}

/// Says that the test ended early: stopped by a person, or by the time limit if `by` is `None`.
pub fn stopped(test: &Test, tally: &Tally, by: Option<&UserId>) -> Text {
    let text = match by {
        Some(by) => Text::from("Stopped by ").person(by.clone()),
        None => Text::from(format!("Stopped after {} minutes (the time limit),", MAX_DURATION.as_secs() / 60)),
    };
    match tally.enrolled {
        0 => text.plain(" before anyone was enrolled."),
        enrolled => text.plain(format!(
            " after {} of {} users. The {enrolled} users already enrolled stay enrolled.",
            tally.next, test.users
        )),
    }
}

/// Says that the enrolments couldn't be read back within the time limit.
pub fn not_read_back(test: &Test, tally: &Tally) -> Text {
    Text::from(format!(
        "I couldn't check UpGrade for {} minutes. At least {} of {} users are enrolled; their IDs begin with {}.",
        MAX_DURATION.as_secs() / 60,
        tally.enrolled,
        test.users,
        test.run
    ))
}

/// Says that the platform stopped answering.
pub fn gave_up(test: &Test, tally: &Tally, error: &Error) -> Text {
    match tally.enrolled {
        0 => Text::from(format!("None of the {} users reached the decision point. ", test.users)).join(trouble(error)),
        enrolled => {
            Text::from(format!("Ended early after {} of {} users; {enrolled} are enrolled. ", tally.next, test.users))
                .join(trouble(error))
        }
    }
}

/// Returns the reason why a test that may already have changed something cannot continue.
pub fn trouble(error: &Error) -> Text {
    match error {
        Error::Unavailable { .. } | Error::NoAnswer { .. } => Text::from("UpGrade isn't answering."),
        Error::Auth | Error::SignIn(_) => Text::from("UpGrade no longer accepts my credentials."),
        Error::NotFound { .. } => Text::from("UpGrade no longer has the experiment or one of the test users."),
        Error::Invalid { problems } => not_accepted(&problems.join("; ")),
        Error::Refused { reason }
        | Error::Faulted { reason }
        | Error::Unclear { reason }
        | Error::Decode { reason } => not_accepted(reason),
    }
}

fn not_accepted(reason: &str) -> Text {
    Text::from("UpGrade refused the next step (").plain(shortened(reason)).plain(").")
}

fn shortened(reason: &str) -> String {
    reason.chars().take(MAX_REASON_LENGTH).collect()
}

/// Adds the figures, their interpretation, and the chart; and the choice to stop the experiment.
pub fn report(reply: Reply, test: &Test, tally: &Tally) -> Reply {
    if tally.drawn() == 0 {
        return reply;
    }
    let mut reply = figures(reply, test, tally);
    let stop = Choice { label: "Stop the experiment".to_owned(), says: format!("stop “{}”", test.experiment_name) };
    reply.choices.insert(0, stop);
    reply
}

/// Adds the figures, their interpretation, and the chart.
fn figures(mut reply: Reply, test: &Test, tally: &Tally) -> Reply {
    let drawn = tally.drawn();
    let rows = rows(test, tally);
    let cells = rows.iter().zip(&test.conditions).map(|(row, share)| {
        vec![
            Text::new().code(&row.name),
            Text::from(format!("{}%", number(share.weight))),
            Text::from(format!("{:.1}", row.expected)),
            Text::from(row.count.to_string()),
            Text::from(format!("{:.1}%", 100.0 * row.count as f64 / drawn as f64)),
        ]
    });
    let what = if test.place.group.is_some() { "Groups" } else { "Users" };
    let columns = ["Condition", "Weight", "Expected", what, "Share"].map(str::to_owned).to_vec();
    reply = reply.and(Part::Table { columns, rows: cells.collect() });
    if let Some(fit) = fit_of(test, tally) {
        reply = reply.and(Part::Text(verdict(&fit)));
    }
    if tally.nothing_given > 0 {
        reply = reply.hint(why_nothing_given(test, tally.nothing_given));
    }
    let others = troubles(&Tally { nothing_given: 0, ..tally.clone() });
    if !others.words().is_empty() {
        reply = reply.hint(Text::from("Other users: ").join(others).plain("."));
    }
    with_chart(reply, test, tally, Counted::Enrolled)
}

/// Adds the chart. `counted` is the subject of its counts.
fn with_chart(reply: Reply, test: &Test, tally: &Tally, counted: Counted) -> Reply {
    let (drawn, rows) = (tally.drawn(), rows(test, tally));
    let what = if test.place.group.is_some() { "groups" } else { "users" };
    let title = format!("{}: {drawn} {what}", test.experiment_name);
    match chart::draw(&title, counted, &rows) {
        Ok(bytes) => reply.file(Attachment {
            name: "balance.png".to_owned(),
            title: format!("Balance of {}", test.experiment_name),
            alt: chart::description(&title, counted, &rows),
            bytes,
        }),
        Err(error) => {
            tracing::error!(error = format!("{error:#}"), "Cannot draw a chart");
            reply
        }
    }
}

/// Says why some users got no condition.
fn why_nothing_given(test: &Test, users: u64) -> Text {
    let got =
        if users == 1 { "1 user got no condition: ".to_owned() } else { format!("{users} users got no condition: ") };
    let text = Text::from(got);
    match test.rivals.as_slice() {
        _ if test.only_included => text.plain("only users on the inclusion list are included."),
        [] => text.plain("they are excluded, or another experiment shares this decision point."),
        [one] => text.plain("“").bold(one).plain("” shares this decision point."),
        [first, others @ ..] => {
            let more = format!("” and {} more share this decision point.", others.len());
            text.plain("“").bold(first).plain(more)
        }
    }
}

fn verdict(fit: &Fit) -> Text {
    let figures =
        format!("(χ² = {:.2}, {} degrees of freedom, p = {})", fit.chi_square, fit.freedom, probability(fit.p))
            .replace("1 degrees", "1 degree");
    let often = match (fit.p * 1000.0).round() {
        thousandth if thousandth < 1.0 => "less than 0.1% of the time".to_owned(),
        thousandth if thousandth < 10.0 => format!("about 0.{thousandth}% of the time"),
        _ => format!("about {}% of the time", (fit.p * 100.0).round()),
    };
    let text = match fit.p {
        p if p < SIGNIFICANCE_LEVEL => Text::new().bold("This doesn't fit the weights.").plain(" "),
        p if p < UNUSUAL => Text::new().bold("This is unusual.").plain(" "),
        _ => Text::new().bold("This fits the weights.").plain(" "),
    };
    let text = text.plain(format!("A difference this large would arise by chance {often} {figures}."));
    if fit.reliable { text } else { text.plain(" With so few users, this test isn't reliable.") }
}

fn probability(p: f64) -> String {
    if p < 0.001 { "under 0.001".to_owned() } else { format!("{p:.3}") }
}

pub(crate) fn fit_of(test: &Test, tally: &Tally) -> Option<Fit> {
    let counts: Vec<_> = rows(test, tally).iter().zip(&test.conditions).map(|(row, s)| (s.weight, row.count)).collect();
    fit::test(&counts)
}

fn rows(test: &Test, tally: &Tally) -> Vec<Row> {
    let drawn = tally.drawn();
    let weights: f64 = test.conditions.iter().map(|share| share.weight).sum();
    let count = |code: &str| tally.draws.iter().find(|(known, _)| known == code).map_or(0, |(_, count)| *count);
    let row = |share: &Share| Row {
        name: share.code.clone(),
        count: count(&share.code),
        expected: if weights > 0.0 { drawn as f64 * share.weight / weights } else { 0.0 },
    };
    test.conditions.iter().map(row).collect()
}

fn counts(test: &Test, tally: &Tally) -> String {
    let words: Vec<_> = rows(test, tally).iter().map(|row| format!("{} {}", row.name, row.count)).collect();
    match &test.place.group {
        Some(kind) => format!("{} by {kind}", words.join(", ")),
        None => words.join(", "),
    }
}
