//! The initial state of the stand-in: the configured contexts, the known metrics, and the experiments of the
//! playground.
//!
//! The experiments are plausible but not real. There are some with each common status, so that
//! every question of a newcomer has an answer.

use std::time::Duration;

use countersign_core::clock::Timestamp;
use serde_json::{Value, json};

use super::{
    Version, assign,
    routes::create,
    world::{Experiment, Stamp, State, User, Visit, World, fresh_id},
};

/// Returns the values that the server's administrator configured for each context.
pub(crate) fn context_metadata() -> Value {
    json!({
        "assign-prog": {
            "CONDITIONS": ["control", "variant", "concrete", "abstract"],
            "GROUP_TYPES": ["schoolId", "classId", "instructorId"],
            "EXP_IDS": ["absolute_value_plot_equality", "area_model", "fraction_intro"],
            "EXP_POINTS": ["SelectSection", "SelectProblem"],
        },
        "mathstream": {
            "CONDITIONS": ["control", "question-hint-default", "question-hint-tutorbot"],
            "GROUP_TYPES": ["classId", "schoolId"],
            "EXP_IDS": ["question-hint", "lesson-video"],
            "EXP_POINTS": ["lesson-stream", "lesson-quiz"],
        },
        "livehint-ai": {
            "CONDITIONS": ["control", "tutor-a", "tutor-b"],
            "GROUP_TYPES": ["classId"],
            "EXP_IDS": ["chat-tone"],
            "EXP_POINTS": ["chat"],
        },
    })
}

/// Returns the names of the contexts.
pub(crate) fn contexts() -> Vec<String> {
    context_metadata().as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
}

/// Returns true if a context is configured. Case matters.
pub(crate) fn knows_context(name: &str) -> bool {
    context_metadata().get(name).is_some()
}

/// Returns a metric that the server knows, without its stamp.
pub(crate) fn metric(key: &str) -> Option<Value> {
    let (kind, allowed) = match key {
        "totalTimeSeconds" => ("continuous", Value::Null),
        "workspaceCompletionStatus" => ("categorical", json!(["GRADUATED", "PROMOTED"])),
        _ => return None,
    };
    Some(json!({ "key": key, "type": kind, "allowedData": allowed, "context": ["assign-prog"] }))
}

/// A description of an experiment to create.
struct Plan<'a> {
    name: &'a str,
    description: &'a str,
    context: &'a str,
    tags: &'a [&'a str],
    at: (&'a str, &'a str),
    /// The code and weight of each condition.
    conditions: &'a [(&'a str, f64)],
    /// The group type, if conditions are assigned to groups.
    group: Option<&'a str>,
    /// The changes of its status, each with the number of days since then.
    life: &'a [(State, u64)],
    age_days: u64,
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Creates the experiments of the playground.
pub(crate) fn plant(world: &mut World) {
    use State::{Archived, Cancelled, Enrolling, EnrollmentComplete};
    let even = [("control", 50.0), ("variant", 50.0)];
    let hints = [("control", 34.0), ("question-hint-default", 33.0), ("question-hint-tutorbot", 33.0)];
    let plans = [
        Plan {
            name: "Concrete Fractions",
            description: "Concrete against abstract pictures in the introduction to fractions.",
            context: "assign-prog",
            tags: &["fractions", "2025"],
            at: ("SelectProblem", "fraction_intro"),
            conditions: &[("concrete", 50.0), ("abstract", 50.0)],
            group: None,
            life: &[(Enrolling, 190), (EnrollmentComplete, 130), (Cancelled, 120), (Archived, 90)],
            age_days: 200,
        },
        Plan {
            name: "Chat Tone",
            description: "Two tones of voice for the tutor. Stopped early: both groups asked for the old one back.",
            context: "livehint-ai",
            tags: &["tutor"],
            at: ("chat", "chat-tone"),
            conditions: &[("tutor-a", 50.0), ("tutor-b", 50.0)],
            group: None,
            life: &[(Enrolling, 60), (Cancelled, 52)],
            age_days: 64,
        },
        Plan {
            name: "Running Test",
            description: "A dry run of the enrolment pipeline.",
            context: "assign-prog",
            tags: &["test"],
            at: ("SelectSection", "area_model"),
            conditions: &even,
            group: None,
            life: &[(Enrolling, 21), (EnrollmentComplete, 7)],
            age_days: 30,
        },
        Plan {
            name: "Lesson Video Hints",
            description: "Do hints beside a lesson's video help with the quiz after it?",
            context: "mathstream",
            tags: &["hints", "video"],
            at: ("lesson-stream", "lesson-video"),
            conditions: &hints,
            group: None,
            life: &[(Enrolling, 12)],
            age_days: 20,
        },
        Plan {
            name: "Class Hint Rollout",
            description: "Hints class by class, so that neighbours see the same.",
            context: "mathstream",
            tags: &["hints"],
            at: ("lesson-quiz", "question-hint"),
            conditions: &hints,
            group: Some("classId"),
            life: &[(Enrolling, 5)],
            age_days: 9,
        },
        Plan {
            name: "Math Hints",
            description: "Worked hints when the graph of an absolute value is compared.",
            context: "assign-prog",
            tags: &["hints", "algebra"],
            at: ("SelectSection", "absolute_value_plot_equality"),
            conditions: &even,
            group: None,
            life: &[],
            age_days: 2,
        },
    ];
    let today = world.now;
    world.authenticated = true;
    for plan in &plans {
        add(world, plan, today);
    }
    world.now = today;
}

/// Creates a simple experiment with this status, and returns its id.
pub(crate) fn plain(world: &mut World, name: &str, status: &str) -> String {
    with_texts(world, name, status, ("", &[], "control"))
}

/// Adds an experiment like [`plain`], with this text in its description, a tag and a condition.
pub(crate) fn written(world: &mut World, name: &str, status: &str, text: &str) -> String {
    with_texts(world, name, status, (text, &[text], text))
}

fn with_texts(
    world: &mut World,
    name: &str,
    status: &str,
    (description, tags, condition): (&str, &[&str], &str),
) -> String {
    let state = State::read(status, world.version).unwrap_or_else(|| panic!("no status is called `{status}`"));
    let plan = Plan {
        name,
        description,
        context: "assign-prog",
        tags,
        at: ("SelectSection", "absolute_value_plot_equality"),
        conditions: &[(condition, 50.0), ("variant", 50.0)],
        group: None,
        life: &[],
        age_days: 0,
    };
    let today = world.now;
    let id = add(world, &plan, today);
    if state != State::Inactive {
        world.change_state(&id, state);
    }
    id
}

/// Enrolls users of an application in the newest experiment with this name, at its first decision point.
pub(crate) fn enroll(world: &mut World, name: &str, users: usize) {
    let named = world.experiments.iter().rev().find(|experiment| experiment.row.name == name);
    let Some((id, point)) = named.and_then(|own| Some((own.row.id.clone(), own.points.first()?.id.clone()))) else {
        return;
    };
    let now = world.now;
    for number in 1..=users {
        let user = format!("learner-{number:04}");
        let new = || User { stamp: Stamp::new(now), group: None, working_group: None };
        world.users.entry(user.clone()).or_insert_with(new);
        assign::enrol(world, &id, &point, &user, true);
    }
}

fn days_before(today: Timestamp, days: u64) -> Timestamp {
    let span = i64::try_from(DAY.as_millis()).unwrap_or(0) * i64::try_from(days).unwrap_or(0);
    Timestamp(today.millis() - span)
}

fn add(world: &mut World, plan: &Plan<'_>, today: Timestamp) -> String {
    world.now = days_before(today, plan.age_days);
    let unit = if plan.group.is_some() { "group" } else { "individual" };
    let body = json!({
        "name": plan.name, "description": plan.description, "context": [plan.context], "state": "inactive",
        "consistencyRule": unit, "assignmentUnit": unit, "group": plan.group, "postExperimentRule": "continue",
        "tags": plan.tags, "filterMode": "includeAll", "type": "Simple",
    });
    let id = fresh_id();
    let row = create::read_row(world, &body, &id, Stamp::new(world.now));
    let conditions = plan.conditions.iter().zip(1..).map(|((code, weight), order)| {
        let sent = json!({ "conditionCode": code, "assignmentWeight": weight, "order": order });
        create::read_condition(world, &sent, fresh_id(), &[])
    });
    let point = json!({ "site": plan.at.0, "target": plan.at.1, "order": 1, "excludeIfReached": false });
    // In the 6.2 line every experiment has one list of each kind.
    let empty = json!({ "context": [plan.context], "list": { "segment": { "type": "private" } } });
    let lists = |what: &str| match world.version {
        Version::V6_2 => create::read_lists(world, &empty, "list", what, &id),
        Version::V6_5 => Vec::new(),
    };
    let experiment = Experiment {
        row,
        conditions: conditions.collect(),
        points: vec![create::read_point(world, &point, fresh_id())],
        payloads: Vec::new(),
        factors: Vec::new(),
        stratification_factor: None,
        queries: Vec::new(),
        logs: Vec::new(),
        inclusion: lists("Inclusion"),
        exclusion: lists("Exclusion"),
    };
    world.experiments.push(experiment);
    world.log("experimentCreated", json!({ "experimentId": id, "experimentName": plan.name }));
    for (state, days) in plan.life {
        world.now = days_before(today, *days);
        world.change_state(&id, *state);
        if *state == State::Enrolling {
            visit(world, plan, &id, today);
        }
    }
    world.now = today;
    id
}

/// Adds visits of 24 students in the days after the start.
fn visit(world: &mut World, plan: &Plan<'_>, id: &str, today: Timestamp) {
    let started = world.now;
    let Some(point) = world.experiment(id).map(|experiment| experiment.points[0].id.clone()) else { return };
    for number in 1..=24_u64 {
        let user = format!("student-{number:03}");
        let class = format!("class-{}", number % 4 + 1);
        let groups = |group: &str| [("classId".to_owned(), group.to_owned())].into_iter().collect();
        world.users.entry(user.clone()).or_insert_with(|| User {
            stamp: Stamp::new(started),
            group: Some([("classId".to_owned(), vec![class.clone()])].into_iter().collect()),
            working_group: Some(groups(&class)),
        });
        let hours = Duration::from_secs(60 * 60) * u32::try_from(number * 3).unwrap_or(0);
        world.now = (started + hours).min(today);
        world.visits.push(Visit {
            id: fresh_id(),
            user: user.clone(),
            site: plan.at.0.to_owned(),
            target: plan.at.1.to_owned(),
            experiment: Some(id.to_owned()),
            condition: None,
            marks: 1,
        });
        assign::enrol(world, id, &point, &user, true);
    }
    world.now = started;
}
