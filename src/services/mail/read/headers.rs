//! The headers of a message or of a part: split here, each value decoded by `mail-parser`.
//!
//! Splitting takes linear time. A single value is cut before it is decoded, because the time for decoding can grow with
//! the square of its length.

use mail_parser::{ContentType, HeaderValue, parsers::MessageStream};

use super::charset::Guess;
use crate::address::Address;

/// The maximum length of the value of a header, in bytes. Longer ones are cut.
const MAX_VALUE_BYTES: usize = 16 * 1024;
/// The maximum length of the value of a header that describes a part, in bytes.
const MAX_MIME_VALUE_BYTES: usize = 4 * 1024;
/// The maximum length of a message id, in characters. Longer ones are ignored.
const MAX_ID_CHARS: usize = 400;

/// The headers of a message or of a part, in their order.
#[derive(Debug, Default)]
pub(super) struct Headers<'a> {
    fields: Vec<(&'a [u8], &'a [u8])>,
    guess: Guess,
}

/// The recipients in a header.
#[derive(Debug, Default)]
pub(super) struct Recipients {
    /// The first ones.
    pub(super) first: Vec<Address>,
    /// The number of all.
    pub(super) number: usize,
}

impl<'a> Headers<'a> {
    /// Splits a message or a part into its headers and its body.
    pub(super) fn split(bytes: &'a [u8]) -> (Self, &'a [u8]) {
        let mut headers = Self::default();
        let fields = &mut headers.fields;
        let (mut at, mut value_at) = (0, 0);
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let next = at + line.len();
            if line.trim_ascii().is_empty() && !line.starts_with(b" ") && !line.starts_with(b"\t") {
                return (headers, &bytes[next..]);
            }
            if line.starts_with(b" ") || line.starts_with(b"\t") {
                if let Some((_, value)) = fields.last_mut() {
                    *value = &bytes[value_at..next];
                }
            } else if let Some(colon) = line.iter().position(|byte| *byte == b':')
                && is_name(line[..colon].trim_ascii_end())
            {
                value_at = at + colon + 1;
                fields.push((line[..colon].trim_ascii_end(), &bytes[value_at..next]));
            } else if fields.is_empty() && !line.starts_with(b"From ") {
                // A text without any header.
                return (Self::default(), bytes);
            }
            at = next;
        }
        (headers, &[])
    }

    /// Guesses the character set of values that name none by the one that the message names elsewhere.
    pub(super) fn guess_by(&mut self, charset: Option<&str>) {
        self.guess = Guess::of(charset, self.fields.iter().map(|(_, value)| *value));
    }

    /// Returns true if there are no headers.
    pub(super) fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Returns the names and values of all headers, as they are in the message.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        self.fields.iter().copied()
    }

    /// Returns the number of headers with this name.
    pub(super) fn count(&self, name: &str) -> usize {
        self.named(name).count()
    }

    /// Returns the first value of a header as it is in the message, unfolded and trimmed.
    pub(super) fn raw(&self, name: &str) -> Option<String> {
        self.named(name).next().map(unfolded)
    }

    /// Returns the first value of a header as text, decoded.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        let value = self.decoded(self.named(name).next()?, MAX_VALUE_BYTES);
        match MessageStream::new(&value).parse_unstructured() {
            HeaderValue::Text(text) => Some(text.into_owned()),
            _ => None,
        }
    }

    /// Returns the first usable address in a header.
    pub(super) fn address(&self, name: &str) -> Option<Address> {
        self.named(name).find_map(|value| self.addresses(value).into_iter().next())
    }

    /// Returns the recipients in all headers with this name, but at most `most` addresses.
    pub(super) fn recipients(&self, name: &str, most: usize) -> Recipients {
        let mut recipients = Recipients::default();
        for value in self.named(name) {
            let mut found = self.addresses(value);
            recipients.number += if value.len() > MAX_VALUE_BYTES { separated(value) } else { found.len() };
            found.truncate(most.saturating_sub(recipients.first.len()));
            recipients.first.append(&mut found);
        }
        recipients
    }

    /// Returns the message ids in the first header with this name.
    pub(super) fn ids(&self, name: &str) -> Vec<String> {
        let Some(value) = self.named(name).next() else { return Vec::new() };
        let value = [&*cut(value, MAX_VALUE_BYTES), b"\n"].concat();
        let ids = match MessageStream::new(&value).parse_id() {
            HeaderValue::Text(id) => vec![id.into_owned()],
            HeaderValue::TextList(ids) => ids.into_iter().map(|id| id.into_owned()).collect(),
            _ => Vec::new(),
        };
        ids.into_iter().filter(|id| is_message_id(id)).collect()
    }

    /// Returns the first value of a header such as `Content-Type`.
    pub(super) fn content_type(&self, name: &str) -> Option<ContentType<'static>> {
        let value = self.decoded(self.named(name).next()?, MAX_MIME_VALUE_BYTES);
        match MessageStream::new(&value).parse_content_type() {
            HeaderValue::ContentType(content_type) => Some(owned(content_type)),
            _ => None,
        }
    }

    /// Returns the usable addresses in a value, of which only the beginning is read.
    fn addresses(&self, value: &[u8]) -> Vec<Address> {
        let value = self.decoded(value, MAX_VALUE_BYTES);
        let HeaderValue::Address(found) = MessageStream::new(&value).parse_address() else { return Vec::new() };
        found.iter().filter_map(|found| Address::new(found.name(), found.address()?)).collect()
    }

    /// Returns the beginning of a value in UTF-8.
    fn decoded(&self, value: &[u8], most: usize) -> Vec<u8> {
        let mut value = self.guess.in_utf8(&cut(value, most)).into_bytes();
        value.push(b'\n'); // the decoders of `mail-parser` expect the end of a line
        value
    }

    fn named(&self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        self.iter().filter(move |(found, _)| found.eq_ignore_ascii_case(name.as_bytes())).map(|(_, value)| value)
    }
}

/// Returns true if a text can be the id of a message between angle brackets.
pub(crate) fn is_message_id(id: &str) -> bool {
    !id.is_empty()
        && id.len() <= MAX_ID_CHARS
        && id.bytes().all(|byte| byte.is_ascii_graphic() && !b"<>".contains(&byte))
}

fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| byte.is_ascii_graphic() && *byte != b':')
}

/// Returns at most `most` bytes of a value, without the space at its end.
fn cut(value: &[u8], most: usize) -> Vec<u8> {
    let mut value = value[..value.len().min(most)].to_vec();
    while value.last().is_some_and(|byte| b"\r\n \t".contains(byte)) {
        value.pop();
    }
    value
}

/// Returns the value on one line, without decoding.
pub(super) fn unfolded(value: &[u8]) -> String {
    let value = String::from_utf8_lossy(&value[..value.len().min(MAX_VALUE_BYTES)]).into_owned();
    value.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Counts the addresses in a value that is too long to be decoded: they are separated by commas outside of quotes.
fn separated(value: &[u8]) -> usize {
    let (mut number, mut is_quoted, mut is_escaped) = (1, false, false);
    for byte in value {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b',' if !is_quoted => number += 1,
            _ => {}
        }
    }
    number
}

/// Copies a value that borrows from the bytes it was read from.
fn owned(content_type: ContentType<'_>) -> ContentType<'static> {
    ContentType {
        c_type: content_type.c_type.into_owned().into(),
        c_subtype: content_type.c_subtype.map(|subtype| subtype.into_owned().into()),
        attributes: content_type.attributes.map(|attributes| {
            attributes
                .into_iter()
                .map(|attribute| mail_parser::Attribute {
                    name: attribute.name.into_owned().into(),
                    value: attribute.value.into_owned().into(),
                })
                .collect()
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(text: &str) -> Headers<'_> {
        Headers::split(text.as_bytes()).0
    }

    #[test]
    fn headers_end_at_the_empty_line() {
        let (headers, body) = Headers::split(b"From: a@example.com\r\nSubject: one\r\n two\r\n\r\nbody\r\n\r\nmore");
        assert_eq!(headers.text("subject").as_deref(), Some("one two"));
        assert_eq!(headers.address("From").map(|address| address.address).as_deref(), Some("a@example.com"));
        assert_eq!(body, b"body\r\n\r\nmore");
    }

    #[test]
    fn a_text_without_headers_is_all_body() {
        let (headers, body) = Headers::split(b"Hello there,\nthis is: no mail");
        assert!(headers.is_empty());
        assert_eq!(body, b"Hello there,\nthis is: no mail");
    }

    #[test]
    fn encoded_words_are_decoded() {
        let headers = headers(
            "Subject: =?utf-8?B?R3LDvMOfZQ==?= =?iso-8859-1?Q?_aus_K=F6ln?=\nFrom: =?utf-8?q?Ana_=C3=9C?= <A@Example.com>\n\n",
        );
        assert_eq!(headers.text("Subject").as_deref(), Some("Grüße aus Köln"));
        assert_eq!(headers.address("From").map(|from| from.to_string()).as_deref(), Some("Ana Ü <a@example.com>"));
    }

    #[test]
    fn recipients_are_counted_beyond_those_that_are_read() {
        let list = (0..5_000).map(|n| format!("Person {n} <p{n}@example.com>")).collect::<Vec<_>>().join(",\r\n ");
        let text = format!("To: {list}\r\n\r\n");
        let recipients = headers(&text).recipients("To", 50);
        assert_eq!((recipients.first.len(), recipients.number), (50, 5_000));
    }

    #[test]
    fn ids_with_spaces_or_brackets_are_ignored() {
        let headers = headers("References: <a@x> <b c@x>\r\n <d@x>\r\nMessage-ID: <e@x>\r\n\r\n");
        assert_eq!(headers.ids("References"), ["a@x", "d@x"]);
        assert_eq!(headers.ids("Message-Id"), ["e@x"]);
        assert!(!is_message_id("a@x>\r\nBcc: eve@example.com"));
    }
}
