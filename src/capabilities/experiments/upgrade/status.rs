//! The statuses of an experiment, under both sets of names.
//!
//! Since 6.3 three of them have both a stored and a displayed name, and it depends on the call which
//! one an answer uses. Both are read as the same [`Status`]. Requests use the stored name, which
//! every version accepts.

use serde::{Deserialize, Deserializer, Serialize};

/// The status of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// Unused by the server.
    Draft,
    /// Being designed; nothing is assigned.
    Inactive,
    /// Assigned only to registered preview users.
    Preview,
    /// Waiting for its scheduled start.
    Scheduled,
    /// Assigns and enrols. Shown as `running`.
    Enrolling,
    /// Enrols nobody new; the post-experiment rule applies. Shown as `paused`.
    EnrollmentComplete,
    /// Assigns nothing. Shown as `completed`.
    Cancelled,
    /// Archived; its results are kept.
    Archived,
    /// An unknown status.
    Other,
}

impl Status {
    /// Every known status.
    pub const ALL: [Self; 8] = [
        Self::Draft,
        Self::Inactive,
        Self::Preview,
        Self::Scheduled,
        Self::Enrolling,
        Self::EnrollmentComplete,
        Self::Cancelled,
        Self::Archived,
    ];

    /// Returns the status with that name, from either set.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.stored() == name || status.web_name() == name)
    }

    /// Returns the stored name; every version accepts it.
    pub fn stored(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Inactive => "inactive",
            Self::Preview => "preview",
            Self::Scheduled => "scheduled",
            Self::Enrolling => "enrolling",
            Self::EnrollmentComplete => "enrollmentComplete",
            Self::Cancelled => "cancelled",
            Self::Archived => "archived",
            Self::Other => "unknown",
        }
    }

    /// Returns the name in the web interface of 6.3 and later.
    pub fn web_name(self) -> &'static str {
        match self {
            Self::Enrolling => "running",
            Self::EnrollmentComplete => "paused",
            Self::Cancelled => "completed",
            other => other.stored(),
        }
    }

    /// Returns the status as people say it: the name in the web interface, except for a cancelled
    /// experiment, which has not completed anything.
    pub fn display(self) -> String {
        match self {
            Self::Cancelled => self.stored(),
            other => other.web_name(),
        }
        .to_owned()
    }
}

impl Serialize for Status {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.stored())
    }
}

impl<'de> Deserialize<'de> for Status {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Ok(Self::parse(&name).unwrap_or(Self::Other))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_sets_of_names_mean_the_same() {
        for (stored, shown) in [("enrolling", "running"), ("enrollmentComplete", "paused"), ("cancelled", "completed")]
        {
            assert_eq!(Status::parse(stored), Status::parse(shown));
            assert_eq!(Status::parse(shown).unwrap().stored(), stored);
        }
    }

    #[test]
    fn every_status_survives_a_round_trip() {
        for status in Status::ALL {
            let written = serde_json::to_value(status).unwrap();
            assert_eq!(serde_json::from_value::<Status>(written).unwrap(), status);
        }
        assert_eq!(serde_json::from_value::<Status>(json!("frozen")).unwrap(), Status::Other);
    }

    #[test]
    fn people_see_the_names_on_the_screen() {
        assert_eq!(Status::EnrollmentComplete.display(), "paused");
        assert_eq!(Status::Inactive.display(), "inactive");
    }
}
