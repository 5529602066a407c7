//! Every sentence about experiments that people read.
//!
//! [`answers`], [`lists`], [`details`], [`contexts`], [`knowledge`] and [`users`] draw what the tools read; [`refusals`]
//! says why something is not done and what can be done instead, [`factorial`] the same of factors; [`cautions`] are the
//! warnings on cards; [`outcomes`] says what became of a change, [`testing`] and [`consistency`] what came of a test.
//! Names of things are marked as names, so that they are escaped where they are drawn. What a platform said is quoted
//! shortened and as code.

pub mod answers;
pub mod cautions;
pub mod consistency;
pub mod contexts;
pub mod details;
pub mod factorial;
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

    /// The words of a reply, then its buttons: `[label → what it says]`.
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
