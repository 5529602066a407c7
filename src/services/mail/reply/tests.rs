//! Answers are written so that every mail program reads the same text back, in the same conversation.

use mail_parser::MessageParser;
use proptest::prelude::*;

use super::*;
use crate::mail::{MailId, RawMail, Warning};

const AT: Timestamp = Timestamp(1_700_000_000_000);

fn mail(headers: &str) -> Mail {
    let bytes = format!("{headers}\r\n\r\nHello?\r\n").into_bytes();
    Mail::read(&RawMail {
        id: MailId::new("1"),
        thread: Some(MailThreadId::new("t")),
        received_at: AT,
        labels: Vec::new(),
        size: bytes.len() as u64,
        bytes,
        is_cut: false,
    })
}

fn us() -> Address {
    Address::parse("Support Team <help@us.example>").expect("an address")
}

fn reply(mail: &Mail, text: &str) -> Outgoing {
    Outgoing::reply(mail, us(), text.to_owned(), "key-1".to_owned(), AT, false).expect("a reply")
}

/// Reads a message back with our own reader.
fn read_back(out: &Outgoing) -> Mail {
    let bytes = out.to_mime();
    let raw = RawMail {
        id: MailId::new("2"),
        thread: None,
        received_at: AT,
        labels: Vec::new(),
        size: bytes.len() as u64,
        bytes,
        is_cut: false,
    };
    Mail::read(&raw)
}

#[test]
fn an_answer_stays_in_its_conversation() {
    let asked = mail(
        "From: Ana <ana@example.com>\r\nSubject: Opening hours\r\nMessage-ID: <2@example.com>\r\nReferences: <0@x> <1@x>",
    );
    let out = reply(&asked, "We open at 9.");
    assert_eq!(out.subject, "Re: Opening hours");
    assert_eq!(out.in_reply_to.as_deref(), Some("2@example.com"));
    assert_eq!(out.references, ["0@x", "1@x", "2@example.com"]);
    assert_eq!(out.thread, Some(MailThreadId::new("t")));
    let written = String::from_utf8(out.to_mime()).expect("text");
    for header in [
        "From: \"Support Team\" <help@us.example>\r\n",
        "To: \"Ana\" <ana@example.com>\r\n",
        "Subject: Re: Opening hours\r\n",
        "In-Reply-To: <2@example.com>\r\n",
        "References: <0@x> <1@x> <2@example.com>\r\n",
        "X-Countersign-Key: key-1\r\n",
        "Date: Tue, 14 Nov 2023 22:13:20 +0000\r\n",
    ] {
        assert!(written.contains(header), "{header} in {written}");
    }
    assert!(!written.contains("Auto-Submitted"));
}

#[test]
fn there_is_only_one_re() {
    for (original, expected) in [
        ("Re: Hours", "Re: Hours"),
        ("RE:Hours", "RE:Hours"),
        ("Re: Re: Hours", "Re: Hours"),
        ("Regarding hours", "Re: Regarding hours"),
        ("", "Re:"),
    ] {
        assert_eq!(reply_subject(original), expected);
    }
    assert_eq!(reply_subject(&"é".repeat(2_000)).chars().count(), MAX_SUBJECT_CHARS);
}

#[test]
fn the_message_id_is_chosen_once() {
    let asked = mail("From: ana@example.com");
    let (one, other) = (reply(&asked, "a"), reply(&asked, "a"));
    assert_eq!(one.message_id, other.message_id);
    assert!(one.message_id.ends_with("@us.example"));
    let changed = Outgoing { key: "key-2".to_owned(), ..one.clone() };
    assert_ne!(message_id(&changed.key, &changed.from), one.message_id);
    assert_eq!(read_back(&one).message_id.as_deref(), Some(one.message_id.as_str()));
}

#[test]
fn an_automatic_answer_says_so() {
    let out =
        Outgoing::reply(&mail("From: ana@example.com"), us(), "Hi".into(), "k".into(), AT, true).expect("a reply");
    assert!(String::from_utf8(out.to_mime()).expect("text").contains("\r\nAuto-Submitted: auto-replied\r\n"));
}

#[test]
fn some_mails_are_not_answered() {
    let refusal = |headers: &str, text: &str, is_automatic| {
        Outgoing::reply(&mail(headers), us(), text.to_owned(), "k".to_owned(), AT, is_automatic).err()
    };
    assert_eq!(refusal("Subject: x", "Hi", false), Some(NoReply::NoSender));
    assert_eq!(refusal("From: HELP@us.example", "Hi", false), Some(NoReply::FromUs));
    assert_eq!(refusal("From: ana@example.com", " \n", false), Some(NoReply::Empty));
    let bulk = "From: ana@example.com\r\nPrecedence: bulk";
    assert_eq!(refusal(bulk, "Hi", true), Some(NoReply::Automatic(Automatic::Precedence)));
    assert_eq!(refusal(bulk, "Hi", false), None, "a person may answer");
}

#[test]
fn an_answer_goes_to_the_sender_even_if_replies_are_wanted_elsewhere() {
    let asked = mail("From: ana@example.com\r\nReply-To: eve@example.net");
    assert_eq!(reply(&asked, "Hi").to.address, "ana@example.com");
    assert!(matches!(asked.warnings.as_slice(), [Warning::ReplyToElsewhere(_)]));
}

#[test]
fn no_field_can_add_a_header() {
    let evil = "x\r\nBcc: eve@example.net";
    let out = Outgoing {
        from: Address { name: Some(evil.into()), address: "help@us.example".into() },
        to: Address { name: Some(evil.into()), address: format!("ana@example.com{evil}") },
        subject: evil.into(),
        in_reply_to: Some(evil.into()),
        references: vec![evil.into(), "ok@x".into()],
        thread: None,
        text: format!(".\r\n{evil}"),
        key: evil.into(),
        message_id: evil.into(),
        at: AT,
        is_automatic: false,
    };
    let bytes = out.to_mime();
    let parsed = MessageParser::default().parse(&bytes).expect("a message");
    assert!(parsed.headers().iter().all(|header| header.name() != "Bcc"), "{}", String::from_utf8_lossy(&bytes));
    assert_eq!(parsed.body_text(0).as_deref(), Some(".\r\nx\r\nBcc: eve@example.net\r\n"));
}

#[test]
fn text_of_every_kind_comes_back() {
    for text in [
        "plain",
        "ends with a line\n",
        "ends with two\n\n",
        "\n\nstarts with lines",
        "trailing spaces  \nand tabs\t\nend ",
        "Grüße 😀 日本語",
        "From here\n.\n..\n--\n=20 =\n",
        "control \u{0} characters \u{1b}[31m",
        "=?utf-8?q?no=20word?=",
    ] {
        let out = reply(&mail("From: ana@example.com"), text);
        assert_comes_back(&out);
    }
    let long = format!("{}\n{}", "x".repeat(5_000), "ü ".repeat(1_000));
    assert_comes_back(&reply(&mail("From: ana@example.com"), &long));
}

/// Checks that our reader, and the library's, read the text, the subject and the ids that were written.
fn assert_comes_back(out: &Outgoing) {
    let bytes = out.to_mime();
    let expected = out.text.replace("\r\n", "\n").replace('\r', "\n");
    let parsed = MessageParser::default().parse(&bytes).expect("a message");
    let text = parsed.body_text(0).unwrap_or_default().replace("\r\n", "\n");
    let text = if text == expected { text } else { text.strip_suffix('\n').unwrap_or(&text).to_owned() };
    assert_eq!(text, expected, "{}", String::from_utf8_lossy(&bytes));
    for line in bytes.split(|byte| *byte == b'\n') {
        assert!(line.len() <= 998, "a line of {} bytes", line.len());
    }
    let read = read_back(out);
    let visible = |text: &str| {
        let kept = text.chars().filter(|char| !crate::address::is_invisible(*char));
        kept.filter(|char| !char.is_control() || matches!(char, '\n' | '\t')).collect::<String>()
    };
    if !expected.contains(['\u{2028}', '\u{2029}', '\u{85}', '\u{b}', '\u{c}']) {
        assert_eq!(read.text, visible(&expected));
    }
    assert_eq!(read.subject, out.subject);
    assert_eq!(read.references, out.references);
    assert_eq!(read.from.as_ref().map(|from| &from.address), Some(&out.from.address));
    assert_eq!(read.to.iter().map(|to| &to.address).collect::<Vec<_>>(), [&out.to.address]);
}

proptest! {
    #[test]
    fn any_text_comes_back(text in any::<String>().prop_filter("not empty", |text| !text.trim().is_empty())) {
        assert_comes_back(&reply(&mail("From: ana@example.com\r\nMessage-ID: <a@x>"), &text));
    }

    #[test]
    fn lines_of_any_length_come_back(lines in prop::collection::vec("[ -~\t\u{e4}\u{1f600}]{0,200}", 1..20)) {
        let text = format!("x{}", lines.join("\n"));
        assert_comes_back(&reply(&mail("From: ana@example.com"), &text));
    }

    #[test]
    fn any_subject_comes_back(subject in any::<String>()) {
        let mut asked = mail("From: ana@example.com");
        asked.subject = one_line_of(&subject, MAX_SUBJECT_CHARS);
        assert_comes_back(&reply(&asked, "Hi"));
    }

    #[test]
    fn any_name_is_harmless(name in any::<String>()) {
        let mut asked = mail("From: ana@example.com");
        asked.from = Address::new(Some(&name), "ana@example.com");
        assert_comes_back(&reply(&asked, "Hi"));
    }

    #[test]
    fn any_conversation_is_continued(
        ids in prop::collection::vec("[a-z0-9.!#$%&'*+/=?^_`{|}~-]{1,80}@[a-z0-9.-]{1,40}", 1..60),
    ) {
        let headers = format!("From: ana@example.com\r\nReferences: <{}>\r\nMessage-ID: <last@x>", ids.join(">\r\n <"));
        let out = reply(&mail(&headers), "Hi");
        prop_assert_eq!(out.references.first(), ids.first());
        prop_assert_eq!(out.references.last().map(String::as_str), Some("last@x"));
        prop_assert!(out.references.len() <= MAX_REFERENCES);
        assert_comes_back(&out);
    }
}
