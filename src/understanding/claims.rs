//! The claims of changes in an answer: “Done!”, “I started it”, “Both are proposed”, in the languages of `claims.txt`.
//!
//! A sentence claims something if it states that a change was made, sent, scheduled, proposed or approved. What it denies,
//! asks, makes conditional or promises is no claim. If in doubt, it is one: a false claim does more harm than an answer that
//! is put more carefully.

use std::{ops::Range, sync::LazyLock};

use super::{
    lexicon::{Token, tokenize},
    words::is_one_of,
};

/// A claim of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The kind of change, as in `claims.txt`.
    pub kind: &'static str,
    /// True if the answer says that it was done just now or by the assistant; false for a statement about the past.
    pub is_own: bool,
    /// True if it may be about things in general, unless the sentence names one: “archived ones are hidden”.
    pub is_general: bool,
    /// The sentence, in bytes.
    pub sentence: Range<usize>,
}

/// The words of a kind of change.
struct ClaimWords {
    kind: &'static str,
    participles: Vec<Vec<&'static str>>,
    phrases: Vec<Vec<&'static str>>,
}

static WORDS: LazyLock<Vec<ClaimWords>> = LazyLock::new(|| {
    let words = |text: &'static str| text.split_whitespace().map(|one| one.split('_').collect()).collect();
    let lines = include_str!("claims.txt").lines().filter(|line| !line.starts_with('#'));
    let read = |line: &'static str| {
        let (kind, rest) = line.split_once(": ")?;
        let (participles, phrases) = rest.split_once('|').unwrap_or((rest, ""));
        Some(ClaimWords { kind, participles: words(participles), phrases: words(phrases) })
    };
    lines.filter_map(read).collect()
});

/// Words beside which a participle claims something.
const AUXILIARIES: &str = "is are was were been being have has had ive weve hes shes theyve youve its got gets gotten i we \
    just now already both all everything successfully habe hab haben hat hatte wurde wurden worden ist sind bin war wird \
    jetzt nun soeben bereits beide ai jai avons ont ete est sont suis vient viens maintenant deja he ha han hemos sido fue \
    fueron esta estan quedo ya ambos ambas ho hai abbiamo hanno stato stata stati state sono era adesso ora gia entrambi foi \
    foram tem tenho temos sendo agora ja ambos heb hebben heeft is zijn werd werden nu har hade blev ar zostal zostala \
    zostalo zostaly jest sa oba";
/// First persons, and words for the present moment.
const OWN: &str = "i we ive weve just now successfully right away immediately ich wir jetzt nun soeben gerade erfolgreich je \
    jai nous maintenant yo hemos ahora acabo ho abbiamo adesso ora appena eu agora acabei ik wij we nu zojuist jag vi \
    precis ja teraz я мы только";
/// Words beside which a participle is about what was done before.
const PAST: &str = "was were been being have has had ive weve hes shes theyve youve got gotten habe hab haben hat hatte wurde \
    wurden worden war ai jai avons ont ete viens vient he ha han hemos sido fue fueron ho hai abbiamo hanno stato stata \
    stati state era foi foram tem tenho temos heb hebben heeft werd werden har hade blev zostal zostala zostalo zostaly";
/// Words for one thing that is meant.
const SPECIFIC: &str = "it its this that both all everything your our they them change request card es das alles beide ca tout \
    tous todo ambos tutto entrambi tudo het alles";
/// Nouns for things of a kind.
const NOUNS: &str = "experiments experiment experimente experimentos tests test ones one users user students studies changes \
    conditions requests cards mails emails messages notes simulations models experiences esperimenti";
/// Words that deny.
const DENIALS: &str = "not no never nothing nobody none without cannot cant didnt dont doesnt isnt arent wasnt werent hasnt \
    havent hadnt wont couldnt wouldnt unable neither nor yet nicht nie kein keine keinen keiner nichts niemand ohne noch ne pas \
    jamais rien aucun aucune sans nada nunca ningun ninguna nadie sin non mai niente nulla nessun nessuna senza nao nem \
    nenhum nenhuma sem niet nooit geen niets niemand zonder inte ingen inget nie zaden zadna не нет ничего degil";
/// Words that make a statement conditional, or a thing of the future.
const CONDITIONS: &str = "if once when whenever until unless before after would could can will should must may might to ill \
    well shall lets let wenn falls sobald bevor nachdem bis wurde_ konnte kann soll sollte muss werde werden si quand \
    lorsque avant apres pourrait peut doit cuando antes despues podria puede debe quando se prima dopo potrebbe puo deve \
    depois pode deve als zodra voordat nadat kan zal moet zou om nar kan ska";
/// Words after which a clause describes a thing.
const RELATIVES: &str =
    "that which who those whose whether how why die der das welche qui que quels quelles cuales che quali";
/// Words that may stand before a claim at the beginning of a clause.
const FILLERS: &str = "ok okay great sure yes yep alright perfect and so well all both everything now successfully it the that \
    your there you go just done gut ja super alles beide ok oui voila parfait c si perfecto todo ambos bene tutto perfetto \
    entrambe sim certo tudo goed prima";
/// Signs that stand for a change that was made.
const SIGNS: [char; 3] = ['✅', '✔', '☑'];
/// Parts of words that claim a change in scripts without spaces, and in those that add endings.
const PARTS: [&str; 30] = [
    "已启动",
    "已开始",
    "已停止",
    "已暂停",
    "已取消",
    "已删除",
    "已创建",
    "已发送",
    "已安排",
    "已更改",
    "已更新",
    "已批准",
    "已提交",
    "已完成",
    "完成了",
    "启动了",
    "停止了",
    "删除了",
    "创建了",
    "搞定",
    "開始しました",
    "停止しました",
    "削除しました",
    "作成しました",
    "送信しました",
    "完了しました",
    "変更しました",
    "했습니다",
    "되었습니다",
    "कर दिया",
];

/// Returns the claims in a text, in order.
pub fn claims(text: &str) -> Vec<Claim> {
    let tokens = tokenize(text);
    let mut found = Vec::new();
    for sentence in sentences(text) {
        let part = &text[sentence.clone()];
        let is_question = part.trim_end().ends_with(['?', '？']);
        if is_question {
            continue;
        }
        if part.contains(SIGNS) {
            found.push(own("done", &sentence));
        }
        if PARTS.iter().any(|claim| part.contains(claim)) || part.trim_start().starts_with("تم ") {
            found.push(own("done", &sentence));
        }
        let inside: Vec<&Token> = tokens.iter().filter(|token| sentence.contains(&token.start)).collect();
        for clause in clauses(text, &inside) {
            for words in &*WORDS {
                if let Some((is_own, is_general)) = claim_in(clause, words) {
                    found.push(Claim { kind: words.kind, is_own, is_general, sentence: sentence.clone() });
                }
            }
        }
    }
    found
}

/// Returns the claim that something was done just now.
fn own(kind: &'static str, sentence: &Range<usize>) -> Claim {
    Claim { kind, is_own: true, is_general: false, sentence: sentence.clone() }
}

/// Returns the sentences of a text, in bytes.
fn sentences(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut from = 0;
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let next = letters.peek().map(|(_, next)| *next);
        let ends = match letter {
            '.' => next.is_none_or(char::is_whitespace),
            '!' | '?' | '\n' | '。' | '！' | '？' => true,
            _ => false,
        };
        if ends {
            found.push(from..at + letter.len_utf8());
            from = at + letter.len_utf8();
        }
    }
    found.push(from..text.len());
    found.retain(|sentence| !text[sentence.clone()].trim().is_empty());
    found
}

/// Divides the words of a sentence where there is a comma, a dash or the like between them.
fn clauses<'t, 'a>(text: &str, tokens: &'t [&'a Token]) -> impl Iterator<Item = &'t [&'a Token]> {
    let is_joined = |one: &&Token, next: &&Token| {
        let between = text.get(one.end..next.start).unwrap_or_default();
        !between.contains([',', ';', ':', '–', '—', '(', ')', '*', '|'])
            && !between.contains(" - ")
            && one.quote == next.quote
    };
    tokens.chunk_by(is_joined).collect::<Vec<_>>().into_iter()
}

/// Returns whether a clause claims a change of this kind: [`Claim::is_own`] and [`Claim::is_general`].
fn claim_in(clause: &[&Token], words: &ClaimWords) -> Option<(bool, bool)> {
    if clause.first().is_some_and(|first| first.quote.is_some()) {
        return None;
    }
    let word = |at: usize| clause[at].folded.as_str();
    let begins = |at: usize, wanted: &[&str]| {
        wanted.len() <= clause.len() - at && wanted.iter().enumerate().all(|(n, wanted)| word(at + n) == *wanted)
    };
    for at in 0..clause.len() {
        let before = || (0..at).map(word);
        let is_phrase = words.phrases.iter().any(|phrase| begins(at, phrase));
        let is_participle = || words.participles.iter().any(|participle| begins(at, participle));
        // “Archived ones are hidden”: the participle belongs to a noun.
        let is_adjective = clause.get(at + 1).is_some_and(|next| is_one_of(NOUNS, &next.folded));
        let is_first = || !is_adjective && before().all(|word| is_one_of(FILLERS, word));
        let has_auxiliary = || before().any(|word| is_one_of(AUXILIARIES, word));
        if !is_phrase && !(is_participle() && (is_first() || has_auxiliary())) {
            continue;
        }
        let is_denied = (0..clause.len()).map(word).any(|word| is_one_of(DENIALS, word));
        let is_conditional = before().any(|word| is_one_of(CONDITIONS, word));
        // “the ones that were completed”
        let is_relative = (at.saturating_sub(3)..at).map(word).any(|word| is_one_of(RELATIVES, word));
        if is_denied || is_conditional || is_relative {
            continue;
        }
        let rest: Vec<&str> = clause.iter().map(|token| token.folded.as_str()).collect();
        let is_named =
            at == 0 && clause.len() > 1 && is_one_of("by on at in von am im par le por el da di il door op", rest[1]);
        let has = |words: &str| rest.iter().any(|word| is_one_of(words, word));
        let is_own = is_phrase || is_first() && !is_named || has(OWN);
        return Some((is_own, !is_own && !before().any(|word| is_one_of(PAST, word)) && !has(SPECIFIC)));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_of_changes_are_found_in_many_words_and_languages() {
        for text in [
            "Done! I started it ✅",
            "I've started exp-1 for you.",
            "Sure thing, exp-1 is now running.",
            "exp-1 has been launched.",
            "Both are proposed.",
            "All set!",
            "Started it.",
            "OK, scheduled for Monday.",
            "I just sent the mail to Dana.",
            "Your request has been approved",
            "The change went through.",
            "It's live now.",
            "✅ exp-1",
            "I have permanently deleted exp-1",
            "Perfect — kicked off exp-1.",
            "A card is waiting for approval.",
            "Erledigt, exp-1 wurde gestartet.",
            "Ich habe exp-1 soeben gestoppt.",
            "C'est fait, exp-1 est démarrée.",
            "J'ai envoyé le message.",
            "Listo, he iniciado exp-1.",
            "El experimento ha sido eliminado.",
            "Fatto! Ho avviato exp-1.",
            "Pronto, iniciei exp-1.",
            "Gedaan: exp-1 is gestart.",
            "Готово, exp-1 запущен.",
            "已启动 exp-1",
            "exp-1を開始しました。",
            "Tamam, exp-1 başlatıldı.",
        ] {
            assert!(!claims(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn other_sentences_claim_nothing() {
        for text in [
            "Nothing was changed.",
            "I didn't start it.",
            "exp-1 has not been started.",
            "Should I start exp-1?",
            "Was it started by Bo?",
            "You can start it by saying “start exp-1”.",
            "Once it is approved, exp-1 will be started.",
            "If nobody objects, it can be stopped.",
            "Experiments that were completed count as well.",
            "There are seven.",
            "A weight is the share of participants.",
            "exp-5 has two conditions, control 50% and variant 50%.",
            "Ich habe nichts geändert.",
            "Rien n'a été modifié.",
            "Hello, Ana!",
            "24 users are enrolled in exp-5, and each is assigned at random.",
            "You are welcome!",
            "I compared them: exp-5 has more users.",
        ] {
            assert_eq!(claims(text), [], "{text}");
        }
    }

    #[test]
    fn a_statement_about_the_past_is_not_about_the_assistant() {
        let own = |text: &str| claims(text).iter().any(|claim| claim.is_own);
        assert!(!own("exp-5 was started on 3 May by Bo.") && !claims("exp-5 was started on 3 May by Bo.").is_empty());
        assert!(!own("It was created by Bo in March."));
        assert!(
            claims("Archived experiments are hidden; a stopped one can be archived.")
                .iter()
                .all(|claim| claim.is_general)
        );
        assert!(!claims("Both are proposed.")[0].is_general && !claims("It is archived.")[0].is_general);
        assert!(own("exp-5 was just started.") && own("Started exp-5."));
    }
}
