//! Character sets: the ones that a mail names, and a guess where it names none, as mail programs make it.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, ISO_2022_JP, WINDOWS_1252};
use mail_parser::decoders::charsets::map::charset_decoder;

use super::parts::from_base64;

/// The number of bytes beyond ASCII from which a single-byte character set other than Windows-1252 is recognized. With
/// fewer of them, any of these sets is as likely as another.
const LEAST_EVIDENCE: usize = 3;
/// The sequences by which ISO-2022-JP, which uses ASCII only, changes to Japanese letters.
const TO_JAPANESE: [&[u8]; 4] = [b"\x1b$B", b"\x1b$@", b"\x1b(J", b"\x1b(I"];

/// A guess at the character set of a message's text that names none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Guess(Option<&'static Encoding>);

impl Guess {
    /// Guesses by the character set that the message names elsewhere, and else by all such texts together.
    pub(super) fn of<'a>(own: Option<&str>, texts: impl Iterator<Item = &'a [u8]>) -> Self {
        let own = own.filter(|label| !is_ascii(label)).and_then(|label| Encoding::for_label(label.trim().as_bytes()));
        if let Some(own) = own.filter(|own| own.is_ascii_compatible() && *own != encoding_rs::UTF_8) {
            return Self(Some(own));
        }
        let unknown: Vec<u8> = texts.filter(|text| str::from_utf8(text).is_err()).collect::<Vec<_>>().concat();
        Self((!unknown.is_empty()).then(|| detected(&unknown)))
    }

    /// Decodes a text that does not name its character set.
    pub(super) fn decode(self, bytes: &[u8]) -> String {
        if is_japanese(bytes) {
            return ISO_2022_JP.decode_without_bom_handling(bytes).0.into_owned();
        }
        if let Ok(text) = str::from_utf8(bytes) {
            return text.to_owned();
        }
        let known = self.0.and_then(|set| set.decode_without_bom_handling_and_without_replacement(bytes));
        known.unwrap_or_else(|| detected(bytes).decode_without_bom_handling(bytes).0).into_owned()
    }

    /// Decodes a text whose character set has this name. UTF-8 that is none is guessed, unless its end is missing.
    pub(super) fn decode_named(self, bytes: &[u8], label: Option<&str>, is_cut: bool) -> String {
        let named = label.filter(|label| !is_utf8(label) && !is_ascii(label));
        match named.and_then(|label| charset_decoder(label.trim().as_bytes())) {
            Some(decode) => decode(bytes),
            None if is_cut || label.is_some_and(is_utf8) => String::from_utf8_lossy(bytes).into_owned(),
            None => self.decode(bytes),
        }
    }

    /// Returns a header's value in UTF-8, with each encoded word (RFC 2047) in UTF-8 as well. Words that follow each other
    /// are decoded together, since senders split letters between them.
    pub(super) fn in_utf8(self, value: &[u8]) -> String {
        let value = self.decode(value);
        if !value.contains("=?") {
            return value;
        }
        let (mut rest, mut out) = (value.as_str(), String::with_capacity(value.len()));
        while let Some(start) = rest.find("=?") {
            let (before, from_here) = rest.split_at(start);
            out.push_str(before);
            let Some(mut word) = Word::at(from_here) else {
                out.push_str("=?");
                rest = &from_here[2..];
                continue;
            };
            rest = &from_here[word.length..];
            while let Some(next) =
                Word::at(rest.trim_start()).filter(|next| next.label.eq_ignore_ascii_case(word.label))
            {
                word.bytes.extend(next.bytes);
                rest = &rest.trim_start()[next.length..];
            }
            let is_broken = is_utf8(word.label) && str::from_utf8(&word.bytes).is_err();
            let text = self.decode_named(&word.bytes, Some(word.label).filter(|_| !is_broken), false);
            out.push_str(&format!("=?utf-8?B?{}?=", STANDARD.encode(text)));
        }
        out.push_str(rest);
        out
    }
}

/// An encoded word: `=?label?Q?data?=`.
struct Word<'a> {
    label: &'a str,
    bytes: Vec<u8>,
    length: usize,
}

impl<'a> Word<'a> {
    /// Reads the encoded word at the beginning of a text.
    fn at(text: &'a str) -> Option<Self> {
        let (label, rest) = text.strip_prefix("=?")?.split_once('?')?;
        let (encoding, rest) = rest.split_once('?')?;
        let (data, rest) = rest.split_once("?=")?;
        let label = label.split('*').next().unwrap_or_default(); // a language may follow
        let is_label = label.len() >= 2 && label.bytes().all(|byte| byte.is_ascii_graphic());
        let bytes = match encoding {
            _ if !is_label => return None,
            "Q" | "q" => unescaped(data),
            "B" | "b" => from_base64(data.as_bytes()),
            _ => return None,
        };
        Some(Self { label, bytes, length: text.len() - rest.len() })
    }
}

/// Decodes the Q encoding of words. What is not valid stays as it is.
fn unescaped(data: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(data.len());
    let mut rest = data.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let escaped = (*first == b'=').then(|| after.get(..2)).flatten();
        let escaped = escaped.and_then(|digits| hex::decode(digits).ok()).and_then(|byte| byte.first().copied());
        bytes.push(escaped.unwrap_or(if *first == b'_' { b' ' } else { *first }));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    bytes
}

fn is_japanese(bytes: &[u8]) -> bool {
    bytes.is_ascii() && bytes.windows(3).any(|found| TO_JAPANESE.contains(&found))
}

fn detected(bytes: &[u8]) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(bytes, true);
    let found = detector.guess(None, Utf8Detection::Deny);
    let evidence = bytes.iter().filter(|byte| !byte.is_ascii()).count();
    if found.is_single_byte() && evidence < LEAST_EVIDENCE { WINDOWS_1252 } else { found }
}

fn is_utf8(label: &str) -> bool {
    let label = label.trim();
    label.eq_ignore_ascii_case("utf-8") || label.eq_ignore_ascii_case("utf8")
}

fn is_ascii(label: &str) -> bool {
    let label = label.trim();
    label.eq_ignore_ascii_case("us-ascii") || label.eq_ignore_ascii_case("ascii")
}

#[cfg(test)]
mod tests {
    use encoding_rs::{BIG5, EUC_KR, GBK, KOI8_R, SHIFT_JIS, WINDOWS_1250, WINDOWS_1251};
    use proptest::prelude::*;

    use super::*;

    fn guessed(bytes: &[u8]) -> String {
        Guess::default().decode(bytes)
    }

    #[test]
    fn text_without_a_character_set_is_guessed() {
        for (text, set) in [
            ("Grüße aus Köln", WINDOWS_1252),
            ("naïve – yes", WINDOWS_1252),
            ("£100 or 110 €", WINDOWS_1252),
            ("“Quoted”, and it’s José", WINDOWS_1252),
            ("Příliš žluťoučký kůň", WINDOWS_1250),
            ("Привет, как дела?", KOI8_R),
            ("Привет, как дела?", WINDOWS_1251),
            ("こんにちは世界", SHIFT_JIS),
            ("안녕하세요", EUC_KR),
            ("你好,世界", GBK),
            ("你好,世界", BIG5),
        ] {
            assert_eq!(guessed(&set.encode(text).0), text, "{}", set.name());
        }
        assert_eq!(guessed("Grüße".as_bytes()), "Grüße");
        assert_eq!(guessed(b"Re: \x1b$B$3$s$K$A$O\x1b(B!"), "Re: こんにちは!");
        assert_eq!(guessed(b"\x1b[1mbold"), "\x1b[1mbold");
    }

    #[test]
    fn the_message_names_the_character_set_of_its_headers() {
        let bytes = WINDOWS_1251.encode("Да").0;
        assert_eq!(Guess::of(Some("windows-1251"), std::iter::empty()).decode(&bytes), "Да");
        let others = WINDOWS_1251.encode("Когда вы открываетесь?").0;
        assert_eq!(Guess::of(Some("utf-8"), [&*others, &*bytes].into_iter()).decode(&bytes), "Да", "by the others");
        assert_eq!(Guess::of(Some("windows-1251"), std::iter::empty()).decode("Ü".as_bytes()), "Ü", "it is UTF-8");
    }

    #[test]
    fn encoded_words_come_in_utf8() {
        let plain = |value: &str| {
            let words = Guess::default().in_utf8(value.as_bytes());
            let word = words.strip_prefix("=?utf-8?B?").and_then(|rest| rest.strip_suffix("?="));
            word.map_or(words.clone(), |word| String::from_utf8(STANDARD.decode(word).unwrap()).unwrap())
        };
        for (value, text) in [
            ("=?iso-8859-1?Q?Gr=FC=DFe_aus?=", "Grüße aus"),
            ("=?utf-8*de?q?Gr=C3=BC?=\r\n =?UTF-8?B?w58=?=", "Grüß"),
            ("=?utf-8?B?R3LD?= =?utf-8?B?vMOfZQ==?=", "Grüße"),
            ("=?unknown-8bit?Q?Gr=FC=DFe?=", "Grüße"),
            ("=?utf-8?Q?Gr=FC=DFe?=", "Grüße"),
            ("=?us-ascii?Q?Gr=C3=BC=C3=9Fe?=", "Grüße"),
            ("=?iso-2022-jp?B?GyRCJDMkcyRLJEEkTxsoQg==?=", "こんにちは"),
            ("=?x?Q?a?=", "=?x?Q?a?="),
            ("100 =? 5", "100 =? 5"),
        ] {
            assert_eq!(plain(value), text, "{value}");
        }
    }

    proptest! {
        #[test]
        fn what_the_west_writes_comes_back(words in prop::collection::vec(
            prop::sample::select(vec![
                "Grüße", "für", "Straße", "Übersicht", "März", "Müller", "Café", "Résumé", "réunion", "François", "señor",
                "mañana", "José", "São", "Paulo", "coração", "Søren", "blåbær", "Malmö", "Zoë", "the", "order", "of", "price",
                "on", "Monday", "invoice", "12",
            ]), 1..12,
        )) {
            let text = words.join(" ");
            prop_assert_eq!(guessed(&WINDOWS_1252.encode(&text).0), text.clone());
            prop_assert_eq!(guessed(text.as_bytes()), text.clone());
            let header = Guess::of(Some("iso-8859-1"), std::iter::empty());
            prop_assert_eq!(header.decode(&WINDOWS_1252.encode(&text).0), text);
        }

        #[test]
        fn any_value_is_read(value in prop::collection::vec(any::<u8>(), 0..300), pieces in prop::collection::vec(
            prop::sample::select(vec!["=?", "?=", "utf-8", "?Q?", "?B?", "=FC", "w58=", " ", "\u{1b}$B", "x*"]), 0..40,
        )) {
            let value = [pieces.concat().into_bytes(), value].concat();
            Guess::of(None, [value.as_slice()].into_iter()).in_utf8(&value);
        }
    }
}
