//! Subjects: without the marks of replies for people, and with one of them on a reply.

/// The marks by which mail programs begin the subject of a reply, in several languages, in lower case.
const REPLY_MARKS: [&str; 6] = ["re", "aw", "antw", "sv", "odp", "rif"];

/// Returns the subject without the marks of replies at its beginning: `Prices` for `Re: AW: Prices`. It is empty if the
/// subject has nothing else.
pub fn topic(subject: &str) -> &str {
    without_marks(subject, &REPLY_MARKS)
}

/// Returns the subject as people see it: [`topic`], or `(no subject)` if there is none.
pub fn shown_subject(subject: &str) -> &str {
    match topic(subject) {
        "" => "(no subject)",
        topic => topic,
    }
}

/// Returns the subject of a reply: the original one with one `Re:`. An original that has exactly one keeps it as it is.
pub(crate) fn of_reply(original: &str) -> String {
    let original = original.trim();
    let rest = without_one_mark(original, &["re"]);
    match rest {
        None => format!("Re: {original}"),
        Some(rest) if without_one_mark(rest, &["re"]).is_none() => original.to_owned(),
        Some(rest) => format!("Re: {}", without_marks(rest, &["re"])),
    }
}

fn without_marks<'a>(subject: &'a str, marks: &[&str]) -> &'a str {
    let mut rest = subject.trim();
    while let Some(shorter) = without_one_mark(rest, marks) {
        rest = shorter;
    }
    rest
}

/// Returns the subject without a mark such as `Re:` or `RE[2]:` at its beginning; `None` if it has none.
fn without_one_mark<'a>(subject: &'a str, marks: &[&str]) -> Option<&'a str> {
    let (mark, rest) = subject.split_once(':')?;
    let mark = mark.trim().to_lowercase();
    let word = mark.split(['[', '(']).next().unwrap_or_default().trim_end();
    let is_counted = mark[word.len()..].trim().chars().all(|c| c.is_ascii_digit() || "[]()".contains(c));
    (marks.contains(&word) && is_counted).then_some(rest.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_see_a_subject_without_the_marks_of_replies() {
        for (subject, shown) in [
            ("Prices", "Prices"),
            ("Re: Re: Prices", "Prices"),
            ("RE[2]: AW: Prices: large", "Prices: large"),
            ("Fwd: Prices", "Fwd: Prices"),
            ("Rest: of it", "Rest: of it"),
            ("Re: ", "(no subject)"),
            (" ", "(no subject)"),
        ] {
            assert_eq!(shown_subject(subject), shown, "{subject}");
        }
    }

    #[test]
    fn a_reply_has_one_re() {
        for (original, expected) in [
            ("Prices", "Re: Prices"),
            ("Re: Prices", "Re: Prices"),
            ("RE:Prices", "RE:Prices"),
            ("Re: RE: re[3]: Prices", "Re: Prices"),
            ("Re: Re:", "Re: "),
            ("Regarding prices", "Re: Regarding prices"),
        ] {
            assert_eq!(of_reply(original), expected, "{original}");
        }
    }
}
