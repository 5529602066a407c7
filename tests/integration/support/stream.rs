//! What the lines of an audit stream have to be, whatever happened to the bot meanwhile.

use std::collections::BTreeMap;

use serde_json::Value;

/// The number of entries of each thread that arrived. Each arrived after the one before it, and follows it in the chain;
/// one that arrived again says that it may have, unless `unmarked` repetitions are allowed.
///
/// # Errors
///
/// The first line with a fault. A line that a crash cut off is none.
pub(crate) fn arrived(lines: &str, unmarked: bool) -> Result<BTreeMap<String, u64>, String> {
    let mut threads: BTreeMap<String, (u64, String)> = BTreeMap::new();
    for line in lines.lines() {
        let Ok(line) = serde_json::from_str::<Value>(line) else { continue };
        let (last, hash) = threads.entry(line["thread"].as_str().unwrap_or_default().to_owned()).or_default();
        let position = line["position"].as_u64().unwrap_or_default();
        if position <= *last {
            if !unmarked && line["repeated"] != "maybe" {
                return Err(format!("it is a repetition and does not say so: {line}"));
            }
            continue;
        }
        if position != *last + 1 || line["entry"]["previous"] != hash.as_str() {
            return Err(format!("it does not follow entry {last}: {line}"));
        }
        (*last, *hash) = (position, line["entry"]["hash"].as_str().unwrap_or_default().to_owned());
    }
    Ok(threads.into_iter().map(|(thread, (last, _))| (thread, last)).collect())
}
