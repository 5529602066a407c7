//! Problems with the settings.

use std::fmt;

/// A wrong setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The key of the setting or the variable, such as `server.port` or `SLACK_BOT_TOKEN`.
    pub key: String,
    /// A description of the problem and of what would be right.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.what)
    }
}

/// All wrong settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct Problems(pub Vec<Problem>);
