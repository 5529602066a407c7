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

/// The names of a status, and the verbs that ask for it. All tables of words read these; the sentences in
/// `phrases/lines.txt` have the verbs' other forms, and the glossary says what a status means.
struct Names {
    /// The stored name; every version accepts it.
    stored: &'static str,
    /// The name in the web interface of 6.3 and later.
    web: &'static str,
    /// Other words for an experiment in this status.
    words: &'static [&'static str],
    /// Words that people use of a list only. They could mean several statuses in a request for a change: “finish” stops or
    /// cancels.
    of_lists: &'static [&'static str],
    /// The verbs that ask for this status, the usual one first.
    verbs: &'static [Verb],
}

/// A verb that asks for a status.
#[derive(Debug)]
pub struct Verb {
    /// The verb that the bot uses, such as `start`.
    pub name: &'static str,
    /// Its past participle, such as `started`.
    pub participle: &'static str,
    /// Other verbs of the same meaning.
    synonyms: &'static [&'static str],
}

impl Verb {
    const fn new(name: &'static str, participle: &'static str, synonyms: &'static [&'static str]) -> Self {
        Self { name, participle, synonyms }
    }
}

/// The names of each status, in the order of [`Status::ALL`], and those of an unknown one.
const NAMES: [Names; 9] = [
    Names { stored: "draft", web: "draft", words: &[], of_lists: &[], verbs: &[] },
    Names {
        stored: "inactive",
        web: "inactive",
        words: &[],
        of_lists: &["drafts"],
        verbs: &[Verb::new("unschedule", "unscheduled", &[]), Verb::new("deactivate", "deactivated", &[])],
    },
    Names { stored: "preview", web: "preview", words: &[], of_lists: &[], verbs: &[] },
    Names {
        stored: "scheduled",
        web: "scheduled",
        words: &[],
        of_lists: &[],
        verbs: &[Verb::new("schedule", "scheduled", &[])],
    },
    Names {
        stored: "enrolling",
        web: "running",
        words: &["active", "live"],
        of_lists: &[],
        verbs: &[
            Verb::new("start", "started", &["launch", "begin", "run", "enroll", "enrol"]),
            Verb::new("resume", "resumed", &["restart", "unpause"]),
        ],
    },
    Names {
        stored: "enrollmentComplete",
        web: "paused",
        words: &["enrolmentcomplete"],
        of_lists: &[],
        verbs: &[Verb::new("stop", "stopped", &["halt"]), Verb::new("pause", "paused", &["suspend"])],
    },
    Names {
        stored: "cancelled",
        web: "completed",
        words: &["canceled"],
        of_lists: &["finished"],
        verbs: &[Verb::new("cancel", "cancelled", &["abort"])],
    },
    Names {
        stored: "archived",
        web: "archived",
        words: &[],
        of_lists: &[],
        verbs: &[Verb::new("archive", "archived", &[])],
    },
    Names { stored: "unknown", web: "unknown", words: &[], of_lists: &[], verbs: &[] },
];

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

    /// The statuses that people ask for, in the order in which they are offered.
    pub const REQUESTED: [Self; 6] =
        [Self::Enrolling, Self::EnrollmentComplete, Self::Scheduled, Self::Inactive, Self::Cancelled, Self::Archived];

    /// Returns the status with that name, from either set.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.stored() == name || status.web_name() == name)
    }

    /// Returns the status that a word in a request for a change names, or a verb asks for. “Stop” means the reversible
    /// status.
    pub fn asked_for(words: &str) -> Option<Self> {
        let word: String = words.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
        Self::ALL.into_iter().find(|status| status.is_called(&word) || status.verb(&word).is_some())
    }

    /// Returns the status that a word in lower case names in a request for a list.
    pub fn of_list(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.is_called(word) || status.names().of_lists.contains(&word))
    }

    /// Returns the name of a status that a misspelled word probably means.
    pub fn similar_name(word: &str) -> Option<&'static str> {
        let word = word.trim().to_lowercase();
        let most = if word.len() > 6 { 2 } else { 1 };
        let names = Self::REQUESTED.into_iter().flat_map(|status| {
            let stopped =
                status.verbs().iter().map(|verb| verb.participle).filter(move |_| status == Self::EnrollmentComplete);
            [status.web_name(), status.stored()].into_iter().chain(stopped)
        });
        let is_word = |name: &&str| name.chars().all(char::is_lowercase);
        names.filter(is_word).find(|name| strsim::damerau_levenshtein(name, &word) <= most)
    }

    /// Returns true if the word in lower case is an adjective for an experiment in this status.
    fn is_called(self, word: &str) -> bool {
        let Names { stored, web, words, verbs, .. } = self.names();
        stored.to_lowercase() == word
            || *web == word
            || words.contains(&word)
            || verbs.iter().any(|verb| verb.participle == word)
    }

    /// Returns true if an experiment that gets this status starts, now or later.
    pub const fn is_start(self) -> bool {
        matches!(self, Self::Enrolling | Self::Scheduled)
    }

    /// Returns true if users may have a condition of an experiment in this status.
    pub const fn is_live(self) -> bool {
        matches!(self, Self::Enrolling | Self::EnrollmentComplete)
    }

    /// Returns the verb of that name, or with that synonym.
    pub fn verb(self, word: &str) -> Option<&'static Verb> {
        self.verbs().iter().find(|verb| verb.name == word || verb.synonyms.contains(&word))
    }

    /// Returns the verbs that ask for this status, the usual one first.
    pub const fn verbs(self) -> &'static [Verb] {
        self.names().verbs
    }

    const fn names(self) -> &'static Names {
        &NAMES[self as usize]
    }

    /// Returns the stored name; every version accepts it.
    pub const fn stored(self) -> &'static str {
        self.names().stored
    }

    /// Returns the name in the web interface of 6.3 and later.
    pub const fn web_name(self) -> &'static str {
        self.names().web
    }

    /// Returns the status as people say it: the name in the web interface, except for a cancelled
    /// experiment, which has not completed anything.
    pub const fn display(self) -> &'static str {
        match self {
            Self::Cancelled => self.stored(),
            other => other.web_name(),
        }
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
    fn the_table_is_in_the_order_of_the_statuses() {
        for status in Status::ALL {
            assert_eq!(status.stored().to_lowercase(), format!("{status:?}").to_lowercase());
        }
    }

    #[test]
    fn people_use_both_sets_of_names_and_verbs() {
        for words in ["start", "Resume", "running", "enrolling"] {
            assert_eq!(Status::asked_for(words), Some(Status::Enrolling), "{words}");
        }
        for words in ["stop", "paused", "enrollmentComplete", "enrollment complete", "enrollment_complete"] {
            assert_eq!(Status::asked_for(words), Some(Status::EnrollmentComplete), "{words}");
        }
        for words in ["cancel", "cancelled", "completed"] {
            assert_eq!(Status::asked_for(words), Some(Status::Cancelled), "{words}");
        }
        for could_mean_either in ["finish", "finished", "end"] {
            assert_eq!(Status::asked_for(could_mean_either), None, "{could_mean_either}");
        }
        assert_eq!(Status::of_list("finished"), Some(Status::Cancelled));
    }

    #[test]
    fn people_see_the_names_on_the_screen() {
        assert_eq!(Status::EnrollmentComplete.display(), "paused");
        assert_eq!(Status::Inactive.display(), "inactive");
    }
}
