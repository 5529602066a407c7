//! The packed form of stored values, which is about a quarter of their length as text.
//!
//! A packed value is either JSON text, or a byte that names the [`DICTIONARY`] and a
//! [zstd](https://www.rfc-editor.org/rfc/rfc8878) frame that contains JSON text. No JSON text begins with such a byte. A
//! dictionary is a text with the names and phrases of typical values, which therefore take a few bits each. Without it,
//! values as short as these would hardly become shorter.
//!
//! A dictionary is never edited, because the frames that were made with it can only be read with it. Another one is added
//! with another first byte. It has two parts: a text like the values of an approval, the most frequent ones at the end, and
//! tables with the frequencies in 4,000 such values (`ZDICT_finalizeDictionary` of zstd makes them), so a frame needs no
//! tables of its own. Those would be a tenth of a frame, and making them would take a third of the time.

use std::{borrow::Cow, cell::RefCell, io, ops::RangeInclusive};

use serde::Serialize;
use zstd::{
    bulk::{Compressor, Decompressor},
    zstd_safe::{self, CParameter, ParamSwitch},
};

/// The first byte of a value that was compressed with [`DICTIONARY`].
const FIRST_BYTE: u8 = 1;

/// The dictionary of the values.
const DICTIONARY: &[u8] = include_bytes!("packed/dictionary-1.zstd");

/// The first bytes that no JSON text has, and that later dictionaries can take.
const OF_DICTIONARIES: RangeInclusive<u8> = 1..=8;

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
    static DECOMPRESSOR: RefCell<Decompressor<'static>> =
        RefCell::new(Decompressor::with_dictionary(DICTIONARY).expect("the dictionary is part of the program"));
}

fn compressor() -> Compressor<'static> {
    let mut compressor = Compressor::with_dictionary(LEVEL, DICTIONARY).expect("the dictionary is part of the program");
    // The first byte says which dictionary it is.
    for parameter in PARAMETERS.into_iter().chain([CParameter::DictIdFlag(false)]) {
        compressor.set_parameter(parameter).expect("a parameter of every compressor");
    }
    compressor
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
        Ok(frame) if frame.len() + 1 < text.len() => [&[FIRST_BYTE], &*frame].concat(),
        _ => text,
    }
}

/// Returns the text of a packed value.
///
/// # Errors
///
/// [`io::ErrorKind::InvalidData`] if the value begins like a frame but is not one, or needs a dictionary that this program
/// does not have.
pub fn unpack(stored: &[u8]) -> io::Result<Cow<'_, [u8]>> {
    let frame = match stored.split_first() {
        Some((&FIRST_BYTE, frame)) => frame,
        Some((byte, _)) if OF_DICTIONARIES.contains(byte) => {
            let what = format!("packed with dictionary {byte}, which this program does not have");
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        _ => return Ok(Cow::Borrowed(stored)),
    };
    let damaged = || io::Error::new(io::ErrorKind::InvalidData, "not a frame with the length of a text");
    let length = zstd_safe::get_frame_content_size(frame).ok().flatten().filter(|length| *length <= MAX_LENGTH);
    let length = length.and_then(|length| usize::try_from(length).ok()).ok_or_else(damaged)?;
    let text = DECOMPRESSOR.with_borrow_mut(|decompressor| decompressor.decompress(frame, length));
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
    fn a_value_that_needs_another_dictionary_is_refused() {
        let refused = unpack(&[&[2], &*pack(br#"{"node":"analyze"}"#.repeat(40))].concat()).unwrap_err();
        assert_eq!(refused.to_string(), "packed with dictionary 2, which this program does not have");
    }

    #[test]
    fn the_dictionary_is_never_edited() {
        assert_eq!(hex::encode(sha256(DICTIONARY)), "bc6ee82782072d2935d945ebbaaf57f8d24008f84db0d5d6ef1359d42b02801b");
    }

    #[test]
    fn text_is_read_as_it_is() {
        assert_eq!(&*unpack(br#"{"format":1}"#).unwrap(), br#"{"format":1}"#);
    }

    #[test]
    fn a_damaged_value_is_refused() {
        let whole = pack(r#"{"run":"r1","node":"analyze","delta":{}}"#.repeat(20).into_bytes());
        assert_eq!(whole[0], FIRST_BYTE);
        for end in 1..whole.len() {
            assert!(unpack(&whole[..end]).is_err(), "cut at {end}");
        }
        let claims_to_be_huge = [&[FIRST_BYTE, 0x28, 0xb5, 0x2f, 0xfd, 0xe0][..], &[0xff; 8]].concat();
        assert!(unpack(&claims_to_be_huge).is_err());
    }
}
