//! Questions that one tool answers.

use super::{
    glossary, lists,
    names::{self, Named},
    situation::Situation,
    wish::{Talk, Understood, Wish},
    words::{Word, after, lower, skip, text, without_last},
};

const HEALTH: &str = "check_upgrade_health";
const METADATA: &str = "get_context_metadata";
const DETAILS: &str = "get_experiment_details";
const LOG: &str = "get_execution_log";

pub(super) const SHOWING: &str =
    "show me|show us|show|list|get me|get|display|give me|see|view|find|tell me|fetch|search for|look up|open";
pub(super) const ASKING: &str = "what are|what is|which are|what|which|are there|how many|do we have|are any|is any";

/// What is asked, if it is one of these questions. `words` are without politeness.
pub(super) fn question(words: &[Word], situation: &Situation) -> Option<Understood> {
    talk(words)
        .or_else(|| log(words))
        .or_else(|| health(words))
        .or_else(|| contexts(words))
        .or_else(|| known_to(words))
        .or_else(|| term(words))
        .or_else(|| lists::list(words))
        .or_else(|| vocabulary(words, situation))
        .or_else(|| details(words, situation))
        .map(Understood::from)
}

/// Greetings, thanks, and questions about the bot itself; `words` may be with politeness.
pub(super) fn talk(words: &[Word]) -> Option<Wish> {
    let talk = match lower(words).as_str() {
        "hi" | "hello" | "hey" | "hey there" | "hi there" | "hello there" | "good morning" | "good afternoon"
        | "good evening" | "hello bot" | "hi bot" | "hello countersign" | "hi countersign" | "yo" | "greetings" => {
            Talk::Greeting
        }
        "thanks"
        | "thank you"
        | "thx"
        | "thanks a lot"
        | "thank you very much"
        | "many thanks"
        | "great"
        | "perfect"
        | "great thanks"
        | "great thank you"
        | "cool"
        | "nice"
        | "awesome"
        | "ok thanks"
        | "perfect thanks" => Talk::Thanks,
        "help"
        | "help me"
        | "?"
        | "what can you do"
        | "what can i do"
        | "what do you do"
        | "who are you"
        | "what are you"
        | "how do you work"
        | "how does this work"
        | "commands"
        | "what can i ask"
        | "what can i ask you"
        | "usage"
        | "what can you help with"
        | "what can you help me with"
        | "how can you help"
        | "what are you able to do"
        | "how do i create an experiment"
        | "how do i start an experiment" => Talk::Help,
        "what is pending"
        | "pending"
        | "what is open"
        | "what is waiting"
        | "what are you waiting for"
        | "what needs approval"
        | "what is waiting for approval"
        | "open cards"
        | "show pending"
        | "what is missing" => Talk::Pending,
        "how does approval work" | "how do approvals work" | "who can approve" | "what happens when i approve" => {
            Talk::Approval
        }
        plain if agrees_or_not(plain) => Talk::NothingAsked,
        _ => return None,
    };
    Some(Wish::Talk(talk))
}

/// Whether it says no more than yes or no. Only few of these decide about a card: that is for approvals to know.
fn agrees_or_not(plain: &str) -> bool {
    const THUMBS: &[&str] = &["👍", ":+1", ":thumbsup", "✅", ":white_check_mark", ":ok_hand", "👌"];
    const YES: &[&str] = &[
        "yes",
        "y",
        "yep",
        "yeah",
        "yes please",
        "ok",
        "okay",
        "k",
        "sure",
        "fine",
        "alright",
        "all right",
        "agreed",
        "+1",
        "go",
        "go ahead",
        "go for it",
        "do it",
        "please do",
        "proceed",
        "approve",
        "approved",
        "approve it",
        "confirm",
        "confirmed",
        "sounds good",
        "looks good",
        "looks good to me",
        "lgtm",
    ];
    const NO: &[&str] = &["no", "n", "nope", "reject", "rejected", "reject it", "don't", "dont", "do not", "👎", ":-1"];
    YES.contains(&plain) || NO.contains(&plain) || THUMBS.iter().any(|thumb| plain.starts_with(thumb))
}

fn log(words: &[Word]) -> Option<Wish> {
    let asked = lower(without_last(words, &["so", "far", "yet", "here", "today", "together", "in", "this", "thread"]));
    let asked = asked.trim_end_matches(" so far");
    let fits = matches!(
        asked,
        "what have we accomplished"
            | "what have we done"
            | "what did we do"
            | "what did we accomplish"
            | "what did you do"
            | "what have you done"
            | "what did you change"
            | "what have you changed"
            | "what was changed"
            | "what was done"
            | "what has been done"
            | "what changed"
            | "what has changed"
            | "what happened"
            | "what has happened"
            | "show the log"
            | "show log"
            | "show history"
            | "show the history"
            | "history"
            | "execution log"
            | "show the execution log"
            | "log"
            | "what have we changed"
            | "what did we change"
            | "recap"
            | "summarize what we did"
            | "summarise what we did"
            | "summary of changes"
            | "show changes"
            | "show the changes"
            | "who approved what"
    );
    fits.then(|| Wish::read(LOG, []))
}

fn health(words: &[Word]) -> Option<Wish> {
    let asked = lower(skip(words, "check if|check whether|tell me if|check|do a|run a|run"));
    let about = |subject: &str| {
        let state = [
            "running",
            "up",
            "ok",
            "okay",
            "alive",
            "available",
            "healthy",
            "working",
            "reachable",
            "online",
            "down",
            "there",
            "up and running",
        ];
        let asks = asked.strip_prefix("is ").or(Some(&asked)).and_then(|rest| rest.strip_prefix(subject));
        asks.is_some_and(|rest| state.contains(&rest.trim_start_matches(" is").trim()))
    };
    let version = (asked.contains("version")
        && (asked.contains("upgrade") || asked.contains("server") || words.len() <= 4))
        && (asked.starts_with("what")
            || asked.starts_with("which")
            || asked.starts_with("version")
            || asked.starts_with("upgrade")
            || asked.starts_with("show")
            || asked.starts_with("get"));
    let fits =
        ["upgrade", "the server", "the platform", "server", "the upgrade server", "the upgrade service", "the service"]
            .into_iter()
            .any(about)
            || matches!(
                asked.as_str(),
                "health"
                    | "health check"
                    | "healthcheck"
                    | "upgrade health"
                    | "the health"
                    | "upgrade"
                    | "ping"
                    | "upgrade status"
                    | "status of upgrade"
                    | "the upgrade status"
                    | "how is upgrade"
                    | "how is upgrade doing"
                    | "server status"
                    | "status of the server"
                    | "what is the status of upgrade"
                    | "what is the upgrade status"
                    | "upgrade's health"
                    | "the server"
                    | "status"
            );
    (fits || version).then(|| Wish::read(HEALTH, []))
}

/// `what does assign-prog know?`
fn known_to(words: &[Word]) -> Option<Wish> {
    let (last, named) = after(words, "what does|what do")?.split_last()?;
    let named = skip(named, "the context|context");
    (last.any(&["know", "offer", "contain", "support", "allow"]) && names::looks_like_context(named))
        .then(|| Wish::read(METADATA, [("context", Some(text(named)))]))
}

fn contexts(words: &[Word]) -> Option<Wish> {
    let last = words.iter().find(|word| word.any(&["contexts", "apps", "applications"]))?;
    let asks =
        after(words, SHOWING).is_some() || after(words, ASKING).is_some() || words[0] == *last || words[0].is("all");
    asks.then(|| Wish::read(METADATA, []))
}

fn term(words: &[Word]) -> Option<Wish> {
    let asked = after(
        words,
        "what is meant by|what is the meaning of|what is the definition of|what is|what are|what does|what do|what|define|explain to me|explain|\
         meaning of|tell me about|describe|how does|how do",
    )?;
    let asked = without_last(asked, &["mean", "means", "work", "exactly", "again", "stand", "for"]);
    if skip(asked, "the").len() != asked.len() && asked.len() <= 2 {
        return None; // “the experiment” is one of theirs
    }
    glossary::find(asked).map(Wish::Term)
}

/// What a context has to offer, or what an experiment has.
fn vocabulary(words: &[Word], situation: &Situation) -> Option<Wish> {
    let things = [
        "conditions",
        "condition",
        "sites",
        "site",
        "targets",
        "target",
        "points",
        "point",
        "metadata",
        "vocabulary",
        "types",
        "weights",
        "groups",
        "payloads",
        "tags",
    ];
    let place = words.iter().position(|word| word.any(&things))?;
    let asks = after(words, SHOWING).is_some() || after(words, ASKING).is_some() || place <= 2;
    let tells =
        words[0].any(&["set", "change", "update", "edit", "modify", "make", "adjust", "create", "rename", "add"]);
    if !asks || tells {
        return None;
    }
    let rest = &words[place + 1..];
    let named = after(
        rest,
        "are there in the context|are there in|are available in|are in|are used in|are possible in|can i use in|can be used in|are available for|\
         does the context|does the|does|do|has|is in|in the context|in context|of the context|for the context|in|of|for|does context|of context|for context",
    );
    let named = match named {
        Some(named) => named,
        None if place >= 1 && words[place - 1].text.contains('-') => &words[place - 1..place],
        None => return None,
    };
    let named = without_last(
        named,
        &["have", "has", "offer", "offers", "support", "use", "context", "there", "available", "got"],
    );
    let in_experiment = words.iter().any(|word| word.any(&["experiment", "study", "weights", "payloads", "tags"]));
    if !in_experiment && names::looks_like_context(named) {
        return Some(Wish::read(METADATA, [("context", Some(text(named)))]));
    }
    Some(of_experiment(named, situation))
}

/// How this experiment stands, or all of them where none is named.
pub(super) fn standing(experiment: Option<String>) -> Wish {
    match experiment {
        Some(name) => Wish::read(DETAILS, [("experiment_id", Some(name))]),
        None => lists::all(),
    }
}

fn of_experiment(named: &[Word], situation: &Situation) -> Wish {
    match names::experiment(named, situation) {
        Named::Name(name) => standing(Some(name)),
        Named::Nothing => standing(None),
    }
}

fn details(words: &[Word], situation: &Situation) -> Option<Wish> {
    if let Some(named) = after(
        words,
        "show me the context|show the context|show context|describe the context|describe context|explain context|explain the context|tell me about context|tell me about the context|what does context|context",
    ) {
        let named = without_last(named, &["offer", "have", "metadata"]);
        return names::looks_like_context(named).then(|| Wish::read(METADATA, [("context", Some(text(named)))]));
    }
    if let Some(named) = after(
        words,
        "what is the status of|what is the state of|show the status of|show me the status of|check the status of|get the status of|status of|state of|status|\
         how is|how are|details of|details for|details on|details about|details|info on|info about|information on|information about|\
         show me the details of|show me details of|show the details of|show details of|show details for|show me details for|show me details about|\
         get details of|get details for|get the details of|get details about|give me the details of|give me details of|give me details on|\
         tell me more about|tell me about|more about|describe|explain|show me|show|view|open|look at|inspect|get|find|look up|display|see",
    ) {
        let named = without_last(named, &["doing", "going", "status", "details", "running", "detail", "info"]);
        let plain = lower(named);
        if plain.is_empty() || matches!(plain.as_str(), "you" | "things" | "everything" | "all" | "me") {
            return None;
        }
        return Some(of_experiment(named, situation));
    }
    let asked = after(words, "is|are|has|did|was")?;
    let status = asked.last()?;
    let known = lists::is_status(status) || status.any(&["done", "on", "up", "start", "stop"]);
    let named =
        skip(without_last(&asked[..asked.len() - 1], &["still", "already", "yet", "currently", "been"]), "already");
    (known && !named.is_empty()).then(|| of_experiment(named, situation))
}
