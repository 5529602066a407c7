//! Replies that refuse a request, each with the reason and an alternative.

use countersign_core::reply::{Fact, Part, Reply, Text};
use countersign_services::google;
use countersign_understanding::slots;

use super::{
    super::{glossary::Term, rules},
    outcomes,
};
use crate::upgrade::{
    experiment::{ExperimentName, View},
    status::Status,
};

/// The maximum number of buttons in a reply.
const MAX_BUTTONS: usize = 5;

/// The maximum length of a quoted name, in characters.
const MAX_QUOTED: usize = 80;

/// Shortens the text that a person typed, so that it can be quoted in a sentence.
pub(super) fn typed(asked: &str) -> String {
    match asked.char_indices().nth(MAX_QUOTED) {
        Some((end, _)) => format!("{}…", asked[..end].trim_end()),
        None => asked.to_owned(),
    }
}

/// Says that the platform is not responding. `reason` is the observed error.
pub fn platform_down(reason: &str) -> Reply {
    Reply::text(format!("UpGrade isn't answering ({reason}), so I couldn't look that up."))
        .hint("Try again in a minute. If it keeps failing, contact your administrator.")
}

/// Says that the platform does not accept the bot's credentials.
pub fn not_accepted() -> Reply {
    Reply::text("UpGrade doesn't accept my credentials, so I can't read or change anything.")
        .hint("The app's operator needs to renew the access token.")
}

/// Says that the bot cannot sign in.
pub fn cannot_sign_in(error: &google::Error) -> Reply {
    let text = Text::new().plain("I can't sign in to UpGrade (").plain(error.to_string());
    Reply::text(text.plain("), so I can't read or change anything.")).hint(outcomes::sign_in_advice(error))
}

/// Says that the platform returned an error for a read.
pub fn platform_error(reason: &str) -> Reply {
    Reply::text(Text::new().plain("UpGrade couldn't answer that: ").code(reason).plain("."))
        .hint("Try again. If it keeps failing, contact your administrator.")
}

/// Says that no experiment has this name; `request_with` returns the corrected request for a name.
pub fn unknown_experiment(asked: &str, similar: &[ExperimentName], request_with: impl Fn(&str) -> String) -> Reply {
    let not_found = Text::new().plain("No experiment is called “").bold(typed(asked)).plain("”.");
    if similar.is_empty() {
        return Reply::text(not_found).choice("List experiments", "list experiments");
    }
    let mut question = not_found.plain(" Did you mean ");
    for (i, named) in similar.iter().enumerate() {
        question = question.plain(match i {
            0 => "",
            _ if i + 1 == similar.len() => " or ",
            _ => ", ",
        });
        question = question.plain("“").bold(&named.name).plain("”");
    }
    similar
        .iter()
        .fold(Reply::text(question.plain("?")), |reply, named| reply.choice(&named.name, request_with(&named.name)))
}

/// Says that several experiments have this name; `request_with` returns the corrected request for an id.
pub fn several_experiments(asked: &str, several: &[View], request_with: impl Fn(&str) -> String) -> Reply {
    let question =
        Text::new().plain("Several experiments are called “").bold(typed(asked)).plain("”. Which one do you mean?");
    several.iter().take(MAX_BUTTONS).fold(Reply::text(question), |reply, view| {
        let id = view.id.to_string();
        let label = format!("{}, {}, id {}…", view.context(), view.state.display(), &id[..8]);
        reply.choice(label, request_with(&id))
    })
}

/// Says that no context has this name; `request_with` returns the corrected request for a name.
pub fn unknown_context(asked: &str, known: &[String], request_with: impl Fn(&str) -> String) -> Reply {
    let text = Text::new().plain("No context is called “").bold(typed(asked)).plain("”. Available contexts: ");
    let reply = Reply::text(text.plain(known.join(", ")).plain("."));
    known.iter().take(MAX_BUTTONS).fold(reply, |reply, context| reply.choice(context, request_with(context)))
}

/// Asks in which context a part of the vocabulary, such as `decision points`, is looked up.
pub fn which_context(part: &str, known: &[String], request_with: impl Fn(&str) -> String) -> Reply {
    let reply = Reply::text(format!("The {part} depend on the context. Which one: {}?", known.join(", ")));
    known.iter().take(MAX_BUTTONS).fold(reply, |reply, context| reply.choice(context, request_with(context)))
}

/// Refuses a word that is not in the context's vocabulary. `what` is `site`, `target` or `group type`.
pub fn unknown_word(what: &str, asked: &str, context: &str, known: &[String]) -> Reply {
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Reply::text(
        Text::new()
            .plain(format!("The context {context} has no {what} “"))
            .bold(typed(asked))
            .plain(format!("”. It has: {known}.")),
    )
    .hint("Ask again with one of these.")
}

/// Returns the note about words that the person uses although the context does not list them.
pub fn beyond_context(words: &[String], context: &str) -> Text {
    Text::new().plain(format!("{context} doesn't list “{}”; its app has to know them.", quoted(words)))
}

/// Returns the question about words that are not in the context's vocabulary. `what` is one of them, such as `site`.
pub fn not_listed(what: &str, asked: &[String], context: &str, known: &[String], question: &str) -> String {
    let plural = if asked.len() == 1 { "" } else { "s" };
    format!("{context} has no {what}{plural} “{}”. It has: {}. {question}", quoted(asked), known.join(", "))
}

/// Returns words as they were typed, for between quotation marks.
fn quoted(words: &[String]) -> String {
    words.iter().map(|word| typed(word)).collect::<Vec<_>>().join("”, “")
}

/// Refuses a decision point that is not `site / target`. `example` is one of the context, if it has any.
pub fn incomplete_point(asked: &str, example: Option<&str>) -> Reply {
    let such_as = example.map_or_else(String::new, |example| format!(", such as {example}"));
    Reply::text(
        Text::new().plain("A decision point needs a site and a target; “").bold(typed(asked)).plain("” is one word."),
    )
    .hint(format!("Write it as site / target{such_as}."))
}

/// Refuses weights that do not match the conditions.
pub fn weights_do_not_fit(codes: &[String]) -> Reply {
    Reply::text(format!("Each condition needs a weight: {}.", codes.join(", ")))
        .hint("Write them in that order, such as 70/30, or by name.")
}

/// Refuses weights that do not add up to 100, or that are not all between 0 and 100. It offers the weights in the same
/// ratio, or else shows `equal` ones as an example.
pub fn weights_do_not_add_up(weights: &[f64], equal: &[f64]) -> Reply {
    let written = |weights: &[f64]| weights.iter().map(|w| rules::number(*w)).collect::<Vec<_>>().join("/");
    let total = rules::number(weights.iter().sum());
    let reply = Reply::text(format!("The weights add up to {total}. They must total 100, each from 0 to 100."));
    match slots::in_percent(weights) {
        Some(percent) => {
            let percent = written(&percent);
            reply.hint(format!("In the same ratio, that is {percent}.")).choice(percent.as_str(), percent.as_str())
        }
        None => reply.hint(format!("Give the weights again, for example {}.", written(equal))),
    }
}

/// Refuses a condition code that cannot be used.
pub fn bad_code(code: &str, why: &str) -> Reply {
    Reply::text(Text::new().plain("The condition code “").bold(typed(code)).plain(format!("” can't be used: {why}.")))
}

/// Refuses a value that is not among the allowed ones.
pub fn not_one_of(what: &str, asked: &str, allowed: &[&str]) -> Reply {
    Reply::text(
        Text::new()
            .plain(format!("The {what} can't be “"))
            .bold(typed(asked))
            .plain(format!("”. Allowed: {}.", allowed.join(", "))),
    )
}

/// Refuses a term that is not in the glossary.
pub fn unknown_concept(asked: &str, similar: &[&'static Term]) -> Reply {
    let reply = Reply::text(Text::new().plain("I can't explain “").bold(typed(asked)).plain("”."));
    let reply = similar.iter().fold(reply, |reply, term| reply.choice(term.name(), format!("explain {}", term.name())));
    reply.choice("Which terms can you explain?", "what concepts can you explain?")
}

/// Refuses text that is not a period of time.
pub fn no_time(asked: &str) -> Reply {
    Reply::text(Text::new().plain("I couldn't read “").bold(typed(asked)).plain("” as a time."))
        .hint("For example: today, this week, last 3 days, or since 2026-11-01.")
}

/// Refuses a user id that is not valid in a header.
pub fn bad_user() -> Reply {
    Reply::text("A user ID must have 1 to 250 characters and no leading or trailing spaces.")
}

/// Says that the experiment already has this status.
pub fn already(name: &str, status: Status) -> Reply {
    let words = match status {
        Status::Enrolling => "is already running".to_owned(),
        Status::EnrollmentComplete => "is already paused".to_owned(),
        Status::Cancelled => "is already cancelled".to_owned(),
        other => format!("is already {}", other.display()),
    };
    Reply::text(Text::new().plain("“").bold(name).plain(format!("” {words}, so there's nothing to change.")))
}

/// Says that the experiment is not ready to start.
pub fn not_ready(name: &str, problems: &[String]) -> Reply {
    Reply::text(Text::new().plain("“").bold(name).plain(format!("” can't start yet: {}.", problems.join(", "))))
        .hint("Ask me to update it first.")
}

/// Says that the experiment cannot change from one status to the other. `possible` are the statuses
/// that it can change to.
pub fn not_possible(name: &str, from: Status, to: Status, possible: &[Status]) -> Reply {
    let mut reply = Text::new()
        .plain("“")
        .bold(name)
        .plain(format!("” is {}, so I won't make it {}. ", from.display(), to.display()))
        .plain("UpGrade would accept that, but it isn't good practice.");
    reply = match possible {
        [] => reply.plain(" It stays as it is."),
        possible => {
            let words: Vec<_> = possible.iter().map(|status| status.display()).collect();
            reply.plain(format!(" I can make it: {}.", words.join(", ")))
        }
    };
    possible.iter().fold(Reply::text(reply), |reply, next| {
        let request = format!("{} {name}", rules::verb(from, *next));
        reply.choice(request.clone(), request)
    })
}

/// Says that no experiment may move to a status.
pub fn none_may_become(to: Status) -> Reply {
    Reply::text(format!("No experiment can become {} now.", to.display()))
        .choice("List experiments", "list experiments")
}

/// Refuses an update that changes nothing.
pub fn nothing_changes(name: &str) -> Reply {
    Reply::text(Text::new().plain("“").bold(name).plain("” is already like that, so there's nothing to change."))
}

/// Asks for the change if an update does not name one.
pub fn no_change_given(name: &str) -> Reply {
    Reply::text(Text::new().plain("What should I change about “").bold(name).plain("”?")).hint(
        "Its name, description, tags, weights, conditions, decision points, assignment, or what happens after enrollment ends.",
    )
}

/// Says that the experiment has no such condition.
pub fn unknown_condition(asked: &str, name: &str, codes: &[String]) -> Reply {
    let text = Text::new().plain("“").bold(name).plain("” has no condition “").bold(typed(asked));
    Reply::text(text.plain(format!("”. It has: {}.", codes.join(", "))))
}

/// Says that the experiment has no such decision point.
pub fn not_its_point(name: &str, point: &str, points: &[String]) -> Reply {
    let text = Text::new().plain("“").bold(name).plain("” has no decision point ").code(typed(point));
    Reply::text(text.plain(format!(". It has: {}.", if points.is_empty() { "none".into() } else { points.join(", ") })))
}

/// Says that the decision point belongs to an experiment in another context; `request_with` returns
/// the corrected request for its name.
pub fn point_elsewhere(point: &str, context: &str, other: &View, request_with: impl Fn(&str) -> String) -> Reply {
    let text = Text::new().plain(format!("No experiment in {context} uses the decision point ")).code(typed(point));
    let text = text.plain("; “").bold(&other.name).plain(format!("” in {} has it.", other.context()));
    Reply::text(text).choice(format!("Mark it in {}", other.name), request_with(&other.name))
}

/// Says that the experiment belongs to another context.
pub fn not_in_context(name: &str, context: &str, asked: &str) -> Reply {
    Reply::text(
        Text::new().plain("“").bold(name).plain(format!("” is in {context}, not in ")).bold(typed(asked)).plain("."),
    )
}

/// Says that in a within-subjects design each mark would count as another visit.
pub fn within_subjects(name: &str) -> Reply {
    Reply::text(Text::new().plain("“").bold(name).plain(
        "” is a within-subjects experiment, where every mark counts as another visit. A lost mark couldn't be distinguished from a second one, so only the application can mark visits.",
    ))
}

/// Says that a within-subjects design has no consistency rule.
pub fn no_consistency_within_subjects() -> Reply {
    Reply::text("A within-subjects experiment gives each user several conditions, so it has no consistency rule.")
        .hint("Leave the rule out, or choose the unit individual or group.")
}

/// Says that individual assignment has no group consistency.
pub fn no_group_rule() -> Reply {
    Reply::text(
        "The consistency rule can be “group” only with assignment by group. This experiment assigns users individually.",
    )
    .hint("Give a group type, such as assigned by classId, or choose the rule individual or experiment.")
}

/// Refuses an assignment algorithm that the bot does not support.
pub fn algorithm(asked: &str) -> Reply {
    if is_adaptive(asked) {
        return Reply::text(
            "I can't create or copy adaptive experiments, such as those with Thompson sampling. UpGrade has them where the \
             Mooclet service is set up.",
        )
        .hint("Create it in UpGrade's own pages, or ask me for one with random or stratified assignment.");
    }
    let why = match asked.contains("strat") {
        true => "it stratifies by a factor, which can only be chosen when an experiment is created",
        false => "I know only random and stratified random sampling",
    };
    Reply::text(Text::new().plain("I can't use the algorithm “").bold(typed(asked)).plain(format!("”: {why}.")))
        .hint("Use random instead, which is the default.")
}

/// Returns true if the words name an adaptive algorithm.
pub fn is_adaptive(words: &str) -> bool {
    let words: String = words.chars().map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect();
    let words = words.to_lowercase();
    let has = |term: &str| format!(" {words} ").contains(&format!(" {term} "));
    let names =
        ["ts configurable", "mooclet", "adaptive", "adaptively", "thompson", "bandit", "bandits", "reinforcement"];
    names.into_iter().any(has)
}

/// Refuses stratified assignment by an unknown factor, or without a factor.
pub fn no_such_factor(asked: Option<&str>, known: &[String]) -> Reply {
    let text = match asked {
        Some(asked) => Text::new().plain("I can't stratify by the factor “").bold(typed(asked)).plain("”. "),
        None => Text::from("Stratified sampling uses a user attribute (factor), such as grade. "),
    };
    match known {
        [] => Reply::text(text.plain("I looked in UpGrade: no factor is uploaded there."))
            .hint("Use random instead, or upload the factor in UpGrade first."),
        known => Reply::text(text.plain(format!("The uploaded factors are: {}.", known.join(", "))))
            .hint("Ask again with one of these."),
    }
}

/// Says that the stratified assignment of an experiment cannot be changed.
pub fn stays_stratified(name: &str) -> Reply {
    let text = Text::new().plain("“").bold(name).plain("” uses stratified sampling, which I can't change.");
    Reply::text(text).hint("Change it in UpGrade, or create a new experiment.")
}

/// Says that the end of an experiment would be before its start.
pub fn ends_before_it_starts() -> Reply {
    Reply::text("The end date is before the start date.").hint("Give both dates again.")
}

/// Says that a change of status other than a start cannot set an end date.
pub fn only_a_start_has_an_end() -> Reply {
    Reply::text("You can set an end date only when starting an experiment.")
        .hint("Ask for the end date alone, for example: end it on Friday.")
}

/// Refuses a month that cannot be parsed.
pub fn no_month(asked: &str) -> Reply {
    Reply::text(Text::new().plain("I can't read “").bold(typed(asked)).plain("” as a month."))
        .hint("Write it as May, May 2026 or 2026-05.")
}

/// Says that an experiment that is to stay as it is does not exist.
pub fn none_to_except(name: &str) -> Reply {
    let text = Text::new()
        .plain("No experiment is called “")
        .bold(name)
        .plain("”, so I can't leave it out. Nothing was changed.");
    Reply::text(text).choice("List experiments", "list experiments")
}

/// Says that no experiment matches the request.
pub fn none_fits() -> Reply {
    Reply::text("No experiments match, so there's nothing to change.").choice("List experiments", "list experiments")
}

/// Says that none of several experiments can change to this status.
pub fn none_can_change(to: Status, left_out: &[String]) -> Reply {
    Reply::text(format!("None of them can become {}: {}.", to.display(), left_out.join(", ")))
}

/// Says that there are too many experiments for one card.
pub fn too_many(found: usize, most: usize) -> Reply {
    Reply::text(format!("{found} experiments match. One card can list at most {most}."))
        .hint("Narrow it to one context, one tag or one month.")
}

/// Refuses a payload that is not valid JSON.
pub fn bad_json(condition: &str) -> Reply {
    Reply::text(Text::new().plain("The payload of “").bold(typed(condition)).plain("” isn't valid JSON."))
}

/// Refuses an undo that would also revert later changes. Each line shows the value right after the
/// change to be undone, and the current value.
pub fn changed_since(name: &str, changed: &[Fact]) -> Reply {
    let lines = changed.iter().map(|fact| {
        let text = Text::new().bold(&fact.label).plain(": then ");
        text.join(fact.before.clone().unwrap_or_default()).plain(", now ").join(fact.after.clone())
    });
    let text = Text::new().plain("“").bold(name);
    Reply::text(
        text.plain("” was changed again since then, so nothing was undone: undoing this would undo that change too."),
    )
    .and(Part::List(lines.collect()))
    .hint("Tell me what it should be and I'll post a card for that.")
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use serde_json::json;
    use uuid::Uuid;

    use super::{super::tests::read, *};
    use crate::upgrade::experiment::{Experiment, ExperimentId};

    fn named(name: &str) -> ExperimentName {
        ExperimentName { id: ExperimentId(Uuid::from_u128(1)), name: name.into() }
    }

    #[test]
    fn similar_names_are_suggested_for_an_unknown_one() {
        let request_with = |name: &str| format!("start {name}");
        assert_snapshot!(read(&unknown_experiment("Mth Hints", &[named("Math Hints"), named("Math Hints v2")], request_with)), @r"
        No experiment is called “Mth Hints”. Did you mean “Math Hints” or “Math Hints v2”?
        [Math Hints → start Math Hints]
        [Math Hints v2 → start Math Hints v2]
        ");
        assert_snapshot!(read(&unknown_experiment("Zebra", &[], request_with)), @"
        No experiment is called “Zebra”.
        [List experiments → list experiments]
        ");
    }

    #[test]
    fn a_long_name_is_not_repeated_in_full() {
        let said = read(&unknown_experiment(&"very long ".repeat(40), &[], str::to_owned));
        assert!(said.starts_with("No experiment is called “very long very") && said.contains(" long…”."), "{said}");
        assert!(said.chars().count() < 160, "{said}");
    }

    #[test]
    fn experiments_with_equal_names_are_distinguished() {
        let twin = |id: u128, state: &str| {
            let raw = json!({ "id": Uuid::from_u128(id << 96), "name": "Minimal", "context": ["assign-prog"], "state": state });
            Experiment::from_value(&raw).unwrap().view
        };
        let request_with = |id: &str| format!("stop {id}");
        assert_snapshot!(read(&several_experiments("Minimal", &[twin(1, "inactive"), twin(2, "running")], request_with)), @r"
        Several experiments are called “Minimal”. Which one do you mean?
        [assign-prog, inactive, id 00000001… → stop 00000001-0000-0000-0000-000000000000]
        [assign-prog, running, id 00000002… → stop 00000002-0000-0000-0000-000000000000]
        ");
    }

    #[test]
    fn a_vocabulary_is_listed() {
        let known = ["assign-prog".to_owned(), "mathstream".to_owned()];
        assert_snapshot!(read(&unknown_context("asign", &known, |c| format!("create it in {c}"))), @r"
        No context is called “asign”. Available contexts: assign-prog, mathstream.
        [assign-prog → create it in assign-prog]
        [mathstream → create it in mathstream]
        ");
        assert_snapshot!(read(&unknown_word("site", "Lobby", "assign-prog", &["SelectSection".into()])), @r"
        The context assign-prog has no site “Lobby”. It has: SelectSection.
        Ask again with one of these.
        ");
        assert_snapshot!(read(&incomplete_point("SelectSection", Some("SelectSection / area_model"))), @r"
        A decision point needs a site and a target; “SelectSection” is one word.
        Write it as site / target, such as SelectSection / area_model.
        ");
    }

    #[test]
    fn weights_are_explained() {
        assert_snapshot!(read(&weights_do_not_fit(&["control".into(), "variant".into()])), @r"
        Each condition needs a weight: control, variant.
        Write them in that order, such as 70/30, or by name.
        ");
        assert_snapshot!(read(&weights_do_not_add_up(&[1.0, 2.0], &[50.0, 50.0])), @r"
        The weights add up to 3. They must total 100, each from 0 to 100.
        In the same ratio, that is 33/67.
        [33/67]
        ");
        assert_snapshot!(read(&weights_do_not_add_up(&[150.0, -50.0], &[50.0, 50.0])), @r"
        The weights add up to 100. They must total 100, each from 0 to 100.
        Give the weights again, for example 50/50.
        ");
    }

    #[test]
    fn a_status_that_is_already_set_needs_no_change() {
        assert_snapshot!(
            read(&already("Running Test", Status::EnrollmentComplete)),
            @"“Running Test” is already paused, so there's nothing to change."
        );
        assert_snapshot!(
            read(&already("Running Test", Status::Enrolling)),
            @"“Running Test” is already running, so there's nothing to change."
        );
        assert_snapshot!(read(&nothing_changes("Math Hints")), @"“Math Hints” is already like that, so there's nothing to change.");
    }

    #[test]
    fn an_impossible_status_is_refused_with_the_possible_ones() {
        let possible = rules::possible(Status::Inactive);
        assert_snapshot!(read(&not_possible("Math Hints", Status::Inactive, Status::EnrollmentComplete, &possible)), @"
        “Math Hints” is inactive, so I won't make it paused. UpGrade would accept that, but it isn't good practice. I can make it: scheduled, running, cancelled.
        [schedule Math Hints]
        [start Math Hints]
        [cancel Math Hints]
        ");
        assert_snapshot!(
            read(&not_possible("Math Hints", Status::Cancelled, Status::Enrolling, &[])),
            @"“Math Hints” is cancelled, so I won't make it running. UpGrade would accept that, but it isn't good practice. It stays as it is."
        );
        assert_snapshot!(read(&not_ready("Math Hints", &["it has no decision point".into()])), @r"
        “Math Hints” can't start yet: it has no decision point.
        Ask me to update it first.
        ");
    }

    #[test]
    fn errors_of_the_platform_are_described() {
        assert_snapshot!(read(&platform_down("Connection refused")), @"
        UpGrade isn't answering (Connection refused), so I couldn't look that up.
        Try again in a minute. If it keeps failing, contact your administrator.
        ");
        assert_snapshot!(read(&not_accepted()), @r"
        UpGrade doesn't accept my credentials, so I can't read or change anything.
        The app's operator needs to renew the access token.
        ");
        assert_snapshot!(read(&platform_error("an internal error")), @"
        UpGrade couldn't answer that: an internal error.
        Try again. If it keeps failing, contact your administrator.
        ");
    }

    #[test]
    fn small_corrections() {
        let all = [
            bad_code("default", "it is reserved"),
            not_one_of("assignment unit", "team", &["individual", "group"]),
            countersign_capabilities::parameters::unreadable("weights: not a list"),
            countersign_capabilities::parameters::unreadable("invalid type: string \"3\", expected i64"),
            countersign_capabilities::parameters::unreadable("invalid value: integer `-5`, expected u64"),
            countersign_capabilities::parameters::unreadable("invalid type: floating point `1.5`, expected u64"),
            bad_user(),
            no_change_given("Math Hints"),
            unknown_condition("purple", "Math Hints", &["control".into(), "variant".into()]),
            not_its_point("Math Hints", "chat / tone", &[]),
            within_subjects("Tour"),
        ];
        assert_snapshot!(all.iter().map(read).collect::<Vec<_>>().join("\n"), @"
        The condition code “default” can't be used: it is reserved.
        The assignment unit can't be “team”. Allowed: individual, group.
        A value has the wrong type, so I couldn't use it.
        Give the value again, for example as it appears on the platform.
        A value has the wrong type: expected a whole number.
        Give the value again, for example as it appears on the platform.
        This must be a whole number, zero or more; -5 isn't.
        Give a whole number, such as 5.
        This must be a whole number, zero or more; 1.5 isn't.
        Give a whole number, such as 5.
        A user ID must have 1 to 250 characters and no leading or trailing spaces.
        What should I change about “Math Hints”?
        Its name, description, tags, weights, conditions, decision points, assignment, or what happens after enrollment ends.
        “Math Hints” has no condition “purple”. It has: control, variant.
        “Math Hints” has no decision point chat / tone. It has: none.
        “Tour” is a within-subjects experiment, where every mark counts as another visit. A lost mark couldn't be distinguished from a second one, so only the application can mark visits.
        ");
    }
}
