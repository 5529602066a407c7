//! Messages as bytes: their headers and their text.

use mail_parser::MessageParser;
use serde_json::{Value, json};

/// Returns the length of the header section, with the empty line after it.
fn head_end(bytes: &[u8]) -> usize {
    let mut at = 0;
    while at < bytes.len() {
        let end = bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| at + end + 1);
        if matches!(&bytes[at..end], b"\n" | b"\r\n") {
            return end;
        }
        at = end;
    }
    bytes.len()
}

/// Returns the headers in their order, unfolded, as they are encoded in the message.
pub(crate) fn headers(bytes: &[u8]) -> Vec<(String, String)> {
    let head = String::from_utf8_lossy(&bytes[..head_end(bytes)]);
    let mut headers: Vec<(String, String)> = Vec::new();
    for line in head.lines().filter(|line| !line.is_empty()) {
        match (headers.last_mut(), line.starts_with([' ', '\t'])) {
            (Some((_, value)), true) => {
                value.push(' ');
                value.push_str(line.trim());
            }
            _ => {
                if let Some((name, value)) = line.split_once(':') {
                    headers.push((name.trim().to_owned(), value.trim().to_owned()));
                }
            }
        }
    }
    headers
}

/// Returns the first header with this name, in any case.
pub(crate) fn header(bytes: &[u8], name: &str) -> Option<String> {
    headers(bytes).into_iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

/// Returns the message with other values of one header. Without a value, the header is removed.
pub(crate) fn with_header(bytes: &[u8], name: &str, value: Option<&str>) -> Vec<u8> {
    let (head, rest) = bytes.split_at(head_end(bytes));
    let mut changed = Vec::with_capacity(bytes.len() + 80);
    if let Some(value) = value {
        changed.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    let mut is_dropped = false;
    for line in head.split_inclusive(|byte| *byte == b'\n') {
        if !line.starts_with(b" ") && !line.starts_with(b"\t") {
            let own = line.split(|byte| *byte == b':').next().unwrap_or_default();
            is_dropped = own.trim_ascii().eq_ignore_ascii_case(name.as_bytes());
        }
        if !is_dropped {
            changed.extend_from_slice(line);
        }
    }
    changed.extend_from_slice(rest);
    changed
}

/// Returns the ids in a header such as `References`, without angle brackets.
pub(crate) fn ids(value: Option<&str>) -> Vec<String> {
    let words = value.unwrap_or_default().split_whitespace();
    words.map(|word| word.trim_matches(['<', '>', ',']).to_owned()).filter(|id| !id.is_empty()).collect()
}

/// Returns the decoded subject.
pub(crate) fn subject(bytes: &[u8]) -> String {
    let parsed = MessageParser::default().parse_headers(bytes);
    parsed.and_then(|message| message.subject().map(str::to_owned)).unwrap_or_default()
}

/// Returns the decoded subject without `Re:`, by which replies belong to a conversation.
pub(crate) fn topic(bytes: &[u8]) -> String {
    let subject = subject(bytes);
    let mut topic = subject.trim();
    while let Some(rest) = topic.get(..3).filter(|prefix| prefix.eq_ignore_ascii_case("re:")).map(|_| &topic[3..]) {
        topic = rest.trim_start();
    }
    topic.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the decoded text, with simple line ends.
pub(crate) fn text(bytes: &[u8]) -> String {
    let parsed = MessageParser::default().parse(bytes);
    let text = parsed.as_ref().and_then(|message| message.body_text(0)).unwrap_or_default();
    text.replace("\r\n", "\n")
}

/// Returns the first 200 characters of the text, as shown in lists.
pub(crate) fn snippet(bytes: &[u8]) -> String {
    let words: Vec<String> = text(bytes).split_whitespace().take(60).map(str::to_owned).collect();
    let plain: String = words.join(" ").chars().take(200).collect();
    plain.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('\'', "&#39;").replace('"', "&quot;")
}

/// Returns the addresses in the headers `To`, `Cc` and `Bcc`.
pub(crate) fn recipients(bytes: &[u8]) -> Vec<String> {
    let Some(message) = MessageParser::default().parse_headers(bytes) else { return Vec::new() };
    let lists = [message.to(), message.cc(), message.bcc()];
    let all = lists.into_iter().flatten().flat_map(|list| list.iter());
    all.filter_map(|one| one.address()).map(str::to_lowercase).filter(|address| address.contains('@')).collect()
}

/// Returns the form of the headers in an answer.
pub(crate) fn headers_json(headers: &[(String, String)]) -> Value {
    headers.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAIL: &[u8] = b"From: Ana <ana@customer.example>\r\nTo: support@sandbox.example,\r\n Bo <bo@b.example>\r\n\
        Subject: Re: RE: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\nReferences: <a@x>\r\n\t<b@x>\r\n\r\nHello\r\n<b>\r\n";

    #[test]
    fn headers_are_unfolded_and_decoded_where_it_matters() {
        assert_eq!(header(MAIL, "references").as_deref(), Some("<a@x> <b@x>"));
        assert_eq!(ids(header(MAIL, "References").as_deref()), ["a@x", "b@x"]);
        assert_eq!(topic(MAIL), "Grüße");
        assert_eq!(recipients(MAIL), ["support@sandbox.example", "bo@b.example"]);
        assert_eq!(snippet(MAIL), "Hello &lt;b&gt;");
    }

    #[test]
    fn a_header_is_replaced_with_its_folded_lines() {
        let changed = with_header(MAIL, "references", Some("<c@x>"));
        assert_eq!(header(&changed, "References").as_deref(), Some("<c@x>"));
        assert_eq!(headers(&changed).len(), 4);
        assert_eq!(text(&changed), text(MAIL));
        assert_eq!(header(&with_header(MAIL, "To", None), "To"), None);
    }
}
