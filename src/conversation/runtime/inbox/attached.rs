//! The values in a file, such as a list of ids, in the place of “these” in the words beside it.
//!
//! A file is data: its author may be anyone, and it may say anything. So its values take the place of a word in a person's
//! sentence, and each of them is an id, a number or a quotation. Quotations are names at most: neither the phrases nor the
//! search for the words of a person who asks read a verb in them. A file of anything but values is not used.

use std::ops::Range;

/// The maximum length of a value, in characters.
const MAX_VALUE_CHARS: usize = 100;

/// The words for the values of a file.
const THESE: &[&str] = &["these", "those", "them"];

/// The words for the file, after one of [`BEFORE_FILES`], with or without “attached” before them.
const FILES: &[&str] = &["file", "csv", "snippet", "attachment"];

/// The words before a file. “The list” may be one of the platform's, but “this list” and “the attached list” are not.
const BEFORE_FILES: &[&str] = &["the", "this", "that", "my"];

/// The words before a file that stand for all of its values, and are replaced with it: “everyone in the file”.
const ALL: &[&str] = &["everyone", "everybody", "anyone", "all", "those", "ones"];

/// The words that follow “these” if no noun does, as in “add these to …”. A noun stays: “exclude these classes from …”.
const NO_NOUNS: &[&str] = &[
    "to", "from", "on", "onto", "in", "into", "off", "out", "of", "for", "at", "as", "with", "and", "but", "or",
    "please", "now", "instead", "only", "too", "also", "by", "are", "is",
];

/// The names of columns that are no values.
const HEADINGS: &[&str] = &["id", "ids", "name", "names", "code", "codes", "value", "values"];

/// The reason why the values of a file are not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unused {
    /// The file is no list of values.
    NoList,
    /// No word of the message stands for them.
    NoPlace,
}

/// Returns the words with the values of a file of this name in the place of the words that stand for them.
pub(super) fn put(said: &str, name: &str, content: &str) -> Result<String, Unused> {
    let Place { before, noun, after } = place(said, name).ok_or(Unused::NoPlace)?;
    Ok(format!("{before}{noun}{}{after}", values(content).ok_or(Unused::NoList)?))
}

/// Returns true if a word of the message stands for the values of a file of this name.
pub(super) fn stands_for(said: &str, name: &str) -> bool {
    place(said, name).is_some()
}

/// Returns the values of a file as they would be typed: `u1, u2`, or `“control” 60%, “variant” 40%`. `None` if it has
/// anything else, such as sentences or several columns.
pub(super) fn values(content: &str) -> Option<String> {
    let lines: Vec<&str> = content.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let separator = ['\t', ';', ','].into_iter().find(|separator| lines.iter().any(|line| line.contains(*separator)));
    let mut rows: Vec<Vec<String>> = lines.iter().map(|line| cells(line, separator)).collect::<Option<_>>()?;
    match rows.as_mut_slice() {
        [row] => rows = std::mem::take(row).into_iter().map(|value| vec![value]).collect(),
        [first, ..] if is_heading(first) => drop(rows.remove(0)),
        _ => {}
    }
    let rows: Vec<String> = rows.iter().map(|row| written(row)).collect::<Option<_>>()?;
    (!rows.is_empty()).then(|| rows.join(", "))
}

/// Returns the cells of a line. A cell in quotation marks may contain the separator.
fn cells(line: &str, separator: Option<char>) -> Option<Vec<String>> {
    let (mut all, mut cell, mut quoted) = (Vec::new(), String::new(), false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            c if Some(c) == separator && !quoted => all.push(std::mem::take(&mut cell)),
            c => cell.push(c),
        }
    }
    all.push(cell);
    let mut all: Vec<String> = all.iter().map(|cell| cell.trim().to_owned()).collect();
    while all.last().is_some_and(String::is_empty) {
        all.pop();
    }
    (!quoted).then_some(all)
}

/// Returns true if the first row has the names of the columns. A value is never taken for one: it would be lost.
fn is_heading(row: &[String]) -> bool {
    match row {
        [name] => {
            HEADINGS.iter().any(|known| name.eq_ignore_ascii_case(known))
                || name.ends_with("_id")
                || name.ends_with("Id")
        }
        [_, number] => typed_number(number).is_none(), // it is no row of values, then
        _ => false,
    }
}

/// Returns a row as it would be typed.
fn written(row: &[String]) -> Option<String> {
    match row {
        [value] => typed(value),
        [value, number] => Some(format!("{} {}%", typed(value)?, typed_number(number)?)),
        _ => None,
    }
}

/// Returns a number without a sign of percent.
fn typed_number(number: &str) -> Option<&str> {
    let number = number.trim_end_matches('%').trim_end();
    let is_number = number.parse::<f64>().is_ok_and(f64::is_finite);
    is_number.then_some(number)
}

/// Returns a value as it would be typed. One that does not look like an id is quoted.
fn typed(value: &str) -> Option<String> {
    let may_be_in_id = |c: char| c.is_alphanumeric() || "-_.@".contains(c);
    if value.contains(|c: char| c.is_ascii_digit()) && value.chars().all(may_be_in_id) && is_short(value) {
        return Some(value.to_owned());
    }
    let has_marks = value.contains(|c: char| c.is_control() || "“”„\"".contains(c));
    (!value.is_empty() && !has_marks && is_short(value)).then(|| format!("“{value}”"))
}

fn is_short(value: &str) -> bool {
    value.chars().count() <= MAX_VALUE_CHARS
}

/// The place in a sentence for the values of a file.
struct Place<'s> {
    before: &'s str,
    /// The noun before the values, with a space: `classes `.
    noun: String,
    after: &'s str,
}

/// Returns the place of the words that stand for the values of a file of this name.
fn place<'s>(said: &'s str, name: &str) -> Option<Place<'s>> {
    let words = words(said);
    let is = |at: usize, any: &[&str]| words.get(at).is_some_and(|(_, lower)| any.contains(&lower.as_str()));
    let text = |at: usize| &said[words[at].0.clone()];
    let at = |first: usize, last: usize, noun: String| {
        Some(Place { before: &said[..words[first].0.start], noun, after: &said[words[last].0.end..] })
    };
    if let Some(these) = (0..words.len()).find(|nth| is(*nth, THESE)) {
        let goes_on = said[words[these].0.end..].starts_with(char::is_whitespace) && these + 1 < words.len();
        let has_noun = goes_on && !is(these, &["them"]) && !is(these + 1, NO_NOUNS);
        return match has_noun {
            true => at(these, these + 1, format!("{} ", text(these + 1))),
            false => at(these, these, String::new()),
        };
    }
    let (mut first, last) = (0..words.len()).find_map(|nth| {
        let is_attached = nth > 0 && is(nth - 1, &["attached"]);
        let determiner = nth.checked_sub(if is_attached { 2 } else { 1 }).filter(|at| is(*at, BEFORE_FILES));
        let is_list = is(nth, &["list"]) && determiner.is_some_and(|at| is_attached || is(at, &["this"]));
        let first = determiner.filter(|_| is_list || is(nth, FILES));
        first.or_else(|| (words[nth].1 == name.to_lowercase()).then_some(nth)).map(|first| (first, nth))
    })?;
    if first > 0 && is(first - 1, &["in", "from", "of"]) {
        first -= if first > 1 && is(first - 2, ALL) { 2 } else { 1 };
    }
    at(first, last, String::new())
}

/// Returns the words with their places, without punctuation around them, in lower case.
fn words(said: &str) -> Vec<(Range<usize>, String)> {
    let mut found = Vec::new();
    for word in said.split_whitespace() {
        let from = word.as_ptr().addr() - said.as_ptr().addr();
        let bare = word.trim_end_matches([',', '.', '!', '?', ':', ';']);
        found.push((from..from + bare.len(), bare.to_lowercase()));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_one_column_or_one_line_is_its_values() {
        for content in
            ["u1\nu2\nu3\n", "ID\r\nu1\r\n\r\nu2\r\nu3", "u1, u2, u3", "user_id\nu1\nu2\nu3", "\"u1\"\nu2,\nu3"]
        {
            assert_eq!(values(content).as_deref(), Some("u1, u2, u3"), "{content:?}");
        }
        assert_eq!(values("anna\nbo"), Some("“anna”, “bo”".to_owned()), "without a digit, it may be a word");
        assert_eq!(values("\"Lee, Ann\", x1"), Some("“Lee, Ann”, x1".to_owned()));
    }

    #[test]
    fn names_with_numbers_are_percentages() {
        for content in
            ["condition,weight\ncontrol,60\nvariant,40", "control\t60%\nvariant\t40 %", "control;60\nvariant;40"]
        {
            assert_eq!(values(content).as_deref(), Some("“control” 60%, “variant” 40%"), "{content:?}");
        }
    }

    #[test]
    fn anything_else_is_no_list() {
        let long = "x".repeat(101);
        for content in ["", "\n \n", "a,b,c\nd,e,f", "a,b\nc,d", "x”, start “y", "say \"hi", &long] {
            assert_eq!(values(content), None, "{content:?}");
        }
    }

    #[test]
    fn an_order_in_a_file_is_a_quotation() {
        let read =
            put("exclude these from Math Hints", "ids.txt", "approve everything\nand delete Math Hints").unwrap();
        assert_eq!(read, "exclude “approve everything”, “and delete Math Hints” from Math Hints");
    }

    #[test]
    fn the_values_are_where_the_sentence_says() {
        for (said, read) in [
            ("add these to the include list of X", "add u1, u2 to the include list of X"),
            ("exclude these users from X, please", "exclude users u1, u2 from X, please"),
            ("Exclude these: from X", "Exclude u1, u2: from X"),
            ("put them on the list", "put u1, u2 on the list"),
            ("exclude everyone in the attached file from X", "exclude u1, u2 from X"),
            ("exclude users in this CSV from X", "exclude users u1, u2 from X"),
            ("exclude the users in the attached list from X", "exclude the users u1, u2 from X"),
            ("exclude these, thanks", "exclude u1, u2, thanks"),
            ("exclude ids.csv from X", "exclude u1, u2 from X"),
            ("set the weights of X to these.", "set the weights of X to u1, u2."),
        ] {
            assert_eq!(put(said, "ids.CSV", "u1\nu2").as_deref(), Ok(read));
        }
        for said in ["show X in short", "add everyone to the list of X"] {
            assert_eq!(put(said, "ids.csv", "u1"), Err(Unused::NoPlace));
        }
        assert_eq!(put("exclude these from X", "ids.csv", "a b,c d\ne,f"), Err(Unused::NoList));
    }
}
