//! Reads the files of a message before its thread gets the message.
//!
//! Only text is read. A message that consists of a snippet, such as one that Slack made of a message that was too long, says
//! what is in it. Any other file is data, and only its values are used: in the place of “these” in the words beside it, or
//! as an answer if there are no words ([`super::attached`]). Files that are not used are named in the thread.

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

use super::{
    Inbox,
    attached::{self, Unused},
    retry_later,
};
use crate::{
    approvals::{completing, inbox::InboxAnswer},
    runtime::interaction::MessageWithFiles,
};

/// The maximum length of a message with the values of its file, in characters: that of a message in Slack.
const MAX_CHARS: usize = 40_000;

/// The maximum size of a file, in bytes: more than that many characters of any kind.
const MAX_BYTES: usize = 256 * 1024;

/// The number of attempts to read the files of a message, while Slack isn't answering. These last about half a minute.
const ATTEMPTS: u32 = 5;

/// The reasons why a file is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unread {
    NotText,
    NotDecoded,
    TooLarge,
    TooLong,
    NotAlone,
    NoList,
    NoPlace,
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
        let (mut said, mut unread) = (text.trim().to_owned(), Vec::new());
        match files.as_slice() {
            _ if !is_expected => {}
            [file] => match self.content(file).await.and_then(|read| with_file(text, read)) {
                Ok(words) => said = words,
                Err((_, Unread::NoAnswer)) if claimed.attempts < ATTEMPTS => {
                    return Err(retry_later("a file of a message was not read"));
                }
                Err(why) => unread.push(why),
            },
            several => unread.extend(several.iter().map(|file| (file.name.clone(), Unread::NotAlone))),
        }
        let mut changes = completing(thread, claimed.seq);
        // Without the file, “these” would be something else, such as what the bot listed last.
        let needs_file = unread.iter().any(|(name, _)| attached::stands_for(text, name));
        let nothing = !unread.is_empty() && (said.is_empty() || needs_file);
        if !unread.is_empty() {
            let reply = not_read(&unread);
            let reply = match (nothing, needs_file) {
                (false, _) => reply,
                (true, false) => reply.hint("Tell me in words what you need."),
                (true, true) => {
                    reply.hint("So I did nothing. Attach it as a list, or write the values in your message.")
                }
            };
            changes.outbox.push(reply_in_thread(format!("unread:{ts}"), deps.clock.now(), reply));
        }
        if !nothing {
            let (by, ts, addressed) = (by.clone(), ts.clone(), *addressed);
            changes.messages.push(ThreadMessage::Said { by, text: said, ts, addressed, request: None });
        }
        deps.store.apply(&changes).await?;
        Ok(InboxAnswer::Counted(thread.clone()))
    }

    /// Returns the content of a file.
    async fn content(&self, file: &File) -> Result<ReadFile, (String, Unread)> {
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
            Content::Text(_) | Content::Snippet(_) if file.size > MAX_BYTES as u64 => unread(Unread::TooLarge),
            Content::Text(address) | Content::Snippet(address) => match slack.read_file(address, MAX_BYTES).await {
                Ok(content) => {
                    let is_snippet = matches!(file.content, Content::Snippet(_));
                    Ok(ReadFile { name: file.name.clone(), content, is_snippet })
                }
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
        Error::Refused { code } if code == TOO_LONG => Unread::TooLarge,
        Error::Decode => Unread::NotDecoded,
        Error::MissingScope { .. } => Unread::NotAllowed,
        Error::Gone { .. } => Unread::Gone,
        Error::Refused { code } if code == "file_not_found" || code == "file_deleted" => Unread::Gone,
        Error::Refused { .. } => Unread::NotAllowed,
        Error::RateLimited { .. } | Error::NoAnswer(_) | Error::NotSent | Error::Auth { .. } => Unread::NoAnswer,
    }
}

/// A file that was read.
struct ReadFile {
    name: String,
    content: String,
    is_snippet: bool,
}

/// Returns the words of a message with its only file.
fn with_file(text: &str, file: ReadFile) -> Result<String, (String, Unread)> {
    let ReadFile { name, content, is_snippet } = file;
    let said = match text.trim() {
        "" if is_snippet => Ok(content.trim().to_owned()),
        "" => attached::values(&content).ok_or(Unread::NoList),
        text => attached::put(text, &name, &content).map_err(|unused| match unused {
            Unused::NoList => Unread::NoList,
            Unused::NoPlace => Unread::NoPlace,
        }),
    };
    match said {
        Ok(said) if said.chars().count() > MAX_CHARS => Err((name, Unread::TooLong)),
        said => said.map_err(|why| (name, why)),
    }
}

/// Returns the reply about files that were not used.
fn not_read(unread: &[(String, Unread)]) -> Reply {
    let mut text = Text::new();
    for (nth, (name, why)) in unread.iter().enumerate() {
        if nth > 0 {
            text = text.plain(" ");
        }
        text = text.plain(match why {
            Unread::NotAlone | Unread::NoList | Unread::NoPlace => "I didn't use ",
            _ => "I couldn't read ",
        });
        text = match name.as_str() {
            "" => text.plain("the file"),
            name => text.code(name),
        };
        text = text.plain(match why {
            Unread::NotText => ": it isn't a text file.".to_owned(),
            Unread::NotDecoded => ": what is in it isn't text in UTF-8 or UTF-16. Save it as text or CSV.".to_owned(),
            Unread::TooLarge => format!(": I read files of up to {} KB.", MAX_BYTES / 1024),
            Unread::TooLong => format!(": with it, your message has more than {MAX_CHARS} characters."),
            Unread::NotAlone => ": I use one file with a message.".to_owned(),
            Unread::NoList => {
                ": it isn't a list. I use files with one value a line, or a name and a number.".to_owned()
            }
            Unread::NoPlace => ": write “these” where the values in it belong in your message.".to_owned(),
            Unread::Gone => ": Slack says it isn't there.".to_owned(),
            Unread::NotAllowed => ": Slack doesn't let me. The app may lack the scope files:read.".to_owned(),
            Unread::NoAnswer => ": Slack isn't answering.".to_owned(),
        });
    }
    Reply::text(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(content: &str, is_snippet: bool) -> ReadFile {
        ReadFile { name: "ids.csv".to_owned(), content: content.to_owned(), is_snippet }
    }

    #[test]
    fn only_a_snippet_alone_says_anything() {
        let order = "start Math Hints\n";
        assert_eq!(with_file("", file(order, true)).as_deref(), Ok("start Math Hints"));
        assert_eq!(with_file("", file(order, false)).as_deref(), Ok("“start Math Hints”"));
        assert_eq!(with_file("exclude these", file(order, true)).as_deref(), Ok("exclude “start Math Hints”"));
        let unused = |why| Err(("ids.csv".to_owned(), why));
        assert_eq!(with_file("hello", file(order, true)), unused(Unread::NoPlace));
        assert_eq!(with_file("", file("To: all, Re: tests, Hi", false)).as_deref(), Ok("“To: all”, “Re: tests”, “Hi”"));
        assert_eq!(with_file("", file(&"u1\n".repeat(11_000), false)), unused(Unread::TooLong));
    }

    #[test]
    fn every_file_that_is_not_read_is_named() {
        let unread = [("a.png".to_owned(), Unread::NotText), (String::new(), Unread::NotAllowed)];
        assert_eq!(
            not_read(&unread).words(),
            "I couldn't read a.png: it isn't a text file. I couldn't read the file: Slack doesn't let me. The app may lack \
             the scope files:read."
        );
    }
}
