//! Layout and imports: the architecture page, checked.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The rooms of the conversation from the top to the bottom, each with those that it may import. What is in none of the
/// lists of the others is known to none of them.
const ROOMS_OF_CONVERSATION: &[(&str, &[&str])] = &[
    ("runtime", &["surfaces", "commands", "approvals", "record", "presentation"]),
    ("surfaces", &["approvals", "record", "presentation"]),
    ("commands", &["approvals", "record", "presentation"]),
    ("approvals", &["record", "presentation"]),
    ("record", &["presentation"]),
    ("presentation", &[]),
];

/// Production files are to be held in mind; past this many lines there is a second idea in them.
const LONGEST_FILE: usize = 500;

/// The Rust sources below `src`, sorted.
pub fn sources() -> Vec<PathBuf> {
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

/// The production part of a file: all of it but the items for tests alone. An item ends where its brace is closed, which
/// stands alone below its first word in a formatted file.
pub fn production(text: &str) -> String {
    let mut kept = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let indent = &line[..line.len() - line.trim_start().len()];
        if line.trim_start() != "#[cfg(test)]" {
            kept.push_str(line);
            kept.push('\n');
            continue;
        }
        let mut item = lines.by_ref().skip_while(|line| line.trim_start().starts_with("#["));
        let first = item.next().unwrap_or_default();
        if !first.ends_with([';', ',']) && !first.ends_with("{}") {
            item.find(|line| line.strip_prefix(indent).is_some_and(|line| line.starts_with('}')));
        }
    }
    kept
}

/// The files that are for tests alone: a module that is declared so, and what is below it.
pub fn for_tests_alone() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in sources() {
        let text = fs::read_to_string(&path).unwrap();
        let folder = match path.file_stem().and_then(|stem| stem.to_str()) {
            Some("mod" | "lib" | "main") => path.parent().unwrap().to_owned(),
            _ => path.with_extension(""),
        };
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        for pair in lines.windows(2).filter(|pair| pair[0] == "#[cfg(test)]") {
            let name = pair[1].trim_start_matches("pub(super) ").trim_start_matches("pub(crate) ");
            if let Some(name) = name.strip_prefix("mod ").and_then(|name| name.strip_suffix(';')) {
                found.extend([folder.join(format!("{name}.rs")), folder.join(name)]);
            }
        }
    }
    found
}

/// Where a platform may be named: in the folder of its capability, in the stand-ins, in the one file of the composition root
/// that says which capabilities there are, in the one of the playground that starts the stand-ins, and in the examples that
/// operators read.
const OF_A_PLATFORM: &[&str] = &[
    "src/capabilities/experiments",
    "src/sandbox",
    "src/app/installed.rs",
    "src/playground/platform_stand_in.rs",
    "src/config/default.toml",
];

/// The words of the platforms.
const PLATFORM_WORDS: &[&str] = &["experiment", "upgrade"];

/// The lines that name one nevertheless: where its folder is declared, and the nouns that people say before the name of a
/// thing.
fn may_name_one(line: &str) -> bool {
    let is_declared = matches!(line.trim(), "pub mod upgrade;" | "pub use countersign_experiments as experiments;");
    let is_page =
        line.starts_with("//! | [`experiments`] |") || line.trim_start().starts_with("countersign-experiments");
    is_declared
        || is_page
        || line.starts_with("$noun = ")
        || line.starts_with("const ORDINARY: &str = ")
        || line.starts_with("const NOUNS: &str = ")
}

/// The names that follow a path, also as a group.
fn named_after(text: &str, path: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (at, _) in text.match_indices(path) {
        let rest = &text[at + path.len()..];
        if let Some(group) = rest.strip_prefix('{') {
            let mut depth = 0;
            let mut word = String::new();
            for character in group.chars() {
                match character {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    ',' if depth == 0 => names.push(std::mem::take(&mut word)),
                    _ if depth == 0 => word.push(character),
                    _ => {}
                }
            }
            names.push(word);
        } else {
            names.push(rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect());
        }
    }
    names
        .into_iter()
        .map(|name| name.trim().split("::").next().unwrap_or_default().to_owned())
        .filter(|name| !name.is_empty())
        .collect()
}

/// The production part of a file without its comments.
fn code(text: &str) -> String {
    let production = production(text);
    production.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// The crates as the architecture page lists them, from the top to the bottom, with their folders.
fn crates() -> Vec<(String, PathBuf)> {
    let page = fs::read_to_string("src/lib.rs").unwrap();
    let table = page.split("//! | crate |").nth(1).unwrap().lines().skip(2);
    let rows = table.take_while(|line| line.starts_with("//! | "));
    let names = rows.map(|row| row.trim_start_matches("//! | ").split(['`', ']']).nth(1).unwrap().to_owned());
    let workspace = fs::read_to_string("Cargo.toml").unwrap();
    let folder = |name: &str| {
        let line = format!("countersign-{name} = {{ path = \"");
        workspace.split(&line).nth(1).and_then(|rest| rest.split('"').next()).map_or(PathBuf::from("."), PathBuf::from)
    };
    names.map(|name| (name.clone(), folder(&name))).collect()
}

/// The crates of the project that a manifest names in one of its sections. The one without a name of its own is `app`.
fn named_in(manifest: &str, section: &str) -> Vec<String> {
    let lines = manifest.lines().skip_while(|line| *line != section).skip(1).take_while(|line| !line.starts_with('['));
    let names = lines.filter_map(|line| line.strip_prefix("countersign")?.split(['.', ' ']).next());
    names.map(|name| if name.is_empty() { "app" } else { name.trim_start_matches('-') }.to_owned()).collect()
}

/// The crates of the project that a crate is built from, directly or through others.
fn built_from(name: &str) -> Vec<String> {
    let crates = crates();
    let mut found = vec![name.to_owned()];
    let mut at = 0;
    while let Some(name) = found.get(at) {
        let (_, folder) = crates.iter().find(|(known, _)| known == name).expect("the table lists every crate");
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let sections = manifest.lines().filter(|line| line.starts_with('[') && line.ends_with("dependencies]"));
        let sections = sections.filter(|line| !line.contains("dev-") && !line.starts_with("[workspace."));
        let needed: Vec<String> = sections.flat_map(|section| named_in(&manifest, section)).collect();
        found.extend(needed.into_iter().filter(|name| !found.contains(name)).collect::<Vec<_>>());
        at += 1;
    }
    found
}

/// The crates that are no part of the product, by their folders.
const APART: &[&str] = &["sandbox", "playground"];

#[test]
fn the_product_has_no_stand_in_and_no_page() {
    let product = built_from("app");
    assert!(product.iter().any(|name| name == "core"), "the manifests are read: {product:?}");
    let apart: Vec<_> = product.iter().filter(|name| APART.contains(&name.as_str())).collect();
    assert!(apart.is_empty(), "the program `countersign` is built from {apart:?}");
    assert!(APART.iter().all(|name| built_from("playground").iter().any(|known| known == name)));

    let tests = for_tests_alone();
    let mut wrong = Vec::new();
    for path in sources() {
        let is_apart = APART.iter().any(|name| path.starts_with(Path::new("src").join(name)));
        if is_apart || tests.iter().any(|test| path.starts_with(test)) {
            continue;
        }
        let code = code(&fs::read_to_string(&path).unwrap());
        let embeds = |line: &&str| {
            let has = |name: &&str| line.contains(&format!("/{name}/"));
            line.contains("include") && APART.iter().any(has)
        };
        wrong.extend(code.lines().filter(embeds).map(|line| format!("{}: {}", path.display(), line.trim())));
    }
    assert!(wrong.is_empty(), "the product contains files of something else:\n{}", wrong.join("\n"));
}

#[test]
fn the_page_knows_nothing_of_what_is_behind_it() {
    let folder = Path::new("src/playground/page");
    let mut wrong = Vec::new();
    for path in sources().iter().filter(|path| path.starts_with(folder)) {
        let code = code(&fs::read_to_string(path).unwrap());
        let outside = named_after(&code, "crate::").into_iter().filter(|name| name != "page");
        wrong.extend(outside.map(|name| format!("{}: the page may not use `{name}`", path.display())));
        let crates = named_after(&code, "countersign_").into_iter().filter(|name| name != "wire");
        wrong.extend(crates.map(|name| format!("{}: the page may not use the crate `{name}`", path.display())));
        let above = if path.ends_with("mod.rs") { "super::" } else { "super::super::" };
        if code.contains(above) || code.contains("countersign::") {
            wrong.push(format!("{}: the page may not use what is around it", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_crate_knows_one_above_it() {
    let crates = crates();
    let mut wrong = Vec::new();
    for (at, (name, folder)) in crates.iter().enumerate() {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let below = &crates[at + 1..];
        let above =
            named_in(&manifest, "[dependencies]").into_iter().filter(|dep| !below.iter().any(|(n, _)| n == dep));
        wrong.extend(above.map(|dep| format!("`{name}` knows `{dep}`, which is not below it")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));

    let workspace = fs::read_to_string("Cargo.toml").unwrap();
    let mut members = named_in(&workspace, "[workspace.dependencies]");
    members.sort();
    let mut listed: Vec<_> = crates.into_iter().map(|(name, _)| name).collect();
    listed.sort();
    assert_eq!(listed, members, "the table of the architecture page lists every crate");
}

#[test]
fn rooms_of_the_conversation_import_those_below_them() {
    let mut above = Vec::new();
    for (at, (room, below)) in ROOMS_OF_CONVERSATION.iter().enumerate() {
        let higher = &ROOMS_OF_CONVERSATION[..=at];
        above.extend(below.iter().filter(|name| higher.iter().any(|(other, _)| other == *name)).map(|up| (*room, *up)));
    }
    assert_eq!(above, [], "the table has these the wrong way round");

    let folder = Path::new("src/conversation");
    let tests = for_tests_alone();
    let mut wrong = Vec::new();
    for path in sources()
        .iter()
        .filter(|path| path.starts_with(folder) && !matches!(path.file_name().and_then(|n| n.to_str()), Some("lib.rs")))
    {
        let inside: Vec<_> = path.strip_prefix(folder).unwrap().iter().map(|step| step.to_str().unwrap()).collect();
        let Some((room, below)) = ROOMS_OF_CONVERSATION.iter().find(|(name, _)| *name == inside[0]) else {
            wrong.push(format!("{}: it is in no room of the table", path.display()));
            continue;
        };
        if tests.iter().any(|test| path.starts_with(test)) {
            continue;
        }
        let code = code(&fs::read_to_string(path).unwrap());
        for named in named_after(&code, "crate::") {
            if named != *room && !below.contains(&&*named) {
                wrong.push(format!("{}: the room `{room}` may not use `{named}`", path.display()));
            }
        }
        // `room/mod.rs` is as deep as the room, `room/file.rs` one deeper.
        let depth = if inside.last() == Some(&"mod.rs") { inside.len() - 1 } else { inside.len() };
        if code.contains(&"super::".repeat(depth)) {
            wrong.push(format!("{}: another room is called by its whole path, not by `super`", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn only_its_capability_names_a_platform() {
    let tests = for_tests_alone();
    let listing = std::process::Command::new("git").args(["ls-files", "src"]).output().unwrap();
    let files = String::from_utf8(listing.stdout).unwrap();
    let mut named = Vec::new();
    for path in files.lines().map(Path::new).filter(|path| path.exists()) {
        let allowed = OF_A_PLATFORM.iter().any(|place| path.starts_with(place));
        if allowed || tests.iter().any(|test| path.starts_with(test)) {
            continue;
        }
        let Ok(text) = fs::read_to_string(path) else { continue }; // a picture, a font
        let text = if path.extension().is_some_and(|kind| kind == "rs") { production(&text) } else { text };
        let names = |line: &&str| {
            let lower = line.to_lowercase();
            PLATFORM_WORDS.iter().any(|word| lower.contains(word)) && !may_name_one(line)
        };
        named.extend(text.lines().filter(names).map(|line| format!("{}: {}", path.display(), line.trim())));
    }
    assert!(named.is_empty(), "{} lines name a platform:\n{}", named.len(), named.join("\n"));
}

/// A capability that is a folder: what it is called, and where else its words may stand.
struct Folder {
    words: &'static [&'static str],
    /// Its folder, its client, its stand-in, and the file of the composition root that says which capabilities there are.
    places: &'static [&'static str],
    /// Lines elsewhere, by the file and a part of them: where it is declared, and where a word means something else.
    lines: &'static [(&'static str, &'static str)],
}

/// The capabilities that were added last. To add one touches what is listed here, and nothing else.
const FOLDERS: &[Folder] = &[
    Folder {
        words: &["mcp", "model context protocol"],
        places: &[
            "src/capabilities/mcp",
            "src/services/mcp",
            "src/sandbox/mcp",
            "src/app/installed.rs",
            "src/playground/platform_stand_in.rs",
            // The bridge to the simulations speaks the same protocol; it does not know this capability.
            "src/capabilities/simulation/bridge",
            "src/capabilities/simulation/phrases",
            "src/sandbox/bridge",
            // The API offers itself to agents by the same protocol.
            "src/api",
        ],
        lines: &[
            ("src/app/check_api.rs", "with tools for agents at /mcp"),
            ("src/main.rs", "Offers the API as tools"),
            ("src/main.rs", "Mcp("),
            ("Cargo.toml", "    \"src/services/mcp\","),
            ("Cargo.toml", "    \"src/capabilities/mcp\","),
            ("Cargo.toml", "countersign-mcp = {"),
            ("Cargo.toml", "countersign-mcp.workspace"),
            ("Cargo.toml", "countersign-mcp-client = {"),
            ("Cargo.toml", "countersign-mcp-client.workspace"),
            ("Cargo.toml", "rmcp = {"),
            ("src/lib.rs", "//! | [`mcp`] |"),
            ("src/lib.rs", "//! | [`mcp-client`](mcp_client) |"),
            ("src/lib.rs", "pub use countersign_mcp"),
            ("src/sandbox/lib.rs", "pub mod mcp;"),
            ("src/playground/Cargo.toml", "countersign-mcp.workspace"),
            // An example in the explanation of a field.
            ("src/config/section.rs", "(\"token\", \"MCP_\", \"_TOKEN\")"),
        ],
    },
    Folder {
        words: &["simulation", "pharmaco"],
        places: &[
            "src/capabilities/simulation",
            "src/sandbox/bridge",
            "src/app/installed.rs",
            "src/playground/platform_stand_in.rs",
        ],
        lines: &[
            ("Cargo.toml", "    \"src/capabilities/simulation\","),
            ("Cargo.toml", "countersign-simulation = {"),
            ("Cargo.toml", "countersign-simulation.workspace"),
            ("src/lib.rs", "//! | [`simulation`] |"),
            ("src/lib.rs", "pub use countersign_simulation"),
            ("src/playground/Cargo.toml", "countersign-simulation.workspace"),
            // The slash command, which the stand-in for Slack lists as the manifests in `deploy` do.
            ("src/sandbox/slack/mod.rs", "\"/simulation\""),
            // Users who are made up for a test of an experiment.
            ("src/capabilities/experiments/allowances.rs", "simulated_users"),
            ("src/capabilities/experiments/families.rs", "user_simulation"),
            ("src/capabilities/standing/phrases.txt", "simulation of|simulations of"),
            // Nouns that people say, whatever they name.
            ("src/understanding/asked.rs", "trial pilot simulation model"),
            ("src/understanding/claims.rs", "notes simulations models"),
        ],
    },
];

#[test]
fn a_capability_is_a_folder_and_lines_that_name_it() {
    let tests = for_tests_alone();
    let mut wrong = Vec::new();
    for Folder { words, places, lines } in FOLDERS {
        let mut used = vec![false; lines.len()];
        for file in tracked_files().iter().filter(|file| file.starts_with("src/") || *file == "Cargo.toml") {
            let path = Path::new(file);
            let is_its_own = places.iter().any(|place| path.starts_with(place));
            if is_its_own || !path.exists() || tests.iter().any(|test| path.starts_with(test)) {
                continue;
            }
            let Ok(text) = fs::read_to_string(path) else { continue }; // a picture, a font
            let text = if path.extension().is_some_and(|kind| kind == "rs") { production(&text) } else { text };
            for line in text.lines() {
                let lower = line.to_lowercase();
                if !words.iter().any(|word| lower.contains(word)) {
                    continue;
                }
                match lines.iter().position(|(of, part)| of == file && line.contains(part)) {
                    Some(at) => used[at] = true,
                    None => wrong.push(format!("{file}: {}", line.trim())),
                }
            }
        }
        let unused = lines.iter().zip(used).filter(|(_, used)| !used);
        wrong.extend(unused.map(|((file, part), _)| format!("{file}: no line has {part:?} any more")));
    }
    assert!(wrong.is_empty(), "a capability is named outside of its folder:\n{}", wrong.join("\n"));
}

#[test]
fn what_is_for_tests_is_left_out_and_nothing_else() {
    let text =
        "a\n#[cfg(test)]\nmod tests {\n    b {\n    }\n}\nc\n    #[cfg(test)]\n    d,\n#[cfg(test)]\nmod e;\nf\n";
    assert_eq!(production(text), "a\nc\nf\n");
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

/// The share of doc comments that may open with a question word. A comment states what a thing is or does.
const OPEN_QUESTIONS: f64 = 0.06;

#[test]
fn doc_comments_state_what_things_are() {
    let (mut all, mut open) = (0, Vec::new());
    for path in sources() {
        let text = fs::read_to_string(&path).unwrap();
        let mut before = "";
        for line in text.lines().map(str::trim) {
            for mark in ["/// ", "//! "] {
                let Some(said) = line.strip_prefix(mark).filter(|_| !before.starts_with(mark.trim_end())) else {
                    continue;
                };
                all += 1;
                let first = said.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
                if matches!(first, "What" | "Who" | "Whether" | "How" | "Where" | "When") {
                    open.push(format!("{}: {said}", path.display()));
                }
            }
            before = line;
        }
    }
    let share = open.len() as f64 / f64::from(all);
    assert!(
        share < OPEN_QUESTIONS,
        "{} of {all} doc comments open with a question word:\n{}",
        open.len(),
        open.join("\n")
    );
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

/// What a newcomer sees first: the pages that people and forges look for, what Cargo looks for, and the folders. Everything else
/// has a folder, or is a dotfile.
const TOP_LEVEL: &[&str] = &[
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "README.md",
    "RELEASING.md",
    "SECURITY.md",
    "benches",
    "config",
    "deploy",
    "docs",
    "rust-toolchain.toml",
    "src",
    "tests",
];

fn tracked_files() -> Vec<String> {
    let listing = std::process::Command::new("git").args(["ls-files"]).output().unwrap();
    String::from_utf8(listing.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn the_top_level_is_a_short_list() {
    let files = tracked_files();
    let mut top: Vec<_> = files.iter().filter_map(|file| file.split('/').next()).collect();
    top.retain(|name| !name.starts_with('.'));
    top.dedup();
    assert_eq!(top, TOP_LEVEL, "something new lies at the top");
}

/// The paths that a page names: targets of links, and code that begins at the top level. Both count from the top level.
fn paths_named(page: &Path, text: &str) -> Vec<PathBuf> {
    let folder = page.parent().unwrap();
    let links = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
    let links = links.filter(|target| !target.is_empty() && !target.contains(':')).map(|target| folder.join(target));
    let begins_here = |code: &&str| {
        let (first, rest) = code.split_once('/').unwrap_or((code, ""));
        TOP_LEVEL.contains(&first) || (first.starts_with('.') && first.len() > 1 && !rest.is_empty())
    };
    let code = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2)).filter(begins_here);
    let code =
        code.filter_map(|code| code.split_whitespace().next()).filter(|code| !code.contains(['*', '{', '<', '…']));
    links.chain(code.map(PathBuf::from)).collect()
}

#[test]
fn paths_that_pages_name_are_there() {
    let mut missing = Vec::new();
    for page in tracked_files().iter().filter(|file| file.ends_with(".md") && !file.starts_with("src/")) {
        let page = Path::new(page);
        let Ok(text) = fs::read_to_string(page) else { continue }; // removed, and not committed yet
        let named = paths_named(page, &text).into_iter().filter(|path| !path.exists());
        missing.extend(named.map(|path| format!("{}: {}", page.display(), path.display())));
    }
    assert!(missing.is_empty(), "what these pages name is not there:\n{}", missing.join("\n"));
}

#[test]
fn the_path_reader_reads_links_and_code() {
    let text = "[a](../b.md#c) [d](https://e) `src/f.rs` `tests/g.sh --h` `cargo i` `src/*.rs` `.cargo/j` `k/l` `...`";
    let named = paths_named(Path::new("docs/page.md"), text);
    assert_eq!(named, ["docs/../b.md", "src/f.rs", "tests/g.sh", ".cargo/j"].map(PathBuf::from));
}

#[test]
fn one_oldest_version_of_rust_is_named_everywhere() {
    let manifest = fs::read_to_string("Cargo.toml").unwrap();
    let version = manifest.split("rust-version = \"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    let places = [
        ("README.md", format!("Rust {version} ")),
        ("CONTRIBUTING.md", format!("Rust {version} ")),
        ("CONTRIBUTING.md", format!("RUSTUP_TOOLCHAIN={version}.")),
        ("deploy/Dockerfile", format!("rust:{version}-")),
        (".github/workflows/tests.yml", format!("container: rust:{version}.")),
        (".github/workflows/tests.yml", format!("RUSTUP_TOOLCHAIN: {version}.")),
        (".github/workflows/advisories.yml", format!("container: rust:{version}.")),
        (".github/workflows/advisories.yml", format!("RUSTUP_TOOLCHAIN: {version}.")),
    ];
    for (file, text) in places {
        assert!(fs::read_to_string(file).unwrap().contains(&text), "{file} does not say `{text}`");
    }
}

#[test]
fn the_import_reader_reads_groups() {
    let group = "use crate::{a::{B, c}, d};\ncrate::e::f();";
    assert_eq!(named_after(group, "crate::"), ["a", "d", "e"]);
}
