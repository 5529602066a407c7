//! What became of a change: one sentence each, with what to do where something went wrong.

use super::refusals::typed;
use crate::{
    reply::Text,
    services::{
        google,
        upgrade::{
            answer::says_nothing,
            error::Error,
            participants::{Assignment, Marked},
        },
    },
};

/// How many of the things that are wrong are told.
const SAID: usize = 4;

/// The experiment went away between the question and the click.
pub fn gone(name: &str) -> Text {
    Text::new().plain("“").bold(name).plain("” does not exist any more, so nothing was changed.")
}

/// The experiment went away while it was not known whether its change had arrived.
pub fn gone_meanwhile(name: &str) -> Text {
    Text::new().plain("Reading back, “").bold(name).plain("” does not exist any more.")
}

/// A participant who is not known.
pub fn unknown_user(user: &str) -> Text {
    Text::new()
        .plain("UpGrade does not know the user ")
        .code(typed(user))
        .plain(" yet, so nothing was changed. Initialise the user first.")
}

/// What was named is not there; `reason` is the platform's.
pub fn not_found(reason: &str) -> Text {
    let text = Text::new().plain("UpGrade does not know what was named: ").plain(typed(reason));
    text.plain(". Nothing was changed. Look at what there is and ask again.")
}

/// Our credentials are not accepted.
pub fn not_accepted() -> Text {
    Text::from(
        "UpGrade does not accept my credentials, so nothing was changed. Whoever runs me has to renew the access token.",
    )
}

/// There is nothing to sign in with.
pub fn cannot_sign_in(error: &google::Error) -> Text {
    let text = Text::new().plain("I could not sign in to UpGrade (").plain(error.to_string());
    text.plain(format!("), so nothing was changed. {}", sign_in_advice(error)))
}

/// What to do when there is nothing to sign in with.
pub fn sign_in_advice(error: &google::Error) -> &'static str {
    match error {
        google::Error::Refused { .. } => "Whoever runs me has to look at my key for it.",
        google::Error::Unreachable { .. } => "Ask again in a minute, or tell whoever runs me.",
    }
}

/// The platform finds it invalid.
pub fn invalid(problems: &[String]) -> Text {
    if says_nothing(problems) {
        return Text::from(
            "UpGrade did not accept this and does not say why. Nothing was changed. Tell whoever runs it if that happens again.",
        );
    }
    let text = Text::new().plain("UpGrade did not accept this: ");
    let mut said: Vec<String> = problems.iter().take(SAID).map(|problem| typed(problem)).collect();
    if problems.len() > SAID {
        said.push(format!("and {} more", problems.len() - SAID));
    }
    text.plain(said.join("; ")).plain(". Nothing was changed; ask again with that corrected.")
}

/// The platform said no.
pub fn refused(reason: &str) -> Text {
    let text = Text::new().plain("UpGrade refused: ").plain(typed(reason));
    text.plain(". Nothing was changed; ask again with that corrected.")
}

/// The platform failed before anything was changed.
pub fn tripped(reason: &str) -> Text {
    let text = Text::new().plain("UpGrade failed while it worked on this (").plain(reason);
    text.plain("). Nothing was changed. Ask again, or tell whoever runs it.")
}

/// The platform failed, and reading back showed that nothing changed.
pub fn faulted(reason: &str) -> Text {
    let text = Text::new().plain("UpGrade failed while it worked on this (").plain(reason);
    text.plain("). I read back that nothing was changed. Ask again, or tell whoever runs it.")
}

/// The platform failed, and what it had done by then cannot be read back.
pub fn faulted_and_open(reason: &str) -> Text {
    let text = Text::new().plain("UpGrade failed while it worked on this (").plain(reason);
    text.plain("), and I cannot tell whether it was done. Please look in UpGrade before asking again.")
}

/// The platform cannot be reached.
pub fn down(reason: &str) -> Text {
    Text::from(format!(
        "UpGrade does not answer at the moment ({reason}). Nothing was changed. \
         Ask again in a minute, or tell whoever runs it."
    ))
}

/// The platform's answer cannot be read.
pub fn odd(reason: &str) -> Text {
    Text::new()
        .plain("UpGrade answered something I cannot read: ")
        .code(reason)
        .plain(". Nothing was changed. Tell whoever runs it.")
}

/// The experiment was changed since the card was shown.
pub fn changed_meanwhile(name: &str) -> Text {
    let text = Text::new().plain("“").bold(name);
    text.plain("” was changed since the card was shown, so nothing was changed. Ask again for a fresh card.")
}

/// What we stored cannot be read by this version of us.
pub fn unreadable_record() -> Text {
    Text::from("I cannot read what was approved any more, so nothing was changed. Please ask again.")
}

/// Reading back failed.
pub fn cannot_read_back(reason: &str) -> Text {
    Text::from(format!("UpGrade could not be read back ({reason})."))
}

/// Some of an update is there and some is not.
pub fn partly(name: &str, there: &[&str], missing: &[&str]) -> Text {
    let text = Text::new().plain("Reading back “").bold(name).plain("”: ");
    text.plain(format!("changed are {}; not changed are {}.", words(there), words(missing)))
}

/// The experiment was created, and what belongs to it was not all done; `why` is the platform's.
pub fn created_in_part(name: &str, lacking: &[&str], why: &Text) -> Text {
    let text = Text::new().plain("“").bold(name).plain(format!("” was created, but without its {}. ", words(lacking)));
    let text = Text(text.0.into_iter().chain(why.0.iter().cloned()).collect());
    text.plain(" Ask me to update it with what is missing.")
}

/// Some of an update was done and some was not; `why` is the platform's.
pub fn updated_in_part(name: &str, lacking: &[&str], why: &Text) -> Text {
    let text = Text::new().plain("“").bold(name).plain(format!("” was changed, but not its {}. ", words(lacking)));
    let text = Text(text.0.into_iter().chain(why.0.iter().cloned()).collect());
    text.plain(" Ask me again for the rest.")
}

/// Why a later part of a change was not done.
pub fn part_failed(error: &Error) -> Text {
    let why = match error {
        Error::Auth => "it does not accept my credentials any more".to_owned(),
        Error::Invalid { problems } => problems.join("; "),
        Error::SignIn(error) => format!("no sign-in, as {error}"),
        Error::NotFound { reason }
        | Error::Refused { reason }
        | Error::Faulted { reason }
        | Error::Unavailable { reason }
        | Error::NoAnswer { reason }
        | Error::Decode { reason } => reason.clone(),
    };
    Text::new().plain("UpGrade said: ").code(typed(&why)).plain(".")
}

/// The platform failed at one of several.
pub fn faulted_one(reason: &str) -> Text {
    Text::new().plain("UpGrade failed while it worked on this one (").code(typed(reason)).plain("); please look there.")
}

/// What became of each of several: `past` is what was done to them, and `not` says why the others are left.
pub fn each(past: &str, changed: &[&str], not: &[(&str, Text)]) -> Text {
    let all = changed.len() + not.len();
    let mut text = match changed.len() {
        0 => Text::from("None was changed."),
        some => Text::from(format!("{some} of {all}: {}", past.to_lowercase())),
    };
    for (i, name) in changed.iter().enumerate() {
        text = text.plain(if i == 0 { " “" } else { "”, “" }).bold(*name);
    }
    if !changed.is_empty() {
        text = text.plain("”.");
    }
    for (name, why) in not {
        text = text.plain(" Not “").bold(*name).plain("”: ").join(why.clone());
    }
    text
}

/// The title of the card of an update, and the sentence that it is done.
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

/// The status read back is neither the old nor the new one.
pub fn elsewhere(name: &str, now: &str) -> Text {
    Text::new().plain("Reading back, “").bold(name).plain(format!("” is {now}."))
}

/// A user was introduced.
pub fn initialised(user: &str) -> Text {
    Text::new().plain("UpGrade knows the user ").code(user).plain(" now.")
}

/// What a user is given; each with the name of its experiment, where that is known.
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

/// A visit was recorded.
pub fn marked(user: &str, site: &str, target: &str, marked: &Marked) -> Text {
    let text = Text::new().plain("Marked ").plain(place(site, Some(target))).plain(" for ").code(user);
    match (&marked.experiment_id, &marked.condition) {
        (None, _) => text.plain(". No experiment has this point, so nobody was enrolled."),
        (Some(_), Some(condition)) => text.plain(" with ").bold(condition).plain("."),
        (Some(_), None) => text.plain("."),
    }
}

/// `site / target`.
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
    fn every_failure_says_what_is_true_and_what_to_do() {
        let all = [
            gone("Math Hints"),
            gone_meanwhile("Math Hints"),
            unknown_user("student-9"),
            not_found("Experiment not found!"),
            not_accepted(),
            invalid(&["name: isNotEmpty".into()]),
            refused("Condition not found: purple"),
            faulted("an internal error"),
            faulted_and_open("an internal error"),
            down("Connection refused"),
            odd("not JSON"),
            changed_meanwhile("Math Hints"),
            unreadable_record(),
            cannot_read_back("no answer in time"),
            partly("Math Hints", &["description"], &["conditions"]),
            elsewhere("Math Hints", "archived"),
        ];
        assert_snapshot!(all.map(|text| text.words()).join("\n"), @"
        “Math Hints” does not exist any more, so nothing was changed.
        Reading back, “Math Hints” does not exist any more.
        UpGrade does not know the user student-9 yet, so nothing was changed. Initialise the user first.
        UpGrade does not know what was named: Experiment not found!. Nothing was changed. Look at what there is and ask again.
        UpGrade does not accept my credentials, so nothing was changed. Whoever runs me has to renew the access token.
        UpGrade did not accept this: name: isNotEmpty. Nothing was changed; ask again with that corrected.
        UpGrade refused: Condition not found: purple. Nothing was changed; ask again with that corrected.
        UpGrade failed while it worked on this (an internal error). I read back that nothing was changed. Ask again, or tell whoever runs it.
        UpGrade failed while it worked on this (an internal error), and I cannot tell whether it was done. Please look in UpGrade before asking again.
        UpGrade does not answer at the moment (Connection refused). Nothing was changed. Ask again in a minute, or tell whoever runs it.
        UpGrade answered something I cannot read: not JSON. Nothing was changed. Tell whoever runs it.
        “Math Hints” was changed since the card was shown, so nothing was changed. Ask again for a fresh card.
        I cannot read what was approved any more, so nothing was changed. Please ask again.
        UpGrade could not be read back (no answer in time).
        Reading back “Math Hints”: changed are description; not changed are conditions.
        Reading back, “Math Hints” is archived.
        ");
    }

    #[test]
    fn what_a_user_gets() {
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
    fn what_a_mark_came_to() {
        let came_to = |value| marked("student-1", "chat", "tone", &serde_json::from_value(value).unwrap()).words();
        assert_snapshot!(
            came_to(json!({ "condition": "variant", "experimentId": "d56d271d-a23c-4e9b-a163-b5fd658c5b03" })),
            @"Marked chat / tone for student-1 with variant."
        );
        assert_snapshot!(
            came_to(json!({ "condition": null, "experimentId": null })),
            @"Marked chat / tone for student-1. No experiment has this point, so nobody was enrolled."
        );
    }
}
