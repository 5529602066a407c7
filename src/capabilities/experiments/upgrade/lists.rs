//! The inclusion and exclusion lists of an experiment, in the formats of both versions.
//!
//! From 6.3 on an experiment can have several of each, with their own endpoints. Before, it has one of
//! each, as a part of the experiment. Both formats are read as a vector.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// The two kinds of list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// People who take part.
    Inclusion,
    /// People who are excluded.
    Exclusion,
}

impl Side {
    /// Both sides.
    pub const BOTH: [Self; 2] = [Self::Inclusion, Self::Exclusion];

    /// Returns the name of the field in an experiment.
    pub fn field(self) -> &'static str {
        match self {
            Self::Inclusion => "experimentSegmentInclusion",
            Self::Exclusion => "experimentSegmentExclusion",
        }
    }

    /// Returns the path of the endpoint, from 6.3 on.
    pub fn path(self) -> &'static str {
        match self {
            Self::Inclusion => "/experiments/inclusionList",
            Self::Exclusion => "/experiments/exclusionList",
        }
    }
}

/// One list with its members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberList {
    /// The id of its segment.
    pub segment: String,
    /// The name.
    pub name: String,
    /// The description.
    pub description: String,
    /// The kind of members: `Individual`, a type of group, or `Segment`.
    pub list_type: Option<String>,
    /// Users.
    pub users: Vec<String>,
    /// Groups: type and id.
    pub groups: Vec<(String, String)>,
    /// Shared segments.
    pub sub_segments: Vec<SharedSegment>,
}

/// A segment that several lists share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedSegment {
    /// The id.
    pub id: String,
    /// The name.
    pub name: String,
}

impl MemberList {
    /// Returns true if the list has no members.
    pub fn is_empty(&self) -> bool {
        self.users.is_empty() && self.groups.is_empty() && self.sub_segments.is_empty()
    }
}

/// Reads an array of lists, a single list, or no list.
pub(super) fn lists<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<MemberList>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Array(links) => links.iter().filter_map(read).collect(),
        link => read(&link).into_iter().collect(),
    })
}

/// Reads one list. Links in search results lack members and are skipped.
fn read(link: &Value) -> Option<MemberList> {
    let segment = link.get("segment").filter(|segment| segment.is_object())?;
    let text = |of: &Value, key: &str| of[key].as_str().unwrap_or_default().to_owned();
    let each = |key: &str| segment[key].as_array().into_iter().flatten();
    Some(MemberList {
        segment: text(segment, "id"),
        name: text(segment, "name"),
        description: text(segment, "description"),
        list_type: segment["listType"].as_str().map(str::to_owned),
        users: each("individualForSegment").map(|user| text(user, "userId")).collect(),
        groups: each("groupForSegment").map(|group| (text(group, "type"), text(group, "groupId"))).collect(),
        sub_segments: each("subSegments")
            .map(|part| SharedSegment { id: text(part, "id"), name: text(part, "name") })
            .collect(),
    })
}
