//! The addresses of links, and links whose text names another host than the one to which they lead.

use url::{Host, Url};

/// The maximum length of an address that is shown, in characters. Longer ones are cut; addresses of newsletters, which
/// note who opens them, are.
const MAX_SHOWN_CHARS: usize = 200;

/// Endings of file names, which are not read as hosts.
const FILES: &[&str] = &[
    "pdf", "doc", "docx", "xls", "xlsx", "ppt", "pptx", "txt", "csv", "png", "jpg", "jpeg", "gif", "svg", "zip", "htm",
    "html", "js", "md", "py", "rs", "mp3", "mp4", "mov",
];

/// Returns the address of a link as it is shown beside its text; `None` if the text shows it, or it leads nowhere that a
/// reader of plain text could follow.
pub(super) fn shown_address(text: &str, href: &str) -> Option<String> {
    let url = Url::parse(href.trim()).ok()?;
    let address = match url.scheme() {
        "http" | "https" => {
            let is_bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
            let address = url.as_str();
            if is_bare { address.trim_end_matches('/') } else { address }.to_owned()
        }
        "mailto" | "tel" => url.path().to_owned(),
        _ => return None,
    };
    let is_shown = plain(text).contains(plain(&address).as_str());
    let cut = address.char_indices().nth(MAX_SHOWN_CHARS).map(|(end, _)| format!("{}…", &address[..end]));
    (!is_shown && !address.is_empty()).then(|| cut.unwrap_or(address))
}

/// Returns an address as it is compared: without what people leave out.
fn plain(address: &str) -> String {
    let lower = address.split_whitespace().collect::<String>().to_lowercase();
    let rest = ["https://", "http://"].into_iter().find_map(|scheme| lower.strip_prefix(scheme)).unwrap_or(&lower);
    without_www(rest).trim_end_matches('/').to_owned()
}

/// The hosts of a link that says one thing and leads elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Deception {
    /// The host that the text names.
    pub(super) shown: String,
    /// The host to which the link leads.
    pub(super) leads_to: String,
}

/// Returns the hosts if the text of a link names another host than the one to which the link leads. Neither of them is
/// a part of the other, as `example.com` is of `www.example.com`.
pub(super) fn deception(text: &str, href: &str) -> Option<Deception> {
    let leads_to = web_host(href.trim())?;
    let shown = shown_host(text)?;
    let (one, other) = (without_www(&shown), without_www(&leads_to));
    let is_same = one == other || one.ends_with(&format!(".{other}")) || other.ends_with(&format!(".{one}"));
    (!is_same).then_some(Deception { shown, leads_to })
}

/// Returns the host that a text names.
fn shown_host(text: &str) -> Option<String> {
    let mut words = text.split_whitespace().map(|word| {
        word.trim_matches(|char: char| {
            matches!(char, '<' | '>' | '(' | ')' | '[' | ']' | '"' | '\'' | '.' | ',' | ';' | '!')
        })
    });
    let is_single = text.split_whitespace().nth(1).is_none();
    words.find_map(|word| {
        let lower = word.to_lowercase();
        if lower.starts_with("http://") || lower.starts_with("https://") {
            web_host(word)
        } else if lower.starts_with("www.") || is_single && looks_like_host(&lower) {
            web_host(&format!("https://{word}"))
        } else {
            None
        }
    })
}

/// Returns true for `example.com` and `example.com/path`, but not for `report.pdf` and addresses of mailboxes.
fn looks_like_host(word: &str) -> bool {
    let host = word.split(['/', '?', '#', ':']).next().unwrap_or_default();
    let Some((name, ending)) = host.rsplit_once('.') else { return false };
    !word.contains('@')
        && !name.is_empty()
        && name
            .split('.')
            .all(|label| !label.is_empty() && label.chars().all(|char| char.is_alphanumeric() || char == '-'))
        && name.chars().any(char::is_alphabetic)
        && ending.chars().count() >= 2
        && ending.chars().all(char::is_alphabetic)
        && !FILES.contains(&ending)
}

/// Returns the host of an address on the web; names in other scripts as `xn--…`.
fn web_host(url: &str) -> Option<String> {
    let url = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    match url.host()? {
        Host::Domain(domain) => Some(domain.trim_end_matches('.').to_owned()),
        address => Some(address.to_string()),
    }
}

fn without_www(host: &str) -> &str {
    host.strip_prefix("www.").unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_where_the_text_does_not() {
        for (text, href, shown) in [
            ("Click here", "https://shop.example/a?b=c d", Some("https://shop.example/a?b=c%20d")),
            ("shop.example", "https://www.shop.example/", None),
            ("https://shop.example/a", "http://shop.example/a/", None),
            ("bank.example", "https://bank.example.evil.test/", Some("https://bank.example.evil.test")),
            ("bank.example", "https://b\u{430}nk.example", Some("https://xn--bnk-6cd.example")),
            ("write to us", "mailto:help@shop.example?subject=x", Some("help@shop.example")),
            ("help@shop.example", "mailto:Help@shop.example", None),
            ("call", "tel:+49301234", Some("+49301234")),
            ("here", "javascript:alert(1)", None),
            ("here", "#top", None),
        ] {
            assert_eq!(shown_address(text, href).as_deref(), shown, "{text} {href}");
        }
        let long = shown_address("here", &format!("https://news.example/{}", "x".repeat(500))).unwrap();
        assert_eq!(long.chars().count(), MAX_SHOWN_CHARS + 1);
    }

    #[test]
    fn a_link_that_leads_elsewhere_is_a_deception() {
        for (text, href, shown, leads_to) in [
            ("https://bank.example/login", "https://evil.example", "bank.example", "evil.example"),
            ("www.bank.example", "http://192.0.2.1/x", "www.bank.example", "192.0.2.1"),
            ("bank.example", "https://bank.example@evil.example/", "bank.example", "evil.example"),
            ("bank.example", "https://bank.example.evil.test/", "bank.example", "bank.example.evil.test"),
            ("Log in at https://bank.example now", "https://evil.example", "bank.example", "evil.example"),
            ("bank.example", "https://b\u{430}nk.example", "bank.example", "xn--bnk-6cd.example"),
        ] {
            let found = deception(text, href);
            assert_eq!(found, Some(Deception { shown: shown.into(), leads_to: leads_to.into() }), "{text} {href}");
        }
    }

    #[test]
    fn honest_links_are_none() {
        for (text, href) in [
            ("https://bank.example/login", "https://bank.example/other"),
            ("bank.example", "https://www.bank.example"),
            ("login.bank.example", "https://bank.example"),
            ("Click here", "https://evil.example"),
            ("report.pdf", "https://files.example/1"),
            ("ana@example.com", "mailto:ana@example.com"),
            ("v1.2.3", "https://example.com"),
            ("e.g. this", "https://example.com"),
            ("bank.example", "not a link"),
        ] {
            assert_eq!(deception(text, href), None, "{text} {href}");
        }
    }
}
