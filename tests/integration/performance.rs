//! The page of measured figures: the load bench fills in its sections and leaves the rest alone. What it writes of a
//! profile is counted from samples.

use std::fs;

#[path = "../../benches/load/page.rs"]
mod page;
#[path = "../../benches/load/samples.rs"]
mod samples;

#[test]
fn a_section_is_filled_in_and_nothing_else() {
    let page = "above\n<!-- measured: cells -->\nold\n\nold\n<!-- end: cells -->\nbelow\n";
    let filled = page::filled(page, "cells", "new").unwrap();
    assert_eq!(filled, "above\n<!-- measured: cells -->\nnew\n<!-- end: cells -->\nbelow\n");
    assert_eq!(page::filled(&filled, "cells", "new").unwrap(), filled, "again and again");
    assert_eq!(page::filled(page, "instructions", "new"), None);
}

#[test]
fn the_page_has_the_sections_that_the_bench_fills_in() {
    let page = fs::read_to_string("docs/performance.md").unwrap();
    for section in ["cells", "instructions", "stored", "processes", "profile"] {
        let filled = page::filled(&page, section, "new").unwrap_or_else(|| panic!("no section {section}"));
        assert!(filled.contains(&format!("<!-- measured: {section} -->\nnew\n<!-- end: {section} -->\n")));
    }
}

/// Four samples as perf prints them: a step that makes JSON, the same function within a closure of itself, the kernel
/// below the writer, and SQLite alone.
const SCRIPT: &str = "\
tokio-rt-worker
\t  1a serde_json::ser::format (/bot)
\t  2b countersign_graph::step::save::{{closure}} (/bot)
\t  3c <countersign_store::Sealed as countersign_graph::Store>::commit::{{closure}} (/bot)
\t  ffff [unknown] ([unknown])

tokio-rt-worker
\t  2b countersign_graph::step::save::{{closure}}::{{closure}} (/bot)
\t  2b countersign_graph::step::save (/bot)

sqlite-writer
\t  4d ext4_sync ([kernel.kallsyms])
\t  5e fdatasync (/libc.so.6)
\t  6f countersign_store::sqlite::writer::serve (/bot)

sqlite-writer
\t  7a sqlite3_step (/bot)

";

#[test]
fn a_function_counts_once_in_a_sample_with_everything_below_it() {
    let counted = samples::Samples::read(SCRIPT);
    assert!(!counted.is_empty());
    let told = counted.told("SQLite");
    assert!(told.starts_with("**SQLite.** Threads: `sqlite-writer` 50.0% · `tokio-rt-worker` 50.0%.\n"), "{told}");
    for row in [
        "| the kernel | 25.0% |",
        "| JSON | 25.0% |",
        "| `fdatasync` | 25.0% |",
        "| SQLite | 25.0% |",
        "| `graph::step::save` | 50.0% |",
        "| `<store::Sealed as graph::Store>::commit` | 25.0% |",
        "| `store::sqlite::writer::serve` | 25.0% |",
        "| `serde_json::ser::format` | 25.0% |",
        "| `countersign_graph::step::save` | 25.0% |",
    ] {
        assert_eq!(told.matches(&format!("\n{row}\n")).count(), 1, "{row} in {told}");
    }
    for other in ["hashing", "ext4_sync", "unknown", "{{closure}}"] {
        assert!(!told.contains(other), "{other} in {told}");
    }
    assert!(samples::Samples::read("\n\n").is_empty());
}
