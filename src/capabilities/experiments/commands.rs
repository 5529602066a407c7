//! `/upgrade`: quick answers about experiments, without a language model.

use countersign_capabilities::{
    Command, Takes, Word,
    facts::{Facts, deadline},
};
use countersign_core::reply::{Part, Reply, Text};
use countersign_graph::action::Reader;
use serde_json::json;

use super::{
    SERVICE,
    listing::{Form, ListArguments},
    replies::{answers, contexts, details, lists},
    upgrade::status::Status,
};

/// The command `/upgrade` and its words.
pub(super) const COMMAND: Command = Command {
    name: "/upgrade",
    words: &[
        Word { word: "status", takes: Takes::Nothing, what: "UpGrade's status and version", example: "status" },
        Word {
            word: "list",
            takes: Takes::Optional("context or status"),
            what: "all experiments, or only those in a context or status",
            example: "list running",
        },
        Word { word: "show", takes: Takes::Required("name"), what: "one experiment", example: "show Math Hints" },
        Word { word: "watches", takes: Takes::Nothing, what: "your active watches", example: "watches" },
    ],
};

/// The tool of another capability that lists what is followed.
const WATCHES: &str = "list_watches";

/// Lists what is followed for this reader.
async fn watches(facts: &Facts, reader: &Reader) -> Reply {
    let asked = json!({});
    let failed = || Reply::text("The list of watches isn't available. Try again in a minute.");
    match facts.read_for(WATCHES, &asked, reader).await {
        Ok(answer) => {
            let tool = facts.registry().tools.get(WATCHES);
            let mut reply = tool.and_then(|tool| tool.present(&asked, &answer)).unwrap_or_else(failed);
            // A private answer is in no thread, in which a button could say something.
            let has_buttons = !std::mem::take(&mut reply.choices).is_empty();
            if has_buttons { reply.hint("To stop, mention me with “stop watching” and the name.") } else { reply }
        }
        Err(reply) => reply.unwrap_or_else(failed),
    }
}

/// Answers one word of the command for a reader.
pub(super) async fn answer(word: &str, rest: &str, facts: &Facts, reader: &Reader) -> Reply {
    match word {
        "watches" => watches(facts, reader).await,
        "list" => list(rest, facts).await,
        "show" => show(rest, facts).await,
        _ => health(facts).await,
    }
}

/// Answers with the health and version of the platform.
async fn health(facts: &Facts) -> Reply {
    match facts.read(SERVICE.name, SERVICE.health, json!({}), deadline()).await {
        Ok(fact) if fact.fresh => facts.with_age(answers::health_reply(&fact.answer), &fact, SERVICE.name),
        Ok(fact) => answers::earlier_health_reply(&fact.answer, &facts.age(&fact)),
        Err(reply) => reply,
    }
}

/// Lists the experiments: all, or those of a status or a context.
async fn list(filter: &str, facts: &Facts) -> Reply {
    let until = deadline();
    let which = match Status::asked_for(filter) {
        _ if filter.is_empty() => ListArguments::default(),
        Some(status) => ListArguments { status: Some(status.stored().to_owned()), ..ListArguments::default() },
        None => match facts.read(SERVICE.name, "get_context_metadata", json!({}), until).await {
            Ok(contexts) if contexts.answer.get(filter).is_none() => {
                if let Some(status) = Status::similar_name(filter) {
                    return unknown_filter(filter, status);
                }
                let reply = contexts::contexts_reply(&contexts.answer, Some(filter));
                return facts.with_age(reply, &contexts, SERVICE.name);
            }
            Ok(_) => ListArguments { context: Some(filter.to_owned()), ..ListArguments::default() },
            Err(reply) => return reply,
        },
    };
    match facts.read(SERVICE.name, "get_all_experiments", json!(which), until).await {
        Ok(fact) => facts.with_age(lists::list_reply(&fact.answer, &which), &fact, SERVICE.name),
        Err(reply) => reply,
    }
}

/// Shows one experiment, found by its name.
async fn show(name: &str, facts: &Facts) -> Reply {
    let asked = json!({ "experiment_id": name });
    match facts.read(SERVICE.name, "get_experiment_details", asked, deadline()).await {
        Ok(fact) => facts.with_age(details::details_reply(&fact.answer, Form::Normal), &fact, SERVICE.name),
        Err(reply) => choices_as_list(reply),
    }
}

/// Lists the choices as text if they are ids, since a private answer has no buttons.
fn choices_as_list(mut reply: Reply) -> Reply {
    let ids = reply.choices.len() > 1 && reply.choices.iter().all(|choice| choice.label.contains(", id "));
    let labels = std::mem::take(&mut reply.choices).into_iter().map(|choice| choice.label.into()).collect();
    match ids {
        true => reply.and(Part::List(labels)).hint("Ask for one by its ID, such as /upgrade show 1a2b3c4d."),
        false => reply,
    }
}

/// Returns the reply to a filter that is neither a context nor a status, but similar to `status`.
fn unknown_filter(asked: &str, status: &str) -> Reply {
    let asked: String = asked.chars().take(60).collect();
    let text = Text::from("No context or status is called ").code(asked);
    Reply::text(text.plain(". Did you mean ").code(format!("/upgrade list {status}")).plain("?"))
}
