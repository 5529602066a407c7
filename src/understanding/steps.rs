//! Several requests in one message: `start Math Hints and then show it`, a list with numbers, a line for each.
//!
//! A message is divided only where every part is itself understood as a request, so that names with “and”, lists of
//! conditions and several weights stay whole. Where “and” or a comma alone stands between, the next part has to begin in
//! lower case: `show Stop and Go` is one name.

use super::{
    grammar,
    lexicon::Mention,
    reads,
    situation::Situation,
    wish::{Understood, Wish},
    words::{self, lower, words, words_with},
};

/// How many places are looked at where a message may be divided.
const MOST_PLACES: usize = 24;
/// What is understood for less than this is no request.
const SURE: f64 = 0.7;

/// A part of a message, and whether what stands before it clearly divides.
#[derive(Clone, Copy, Debug)]
struct Piece {
    start: usize,
    end: usize,
    clearly: bool,
}

/// The requests of a message in order, if it holds several.
pub(super) fn steps(situation: &Situation) -> Vec<String> {
    let said = situation.said.trim();
    let typed = words(said);
    if typed.len() > grammar::MOST_WORDS {
        return Vec::new();
    }
    let first = lower(&typed);
    let follows_up = ["undo", "try again", "ask again", "retry"].iter().any(|word| first.starts_with(word));
    let asked = situation.draft.as_ref().and_then(|draft| draft.asked.as_ref());
    let anything_goes = asked.is_some_and(|asked| matches!(asked.parameter.as_str(), "name" | "description"));
    let with_names = words_with(said, &situation.names);
    if let Some(shown) = reads::several(words::polite(&with_names), situation) {
        return shown;
    }
    let pieces = pieces(said, &situation.names);
    if pieces.len() < 2 || follows_up || anything_goes {
        return Vec::new();
    }
    let found = divide(said, &pieces, situation).unwrap_or_default();
    let mut wishes: Vec<Understood> = found.iter().map(|part| understood(part, situation, false)).collect();
    wishes.dedup();
    if wishes.len() < 2 { Vec::new() } else { found }
}

/// The division into the most parts of which each is a request.
fn divide(said: &str, pieces: &[Piece], situation: &Situation) -> Option<Vec<String>> {
    let count = pieces.len();
    let mut best: Vec<Option<Vec<String>>> = vec![None; count + 1];
    best[count] = Some(Vec::new());
    for from in (0..count).rev() {
        for to in (from + 1..=count).rev() {
            let Some(rest) = &best[to] else { continue };
            let part = said[pieces[from].start..pieces[to - 1].end].trim();
            let more = best[from].as_ref().is_none_or(|known| known.len() < rest.len() + 1);
            if more && is_request(part, from, said, pieces, situation) {
                best[from] = Some(std::iter::once(part.to_owned()).chain(rest.iter().cloned()).collect());
            }
        }
    }
    best.swap_remove(0)
}

/// Whether this part, which begins at a piece, is a request of its own.
fn is_request(part: &str, from: usize, said: &str, pieces: &[Piece], situation: &Situation) -> bool {
    let piece = pieces[from];
    let lower_case = part.chars().next().is_some_and(|first| !first.is_uppercase());
    if from > 0 && !piece.clearly && (!lower_case || is_listed(part, &said[..piece.end], situation)) {
        return false;
    }
    if from > 0 && is_of_pair(part, &said[..piece.start]) {
        return false;
    }
    let Understood { wish, confidence } = understood(part, situation, from == 0);
    let sure = confidence >= SURE;
    match wish {
        Wish::Read { .. } | Wish::Term(_) => sure && confidence > grammar::MENTIONED,
        Wish::Change { .. } => sure && words(part).len() > 1,
        Wish::Update(_) => sure && from == 0,
        Wish::Unclear { options, .. } => !options.is_empty(),
        Wish::Talk(_) | Wish::Drop | Wish::Unsupported => false,
    }
}

/// What a part means. Later parts may say “it”, and answer no question.
fn understood(part: &str, situation: &Situation, first: bool) -> Understood {
    let said = part.to_owned();
    grammar::understand(&match first {
        true => Situation { said, ..situation.clone() },
        false => Situation {
            said,
            last_subject: Some(situation.last_subject.clone().unwrap_or_else(|| "it".to_owned())),
            recent_changes: situation.recent_changes.clone(),
            names: situation.names.clone(),
            today: situation.today.clone(),
            ..Situation::default()
        },
    })
}

/// Whether this part goes on with “up to 3 starts and …”: starts and stops are one thing that is allowed.
fn is_of_pair(part: &str, before: &str) -> bool {
    const STARTS: &[&str] = &["starts", "start", "starting"];
    const STOPS: &[&str] = &["stops", "stop", "stopping"];
    let before = words(before);
    let last = before.iter().rev().find(|word| !word.any(&["and", ","]));
    match (last, words(part).first()) {
        (Some(last), Some(next)) => (last.any(STARTS) && next.any(STOPS)) || (last.any(STOPS) && next.any(STARTS)),
        _ => false,
    }
}

/// Whether this part is rather one more condition, or the end of a description.
fn is_listed(part: &str, before: &str, situation: &Situation) -> bool {
    let before = words(before);
    let of_text = before.iter().any(|word| word.any(&["description", "described"]));
    let of_list = before.iter().any(|word| word.any(&["conditions", "arms", "variants", "tags"]))
        || situation.draft.as_ref().and_then(|draft| draft.asked.as_ref()).is_some();
    let points_back = words(part).iter().any(|word| word.any(&["it", "that", "this"]));
    of_text || (of_list && !points_back)
}

/// What stands between requests. The first ones divide clearly, the others only where nothing else is meant.
const CLEARLY: &[&str] = &[
    "and then",
    "and after that",
    "after that",
    "and afterwards",
    "afterwards",
    "and finally",
    "finally",
    "and lastly",
    "lastly",
    "and next",
    "next",
    "then",
    "and also",
];
/// What may open a request in a row of them.
const OPENINGS: &[&str] = &[
    "first of all",
    "first",
    "firstly",
    "second",
    "secondly",
    "third",
    "thirdly",
    "and then",
    "then",
    "and also",
    "also",
    "and",
    "next",
    "finally",
    "lastly",
    "after that",
    "afterwards",
];

/// The message where it may be divided: at ends of lines and sentences, semicolons, numbers of a list, “then” and “and”.
fn pieces(said: &str, names: &[Mention]) -> Vec<Piece> {
    let mut found: Vec<Piece> = Vec::new();
    let (mut start, mut clearly) = (0, true);
    let mut at = 0;
    let mut push = |start: usize, end: usize, clearly: bool| {
        let begin = opening(said, start, end);
        let text = said[begin..end].trim_matches(|c: char| c.is_whitespace() || c == ',' || c == ';');
        if text.is_empty() {
            return clearly; // what divides here counts for the next piece
        }
        let begin = begin + said[begin..end].find(text).unwrap_or(0);
        found.push(Piece { start: begin, end: begin + text.len(), clearly });
        false
    };
    let mut numbers = 0;
    while at < said.len() {
        let rest = &said[at..];
        let begins = at == 0 || said[..at].ends_with(|c: char| !c.is_alphanumeric());
        let name =
            names.iter().find(|name| name.subject && rest.starts_with(name.said.as_str()) && !name.said.is_empty());
        if let Some(name) = name.filter(|_| begins) {
            at += name.said.len();
            continue;
        }
        if let Some(length) = quoted(rest).filter(|_| at == 0 || said[..at].ends_with(|c: char| !c.is_alphanumeric())) {
            at += length;
            continue;
        }
        let Some((length, divides_clearly, next_number)) = divider(said, at, numbers) else {
            at += rest.chars().next().map_or(1, char::len_utf8);
            continue;
        };
        numbers = next_number;
        let carried = push(start, at, clearly);
        clearly = divides_clearly || carried;
        at += length;
        start = at;
    }
    push(start, said.len(), clearly);
    // A greeting is no request.
    const GREETINGS: [&str; 6] = ["hi", "hello", "hey", "hiya", "good morning", "hi there"];
    if found.len() > 1 && GREETINGS.contains(&said[found[0].start..found[0].end].to_lowercase().as_str()) {
        found.remove(0);
    }
    // “Please do the following:” announces the rest.
    if found.len() > 2 && said[found[0].start..found[0].end].ends_with(':') {
        found.remove(0);
    }
    if found.len() > MOST_PLACES { Vec::new() } else { found }
}

/// How long the divider at this place is, and whether it divides clearly; and the number of the list it is.
fn divider(said: &str, at: usize, numbers: u32) -> Option<(usize, bool, u32)> {
    let rest = &said[at..];
    let first = rest.chars().next()?;
    let begins_word = at == 0 || said[..at].ends_with(|c: char| c.is_whitespace() || c == ',');
    if matches!(first, '\n' | ';') {
        return Some((1, true, numbers));
    }
    if matches!(first, '.' | '!' | '?') && rest[1..].starts_with(char::is_whitespace) {
        return Some((1, true, numbers));
    }
    if begins_word && first.is_ascii_digit() {
        let number = format!("{}", numbers + 1);
        let after = rest.strip_prefix(&number)?;
        let mark = after.starts_with(['.', ')', ':']) && after[1..].starts_with(char::is_whitespace);
        return mark.then_some((number.len() + 1, true, numbers + 1));
    }
    if begins_word && matches!(first, '-' | '*' | '•') && rest[first.len_utf8()..].starts_with(' ') {
        let of_line = said[..at].trim_end_matches([' ', '\t']);
        return (of_line.is_empty() || of_line.ends_with('\n')).then_some((first.len_utf8(), true, numbers));
    }
    if first == ',' && rest[1..].starts_with(char::is_whitespace) {
        return Some((1, false, numbers));
    }
    let word = |phrase: &&&str| {
        let beginning = rest.get(..phrase.len());
        let follows = rest.get(phrase.len()..).and_then(|rest| rest.chars().next());
        beginning.is_some_and(|text| text.eq_ignore_ascii_case(phrase))
            && follows.is_some_and(|c| c.is_whitespace() || c == ',')
    };
    if !begins_word {
        return None;
    }
    match CLEARLY.iter().find(word) {
        Some(phrase) => Some((phrase.len(), true, numbers)),
        None => (["and"].iter().find(word)).map(|phrase| (phrase.len(), false, numbers)),
    }
}

/// Where a piece begins without “first” or “then” in front.
fn opening(said: &str, start: usize, end: usize) -> usize {
    let mut begin = start;
    loop {
        let piece = &said[begin..end];
        let plain = piece.trim_start_matches(|c: char| c.is_whitespace() || c == ',' || c == ':');
        let begins = begin + piece.len() - plain.len();
        let opened = OPENINGS.iter().find(|phrase| {
            let text = plain.get(..phrase.len());
            let follows = plain.get(phrase.len()..).and_then(|rest| rest.chars().next());
            text.is_some_and(|text| text.eq_ignore_ascii_case(phrase))
                && follows.is_some_and(|c| c.is_whitespace() || c == ',' || c == ':')
        });
        match opened {
            Some(phrase) => begin = begins + phrase.len(),
            None => return begins,
        }
    }
}

/// The length of what stands in quotes at the beginning, with them.
fn quoted(text: &str) -> Option<usize> {
    let first = text.chars().next()?;
    let closing = words::closing(first)?;
    let inside = &text[first.len_utf8()..];
    let end = inside.find(closing)?;
    let closed = inside[end..].chars().next().map_or(0, char::len_utf8);
    Some(first.len_utf8() + end + closed)
}

#[cfg(test)]
mod tests {
    use super::{
        super::situation::{Asked, Draft, Situation},
        steps,
    };

    #[track_caller]
    fn check(said: &str, expected: &[&str]) {
        let situation = Situation { said: said.to_owned(), ..Situation::default() };
        assert_eq!(steps(&situation), expected, "{said}");
    }

    #[test]
    fn several_requests_are_divided() {
        check(
            "Create Foo in assign-prog with weights 70/30 and start it",
            &["Create Foo in assign-prog with weights 70/30", "start it"],
        );
        check(
            "create experiment Foo in assign-prog with conditions control and hints at S/t, start it, and then show it",
            &["create experiment Foo in assign-prog with conditions control and hints at S/t", "start it", "show it"],
        );
        check(
            "start Math Hints and then simulate user u1 at SelectSection/absolute_value_plot_equality",
            &["start Math Hints", "simulate user u1 at SelectSection/absolute_value_plot_equality"],
        );
        check(
            "list the running experiments; then show details of Math Hints",
            &["list the running experiments", "show details of Math Hints"],
        );
        check("First start Math Hints, then show it.", &["start Math Hints", "show it."]);
        check("1. start Math Hints\n2. show it\n3) stop it", &["start Math Hints", "show it", "stop it"]);
        check("please do this: 1. start Math Hints 2. show it", &["start Math Hints", "show it"]);
        check("Please do the following:\n- start Math Hints\n- show it", &["start Math Hints", "show it"]);
        check("Start Math Hints. Is UpGrade running?", &["Start Math Hints", "Is UpGrade running?"]);
        check("start “Stop and Go” and show “Math Hints”", &["start “Stop and Go”", "show “Math Hints”"]);
        check("what is a weight and what is a condition?", &["what is a weight", "what is a condition?"]);
        check("stop Math Hints and delete it", &["stop Math Hints", "delete it"]);
    }

    #[test]
    fn an_answer_may_bring_what_follows() {
        let draft = Draft { action: "create_experiment".into(), params: Default::default(), asked: None };
        let of_card = Situation {
            said: "weights to 70/30 and start it".to_owned(),
            on_card: Some(draft.clone()),
            ..Situation::default()
        };
        assert_eq!(steps(&of_card), ["weights to 70/30", "start it"]);
        let asked = Some(Asked { parameter: "context".into(), ..Asked::default() });
        let of_draft = Situation {
            said: "assign-prog, and then start it".to_owned(),
            draft: Some(Draft { asked, ..draft }),
            ..Situation::default()
        };
        assert_eq!(steps(&of_draft), ["assign-prog", "start it"]);
    }

    #[test]
    fn a_message_of_openings_costs_no_more_than_another() {
        let said = format!(
            "create experiment Foo {}",
            "exclude include tags conditions a, payloads x factors y and ".repeat(60)
        );
        let situation = Situation { said, ..Situation::default() };
        assert!(steps(&situation).is_empty(), "and it comes to an end");
    }

    #[test]
    fn one_request_stays_whole() {
        for said in [
            "create experiment Foo in assign-prog with conditions control and treatment",
            "create experiment Foo with conditions control, hints and video",
            "create experiment Foo with conditions no hints and show hints",
            "create a group experiment Foo in assign-prog assigned by classId with conditions a and b weights 70/30",
            "initialize user u1 with groups class 5B and 5C and school North in assign-prog",
            "how do weights and consistency rules work together?",
            "create experiment Foo in assign-prog, stop after 50 users, tags pilot, autumn",
            "show Stop and Go",
            "start Read and Write",
            "delete Search and Find",
            "allow up to 3 starts and stops of Math Hints until Friday",
            "allow up to 3 starts and stops in Math Hints until Friday",
            "allow starting and stopping Math Hints until tomorrow",
            "start Read and Start Over",
            "show “Start, then stop” in detail",
            "set the description of Math Hints to Show hints and start early",
            "stop “A”, “B” and “C”",
            "archive all completed experiments from May in mathstream",
            "what conditions and sites does assign-prog have?",
            "undo: Started “A” and stopped “B”.",
            "what version is it and is UpGrade running?",
            "start Math Hints and sing a song",
            "mark SelectSection/area_model for u1 with condition control",
            "hello and thanks",
            "weights 70/30 and 50/50",
        ] {
            check(said, &[]);
        }
    }
}
