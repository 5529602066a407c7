//! Phrases about several experiments at once: all that match a filter, or some by name.

use serde_json::{Map, Value, json};

use super::{
    changes::{STATUS, left_over},
    lists,
    situation::Situation,
    user_request::{Interpretation, UserRequest},
    words::{Word, after, skip},
};

/// Parses `“A”, “B” and “C”`, and nothing else.
pub(super) fn several(words: &[Word]) -> Option<Vec<String>> {
    names_joined_by(words, ", and & both of the all experiments experiment studies")
}

/// Parses `“A” with “B”`, `“A” and “B”`, and nothing else.
pub(super) fn several_compared(words: &[Word]) -> Option<Vec<String>> {
    let ends = words.last().is_some_and(|last| last.quoted);
    names_joined_by(words, ", and & with vs versus to against both the experiments experiment").filter(|_| ends)
}

/// Returns the names in quotes, if there are several and only these words beside them.
fn names_joined_by(words: &[Word], joints: &str) -> Option<Vec<String>> {
    let names: Vec<_> = words.iter().filter(|word| word.quoted).map(|word| word.text.clone()).collect();
    (names.len() > 1 && words.iter().all(|word| word.quoted || word.among(joints))).then_some(names)
}

/// Parses `delete all archived experiments`. Since experiments are only deleted one by one, the result
/// is the question which one is meant.
pub(super) fn deletion(all: &[Word], situation: &Situation) -> Option<Interpretation> {
    let words = after(all, "delete|remove|erase|destroy|get rid of")?;
    const THINGS: [&str; 5] = ["experiments", "studies", "ones", "tests", "everything"];
    let rest = skip(words, "all of|all|every|each|both|the|our|my|of the");
    let has_quantifier = after(words, "all|every|each|both|everything|experiments").is_some();
    let has_filter = rest.first().is_some_and(|first| lists::is_status(first) || first.any(&THINGS));
    let is_several =
        words.iter().any(|word| word.any(&THINGS)) || after(words, "every|each").is_some() || words.len() == 1;
    let options = match words.iter().filter(|word| word.quoted).count() {
        0 if (has_quantifier || has_filter) && is_several => {
            let status = rest.first().filter(|first| lists::is_status(first));
            vec![status.map_or("list experiments".to_owned(), |status| format!("list {} experiments", status.lower))]
        }
        0 | 1 => return None,
        _ => match several(words) {
            Some(names) => names.iter().map(|name| format!("delete “{name}”")).collect(),
            None => return left_over(all, words, &[], situation),
        },
    };
    Some(Interpretation::unclear("I delete one experiment at a time. Which one?", options))
}

/// Returns the change of status of all experiments, or of some. “Stop everything” means what is running; of other changes,
/// everything is asked about.
pub(super) fn of_all(mut params: Map<String, Value>) -> UserRequest {
    let status = params.get("status").and_then(Value::as_str).unwrap_or_default().to_owned();
    let own = match status.as_str() {
        "stop" | "pause" => Some("running"),
        "resume" => Some("paused"),
        _ => None,
    };
    match (params.get_mut("all"), own) {
        (Some(Value::Object(which)), Some(own)) => {
            which.entry("status").or_insert_with(|| own.into());
        }
        (Some(Value::Object(which)), None) if which.is_empty() => {
            let verb = super::verb(&status).map_or(status.as_str(), |verb| verb.name);
            let usual = match verb {
                "archive" => "completed",
                "cancel" => "paused",
                _ => "inactive",
            };
            let options = vec![format!("{verb} all {usual} experiments"), "list experiments".to_owned()];
            return UserRequest::Unclear { question: format!("Which experiments should I {verb}?"), options };
        }
        _ => {}
    }
    UserRequest::change(STATUS, params)
}

/// Parses `all completed experiments from May in mathstream` into an object with `status`, `month`,
/// `tag` and `context`.
pub(super) fn every(words: &[Word]) -> Option<Value> {
    let mut which = Map::new();
    if matches!(words, [only] if only.is("everything")) || super::words::lower(words) == "all" {
        return Some(Value::Object(which));
    }
    let mut rest = skip(after(words, "all of|all|every|each")?, "the|our|my|of the");
    if let Some((status, others)) = rest.split_first().filter(|(word, _)| lists::is_status(word)) {
        which.insert("status".to_owned(), status.lower.clone().into());
        rest = others;
    }
    let mut rest = match after(rest, "experiments|experiment|ones|one|tests|studies") {
        Some(rest) => rest,
        None if !which.is_empty() => rest,
        None => return None,
    };
    rest = skip(rest, "that are|which are|we have");
    while !rest.is_empty() {
        const EXCEPT: &str = "except for|except|apart from|other than|besides|but not|without";
        if let Some(excepted) = after(skip(rest, ","), EXCEPT) {
            let names = match excepted {
                [one] if one.quoted => vec![one.text.clone()],
                several => names_joined_by(several, ", and & or the experiments experiment")?,
            };
            which.insert("except".to_owned(), json!(names));
            break;
        }
        let (key, start) = match after(rest, "from|since|of|completed in|ended in") {
            Some(start) => ("month", start),
            None => match after(rest, "tagged with|tagged|with the tag|with tag") {
                Some(start) => ("tag", start),
                None => ("context", skip(after(rest, "in|for")?, "the context|context|the")),
            },
        };
        let (value, mut others) = start.split_first()?;
        let mut value = value.text.clone();
        if key == "month"
            && let Some((year, more)) = others.split_first().filter(|(year, _)| year.text.parse::<u16>().is_ok())
        {
            value = format!("{value} {}", year.text);
            others = more;
        }
        which.insert(key.to_owned(), json!(value));
        rest = skip(others, ",|and");
    }
    Some(Value::Object(which))
}

#[cfg(test)]
mod tests {
    use super::{super::tests::check, Situation};

    #[test]
    fn several_experiments_dates_and_lists() {
        check(
            &Situation::default(),
            &[
                (
                    "archive all completed ones from May",
                    r#"update_experiment_status {"all":{"month":"May","status":"completed"},"status":"archived"}"#,
                ),
                (
                    "stop all experiments in mathstream tagged hints",
                    r#"update_experiment_status {"all":{"context":"mathstream","status":"running","tag":"hints"},"status":"stop"}"#,
                ),
                ("start All Stars", r#"update_experiment_status {"experiment":"All Stars","status":"start"}"#),
                (
                    "start Math Hints on 2027-01-15 at 09:00",
                    r#"update_experiment_status {"experiment":"Math Hints","start_on":"2027-01-15 09:00","status":"scheduled"}"#,
                ),
                (
                    "move the start of Math Hints to Friday 9:00",
                    r#"update_experiment_status {"experiment":"Math Hints","start_on":"Friday 9:00","status":"scheduled"}"#,
                ),
                (
                    "start Math Hints tomorrow at 9am",
                    r#"update_experiment_status {"experiment":"Math Hints","start_on":"tomorrow 9am","status":"scheduled"}"#,
                ),
                (
                    "postpone “Friday Quiz” until next Friday",
                    r#"update_experiment_status {"experiment":"Friday Quiz","start_on":"Friday","status":"scheduled"}"#,
                ),
                ("start Math Hints", r#"update_experiment_status {"experiment":"Math Hints","status":"start"}"#),
                (
                    "take u1 off the exclusion list of Math Hints",
                    r#"update_experiment {"experiment":"Math Hints","remove_from_exclusion":["u1"]}"#,
                ),
                (
                    "include class 5B and u2 in Math Hints",
                    r#"update_experiment {"add_to_inclusion":["class 5B","u2"],"experiment":"Math Hints"}"#,
                ),
                ("stop everything", r#"update_experiment_status {"all":{"status":"running"},"status":"stop"}"#),
                ("cancel all experiments", "unclear: cancel all paused experiments | list experiments"),
                ("pause all", r#"update_experiment_status {"all":{"status":"running"},"status":"pause"}"#),
                ("delete all archived experiments", "unclear: list archived experiments"),
                ("delete all experiments", "unclear: list experiments"),
                ("delete “A” and “B”", "unclear: delete “A” | delete “B”"),
                ("delete Math Hints", r#"delete_experiment {"experiment":"Math Hints"}"#),
            ],
        );
    }
}
