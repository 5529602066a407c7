//! A sentence as words: a quotation is one word, punctuation at the end of a word is dropped, and
//! commas are words.

use std::{collections::HashMap, sync::LazyLock};

use crate::{lexicon::Mention, phrase_list::PhraseList};

/// One word, or several in quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The word as it was typed.
    pub text: String,
    /// The word in lower case, for comparing.
    pub lower: String,
    /// True if it was in quotes or names a thing that requests are about. It can then only be a
    /// name.
    pub quoted: bool,
    /// The punctuation that was dropped after it.
    pub tail: String,
    /// The kind of the thing that it names; `None` if it is not a known name.
    pub kind: Option<String>,
    /// The capability of the thing that it names, if there is only one such capability.
    pub owner: Option<String>,
}

impl Word {
    /// Creates a word that names nothing.
    pub(crate) fn new(text: &str, quoted: bool) -> Self {
        Self { text: text.to_owned(), lower: text.to_lowercase(), quoted, tail: String::new(), kind: None, owner: None }
    }

    /// Creates a word from a mention. The name of a thing that requests are about counts as quoted.
    fn named(said: &str, mention: &Mention, all: &[Mention]) -> Self {
        let twin = |other: &Mention| other.said == mention.said && other.subject && other.owner != mention.owner;
        let is_of_one = mention.subject && !mention.owner.is_empty() && !all.iter().any(twin);
        let owner = is_of_one.then(|| mention.owner.clone());
        Self { kind: Some(mention.kind.clone()), owner, ..Self::new(said, mention.subject) }
    }

    /// Returns true if it is this word and not quoted.
    pub fn is(&self, word: &str) -> bool {
        !self.quoted && self.lower == word
    }

    /// Returns true if it is one of the words of this text and not quoted.
    pub fn among(&self, words: &str) -> bool {
        !self.quoted && is_one_of(words, &self.lower)
    }

    /// Returns true if it is one of these words and not quoted.
    pub fn any(&self, words: &[&str]) -> bool {
        !self.quoted && words.iter().any(|word| self.lower == *word)
    }
}

/// Returns true if a word is one of those in a text, which are separated by spaces.
pub fn is_one_of(words: &str, word: &str) -> bool {
    words.split([' ', '\n']).any(|known| known == word)
}

/// Returns the words of a message. Mentions of people, such as the bot, are left out.
pub fn words(message: &str) -> Vec<Word> {
    words_with(message, &[])
}

/// Returns the words of a message. Each of these names is one word.
pub fn words_with(message: &str, names: &[Mention]) -> Vec<Word> {
    let mut found = Vec::new();
    let mut rest = message.trim_start();
    while let Some(first) = rest.chars().next() {
        let begins =
            rest.len() == message.len() || !message[..message.len() - rest.len()].ends_with(char::is_alphanumeric);
        if let Some((mention, after)) =
            names.iter().filter(|_| begins).find_map(|name| Some((name, begins_with(rest, name)?)))
        {
            found.push(Word::named(&mention.said, mention, names));
            let owned = ["'s", "’s"].iter().find_map(|mark| after.strip_prefix(mark));
            let owned = owned.filter(|rest| !rest.starts_with(char::is_alphanumeric));
            let after =
                owned.or_else(|| after.strip_prefix("' ")).or_else(|| after.strip_prefix("’ ")).unwrap_or(after);
            let tail = after.find(|c| !".!?;:)]*…".contains(c)).unwrap_or(after.len());
            if after[tail..].chars().next().is_none_or(char::is_whitespace) {
                found.last_mut().expect("it was pushed").tail = after[..tail].to_owned();
                rest = after[tail..].trim_start();
            } else {
                rest = after.trim_start();
            }
            continue;
        }
        if let Some(after) = rest.strip_prefix("<@").and_then(|mention| mention.split_once('>')) {
            rest = after.1.trim_start_matches([',', ':']).trim_start();
            continue;
        }
        if let Some((inside, after)) = quoted(first, rest) {
            let inside = inside.trim();
            let name = names.iter().find(|name| name.said == inside);
            let plain = Word::new(inside, true);
            found.push(match name {
                Some(name) => Word { quoted: true, ..Word::named(inside, name, names) },
                None => plain,
            });
            rest = after.trim_start();
            continue;
        }
        let end = rest.find(|c: char| c.is_whitespace() || c == ',').unwrap_or(rest.len());
        let end = grouped(rest).unwrap_or(end);
        let (word, after) = rest.split_at(end.max(first.len_utf8()));
        if word.starts_with(',') {
            found.push(Word::new(",", false));
        } else {
            push_plain(&mut found, word);
        }
        rest = after.trim_start();
    }
    join_slashes(found)
}

/// Returns the length of a number with thousands separators, such as `1,000`, if the text begins
/// with one.
fn grouped(text: &str) -> Option<usize> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != ',').unwrap_or(text.len());
    let end = text[..end].trim_end_matches(',').len();
    let mut groups = text[..end].split(',');
    let first = groups.next().is_some_and(|group| (1..=3).contains(&group.len()) && !group.starts_with('0'));
    let continues = text[end..].starts_with(|c: char| c.is_alphanumeric() || "_-/%:".contains(c));
    (first && end > 3 && text[..end].contains(',') && groups.all(|group| group.len() == 3) && !continues).then_some(end)
}

/// Returns the text after this name, if the text begins with it and it is not a part of a longer
/// word.
fn begins_with<'a>(text: &'a str, name: &Mention) -> Option<&'a str> {
    let after = text.strip_prefix(name.said.as_str()).filter(|_| !name.said.is_empty())?;
    let ends = name.said.ends_with(char::is_alphanumeric);
    let continues = |next: char| ends && next.is_ascii_alphanumeric() || matches!(next, '-' | '_' | '/');
    (!after.chars().next().is_some_and(continues)).then_some(after)
}

/// Returns the characters that can close a quotation opened by `first`.
pub fn closing(first: char) -> Option<&'static [char]> {
    Some(match first {
        '"' => &['"'],
        '“' | '„' => &['”', '“', '"'],
        '‘' => &['’'],
        '`' => &['`'],
        '\'' => &['\''],
        '«' => &['»'],
        _ => return None,
    })
}

/// Returns the text between quotes at the beginning, and the rest.
pub fn quoted(first: char, text: &str) -> Option<(&str, &str)> {
    let closing = closing(first)?;
    let inside = &text[first.len_utf8()..];
    let end = inside.find(closing)?;
    let after = &inside[end..];
    let after = &after[after.chars().next().map_or(0, char::len_utf8)..];
    // An apostrophe is not a quote: after a closing quote there is no letter or digit.
    let ends_word = after.chars().next().is_none_or(|c| !c.is_alphanumeric());
    (ends_word && !inside[..end].trim().is_empty()).then_some((&inside[..end], after))
}

fn push_plain(found: &mut Vec<Word>, typed: &str) {
    let typed = typed.trim_start_matches(['(', '[', '*', '_']);
    let word = typed.trim_end_matches(['.', '!', '?', ';', ':', ')', ']', '*', '…']);
    let tail = typed[word.len()..].to_owned();
    let lower = word.to_lowercase().replace('’', "'");
    match lower
        .strip_suffix("'s")
        .filter(|stem| ["what", "who", "how", "where", "it", "that", "let", "which"].contains(stem))
    {
        Some(stem) => {
            // Both keep what was typed, since “It’s new” may be a name.
            let (typed, mark) = word.split_at(stem.len());
            found.push(Word::new(typed, false));
            let lower = if stem == "let" { "us" } else { "is" }.to_owned();
            found.push(Word { lower, tail, ..Word::new(mark, false) });
        }
        None if word.is_empty() => {}
        None if ["whats", "hows", "whos", "wheres"].contains(&lower.as_str()) => {
            // Both words were typed as one, which the first of them keeps.
            found.push(Word { lower: lower.trim_end_matches('s').to_owned(), ..Word::new(word, false) });
            found.push(Word { lower: "is".to_owned(), tail, ..Word::new("", false) });
        }
        None => {
            let lower = match ABBREVIATIONS.get(lower.as_str()) {
                Some(long) => (*long).to_owned(),
                None => lower,
            };
            found.push(Word { lower, tail, ..Word::new(word, false) });
        }
    }
}

/// How words are shortened in chats. They are read as the long form, and stay as they were typed in names and texts.
static ABBREVIATIONS: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| {
    let written = "abt=about|arent=aren't|avg=average|bc=because|bcs=because|btw=also|cant=can't|cond=condition|\
        conds=conditions|couldnt=couldn't|cuz=because|didnt=didn't|doesnt=doesn't|dont=don't|firday=friday|\
        frm=from|gimme=give|hadnt=hadn't|hasnt=hasn't|havent=haven't|im=i'm|isnt=isn't|ive=i've|mins=minutes|\
        monady=monday|nvm=nevermind|params=parameters|pls=please|plse=please|plz=please|ppl=people|r=are|\
        rn=now|saterday=saturday|secs=seconds|shld=should|shouldnt=shouldn't|smth=something|sth=something|\
        teh=the|teusday=tuesday|tho=though|thru=through|thrusday=thursday|thx=thanks|til=until|tmr=tomorrow|\
        tmrw=tomorrow|tmw=tomorrow|tommorow=tomorrow|tommorrow=tomorrow|tomorow=tomorrow|tomorro=tomorrow|\
        u=you|ur=your|w/=with|w/o=without|w=with|wasnt=wasn't|wat=what|wendesday=wednesday|wensday=wednesday|\
        werent=weren't|wich=which|wk=week|wknd=weekend|wks=weeks|wont=won't|wouldnt=wouldn't|yday=yesterday";
    written.split('|').filter_map(|pair| pair.split_once('=')).collect()
});

/// Corrects up to two typing mistakes in nouns for the things of a capability.
pub fn respell(words: &mut [Word], things: &[&str]) {
    // “Exp” and “exps” are short for the first two.
    let is_short = |word: &str, long: &str| word.len() > 2 && word.len() < long.len() && long.starts_with(word);
    if let [one, several, short @ ..] = things {
        for word in words.iter_mut().filter(|word| !word.quoted && short.contains(&word.lower.as_str())) {
            match word.lower.strip_suffix('s') {
                Some(stem) if is_short(stem, one) => (*several).clone_into(&mut word.lower),
                None if is_short(&word.lower, one) => (*one).clone_into(&mut word.lower),
                _ => {}
            }
        }
    }
    // “Approved” is no mistake for “approval”.
    let is_verb = |word: &Word| word.lower.ends_with("ed") || word.lower.ends_with("ing");
    for word in words.iter_mut().filter(|word| !word.quoted && word.lower.len() > 7 && !is_verb(word)) {
        let near = |right: &&&str| {
            right.ends_with('s') == word.lower.ends_with('s') && strsim::damerau_levenshtein(&word.lower, right) <= 2
        };
        if let Some(right) = things.iter().filter(|right| right.len() > 7).find(near) {
            (*right).clone_into(&mut word.lower);
        }
    }
}

/// Returns true if a word continues the one before it with a slash: `/area_model`, but not a path
/// such as `/data/a.txt`.
fn begins_with_slash(word: &Word) -> bool {
    word.text.starts_with('/') && word.text.matches('/').count() == 1
}

/// Joins words around a slash: `SelectSection / area_model` becomes one word.
fn join_slashes(words: Vec<Word>) -> Vec<Word> {
    let mut joined: Vec<Word> = Vec::with_capacity(words.len());
    let mut glue = false;
    for word in words {
        match joined.last_mut() {
            Some(last) if !word.quoted && !last.quoted && (glue || begins_with_slash(&word)) && last.text != "," => {
                *last = Word::new(&format!("{}{}", last.text, word.text), false);
            }
            _ => joined.push(word),
        }
        // In `lower`, since the slash of a typed “w/” joins nothing.
        glue = joined.last().is_some_and(|last| !last.quoted && last.text.len() > 1 && last.lower.ends_with('/'));
    }
    joined
}

/// Returns the words after one of the phrases, if they begin with it. Phrases are separated by `|`;
/// the first match is used.
///
/// It is called more often than anything else here, almost always with a word that begins no phrase.
pub fn after<'a>(words: &'a [Word], phrases: &str) -> Option<&'a [Word]> {
    let (first, others) = words.split_first().filter(|(first, _)| !first.quoted)?;
    let (lower, bytes) = (first.lower.as_bytes(), phrases.as_bytes());
    if lower.iter().any(|byte| matches!(byte, b' ' | b'|')) {
        return None; // a name of several words is no phrase
    }
    let mut at = 0;
    loop {
        let end = bytes[at..].iter().position(|byte| *byte == b'|').map_or(bytes.len(), |length| at + length);
        let phrase = &bytes[at..end];
        if phrase.first() == lower.first() && phrase.starts_with(lower) {
            let rest = match phrase.get(lower.len()) {
                None => Some(others),
                Some(b' ') => begin_with(others, &phrases[at + lower.len() + 1..end]),
                Some(_) => None,
            };
            if rest.is_some() {
                return rest;
            }
        }
        if end == bytes.len() {
            return None;
        }
        at = end + 1;
    }
}

/// Returns true if the words as a whole are one of the phrases, which are separated by `|`. Commas do not count.
pub fn are(words: &[Word], phrases: &str) -> bool {
    let said = lower(words);
    phrases.split('|').any(|phrase| phrase == said)
}

/// Returns the words after this phrase, if they begin with it.
pub(crate) fn begin_with<'a>(mut words: &'a [Word], phrase: &str) -> Option<&'a [Word]> {
    for wanted in phrase.split(' ') {
        let (first, others) = words.split_first()?;
        if !first.is(wanted) {
            return None;
        }
        words = others;
    }
    Some(words)
}

/// Returns the words before this phrase, if they end with it.
fn end_with<'a>(mut words: &'a [Word], phrase: &str) -> Option<&'a [Word]> {
    for wanted in phrase.rsplit(' ') {
        let (last, others) = words.split_last()?;
        if !last.is(wanted) {
            return None;
        }
        words = others;
    }
    Some(words)
}

/// Returns the words without one of the phrases at the beginning, if they begin with one.
pub fn skip<'a>(words: &'a [Word], phrases: &str) -> &'a [Word] {
    after(words, phrases).unwrap_or(words)
}

/// Returns the words without any of these at the end.
pub fn without_last<'a>(mut words: &'a [Word], endings: &[&str]) -> &'a [Word] {
    while let Some((last, rest)) = words.split_last() {
        if !last.any(endings) || rest.is_empty() {
            break;
        }
        words = rest;
    }
    words
}

/// The second part of “it's” and the like, as typed. No space precedes it.
const ENDS_WORD: [&str; 2] = ["'s", "’s"];

/// Returns the words as one text, as typed.
pub fn text(words: &[Word]) -> String {
    let mut text = String::new();
    for word in words.iter().filter(|word| !word.text.is_empty()) {
        if !text.is_empty() && word.text != "," && !ENDS_WORD.contains(&word.text.as_str()) {
            text.push(' ');
        }
        text.push_str(&word.text);
    }
    text.trim_matches([',', ' ']).to_owned()
}

/// Returns the words as one text with their quotes.
pub fn as_typed(words: &[Word]) -> String {
    let quoted = |word: &Word| {
        if word.quoted && word.kind.is_none() { format!("“{}”", word.text) } else { word.text.clone() }
    };
    let typed =
        words.iter().filter(|word| !word.text.is_empty()).map(quoted).collect::<Vec<_>>().join(" ").replace(" ,", ",");
    ENDS_WORD.iter().fold(typed, |typed, mark| typed.replace(&format!(" {mark}"), mark))
}

/// Returns the words as a sentence, with the punctuation in it.
pub fn sentence(words: &[Word]) -> String {
    let with_tail = |word: &Word| Word { text: format!("{}{}", word.text, word.tail), ..word.clone() };
    let words: Vec<Word> = words.iter().map(with_tail).collect();
    text(&words)
}

/// Returns the words as one text in lower case, without commas.
pub fn lower(words: &[Word]) -> String {
    words.iter().filter(|word| word.text != ",").map(|word| word.lower.as_str()).collect::<Vec<_>>().join(" ")
}

/// Returns the words without greetings and politeness around them.
pub fn strip_politeness(mut words: &[Word]) -> &[Word] {
    // What is negated twice is asked for: “don't forget to stop it”.
    static BEFORE: PhraseList = PhraseList::new(
        "don't forget to|dont forget to|do not forget to|not forget to|never forget to|us not forget to|don't fail to|dont fail to|\
        do not fail to|not fail to|don't hesitate to|dont hesitate to|do not hesitate to|not hesitate to|don't neglect to|\
        do not neglect to|not neglect to|don't be shy to|be sure to|be sure that you|make sure to|make sure you|\
        make sure that you|make sure we|see to it that you|feel free to|please|pls|plz|hey there|hi there|hey|hi|hello|yo|hm|hmm|um|uh|ok|okay|so|now|then|and|well|also|countersign|bot|\
        is it possible to|would it be possible to|would you be able to|are you able to|i was wondering if you could|would you be so kind as to|\
        can you|could you|would you|will you|can u|could u|would u|will u|\
        can we maybe|could we maybe|can we perhaps|could we perhaps|maybe we could|perhaps we could|maybe you could|could you maybe|\
        can you maybe|can we|could we|can i|could i|may i|i want to|i would like to|i'd like to|i need to|we need to|we want to|i want you to|\
        let us|lets|go ahead and|just|permanently|,|i want|i'd like|i need|need a|need an|need some|i would like|do|kindly|any chance you could|any chance we could|any chance of|could someone|can someone|can somebody|could somebody|\
        could anyone|i was wondering if you can|i was wondering|i wonder|hiya|team|all|everyone|good morning|someone",
    );
    while let Some(rest) = BEFORE.after(words).or_else(|| without_signs(words)).filter(|rest| !rest.is_empty()) {
        words = rest;
    }
    while let Some(rest) = without_ending(words) {
        words = rest;
    }
    words = without_thanks(words).unwrap_or(words);
    // The last words matter in “created today”, “newest first” and “put step 2 first”.
    let matters =
        |word: &Word| word.any(&["created", "create", "made", "added", "changed", "updated", "newest", "oldest"]);
    let orders = |word: &Word| word.any(&["put", "move", "bring", "step", "steps"]);
    let endings = ["please", "pls", "thanks", "now", ",", "again", "thx", "today", "first"];
    if words.iter().any(|word| word.is("factors")) {
        return without_last(words, &["please", "pls", "thanks", "thx"]); // “now” may be a level
    }
    let most = match words {
        _ if words.iter().any(matters) => 7,
        _ if words.iter().any(orders) => 8,
        _ => endings.len(),
    };
    without_last(words, &endings[..most])
}

/// Returns the words without a leading sign, such as an emoji; `None` if there is none.
fn without_signs(words: &[Word]) -> Option<&[Word]> {
    let (first, rest) = words.split_first()?;
    is_sign(first).then_some(rest)
}

/// Returns true if the word is a sign without letters or an emoji: “🙏”, `:rocket:`, “*”.
pub fn is_sign(word: &Word) -> bool {
    let slack = word
        .lower
        .strip_prefix(':')
        .is_some_and(|name| name.len() > 2 && name.chars().all(|c| c.is_ascii_lowercase() || "_+-:".contains(c)));
    let thumbs =
        word.lower.contains("+1") || word.lower.contains("-1") || word.lower.starts_with(['👍', '👎', '✅', '👌']);
    !word.quoted
        && !thumbs
        && word.text != ","
        && !word.text.is_empty() // the “is” of “whats”
        && (slack || !word.text.chars().any(|c| c.is_alphanumeric() || matches!(c, '?' | '/' | '=' | '%')))
}

/// Returns the words without one phrase of politeness at the end of a longer sentence.
fn without_ending(words: &[Word]) -> Option<&[Word]> {
    static ENDINGS: PhraseList = PhraseList::new(
        "when you get a chance|when you have a minute|when you have a moment|when you have time|when you can|\
        for me|if possible|if you can|right now|right away|asap|as soon as possible|thanks a lot|thank you in advance|\
        thanks in advance|thx|ty|cheers|rn|at the moment|by now|for now|\
        and nothing else|but nothing else|nothing else|and that is all|that is all|and that is it|that is it",
    );
    if words.len() > 2 && words.last().is_some_and(is_sign) {
        return words.split_last().map(|(_, rest)| rest);
    }
    let rest = ENDINGS.all().iter().find_map(|phrase| end_with(words, phrase).filter(|rest| rest.len() > 1))?;
    Some(without_last(rest, &[","]))
}

/// Returns the words without “thank you” at the end of a longer sentence.
fn without_thanks(words: &[Word]) -> Option<&[Word]> {
    let [rest @ .., thank, you] = words else { return None };
    (rest.len() > 2 && thank.is("thank") && you.is("you")).then_some(rest)
}

/// Returns the words without leading “no”, “wait” and the like.
pub fn strip_objection(mut words: &[Word]) -> &[Word] {
    while let Some(rest) = after(words, "no|wait|actually|sorry|oh|hm|,") {
        words = rest;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(message: &str) -> String {
        words(message)
            .iter()
            .map(|w| if w.quoted { format!("“{}”", w.text) } else { w.text.clone() })
            .collect::<Vec<_>>()
            .join("·")
    }

    #[test]
    fn a_phrase_is_found_as_a_whole_and_in_the_order_of_the_list() {
        let rest = |said: &str, phrases: &str| after(&words(said), phrases).map(text);
        assert_eq!(rest("for me now", "for|for me"), Some("me now".to_owned()), "the first match is used");
        assert_eq!(rest("for me now", "form|for me|for"), Some("now".to_owned()));
        assert_eq!(rest("for", "for me|for"), Some(String::new()));
        assert_eq!(rest("for", "for me|form|"), None);
        assert_eq!(rest("“for” me", "for"), None);
        assert_eq!(rest("a|b", "a|b"), None);
        assert_eq!(rest("", "for"), None);
        assert_eq!(rest("for", ""), None);
        let name = Mention { said: "for me".to_owned(), name: "for me".to_owned(), ..Mention::default() };
        assert_eq!(after(&words_with("for me now", &[name]), "for me|for"), None, "a name is one word");
    }

    #[test]
    fn politeness_is_dropped_on_both_sides() {
        for (said, left) in [
            ("hey, could you please start it when you get a chance, thanks a lot", "start it"),
            ("start it for me", "start it"),
            ("start “it” for “me”", "start it for me"),
            ("start it now, thank you", "start it"),
        ] {
            assert_eq!(text(strip_politeness(&words(said))), left, "{said}");
        }
    }

    #[test]
    fn a_message_becomes_words() {
        assert_eq!(split("<@U1> start the Math Hints experiment!"), "start·the·Math·Hints·experiment");
        assert_eq!(split("start “Math Hints”, please."), "start·“Math Hints”·,·please");
        assert_eq!(split("what's v1.2 of 'Ana's test'?"), "what·'s·v1.2·of·'Ana's·test'");
        assert_eq!(split("at SelectSection / area_model, 70 / 30"), "at·SelectSection/area_model·,·70/30");
        assert_eq!(split("it's \"unfinished"), "it·'s·\"unfinished");
        assert_eq!(lower(&words("It’s let's")), "it is let us");
        assert_eq!(text(&words("It’s new")), "It’s new");
        assert_eq!(as_typed(&words("that’s “It's new”, what's this")), "that’s “It's new”, what's this");
        assert_eq!(split("  "), "");
    }
}
