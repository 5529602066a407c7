//! What only has a meaning in its place: “no”, “stop it”, and what is said about a question or a card.

pub mod corrections;
pub(crate) mod follow_ups;
pub(crate) mod refusals;
pub(crate) mod stop_words;
