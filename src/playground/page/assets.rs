//! The files of the page, embedded in the binary.
//!
//! The list is explicit, so that only reviewed files are served. A test compares it with the
//! folder.

use axum::{
    extract::Path,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};

/// A file of the page.
pub(super) struct Asset {
    /// Its path below `/assets/`.
    pub(super) path: &'static str,
    /// Its media type.
    pub(super) content_type: &'static str,
    /// Its content.
    pub(super) bytes: &'static [u8],
}

const CSS: &str = "text/css; charset=utf-8";
const FONT: &str = "font/woff2";
const HTML: &str = "text/html; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";
const TEXT: &str = "text/plain; charset=utf-8";

macro_rules! assets {
    ($($path:literal is $content_type:expr,)*) => {
        &[$(Asset { path: $path, content_type: $content_type, bytes: include_bytes!(concat!("assets/", $path)) },)*]
    };
}

/// Every file of the page.
pub(super) const ALL: &[Asset] = assets![
    "index.html" is HTML,
    "chevron.svg" is SVG,
    "mark.svg" is SVG,
    "fonts/OFL.txt" is TEXT,
    "fonts/inter.woff2" is FONT,
    "fonts/inter-italic.woff2" is FONT,
    "styles/base.css" is CSS,
    "styles/blocks.css" is CSS,
    "styles/composer.css" is CSS,
    "styles/dialogs.css" is CSS,
    "styles/inbox.css" is CSS,
    "styles/layout.css" is CSS,
    "styles/messages.css" is CSS,
    "styles/sidebar.css" is CSS,
    "styles/trace.css" is CSS,
    "scripts/api.js" is JS,
    "scripts/autocomplete.js" is JS,
    "scripts/avatar.js" is JS,
    "scripts/blocks.js" is JS,
    "scripts/channel.js" is JS,
    "scripts/composer.js" is JS,
    "scripts/confirm.js" is JS,
    "scripts/dom.js" is JS,
    "scripts/elements.js" is JS,
    "scripts/emoji.js" is JS,
    "scripts/home.js" is JS,
    "scripts/icons.js" is JS,
    "scripts/inbox.js" is JS,
    "scripts/main.js" is JS,
    "scripts/markdown.js" is JS,
    "scripts/menu.js" is JS,
    "scripts/messages.js" is JS,
    "scripts/modal.js" is JS,
    "scripts/mrkdwn.js" is JS,
    "scripts/pickers.js" is JS,
    "scripts/press.js" is JS,
    "scripts/replay.js" is JS,
    "scripts/rich_text.js" is JS,
    "scripts/sidebar.js" is JS,
    "scripts/store.js" is JS,
    "scripts/suggestions.js" is JS,
    "scripts/text.js" is JS,
    "scripts/theme.js" is JS,
    "scripts/thread.js" is JS,
    "scripts/time.js" is JS,
    "scripts/toasts.js" is JS,
    "scripts/topbar.js" is JS,
    "scripts/trace.js" is JS,
    "scripts/trace_words.js" is JS,
];

/// Responds with the page itself.
pub(super) async fn index() -> Response {
    respond("index.html")
}

/// Responds with a file of the page.
pub(super) async fn asset(Path(path): Path<String>) -> Response {
    respond(&path)
}

fn respond(path: &str) -> Response {
    match ALL.iter().find(|asset| asset.path == path) {
        // Never cached: the next build of the bot may serve another page at the same address.
        Some(asset) => ([(header::CONTENT_TYPE, asset.content_type), (header::CACHE_CONTROL, "no-cache")], asset.bytes)
            .into_response(),
        None => (StatusCode::NOT_FOUND, "no such file").into_response(),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeSet,
        fs,
        path::{Path, PathBuf},
    };

    use super::*;

    fn folder() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("page/assets")
    }

    fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { files_below(&path, found) } else { found.push(path) }
        }
    }

    fn text(asset: &Asset) -> Option<&'static str> {
        let readable = asset.content_type.starts_with("text/") || asset.content_type == SVG;
        readable.then(|| std::str::from_utf8(asset.bytes).unwrap())
    }

    /// Returns every quoted string and `url(…)` in a file that refers to another file of the page.
    fn references(asset: &Asset) -> Vec<String> {
        let Some(text) = text(asset) else { return Vec::new() };
        let resolve = |relative: &str| {
            let mut parts: Vec<&str> = asset.path.split('/').collect();
            parts.pop();
            for part in relative.split('/') {
                match part {
                    "." => {}
                    ".." => drop(parts.pop()),
                    name => parts.push(name),
                }
            }
            parts.join("/")
        };
        text.split(['"', '\'', '(', ')'])
            .filter_map(|piece| {
                let file = ["js", "css", "svg", "woff2"].iter().any(|end| piece.ends_with(&format!(".{end}")));
                match piece {
                    _ if !file || piece.contains(char::is_whitespace) => None,
                    _ if piece.starts_with("/assets/") => Some(piece["/assets/".len()..].to_owned()),
                    _ if piece.starts_with("./") || piece.starts_with("../") => Some(resolve(piece)),
                    _ => None,
                }
            })
            .collect()
    }

    #[test]
    fn every_file_of_the_folder_is_served() {
        let mut found = Vec::new();
        files_below(&folder(), &mut found);
        let in_folder: BTreeSet<String> =
            found.iter().map(|path| path.strip_prefix(folder()).unwrap().to_str().unwrap().to_owned()).collect();
        let served: BTreeSet<String> = ALL.iter().map(|asset| asset.path.to_owned()).collect();
        assert_eq!(served, in_folder);
    }

    #[test]
    fn every_file_that_is_referred_to_exists() {
        let served: BTreeSet<&str> = ALL.iter().map(|asset| asset.path).collect();
        let mut referred_to = BTreeSet::new();
        for asset in ALL {
            for reference in references(asset) {
                assert!(served.contains(reference.as_str()), "{} refers to {reference}", asset.path);
                referred_to.insert(reference);
            }
        }
        for asset in ALL.iter().filter(|asset| asset.content_type == JS || asset.content_type == CSS) {
            assert!(referred_to.contains(asset.path), "nothing refers to {}", asset.path);
        }
    }

    #[test]
    fn no_file_refers_to_another_host() {
        for asset in ALL.iter().filter(|asset| asset.content_type != TEXT) {
            let Some(text) = text(asset) else { continue };
            for (at, _) in text.match_indices("://") {
                let before = &text[..at];
                let scheme = before.rsplit(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
                let whole: String = text[at - scheme.len()..].chars().take_while(|c| !"\"' )`".contains(*c)).collect();
                assert_eq!(whole, "http://www.w3.org/2000/svg", "in {}", asset.path);
            }
        }
    }

    #[test]
    fn no_script_parses_text_as_markup() {
        for asset in ALL.iter().filter(|asset| asset.content_type == JS) {
            let text = text(asset).unwrap();
            for way in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "DOMParser", "eval("] {
                assert!(!text.contains(way), "{} uses {way}", asset.path);
            }
        }
    }

    #[test]
    fn the_page_needs_no_inline_script_or_style() {
        let page = text(ALL.iter().find(|asset| asset.path == "index.html").unwrap()).unwrap();
        assert!(!page.contains("<style") && !page.contains(" style="));
        assert!(!page.contains(" onclick=") && !page.contains("<script>"));
    }
}
