//! The outcomes of a change: one sentence each, with advice if it failed.

use countersign_core::reply::Text;
use countersign_services::google;

use super::refusals::typed;
use crate::upgrade::{
    answer::says_nothing,
    error::Error,
    participants::{Assignment, Marked},
};

/// The maximum number of problems that are named.
const MAX_PROBLEMS: usize = 4;

/// Says that the experiment was deleted between the question and the click.
pub fn gone(name: &str) -> Text {
    Text::new().plain("“").bold(name).plain("” no longer exists, so nothing was changed.")
}

/// Says that the experiment was deleted while the outcome of its change was unknown.
pub fn gone_on_read_back(name: &str) -> Text {
    Text::new().plain("Checked: “").bold(name).plain("” no longer exists.")
}

/// Says that the platform did not find the experiment for the change, although it was read just before.
pub fn not_found_for_change(name: &str) -> Text {
    let text = Text::new().plain("“").bold(name).plain("” no longer exists: ");
    text.plain("UpGrade couldn't find it when I tried to change it.")
}

/// Says that the platform did not find the experiment for the deletion, although it was read just before.
pub fn not_found_for_deletion(name: &str) -> Text {
    let text = Text::new()
        .plain("“")
        .bold(name)
        .plain("” no longer exists. UpGrade couldn't find it when I tried to delete it. ");
    text.plain("Someone else may have deleted it.")
}

/// Says that the platform does not know the participant.
pub fn unknown_user(user: &str) -> Text {
    let text = Text::new().plain("UpGrade doesn't know the user ").code(typed(user));
    text.plain(" yet. Initialize the user first.")
}

/// Returns the advice if the bot cannot sign in.
pub fn sign_in_advice(error: &google::Error) -> &'static str {
    match error {
        google::Error::Refused { .. } => "The app's operator needs to check its key.",
        google::Error::Unreachable { .. } => "Try again in a minute. If it keeps failing, tell the app's operator.",
    }
}

/// Says that nothing was changed, since nothing was sent or the call only reads.
pub fn not_done(error: &Error) -> Text {
    answered(error).plain(" Nothing was changed. ").plain(advice(error))
}

/// Says that the change was refused, and that reading back showed the earlier state.
pub fn refused_and_unchanged(error: &Error) -> Text {
    answered(error).plain(" I checked: nothing was changed. ").plain(advice(error))
}

/// Says that the change was refused, and that its outcome cannot be read back.
pub fn refused_and_unverifiable(error: &Error) -> Text {
    answered(error).plain(" I couldn't check whether anything changed. ").plain(advice(error))
}

/// Says that the change was refused, and that reading back did not show its outcome. `evidence` describes
/// the result of reading back.
pub fn refused_and_unknown(error: &Error, evidence: Text) -> Text {
    let text = answered(error).plain(" ").join(evidence);
    text.plain(" I don't know whether it went through. Check in UpGrade before asking again.")
}

/// Says that the change was refused, but reading back showed that a part of it was made, which `evidence`
/// describes.
pub fn refused_in_part(error: &Error, evidence: Text) -> Text {
    evidence.plain(" ").join(answered(error)).plain(" Ask me again for the rest.")
}

/// Says that the end date was set, and the status stayed the same.
pub fn only_the_end_date(name: &str, end: Text, status: &str) -> Text {
    let text = Text::from("The end date of “").bold(name).plain("” was set to ").join(end);
    text.plain(format!(", but its status is still {status}."))
}

/// Says that the experiment has the status already, so that nothing was sent.
pub fn already(name: &str, status: &str) -> Text {
    Text::from("“").bold(name).plain(format!("” is already {status}, so nothing was changed."))
}

/// Says that the change was refused, but reading back showed that it was made. `summary` describes it.
pub fn done_despite_error(summary: Text, error: &Error) -> Text {
    summary.plain(format!(" UpGrade answered with an error ({}), but I checked and it went through.", why(error)))
}

/// Describes the platform's answer, or that there was none. The sentence makes no claim about the change.
fn answered(error: &Error) -> Text {
    match error {
        Error::NotFound { reason } => Text::new().plain("UpGrade couldn't find this: ").plain(sentence(&typed(reason))),
        Error::Auth => Text::from("UpGrade doesn't accept my credentials."),
        Error::SignIn(error) => Text::from(format!("I couldn't sign in to UpGrade ({error}).")),
        Error::Invalid { problems } if says_nothing(problems) => {
            Text::from("UpGrade rejected this without giving a reason.")
        }
        Error::Invalid { problems } => {
            let mut named: Vec<String> = problems.iter().take(MAX_PROBLEMS).map(|problem| typed(problem)).collect();
            if problems.len() > MAX_PROBLEMS {
                named.push(format!("and {} more", problems.len() - MAX_PROBLEMS));
            }
            Text::new().plain("UpGrade rejected this: ").plain(sentence(&named.join("; ")))
        }
        Error::Refused { reason } => Text::new().plain("UpGrade refused this: ").plain(sentence(&typed(reason))),
        Error::Faulted { reason } => {
            Text::new().plain("UpGrade failed while handling this (").plain(typed(reason)).plain(").")
        }
        Error::Decode { reason } => {
            Text::new().plain("UpGrade sent an answer that I can't read: ").code(typed(reason)).plain(".")
        }
        Error::Unclear { reason } => {
            Text::new().plain("UpGrade's answer doesn't confirm this (").plain(typed(reason)).plain(").")
        }
        Error::Unavailable { reason } | Error::NoAnswer { reason } => {
            Text::new().plain("UpGrade isn't answering (").plain(typed(reason)).plain(").")
        }
    }
}

/// Returns the advice for an error.
fn advice(error: &Error) -> &'static str {
    match error {
        Error::NotFound { .. } => "Check the name and ask again.",
        Error::Auth => "The app's operator needs to renew the access token.",
        Error::SignIn(error) => sign_in_advice(error),
        Error::Invalid { problems } if says_nothing(problems) => "If it happens again, contact your administrator.",
        Error::Invalid { .. } | Error::Refused { .. } => "Correct that and ask again.",
        Error::Faulted { .. } => "Try again. If it keeps failing, contact your administrator.",
        Error::Decode { .. } | Error::Unclear { .. } => "Contact your administrator.",
        Error::Unavailable { .. } | Error::NoAnswer { .. } => {
            "Try again in a minute. If it keeps failing, contact your administrator."
        }
    }
}

/// Returns the platform's message as the end of a sentence, with a full stop.
fn sentence(words: &str) -> String {
    format!("{}.", words.trim_end_matches(['.', '!', '?', ' ']))
}

/// Says that the experiment changed after the card was shown.
pub fn changed_meanwhile(name: &str) -> Text {
    let text = Text::new().plain("“").bold(name);
    text.plain("” changed after this card was posted, so nothing was done. Ask again for a new card.")
}

/// Says that reading back failed.
pub fn cannot_read_back(reason: &str) -> Text {
    Text::from(format!("I couldn't check UpGrade ({reason})."))
}

/// Says that some parts of an update were made and some were not.
pub fn partly(name: &str, changed: &[&str], unchanged: &[&str]) -> Text {
    let text = Text::new().plain("Checked “").bold(name).plain("”: ");
    text.plain(format!("changed: {}; not changed: {}.", words(changed), words(unchanged)))
}

/// Says that the experiment was created without some of its parts; `why` is the platform's reason.
pub fn created_in_part(name: &str, lacking: &[&str], why: &Text) -> Text {
    let text = Text::new().plain("“").bold(name).plain(format!("” was created, but without its {}. ", words(lacking)));
    let text = Text(text.0.into_iter().chain(why.0.iter().cloned()).collect());
    text.plain(" Ask me to update it with what is missing.")
}

/// Says that some parts of an update were made and some were not; `why` is the platform's reason.
pub fn updated_in_part(name: &str, lacking: &[&str], why: &Text) -> Text {
    let text = Text::new().plain("“").bold(name).plain(format!("” was changed, but not its {}. ", words(lacking)));
    let text = Text(text.0.into_iter().chain(why.0.iter().cloned()).collect());
    text.plain(" Ask me again for the rest.")
}

/// Quotes the platform's reason why a part of a change failed.
pub fn part_failed(error: &Error) -> Text {
    Text::new().plain("UpGrade said: ").code(typed(why(error).trim_end_matches('.'))).plain(".")
}

/// Returns the platform's answer in a few words.
fn why(error: &Error) -> String {
    match error {
        Error::Auth => "it no longer accepts my credentials".to_owned(),
        Error::Invalid { problems } if says_nothing(problems) => "it doesn't accept this".to_owned(),
        Error::Invalid { problems } => problems.join("; "),
        Error::SignIn(error) => format!("sign-in failed: {error}"),
        Error::NotFound { reason }
        | Error::Refused { reason }
        | Error::Faulted { reason }
        | Error::Unavailable { reason }
        | Error::NoAnswer { reason }
        | Error::Unclear { reason }
        | Error::Decode { reason } => reason.clone(),
    }
}

/// Describes the refusal of one of several changes, after which the state is unchanged or unknown.
pub fn one_refused(error: &Error, unchanged: bool) -> Text {
    part_failed(error).plain(match unchanged {
        true => " I checked: it was not changed.",
        false => " I don't know whether it was changed. Check in UpGrade.",
    })
}

/// Returns the outcome of each of several changes. `past` is the past participle of the change, and
/// `unchanged` has the reasons for those that were not made.
pub fn bulk_summary(past: &str, changed: &[&str], unchanged: &[(&str, Text)]) -> Text {
    let all = changed.len() + unchanged.len();
    let mut text = match changed.len() {
        0 => Text::from(format!("None of {all} is confirmed as {}.", past.to_lowercase())),
        some => Text::from(format!("{some} of {all}: {}", past.to_lowercase())),
    };
    for (i, name) in changed.iter().enumerate() {
        text = text.plain(if i == 0 { " “" } else { "”, “" }).bold(*name);
    }
    if !changed.is_empty() {
        text = text.plain("”.");
    }
    for (name, why) in unchanged {
        text = text.plain(" Not done: “").bold(*name).plain("”: ").join(why.clone());
    }
    text
}

/// Says that some of several experiments have the new status, and some do not.
pub fn some_of_several(changed: &[String], rest: &[String]) -> Text {
    let quoted = |names: &[String]| names.iter().map(|name| format!("“{name}”")).collect::<Vec<_>>().join(", ");
    Text::from(format!("Checked. Changed: {}; not changed: {}.", quoted(changed), quoted(rest)))
}

/// Says that the experiment exists, but its `lacking` parts are missing.
pub fn created_so_far(name: &str, lacking: &[&str]) -> Text {
    Text::new().plain("Checked: “").bold(name).plain(format!("” exists, but without its {}.", words(lacking)))
}

/// Says that the experiment exists, but its `differing` fields are not as planned.
pub fn created_otherwise(name: &str, differing: &[&str]) -> Text {
    let text = Text::new().plain("Checked: “").bold(name);
    text.plain(format!("” exists, but differs from the request: {}.", words(differing)))
}

/// Says that the platform does not find an experiment but still lists it.
pub fn listed_but_not_found(name: &str) -> Text {
    Text::new().plain("UpGrade can't find “").bold(name).plain("”, but still lists it.")
}

/// Returns the title of an update's card, and the sentence that reports the finished update.
pub fn update_words(name: &str, new_name: Option<&str>, things: &[&str]) -> (String, String) {
    let now = new_name.unwrap_or(name);
    let listed = if things.len() > 3 { format!("{} fields", things.len()) } else { things.join(", ") };
    match (new_name, things) {
        (Some(new_name), [_]) => {
            (format!("Rename “{name}” to “{new_name}”?"), format!("Renamed “{name}” to “{new_name}”."))
        }
        (_, [thing]) => (format!("Change the {thing} of “{name}”?"), format!("Changed the {thing} of “{name}”.")),
        _ => (format!("Update “{name}”: {listed}?"), format!("Updated “{now}”: {listed}.")),
    }
}

/// Says that the present status is neither the old nor the new one.
pub fn other_status(name: &str, now: &str) -> Text {
    Text::new().plain("Checked: “").bold(name).plain(format!("” is {now}."))
}

/// Says that a user was registered.
pub fn initialised(user: &str) -> Text {
    Text::new().plain("UpGrade knows the user ").code(user).plain(" now.")
}

/// Returns the conditions of a user, each with the name of its experiment if it is known.
pub fn assignments(user: &str, context: &str, given: &[(Assignment, Option<String>)]) -> Text {
    let mut text = Text::new().code(user);
    if given.is_empty() {
        return text.plain(format!(" gets nothing in {context}: the application shows its default everywhere."));
    }
    for (i, (assignment, experiment)) in given.iter().enumerate() {
        let codes: Vec<_> = assignment.assigned_condition.iter().map(|c| c.condition_code.as_str()).collect();
        text = text.plain(if i == 0 { " gets " } else { "; " }).bold(codes.join(", then "));
        if let Some(levels) = assignment.levels() {
            text = text.plain(format!(" ({levels})"));
        }
        text = text.plain(format!(" at {}", place(&assignment.site, assignment.target.as_deref())));
        if let Some(experiment) = experiment {
            text = text.plain(" (“").bold(experiment).plain("”)");
        }
    }
    text.plain(".")
}

/// Says that a visit was recorded.
pub fn marked(user: &str, site: &str, target: &str, marked: &Marked) -> Text {
    let text = Text::new().plain("Marked ").plain(place(site, Some(target))).plain(" for ").code(user);
    match (&marked.experiment_id, &marked.condition) {
        (None, _) => text.plain(". No experiment has this decision point, so nobody was enrolled."),
        (Some(_), Some(condition)) => text.plain(" with ").bold(condition).plain("."),
        (Some(_), None) => text.plain("."),
    }
}

/// Returns the place in words: `site / target`.
pub fn place(site: &str, target: Option<&str>) -> String {
    target.map_or_else(|| site.to_owned(), |target| format!("{site} / {target}"))
}

fn words(list: &[&str]) -> String {
    if list.is_empty() { "none".to_owned() } else { list.join(", ") }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use serde_json::json;

    use super::*;

    #[test]
    fn every_failure_states_the_facts_and_gives_advice() {
        let all = [
            gone("Math Hints"),
            gone_on_read_back("Math Hints"),
            not_found_for_change("Math Hints"),
            not_found_for_deletion("Math Hints"),
            unknown_user("student-9"),
            not_done(&Error::NotFound { reason: "Experiment not found!".into() }),
            not_done(&Error::Auth),
            refused_and_unchanged(&Error::Invalid { problems: vec!["name: isNotEmpty".into()] }),
            refused_and_unchanged(&Error::Refused { reason: "Condition not found: purple".into() }),
            refused_and_unchanged(&Error::Faulted { reason: "an internal error".into() }),
            refused_and_unknown(&Error::Refused { reason: "too many requests".into() }, cannot_read_back("status 503")),
            refused_in_part(
                &Error::Faulted { reason: "a database error".into() },
                created_so_far("New", &["inclusion list"]),
            ),
            refused_and_unverifiable(&Error::Refused { reason: "too many requests".into() }),
            done_despite_error("Started “Math Hints”.".into(), &Error::Refused { reason: "too many requests".into() }),
            not_done(&Error::Unavailable { reason: "Connection refused".into() }),
            not_done(&Error::Decode { reason: "not JSON".into() }),
            created_otherwise("New", &["conditions"]),
            listed_but_not_found("Math Hints"),
            some_of_several(&["One".into()], &["Two".into(), "Three".into()]),
            changed_meanwhile("Math Hints"),
            cannot_read_back("no answer in time"),
            partly("Math Hints", &["description"], &["conditions"]),
            other_status("Math Hints", "archived"),
        ];
        assert_snapshot!(all.map(|text| text.words()).join("\n"), @"
        “Math Hints” no longer exists, so nothing was changed.
        Checked: “Math Hints” no longer exists.
        “Math Hints” no longer exists: UpGrade couldn't find it when I tried to change it.
        “Math Hints” no longer exists. UpGrade couldn't find it when I tried to delete it. Someone else may have deleted it.
        UpGrade doesn't know the user student-9 yet. Initialize the user first.
        UpGrade couldn't find this: Experiment not found. Nothing was changed. Check the name and ask again.
        UpGrade doesn't accept my credentials. Nothing was changed. The app's operator needs to renew the access token.
        UpGrade rejected this: name: isNotEmpty. I checked: nothing was changed. Correct that and ask again.
        UpGrade refused this: Condition not found: purple. I checked: nothing was changed. Correct that and ask again.
        UpGrade failed while handling this (an internal error). I checked: nothing was changed. Try again. If it keeps failing, contact your administrator.
        UpGrade refused this: too many requests. I couldn't check UpGrade (status 503). I don't know whether it went through. Check in UpGrade before asking again.
        Checked: “New” exists, but without its inclusion list. UpGrade failed while handling this (a database error). Ask me again for the rest.
        UpGrade refused this: too many requests. I couldn't check whether anything changed. Correct that and ask again.
        Started “Math Hints”. UpGrade answered with an error (too many requests), but I checked and it went through.
        UpGrade isn't answering (Connection refused). Nothing was changed. Try again in a minute. If it keeps failing, contact your administrator.
        UpGrade sent an answer that I can't read: not JSON. Nothing was changed. Contact your administrator.
        Checked: “New” exists, but differs from the request: conditions.
        UpGrade can't find “Math Hints”, but still lists it.
        Checked. Changed: “One”; not changed: “Two”, “Three”.
        “Math Hints” changed after this card was posted, so nothing was done. Ask again for a new card.
        I couldn't check UpGrade (no answer in time).
        Checked “Math Hints”: changed: description; not changed: conditions.
        Checked: “Math Hints” is archived.
        ");
    }

    #[test]
    fn assignments_are_described() {
        let assignment = |value| serde_json::from_value::<Assignment>(value).unwrap();
        let one = assignment(json!({
            "site": "SelectSection", "target": "area_model", "assignedCondition": [{ "conditionCode": "variant" }],
        }));
        let queue = assignment(json!({
            "site": "chat", "assignedCondition": [{ "conditionCode": "a" }, { "conditionCode": "b" }],
        }));
        let given = [(one, Some("Math Hints".to_owned())), (queue, None)];
        assert_snapshot!(
            assignments("student-1", "assign-prog", &given).words(),
            @"student-1 gets variant at SelectSection / area_model (“Math Hints”); a, then b at chat."
        );
        assert_snapshot!(
            assignments("student-1", "assign-prog", &[]).words(),
            @"student-1 gets nothing in assign-prog: the application shows its default everywhere."
        );
        assert_snapshot!(initialised("student-1").words(), @"UpGrade knows the user student-1 now.");
    }

    #[test]
    fn marks_are_described() {
        let summary = |value| marked("student-1", "chat", "tone", &serde_json::from_value(value).unwrap()).words();
        assert_snapshot!(
            summary(json!({ "condition": "variant", "experimentId": "d56d271d-a23c-4e9b-a163-b5fd658c5b03" })),
            @"Marked chat / tone for student-1 with variant."
        );
        assert_snapshot!(
            summary(json!({ "condition": null, "experimentId": null })),
            @"Marked chat / tone for student-1. No experiment has this decision point, so nobody was enrolled."
        );
    }
}
