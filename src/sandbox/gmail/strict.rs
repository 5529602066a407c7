//! Strict access to the parts of a request to Gmail.

use base64::{
    Engine as _,
    alphabet::URL_SAFE,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use serde::{Deserialize, de::DeserializeOwned};

use super::failure::Failure;
use crate::call::Call;

/// Base64url with or without padding, as Google accepts it.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The message in a request that creates or sends one.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct NewMessage {
    /// The message in base64url.
    pub(crate) raw: String,
    /// The thread to which it belongs.
    pub(crate) thread_id: Option<String>,
}

impl NewMessage {
    /// Decodes the message.
    pub(crate) fn bytes(&self) -> Result<Vec<u8>, Failure> {
        let decoded = LENIENT.decode(&self.raw).map_err(|_| {
            let start: String = self.raw.chars().take(20).collect();
            Failure::invalid(format!(
                "Invalid value at 'message.raw' (TYPE_BYTES), Base64 decoding failed for \"{start}\""
            ))
        })?;
        match decoded.is_empty() {
            true => Err(Failure::invalid(
                "'raw' RFC822 payload message string or uploading message via /upload/* URL required",
            )),
            false => Ok(decoded),
        }
    }
}

impl Call {
    /// Returns all values of a parameter that may be repeated.
    pub(crate) fn parameters(&self, name: &str) -> Vec<&str> {
        self.query.iter().filter(|(own, _)| own == name).map(|(_, value)| value.as_str()).collect()
    }

    /// Refuses parameters that the method does not have.
    pub(crate) fn has_only(&self, known: &[&str]) -> Result<(), Failure> {
        match self.query.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some((name, _)) => Err(Failure::invalid(format!(
                "Invalid JSON payload received. Unknown name \"{name}\": Cannot bind query parameter. Field '{name}' \
                 could not be found in request message."
            ))),
        }
    }

    /// Returns the number in a parameter, at most `most`.
    pub(crate) fn number(&self, name: &str, default: usize, most: usize) -> Result<usize, Failure> {
        let Some(text) = self.parameter(name) else { return Ok(default) };
        let number: usize = text
            .parse()
            .map_err(|_| Failure::invalid(format!("Invalid value at '{name}' (TYPE_UINT32), \"{text}\"")))?;
        match number {
            0 => Ok(default),
            number => Ok(number.min(most)),
        }
    }

    /// Reads the body, and refuses unknown fields.
    pub(crate) fn body<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        serde_json::from_slice(&self.body)
            .map_err(|error| Failure::invalid(format!("Invalid JSON payload received. {error}")))
    }

    /// Refuses a body.
    pub(crate) fn has_no_body(&self) -> Result<(), Failure> {
        match self.body.trim_ascii() {
            b"" | b"{}" => Ok(()),
            _ => Err(Failure::invalid("Invalid JSON payload received. Unexpected body.")),
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::{body::Bytes, http};
    use countersign_core::clock::Timestamp;

    use super::*;

    fn call(uri: &str, body: &'static str) -> Call {
        let request = http::Request::post(uri).body(()).unwrap();
        Call::read(&request.into_parts().0, Bytes::from_static(body.as_bytes()), Timestamp(0)).0
    }

    #[test]
    fn unknown_parameters_and_fields_are_refused() {
        let sent = call("/messages?maxResults=700&labelIds=A&labelIds=B&nonsense=1", r#"{"raw":"SGk","draft":1}"#);
        assert_eq!(sent.number("maxResults", 100, 500), Ok(500));
        assert_eq!(sent.parameters("labelIds"), ["A", "B"]);
        assert!(sent.has_only(&["maxResults", "labelIds"]).is_err());
        assert!(sent.body::<NewMessage>().is_err());
    }

    #[test]
    fn padding_is_optional_and_other_characters_are_refused() {
        let decoded = |raw: &str| NewMessage { raw: raw.to_owned(), thread_id: None }.bytes();
        assert_eq!(decoded("SGk").unwrap(), decoded("SGk=").unwrap());
        assert!(decoded("SGk+").is_err(), "not base64url");
        assert!(decoded("").is_err());
    }
}
