//! Recognises messages in other languages than English, which the phrases do not understand, and says so in that language.

use std::ops::RangeInclusive;

use crate::words::Word;

/// A language other than English.
struct Language {
    /// Frequent words that are no English words. Words without accents are left out if they are common names or codes.
    words: &'static str,
    /// The answer to a message in it.
    answer: &'static str,
}

/// The languages that are recognised by their words. If a message fits several, the first one counts.
const LANGUAGES: &[Language] = &[
    Language {
        words: "bitte danke zeige zeig starte beende stoppe lösche erstelle alle welche laufen läuft gerade ist sind nicht wie \
            viele können könntest kannst und oder das der die den dem ein eine einen mit für von wer hat wann warum was",
        answer: "Ich verstehe zurzeit nur Englisch, zum Beispiel “what can you do?” oder “what is waiting?”.",
    },
    Language {
        words: "s'il vous plaît peux-tu pouvez-vous lance lancer démarre démarrer arrête arrêter montre-moi montre affiche \
            quels quelles sont combien expériences expérience le la les des et une avec pour dans merci bonjour supprime \
            supprimer créer est est-ce que qui quoi",
        answer: "Je ne comprends que l’anglais pour le moment, par exemple “what can you do?” ou “what is waiting?”.",
    },
    Language {
        words: "por favor puedes puede podrías iniciar inicia empezar detener detén mostrar muestra muéstrame cuántos cuáles \
            quién qué están está todos la los las una con para cómo gracias hola borrar elimina crea crear",
        answer: "Por ahora solo entiendo inglés, por ejemplo “what can you do?” o “what is waiting?”.",
    },
    Language {
        words: "por favor pode você inicie iniciar parar pare mostre mostrar quais quem são está não todos os uma com para como \
            experiências obrigado obrigada olá quantos apague excluir criar",
        answer: "Por enquanto só entendo inglês, por exemplo “what can you do?” ou “what is waiting?”.",
    },
    Language {
        words: "per favore avvia avviare ferma fermare mostrami mostra quali sono esperimenti esperimento gli della che chi con \
            una grazie ciao quanti tutti elimina crea puoi",
        answer: "Per ora capisco solo l’inglese, per esempio “what can you do?” o “what is waiting?”.",
    },
    Language {
        words: "alstublieft alsjeblieft graag starten stoppen toon laat zien welke zijn lopen hoeveel het een niet kun je kan \
            de van voor met alle",
        answer: "Ik begrijp op dit moment alleen Engels, bijvoorbeeld “what can you do?” of “what is waiting?”.",
    },
    Language {
        words: "proszę uruchom pokaż zatrzymaj które są eksperymenty jakie ile",
        answer: "Na razie rozumiem tylko angielski, na przykład “what can you do?” albo “what is waiting?”.",
    },
    Language {
        words: "lütfen başlat durdur göster hangi deneyler kaç",
        answer: "Şu anda yalnızca İngilizce anlıyorum, örneğin “what can you do?” veya “what is waiting?”.",
    },
    Language {
        words: "snälla starta visa vilka hur många",
        answer: "Just nu förstår jag bara engelska, till exempel “what can you do?” eller “what is waiting?”.",
    },
];

/// Other scripts, each with the answer in a language that is written in it. The first of which a message has a letter counts.
const SCRIPTS: &[(RangeInclusive<char>, &str)] = &[
    (
        '\u{0400}'..='\u{052f}',
        "Пока я понимаю только по-английски, например “what can you do?” или “what is waiting?”.",
    ),
    ('\u{0590}'..='\u{05ff}', "כרגע אני מבין רק אנגלית, למשל “what can you do?” או “what is waiting?”."),
    ('\u{0600}'..='\u{06ff}', "أفهم الإنجليزية فقط في الوقت الحالي، مثل “what can you do?” أو “what is waiting?”."),
    ('\u{0900}'..='\u{097f}', "अभी मैं केवल अंग्रेज़ी समझता हूँ, जैसे “what can you do?” या “what is waiting?”।"),
    ('\u{3040}'..='\u{30ff}', "今のところ英語だけがわかります。例：“what can you do?”、“what is waiting?”"),
    ('\u{ac00}'..='\u{d7a3}', "지금은 영어만 이해합니다. 예: “what can you do?”, “what is waiting?”"),
    ('\u{4e00}'..='\u{9fff}', "我目前只懂英语，例如“what can you do?”或“what is waiting?”。"),
];

/// The answer to a message in another script.
const ENGLISH_ONLY: &str =
    "I only understand English at the moment. For example: “what can you do?” or “what is waiting?”";

/// Words of the lists above that English messages contain as well, so that they count only beside others.
const ALSO_ENGLISH: &[&str] = &[
    "die", "was", "den", "per", "des", "les", "pare", "kan", "je", "sono", "visa", "das", "mit", "hat", "est", "las",
    "los", "alle", "lance", "der", "de", "van", "met", "la", "le", "et", "con", "com", "os", "como", "chi", "che",
    "que", "qui", "pour", "une", "laat", "pode", "starten",
];

/// Returns the answer, in the language of the words, if they are probably not English: two frequent words of other
/// languages, or mostly letters of another script.
pub(crate) fn in_other_language(words: &[Word]) -> Option<&'static str> {
    let plain = || words.iter().filter(|word| !word.quoted && word.kind.is_none());
    let letters: Vec<char> = plain().flat_map(|word| word.text.chars()).filter(|c| c.is_alphabetic()).collect();
    let foreign = letters.iter().filter(|c| is_other_script(**c)).count();
    if foreign >= 2 && foreign * 2 > letters.len() {
        let script = SCRIPTS.iter().find(|(script, _)| letters.iter().any(|letter| script.contains(letter)));
        return Some(script.map_or(ENGLISH_ONLY, |(_, answer)| answer));
    }
    let strip = |word: &Word| word.lower.trim_start_matches(['¿', '¡']).to_owned();
    let has = |language: &Language, word: &String| language.words.split_whitespace().any(|known| known == word);
    let is_known = |word: &String| LANGUAGES.iter().any(|language| has(language, word));
    let found: Vec<String> = plain().map(strip).filter(is_known).collect();
    let is_sure = |word: &&String| !ALSO_ENGLISH.contains(&word.as_str());
    let opens = words.first().is_some_and(|first| first.text.starts_with(['¿', '¡']));
    let is_other = found.len() >= 2 && found.iter().any(|word| is_sure(&word))
        || opens && !found.is_empty()
        || plain().count() <= 4
            && words.first().is_some_and(|first| found.first() == Some(&strip(first)) && is_sure(&&strip(first)));
    let fits = |language: &&Language| found.iter().filter(|word| has(language, word)).count();
    // Of several greatest ones, the last is returned: reversed, it is the first of the table.
    is_other.then(|| LANGUAGES.iter().rev().max_by_key(fits).map_or(ENGLISH_ONLY, |language| language.answer))
}

/// Returns true for a letter outside of the Latin and Greek scripts.
fn is_other_script(c: char) -> bool {
    c.is_alphabetic() && u32::from(c) >= 0x0400 && !(0x1E00..=0x1FFF).contains(&u32::from(c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::words;

    #[test]
    fn other_languages_are_recognised() {
        for (said, answer) in [
            ("Bitte starte Math Hints", "Ich verstehe"),
            ("zeige alle Experimente", "Ich verstehe"),
            ("welche Experimente laufen gerade?", "Ich verstehe"),
            ("¿Puedes iniciar Math Hints?", "Por ahora"),
            ("por favor, muestra los experimentos", "Por ahora"),
            ("por favor, mostre os experimentos", "Por enquanto"),
            ("você pode parar Math Hints?", "Por enquanto"),
            ("peux-tu lancer Math Hints ?", "Je ne comprends"),
            ("quels sont les tests en cours ?", "Je ne comprends"),
            ("avvia Math Hints per favore", "Per ora"),
            ("welke experimenten zijn actief?", "Ik begrijp"),
            ("запусти Math Hints пожалуйста", "Пока"),
            ("実験を表示して", "今のところ"),
            ("显示所有实验", "我目前"),
            ("실험을 보여 주세요", "지금은"),
            ("أظهر التجارب", "أفهم"),
            ("გაუშვი ექსპერიმენტი", "I only understand English"),
            ("proszę uruchom Math Hints", "Na razie"),
        ] {
            let answered = in_other_language(&words(said)).unwrap_or_default();
            assert!(answered.starts_with(answer), "{said}: {answered}");
        }
    }

    #[test]
    fn english_is_not_taken_for_another_language() {
        for said in [
            "start Math Hints please",
            "what was the weight per condition",
            "lance the boil",
            "who was it?",
            "show café-prog and naïve hints",
            "when did it die",
            "the β condition",
            "make it 60/40",
            "start La Paz con van der Berg",
            "show the com and de labels",
        ] {
            assert_eq!(in_other_language(&words(said)), None, "{said}");
        }
    }
}
