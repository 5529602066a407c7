//! The replies about a test of consistency rules.

use countersign_core::{
    ids::UserId,
    reply::{Card, Choice, Fact, Part, Reply, Text},
};

use crate::{
    testing::{
        consistency::{MAX_DURATION, Step, Test, TestProgress},
        expected::{Afterwards, CheckedObservation, Consistency, Expected, Phase, Rules, Visitor, judge},
    },
    upgrade::{
        experiment::{Ending, View},
        participants::Enrollment,
        status::Status,
    },
};

/// The maximum number of differences that a sentence names. The table marks all of them.
const MAX_DIFFERENCES: usize = 3;

/// Returns the card of a test, with all steps in order.
pub fn card(test: &Test, enrolled: Option<u64>) -> Card {
    let Test { experiment_name: name, place, first, rules, visitors, run: _ } = test;
    let at = super::outcomes::place(&place.site, Some(&place.target));
    let mut facts =
        vec![Fact::new("Rules", in_words(rules, place.group.as_deref())), Fact::new("Decision point", at.as_str())];
    facts.extend(steps(test));
    if *first > Phase::Before {
        facts.push(Fact::new("Left out", left_out(*first)));
    }
    let users = if visitors.len() == 1 { "1 test user".to_owned() } else { format!("{} test users", visitors.len()) };
    facts.push(Fact::new(
        "Limits",
        format!("{users}, this experiment only, at most {} minutes", MAX_DURATION.as_secs() / 60),
    ));
    let mut warnings = Vec::new();
    if *first == Phase::Before {
        warnings.push(Text::from(format!("While it runs, real users at {at} are enrolled too.")));
    }
    if *first < Phase::Paused {
        let new = if rules.by_group { "new groups" } else { "newcomers" };
        warnings
            .push(Text::from(format!("It is paused at the end: {new} get no condition, and {}.", afterwards(rules))));
    }
    warnings.push(Text::from("UpGrade removes enrolled users only together with the experiment."));
    let real = enrolled.filter(|enrolled| *enrolled > 0);
    if let Some(real) = real {
        let are = if real == 1 { "1 user is".to_owned() } else { format!("{real} users are") };
        warnings.push(Text::from(format!("{are} already enrolled, so the data will be mixed.")));
    }
    let back = if *first < Phase::Paused { " I'll offer to undo that." } else { "" };
    Card {
        facts,
        warnings,
        notes: vec![Text::from(format!(
            "You can stop it midway; the experiment then keeps its status at that moment.{back}"
        ))],
        irreversible: real.is_some() && *first < Phase::Paused,
        ..Card::new(
            format!("Test the consistency rules of “{name}”?"),
            "Run the test",
            format!("Tested the consistency rules of “{name}”."),
        )
    }
}

fn steps(test: &Test) -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut before = test.first;
    for step in test.steps() {
        let nth = facts.len() + 1;
        facts.push(match step {
            Step::Enter(phase) => {
                let from = std::mem::replace(&mut before, phase);
                let what = if phase == Phase::Running { "Start experiment" } else { "Pause experiment" };
                Fact::change(format!("{nth}. {what}"), from.status().display(), phase.status().display())
            }
            Step::Ask(phase) => Fact::new(format!("{nth}. {}", while_it_is(phase)), who_visits(test, phase)),
            Step::Mark(_) => continue, // part of the visit
        });
    }
    facts
}

/// Returns the visitors of a phase in words: those who visit again, and the new ones.
fn who_visits(test: &Test, phase: Phase) -> Text {
    let (new, known): (Vec<_>, Vec<_>) = test.visitors_in(phase).partition(|(_, visitor)| visitor.arrives == phase);
    let mut text = Text::from(match (known.is_empty(), new.len()) {
        (true, 1) => "visit by ",
        (true, _) => "visits by ",
        (false, _) => "visits by the same users, and by ",
    });
    for (nth, (_, visitor)) in new.iter().enumerate() {
        text = if nth > 0 { text.plain(", ") } else { text }.code(&visitor.user);
        text = text.plain(format!(" ({})", self::visitor(visitor)));
    }
    text
}

fn while_it_is(phase: Phase) -> &'static str {
    match phase {
        Phase::Before => "Before the start",
        Phase::Running => "While it runs",
        Phase::Paused => "While it is paused",
    }
}

fn left_out(first: Phase) -> &'static str {
    match first {
        Phase::Before => "nothing",
        Phase::Running => "visits before the start, since it is already running",
        Phase::Paused => "visits before the start and while it runs, since it is already paused",
    }
}

fn in_words(rules: &Rules, kind: Option<&str>) -> String {
    let unit = kind.map_or("individual".to_owned(), |kind| format!("by group ({kind})"));
    let consistency = match rules.consistency {
        Consistency::Individual => "individual",
        Consistency::Group => "group",
        Consistency::Experiment => "experiment",
    };
    let early = match (rules.early_stay_out, rules.consistency) {
        (true, Consistency::Experiment) => "early visitors are included anyway",
        (true, Consistency::Individual | Consistency::Group) => "early visitors are excluded",
        (false, _) => "early visitors are included",
    };
    format!("{unit}; consistency {consistency}; {early}; after enrollment ends, {}", afterwards(rules))
}

fn afterwards(rules: &Rules) -> String {
    match &rules.afterwards {
        Afterwards::Keep => "enrolled users keep their condition".to_owned(),
        Afterwards::Named(code) => format!("enrolled users get {code}"),
        Afterwards::Default => "all users get the application's default".to_owned(),
    }
}

/// Returns the next step in words, while the test runs.
pub fn under_way(next: Step) -> Text {
    Text::from(match next {
        Step::Enter(Phase::Running) => "starting it",
        Step::Enter(_) => "pausing it",
        Step::Ask(Phase::Before) | Step::Mark(Phase::Before) => "visits before the start",
        Step::Ask(Phase::Running) | Step::Mark(Phase::Running) => "visits while it runs",
        Step::Ask(Phase::Paused) | Step::Mark(Phase::Paused) => "visits while it is paused",
    })
}

/// Returns the result, in one or two sentences.
pub fn summary(test: &Test, progress: &TestProgress) -> Text {
    let name = &test.experiment_name;
    let text = Text::from("Tested the consistency rules of “").bold(name).plain("”: ").plain(verdict(test, progress));
    text.plain(format!(" It is {} now.", test.phase_after(progress.next).status().display()))
}

fn verdict(test: &Test, progress: &TestProgress) -> String {
    let all = judge(&test.rules, &test.visitors, &progress.observations);
    let differ: Vec<_> = all.iter().filter(|one| !one.fits()).collect();
    match (differ.len(), all.len()) {
        (0, 1) => "the 1 observation matches the rules.".to_owned(),
        (0, all) => format!("all {all} observations match the rules."),
        (some, all) => {
            let named: Vec<_> = differ.iter().take(MAX_DIFFERENCES).map(|one| difference(test, one)).collect();
            let more =
                if some > MAX_DIFFERENCES { format!("; and {} more", some - MAX_DIFFERENCES) } else { String::new() };
            let verb = if some == 1 { "differs" } else { "differ" };
            format!("{some} of {all} observations {verb} from the rules: {}{more}.", named.join("; "))
        }
    }
}

fn difference(test: &Test, one: &CheckedObservation) -> String {
    let who = visitor(&test.visitors[one.observation.visitor]);
    let phase = while_it_is(one.observation.phase).to_lowercase();
    format!("{phase}, the {who} got {} instead of {}", observed(one), expected(test, one))
}

/// Says that the test ended early: stopped by a person, or by the time limit if `by` is `None`.
pub fn stopped(test: &Test, progress: &TestProgress, by: Option<&UserId>) -> Text {
    let text = match by {
        Some(by) => Text::from("Stopped by ").person(by.clone()),
        None => Text::from(format!("Stopped after {} minutes (the time limit),", MAX_DURATION.as_secs() / 60)),
    };
    let status = test.phase_after(progress.next).status();
    let text = text.plain(format!(" after {}. “", steps_made(test, progress)));
    let text = text.bold(&test.experiment_name).plain(format!("” is {} now", status.display()));
    match progress.observations.is_empty() {
        true => text.plain(", and nobody was enrolled."),
        false => text.plain(format!("; so far {}", verdict(test, progress))),
    }
}

/// Returns the number of finished steps, as the card counts them: `3 of 5 steps`.
fn steps_made(test: &Test, progress: &TestProgress) -> String {
    format!("{} of {} steps", test.lines(progress.next), test.lines(test.steps().len()))
}

/// Says that the test cannot continue. `status` is the present status of the experiment, if it could be
/// read.
pub fn broken_off(test: &Test, progress: &TestProgress, why: Text, status: Option<Status>) -> Text {
    let text = Text::from(format!("Ended early after {}. ", steps_made(test, progress))).join(why);
    match status {
        Some(status) => text.plain(" “").bold(&test.experiment_name).plain(format!("” is {} now.", status.display())),
        None => {
            let likely = test.phase_after(progress.next).status().display();
            text.plain(" Its current status can't be read; the last known status is ").plain(likely).plain(".")
        }
    }
}

/// Says that a repeated request got no answer.
pub fn no_answer() -> Text {
    Text::from("The platform isn't answering.")
}

/// Says that another person changed the status.
pub fn changed_meanwhile() -> Text {
    Text::from("Someone changed its status in the meantime.")
}

/// Adds the table of results to the reply, and buttons to put the experiment back.
pub fn report(reply: Reply, test: &Test, progress: &TestProgress) -> Reply {
    let mut reply = seen_so_far(reply, test, progress);
    let back = ways_back(test, test.phase_after(progress.next));
    reply.choices.splice(0..0, back);
    reply
}

/// Adds the table of results to the reply.
pub fn seen_so_far(reply: Reply, test: &Test, progress: &TestProgress) -> Reply {
    let all = judge(&test.rules, &test.visitors, &progress.observations);
    if all.is_empty() {
        return reply;
    }
    let rows = all.iter().map(|one| {
        let result = match one.fits() {
            true => Text::from("✓ fits"),
            false => Text::from("✗ ").bold("differs"),
        };
        vec![
            Text::from(match one.observation.phase {
                Phase::Before => "Before start",
                Phase::Running => "Running",
                Phase::Paused => "Paused",
            }),
            Text::from(super::answers::capital(&visitor(&test.visitors[one.observation.visitor]))),
            Text::from(expected(test, one)),
            Text::from(observed(one)),
            result,
        ]
    });
    let columns = ["Phase", "Visitor", "Expected", "Observed", "Result"].map(str::to_owned).to_vec();
    let reply = reply.and(Part::Table { columns, rows: rows.collect() });
    reply.hint("“Nothing” means that the application shows its default.")
}

/// Returns the requests that put the experiment back into its status before the test, if there are any.
fn ways_back(test: &Test, now: Phase) -> Vec<Choice> {
    let name = format!("“{}”", test.experiment_name);
    let choice = |label: &str, says: String| Choice { label: label.to_owned(), says };
    let resume = choice("Resume experiment", format!("resume {name}"));
    match (test.first, now) {
        (Phase::Before, Phase::Paused) => {
            vec![choice("Set to inactive", format!("set {name} back to inactive")), resume]
        }
        (Phase::Running, Phase::Paused) => vec![resume],
        (Phase::Before, Phase::Running) => vec![choice("Stop experiment", format!("stop {name}"))],
        _ => Vec::new(),
    }
}

fn visitor(visitor: &Visitor) -> String {
    let kind = match visitor.arrives {
        Phase::Before => "early visitor",
        Phase::Running => "later visitor",
        Phase::Paused => "newcomer",
    };
    match visitor.group {
        None => kind.to_owned(),
        Some(group) => format!("{kind}, group {group}"),
    }
}

fn expected(test: &Test, one: &CheckedObservation) -> String {
    match (&one.expected, &one.drawn) {
        (Expected::Nothing, _) => "nothing".to_owned(),
        (Expected::Drawn, _) => "any condition".to_owned(),
        (Expected::Same, Some(code)) if test.rules.by_group => format!("{code} (as its group)"),
        (Expected::Same, Some(code)) => format!("{code} again"),
        (Expected::Same, None) => "the condition from before".to_owned(),
        (Expected::Named(code), _) => code.clone(),
    }
}

fn observed(one: &CheckedObservation) -> String {
    one.observation.got.clone().unwrap_or_else(|| "nothing".to_owned())
}

/// Says that a within-subjects design has no consistency rule.
pub fn within_subjects(name: &str) -> Reply {
    Reply::text(
        Text::from("In “").bold(name).plain(
            "” each user gets every condition in turn (within subjects), so there is no consistency rule to test.",
        ),
    )
}

/// Says that a test cannot begin from this status.
pub fn not_from(name: &str, status: Status) -> Reply {
    let is = Text::from("“").bold(name).plain(format!("” is {}", status.display()));
    match status {
        Status::Scheduled => {
            let text = is.plain(" to start. Unschedule it before testing it.");
            Reply::text(text).choice("Unschedule experiment", format!("unschedule “{name}”"))
        }
        _ => Reply::text(is.plain(
            ". The test needs an experiment that can be started and paused, which isn't possible from this status.",
        ))
        .choice("List experiments", "list experiments"),
    }
}

/// Says that the combined effect of these rules is not known.
pub fn unknown_rules(view: &View) -> Reply {
    let rule = view.consistency_rule.as_deref().unwrap_or("none");
    Reply::text(Text::from("“").bold(&view.name).plain(format!(
        "” has the assignment unit {} and the consistency rule {rule}. The expected result of this combination isn't defined, so there's nothing to compare with.",
        view.assignment_unit
    )))
    .choice("Use individual consistency", format!("set the consistency rule of “{}” to individual", view.name))
}

/// Says that only listed people take part, which simulated users are not.
pub fn only_listed(name: &str) -> Reply {
    Reply::text(
        Text::from("Only users on the inclusion list are included in “")
            .bold(name)
            .plain("”. Test users aren't on it, so they would get no condition under any rule."),
    )
}

/// Says that another experiment takes some of the users.
pub fn shared(name: &str, other: &View) -> Reply {
    Reply::text(
        Text::from("“").bold(&other.name).plain(format!("”, {}, shares a decision point with “", other.state.display()))
            .bold(name)
            .plain("”. Each user takes part in only one of the two there, so the test couldn't show whether the rules hold."),
    )
    .choice("Show that experiment", format!("show “{}”", other.name))
}

/// Says that the experiment would pause automatically before the test is over.
pub fn ends_too_soon(view: &View, test: &Test, enrolled: Option<&Enrollment>) -> Option<Reply> {
    let new_users = test.visitors.iter().filter(|visitor| visitor.arrives <= Phase::Running).count() as u64;
    let new_groups = if test.rules.by_group { new_users.min(2) } else { 0 };
    let Ending { user_count, group_count } = view.ending;
    let reached = |limit: Option<u64>, present: Option<u64>, new: u64| {
        limit.filter(|limit| new > 0 && *limit > 0 && present.unwrap_or(0) + new >= *limit)
    };
    let limit = match reached(user_count, enrolled.map(|e| e.users + e.test_users), new_users) {
        Some(users) => format!("{users} users"),
        None => format!("{} groups", reached(group_count, enrolled.map(|e| e.groups), new_groups)?),
    };
    let text = Text::from("“").bold(&view.name).plain(format!(
        "” ends enrollment automatically at {limit}. The test users would reach that limit and pause it before the test is over."
    ));
    Some(Reply::text(text))
}
