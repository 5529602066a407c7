//! The conversion of a request into the response of a model: tool calls and text.

use countersign_model::{Block, KnownBlock, Purpose, Request, Response, Usage};
use serde_json::{Map, Value, json};

use super::{
    lexicon::Mention,
    phrase_book::{MENTION_CONFIDENCE, PhraseBook},
    situation::{Draft, IntentType, Situation},
    steps,
    suggestions::{self, Suggestion},
    talk,
    user_request::{Interpretation, UserRequest},
};

/// The minimum confidence to act on a request.
const MIN_CONFIDENCE: f64 = 0.7;

/// A guess, from the message alone, at the tools to offer to a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hint {
    /// The names of these tools and actions.
    Calls(Vec<String>),
    /// Talk, which needs no tool.
    Talk,
    /// The message matches no phrase.
    Nothing,
}

/// Returns the tools and actions that the message seems to need.
pub(super) fn hint(book: &PhraseBook, situation: &Situation) -> Hint {
    let steps = steps::steps(book, situation);
    if !steps.is_empty() {
        let of_step =
            |said: String| match hint_of(&book.understand(&Situation { said, ..situation.clone() }).user_request) {
                Hint::Calls(calls) => calls,
                Hint::Talk | Hint::Nothing => Vec::new(),
            };
        return Hint::Calls(steps.into_iter().flat_map(of_step).collect());
    }
    match hint_of(&book.understand(situation).user_request) {
        Hint::Calls(calls) if calls.is_empty() => {
            Hint::Calls(situation.in_hand().map(|change| change.action.clone()).into_iter().collect())
        }
        hint => hint,
    }
}

/// Returns the hint for one request. A message that continues a change needs no other tool.
fn hint_of(user_request: &UserRequest) -> Hint {
    match user_request {
        UserRequest::Read { tool, .. } => Hint::Calls(vec![tool.clone()]),
        UserRequest::Change { action, .. } => Hint::Calls(vec![action.clone()]),
        UserRequest::Update(_) | UserRequest::Drop => Hint::Calls(Vec::new()),
        UserRequest::Talk(_) | UserRequest::Term { .. } | UserRequest::Unsupported => Hint::Talk,
        UserRequest::Unclear { .. } => Hint::Nothing,
    }
}

/// Returns the response to a model request.
pub(super) fn answer(book: &PhraseBook, request: &Request, situation: &Situation) -> Response {
    let interpretation = understand(book, situation);
    let mut content = Vec::new();
    match request.purpose {
        Purpose::Analyze if is_clear(book, request, &interpretation, situation) => {
            gather(&mut content, interpretation.user_request)
        }
        Purpose::Analyze => analyze(book, &mut content, &interpretation, situation),
        Purpose::Gather => gather(&mut content, interpretation.user_request),
        Purpose::Respond | Purpose::Classify | Purpose::Generate => {
            respond(book, &mut content, interpretation.user_request, situation)
        }
    }
    // One pass is enough: the phrases never need the results of their calls.
    Response {
        content,
        stop_reason: "end_turn".to_owned(),
        usage: Usage { model: "rules".to_owned(), ..Usage::default() },
    }
}

/// Returns the interpretation of a message. If no rule reads it, it is what is suggested; if many of its parts are understood,
/// the others are named.
fn understand(book: &PhraseBook, situation: &Situation) -> Interpretation {
    let found = book.understand(situation);
    if let Some(asked) = still_unread(situation, &found) {
        return asked;
    }
    match suggestion(book, situation, &found) {
        Some(suggestion) => suggestion.interpretation(),
        None if let Some(asked) = which_listed(book, situation, &found) => asked,
        None if is_lost(&found) => {
            unread_parts(book, situation).map_or(found, |question| Interpretation::unclear(question, Vec::new()))
        }
        None => found,
    }
}

/// Asks again about a part of the request that was not understood, if the person only changed what was understood: that part
/// must not be left out without a word.
fn still_unread(situation: &Situation, found: &Interpretation) -> Option<Interpretation> {
    let (draft, UserRequest::Update(params)) = (situation.draft.as_ref()?, &found.user_request) else { return None };
    let is_other = |(key, value): (&String, &Value)| draft.params.get(key).is_some_and(|old| old != value);
    let question = draft.unread.as_ref().filter(|_| params.iter().all(is_other))?;
    let known = draft.params.clone().into_iter().chain(params.clone()).collect();
    Some(Interpretation {
        draft: Some(Box::new(Draft::begun(&draft.action, known))),
        ..Interpretation::unclear(question.clone(), Vec::new())
    })
}

/// Returns true if nothing was read, and there is no question to ask.
fn is_lost(found: &Interpretation) -> bool {
    matches!(&found.user_request, UserRequest::Unclear { question, options } if question.is_empty() && options.is_empty())
}

/// Returns a question about the parts of a message that are not understood, if others are.
fn unread_parts(book: &PhraseBook, situation: &Situation) -> Option<String> {
    if !steps::steps(book, situation).is_empty() {
        return None;
    }
    let unread = steps::not_understood(book, situation);
    let unread: Vec<String> = unread.iter().take(3).map(|part| format!("“{part}”")).collect();
    (!unread.is_empty()).then(|| {
        format!("I couldn't make sense of {}, so nothing was started. What should that step do?", unread.join(" or "))
    })
}

/// Returns what a message may mean that no rule reads as it is: one that only mentions something, or whose name may be none, or
/// of which nothing is read.
pub(super) fn suggestion(book: &PhraseBook, situation: &Situation, found: &Interpretation) -> Option<Suggestion> {
    let is_no_name = may_be_no_name(book, situation, found);
    let only_mentions =
        !matches!(found.user_request, UserRequest::Unclear { .. }) && found.confidence <= MENTION_CONFIDENCE;
    // A list whose limits are only partly understood may be read in other words.
    let is_partial_list = matches!(&found.user_request, UserRequest::Unclear { options, .. }
        if !options.is_empty() && options.iter().all(|option| option.starts_with("list ")));
    let may_mean_more = is_partial_list || is_lost(found) || is_no_name || only_mentions;
    if !may_mean_more || !steps::steps(book, situation).is_empty() {
        return None;
    }
    if is_partial_list {
        return suggestions::in_other_words(book, situation).filter(|other| matches!(other, Suggestion::Clear(..)));
    }
    if is_lost(found) && unread_parts(book, situation).is_some() {
        return None;
    }
    // What the message mentions is shown, unless another question is clearly meant.
    let is_nearer = |nearer: &Suggestion| !only_mentions || is_no_name || matches!(nearer, Suggestion::Clear(..));
    suggestions::suggested(book, situation, found).filter(is_nearer)
}

/// Returns true if a request is about a name that nothing has, and the words are hardly a name: “can I change the split?” asks
/// for nothing called “split”. The name of a thing is written in quotes, or begins with a capital. What should be changed may
/// have a new name in small letters, which is looked up, unless one of its words is known otherwise.
fn may_be_no_name(book: &PhraseBook, situation: &Situation, found: &Interpretation) -> bool {
    const POINTING: &[&str] = &[
        "that", "this", "these", "those", "both", "all", "old", "older", "new", "newer", "other", "any", "some", "one",
        "ones", "stuff", "thing", "things", "it", "them", "able", "far",
    ];
    let Some(name) = book.unknown_name(&found.user_request, situation) else { return false };
    if situation.names.iter().any(|known| known.subject && known.said.len() < name.len() && name.contains(&known.said))
    {
        return true; // a known name with other words
    }
    let is_no_part_of_name = |word: &str| POINTING.contains(&word) || book.line_words().contains(word);
    let is_surely_no_name =
        || matches!(found.user_request, UserRequest::Read { .. }) && !name.contains(|c: char| c.is_ascii_digit());
    if !is_surely_no_name() && !name.split(' ').any(is_no_part_of_name) {
        return false;
    }
    let words = book.words(&situation.said, &[]);
    let is_quoted = words.iter().any(|word| word.quoted && word.text == name);
    !is_quoted && name.chars().all(|letter| letter.is_lowercase() || letter.is_ascii_digit() || letter == ' ')
}

/// Asks which thing of the last list is meant by words that are hardly a name, such as “the older one”.
fn which_listed(book: &PhraseBook, situation: &Situation, found: &Interpretation) -> Option<Interpretation> {
    const MAX_OPTIONS: usize = 5;
    let listed = situation.listed.as_ref().filter(|listed| listed.names.len() <= MAX_OPTIONS)?;
    let name = book.unknown_name(&found.user_request, situation).filter(|_| may_be_no_name(book, situation, found))?;
    let with = |listed: &String| situation.said.replacen(&name, &format!("“{listed}”"), 1);
    let is_read = |option: &String| {
        let known =
            |name: &String| Mention { name: name.clone(), said: name.clone(), subject: true, ..Mention::default() };
        let names = listed.names.iter().map(known).collect();
        let pressed = Situation { said: option.clone(), names, ..situation.clone() };
        let read = book.understand(&pressed);
        let is_request = matches!(read.user_request, UserRequest::Change { .. });
        is_request && read.confidence > MENTION_CONFIDENCE && book.unknown_name(&read.user_request, &pressed).is_none()
    };
    let options: Vec<String> = listed.names.iter().map(with).filter(is_read).collect();
    (!options.is_empty()).then(|| Interpretation::unclear("Which one do you mean?", options))
}

/// Returns the request as which a message is read, if no rule reads it as it is.
pub(super) fn taken_as(book: &PhraseBook, situation: &Situation) -> Option<String> {
    match suggestion(book, situation, &book.understand(situation))? {
        Suggestion::Clear(request, _) => Some(request),
        Suggestion::Asked(_) => None,
    }
}

/// Returns true if the message is a single request and `request` offers the tool for it.
fn is_clear(book: &PhraseBook, request: &Request, interpretation: &Interpretation, situation: &Situation) -> bool {
    let offered = |name: &str| request.tools.iter().any(|tool| tool.name == name);
    let serves = match &interpretation.user_request {
        UserRequest::Read { tool, .. } => offered(tool),
        UserRequest::Change { action, .. } => offered(&proposal(action)),
        UserRequest::Update(_) => offered("update_action_params"),
        UserRequest::Drop => offered("drop_draft"),
        UserRequest::Talk(_) | UserRequest::Term { .. } | UserRequest::Unsupported | UserRequest::Unclear { .. } => {
            false
        }
    };
    serves && interpretation.confidence >= MIN_CONFIDENCE && steps::steps(book, situation).is_empty()
}

/// Returns the name of the tool that proposes an action.
fn proposal(action: &str) -> String {
    format!("propose_{action}")
}

/// Adds the analysis of the message, and the reply if it is talk.
fn analyze(book: &PhraseBook, content: &mut Vec<Block>, interpretation: &Interpretation, situation: &Situation) {
    let mut analysis = analysis(book, interpretation, situation);
    let (answer, next) = match &interpretation.user_request {
        UserRequest::Talk(talk) => talk::reply_to(book, *talk, situation),
        UserRequest::Term { meaning, .. } => ((*meaning).to_owned(), Vec::new()),
        _ => (String::new(), Vec::new()),
    };
    if !answer.is_empty() {
        analysis["answer"] = json!(answer);
    }
    let is_single = analysis.get("steps").is_none();
    call(content, "analyze_user_request", analysis);
    // The part of the change that is understood; the assistant keeps it as a draft.
    if let Some(draft) = interpretation.draft.as_deref().filter(|_| is_single) {
        call(content, &proposal(&draft.action), Value::Object(draft.params.clone()));
    }
    offer(content, &next);
}

/// Adds buttons below the answer.
fn offer(content: &mut Vec<Block>, steps: &[(&str, &str)]) {
    if !steps.is_empty() {
        let steps: Vec<Value> = steps.iter().map(|(label, says)| json!({ "label": label, "says": says })).collect();
        call(content, "offer_next_steps", json!({ "steps": steps }));
    }
}

fn call(content: &mut Vec<Block>, name: &str, input: Value) {
    let id = format!("rules_{}", content.len());
    content.push(KnownBlock::ToolUse { id, name: name.to_owned(), input }.into());
}

fn analysis(book: &PhraseBook, interpretation: &Interpretation, situation: &Situation) -> Value {
    let intent = match &interpretation.user_request {
        UserRequest::Talk(_) | UserRequest::Term { .. } | UserRequest::Unclear { .. } | UserRequest::Unsupported => {
            IntentType::DirectAnswer
        }
        UserRequest::Read { .. } | UserRequest::Change { .. } | UserRequest::Update(_) | UserRequest::Drop => {
            IntentType::NeedsInfo
        }
    };
    let mut analysis = json!({
        "intent_type": intent,
        "confidence": interpretation.confidence,
        "user_request_summary": situation.said.trim(),
        "reasoning": reason(&interpretation.user_request),
    });
    if let Some(capability) = book.family_of(&interpretation.user_request, situation) {
        analysis["capability"] = json!(capability);
    }
    let steps = steps::steps(book, situation);
    if !steps.is_empty() {
        analysis["steps"] = json!(steps);
    }
    if let UserRequest::Unclear { question, options } = &interpretation.user_request {
        analysis["question"] = json!(question);
        analysis["options"] = json!(options);
    }
    analysis
}

fn reason(user_request: &UserRequest) -> String {
    match user_request {
        UserRequest::Talk(_) => "talk".to_owned(),
        UserRequest::Term { name, .. } => format!("asks what “{name}” means"),
        UserRequest::Read { tool, .. } => format!("{tool} answers it"),
        UserRequest::Change { action, .. } => format!("asks for {action}"),
        UserRequest::Update(_) => "continues or corrects what is being worked out".to_owned(),
        UserRequest::Drop => "does not want it any more".to_owned(),
        UserRequest::Unsupported => "cannot be done here".to_owned(),
        UserRequest::Unclear { .. } => "fits no phrase".to_owned(),
    }
}

fn gather(content: &mut Vec<Block>, user_request: UserRequest) {
    match user_request {
        UserRequest::Read { tool, arguments } => call(content, &tool, Value::Object(arguments)),
        UserRequest::Change { action, params } => {
            call(content, &proposal(&action), Value::Object(params));
        }
        UserRequest::Update(params) => update(content, params),
        UserRequest::Drop => call(content, "drop_draft", json!({})),
        UserRequest::Talk(_) | UserRequest::Term { .. } | UserRequest::Unclear { .. } | UserRequest::Unsupported => {}
    }
}

fn update(content: &mut Vec<Block>, params: Map<String, Value>) {
    for (key, value) in params {
        call(content, "update_action_params", json!({ "key": key, "value": value }));
    }
}

fn respond(book: &PhraseBook, content: &mut Vec<Block>, user_request: UserRequest, situation: &Situation) {
    let (words, steps) = match user_request {
        UserRequest::Talk(talk) => talk::reply_to(book, talk, situation),
        UserRequest::Term { meaning, .. } => (meaning.to_owned(), Vec::new()),
        UserRequest::Read { .. }
        | UserRequest::Change { .. }
        | UserRequest::Update(_)
        | UserRequest::Drop
        | UserRequest::Unclear { .. }
        | UserRequest::Unsupported => {
            let words = match situation.errors.first() {
                Some(error) => error.clone(),
                None => talk::lost(book),
            };
            (words, Vec::new())
        }
    };
    content.push(KnownBlock::Text { text: words }.into());
    offer(content, &steps);
}
