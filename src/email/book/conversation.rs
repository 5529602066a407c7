//! The mails of the same conversation: by the conversation of the server, or else by the messages that a mail answers.

use countersign_graph::store::{Error, TypedRegister};
use countersign_mail::{Mail, MailId, MailThreadId};

use super::Book;

/// The maximum number of mails of a conversation that are kept, the newest.
const MAX_MAILS: usize = 20;

/// The maximum number of ids in a mail's references that are looked up, the newest.
const MAX_REFERENCES: usize = 5;

impl Book {
    /// Notes that a mail belongs to a conversation of the server.
    pub(super) async fn join(&self, conversation: &MailThreadId, mail: &MailId) -> Result<(), Error> {
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
        let mut newest = None;
        for id in self.related(mail).await? {
            let Some(entry) = self.entry(&id).await?.filter(|entry| entry.mail != mail.id) else { continue };
            let is_before = entry.thread.is_some() && !entry.is_forgotten() && entry.received_at <= mail.received_at;
            if is_before && newest.as_ref().is_none_or(|(at, _)| *at <= entry.received_at) {
                newest = Some((entry.received_at, entry.mail));
            }
        }
        Ok(newest.map(|(_, mail)| mail))
    }

    /// Returns the mails of the conversation, or else those that the mail answers.
    async fn related(&self, mail: &Mail) -> Result<Vec<MailId>, Error> {
        if let Some(conversation) = &mail.thread {
            return Ok(self.conversation(conversation).load().await?.1);
        }
        let mut found = Vec::new();
        for message_id in mail.references.iter().rev().take(MAX_REFERENCES) {
            found.extend(self.with_message_id(message_id).await?.map(|entry| entry.mail));
        }
        Ok(found)
    }

    fn conversation(&self, conversation: &MailThreadId) -> TypedRegister<Vec<MailId>> {
        self.register(&self.key("conversation", conversation.as_str()))
    }
}
