//! The refusals of factorial designs.

use countersign_core::reply::{Reply, Text};

use super::refusals::typed;

/// An example of factors, as people write them.
const EXAMPLE: &str = "hints: none, text; feedback: now, later";

/// Returns the question for the factors if none are given.
pub fn which_factors() -> String {
    format!("Which factors does it vary, and which levels does each have? For example {EXAMPLE}.")
}

/// Says that a factor cannot have this name.
pub fn bad_factor(factor: &str, why: &str) -> Reply {
    Reply::text(Text::new().plain("The factor “").bold(typed(factor)).plain(format!("” can't be used: {why}.")))
}

/// Says that a level cannot have this name.
pub fn bad_level(level: &str, factor: &str, why: &str) -> Reply {
    let text = Text::new().plain("The level “").bold(typed(level)).plain("” of “").bold(typed(factor));
    Reply::text(text.plain(format!("” can't be used: {why}.")))
}

/// Says that a factor has only one level.
pub fn too_few_levels(factor: &str) -> Reply {
    Reply::text(Text::new().plain("The factor “").bold(typed(factor)).plain("” needs two levels or more."))
        .hint(format!("Give the factors again, for example {EXAMPLE}."))
}

/// Says that a single factor has no combinations.
pub fn one_factor(factor: &str) -> Reply {
    let text = Text::new().plain("A factorial design combines two factors or more; “").bold(typed(factor));
    Reply::text(text.plain("” alone is a plain comparison."))
        .hint("Name a second factor, or give its levels as conditions of an ordinary experiment.")
}

/// Says that the factors have more combinations than a card can show.
pub fn too_many_combinations(combinations: usize, most: usize) -> Reply {
    Reply::text(format!(
        "These factors make {combinations} combinations. The limit is {most}, so that one card can show them all."
    ))
    .hint("Use fewer factors or levels.")
}

/// Says that a condition cannot be added to a factorial design.
pub fn no_new_combination(code: &str, name: &str, codes: &[String]) -> Reply {
    let text =
        Text::new().plain("“").bold(name).plain("” is factorial: its conditions are combinations of its factors, ");
    let text = text.plain("and “").bold(typed(code)).plain(format!("” is none of these: {}.", codes.join(", ")));
    Reply::text(text).hint("I can change weights and leave out combinations, but I can't add any.")
}
