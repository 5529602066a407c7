//! The labels of mails that were handled.

use std::collections::HashMap;

use reqwest::Method;
use serde::Serialize;
use tokio::sync::Mutex;

use super::{
    super::{
        account::{Handled, MailError},
        mail::MailId,
    },
    calls::{Calls, either_way},
    read::path_of,
    wire::{Ignored, Label, LabelList},
};

/// The ids of our labels, by name. They are read once, and again after one of them was deleted.
#[derive(Debug, Default)]
pub(super) struct Labels(Mutex<Option<HashMap<String, String>>>);

/// The body of a request that creates a label.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct NewLabel<'a> {
    name: &'a str,
    label_list_visibility: &'a str,
    message_list_visibility: &'a str,
}

/// The body of a request that changes the labels of a message.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Modify {
    add_label_ids: Vec<String>,
    remove_label_ids: Vec<String>,
}

/// Returns the name of the label for mails that were handled in this way.
fn name(handled: Handled) -> &'static str {
    match handled {
        Handled::Answered => "Countersign/answered",
        Handled::Rejected => "Countersign/rejected",
        Handled::Spam => "Countersign/spam",
    }
}

impl Labels {
    /// Replaces the labels of a mail that are ours. A mail that was deleted needs none.
    pub(super) async fn mark(&self, calls: &Calls, id: &MailId, handled: Handled) -> Result<(), MailError> {
        let path = format!("{}/modify", path_of(id.as_str())?);
        let mut is_second = false;
        loop {
            let body = self.modification(calls, handled).await?;
            let changed = calls.change::<Ignored>(Method::POST, &path, &body, &calls.any_permit()).await;
            match changed.map_err(either_way) {
                Err(MailError::Refused { status: Some(404), .. }) => return Ok(()),
                // A person may have deleted a label since its id was read.
                Err(MailError::Refused { status: Some(400), .. }) if !is_second => {
                    *self.0.lock().await = None;
                    is_second = true;
                }
                changed => return changed.map(|_| ()),
            }
        }
    }

    async fn modification(&self, calls: &Calls, handled: Handled) -> Result<Modify, MailError> {
        let mut known = self.0.lock().await;
        let mut ids = match known.take() {
            Some(ids) => ids,
            None => list(calls).await?,
        };
        let wanted = name(handled);
        let id = match ids.get(wanted) {
            Some(id) => id.clone(),
            None => {
                let id = create(calls, wanted).await?;
                ids.insert(wanted.to_owned(), id.clone());
                id
            }
        };
        let others = Handled::ALL.into_iter().filter(|other| *other != handled);
        let remove_label_ids = others.filter_map(|other| ids.get(name(other)).cloned()).collect();
        *known = Some(ids);
        Ok(Modify { add_label_ids: vec![id], remove_label_ids })
    }
}

async fn list(calls: &Calls) -> Result<HashMap<String, String>, MailError> {
    let LabelList { labels } = calls.get("/labels", &[]).await?;
    let is_ours = |label: &Label| Handled::ALL.into_iter().any(|handled| name(handled) == label.name);
    Ok(labels.into_iter().filter(is_ours).map(|label| (label.name, label.id)).collect())
}

/// Creates a label. If another process was faster, its label is used.
async fn create(calls: &Calls, name: &str) -> Result<String, MailError> {
    let body = NewLabel { name, label_list_visibility: "labelShow", message_list_visibility: "show" };
    let created = calls.change::<Label>(Method::POST, "/labels", &body, &calls.any_permit()).await;
    match created.map_err(either_way) {
        Ok(label) => Ok(label.id),
        Err(error @ MailError::Refused { status: Some(409), .. }) => list(calls).await?.remove(name).ok_or(error),
        Err(error) => Err(error),
    }
}
