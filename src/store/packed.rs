//! The packed form of stored values, which is about a quarter of their length as text.
//!
//! A packed value is either JSON text, or the byte [`FRAME`] and a [zstd](https://www.rfc-editor.org/rfc/rfc8878) frame
//! that contains JSON text. No JSON text begins with that byte. The frame is made with a dictionary: a text with the
//! names and phrases of typical values, which therefore take a few bits each. Without it, values as short as these would
//! hardly become shorter.
//!
//! A dictionary is never edited, because the frames that were made with it can only be read with it. Another one would
//! be another first byte.

use std::{borrow::Cow, cell::RefCell, io, sync::LazyLock};

use serde::Serialize;
use zstd::{
    bulk::{Compressor, Decompressor},
    dict::{DecoderDictionary, EncoderDictionary},
    zstd_safe,
};

/// The first byte of a value that was compressed with [`DICTIONARY`].
const FRAME: u8 = 1;

/// The dictionary: the contents of typical values, the most frequent ones at the end.
const DICTIONARY: &[u8] = include_bytes!("packed/dictionary-1.txt");

/// The level of compression: the first one that compresses only repetitions, and not letters by their frequency. Those
/// above it take more than twice as long for values as short as these, and save a fifth.
const LEVEL: i32 = -1;

/// The length of the shortest text that is compressed, in bytes.
const MIN_LENGTH: usize = 128;

/// The maximum length of a text, in bytes, as protection against a frame that claims a larger one.
const MAX_LENGTH: u64 = 256 << 20;

static FOR_COMPRESSION: LazyLock<EncoderDictionary<'static>> =
    LazyLock::new(|| EncoderDictionary::copy(DICTIONARY, LEVEL));

static FOR_DECOMPRESSION: LazyLock<DecoderDictionary<'static>> = LazyLock::new(|| DecoderDictionary::copy(DICTIONARY));

thread_local! {
    // Each has working memory of some hundred kilobytes, so they are reused.
    static COMPRESSOR: RefCell<Compressor<'static>> = RefCell::new(
        Compressor::with_prepared_dictionary(&FOR_COMPRESSION).expect("the dictionary is part of the program"),
    );
    static DECOMPRESSOR: RefCell<Decompressor<'static>> = RefCell::new(
        Decompressor::with_prepared_dictionary(&FOR_DECOMPRESSION).expect("the dictionary is part of the program"),
    );
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
        Ok(frame) if frame.len() + 1 < text.len() => [&[FRAME], &*frame].concat(),
        _ => text,
    }
}

/// Returns the text of a packed value.
///
/// # Errors
///
/// [`io::ErrorKind::InvalidData`] if the value begins like a frame but is not one.
pub fn unpack(stored: &[u8]) -> io::Result<Cow<'_, [u8]>> {
    let Some((&FRAME, frame)) = stored.split_first() else { return Ok(Cow::Borrowed(stored)) };
    let damaged = || io::Error::new(io::ErrorKind::InvalidData, "not a frame with the length of a text");
    let length = zstd_safe::get_frame_content_size(frame).ok().flatten().filter(|length| *length <= MAX_LENGTH);
    let length = length.and_then(|length| usize::try_from(length).ok()).ok_or_else(damaged)?;
    let text = DECOMPRESSOR.with_borrow_mut(|decompressor| decompressor.decompress(frame, length));
    text.map(Cow::Owned).map_err(|_| damaged())
}

#[cfg(test)]
mod tests {
    use sha2::{Digest as _, Sha256};

    use super::*;

    #[test]
    fn a_value_is_read_as_it_was_packed() {
        for text in ["", "{}", "null", &format!("[{}]", "1,".repeat(40_000)), &r#"{"node":"gather"}"#.repeat(9), "äöü"]
        {
            assert_eq!(unpack(&pack(text.as_bytes().to_vec())).unwrap(), text.as_bytes());
        }
    }

    #[test]
    fn the_dictionary_is_never_edited() {
        let hash = hex::encode(Sha256::digest(DICTIONARY));
        assert_eq!(hash, "14e983d67f56d91455cc87047a1b1bd2ca3410f4c3f5033ffbce75cc32a11680");
    }

    #[test]
    fn text_is_read_as_it_is() {
        assert_eq!(&*unpack(br#"{"format":1}"#).unwrap(), br#"{"format":1}"#);
    }

    #[test]
    fn a_damaged_value_is_refused() {
        let whole = pack(r#"{"run":"r1","node":"analyze","delta":{}}"#.repeat(20).into_bytes());
        assert_eq!(whole[0], FRAME);
        for end in 1..whole.len() {
            assert!(unpack(&whole[..end]).is_err(), "cut at {end}");
        }
        let claims_to_be_huge = [&[FRAME, 0x28, 0xb5, 0x2f, 0xfd, 0xe0][..], &[0xff; 8]].concat();
        assert!(unpack(&claims_to_be_huge).is_err());
    }
}
