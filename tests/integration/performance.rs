//! The page of measured figures: the load bench fills in its sections and leaves the rest alone.

use std::fs;

#[path = "../../benches/load/page.rs"]
mod page;

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
    for section in ["cells", "instructions", "stored", "processes"] {
        let filled = page::filled(&page, section, "new").unwrap_or_else(|| panic!("no section {section}"));
        assert!(filled.contains(&format!("<!-- measured: {section} -->\nnew\n<!-- end: {section} -->\n")));
    }
}
