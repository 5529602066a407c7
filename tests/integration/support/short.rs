//! Drawn in short: a text as people see it, without what a reader of the test has seen already. `known.txt` says how to read
//! that, above the texts that are drawn by their names.
//!
//! A message that was read before is drawn like one that differs from a known text. A row in place of another of the same
//! label needs no word that the other is gone, and neither does the line under a card, which no longer says who may decide
//! once it is decided. Nothing else is left out, so a line that changes anywhere changes what is drawn.

/// A line with `#` and the name, then the text, up to an empty line.
const KNOWN: &str = include_str!("known.txt");

/// Between two messages.
pub(crate) const BETWEEN: &str = "\n---\n";

/// What stands for lines that are the same.
const SAME: &str = "⋯";

/// The known texts: name and lines; the longest first.
fn known() -> Vec<(&'static str, Vec<&'static str>)> {
    let mut all: Vec<_> = KNOWN
        .split("\n\n")
        .filter_map(|block| {
            let (name, text) = block.trim().strip_prefix("# ")?.split_once('\n')?;
            Some((name, text.lines().collect::<Vec<_>>()))
        })
        .collect();
    all.sort_by_key(|(_, lines)| std::cmp::Reverse(lines.len()));
    all
}

/// A message without the lines that are buttons.
pub(crate) fn without_buttons(message: &str) -> String {
    let is_buttons = |line: &&str| line.starts_with('[') && line.ends_with(']');
    message.lines().filter(|line| !is_buttons(line)).collect::<Vec<_>>().join("\n")
}

/// One message of which nothing was read before, in short.
pub(crate) fn message(now: String) -> String {
    messages(&[(now, None)])
}

/// Messages, each with what was read of it before, in short.
pub(crate) fn messages(mut new: &[(String, Option<String>)]) -> String {
    let mut drawn = Vec::new();
    while let [(now, before), rest @ ..] = new {
        let (short, taken) = match known_at_the_start(new) {
            Some((name, taken)) => (format!("‹{name}›"), taken),
            None => (differing(now, before.as_deref()).unwrap_or_else(|| in_short(now)), new.len() - rest.len()),
        };
        drawn.push(short);
        new = &new[taken..];
    }
    drawn.join(BETWEEN)
}

/// The known text that the first messages are, and how many of them.
fn known_at_the_start(new: &[(String, Option<String>)]) -> Option<(&'static str, usize)> {
    known().into_iter().find_map(|(name, wanted)| {
        let wanted = wanted.join("\n");
        let parts: Vec<_> = wanted.split(BETWEEN).collect();
        let is_so = parts.len() <= new.len() && parts.iter().zip(new).all(|(part, (now, _))| part == now);
        is_so.then_some((name, parts.len()))
    })
}

/// A text with the names of the known ones; buttons stand beside the name.
pub(crate) fn in_short(text: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for (name, wanted) in known() {
        while let Some(at) = lines.windows(wanted.len()).position(|run| run == wanted) {
            let under = lines.get(at + wanted.len()).filter(|line| line.starts_with('['));
            let (buttons, taken) = under.map_or((String::new(), 0), |line| (format!(" {line}"), 1));
            lines.splice(at..at + wanted.len() + taken, [format!("‹{name}›{buttons}")]);
        }
    }
    lines.join("\n")
}

/// A message by its title and what differs from `before`, or else from a known text of that title, if that is little.
fn differing(text: &str, before: Option<&str>) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let title = lines.first()?;
    let same_title = |other: &Vec<&str>| other.first() == Some(title) && !other.contains(&"---");
    let before = before.map(|before| before.lines().collect()).filter(same_title);
    let before = before.or_else(|| known().into_iter().map(|(_, known)| known).find(same_title))?;
    (2 * shared(&before, &lines) > lines.len()).then(|| difference(&before, &lines))
}

fn shared(before: &[&str], now: &[&str]) -> usize {
    now.iter().filter(|line| before.contains(line)).count()
}

fn difference(before: &[&str], now: &[&str]) -> String {
    let mut drawn = vec![now[0].to_owned()];
    let mut rest = &before[1..];
    for line in &now[1..] {
        if let Some(at) = rest.iter().position(|other| other == line) {
            missing(&rest[..at], before, now, &mut drawn);
            rest = &rest[at + 1..];
            match drawn.len() {
                1 if !drawn[0].ends_with(SAME) => drawn[0].push_str(&format!(" {SAME}")),
                1 => (),
                _ if drawn.last().is_some_and(|last| last == SAME) => (),
                _ => drawn.push(SAME.to_owned()),
            }
        } else if !is_closed(before, line) || drawn.last().is_some_and(|last| last.ends_with(SAME)) {
            drawn.push((*line).to_owned());
        }
    }
    missing(rest, before, now, &mut drawn);
    drawn.join("\n")
}

/// Tells of lines that are missing, unless as many as before are of that label.
fn missing(gone: &[&str], before: &[&str], now: &[&str], drawn: &mut Vec<String>) {
    let of = |label: &str, lines: &[&str]| lines.iter().filter(|line| self::label(line) == Some(label)).count();
    for line in gone {
        match label(line) {
            Some(label) if of(label, before) == of(label, now) => (),
            Some("[") if of("[", now) == 0 => drawn.push("‹no buttons›".to_owned()),
            _ => drawn.push(format!("‹not: {line}›")),
        }
    }
}

/// What a line is about, where another can take its place: a row, a remark with a colon, who asked, the buttons.
fn label(line: &str) -> Option<&str> {
    match line {
        _ if line.starts_with("Asked by ") => Some("Asked by"),
        _ if line.starts_with('[') => Some("["),
        _ => line.split_once("*  ").or_else(|| line.split_once(": ")).map(|(label, _)| label),
    }
}

/// Whether this is the line under a card that was open `before` and is decided.
fn is_closed(before: &[&str], line: &str) -> bool {
    let Some((asked, rest)) = line.split_once(" · ").filter(|(asked, _)| asked.starts_with("Asked by ")) else {
        return false;
    };
    let is_open = |open: &&str| open.starts_with(&format!("{asked} · ")) && open.contains(" can approve · ");
    before.iter().any(|open| is_open(open) && open.ends_with(&format!(" · {rest}")))
}
