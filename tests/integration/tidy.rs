//! Layout and imports: the plan of the house, checked.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The room, and the rooms it may import. The leaves may be imported by all.
const MAY_USE: &[(&str, &[&str])] = &[
    ("ids", &[]),
    ("clock", &[]),
    ("cause", &[]),
    ("reply", &[]),
    ("status_line", &[]),
    ("exchanges", &[]),
    ("glossary", &[]),
    ("permit", &[]),
    ("wire", &[]),
    ("this_machine", &[]),
    ("private_file", &[]),
    ("config", &[]),
    ("graph", &[]),
    ("slack", &["config"]),
    ("services", &["config"]),
    ("model", &["config"]),
    ("store", &["graph", "config"]),
    ("understanding", &["model"]),
    ("capabilities", &["graph", "services", "understanding"]),
    ("assistant", &["capabilities", "graph", "model", "services", "understanding"]),
    ("conversation", &["assistant", "graph", "slack", "config"]),
    ("sandbox", &["config"]),
    ("playground", &["config"]),
];

const LEAVES: &[&str] = &[
    "ids",
    "clock",
    "cause",
    "reply",
    "status_line",
    "exchanges",
    "glossary",
    "permit",
    "wire",
    "this_machine",
    "private_file",
];

/// Production files are to be held in mind; past this many lines there is a second idea in them.
const LONGEST_FILE: usize = 500;

fn sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The first folder below `src`, or the file's own name.
fn room(path: &Path) -> String {
    let inside = path.strip_prefix("src").unwrap();
    let first = inside.components().next().unwrap().as_os_str().to_str().unwrap();
    first.trim_end_matches(".rs").to_owned()
}

/// The production part of a file: up to its tests.
fn production(text: &str) -> &str {
    text.split("#[cfg(test)]").next().unwrap_or(text)
}

/// The rooms a file names, whichever way `use` is written.
fn rooms_named(text: &str) -> Vec<String> {
    let mut rooms = Vec::new();
    for (at, _) in text.match_indices("crate::") {
        let rest = &text[at + "crate::".len()..];
        if let Some(group) = rest.strip_prefix('{') {
            let mut depth = 0;
            let mut word = String::new();
            for character in group.chars() {
                match character {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    ',' if depth == 0 => rooms.push(std::mem::take(&mut word)),
                    _ if depth == 0 => word.push(character),
                    _ => {}
                }
            }
            rooms.push(word);
        } else {
            rooms.push(rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect());
        }
    }
    rooms
        .into_iter()
        .map(|name| name.trim().split("::").next().unwrap_or_default().to_owned())
        .filter(|name| !name.is_empty())
        .collect()
}

#[test]
fn imports_point_one_way() {
    let mut wrong = Vec::new();
    for path in sources() {
        let room = room(&path);
        if matches!(room.as_str(), "app" | "main" | "lib") {
            continue;
        }
        let Some((_, allowed)) = MAY_USE.iter().find(|(name, _)| *name == room) else {
            wrong.push(format!("{}: the room `{room}` is not in the table", path.display()));
            continue;
        };
        let text = fs::read_to_string(&path).unwrap();
        let code: String = production(&text)
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
            .collect::<Vec<_>>()
            .join("\n");
        for named in rooms_named(&code) {
            let fine = named == room || LEAVES.contains(&named.as_str()) || allowed.contains(&named.as_str());
            if !fine {
                wrong.push(format!("{}: `{room}` may not use `{named}`", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_module_says_what_it_is_for() {
    let silent: Vec<_> = sources()
        .into_iter()
        .filter(|path| !fs::read_to_string(path).unwrap().starts_with("//!"))
        .map(|path| path.display().to_string())
        .collect();
    assert!(silent.is_empty(), "without a first line of //!: {}", silent.join(", "));
}

#[test]
fn no_file_holds_more_than_one_can_keep_in_mind() {
    let long: Vec<_> = sources()
        .into_iter()
        .filter_map(|path| {
            let lines = production(&fs::read_to_string(&path).unwrap()).lines().count();
            (lines > LONGEST_FILE).then(|| format!("{} ({lines})", path.display()))
        })
        .collect();
    assert!(long.is_empty(), "longer than {LONGEST_FILE} lines: {}", long.join(", "));
}

#[test]
fn the_top_level_is_a_short_list() {
    let listing = std::process::Command::new("git").args(["ls-files"]).output().unwrap();
    let files = String::from_utf8(listing.stdout).unwrap();
    let mut top: Vec<_> =
        files.lines().filter_map(|file| file.split('/').next()).filter(|n| !n.starts_with('.')).collect();
    top.dedup();
    assert_eq!(
        top,
        ["Cargo.lock", "Cargo.toml", "LICENSE", "README.md", "benches", "config", "deploy", "docs", "src", "tests"],
        "something new lies at the top"
    );
}

#[test]
fn the_import_reader_reads_groups() {
    let named = rooms_named(
        "use crate::{\n    clock::Clock,\n    graph::{engine::X, node::Y},\n    ids,\n};\nuse crate::slack::Z;",
    );
    assert_eq!(named, ["clock", "graph", "ids", "slack"]);
}
