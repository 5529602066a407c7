//! Lists the language models that a thread used, with their tokens.

use std::fmt::Write as _;

use countersign_core::clock::Timestamp;
use countersign_graph::store::{AuditEntry, AuditKind};

use countersign_model::prices::dollars;

use crate::record::notebook::words::{inline, time};

/// The usage of one model in one run.
struct Cost<'a> {
    run: &'a str,
    model: &'a str,
    since: Timestamp,
    calls: u64,
    sent: u64,
    cached: u64,
    received: u64,
    /// In billionths of a US dollar; `None` if a price is not known.
    nano_usd: Option<u64>,
}

/// Writes a table of the calls to models in each run, or a sentence if there were none.
pub(super) fn write_table(out: &mut String, record: &[AuditEntry]) {
    out.push_str("## Model and cost\n\n");
    let costs = costs(record);
    if costs.is_empty() {
        out.push_str("No language model was used: the answers come from fixed rules.\n\n");
        return;
    }
    out.push_str("| Since | Model | Calls | Tokens sent | Of those, cached | Tokens received | Cost |\n");
    out.push_str("| --- | --- | --- | --- | --- | --- | --- |\n");
    for cost in &costs {
        let Cost { run: _, model, since, calls, sent, cached, received, nano_usd } = cost;
        let (since, model) = (time(*since), inline(model));
        let cost = nano_usd.map_or_else(|| "not known".to_owned(), dollars);
        let _ = writeln!(out, "| {since} | {model} | {calls} | {sent} | {cached} | {received} | {cost} |");
    }
    let all = |part: fn(&Cost<'_>) -> u64| costs.iter().map(part).sum::<u64>();
    let (calls, sent, received) = (all(|cost| cost.calls), all(|cost| cost.sent), all(|cost| cost.received));
    let known = all(|cost| cost.nano_usd.unwrap_or_default());
    let cost = match costs.iter().filter(|cost| cost.nano_usd.is_none()).count() {
        0 => format!(" Cost: {}.", dollars(known)),
        some if some < costs.len() => format!(" Cost: {}, and that of models without a known price.", dollars(known)),
        _ => String::new(),
    };
    let _ = writeln!(out, "\nTotal: {calls} calls, {sent} tokens sent, {received} received.{cost}\n");
}

fn costs(record: &[AuditEntry]) -> Vec<Cost<'_>> {
    let mut costs: Vec<Cost<'_>> = Vec::new();
    for event in record.iter().map(|entry| &entry.event).filter(|event| event.kind == AuditKind::Ran) {
        let text = |name: &str| event.detail[name].as_str().unwrap_or("hidden");
        let number = |name: &str| event.detail[name].as_u64().unwrap_or(0);
        let (run, model) = (text("run"), text("model"));
        let at = costs.iter().position(|cost| cost.run == run && cost.model == model).unwrap_or_else(|| {
            costs.push(Cost {
                run,
                model,
                since: event.at,
                calls: 0,
                sent: 0,
                cached: 0,
                received: 0,
                nano_usd: Some(0),
            });
            costs.len() - 1
        });
        let cost = &mut costs[at];
        cost.calls += number("calls");
        cost.sent += number("input_tokens") + number("cached_tokens");
        cost.cached += number("cached_tokens");
        cost.received += number("output_tokens");
        cost.nano_usd = cost.nano_usd.zip(event.detail["nano_usd"].as_u64()).map(|(sum, one)| sum + one);
    }
    costs
}
