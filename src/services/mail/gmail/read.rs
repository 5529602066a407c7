//! Reading one mail, and a mail that is too large to be read completely.

use base64::{
    Engine as _,
    alphabet::URL_SAFE,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use countersign_core::clock::Timestamp;

use super::{
    super::{
        account::MailError,
        mail::{MAX_MAIL_BYTES, MailId, MailThreadId, RawMail},
    },
    calls::Calls,
    wire::Message,
};

/// Base64url with or without padding: Gmail sends both.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);
/// The maximum size of the answer with a whole mail, in bytes: in base64, with the other fields.
const MAX_RAW_ANSWER: usize = MAX_MAIL_BYTES as usize / 3 * 4 + 64 * 1024;
/// The maximum size of the answer with the headers of a mail, in bytes.
const MAX_HEADERS_ANSWER: usize = 16 * 1024 * 1024;
/// The headers that describe the body, which is not the body of the mail if the mail is cut.
const OF_THE_BODY: [&str; 3] = ["content-type", "content-transfer-encoding", "mime-version"];

/// Reads a mail. Returns `None` if it was deleted.
pub(super) async fn read(calls: &Calls, id: &MailId) -> Result<Option<RawMail>, MailError> {
    let path = path_of(id.as_str())?;
    let raw: Option<Message> = match calls.get_within(&path, &[("format", "raw")], MAX_RAW_ANSWER).await {
        Err(MailError::Refused { status: Some(404), .. }) => return Ok(None),
        raw => raw?,
    };
    if let Some(message) = raw {
        return whole(id, message).map(Some);
    }
    let headers: Option<Message> = match calls.get_within(&path, &[("format", "metadata")], MAX_HEADERS_ANSWER).await {
        Err(MailError::Refused { status: Some(404), .. }) => return Ok(None),
        headers => headers?,
    };
    if let Some(message) = headers {
        return cut(id, &message).map(Some);
    }
    // Even the headers are too large.
    let Some(message) = calls.find::<Message>(&path, &[("format", "minimal")]).await? else { return Ok(None) };
    cut(id, &message).map(Some)
}

/// Returns the path of a message.
pub(super) fn path_of(id: &str) -> Result<String, MailError> {
    item("messages", id)
}

/// Returns the path of an item. Ids are opaque, but they are parts of a path here.
pub(super) fn item(kind: &str, id: &str) -> Result<String, MailError> {
    let is_plain = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    match is_plain {
        true => Ok(format!("/{kind}/{id}")),
        false => Err(MailError::Refused { status: None, reason: "this isn't a Gmail ID".to_owned() }),
    }
}

fn whole(id: &MailId, message: Message) -> Result<RawMail, MailError> {
    let decoded = LENIENT.decode(&message.raw);
    let mut bytes = decoded.map_err(|_| MailError::Decode { reason: "the message is not base64url".to_owned() })?;
    let size = bytes.len() as u64;
    let is_cut = size > MAX_MAIL_BYTES;
    if is_cut {
        bytes.truncate(MAX_MAIL_BYTES as usize);
    }
    mail(id, &message, bytes, size, is_cut)
}

/// Returns the headers of a mail whose body was not read, with the beginning of its text that Gmail shows in lists.
pub(super) fn cut(id: &MailId, message: &Message) -> Result<RawMail, MailError> {
    let mut text = String::new();
    for header in &message.payload.headers {
        let is_name =
            !header.name.is_empty() && header.name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':');
        if is_name && !OF_THE_BODY.contains(&header.name.to_lowercase().as_str()) {
            let value: String = header.value.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            text.push_str(&format!("{}: {value}\r\n", header.name));
        }
    }
    text.push_str("MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n");
    text.push_str("Content-Transfer-Encoding: 8bit\r\n\r\n");
    text.push_str(&plain(&message.snippet));
    text.push_str("\r\n");
    let mut bytes = text.into_bytes();
    bytes.truncate(MAX_MAIL_BYTES as usize);
    mail(id, message, bytes, message.size_estimate, true)
}

fn mail(id: &MailId, message: &Message, bytes: Vec<u8>, size: u64, is_cut: bool) -> Result<RawMail, MailError> {
    let received = message.internal_date.parse().map(Timestamp);
    Ok(RawMail {
        id: id.clone(),
        thread: (!message.thread_id.is_empty()).then(|| MailThreadId::new(message.thread_id.clone())),
        received_at: received.map_err(|_| MailError::Decode { reason: "the mail has no date".to_owned() })?,
        labels: message.label_ids.clone(),
        bytes,
        size,
        is_cut,
    })
}

/// Undoes the escapes that Gmail uses in a snippet.
fn plain(snippet: &str) -> String {
    let escapes = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
    escapes.iter().fold(snippet.to_owned(), |text, (escape, plain)| text.replace(escape, plain))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_message_is_decoded_with_and_without_padding() {
        for raw in ["SGk_", "SGk=", "SGk"] {
            let message =
                json!({ "id": "1a", "threadId": "1b", "internalDate": "17", "labelIds": ["INBOX"], "raw": raw });
            let mail = whole(&MailId::new("1a"), serde_json::from_value(message).unwrap()).unwrap();
            assert!(mail.bytes.starts_with(b"Hi") && !mail.is_cut, "{raw}");
            assert_eq!((mail.received_at, mail.size), (Timestamp(17), mail.bytes.len() as u64));
        }
        let wrong = json!({ "internalDate": "17", "raw": "S G" });
        assert!(whole(&MailId::new("1a"), serde_json::from_value(wrong).unwrap()).is_err());
    }

    #[test]
    fn a_cut_mail_has_its_headers_and_the_beginning_of_its_text() {
        let message = json!({
            "threadId": "1b", "internalDate": "17", "sizeEstimate": 40_000_000, "snippet": "It&#39;s &lt;big&gt;",
            "payload": { "headers": [
                { "name": "From", "value": "ana@customer.example" },
                { "name": "Content-Type", "value": "multipart/mixed; boundary=x" },
                { "name": "Subject", "value": "Big\r\nBcc: eve@example.com" },
            ] },
        });
        let mail = cut(&MailId::new("1a"), &serde_json::from_value(message).unwrap()).unwrap();
        assert_eq!((mail.size, mail.is_cut), (40_000_000, true));
        assert_eq!(
            String::from_utf8(mail.bytes).unwrap(),
            "From: ana@customer.example\r\nSubject: Big  Bcc: eve@example.com\r\nMIME-Version: 1.0\r\n\
             Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\nIt's <big>\r\n"
        );
    }

    #[test]
    fn an_id_cannot_change_the_path() {
        assert_eq!(path_of("19a0f3").unwrap(), "/messages/19a0f3");
        for wrong in ["", "../drafts", "a/b", "a?b", "a b", "ä"] {
            assert!(path_of(wrong).is_err(), "{wrong}");
        }
    }
}
