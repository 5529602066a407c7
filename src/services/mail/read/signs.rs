//! The signs that a mail was sent by a program.

use super::headers::Headers;
use crate::{address::Address, mail::Automatic};

/// Headers of vacation responders from before `Auto-Submitted`.
const AUTO_REPLIES: &[&str] = &["X-Autoreply", "X-Autorespond", "X-Auto-Reply", "X-Autoresponse"];
/// Local parts of addresses that nobody reads, without separators.
const NO_REPLY: &[&str] = &["noreply", "donotreply", "dontreply", "noresponse", "noanswer", "unattended"];
/// Local parts of mail systems.
const SYSTEMS: &[&str] = &["mailerdaemon", "postmaster", "bounce", "bounces"];

/// Returns the first sign that a mail was sent by a program.
pub(super) fn automatic(headers: &Headers<'_>, from: Option<&Address>) -> Option<Automatic> {
    let local = from.map(local_part).unwrap_or_default();
    if is_auto_submitted(headers) {
        Some(Automatic::AutoSubmitted)
    } else if is_report(headers) || SYSTEMS.contains(&local.as_str()) {
        Some(Automatic::NullReturnPath)
    } else if headers.iter().any(|(name, _)| name.len() > 5 && name[..5].eq_ignore_ascii_case(b"List-")) {
        Some(Automatic::MailingList)
    } else if is_bulk(headers) {
        Some(Automatic::Precedence)
    } else if asks_for_none(headers) {
        Some(Automatic::AsksForNone)
    } else if NO_REPLY.iter().any(|start| local.starts_with(start) || local.ends_with(start)) {
        Some(Automatic::NoReply)
    } else {
        None
    }
}

/// Returns the address to which the mails of a mailing list go, if the mail came through one.
pub(super) fn list(headers: &Headers<'_>) -> Option<String> {
    let post = headers.raw("List-Post").unwrap_or_default();
    let post = post.split_once("mailto:").map(|(_, rest)| rest.split(['>', '?', ',']).next().unwrap_or_default());
    // The id of a list is its address with a point in place of the `@`.
    let id = headers.raw("List-Id").unwrap_or_default();
    let id = id.rsplit_once('<').map_or(id.as_str(), |(_, id)| id).trim_end_matches('>').replacen('.', "@", 1);
    [post.unwrap_or_default(), &id].into_iter().find_map(Address::parse).map(|list| list.address)
}

fn is_auto_submitted(headers: &Headers<'_>) -> bool {
    let keyword = headers.raw("Auto-Submitted").map(|value| first_token(&value));
    keyword.is_some_and(|keyword| keyword != "no")
        || AUTO_REPLIES.iter().any(|name| headers.raw(name).is_some_and(|value| first_token(&value) != "no"))
}

fn asks_for_none(headers: &Headers<'_>) -> bool {
    let suppressed = headers.raw("X-Auto-Response-Suppress").unwrap_or_default().to_ascii_lowercase();
    suppressed.split(',').any(|kind| matches!(kind.trim(), "all" | "oof" | "autoreply"))
}

/// Reports about delivery have an empty return path, so that they are never answered.
fn is_report(headers: &Headers<'_>) -> bool {
    let content_type = headers.content_type("Content-Type");
    let is_report = content_type.is_some_and(|found| found.ctype() == "multipart" && found.subtype() == Some("report"));
    is_report || headers.raw("Return-Path").is_some_and(|path| path.replace(' ', "") == "<>")
}

fn is_bulk(headers: &Headers<'_>) -> bool {
    let precedence = headers.raw("Precedence").map(|value| first_token(&value)).unwrap_or_default();
    matches!(precedence.as_str(), "bulk" | "list" | "junk" | "auto_reply")
}

/// Returns the first word of a value, in lower case.
fn first_token(value: &str) -> String {
    value.split([';', ' ', '(']).next().unwrap_or_default().to_ascii_lowercase()
}

/// Returns the part before the `@` and any `+`, without separators.
fn local_part(address: &Address) -> String {
    let local = address.address.split(['@', '+']).next().unwrap_or_default();
    local.chars().filter(|char| !matches!(char, '-' | '_' | '.')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sign(headers: &str, from: &str) -> Option<Automatic> {
        let text = format!("{headers}\r\n\r\n");
        automatic(&Headers::split(text.as_bytes()).0, Address::parse(from).as_ref())
    }

    #[test]
    fn programs_are_recognized() {
        let ana = "ana@example.com";
        for (headers, from, expected) in [
            ("Auto-Submitted: auto-replied", ana, Automatic::AutoSubmitted),
            ("Auto-Submitted: Auto-Generated; x=y", ana, Automatic::AutoSubmitted),
            ("X-Auto-Response-Suppress: OOF, DR", ana, Automatic::AsksForNone),
            ("X-Autoreply: yes", ana, Automatic::AutoSubmitted),
            ("Precedence: bulk", ana, Automatic::Precedence),
            ("List-Unsubscribe: <mailto:x@example.com>", ana, Automatic::MailingList),
            ("Return-Path: <>", ana, Automatic::NullReturnPath),
            ("Content-Type: multipart/report; report-type=delivery-status; boundary=b", ana, Automatic::NullReturnPath),
            ("X-Other: 1", "Mailer-Daemon@example.com", Automatic::NullReturnPath),
            ("X-Other: 1", "no-reply@example.com", Automatic::NoReply),
            ("X-Other: 1", "accounts-noreply+1@example.com", Automatic::NoReply),
            ("X-Other: 1", "do_not_reply@example.com", Automatic::NoReply),
        ] {
            assert_eq!(sign(headers, from), Some(expected), "{headers} {from}");
        }
    }

    #[test]
    fn the_address_of_a_list_is_known() {
        for (text, address) in [
            ("List-Post: <mailto:Team@lists.example>", Some("team@lists.example")),
            ("List-Id: Our team <team.lists.example>", Some("team@lists.example")),
            ("List-Post: NO\r\nList-Id: <news.shop.example>", Some("news@shop.example")),
            ("List-Unsubscribe: <https://shop.example>", None),
        ] {
            let text = format!("{text}\r\n\r\n");
            assert_eq!(list(&Headers::split(text.as_bytes()).0).as_deref(), address, "{text}");
        }
    }

    #[test]
    fn people_are_not() {
        for (headers, from) in [
            ("Auto-Submitted: no", "ana@example.com"),
            ("Precedence: normal", "ana@example.com"),
            ("Return-Path: <ana@example.com>", "ana.replyson@example.com"),
        ] {
            assert_eq!(sign(headers, from), None, "{headers} {from}");
        }
    }
}
