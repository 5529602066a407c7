//! One experiment, or one context: all of it, a part of it, in short or in detail.

use super::{
    lists,
    names::{self, Named},
    questions::{ASKING, METADATA, SHOWING},
    situation::Situation,
    wish::Wish,
    words::{Word, after, lower, skip, text, without_last},
};

pub(super) const DETAILS: &str = "get_experiment_details";

/// What a context has to offer, or what an experiment has.
fn vocabulary(words: &[Word], situation: &Situation, form: Option<&str>) -> Option<Wish> {
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
    // `Math Hints's conditions`
    let opened = skip(skip(&words[..place], SHOWING), ASKING);
    let whose = opened.split_last().and_then(|(last, others)| {
        let name = last.text.strip_suffix("'s").or_else(|| last.text.strip_suffix("’s"))?;
        Some(others.iter().map(|word| word.text.as_str()).chain([name]).collect::<Vec<_>>().join(" "))
    });
    if let Some(name) = whose {
        return Some(Wish::read(DETAILS, [("experiment_id", Some(name)), ("form", form.map(str::to_owned))]));
    }
    let named = match named {
        Some(named) => named,
        None if place >= 1 && words[place - 1].text.contains('-') => &words[place - 1..place],
        // `what are the conditions?`, while one is talked about
        None if rest.is_empty() && words[..place].iter().any(|word| word.any(&["the", "its"])) => rest,
        None => return None,
    };
    let named = without_last(
        named,
        &[
            "have",
            "has",
            "offer",
            "offers",
            "know",
            "knows",
            "support",
            "use",
            "context",
            "there",
            "available",
            "got",
            "compare",
            "compares",
            "test",
            "tests",
        ],
    );
    let in_experiment = words.iter().any(|word| word.any(&["experiment", "study", "weights", "payloads", "tags"]));
    if !in_experiment && names::looks_like_context(named) {
        let tool = match words[place].lower.as_str() {
            "conditions" | "condition" => "get_conditions_for_context",
            "sites" | "site" | "targets" | "target" | "points" | "point" => "get_decision_points_for_context",
            "types" | "groups" => "get_group_types_for_context",
            _ => METADATA,
        };
        return Some(Wish::read(tool, [("context", Some(text(named)))]));
    }
    of_experiment(named, situation, form)
}

/// How this experiment stands, or all of them where none is named.
pub(super) fn standing(experiment: Option<String>) -> Wish {
    match experiment {
        Some(name) => Wish::read(DETAILS, [("experiment_id", Some(name))]),
        None => lists::all(),
    }
}

fn of_experiment(named: &[Word], situation: &Situation, form: Option<&str>) -> Option<Wish> {
    let form = form.map(str::to_owned);
    match names::experiment(named, situation) {
        Named::Name(name) => Some(Wish::read(DETAILS, [("experiment_id", Some(name)), ("form", form)])),
        Named::Nothing => form.is_none().then(lists::all),
    }
}

/// What is asked of an experiment or of what a context knows.
pub(super) fn details(words: &[Word], situation: &Situation) -> Option<Wish> {
    let (words, form) = form(words);
    if let (Some(_), [] | [_]) = (form, words) {
        // “In detail”, of what was talked about.
        if words.first().is_none_or(|word| word.any(&["show", "explain", "describe", "it", "that", "list"])) {
            return situation.last_subject.as_ref().and_then(|_| of_experiment(&[], situation, form));
        }
    }
    let whole = lower(skip(skip(skip(words, SHOWING), "explain|describe"), "the|its|more"));
    match (whole.as_str(), &situation.last_subject) {
        ("details", Some(_)) => return of_experiment(&[], situation, form),
        ("setup" | "set-up" | "configuration" | "design", Some(_)) => {
            return of_experiment(&[], situation, Some("full"));
        }
        _ => {}
    }
    vocabulary(words, situation, form).or_else(|| about(words, situation, form)).or_else(|| {
        let named = form.is_some().then_some(words)?; // `raw JSON of Math Hints`
        of_experiment(named, situation, form)
    })
}

/// How much is to be said, and the words without that.
fn form(words: &[Word]) -> (&[Word], Option<&'static str>) {
    const FORMS: [(&str, &[&str], &str); 3] = [
        (
            "raw",
            &[
                "as raw json",
                "as json",
                "in json",
                "in raw form",
                "as raw data",
                "as raw",
                "raw",
                "as a file",
                "raw json",
            ],
            "the raw json of|the raw json for|raw json of|raw json for|the json of|the json for|json of|json for|the raw data of|the raw data for|raw data of|raw data for|raw",
        ),
        (
            "full",
            &[
                "in detail",
                "in full",
                "in full detail",
                "in more detail",
                "with all details",
                "in details",
                "completely",
                "more details",
                "more detail",
                "full details",
                "all details",
            ],
            "full details of|full details for|the full details of|all details of|all details about|more details about|more details of|more details on|everything about|the setup of|the full setup of|setup of",
        ),
        (
            "short",
            &["in short", "in brief", "briefly", "short", "in one sentence", "in a sentence"],
            "a short summary of|short summary of|a summary of|the summary of|summary of|briefly|in short",
        ),
    ];
    for (form, endings, openings) in FORMS {
        for ending in endings {
            let length = ending.split(' ').count();
            if words.len() >= length && lower(&words[words.len() - length..]) == *ending {
                let rest = &words[..words.len() - length];
                return (without_last(rest, &[",", "the"]), Some(form));
            }
        }
        let opened = skip(words, SHOWING);
        let opened = skip(opened, "describe|explain|summarize|summarise|what is|what are");
        if let Some(rest) = after(opened, openings) {
            return (rest, Some(form));
        }
    }
    (words, None)
}

fn about(words: &[Word], situation: &Situation, form: Option<&str>) -> Option<Wish> {
    if words[0].any(&["get", "bring"]) && words.last()?.any(&["going", "started", "running", "live"]) {
        return None; // that is a change
    }
    if let Some(named) = after(
        words,
        "show me the context|show the context|show context|describe the context|describe context|explain context|explain the context|tell me about context|tell me about the context|what does context|context",
    ) {
        let named = without_last(named, &["offer", "have", "metadata"]);
        return names::looks_like_context(named).then(|| Wish::read(METADATA, [("context", Some(text(named)))]));
    }
    if let Some(named) = after(
        words,
        "how many users|how many people|how many participants|how many students|how many learners|how big is|who is",
    )
    .and_then(|rest| {
        after(skip(rest, "who|that"), "are enrolled in|enrolled in|is enrolled in|are there in|are in|in|joined|take part in|are taking part in|does|did")
    }) {
        let named = without_last(named, &["have", "has", "enrolled", "enroll", "got", "so", "far"]);
        return (!named.is_empty()).then(|| of_experiment(named, situation, form)).flatten();
    }
    if let Some(named) = after(words, "how is|how was|how did we set up") {
        let bare = without_last(named, &["set", "up", "configured", "designed", "built"]);
        if bare.len() < named.len() {
            return of_experiment(bare, situation, Some("full"));
        }
    }
    let shown = skip(skip(words, SHOWING), "the|more|some|all the|all|its");
    if let Some(named) = after(
        shown,
        "details for|details of|details on|details about|detail of|info for|info on|info about|information for|information on|information about",
    ) {
        return of_experiment(named, situation, form);
    }
    if let Some(named) = after(words, "what about|how about") {
        return of_experiment(named, situation, form);
    }
    // `what is Math Hints?`, where it is no word of the platform
    if let Some(named) = after(words, "what is|what was")
        && (named.iter().any(|word| word.quoted)
            || named.len() > 1 && named.iter().all(|word| word.text.starts_with(char::is_uppercase)))
    {
        return of_experiment(named, situation, form);
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
        return of_experiment(named, situation, form);
    }
    let asked = after(words, "is|are|has|did|was")?;
    let status = asked.last()?;
    let known = lists::is_status(status) || status.any(&["done", "on", "up", "start", "stop"]);
    let named =
        skip(without_last(&asked[..asked.len() - 1], &["still", "already", "yet", "currently", "been"]), "already");
    (known && !named.is_empty()).then(|| of_experiment(named, situation, form)).flatten()
}

#[cfg(test)]
mod tests {
    use super::super::{situation::Situation, tests::check};

    #[test]
    fn parts_of_what_was_talked_about() {
        let talked = Situation { last_subject: Some("Math Hints".into()), ..Situation::default() };
        let shown = |form: &str| format!(r#"read get_experiment_details {{"experiment_id":"Math Hints"{form}}}"#);
        let (usual, full, raw) = (shown(""), shown(r#","form":"full""#), shown(r#","form":"raw""#));
        check(
            &talked,
            &[
                ("what are the conditions?", &usual),
                ("What are its conditions?", &usual),
                ("show details", &usual),
                ("explain the setup", &full),
                ("in detail please", &full),
                ("show it in detail", &full),
                ("raw", &raw),
                ("show it as JSON", &raw),
            ],
        );
    }
}
