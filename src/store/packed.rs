//! The packed form of stored values, which is about a quarter of their length as text.
//!
//! A packed value is either JSON text, or a byte that names a [`Dictionary`] and a
//! [zstd](https://www.rfc-editor.org/rfc/rfc8878) frame that contains JSON text. No JSON text begins with such a byte. A
//! dictionary is a text with the names and phrases of typical values, which therefore take a few bits each. Without it,
//! values as short as these would hardly become shorter.
//!
//! A dictionary is never edited, because the frames that were made with it can only be read with it. Another one has
//! another first byte. The present one has two parts: a text like the values of an approval, and tables with the frequencies
//! in 4,000 such values (`ZDICT_finalizeDictionary` of zstd makes them), so a frame needs no tables of its own. Those would be
//! a tenth of a frame, and making them would take a third of the time.

use std::{borrow::Cow, cell::RefCell, io};

use serde::Serialize;
use zstd::{
    bulk::{Compressor, Decompressor},
    zstd_safe::{self, CParameter, ParamSwitch},
};

/// A dictionary, and the first byte of the values that were compressed with it.
struct Dictionary {
    first_byte: u8,
    contents: &'static [u8],
}

/// The first dictionary: the contents of typical values, the most frequent ones at the end.
const FIRST: Dictionary = Dictionary { first_byte: 1, contents: include_bytes!("packed/dictionary-1.txt") };

/// The second one: the text of the first one, with tables.
const SECOND: Dictionary = Dictionary { first_byte: 2, contents: include_bytes!("packed/dictionary-2.zstd") };

/// The dictionary of the values that are written now. Its text has the order of the members as they are written since
/// checkpoints and steps are no longer sorted, and no members that are empty.
const THIRD: Dictionary = Dictionary { first_byte: 3, contents: include_bytes!("packed/dictionary-3.zstd") };

/// The level of compression. For values as short as these, the next one makes longer frames, and the one after that takes up
/// to half as long again and saves a twentieth.
const LEVEL: i32 = 1;

/// The parameters that override those of the level. The compressor looks for matches of at least seven bytes, and only at every
/// fourth position (every fifth in long values). With a look at every second one, frames would be 5 % shorter. Literals
/// are still entropy-coded, which zstd would otherwise turn off at this setting.
const PARAMETERS: [CParameter; 3] =
    [CParameter::MinMatch(7), CParameter::TargetLength(4), CParameter::LiteralCompressionMode(ParamSwitch::Enable)];

/// The length of the shortest text that is compressed, in bytes. Compressing a shorter one, such as most entries of the
/// audit trail, saves a few hundred bytes and takes about as long as compressing a kilobyte.
const MIN_LENGTH: usize = 640;

/// The maximum length of a text, in bytes, as protection against a frame that claims a larger one.
const MAX_LENGTH: u64 = 256 << 20;

thread_local! {
    // Each has working memory of some hundred kilobytes, so they are reused.
    static COMPRESSOR: RefCell<Compressor<'static>> = RefCell::new(compressor());
    static DECOMPRESSOR: RefCell<Decompressor<'static>> = RefCell::new(decompressor(&THIRD));
    static SECOND_DECOMPRESSOR: RefCell<Decompressor<'static>> = RefCell::new(decompressor(&SECOND));
    static FIRST_DECOMPRESSOR: RefCell<Decompressor<'static>> = RefCell::new(decompressor(&FIRST));
}

fn compressor() -> Compressor<'static> {
    let mut compressor =
        Compressor::with_dictionary(LEVEL, THIRD.contents).expect("the dictionary is part of the program");
    // The first byte says which dictionary it is.
    for parameter in PARAMETERS.into_iter().chain([CParameter::DictIdFlag(false)]) {
        compressor.set_parameter(parameter).expect("a parameter of every compressor");
    }
    compressor
}

fn decompressor(dictionary: &Dictionary) -> Decompressor<'static> {
    Decompressor::with_dictionary(dictionary.contents).expect("the dictionary is part of the program")
}

/// Serializes a value and packs it.
pub fn packed<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    pack(serde_json::to_vec(value).expect("stored values are plain data with text keys"))
}

/// Packs a text: compresses it, if that makes it shorter.
pub fn pack(text: Vec<u8>) -> Vec<u8> {
    if text.len() < MIN_LENGTH || text.len() as u64 > MAX_LENGTH {
        return text;
    }
    match COMPRESSOR.with_borrow_mut(|compressor| compressor.compress(&text)) {
        Ok(frame) if frame.len() + 1 < text.len() => [&[THIRD.first_byte], &*frame].concat(),
        _ => text,
    }
}

/// Returns the text of a packed value.
///
/// # Errors
///
/// [`io::ErrorKind::InvalidData`] if the value begins like a frame but is not one.
pub fn unpack(stored: &[u8]) -> io::Result<Cow<'_, [u8]>> {
    let Some((first_byte, frame)) = stored.split_first() else { return Ok(Cow::Borrowed(stored)) };
    let decompressor = match *first_byte {
        byte if byte == THIRD.first_byte => &DECOMPRESSOR,
        byte if byte == SECOND.first_byte => &SECOND_DECOMPRESSOR,
        byte if byte == FIRST.first_byte => &FIRST_DECOMPRESSOR,
        _ => return Ok(Cow::Borrowed(stored)),
    };
    let damaged = || io::Error::new(io::ErrorKind::InvalidData, "not a frame with the length of a text");
    let length = zstd_safe::get_frame_content_size(frame).ok().flatten().filter(|length| *length <= MAX_LENGTH);
    let length = length.and_then(|length| usize::try_from(length).ok()).ok_or_else(damaged)?;
    let text = decompressor.with_borrow_mut(|decompressor| decompressor.decompress(frame, length));
    text.map(Cow::Owned).map_err(|_| damaged())
}

#[cfg(test)]
mod tests {
    use countersign_core::hash::sha256;

    use super::*;

    #[test]
    fn a_value_is_read_as_it_was_packed() {
        for text in ["", "{}", "null", &format!("[{}]", "1,".repeat(40_000)), &r#"{"node":"gather"}"#.repeat(9), "äöü"]
        {
            assert_eq!(unpack(&pack(text.as_bytes().to_vec())).unwrap(), text.as_bytes());
        }
    }

    #[test]
    fn a_value_of_an_earlier_version_is_read() {
        let text = br#"{"run":"r1","node":"analyze","delta":{}}"#.repeat(20);
        for dictionary in [FIRST, SECOND] {
            let frame = Compressor::with_dictionary(1, dictionary.contents).unwrap().compress(&text).unwrap();
            assert_eq!(*unpack(&[&[dictionary.first_byte], &*frame].concat()).unwrap(), *text);
        }
    }

    #[test]
    fn the_dictionaries_are_never_edited() {
        let hash = |dictionary: Dictionary| hex::encode(sha256(dictionary.contents));
        assert_eq!(hash(FIRST), "14e983d67f56d91455cc87047a1b1bd2ca3410f4c3f5033ffbce75cc32a11680");
        assert_eq!(hash(SECOND), "0af921a6463e5e8bbefc719cb3ab8d15489ec1692d2c4167e84c8fe78aee1da6");
        assert_eq!(hash(THIRD), "a46f9f41a74f2220974c46401c0f37f103f630e2f1619b91fa4858ed68ff9c59");
    }

    #[test]
    fn text_is_read_as_it_is() {
        assert_eq!(&*unpack(br#"{"format":1}"#).unwrap(), br#"{"format":1}"#);
    }

    #[test]
    fn a_damaged_value_is_refused() {
        let whole = pack(r#"{"run":"r1","node":"analyze","delta":{}}"#.repeat(20).into_bytes());
        assert_eq!(whole[0], THIRD.first_byte);
        for end in 1..whole.len() {
            assert!(unpack(&whole[..end]).is_err(), "cut at {end}");
        }
        for first_byte in [FIRST, SECOND, THIRD].map(|dictionary| dictionary.first_byte) {
            let claims_to_be_huge = [&[first_byte, 0x28, 0xb5, 0x2f, 0xfd, 0xe0][..], &[0xff; 8]].concat();
            assert!(unpack(&claims_to_be_huge).is_err());
        }
    }
}
