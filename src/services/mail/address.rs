//! Addresses with display names.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The maximum length of an address, in characters.
pub(crate) const MAX_ADDRESS_CHARS: usize = 320;
/// The maximum length of a display name, in characters. Longer names are cut.
const MAX_NAME_CHARS: usize = 320;

/// An address with its display name. Two addresses belong to the same mailbox if `address` is equal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    /// The display name, on one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The address alone, in lower case, such as `ana@example.com`.
    pub address: String,
}

impl Address {
    /// Reads `ana@example.com`, `<ana@example.com>`, `Ana <ana@example.com>` or `"Ana" <ana@example.com>`. Returns
    /// `None` if there is no usable address.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let Some(inside) = text.strip_suffix('>') else { return Self::new(None, text) };
        let (name, address) = inside.rsplit_once('<')?;
        Self::new(Some(&unquoted(name.trim())), address)
    }

    /// Creates an address from its parts. Returns `None` if the address is not usable: it needs a local part and a
    /// domain, may not contain spaces, control characters, brackets or commas, and has at most 320 characters.
    pub fn new(name: Option<&str>, address: &str) -> Option<Self> {
        let address = address.trim().to_lowercase();
        let (local, domain) = address.rsplit_once('@')?;
        let is_usable = !local.is_empty()
            && is_domain(domain)
            && address.chars().count() <= MAX_ADDRESS_CHARS
            && !address.chars().any(is_forbidden);
        let name = name.map(one_line).filter(|name| !name.is_empty() && !name.eq_ignore_ascii_case(&address));
        is_usable.then_some(Self { name, address })
    }

    /// Returns the part after the `@`.
    pub fn domain(&self) -> &str {
        self.address.rsplit_once('@').map_or("", |(_, domain)| domain)
    }

    /// Returns true if both addresses belong to the same mailbox.
    pub fn is_same_mailbox(&self, other: &Self) -> bool {
        self.address == other.address
    }
}

impl fmt::Display for Address {
    /// Writes `Name <a@b>`, or the address alone if it has no name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name} <{}>", self.address),
            None => f.write_str(&self.address),
        }
    }
}

/// Returns true for characters that no address contains unquoted, or that could change a header or a command.
fn is_forbidden(char: char) -> bool {
    char.is_whitespace()
        || char.is_control()
        || is_invisible(char)
        || matches!(char, '<' | '>' | '(' | ')' | '[' | ']' | ',' | ';' | ':' | '"' | '\\')
}

fn is_domain(domain: &str) -> bool {
    !domain.is_empty() && domain.split('.').all(|label| !label.is_empty() && !label.contains('@'))
}

/// Returns true for characters that take no space on a screen, or change the direction of the text around them.
pub(crate) fn is_invisible(char: char) -> bool {
    matches!(char,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Puts a name on one line, like [`one_line_of`].
pub(crate) fn one_line(text: &str) -> String {
    one_line_of(text, MAX_NAME_CHARS)
}

/// Puts a text of a header on one line of at most `most` characters: without invisible characters, and with single
/// spaces.
pub(crate) fn one_line_of(text: &str, most: usize) -> String {
    let visible: String = text
        .chars()
        .filter(|char| !is_invisible(*char))
        .map(|char| if char.is_control() { ' ' } else { char })
        .collect();
    let line: String = visible.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(most).collect();
    line.trim_end().to_owned()
}

/// Removes the quotes around a display name, and the backslashes in them.
fn unquoted(name: &str) -> String {
    let Some(inside) = name.strip_prefix('"').and_then(|name| name.strip_suffix('"')) else { return name.to_owned() };
    let mut plain = String::with_capacity(inside.len());
    let mut chars = inside.chars();
    while let Some(char) = chars.next() {
        plain.extend(if char == '\\' { chars.next() } else { Some(char) });
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_with_and_without_a_name() {
        let parsed = |text: &str| Address::parse(text).map(|address| (address.name, address.address));
        let ana = |name: Option<&str>| Some((name.map(str::to_owned), "ana@example.com".to_owned()));
        assert_eq!(parsed("ana@example.com"), ana(None));
        assert_eq!(parsed(" <Ana@Example.COM> "), ana(None));
        assert_eq!(parsed("Ana Bo <ana@example.com>"), ana(Some("Ana Bo")));
        assert_eq!(parsed("\"Bo, \\\"Ana\\\"\" <ana@example.com>"), ana(Some("Bo, \"Ana\"")));
        assert_eq!(parsed("Ana <at home> <ana@example.com>"), ana(Some("Ana <at home>")));
        assert_eq!(parsed("ana@example.com <ana@example.com>"), ana(None), "a name that repeats the address");
    }

    #[test]
    fn an_address_that_could_change_a_header_or_command_is_refused() {
        for wrong in [
            "",
            "ana",
            "@example.com",
            "ana@",
            "ana@example..com",
            "ana@example.com\r\nBcc: eve@example.com",
            "ana bo@example.com",
            "ana@exa\u{200b}mple.com",
            "ana@example.com,eve@example.com",
            "Ana <ana@example.com> trailing",
        ] {
            assert_eq!(Address::parse(wrong), None, "{wrong:?}");
        }
        assert_eq!(Address::parse(&format!("{}@example.com", "a".repeat(400))), None);
    }

    #[test]
    fn a_display_name_stays_on_one_line() {
        let address = Address::new(Some("Ana\r\nBcc: eve@example.com\u{202e}"), "ana@example.com");
        assert_eq!(
            address.map(|address| address.to_string()),
            Some("Ana Bcc: eve@example.com <ana@example.com>".into())
        );
    }

    #[test]
    fn addresses_are_compared_without_their_names() {
        let ana = Address::parse("Ana <ana@example.com>").expect("an address");
        let other = Address::parse("ANA@example.com").expect("an address");
        assert!(ana.is_same_mailbox(&other));
        assert_eq!(ana.domain(), "example.com");
    }
}
