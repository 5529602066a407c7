//! The history of the mailbox.

use serde_json::{Value, json};

use super::{
    super::{
        failure::Failure,
        mailbox::{Change, Record},
    },
    World, page, with_page,
};
use crate::call::Call;

/// Lists the changes after `startHistoryId`, oldest first.
pub(super) fn list(world: &World, call: &Call) -> Result<Value, Failure> {
    call.has_only(&["startHistoryId", "historyTypes", "labelId", "maxResults", "pageToken"])?;
    let start = call.parameter("startHistoryId").ok_or_else(|| Failure::invalid("Missing startHistoryId"))?;
    let start: u64 = start.parse().map_err(|_| Failure::invalid("Invalid startHistoryId"))?;
    if start < world.mailbox.oldest_history || start > world.mailbox.newest_history {
        return Err(Failure::not_found());
    }
    let types = call.parameters("historyTypes");
    if types.iter().any(|kind| !["messageAdded", "messageDeleted", "labelAdded", "labelRemoved"].contains(kind)) {
        return Err(Failure::invalid("Invalid value at 'history_types'"));
    }
    let label = call.parameter("labelId");
    let is_listed = |record: &&Record| {
        (types.is_empty() || types.contains(&kind(&record.change)))
            && label.is_none_or(|label| record.labels.iter().any(|own| own == label))
    };
    let history = &world.mailbox.history; // in the order of its ids
    let since = history.partition_point(|record| record.id <= start);
    let (records, next) = page(world, call, history[since..].iter().filter(is_listed))?;
    let mut answer = json!({ "historyId": world.mailbox.newest_history.to_string() });
    if !records.is_empty() {
        answer["history"] = records.into_iter().map(resource).collect();
    }
    Ok(with_page(answer, next))
}

fn kind(change: &Change) -> &'static str {
    match change {
        Change::Added => "messageAdded",
        Change::Deleted => "messageDeleted",
        Change::Labelled(_) => "labelAdded",
        Change::Unlabelled(_) => "labelRemoved",
    }
}

fn resource(record: &Record) -> Value {
    let message = json!({ "id": record.message, "threadId": record.thread, "labelIds": record.labels });
    let mut resource = json!({
        "id": record.id.to_string(),
        "messages": [{ "id": record.message, "threadId": record.thread }],
    });
    let (name, change) = match &record.change {
        Change::Added => ("messagesAdded", json!({ "message": message })),
        Change::Deleted => ("messagesDeleted", json!({ "message": message })),
        Change::Labelled(labels) => ("labelsAdded", json!({ "message": message, "labelIds": labels })),
        Change::Unlabelled(labels) => ("labelsRemoved", json!({ "message": message, "labelIds": labels })),
    };
    resource[name] = json!([change]);
    resource
}
