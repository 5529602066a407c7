//! The mails of the same conversation: by the conversation of the server, by the messages that a mail answers, and by its
//! subject, if it is that of a reply.

use countersign_graph::{
    digest::Digest,
    store::{Error, TypedRegister},
};
use countersign_mail::{Mail, MailId, topic};
use serde_json::json;

use super::{Entry, MailRegister};

/// The maximum number of mails of a conversation that are kept, the newest.
const MAX_MAILS: usize = 20;

/// The maximum number of ids in a mail's references that are looked up, the newest.
const MAX_REFERENCES: usize = 5;

impl Entry {
    /// Returns the names of the conversations to which the mail belongs.
    pub(super) fn conversations(&self) -> Vec<String> {
        self.conversation.iter().map(|conversation| conversation.as_str().to_owned()).chain(self.of_subject()).collect()
    }

    /// Returns the name of the conversation of a sender about a subject.
    fn of_subject(&self) -> Option<String> {
        let (sender, topic) = (self.sender.as_deref()?, topic(&self.subject).trim().to_lowercase());
        let name = Digest::of(&[&json!(sender), &json!(topic)]).as_str()[..32].to_owned();
        (!topic.is_empty()).then(|| format!("subject:{name}"))
    }

    fn is_reply(&self) -> bool {
        topic(&self.subject).len() < self.subject.trim().len()
    }
}

impl MailRegister {
    /// Notes that a mail belongs to a conversation.
    pub(super) async fn join(&self, conversation: &str, mail: &MailId) -> Result<(), Error> {
        let register = self.conversation(conversation);
        let joined = register.change(|mails| {
            if !mails.contains(mail) {
                mails.push(mail.clone());
                let excess = mails.len().saturating_sub(MAX_MAILS);
                mails.drain(..excess);
            }
        });
        joined.await
    }

    /// Returns the newest mail of the list that came before this one in the same conversation and has a thread.
    ///
    /// # Errors
    ///
    /// Fails if the store isn't answering.
    pub async fn earlier(&self, mail: &Mail) -> Result<Option<MailId>, Error> {
        let mut found = Vec::new();
        for message_id in mail.references.iter().rev().take(MAX_REFERENCES) {
            found.extend(self.with_message_id(message_id).await?.map(|entry| entry.mail));
        }
        let before = self.before(&Entry::new(mail, mail.received_at), found).await?;
        let newest = before.into_iter().filter(|entry| entry.thread.is_some()).max_by_key(|entry| entry.received_at);
        Ok(newest.map(|entry| entry.mail))
    }

    /// Returns the mails of the list that came before this one in the same conversation. `more` belong to it as well.
    ///
    /// # Errors
    ///
    /// Fails if the store isn't answering.
    pub(crate) async fn before(&self, entry: &Entry, mut more: Vec<MailId>) -> Result<Vec<Entry>, Error> {
        more.extend(entry.earlier.clone());
        // Two mails of one sender with the same subject belong together only if the second one replies.
        let of_subject = entry.of_subject().filter(|_| entry.is_reply());
        let names = entry.conversation.iter().map(|conversation| conversation.as_str().to_owned()).chain(of_subject);
        for name in names {
            more.extend(self.conversation(&name).load().await?.1);
        }
        more.sort();
        more.dedup();
        let mut before = Vec::new();
        for id in more.into_iter().filter(|id| *id != entry.mail) {
            let known = self.entry(&id).await?;
            before.extend(known.filter(|known| !known.is_forgotten() && known.received_at <= entry.received_at));
        }
        Ok(before)
    }

    fn conversation(&self, conversation: &str) -> TypedRegister<Vec<MailId>> {
        self.register(&self.key("conversation", conversation))
    }
}
