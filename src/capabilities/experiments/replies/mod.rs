//! All texts about experiments that people read.
//!
//! [`answers`], [`lists`], [`details`], [`contexts`], [`knowledge`] and [`users`] show the answers of
//! the tools, [`aspects`] one part of an answer, [`compared`] two of them, and [`enrollment`] the users over time.
//! [`refusals`] gives the reason of a refusal and an alternative, and [`factorial`] does so
//! for factors. [`cautions`] has the warnings on cards; [`reach`] and [`split`] have the lines about the
//! affected people and the expected split. [`outcomes`] reports the end of a change, [`testing`] and
//! [`consistency`] that of a test.
//!
//! Names are marked as names, so that they are escaped when they are rendered. Messages of the platform
//! are quoted as code and shortened.

pub mod answers;
pub mod aspects;
pub mod cautions;
pub mod compared;
pub mod consistency;
pub mod contexts;
pub mod details;
pub(crate) mod enrollment;
pub mod factorial;
mod given;
pub mod knowledge;
pub mod lists;
pub mod outcomes;
pub mod reach;
pub mod refusals;
pub mod split;
pub mod testing;
pub mod users;

#[cfg(test)]
pub(crate) mod tests {
    use countersign_core::reply::Reply;

    /// Returns the words of a reply, then its buttons as `[label → request]`.
    pub(crate) fn read(reply: &Reply) -> String {
        let buttons = reply.choices.iter().map(|choice| {
            if choice.label == choice.says {
                format!("[{}]", choice.label)
            } else {
                format!("[{} → {}]", choice.label, choice.says)
            }
        });
        std::iter::once(reply.words()).chain(buttons).collect::<Vec<_>>().join("\n")
    }
}
