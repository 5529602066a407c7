//! The judgement of the receiving server about the sender, in `Authentication-Results` (RFC 8601).
//!
//! Anyone can put such a header into a mail. A server adds its own at the top, next to the `Received` headers in which
//! it names itself, so only the topmost one counts, and only if it has the name of a server that is named there.

use super::headers::{Headers, unfolded};
use crate::mail::Authentication;

/// Returns the trusted results; all of them are empty if there is no trusted header.
pub(super) fn results(headers: &Headers<'_>) -> Authentication {
    trusted(headers).map(|value| read(&value)).unwrap_or_default()
}

/// Returns the checks that suggest a forged sender, such as `DMARC fail`, if there are any.
pub(super) fn failure(results: &Authentication) -> Option<String> {
    let is =
        |result: &Option<String>, expected: &[&str]| result.as_deref().is_some_and(|result| expected.contains(&result));
    if is(&results.dmarc, &["pass", "bestguesspass"]) {
        return None;
    }
    let has_failed = [
        ("SPF", &results.spf, is(&results.spf, &["fail", "softfail"])),
        ("DKIM", &results.dkim, is(&results.dkim, &["fail"])),
        ("DMARC", &results.dmarc, is(&results.dmarc, &["fail"])),
    ];
    let passes = is(&results.spf, &["pass"]) || is(&results.dkim, &["pass"]);
    let fails_dmarc = is(&results.dmarc, &["fail"]);
    let failed: Vec<String> = has_failed
        .into_iter()
        .filter(|(_, _, has_failed)| *has_failed)
        .map(|(name, result, _)| format!("{name} {}", result.as_deref().unwrap_or_default()))
        .collect();
    (!failed.is_empty() && (fails_dmarc || !passes)).then(|| failed.join(", "))
}

/// Returns the value of the topmost header if a receiving server wrote it.
fn trusted(headers: &Headers<'_>) -> Option<String> {
    let mut servers = Vec::new();
    let mut found: Option<String> = None;
    for (name, value) in headers.iter() {
        if name.eq_ignore_ascii_case(b"Received") {
            servers.extend(receiving_server(&unfolded(value)));
            if found.is_some() {
                break;
            }
        } else if found.is_none() && name.eq_ignore_ascii_case(b"Authentication-Results") {
            found = Some(without_comments(&unfolded(value)));
        }
    }
    let value = found?;
    let id = value.split([';', ' ']).next().unwrap_or_default().to_ascii_lowercase();
    let is_trusted = !id.is_empty() && servers.iter().any(|server| is_same_organization(server, &id));
    is_trusted.then_some(value)
}

/// Returns the host after `by` in a `Received` header.
fn receiving_server(received: &str) -> Option<String> {
    let received = without_comments(received).to_ascii_lowercase();
    let mut words = received.split_whitespace();
    words.find(|word| *word == "by")?;
    words.next().map(|host| host.trim_end_matches(';').to_owned())
}

/// Returns true if two hosts are equal, or end in the same domain.
fn is_same_organization(one: &str, other: &str) -> bool {
    let domain = |host: &str| {
        let labels: Vec<&str> = host.trim_end_matches('.').split('.').collect();
        labels[labels.len().saturating_sub(2)..].join(".")
    };
    one == other || one.contains('.') && domain(one) == domain(other)
}

/// Reads the results: `method=result`, separated by semicolons.
fn read(value: &str) -> Authentication {
    let mut results = Authentication::default();
    for part in value.split(';').skip(1).take(50) {
        let Some((method, result)) = part.split_whitespace().next().and_then(|word| word.split_once('=')) else {
            continue;
        };
        let result: String = result.chars().filter(char::is_ascii_alphanumeric).take(20).collect();
        let place = match method.split('/').next().unwrap_or_default().to_ascii_lowercase().as_str() {
            "spf" => &mut results.spf,
            "dkim" => &mut results.dkim,
            "dmarc" => &mut results.dmarc,
            _ => continue,
        };
        // A mail may have several signatures, of which one is enough.
        if place.is_none() || result.eq_ignore_ascii_case("pass") {
            *place = Some(result.to_ascii_lowercase());
        }
    }
    results
}

/// Removes comments, which are in parentheses.
fn without_comments(value: &str) -> String {
    let mut depth = 0_usize;
    let keep = |char: &char| match char {
        '(' => {
            depth += 1;
            false
        }
        ')' => {
            let was_open = depth > 0;
            depth = depth.saturating_sub(1);
            !was_open
        }
        _ => depth == 0,
    };
    value.chars().filter(keep).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results_of(headers: &str) -> Authentication {
        let text = format!("{headers}\r\n\r\n");
        results(&Headers::split(text.as_bytes()).0)
    }

    fn three(spf: &str, dkim: &str, dmarc: &str) -> Authentication {
        let some = |result: &str| (!result.is_empty()).then(|| result.to_owned());
        Authentication { spf: some(spf), dkim: some(dkim), dmarc: some(dmarc) }
    }

    const GMAIL: &str = "Delivered-To: us@example.com\r\n\
        Received: by 2002:a05:6a10:1 with SMTP id x; Mon, 1 Jan 2024 00:00:00 -0800 (PST)\r\n\
        Received: from mail.example.net (mail.example.net. [192.0.2.1])\r\n        by mx.google.com with ESMTPS id y\r\n\
        Authentication-Results: mx.google.com;\r\n       dkim=pass (a; b) header.i=@example.net;\r\n       spf=softfail (google.com: x) smtp.mailfrom=a@example.net;\r\n       dmarc=pass (p=NONE) header.from=example.net";

    #[test]
    fn the_results_of_the_receiving_server_are_read() {
        assert_eq!(results_of(GMAIL), three("softfail", "pass", "pass"));
    }

    #[test]
    fn only_the_topmost_results_count() {
        let forged = format!("{GMAIL}\r\nAuthentication-Results: mx.google.com; dmarc=fail; spf=pass");
        assert_eq!(results_of(&forged), three("softfail", "pass", "pass"));
    }

    #[test]
    fn results_by_a_stranger_are_ignored() {
        let forged = "Received: from evil.example by mail.example.com with SMTP\r\n\
            Authentication-Results: mx.evil.test; spf=pass; dkim=pass; dmarc=pass";
        assert_eq!(results_of(forged), Authentication::default());
        assert_eq!(results_of("Authentication-Results: spf=pass; dkim=pass"), Authentication::default());
        let milter = "Authentication-Results: mail.example.com; spf=fail\r\nReceived: from x by mail.example.com";
        assert_eq!(results_of(milter), three("fail", "", ""), "a filter puts its header above");
    }

    #[test]
    fn a_failure_is_named_unless_another_check_passes() {
        assert_eq!(failure(&three("fail", "none", "")), Some("SPF fail".to_owned()));
        assert_eq!(failure(&three("fail", "fail", "fail")), Some("SPF fail, DKIM fail, DMARC fail".to_owned()));
        assert_eq!(failure(&three("pass", "pass", "fail")), Some("DMARC fail".to_owned()));
        assert_eq!(failure(&three("fail", "pass", "")), None);
        assert_eq!(failure(&three("softfail", "fail", "pass")), None);
        assert_eq!(failure(&three("", "", "")), None);
    }
}
