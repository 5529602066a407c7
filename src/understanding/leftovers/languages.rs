//! Recognises messages in other languages than English, which the phrases do not understand.

use crate::words::Word;

/// The answer to such a message.
pub(crate) const ENGLISH_ONLY: &str =
    "I only understand English at the moment. For example: “what can you do?” or “what is waiting?”";

/// Frequent words of other languages that are no English words. Words without accents are left out if they are common
/// names or codes.
const WORDS: &str = "bitte danke zeige zeig starte beende stoppe lösche erstelle alle welche laufen läuft gerade ist sind nicht \
    wie viele können könntest kannst und oder das der die den dem ein eine einen mit für von wer hat wann warum was \
    por favor puedes puede podrías iniciar inicia empezar detener detén mostrar muestra muéstrame cuántos cuáles quién qué \
    están está todos los las una para cómo gracias hola borrar elimina crea crear \
    s'il vous plaît peux-tu pouvez-vous lance lancer démarre démarrer arrête arrêter montre-moi montre affiche quels quelles \
    sont combien expériences expérience les des une avec pour merci bonjour supprime supprimer créer est-ce que quoi \
    per favore avvia avviare ferma fermare mostrami mostra quali sono esperimenti esperimento gli della grazie ciao \
    quanti elimina crea puoi inicie parar pare mostre quais são experiências obrigado quantos \
    alstublieft graag stoppen toon welke zijn lopen hoeveel het een niet kun je kan alsjeblieft \
    proszę uruchom pokaż zatrzymaj które są eksperymenty jakie ile \
    lütfen başlat durdur göster hangi deneyler kaç snälla starta visa vilka hur många";

/// Words of the list above that English messages contain as well, so that they count only beside others.
const ALSO_ENGLISH: &[&str] = &[
    "die", "was", "den", "per", "des", "les", "pare", "kan", "per", "je", "sono", "visa", "das", "mit", "hat", "est",
    "las", "los", "alle", "lance", "der",
];

/// Returns true if the words are probably not English: two frequent words of another language, or mostly letters of
/// another script.
pub(crate) fn is_other_language(words: &[Word]) -> bool {
    let plain = || words.iter().filter(|word| !word.quoted && word.kind.is_none());
    let letters: Vec<char> = plain().flat_map(|word| word.text.chars()).filter(|c| c.is_alphabetic()).collect();
    let foreign = letters.iter().filter(|c| is_other_script(**c)).count();
    if foreign >= 2 && foreign * 2 > letters.len() {
        return true;
    }
    let strip = |word: &Word| word.lower.trim_start_matches(['¿', '¡']).to_owned();
    let found: Vec<String> =
        plain().map(strip).filter(|word| WORDS.split_whitespace().any(|other| other == word)).collect();
    let is_sure = |word: &&String| !ALSO_ENGLISH.contains(&word.as_str());
    let opens = words.first().is_some_and(|first| first.text.starts_with(['¿', '¡']));
    found.len() >= 2 && found.iter().any(|word| is_sure(&word))
        || opens && !found.is_empty()
        || plain().count() <= 4
            && words.first().is_some_and(|first| found.first() == Some(&strip(first)) && is_sure(&&strip(first)))
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
        for said in [
            "Bitte starte Math Hints",
            "zeige alle Experimente",
            "welche Experimente laufen gerade?",
            "¿Puedes iniciar Math Hints?",
            "por favor, muestra los experimentos",
            "peux-tu lancer Math Hints ?",
            "quels sont les tests en cours ?",
            "avvia Math Hints per favore",
            "запусти Math Hints пожалуйста",
            "実験を表示して",
            "proszę uruchom Math Hints",
        ] {
            assert!(is_other_language(&words(said)), "{said}");
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
        ] {
            assert!(!is_other_language(&words(said)), "{said}");
        }
    }
}
