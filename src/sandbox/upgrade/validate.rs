//! The checks of the platform's validator on request bodies.
//!
//! It checks types and enumerations but hardly anything that a person would call a mistake: the
//! values of weights, sites, targets and group types are not checked. Each violation has the format
//! of the 6.2 line; since 6.3, only the dry run reports them. Semantic rules (contexts, the
//! reserved code) are in [`super::routes`].

use serde_json::{Map, Value, json};

use super::{Version, world::is_id};

/// A property and the constraints that it or its content violates.
#[derive(Clone, Debug)]
pub(crate) struct Violation {
    property: String,
    children: Vec<Violation>,
    constraints: Vec<(&'static str, String)>,
}

impl Violation {
    /// Creates a violation of the property itself.
    pub(crate) fn new(property: &str, constraints: &[(&'static str, String)]) -> Self {
        Self { property: property.to_owned(), children: Vec::new(), constraints: constraints.to_vec() }
    }

    fn nested(property: &str, children: Vec<Self>) -> Self {
        Self { property: property.to_owned(), children, constraints: Vec::new() }
    }

    /// Returns the violation in the format of the 6.2 line.
    pub(crate) fn to_json(&self) -> Value {
        let mut value = json!({
            "property": self.property,
            "children": self.children.iter().map(Self::to_json).collect::<Vec<_>>(),
        });
        if !self.constraints.is_empty() {
            let constraints: Map<_, _> =
                self.constraints.iter().map(|(name, text)| ((*name).to_owned(), json!(text))).collect();
            value["constraints"] = Value::Object(constraints);
        }
        value
    }

    /// Returns the violation in the format of the dry run.
    pub(crate) fn sentence(&self) -> String {
        let mut lines = Vec::new();
        self.lines("", &mut lines);
        lines.join(" - ")
    }

    fn lines(&self, parent: &str, lines: &mut Vec<String>) {
        let here = match (parent, self.property.parse::<u32>()) {
            (_, Ok(index)) => format!("{parent}[{index}]"),
            ("", _) => self.property.clone(),
            _ => format!("{parent}.{}", self.property),
        };
        if !self.constraints.is_empty() {
            let names: Vec<_> = self.constraints.iter().map(|(name, _)| *name).collect();
            lines.push(format!("property {here} has failed the following constraints: {} \n", names.join(", ")));
        }
        for child in &self.children {
            child.lines(&here, lines);
        }
    }
}

/// A rule for a value.
#[derive(Clone, Copy)]
enum Rule {
    NotEmpty,
    Text,
    Number,
    Whole,
    Flag,
    List,
    AtLeastOne,
    EachText,
    OneOf(&'static [&'static str]),
    Id,
    Date,
    TwoCharacters,
}

use Rule::{AtLeastOne, Date, EachText, Flag, Id, List, NotEmpty, Number, OneOf, Text, TwoCharacters, Whole};

impl Rule {
    /// Returns the constraint that the value violates, if any.
    fn broken_by(self, name: &str, value: &Value) -> Option<(&'static str, String)> {
        let list = value.as_array();
        let (holds, constraint, text) = match self {
            NotEmpty => (!value.is_null() && value != "", "isNotEmpty", format!("{name} should not be empty")),
            Text => (value.is_string(), "isString", format!("{name} must be a string")),
            Number => (
                value.is_number(),
                "isNumber",
                format!("{name} must be a number conforming to the specified constraints"),
            ),
            Whole => (value.is_i64() || value.is_u64(), "isInt", format!("{name} must be an integer number")),
            Flag => (value.is_boolean(), "isBoolean", format!("{name} must be a boolean value")),
            List => (list.is_some(), "isArray", format!("{name} must be an array")),
            AtLeastOne => (
                list.is_some_and(|items| !items.is_empty()),
                "arrayMinSize",
                format!("{name} must contain at least 1 elements"),
            ),
            EachText => (
                list.is_some_and(|items| items.iter().all(Value::is_string)),
                "isString",
                format!("each value in {name} must be a string"),
            ),
            OneOf(values) => (
                value.as_str().is_some_and(|text| values.contains(&text)),
                "isEnum",
                format!("{name} must be one of the following values: {}", values.join(", ")),
            ),
            Id => (value.as_str().is_some_and(is_id), "isUuid", format!("{name} must be a UUID")),
            Date => (
                value.as_str().is_some_and(|text| text.parse::<jiff::Timestamp>().is_ok() || is_day(text)),
                "isDateString",
                format!("{name} must be a valid ISO 8601 date string"),
            ),
            TwoCharacters => (
                value.as_str().is_some_and(|t| t.len() == 2 && t.bytes().all(|b| b.is_ascii_alphanumeric())),
                "isAlphanumeric",
                format!("{name} must be two letters or digits"),
            ),
        };
        (!holds).then_some((constraint, text))
    }
}

fn is_day(text: &str) -> bool {
    text.parse::<jiff::civil::Date>().is_ok()
}

/// A collector of violations in one object.
struct Checker<'a> {
    body: &'a Value,
    found: Vec<Violation>,
}

impl<'a> Checker<'a> {
    fn of(body: &'a Value) -> Self {
        Self { body, found: Vec::new() }
    }

    fn needs(&mut self, name: &str, rules: &[Rule]) -> &mut Self {
        let value = &self.body[name];
        let broken: Vec<_> = rules.iter().filter_map(|rule| rule.broken_by(name, value)).collect();
        if !broken.is_empty() {
            self.found.push(Violation::new(name, &broken));
        }
        self
    }

    fn may_have(&mut self, name: &str, rules: &[Rule]) -> &mut Self {
        if self.body[name].is_null() { self } else { self.needs(name, rules) }
    }

    fn each(&mut self, name: &str, check: fn(&Value) -> Vec<Violation>) -> &mut Self {
        let items = self.body[name].as_array().into_iter().flatten().enumerate();
        let children: Vec<_> = items
            .filter_map(|(at, item)| {
                let found = check(item);
                (!found.is_empty()).then(|| Violation::nested(&at.to_string(), found))
            })
            .collect();
        if !children.is_empty() {
            self.found.push(Violation::nested(name, children));
        }
        self
    }

    fn inside(&mut self, name: &str, check: fn(&Value) -> Vec<Violation>) -> &mut Self {
        if !self.body[name].is_null() {
            let found = check(&self.body[name]);
            if !found.is_empty() {
                self.found.push(Violation::nested(name, found));
            }
        }
        self
    }

    fn finish(&mut self) -> Vec<Violation> {
        std::mem::take(&mut self.found)
    }
}

const OLD_STATES: &[&str] =
    &["inactive", "preview", "scheduled", "enrolling", "enrollmentComplete", "cancelled", "archived", "draft"];
const STATES: &[&str] = &[
    "inactive",
    "preview",
    "scheduled",
    "enrolling",
    "enrollmentComplete",
    "cancelled",
    "archived",
    "draft",
    "running",
    "paused",
    "completed",
];
const RULES: &[&str] = &["individual", "experiment", "group"];
const UNITS: &[&str] = &["individual", "group", "within-subjects"];
const ORDERS: &[&str] = &["random", "random round robin", "ordered round robin"];
const ALGORITHMS: &[&str] = &["random", "stratified random sampling", "ts_configurable"];

fn states(version: Version) -> Rule {
    OneOf(if version == Version::V6_2 { OLD_STATES } else { STATES })
}

/// Checks an experiment to create or to replace.
pub(crate) fn experiment(body: &Value, version: Version) -> Vec<Violation> {
    let mut check = Checker::of(body);
    check
        .may_have("id", &[Text])
        .needs("name", &[NotEmpty, Text])
        .may_have("description", &[Text])
        .needs("context", &[EachText, AtLeastOne, List, NotEmpty])
        .needs("state", &[states(version), NotEmpty])
        .may_have("startOn", &[Date]);
    if body["assignmentUnit"] == "within-subjects" {
        check.needs("conditionOrder", &[OneOf(ORDERS), NotEmpty]);
    } else {
        check.needs("consistencyRule", &[OneOf(RULES), NotEmpty]);
    }
    check.needs("assignmentUnit", &[OneOf(UNITS), NotEmpty]);
    unit_fits_group(body, &mut check.found);
    check
        .needs("postExperimentRule", &[OneOf(&["continue", "revert", "assign"]), NotEmpty])
        .may_have("endOn", &[Date])
        .may_have("revertTo", &[Text])
        .needs("tags", &[EachText, List, NotEmpty])
        .may_have("group", &[Text])
        .may_have("assignmentAlgorithm", &[OneOf(ALGORITHMS)])
        .needs("filterMode", &[OneOf(&["includeAll", "excludeAll"]), NotEmpty])
        .inside("enrollmentCompleteCondition", ending)
        .needs("conditions", &[List, NotEmpty])
        .each("conditions", condition)
        .needs("partitions", &[List, NotEmpty])
        .each("partitions", point)
        .may_have("conditionPayloads", &[List])
        .each("conditionPayloads", payload);
    for lists in ["experimentSegmentInclusion", "experimentSegmentExclusion"] {
        if version == Version::V6_2 {
            check.needs(lists, &[NotEmpty]);
        } else {
            check.may_have(lists, &[List]).each(lists, list);
        }
    }
    check.needs("type", &[OneOf(&["Simple", "Factorial"]), NotEmpty]).finish()
}

/// Checks that a group type is given if and only if the unit is a group.
fn unit_fits_group(body: &Value, found: &mut Vec<Violation>) {
    let Some(unit) = body["assignmentUnit"].as_str() else { return };
    let named = body["group"].as_str().is_some_and(|group| !group.is_empty());
    if (unit == "group") != named {
        let text = "Group should be defined only when the assignment unit is group".to_owned();
        found.push(Violation::new("assignmentUnit", &[("isAssignmentUnitGroupConsistent", text)]));
    }
}

fn condition(body: &Value) -> Vec<Violation> {
    Checker::of(body)
        .needs("id", &[Text, NotEmpty])
        .may_have("twoCharacterId", &[TwoCharacters])
        .may_have("name", &[Text])
        .may_have("description", &[Text])
        .needs("conditionCode", &[Text, NotEmpty])
        .needs("assignmentWeight", &[Number, NotEmpty])
        .needs("order", &[Whole, NotEmpty])
        .finish()
}

fn point(body: &Value) -> Vec<Violation> {
    Checker::of(body)
        .needs("id", &[Text, NotEmpty])
        .may_have("twoCharacterId", &[TwoCharacters])
        .needs("site", &[Text, NotEmpty])
        .may_have("target", &[Text])
        .may_have("description", &[Text])
        .needs("order", &[Whole, NotEmpty])
        .needs("excludeIfReached", &[Flag, NotEmpty])
        .finish()
}

fn payload(body: &Value) -> Vec<Violation> {
    Checker::of(body)
        .needs("id", &[Text, NotEmpty])
        .needs("parentCondition", &[Text, NotEmpty])
        .needs("decisionPoint", &[Text, NotEmpty])
        .inside("payload", |payload| {
            Checker::of(payload)
                .needs("type", &[OneOf(&["string", "json", "csv"]), NotEmpty])
                .needs("value", &[Text])
                .finish()
        })
        .finish()
}

fn ending(body: &Value) -> Vec<Violation> {
    Checker::of(body).may_have("userCount", &[Number]).may_have("groupCount", &[Number]).finish()
}

fn list(body: &Value) -> Vec<Violation> {
    Checker::of(body)
        .needs("segment", &[NotEmpty])
        .inside("segment", |segment| {
            Checker::of(segment)
                .needs("type", &[OneOf(&["public", "private", "global_exclude"]), NotEmpty])
                .may_have("individualForSegment", &[List])
                .each("individualForSegment", |user| Checker::of(user).needs("userId", &[Text, NotEmpty]).finish())
                .may_have("groupForSegment", &[List])
                .each("groupForSegment", |group| {
                    Checker::of(group).needs("type", &[Text]).needs("groupId", &[Text]).finish()
                })
                .may_have("subSegments", &[List])
                .finish()
        })
        .finish()
}

/// Checks a change of status.
pub(crate) fn state_change(body: &Value, version: Version) -> Vec<Violation> {
    Checker::of(body)
        .needs("experimentId", &[Id, NotEmpty])
        .needs("state", &[states(version)])
        .may_have("scheduleDate", &[Date])
        .finish()
}

/// Checks a search.
pub(crate) fn search(body: &Value) -> Vec<Violation> {
    Checker::of(body)
        .needs("skip", &[Number, NotEmpty])
        .needs("take", &[Number, NotEmpty])
        .inside("searchParams", |search| {
            Checker::of(search)
                .needs("key", &[OneOf(&["all", "name", "status", "tag", "context", "id"])])
                .needs("string", &[Text, NotEmpty])
                .finish()
        })
        .inside("sortParams", |sort| {
            Checker::of(sort)
                .needs("key", &[OneOf(&["name", "state", "updatedAt", "postExperimentRule"])])
                .needs("sortAs", &[OneOf(&["ASC", "DESC"])])
                .finish()
        })
        .finish()
}

/// Checks required text fields.
pub(crate) fn texts(body: &Value, names: &[&str]) -> Vec<Violation> {
    let mut check = Checker::of(body);
    for name in names {
        check.needs(name, &[Text, NotEmpty]);
    }
    check.finish()
}

/// Checks required lists of texts.
pub(crate) fn text_lists(body: &Value, names: &[&str]) -> Vec<Violation> {
    let mut check = Checker::of(body);
    for name in names {
        check.needs(name, &[EachText, List, NotEmpty]);
    }
    check.finish()
}

/// Checks the period of a statistic by day.
pub(crate) fn by_day(body: &Value) -> Vec<Violation> {
    const PERIODS: &[&str] = &[
        "last_seven_days",
        "last_two_weeks",
        "last_one_month",
        "last_three_months",
        "last_six_months",
        "last_twelve_months",
        "total",
    ];
    Checker::of(body)
        .needs("experimentId", &[Text, NotEmpty])
        .needs("dateEnum", &[OneOf(PERIODS), NotEmpty])
        .needs("clientOffset", &[Number, NotEmpty])
        .finish()
}

/// Checks a user's groups. If `strict`, no other fields are allowed.
pub(crate) fn groups(body: &Value, strict: bool) -> Vec<Violation> {
    let map_of = |name: &str, fits: fn(&Value) -> bool| {
        let value = &body[name];
        let fine = value.is_null() || value.as_object().is_some_and(|map| map.values().all(fits));
        (!fine).then(|| Violation::new(name, &[("isObject", format!("{name} has the wrong shape"))]))
    };
    let unknown = body
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name)
        .filter(|name| strict && *name != "group" && *name != "workingGroup");
    let unknown = unknown
        .map(|name| Violation::new(name, &[("whitelistValidation", format!("property {name} should not exist"))]));
    map_of("group", |ids| ids.as_array().is_some_and(|ids| ids.iter().all(Value::is_string)))
        .into_iter()
        .chain(map_of("workingGroup", Value::is_string))
        .chain(unknown)
        .collect()
}

/// Checks a required working group.
pub(crate) fn working_group(body: &Value) -> Vec<Violation> {
    let mut found = Checker::of(body).needs("workingGroup", &[NotEmpty]).finish();
    found.extend(groups(body, false));
    found
}

/// Checks a visit.
pub(crate) fn mark(body: &Value) -> Vec<Violation> {
    const STATUSES: &[&str] = &["condition applied", "condition not applied", "no condition assigned"];
    Checker::of(body)
        .needs("data", &[NotEmpty])
        .inside("data", |data| {
            Checker::of(data).needs("site", &[Text, NotEmpty]).needs("target", &[Text, NotEmpty]).finish()
        })
        .may_have("status", &[OneOf(STATUSES)])
        .may_have("uniquifier", &[Text])
        .may_have("clientError", &[Text])
        .finish()
}

/// Checks measurements.
pub(crate) fn metrics(body: &Value) -> Vec<Violation> {
    Checker::of(body)
        .needs("value", &[List, NotEmpty])
        .each("value", |entry| {
            let mut found =
                Checker::of(entry).needs("timestamp", &[Date, NotEmpty]).needs("metrics", &[NotEmpty]).finish();
            let attributes = entry["metrics"]["attributes"].as_object().into_iter().flatten();
            for (name, _) in attributes.filter(|(_, value)| !value.is_number() && !value.is_string()) {
                found.push(Violation::new(name, &[("isString", format!("{name} must be a number or a text"))]));
            }
            found
        })
        .finish()
}
