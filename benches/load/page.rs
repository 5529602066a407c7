//! The sections of `docs/performance.md` that the bench fills in. Each stands between two markers, and nothing else is
//! touched.

/// Returns the page with another text in a section, or `None` if it has no such section.
pub(crate) fn filled(page: &str, section: &str, text: &str) -> Option<String> {
    let (begins, ends) = (format!("<!-- measured: {section} -->\n"), format!("<!-- end: {section} -->"));
    let (before, rest) = page.split_once(&begins)?;
    let (_, after) = rest.split_once(&ends)?;
    Some(format!("{before}{begins}{text}\n{ends}{after}"))
}
