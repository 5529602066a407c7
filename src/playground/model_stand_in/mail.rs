//! The answers of the stand-in about mail: classes by words, the tools of the class, and drafts by templates.
//!
//! A question about mail asks for one answer in JSON; the fields of its schema say which question it is.

use countersign_core::clock::Timestamp;
use countersign_email::{keywords, rules::Class, template};
use countersign_mail::{Address, Mail, MailId, RawMail};
use serde_json::{Value, json};

/// The confidence of every answer: high enough for automatic answers to be tried.
const CONFIDENCE: f64 = 0.9;

/// Returns the answer to a question about mail: the name of the tool that takes it, and its arguments. `None` if the
/// request asks for no such answer.
pub(super) fn answer(tools: &Value, situation: &Value) -> Option<(String, Value)> {
    let tool = tools.as_array()?.last()?;
    let asks_for = |field: &str| tool["input_schema"]["properties"].get(field).is_some();
    let mail = mail(situation.get("mail")?);
    let answer = if asks_for("classification") {
        let (class, _, reasoning) = keywords::classify(&mail);
        json!({ "classification": class.as_str(), "confidence": CONFIDENCE, "reasoning": reasoning })
    } else if asks_for("days") {
        let tools = &situation["tools"];
        json!({ "tools": tools, "start": "", "days": 7, "reasoning": "These are the tools of the class." })
    } else if asks_for("reply") {
        let class = Class::parse(situation["class"].as_str().unwrap_or_default());
        let signature = situation["we_are"].as_str().and_then(Address::parse).and_then(|us| us.name);
        let draft = template::draft(&mail, class, &[], signature.as_deref().unwrap_or("The team"));
        json!({ "reply": draft, "confidence": CONFIDENCE })
    } else if asks_for("meaning") {
        json!({ "meaning": "none", "answer": "" })
    } else {
        return None;
    };
    // Gemini names no tool, as its answer is the text itself.
    Some((tool["name"].as_str().unwrap_or("answer").to_owned(), answer))
}

/// Returns the mail that a situation describes.
fn mail(described: &Value) -> Mail {
    let text = |field: &str| described[field].as_str().unwrap_or_default();
    let headers = format!("From: {}\r\nSubject: {}\r\n", text("from"), text("subject"));
    let bytes = format!("{headers}Content-Type: text/plain; charset=utf-8\r\n\r\n{}", text("text")).into_bytes();
    Mail::read(&RawMail {
        id: MailId::new("described"),
        thread: None,
        received_at: Timestamp(0),
        labels: Vec::new(),
        size: bytes.len() as u64,
        bytes,
        is_cut: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(fields: &[&str], more: Value) -> (String, Value) {
        let properties: serde_json::Map<_, _> = fields.iter().map(|field| ((*field).to_owned(), json!({}))).collect();
        let tools = json!([{ "name": "asked", "input_schema": { "properties": properties } }]);
        let mut situation = json!({
            "mail": { "from": "Dana <dana@example.org>", "subject": "Order 7", "text": "I want a refund." },
        });
        situation.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        answer(&tools, &situation).unwrap()
    }

    #[test]
    fn every_question_about_mail_is_answered() {
        let (tool, class) = asked(&["classification", "confidence", "reasoning"], json!({}));
        assert_eq!((tool.as_str(), &class["classification"]), ("asked", &json!("complaint")));
        let (_, tools) = asked(&["tools", "start", "days", "reasoning"], json!({ "tools": ["get_contact"] }));
        assert_eq!(tools["tools"], json!(["get_contact"]));
        let (_, draft) = asked(&["reply", "confidence"], json!({ "class": "complaint" }));
        let draft = draft["reply"].as_str().unwrap();
        assert!(draft.starts_with("Hello Dana,\n\nI'm sorry about the trouble you describe."), "{draft}");
        assert_eq!(asked(&["meaning", "answer"], json!({})).1["meaning"], "none");
    }

    #[test]
    fn other_requests_are_not_about_mail() {
        assert_eq!(answer(&json!([{ "name": "analyze_user_request" }]), &json!({ "mail": {} })), None);
        assert_eq!(answer(&json!([]), &json!({ "mail": {} })), None);
        assert_eq!(answer(&json!([{ "name": "a" }]), &json!({})), None);
    }
}
