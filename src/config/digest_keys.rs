//! The text format of digest keys in the environment and in the key file.

use base64::{Engine as _, prelude::BASE64_STANDARD};

/// The minimum length of a key, in bytes.
const MIN_KEY_BYTES: usize = 32;

/// Parses a key in hexadecimal or base64.
///
/// # Errors
///
/// If the key is not valid. The error does not contain the key.
pub fn digest_key(text: &str) -> Result<Vec<u8>, String> {
    let right = "expected at least 32 bytes in hexadecimal or base64, such as `openssl rand -hex 32` makes";
    let bytes = hex::decode(text).ok().or_else(|| BASE64_STANDARD.decode(text).ok());
    match bytes {
        None => {
            Err(format!("found {} characters that are neither hexadecimal nor base64; {right}", text.chars().count()))
        }
        Some(bytes) if bytes.len() < MIN_KEY_BYTES => Err(format!("found a key of {} bytes; {right}", bytes.len())),
        Some(bytes) => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_hexadecimal_or_base64_and_long_enough() {
        assert_eq!(digest_key(&"ab".repeat(32)).unwrap(), [0xab; 32]);
        assert_eq!(digest_key(&BASE64_STANDARD.encode([7; 40])).unwrap(), [7; 40]);
        assert!(digest_key("abcd").unwrap_err().starts_with("found a key of 2 bytes"));
        let wrong = digest_key("not a key!").unwrap_err();
        assert!(wrong.starts_with("found 10 characters") && !wrong.contains("not a key!"), "{wrong}");
    }
}
