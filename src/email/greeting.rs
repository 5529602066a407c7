//! The first line of a reply from a template: `Hello Eve Müller,`.

use countersign_mail::Address;

use super::card::name_of;

/// Words after a comma that do not belong to a person's name: they are left out.
const AFTER_A_NAME: &[&str] = &["phd", "md", "dds", "esq", "jr", "sr", "ii", "iii", "mba", "msc", "ma", "ba"];

/// Words that show that a name is an organization's or a program's.
const NOT_A_PERSON: &[&str] = &[
    "inc",
    "llc",
    "ltd",
    "gmbh",
    "ag",
    "corp",
    "co",
    "team",
    "support",
    "info",
    "sales",
    "office",
    "noreply",
    "no-reply",
    "newsletter",
    "via",
];

/// Titles that stand before a name.
const TITLES: &[&str] = &["dr", "prof", "mr", "mrs", "ms", "mx"];

/// Returns the greeting of the sender of a mail, without a name unless the display name is a person's.
pub(super) fn greeting(sender: Option<&Address>) -> String {
    match person_of(sender) {
        Some(name) => format!("Hello {name},"),
        None => "Hello,".to_owned(),
    }
}

/// Returns the name of the sender; `None` if the display name may not be a person's.
pub(super) fn person_of(sender: Option<&Address>) -> Option<String> {
    sender.filter(|sender| sender.name.is_some()).and_then(|sender| person(&name_of(sender)))
}

/// Returns the name of a person in the order in which it is spoken; `None` if it may not be a person's.
fn person(name: &str) -> Option<String> {
    // A department or a pronoun in parentheses is no part of the name.
    let name = name.split(['(', '[']).next().unwrap_or_default().trim().trim_matches(['"', '\'']).trim();
    let is_odd = |c: char| c.is_ascii_digit() || "@/\\<>|=+_;:".contains(c);
    if name.is_empty() || name.contains(is_odd) {
        return None;
    }
    let mut parts: Vec<&str> = name.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
    while parts.len() > 1 && parts.last().is_some_and(|last| is_one_of(last, AFTER_A_NAME)) {
        parts.pop();
    }
    let ordered = match parts.as_slice() {
        [whole] => (*whole).to_owned(),
        // “Dr. Müller, Eve” is spoken “Dr. Eve Müller”.
        [family, given] => {
            let (titles, family) = titles(family);
            [titles, (*given).to_owned(), family]
                .into_iter()
                .filter(|part| !part.is_empty())
                .collect::<Vec<_>>()
                .join(" ")
        }
        _ => return None,
    };
    let words: Vec<&str> = ordered.split_whitespace().collect();
    let is_person = !words.is_empty() && words.len() <= 6 && !words.iter().any(|word| is_one_of(word, NOT_A_PERSON));
    is_person.then(|| words.join(" "))
}

/// Divides a family name into the titles before it and the rest.
fn titles(family: &str) -> (String, String) {
    let words: Vec<&str> = family.split_whitespace().collect();
    let count = words.iter().take_while(|word| is_one_of(word, TITLES)).count();
    (words[..count].join(" "), words[count..].join(" "))
}

fn is_one_of(word: &str, known: &[&str]) -> bool {
    known.contains(&word.replace('.', "").to_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_is_greeted_by_name_in_spoken_order() {
        for (name, greeted) in [
            ("Dana Fields", "Hello Dana Fields,"),
            ("Ada", "Hello Ada,"),
            ("Müller, Eve", "Hello Eve Müller,"),
            ("Dr. Müller, Eve", "Hello Dr. Eve Müller,"),
            ("Müller, Dr. Eve", "Hello Dr. Eve Müller,"),
            ("Prof. Dr. van Dyk, Jan Peter", "Hello Prof. Dr. Jan Peter van Dyk,"),
            ("Eve Müller, Ph.D.", "Hello Eve Müller,"),
            ("Smith, John, Jr.", "Hello John Smith,"),
            ("Eve Müller (she/her)", "Hello Eve Müller,"),
            ("\"Eve Müller\"", "Hello Eve Müller,"),
        ] {
            let sender = Address { name: Some(name.to_owned()), address: "eve@example.org".to_owned() };
            assert_eq!(greeting(Some(&sender)), greeted, "{name}");
        }
    }

    #[test]
    fn other_senders_are_greeted_without_a_name() {
        for name in ["Acme, Inc.", "Acme Support", "eve@example.org", "Team 7", "Berg, Holz, Stein und Partner", ""] {
            let sender = Address { name: Some(name.to_owned()), address: "eve@example.org".to_owned() };
            assert_eq!(greeting(Some(&sender)), "Hello,", "{name}");
        }
        let nameless = Address { name: None, address: "eve@example.org".to_owned() };
        assert_eq!((greeting(Some(&nameless)), greeting(None)), ("Hello,".to_owned(), "Hello,".to_owned()));
    }
}
