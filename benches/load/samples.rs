//! What `perf script` prints, counted: the functions that were running, those that had called them, and kinds of work.

use std::collections::{HashMap, HashSet};

/// The length of each list.
const TOP: usize = 20;

/// How the names of functions of this program begin.
const OWN: [&str; 2] = ["countersign_", "countersign::"];

/// A kind of work that is spread over many functions: its name, and how a sample of it is recognized by its functions,
/// the innermost first.
type Kind = (&'static str, fn(&[Frame]) -> bool);

const KINDS: [Kind; 12] = [
    ("the kernel", |frames| frames[0].is_kernel),
    ("allocating and freeing memory", |frames| begins(&frames[0], &["mi_", "_mi_", "__rust_alloc", "__rust_dealloc"])),
    ("copying and comparing memory", |frames| begins(&frames[0], &["__mem"])),
    ("cloning", |frames| any(frames, "::clone")),
    ("dropping", |frames| any(frames, "drop_in_place")),
    ("JSON", |frames| any(frames, "serde_json")),
    ("… of which by way of `Value`", |frames| any(frames, "serde_json::value")),
    ("hashing", |frames| any(frames, "sha2::") || any(frames, "ring_core")),
    ("HTTP, both sides, with the handling of deliveries", |frames| any(frames, "hyper")),
    ("SQLite", |frames| any(frames, "sqlite3")),
    ("… of which commits", |frames| any(frames, "VdbeHalt")),
    ("`fdatasync`", |frames| any(frames, "fdatasync")),
];

/// A function in a sample.
struct Frame {
    name: String,
    is_kernel: bool,
}

/// How often what was seen.
#[derive(Default)]
pub(crate) struct Samples {
    all: usize,
    kinds: [usize; KINDS.len()],
    threads: HashMap<String, usize>,
    /// Functions that were running or waited for one that they had called.
    within: HashMap<String, usize>,
    /// Functions that were running.
    itself: HashMap<String, usize>,
}

impl Samples {
    /// Reads what `perf script` prints: for each sample the name of the thread, then a line for each function, the
    /// innermost first, and an empty line.
    pub(crate) fn read(script: &str) -> Self {
        let mut seen = Self::default();
        for sample in script.split("\n\n") {
            let mut lines = sample.trim_start_matches('\n').lines();
            let Some(thread) = lines.next().map(str::trim).filter(|thread| !thread.is_empty()) else { continue };
            let frames: Vec<Frame> = lines.filter_map(frame).collect();
            let Some(innermost) = frames.first() else { continue };
            seen.all += 1;
            *seen.threads.entry(of_many(thread)).or_default() += 1;
            for (count, (_, is_of_it)) in seen.kinds.iter_mut().zip(KINDS) {
                *count += usize::from(is_of_it(&frames));
            }
            if !innermost.is_kernel {
                *seen.itself.entry(innermost.name.clone()).or_default() += 1;
            }
            let own: HashSet<String> = frames.iter().filter_map(|frame| own(&frame.name)).collect();
            for name in own {
                *seen.within.entry(name).or_default() += 1;
            }
        }
        seen
    }

    /// Returns true if there was none.
    pub(crate) fn is_empty(&self) -> bool {
        self.all == 0
    }

    /// Returns the lists for a store with this name.
    pub(crate) fn told(&self, store: &str) -> String {
        let threads = self.top(&self.threads).into_iter().take(5);
        let threads = threads.map(|(name, share)| format!("`{name}` {share}")).collect::<Vec<_>>().join(" · ");
        let kinds = KINDS.iter().zip(self.kinds).filter(|(_, count)| *count > 0);
        let kinds = kinds.map(|((name, _), count)| ((*name).to_owned(), self.share(count))).collect();
        let of_functions = |counts| {
            let top = self.top(counts).into_iter();
            top.map(|(name, share)| (format!("`{}`", name.replace('|', "\\|")), share)).collect()
        };
        let lists: [(&str, Vec<(String, String)>); 3] = [
            ("kind of work", kinds),
            ("function of this program, with everything below it", of_functions(&self.within)),
            ("any function, by itself", of_functions(&self.itself)),
        ];
        let mut text = format!("**{store}.** Threads: {threads}.\n\n");
        for (title, rows) in lists {
            text.push_str(&format!("| {title} | share |\n| --- | ---: |\n"));
            for (name, share) in rows {
                text.push_str(&format!("| {name} | {share} |\n"));
            }
            text.push('\n');
        }
        text
    }

    /// Returns the most frequent ones with their shares.
    fn top(&self, counts: &HashMap<String, usize>) -> Vec<(String, String)> {
        let mut counts: Vec<_> = counts.iter().collect();
        counts.sort_by(|(name, count), (other, more)| more.cmp(count).then(name.cmp(other)));
        counts.into_iter().take(TOP).map(|(name, count)| (name.clone(), self.share(*count))).collect()
    }

    fn share(&self, count: usize) -> String {
        format!("{:.1}%", count as f64 * 100.0 / self.all as f64)
    }
}

/// Reads a line such as `  55d0 a::b (/usr/bin/c)`.
fn frame(line: &str) -> Option<Frame> {
    let (_address, rest) = line.trim().split_once(' ')?;
    let (name, file) = rest.rsplit_once(" (")?;
    let name = name.split("::{{").next().unwrap_or(name); // closures
    Some(Frame { name: name.to_owned(), is_kernel: file.starts_with("[kernel") })
}

/// Returns the name of a function of this program, shortened.
fn own(name: &str) -> Option<String> {
    let first = name.strip_prefix('<').unwrap_or(name);
    OWN.iter().any(|own| first.starts_with(own)).then(|| name.replace(OWN[0], ""))
}

fn begins(frame: &Frame, with: &[&str]) -> bool {
    with.iter().any(|with| frame.name.starts_with(with))
}

fn any(frames: &[Frame], name: &str) -> bool {
    frames.iter().any(|frame| frame.name.contains(name))
}

/// Names threads of one kind alike.
fn of_many(thread: &str) -> String {
    thread.trim_end_matches(|c: char| c.is_ascii_digit() || c == '-').to_owned()
}
