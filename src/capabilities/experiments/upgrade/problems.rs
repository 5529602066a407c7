//! Translates the server's error messages into words that a researcher can act on.
//!
//! The server's validator reports properties of the JSON body and rules of its library; its code
//! throws other exceptions; its database reports SQL. [`rule_broken`] translates the first,
//! [`in_words`] the others: known messages are put in plain words, and a message for developers
//! becomes “an internal error”.

/// Describes a property that breaks rules of the validator, such as `conditions[0].assignmentWeight`
/// and `isNumber`.
pub(super) fn rule_broken(path: &str, rules: &[&str]) -> String {
    let has = |rule: &str| rules.contains(&rule);
    let what = if has("isNotEmpty") || has("isDefined") {
        "is missing"
    } else {
        match rules.first().copied().unwrap_or_default() {
            "isString" => "must be text",
            "isNumber" => "must be a number",
            "isInt" => "must be a whole number",
            "isBoolean" => "must be yes or no",
            "isArray" => "must be a list",
            "arrayMinSize" => "must have at least one entry",
            "isEnum" => "isn't one of the allowed values",
            "isUuid" => "isn't an ID",
            "isDateString" => "isn't a date",
            "isAssignmentUnitGroupConsistent" => "doesn't fit the group type",
            _ => "isn't valid",
        }
    };
    format!("{} {what}", property(path))
}

/// Returns the name of a property for people: `conditions[0].assignmentWeight`, or
/// `conditions.0.assignmentWeight`, is “weight of condition 1”.
fn property(path: &str) -> String {
    let path = path.replace('[', ".").replace(']', "");
    let parts: Vec<&str> = path.split('.').filter(|part| !part.is_empty()).collect();
    let (Some((last, before)), false) = (parts.split_last(), parts.is_empty()) else { return "something".to_owned() };
    let word = word(last);
    match before {
        [list, number] => match number.parse::<usize>() {
            Ok(number) => format!("{word} of {} {}", one_of(list), number + 1),
            Err(_) => word,
        },
        _ => word,
    }
}

fn one_of(list: &str) -> &'static str {
    match list {
        "conditions" => "condition",
        "partitions" => "decision point",
        "conditionPayloads" => "payload",
        "factors" => "factor",
        "experimentSegmentInclusion" => "inclusion list",
        "experimentSegmentExclusion" => "exclusion list",
        _ => "entry",
    }
}

fn word(property: &str) -> String {
    let known = match property {
        "state" => "status",
        "assignmentUnit" => "assignment unit",
        "group" => "group type",
        "consistencyRule" => "consistency rule",
        "conditionOrder" => "condition order",
        "assignmentAlgorithm" => "algorithm",
        "postExperimentRule" => "post-experiment rule",
        "filterMode" => "filter mode",
        "partitions" => "decision points",
        "conditionPayloads" => "payloads",
        "startOn" => "start",
        "endOn" => "end",
        "assignmentWeight" => "weight",
        "conditionCode" => "code",
        "twoCharacterId" => "two-character id",
        "excludeIfReached" => "exclude if reached",
        "experimentSegmentInclusion" => "inclusion list",
        "experimentSegmentExclusion" => "exclusion list",
        other => other,
    };
    known.to_owned()
}

/// Returns a message of the server in plain words.
pub(super) fn in_words(message: &str) -> String {
    let between = |before: &str, after: &str| {
        let rest = message.split_once(before)?.1;
        Some(if after.is_empty() { rest } else { rest.split_once(after)?.0 }.trim().to_owned())
    };
    if let Some(context) =
        between("The app context \"", "\" is not defined").or_else(|| between("Invalid app context: ", ""))
    {
        return format!("there is no context “{context}”");
    }
    if let Some(user) = between("User not found: ", "") {
        return format!("there is no user “{user}”");
    }
    if let Some(code) = between("Condition not found: ", "") {
        return format!("the experiment has no condition “{code}”");
    }
    let known = [
        ("Experiment not found", "the experiment does not exist"),
        ("Experiment user not defined", "there is no such user"),
        ("'default' as ConditionCode", "a condition can't be called “default”"),
        ("mooclet", "this server has no Mooclet, which this algorithm needs"),
        ("User-Id", "no user was given"),
        ("Query Failed", "a database error"),
        ("shared Decision Point", "the experiment does not have this decision point"),
        ("not found for inclusion", "the list no longer exists"),
        ("not found for exclusion", "the list no longer exists"),
    ];
    if let Some((_, words)) = known.iter().find(|(part, _)| message.contains(part)) {
        return (*words).to_owned();
    }
    let for_developers = [
        "Cannot read propert",
        "invalid input",
        "violates",
        "QueryFailed",
        "TypeError",
        "updateExperimentInDB",
        "in the request body",
        "JSON input",
        "Parent condition not found",
        "{",
    ];
    match for_developers.iter().any(|part| message.contains(part)) {
        true => "an internal error".to_owned(),
        false => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_are_named_for_people() {
        assert_eq!(rule_broken("name", &["isNotEmpty", "isString"]), "name is missing");
        assert_eq!(
            rule_broken("conditions[0].assignmentWeight", &["isNumber"]),
            "weight of condition 1 must be a number"
        );
        assert_eq!(rule_broken("partitions.1.order", &["isInt"]), "order of decision point 2 must be a whole number");
        assert_eq!(rule_broken("state", &["isEnum"]), "status isn't one of the allowed values");
        assert_eq!(rule_broken("", &["surprise"]), "something isn't valid");
    }

    #[test]
    fn messages_for_developers_are_not_shown() {
        assert_eq!(in_words("invalid input syntax for type uuid: \"exp-1\""), "an internal error");
        assert_eq!(in_words("Users with ids [\n  {\n \"id\": \"student-1\""), "an internal error");
        assert_eq!(
            in_words("The app context \"no-such-app\" is not defined in CONTEXT_METADATA."),
            "there is no context “no-such-app”"
        );
        assert_eq!(
            in_words("Segment name Pilot schools already exists in context assign-prog"),
            "Segment name Pilot schools already exists in context assign-prog"
        );
    }
}
