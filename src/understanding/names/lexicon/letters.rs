//! The letters of words, in the form in which they are compared.

/// Returns a word in lower case, without accents and apostrophes.
pub(super) fn fold_word(word: &str) -> String {
    let mut folded = String::with_capacity(word.len());
    for letter in word.chars().filter(|letter| !matches!(letter, '\'' | '’')) {
        for lower in letter.to_lowercase() {
            match plain(lower) {
                Some(plain) => folded.push_str(plain),
                None if is_accent(lower) => {}
                None => folded.push(lower),
            }
        }
    }
    folded
}

/// Returns true for combining marks, which follow their letter.
pub(super) fn is_accent(letter: char) -> bool {
    matches!(letter as u32, 0x0300..=0x036F | 0xFE0F | 0x200D)
}

/// Returns the letter without its accent; `None` if it has none.
fn plain(letter: char) -> Option<&'static str> {
    const TABLE: [(&str, &str); 25] = [
        ("àáâãäåāăą", "a"),
        ("çćĉċč", "c"),
        ("ďđð", "d"),
        ("èéêëēĕėęě", "e"),
        ("ĝğġģ", "g"),
        ("ĥħ", "h"),
        ("ìíîïĩīĭįı", "i"),
        ("ĵ", "j"),
        ("ķ", "k"),
        ("ĺļľł", "l"),
        ("ñńņň", "n"),
        ("òóôõöøōŏő", "o"),
        ("ŕŗř", "r"),
        ("śŝşšș", "s"),
        ("ţťŧț", "t"),
        ("ùúûüũūŭůűų", "u"),
        ("ŵ", "w"),
        ("ýÿŷ", "y"),
        ("źżž", "z"),
        ("ß", "ss"),
        ("æ", "ae"),
        ("œ", "oe"),
        ("þ", "th"),
        ("ё", "е"),
        ("й", "и"),
    ];
    if letter.is_ascii() {
        return None;
    }
    TABLE.iter().find(|(accented, _)| accented.contains(letter)).map(|(_, plain)| *plain)
}
