//! Words that end the work in progress: “stop”, “wait, cancel everything please”.
//!
//! A sentence is such a request only as a whole: a word for stopping, an object that means the work, and words of
//! hesitation, politeness or haste around them. A sentence that names a thing, such as “stop Math Hints”, is a request
//! for a change.

use crate::{
    phrase_list::PhraseList,
    refusals::is_mere_question,
    words::{self, Word, after},
};

/// Phrases that may stand before and after the words for stopping. A phrase precedes its own beginning in this list.
static AROUND: PhraseList = PhraseList::new(
    "wait a moment|wait a minute|wait a second|wait a sec|wait|hold on a moment|hold on a minute|\
    hold on a second|hold on a sec|hold on|hang on a moment|hang on a second|hang on|one moment|just a moment|oh no|oh|\
    no no|no|ok|okay|please|pls|plz|kindly|at once|right now|right away|straight away|now|immediately|instantly|\
    quickly|quick|asap|just|actually|sorry|oops|whoa|hey|hi|hello|my mistake|on second thoughts|on second thought|\
    i said|can you|could you|will you|can u|could u|will u|i want you to|i'd like you to|thanks|thank you|thx|\
    countersign|bot|and|,|-|–|—",
);

/// The verbs.
const VERBS: &str = "stop|abort|cancel|halt|quit|kill";

/// The verbs that mean all work if they stand alone. The others may also answer a question or mean a card.
const COMPLETE_VERBS: &str = "stop|abort|halt";

/// Objects that mean all work. A phrase precedes its own beginning in this list.
static ALL_WORK: PhraseList = PhraseList::new(
    "everything you are doing|everything you're doing|everything|all of it|all of this|all of that|\
    all this|all that|all work|all|it all|this all|that all|the whole thing|the whole plan|the whole lot|\
    the entire plan|the plan|this plan|that plan|my plan|your plan|the work|your work|working on it|working on this|\
    working on that|working|doing it|doing this|doing that|what you are doing|what you're doing|what youre doing|\
    what you do|whatever you are doing|whatever you're doing",
);

/// Objects that may mean the work in progress. A phrase precedes its own beginning in this list.
const POINTING: &str = "the run|this run|that run|the job|this job|that job|it|that|this";

/// The work that a message asks to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopRequest {
    /// “Cancel” and “cancel it”: the work in progress, if no question and no card waits for an answer.
    Cancel,
    /// “Stop it”, “kill the job”: the work in progress, if there is any.
    Pointed,
    /// “Stop”, “cancel everything”: all work.
    Everything,
}

/// Returns the request if the message as a whole asks to stop the work. A question does so only in the form of a
/// request: “can you stop that?”
pub fn stop_request(said: &str) -> Option<StopRequest> {
    let all = words::words(said);
    if is_mere_question(said, &all) { None } else { stop_request_in(&all) }
}

/// Returns the request if all of these words ask to stop the work.
pub(crate) fn stop_request_in(words: &[Word]) -> Option<StopRequest> {
    let mut found = None;
    let mut rest = without_hesitation(words);
    while !rest.is_empty() {
        let (request, left) = first_request(rest)?;
        found = found.max(Some(request));
        rest = without_hesitation(left);
    }
    found
}

/// Returns the words after those that only surround a request; may be empty.
fn without_hesitation(mut words: &[Word]) -> &[Word] {
    while let Some(rest) = AROUND.after(words) {
        words = rest;
    }
    words
}

/// Returns the request that these words begin with, and the words after it.
fn first_request(words: &[Word]) -> Option<(StopRequest, &[Word])> {
    let left = after(words, VERBS)?;
    if let Some(left) = ALL_WORK.after(left) {
        return Some((StopRequest::Everything, left));
    }
    let is_cancel = words.first().is_some_and(|verb| verb.is("cancel"));
    if let Some(left) = after(left, POINTING) {
        let names_work = last_before(words, left).is_some_and(|last| last.any(&["run", "job"]));
        return Some((if is_cancel && !names_work { StopRequest::Cancel } else { StopRequest::Pointed }, left));
    }
    let alone = match after(words, COMPLETE_VERBS) {
        Some(_) => StopRequest::Everything,
        None if is_cancel => StopRequest::Cancel,
        None => StopRequest::Pointed,
    };
    Some((alone, left))
}

/// Returns the last of the words before `left`, which is the rest of `words`.
fn last_before<'a>(words: &'a [Word], left: &[Word]) -> Option<&'a Word> {
    words[..words.len() - left.len()].last()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_work_is_stopped_in_many_words() {
        for said in [
            "stop",
            " Stop! ",
            "STOP!!!",
            "stop stop stop",
            "stop please",
            "please stop",
            "stop now",
            "stop working",
            "halt",
            "abort",
            "wait, stop",
            "wait stop!",
            "hold on, please stop now",
            "oh no, stop",
            "no, stop immediately",
            "ok stop",
            "Okay, stop.",
            "stop at once",
            "stop – now",
            "can you stop?",
            "could you please stop everything?",
            "i said stop",
            "stop the plan",
            "please cancel the plan",
            "abort the whole plan",
            "cancel everything",
            "Cancel everything, please!",
            "stop all of it",
            "cancel all",
            "kill everything",
            "quit all of this",
            "stop what you are doing",
            "stop what you’re doing",
            "stop doing that",
            "hold on, cancel that and stop everything",
        ] {
            assert_eq!(stop_request(said), Some(StopRequest::Everything), "{said}");
        }
    }

    #[test]
    fn words_that_point_mean_work_only_where_there_is_some() {
        for said in [
            "stop it",
            "Hold on, stop it!",
            "kill it",
            "quit",
            "halt that",
            "stop the run",
            "cancel the job",
            "kill it now",
        ] {
            assert_eq!(stop_request(said), Some(StopRequest::Pointed), "{said}");
        }
        for said in ["cancel", "cancel it", "wait, cancel that please", "can you cancel that?"] {
            assert_eq!(stop_request(said), Some(StopRequest::Cancel), "{said}");
        }
    }

    #[test]
    fn a_sentence_that_names_a_thing_is_a_request() {
        for said in [
            "",
            "wait",
            "no",
            "please",
            "don't stop",
            "do not stop it",
            "stop Math Hints",
            "stop “it”",
            "stop the experiment",
            "stop that experiment",
            "stop all experiments",
            "stop everything in mathstream",
            "stop all of them",
            "stop it tomorrow",
            "stop it again",
            "stop it if it is even",
            "cancel the end date",
            "cancel job 7",
            "cancel my request",
            "cancel that and start Math Hints",
            "stop enrolling",
            "should we stop?",
            "would you stop it?",
            "stop?",
            "how do I stop?",
            "did it stop?",
            "nonstop",
            "no, use mathstream",
            "no, stop here",
        ] {
            assert_eq!(stop_request(said), None, "{said}");
        }
    }
}
