//! The phrases of experiments: a row for each thing that can be wished, by what it does.

mod design;
mod status;

use super::intents::Intent;

/// All rows.
pub(super) const TABLE: &[&[Intent]] = &[status::ROWS, design::ROWS];
