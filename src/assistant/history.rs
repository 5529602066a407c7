//! The conversation in the thread, as far as models need it: the newest messages, and one line for each older turn.
//!
//! Both are bounded in number and in length, so the cost of a turn does not grow with the age of the thread. The thread
//! in Slack remains the full record.

use countersign_core::ids::UserId;
use countersign_model::{Message, Role};
use serde::{Deserialize, Serialize};

/// The maximum number of messages kept.
pub const MAX_LINES: usize = 12;
/// The maximum length of a kept message, in characters.
pub const MAX_LINE_LENGTH: usize = 600;
/// The maximum number of older turns kept as one line each.
pub const MAX_SUMMARIES: usize = 5;
/// The maximum length of such a line, in characters.
pub const MAX_SUMMARY_LENGTH: usize = 120;

/// The newest messages and a summary of older ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct History {
    /// The newest messages, newest last.
    pub lines: Vec<HistoryMessage>,
    /// A line about each older turn, newest last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub summary: Vec<String>,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HistoryMessage {
    /// The turn it belongs to.
    pub turn: u64,
    /// The person who said it; `None`: the bot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<UserId>,
    /// The words, shortened.
    pub text: String,
}

impl History {
    /// Adds a person's message.
    pub fn add_person_message(&mut self, turn: u64, by: &UserId, text: &str) {
        self.push(HistoryMessage { turn, by: Some(by.clone()), text: shorten(text, MAX_LINE_LENGTH) });
    }

    /// Adds a reply of the bot.
    pub fn add_bot_message(&mut self, turn: u64, text: &str) {
        self.push(HistoryMessage { turn, by: None, text: shorten(text, MAX_LINE_LENGTH) });
    }

    fn push(&mut self, line: HistoryMessage) {
        self.lines.push(line);
        while self.lines.len() > MAX_LINES {
            let old = self.lines.remove(0);
            if old.by.is_some() {
                self.summary.push(shorten(&one_line(&old.text), MAX_SUMMARY_LENGTH));
            }
        }
        if self.summary.len() > MAX_SUMMARIES {
            self.summary.drain(..self.summary.len() - MAX_SUMMARIES);
        }
    }

    /// Returns the messages before `turn` for a model: the first is a person's, and speakers alternate.
    pub fn before(&self, turn: u64) -> Vec<Message> {
        let mut spoken: Vec<(Role, String)> = Vec::new();
        for line in self.lines.iter().filter(|line| line.turn < turn) {
            let (role, text) = match &line.by {
                Some(by) => (Role::User, format!("@{by}: {}", line.text)),
                None => (Role::Assistant, line.text.clone()),
            };
            match spoken.last_mut() {
                Some((last, words)) if *last == role => {
                    words.push('\n');
                    words.push_str(&text);
                }
                None if role == Role::Assistant => {}
                _ => spoken.push((role, text)),
            }
        }
        spoken.into_iter().map(|(role, text)| Message::text(role, text)).collect()
    }
}

/// Shortens a text to `longest` characters, with `…` where it was cut.
pub fn shorten(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        None => text.to_owned(),
        Some(_) => {
            let cut: String = text.chars().take(longest.saturating_sub(1)).collect();
            format!("{}…", cut.trim_end())
        }
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn talk(turns: u64) -> History {
        let mut history = History::default();
        for turn in 1..=turns {
            history.add_person_message(turn, &"ana".into(), &format!("question {turn}"));
            history.add_bot_message(turn, &format!("answer {turn}"));
        }
        history
    }

    #[test]
    fn old_turns_become_one_line_each() {
        let history = talk(9);
        assert_eq!(history.lines.len(), MAX_LINES);
        assert_eq!(history.lines[0].text, "question 4");
        assert_eq!(history.summary, ["question 1", "question 2", "question 3"]);
        assert_eq!(talk(600).summary.len(), MAX_SUMMARIES);
    }

    #[test]
    fn a_model_sees_alternating_speakers_beginning_with_a_person() {
        let mut history = talk(7);
        history.lines.remove(0); // begins with an answer now
        history.add_bot_message(7, "and one more thing");
        let messages = history.before(8);
        let roles: Vec<_> = messages.iter().map(|message| message.role).collect();
        assert_eq!(roles[0], Role::User);
        assert!(roles.windows(2).all(|pair| pair[0] != pair[1]), "{roles:?}");
        assert_eq!(history.before(1), []);
    }

    #[test]
    fn cutting_respects_characters() {
        assert_eq!(shorten("für Ana", 4), "für…");
        assert_eq!(shorten("für", 3), "für");
    }
}
