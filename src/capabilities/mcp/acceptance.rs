//! `countersign accept`: shows an operator the tools of a server with their arguments, and what changed since they were
//! accepted.

use std::collections::BTreeSet;

use countersign_capabilities::Tell;

use super::{
    accepted::{Accepted, differences},
    schema::{self, Argument, Kind, Shape},
    server::{Server, words},
};

/// The depth to which the parts of arguments are shown.
const MAX_DEPTH: usize = 3;

/// Shows the tools that the settings list, and accepts them if `keep`. Lets an operator sign in first, if the server wants
/// that and nobody is signed in.
///
/// # Errors
///
/// The reason why the server cannot be asked, or the acceptance cannot be written.
pub(crate) async fn accept(server: &Server, keep: bool, tell: &Tell<'_>) -> Result<Vec<String>, String> {
    let mut lines = Vec::new();
    if let Some(sign_in) = server.client.sign_in()
        && !sign_in.is_done().await
    {
        sign_in.authorize(tell).await?;
        lines.push("signed in".to_owned());
    }
    let known = server.client.tools().await.map_err(|error| server.told_to_operator(&error))?;
    let path = server.settings.accepted_file(server.name);
    let mut accepted = Accepted::read(&path).unwrap_or_default();
    let listed: BTreeSet<&String> = server.settings.tools.iter().collect();
    let known_before = accepted.tools.len();
    accepted.tools.retain(|name, _| listed.contains(name));
    let mut is_new = accepted.tools.len() < known_before;
    let (mut asked_about, mut not_called) = (Vec::new(), Vec::new());
    for tool in &listed {
        let Some(present) = known.iter().find(|present| present.name == **tool) else {
            lines.push(format!("{tool}: the server has no such tool"));
            continue;
        };
        if present.needs_task {
            is_new |= accepted.tools.remove(*tool).is_some();
            lines
                .push(format!("{tool}: it can only be called as a task, which I don't support, so it wasn't accepted"));
            continue;
        }
        if let Err(why) = schema::validator(&present.schema) {
            lines.push(format!("{tool}: its schema can't be used, so it wasn't accepted: {why}"));
            continue;
        }
        let before = accepted.tools.get(*tool).map(|pinned| pinned.definition.clone());
        let changed = before.as_ref().map(|before| differences(before, present));
        is_new |= changed.as_ref().is_none_or(|changed| !changed.is_empty());
        let read_before = before.as_ref().map(|before| server.reads(before));
        match server.reads(present) {
            true if read_before != Some(true) => asked_about.push(tool.as_str()),
            false if read_before == Some(true) => not_called.push(tool.as_str()),
            _ => {}
        }
        let what = match (present.reads, server.reads(present)) {
            (true, true) => "says that it only reads",
            (true, false) => "says that it only reads; the settings want a card",
            (false, true) => "doesn't say that it only reads; the settings say so, and it is called without a card",
            (false, false) => "changes something",
        };
        match changed.as_deref() {
            Some([]) => lines.push(format!("{tool}: as before")),
            Some(changed) => {
                lines.push(format!("{tool}: changed since it was accepted, {what}"));
                lines.extend(changed.iter().map(|difference| format!("  {difference}")));
            }
            None => lines.push(format!("{tool}: {what}. “{}”", words(&present.description, 300))),
        }
        if changed.is_none_or(|changed| !changed.is_empty()) {
            let arguments = schema::arguments(present);
            arguments.iter().for_each(|argument| add(&mut lines, argument, 1));
            if arguments.is_empty() {
                lines.push("  no arguments".to_owned());
            }
        }
        accepted.accept(present.clone());
    }
    let others: Vec<_> =
        known.iter().filter(|tool| !listed.contains(&tool.name)).map(|tool| words(&tool.name, 60)).collect();
    if !others.is_empty() {
        lines.push(format!("not listed in `tools`, so not offered: {}", others.join(", ")));
    }
    if !keep {
        return Ok(lines);
    }
    let wrote = accepted.write(&path);
    wrote.map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
    lines.push(format!("{} accepted, in {}", accepted.tools.len(), path.display()));
    if is_new {
        lines.push("a running bot rereads this file on its next message".to_owned());
    }
    if !asked_about.is_empty() {
        lines.push(format!("until it restarts, it also asks for approval of {}", asked_about.join(", ")));
    }
    if !not_called.is_empty() {
        lines.push(format!("until it restarts, it doesn't call {}", not_called.join(", ")));
    }
    Ok(lines)
}

/// Adds a line for an argument, and for each part of it.
fn add(lines: &mut Vec<String>, argument: &Argument, depth: usize) {
    let Shape { kind, default, description, .. } = &argument.shape;
    let needed = if argument.required { "required" } else { "optional" };
    let default = default.as_ref().filter(|default| !default.is_null());
    let default = default.map(|default| format!(", {} by default", words(&schema::text_of(default), 60)));
    let says = description.as_deref().map(|says| words(says, 200)).filter(|says| !says.is_empty());
    let says = says.map(|says| format!(". “{says}”")).unwrap_or_default();
    let wanted = match kind {
        Kind::Object { parts, .. } if !parts.is_empty() && depth < MAX_DEPTH => "an object".to_owned(),
        _ => words(&argument.shape.wanted(), 300),
    };
    let name = words(&argument.name, 60);
    lines.push(format!("{}{name} ({needed}): {wanted}{}{says}", "  ".repeat(depth), default.unwrap_or_default()));
    if depth < MAX_DEPTH {
        argument.shape.parts().iter().for_each(|part| add(lines, part, depth + 1));
    }
}
