//! The words of a message that ask for a change: its verb, and the name of the thing that changes.
//!
//! Where a language model proposes a change, this code, and no model, decides whether a person asked for it. It looks for
//! the verbs in the rows of the change, and for verbs of the same meaning in other languages (`verbs.txt`), where they
//! request something; and for names. A verb does not count in a question, after “don't”, in a quotation or in a report.
//! If in doubt it does not count either: the change is then only suggested.

use std::{collections::HashMap, ops::Range, sync::LazyLock};

use serde_json::{Map, Value};

use super::{
    lexicon::{Mention, Name, Names, Token, tokenize},
    lines::{Call, CallKind},
    phrase_book::PhraseBook,
    words::is_one_of,
};

/// The maximum number of words between two words of a verb: “get Math Hints going”.
const MAX_GAP: usize = 6;

/// The minimum length of a word that names a thing by a part of its name, in letters.
const MIN_PART_LENGTH: usize = 4;

/// Verbs of the same meaning, by each of them.
static GROUPS: LazyLock<HashMap<&str, Vec<&str>>> = LazyLock::new(|| {
    let mut groups: HashMap<&str, Vec<&str>> = HashMap::new();
    for line in include_str!("verbs.txt").lines().filter(|line| !line.starts_with('#')) {
        let (verbs, others) = line.split_once('|').unwrap_or((line, ""));
        for verb in verbs.split_whitespace() {
            let all = verbs.split_whitespace().chain(others.split_whitespace());
            groups.entry(verb).or_default().extend(all.filter(|other| *other != verb));
        }
    }
    groups
});

/// Words that divide a message into clauses.
const JOINTS: &str = "and then but also plus or und dann danach aber oder et puis ensuite mais ou y luego despues pero o \
    e poi quindi ma depois mas ou en dan daarna maar of och sedan men";
/// Words after which, in the same clause, a verb is not a request: questions, looks, conditions, reports.
const NO_REQUESTS: &str = "how what which who whom whose why when where whether if unless until till after before once since \
    did does was were is are has had been being will would show list compare explain describe summarize summarise tell \
    see look read check find says say said states asks asked wrote writes told reports according instead \
    wie was welche welcher wer warum wieso wann wo ob wenn falls bis nachdem bevor wurde wurden zeige zeig vergleiche \
    erklare sagt sagte schreibt comment quoi quel quelle quels quelles qui pourquoi quand si avant apres montre \
    affiche compare explique dit como que cual cuales quien por_que cuando donde si antes despues muestra compara \
    explica dice come cosa quale quali chi perche quando dove se prima dopo mostra confronta spiega dice \
    quem porque onde mostre mostra compare explique diz hoe wat welke wie waarom wanneer waar als voordat nadat toon \
    vergelijk zegt";
/// Words that forbid.
const NEGATIONS: &str = "dont not never no nothing without avoid cannot cant shouldnt mustnt wont neither nor \
    nicht nie niemals kein keine keinen ohne ne pas jamais sans rien nunca jamas sin nada non mai senza niente nao jamais \
    sem niet nooit geen zonder inte aldrig ikke nie";
/// Words that make a noun of the verb after them.
const DETERMINERS: &str = "the a an its their our my his her your this that these each every any some der die das des dem \
    den ein eine einen le la les un une el los las il lo gli una os as um uma het een";
/// Words that make a noun of the verb before them.
const AFTER_NOUNS: &str = "of date dates time times button rule rules state status condition conditions event";
/// Words with which a question begins, so that the verbs in it request nothing.
const QUESTIONS: &str = "what which who whom whose why how is are was were did does has have should shall where \
    wer was welche welcher welches warum wieso wie wo ist sind hat haben wurde soll sollen sollte sollten \
    pourquoi comment quel quelle quels quelles qui est sont combien por que cual cuales quien como cuantos donde esta estan \
    perche come quale quali chi dove quanti porque quem onde hoe wat welke wie waarom waar zijn hoeveel";
/// Pairs of words that make a question a request.
const POLITE: &str = "can you|could you|would you|will you|wont you|can u|could u|can we|could we|can i|could i|may i|may we|\
    it possible|can someone|could someone|can somebody|could somebody|can anyone|could anyone|would it|do you mind|you mind|how about|\
    what about|any chance|dont you|dont we|you please|want to|like you|kannst du|konntest du|konnen sie|konnten sie|\
    konnen wir|konnten wir|wurdest du|wurden sie|kann ich|peux tu|pouvez vous|pourrais tu|pourriez vous|tu peux|on peut|\
    vous pouvez|peut on|puedes|podrias|podemos|puede|podria|puoi|potresti|possiamo|puo|potete|podes|pode|poderia|podemos|\
    kun je|kunt u|zou je|kunnen we|kan je|kan du|kunne du";
/// Words before which a past participle is a request: “I want it stopped”.
const BEFORE_PARTICIPLES: &str = "get want need needs have be like please to";
/// Words for a thing that was named before.
const POINTERS: &str = "it its this that them they these those both one ones him same es ihn sie das den dies diese dieses \
    diesen beide ca cela celui celle ceci ce lui eux eso esto ese esa este esta ellos lo quello quella questo questa \
    isso isto esse essa ele ela het deze die dit dat den det detta";
/// Words for all things of a kind.
const QUANTIFIERS: &str = "all every everything each both those these them rest others alle alles jede jeden jedes beide \
    tous toutes tout chaque todos todas todo cada tutti tutte tutto ogni tudo elk elke iedere beide alla";
/// Words that name no thing in particular.
const ORDINARY: &str = "experiment experiments test tests study trial pilot simulation model version with from this that \
    condition control group class";

/// A message, for a search in it.
pub struct AskedWords<'a> {
    said: &'a str,
    tokens: Vec<Token>,
}

/// A clause of a message: its words, by their places.
struct Clause {
    words: Range<usize>,
    /// The first word of the sentence.
    sentence: usize,
    /// True if the sentence is a question that requests nothing.
    is_question: bool,
}

impl<'a> AskedWords<'a> {
    /// Divides a message into words.
    pub fn of(said: &'a str) -> Self {
        Self { said, tokens: tokenize(said) }
    }

    /// Returns the part of a verb that stands in the message and requests something. A verb is written as in the rows: in
    /// up to three forms, each of one or several words.
    fn request(&self, verb: &str) -> Option<Range<usize>> {
        let mut forms = verb.split('/');
        let base = forms.next().unwrap_or_default();
        let (doing, done) = (forms.next(), forms.next());
        if base.chars().count() < 3 && base.is_ascii() {
            return None; // “go” is too common
        }
        let plain = self.places(base).find(|place| self.is_request(place, false));
        let plain = plain.or_else(|| self.places(doing?).find(|place| self.is_request(place, false)));
        plain.or_else(|| self.places(done?).find(|place| self.is_request(place, true))).map(|place| self.bytes(&place))
    }

    /// Returns the places at which these words follow each other, with at most [`MAX_GAP`] others between them.
    fn places<'s>(&'s self, words: &'s str) -> impl Iterator<Item = Range<usize>> + 's {
        (0..self.tokens.len()).filter_map(move |from| {
            let mut wanted = words.split_whitespace();
            if self.tokens[from].folded != wanted.next()? {
                return None;
            }
            let mut to = from + 1;
            for word in wanted {
                let gap = self.tokens[to..].iter().take(MAX_GAP + 1).position(|token| token.folded == word)?;
                to += gap + 1;
            }
            Some(from..to)
        })
    }

    /// Returns true if the verb at this place requests something, as far as the words around it tell.
    fn is_request(&self, place: &Range<usize>, is_participle: bool) -> bool {
        let clause = self.clause(place.start);
        let word = |at: usize| self.tokens.get(at).map_or("", |token| token.folded.as_str());
        let before = || clause.words.start..place.start;
        let is_single = place.len() == 1;
        let is_noun = is_single
            && (place.start > clause.words.start && is_one_of(DETERMINERS, word(place.start - 1))
                || place.end < clause.words.end && is_one_of(AFTER_NOUNS, word(place.end)));
        let is_wanted = !is_participle || before().any(|at| is_one_of(BEFORE_PARTICIPLES, word(at)));
        let is_in_quotes = self.tokens[place.start].quote.is_some() || self.is_in_quoted_line(place.start);
        let is_denied = clause.words.clone().filter(|at| !place.contains(at)).any(|at| is_one_of(NEGATIONS, word(at)));
        let is_told = before().any(|at| {
            let own = at > 0 && ["i", "we"].contains(&word(at - 1));
            is_one_of(NO_REQUESTS, word(at)) && !own && !self.is_polite(clause.sentence..place.start)
        });
        !(clause.is_question || is_noun || is_in_quotes || is_denied || is_told) && is_wanted
    }

    /// Returns the clause with this word.
    fn clause(&self, at: usize) -> Clause {
        let gap = |at: usize| {
            &self.said[self.tokens[at].end..self.tokens.get(at + 1).map_or(self.said.len(), |next| next.start)]
        };
        let ends_sentence = |at: &usize| gap(*at).contains(['.', '!', '?', '\n', ';']);
        let ends_clause = |at: usize| gap(at).contains([',', ':', '.', '!', '?', '\n', ';', '–', '—']);
        let is_joint = |at: usize| is_one_of(JOINTS, &self.tokens[at].folded);
        let sentence = (0..at).rev().find(ends_sentence).map_or(0, |end| end + 1);
        let end = (at..self.tokens.len()).find(ends_sentence).unwrap_or(self.tokens.len() - 1);
        let from = (sentence..at).rev().find(|at| ends_clause(*at) || is_joint(*at)).map_or(sentence, |end| end + 1);
        let to = (at..end).find(|at| ends_clause(*at) || is_joint(at + 1)).map_or(end + 1, |last| last + 1);
        let asks = gap(end).contains('?') || is_one_of(QUESTIONS, &self.tokens[sentence].folded);
        Clause { words: from..to, sentence, is_question: asks && !self.is_polite(sentence..end + 1) }
    }

    /// Returns true if these words have a form of politeness that makes a request of a question.
    fn is_polite(&self, words: Range<usize>) -> bool {
        let word = |at: usize| self.tokens.get(at).map_or("", |token| token.folded.as_str());
        words.clone().any(|at| {
            let pair = format!("{} {}", word(at), if words.contains(&(at + 1)) { word(at + 1) } else { "" });
            POLITE.split('|').any(|polite| polite == pair || polite == word(at))
        })
    }

    /// Returns true if a word stands in a line that quotes another message.
    fn is_in_quoted_line(&self, at: usize) -> bool {
        let start = self.tokens[at].start;
        let line = self.said[..start].rfind('\n').map_or(0, |end| end + 1);
        let line = self.said[line..].trim_start();
        line.starts_with('>') || line.starts_with("&gt;")
    }

    /// Returns the part with a thing's whole name, possibly with a typing mistake.
    pub fn name(&self, name: &str) -> Option<Range<usize>> {
        let wanted: Vec<String> = tokenize(name).into_iter().map(|token| token.folded).collect();
        let is_same =
            |at: &usize| self.tokens[*at..].iter().map(|token| &token.folded).take(wanted.len()).eq(wanted.iter());
        // A number or a single letter alone is hardly a name.
        let is_telling = wanted.iter().any(|word| word.chars().filter(|c| c.is_alphabetic()).count() > 1)
            || wanted.concat().chars().count() > 3;
        if let Some(at) = (0..self.tokens.len()).find(|at| !wanted.is_empty() && is_telling && is_same(at)) {
            return Some(self.bytes(&(at..at + wanted.len())));
        }
        let known = Name { kind: String::new(), name: name.to_owned(), id: None, owner: String::new(), subject: true };
        let found = Names::new([known]).find(self.said).into_iter().next()?;
        let at = self.said.find(&found.said)?;
        Some(at..at + found.said.len())
    }

    /// Returns the part with at least half of the words of a thing's name, outside of the names of `others`.
    pub fn part_of_name(&self, name: &str, others: &[Mention]) -> Option<Range<usize>> {
        let ordinary = |token: &Token| is_one_of(ORDINARY, &token.folded);
        let wanted: Vec<Token> = tokenize(name).into_iter().filter(|token| !ordinary(token)).collect();
        let taken: Vec<Range<usize>> = others
            .iter()
            .filter(|other| other.name != name)
            .filter_map(|other| self.said.find(&other.said).map(|at| at..at + other.said.len()))
            .collect();
        let place = |wanted: &Token| {
            let is_free = |token: &&Token| !taken.iter().any(|taken| taken.contains(&token.start));
            self.tokens.iter().filter(is_free).find(|token| token.folded == wanted.folded)
        };
        let found: Vec<&Token> = wanted.iter().filter_map(place).collect();
        let telling = found.iter().find(|token| token.folded.chars().count() >= MIN_PART_LENGTH)?;
        (found.len() * 2 >= wanted.len()).then_some(telling.start..telling.end)
    }

    /// Returns the part that refers to a thing that was named before: “it”, “that one”.
    pub fn pointer(&self) -> Option<Range<usize>> {
        self.first_of(POINTERS)
    }

    /// Returns the part that means all things of a kind: “all”, “both”.
    pub fn quantifier(&self) -> Option<Range<usize>> {
        self.first_of(QUANTIFIERS)
    }

    fn first_of(&self, words: &str) -> Option<Range<usize>> {
        let at = self.tokens.iter().position(|token| token.quote.is_none() && is_one_of(words, &token.folded))?;
        Some(self.bytes(&(at..at + 1)))
    }

    /// Returns the number of words.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Returns true if there are no words.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Returns true if the message asks to see or to know something, and requests nothing.
    pub fn is_look(&self) -> bool {
        const LOOKS: &str = "show list compare explain describe summarize summarise tell see look read check find zeige zeig \
            vergleiche erklare montre affiche explique muestra compara explica mostra confronta spiega mostre toon vergelijk";
        const FILLERS: &str = "please hi hello hey ok okay can could would you just so and now bitte";
        let Some(first) = self.tokens.iter().position(|token| !is_one_of(FILLERS, &token.folded)) else { return false };
        is_one_of(LOOKS, &self.tokens[first].folded) || self.clause(first).is_question
    }

    /// Returns the bytes of these words.
    fn bytes(&self, words: &Range<usize>) -> Range<usize> {
        self.tokens[words.start].start..self.tokens[words.end - 1].end
    }
}

impl PhraseBook {
    /// Returns the verbs of the rows of an action whose fixed values `is_same` accepts, and true if it has rows.
    fn verbs_of(&self, action: &str, is_same: impl Fn(&Map<String, Value>) -> bool) -> (Vec<String>, bool) {
        let is_it = |call: &Call| call.kind == CallKind::Change && call.name == action;
        let mut verbs = Vec::new();
        let mut has_rows = false;
        for lines in self.capabilities.iter().map(|one| &one.lines) {
            has_rows |= lines.calls().iter().any(is_it);
            verbs.extend(lines.verbs(|call| is_it(call) && is_same(&call.arguments)));
        }
        (verbs, has_rows)
    }

    /// Returns the part of a message that asks for a change by this action: a verb of one of its rows, or a verb of the
    /// same meaning. Of the rows with fixed values, only those count that `is_same` accepts. An action without rows is
    /// asked for by the first word of its own name, which a server may have chosen, without that of its `owner`.
    pub fn verb_of(
        &self,
        action: &str,
        owner: &str,
        is_same: impl Fn(&Map<String, Value>) -> bool,
        said: &AskedWords<'_>,
    ) -> Option<Range<usize>> {
        let (mut verbs, has_rows) = self.verbs_of(action, is_same);
        if !has_rows {
            let name = action.strip_prefix(owner).unwrap_or(action);
            verbs.extend(name.split(|c: char| !c.is_alphanumeric()).find(|word| !word.is_empty()).map(str::to_owned));
        }
        verbs.iter().find_map(|verb| {
            let base = verb.split('/').next().unwrap_or_default();
            let others = GROUPS.get(base).into_iter().flatten();
            said.request(verb).or_else(|| {
                others.copied().find_map(|other| match other.is_ascii() || !other.chars().any(is_unspaced) {
                    true => said.request(&other.replace('_', " ")),
                    false if said.said.contains(['?', '？', '吗', '吧', '不', '别', '没']) => None,
                    false => said.said.find(other).map(|at| at..at + other.len()),
                })
            })
        })
    }
}

/// Returns true for letters of scripts without spaces between words.
fn is_unspaced(letter: char) -> bool {
    matches!(letter as u32, 0x0E00..=0x0EFF | 0x3040..=0x30FF | 0x3400..=0x9FFF | 0xAC00..=0xD7AF | 0xF900..=0xFAFF)
}

/// Returns true if a word is one of the verbs of `verbs.txt` in English.
pub(super) fn is_verb(word: &str) -> bool {
    GROUPS.contains_key(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(verb: &str, said: &str) -> Option<String> {
        AskedWords::of(said).request(verb).map(|found| said[found].to_owned())
    }

    #[test]
    fn a_verb_that_requests_something_is_found() {
        for (verb, said, found) in [
            ("start/starting/started", "start exp-1", "start"),
            ("start/starting/started", "could you please start exp-1?", "start"),
            ("start/starting/started", "compare exp-5 and exp-6, then start exp-1", "start"),
            ("start/starting/started", "would you mind starting exp-1?", "starting"),
            ("start/starting/started", "I want exp-1 started", "started"),
            ("get going", "could we get math hints going?", "get math hints going"),
            ("stop/stopping/stopped", "Is it running? Please stop it.", "stop"),
            ("archive", "I'd like to archive exp-1", "archive"),
            ("start", "Exp-5 looks fine. Start exp-1 now!", "Start"),
        ] {
            assert_eq!(asks(verb, said).as_deref(), Some(found), "{said}");
        }
    }

    #[test]
    fn a_verb_in_a_question_a_report_or_a_denial_requests_nothing() {
        for (verb, said) in [
            ("start/starting/started", "when did exp-1 start?"),
            ("start/starting/started", "was exp-1 started?"),
            ("run/running/run", "is exp-1 running?"),
            ("start", "should I start exp-1?"),
            ("start", "what happens when I start exp-1"),
            ("start", "don't start exp-1"),
            ("start", "never start exp-1"),
            ("start", "show me the start of exp-1"),
            ("start", "its description says to start exp-1"),
            ("start", "the text was “start exp-1”"),
            ("start", "> start exp-1\nwhat does that mean?"),
            ("start", "tell me how to start it"),
            ("start", "starte exp-1 bitte"),
            ("start/starting/started", "Bo started exp-1 yesterday"),
        ] {
            assert_eq!(asks(verb, said), None, "{said}");
        }
    }

    #[test]
    fn names_are_found_whole_or_in_part() {
        let whole = |name: &str, said: &str| AskedWords::of(said).name(name).map(|found| said[found].to_owned());
        assert_eq!(whole("exp-1", "start exp-1, please").as_deref(), Some("exp-1"));
        assert_eq!(whole("exp-1", "compare exp-5 and exp-6"), None);
        assert_eq!(whole("exp-1", "start EXP 1").as_deref(), Some("EXP 1"));
        assert_eq!(whole("Math Hints", "get math hnts going").as_deref(), Some("math hnts"));
        let part = |name: &str, said: &str| AskedWords::of(said).part_of_name(name, &[]).is_some();
        assert!(part("Math Hints", "start the hints experiment"));
        assert!(!part("exp-1", "compare exp-5 and exp-6"));
        assert!(!part("Lesson Video Hints v2", "start the hints experiment"));
        let other = Mention { name: "Math Hints".to_owned(), said: "Math Hints".to_owned(), ..Mention::default() };
        assert!(AskedWords::of("start Math Hints").part_of_name("Math Hints v2", &[other]).is_none());
    }

    #[test]
    fn questions_and_looks_are_told_from_requests() {
        for said in ["compare exp-5 and exp-6", "what is it?", "please show exp-1", "is it on?", "zeige exp-1"] {
            assert!(AskedWords::of(said).is_look(), "{said}");
        }
        for said in ["start exp-1", "could you start it?", "mathstream", "no, at 60/40", "exp-1 please"] {
            assert!(!AskedWords::of(said).is_look(), "{said}");
        }
    }
}
