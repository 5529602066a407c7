//! Reads the files of a message before its thread gets the message.
//!
//! Only text is read. A message that consists of a file, such as one that Slack turned into a snippet because it was too
//! long, says what is in the file. A file beside words, or several, are not read: what is in them is not what the person says.
//! Files that are not read are named in the thread.

use countersign_core::{
    cause,
    reply::{Reply, Text},
};
use countersign_graph::{
    request::reply_in_thread,
    store::{ClaimedInteraction, Error, ThreadMessage},
};
use countersign_slack::{
    client_error,
    file::{Content, File, TOO_LONG},
};

use super::{Inbox, retry_later};
use crate::{
    approvals::{completing, inbox::InboxAnswer},
    runtime::interaction::MessageWithFiles,
};

/// The maximum length of the contents of all files of a message together, in characters: that of a message in Slack.
const MAX_CHARS: usize = 40_000;

/// The maximum size of a file, in bytes. A character has up to 4.
const MAX_BYTES: usize = 4 * MAX_CHARS;

/// The number of attempts to read the files of a message, while Slack isn't answering. These last about half a minute.
const ATTEMPTS: u32 = 5;

/// The reasons why a file is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unread {
    NotText,
    TooLong,
    NotAlone,
    Gone,
    NotAllowed,
    NoAnswer,
}

impl Inbox {
    /// Passes a message with the contents of its files on to its thread.
    pub(super) async fn read_files(
        &self,
        message: &MessageWithFiles,
        claimed: &ClaimedInteraction,
    ) -> Result<InboxAnswer, Error> {
        let deps = &self.0;
        let MessageWithFiles { thread, by, text, ts, addressed, files } = message;
        let saved = deps.store.load(thread).await?;
        if saved.is_none() && !addressed {
            return Ok(InboxAnswer::NoAnswer); // a conversation between people, without the bot
        }
        let memory = deps.approvals.memories.read(saved);
        // What others post between them is none of the bot's business, so it is not read.
        let is_expected = *addressed || memory.is_some_and(|memory| memory.works_for.as_ref() == Some(by));
        let (mut read, mut unread) = (Vec::new(), Vec::new());
        if is_expected {
            let mut room = MAX_CHARS;
            for file in files {
                // What is in a file beside words is not what the person says, and may ask for anything.
                let content = match text.trim().is_empty() && files.len() == 1 {
                    true => self.content(file).await,
                    false => Err((file.name.clone(), Unread::NotAlone)),
                };
                match content {
                    Ok((_, content)) if content.chars().count() > room => {
                        unread.push((file.name.clone(), Unread::TooLong))
                    }
                    Ok((name, content)) => {
                        room -= content.chars().count();
                        read.push((name, content));
                    }
                    Err((_, Unread::NoAnswer)) if claimed.attempts < ATTEMPTS => {
                        return Err(retry_later("a file of a message was not read"));
                    }
                    Err(why) => unread.push(why),
                }
            }
        }
        let mut changes = completing(thread, claimed.seq);
        let said = words(text, &read);
        let nothing = said.is_empty() && !unread.is_empty();
        if !unread.is_empty() {
            let reply = not_read(&unread, nothing);
            changes.outbox.push(reply_in_thread(format!("unread:{ts}"), deps.clock.now(), reply));
        }
        if !nothing {
            let (by, ts, addressed) = (by.clone(), ts.clone(), *addressed);
            changes.messages.push(ThreadMessage::Said { by, text: said, ts, addressed, request: None });
        }
        deps.store.apply(&changes).await?;
        Ok(InboxAnswer::Counted(thread.clone()))
    }

    /// Returns the name and the content of a file.
    async fn content(&self, file: &File) -> Result<(String, String), (String, Unread)> {
        let slack = &self.0.slack;
        let looked_up;
        let file = match &file.content {
            Content::LookUp => {
                looked_up = slack.file_info(&file.id).await.map_err(|error| (file.name.clone(), why(&error)))?;
                &looked_up
            }
            _ => file,
        };
        let unread = |why| Err((file.name.clone(), why));
        match &file.content {
            Content::Text(_) if usize::try_from(file.size).is_ok_and(|size| size > MAX_BYTES) => {
                unread(Unread::TooLong)
            }
            Content::Text(address) => match slack.read_file(address, MAX_BYTES).await {
                Ok(content) => Ok((file.name.clone(), content)),
                Err(error) => {
                    tracing::warn!(error = cause::chain(&error), "A file of a message was not read");
                    unread(why(&error))
                }
            },
            Content::Other => unread(Unread::NotText),
            Content::LookUp => unread(Unread::Gone),
        }
    }
}

fn why(error: &client_error::Error) -> Unread {
    use client_error::Error;
    match error {
        Error::Refused { code } if code == TOO_LONG => Unread::TooLong,
        Error::Decode => Unread::NotText,
        Error::MissingScope { .. } => Unread::NotAllowed,
        Error::Gone { .. } => Unread::Gone,
        Error::Refused { code } if code == "file_not_found" || code == "file_deleted" => Unread::Gone,
        Error::Refused { .. } => Unread::NotAllowed,
        Error::RateLimited { .. } | Error::NoAnswer(_) | Error::NotSent | Error::Auth { .. } => Unread::NoAnswer,
    }
}

/// Returns the words of a message, which may be those of its only file.
fn words(text: &str, files: &[(String, String)]) -> String {
    match (text.trim(), files) {
        ("", [(_, content)]) => content.trim().to_owned(),
        (text, _) => text.to_owned(),
    }
}

/// Returns the reply about files that were not read; `nothing` is true if there is nothing else to answer.
fn not_read(unread: &[(String, Unread)], nothing: bool) -> Reply {
    let mut text = Text::new();
    for (nth, (name, why)) in unread.iter().enumerate() {
        if nth > 0 {
            text = text.plain(" ");
        }
        text = match name.as_str() {
            "" => text.plain("I couldn't read the file"),
            name => text.plain("I couldn't read ").code(name),
        };
        text = text.plain(match why {
            Unread::NotText => ": it isn't a text file.".to_owned(),
            Unread::TooLong => format!(": I read up to {MAX_CHARS} characters of text with a message."),
            Unread::NotAlone => ": I read a file only if it is the whole message.".to_owned(),
            Unread::Gone => ": Slack says it isn't there.".to_owned(),
            Unread::NotAllowed => ": Slack doesn't let me. The app may lack the scope files:read.".to_owned(),
            Unread::NoAnswer => ": Slack isn't answering.".to_owned(),
        });
    }
    match nothing {
        true => Reply::text(text).hint("Tell me in words what you need, or attach it as text."),
        false => Reply::text(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, content: &str) -> (String, String) {
        (name.to_owned(), content.to_owned())
    }

    #[test]
    fn a_file_alone_is_the_message() {
        assert_eq!(words("", &[file("Untitled", "start Math Hints\n")]), "start Math Hints");
        assert_eq!(words(" see this ", &[]), "see this");
    }

    #[test]
    fn every_file_that_is_not_read_is_named() {
        let unread = [("a.png".to_owned(), Unread::NotText), (String::new(), Unread::NotAllowed)];
        assert_eq!(
            not_read(&unread, true).words(),
            "I couldn't read a.png: it isn't a text file. I couldn't read the file: Slack doesn't let me. The app may lack \
             the scope files:read.\nTell me in words what you need, or attach it as text."
        );
    }
}
