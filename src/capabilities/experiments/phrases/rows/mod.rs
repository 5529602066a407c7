//! The phrases of experiments: a row for each thing that can be wished, by what it does.

mod design;
mod status;

use crate::understanding::intents::Intent;

/// All rows.
pub(super) const ALL: &[&[Intent]] = &[status::ROWS, design::ROWS];
