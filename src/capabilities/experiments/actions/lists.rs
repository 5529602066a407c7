//! The members of the inclusion and exclusion lists: as given by a person, in words, and as requests
//! to the platform.
//!
//! A change of a list is stored as the intended members. It may take several requests; if an answer is
//! lost, the remaining requests are derived again from the present members. Shared segments on a list
//! are among its members, by name, and are not changed.

use std::collections::{BTreeMap, BTreeSet};

use countersign_graph::action::PrepareError;
use serde_json::{Value, json};

use super::SendWindow;
use crate::{
    access,
    inputs::MembersInput,
    replies::refusals,
    testing::split::NamedMembers,
    upgrade::{
        client::UpgradeClient,
        error::Error,
        experiment::View,
        lists::{MemberList, SharedSegment, Side},
    },
};

/// Members by kind: `Individual` for users, `Segment` for shared segments, or a type of group.
pub(super) type Members = BTreeMap<String, BTreeSet<String>>;

/// The kind of a list of users.
const USERS: &str = "Individual";

/// The kind of a list of shared segments, which are named by their names.
const SEGMENTS: &str = "Segment";

/// Parses members; `known` are the context's types of groups.
pub(super) fn parse(given: &MembersInput, known: &[String], context: &str) -> Result<Members, PrepareError> {
    let mut members = Members::new();
    let mut add = |kind: String, id: &str| members.entry(kind).or_default().insert(id.trim().to_owned());
    match given {
        MembersInput::ByKind(by_kind) => {
            for (kind, ids) in by_kind.iter().filter(|(kind, _)| *kind != SEGMENTS) {
                let users = ["individual", "individuals", "user", "users"].contains(&kind.to_lowercase().as_str());
                let kind = if users { USERS.to_owned() } else { access::group(known, kind, context)? };
                for id in ids.all() {
                    let id = if users { access::user(&id)? } else { id };
                    add(kind.clone(), &id);
                }
            }
        }
        MembersInput::Words(words) => {
            for word in words.all().iter().flat_map(|words| words.split(',')).map(str::trim) {
                let word = word.strip_prefix("user ").unwrap_or(word);
                match word.split_once([':', ' ']) {
                    Some((kind, id)) if access::group_type(known, kind).is_some() => {
                        add(access::group(known, kind, context)?, id);
                    }
                    Some((kind, _)) if word.contains(' ') => {
                        return Err(access::invalid(refusals::unknown_word("group type", kind, context, known)));
                    }
                    _ => {
                        add(USERS.to_owned(), &access::user(word)?);
                    }
                }
            }
        }
    }
    members.retain(|_, ids| !ids.is_empty());
    Ok(members)
}

/// Returns the present members of these lists.
pub(super) fn members_of(lists: &[MemberList]) -> Members {
    let mut members = Members::new();
    for list in lists {
        for user in &list.users {
            members.entry(USERS.to_owned()).or_default().insert(user.clone());
        }
        for (kind, id) in &list.groups {
            members.entry(kind.clone()).or_default().insert(id.clone());
        }
        for segment in &list.sub_segments {
            let name = if segment.name.is_empty() { &segment.id } else { &segment.name };
            members.entry(SEGMENTS.to_owned()).or_default().insert(name.clone());
        }
    }
    members
}

/// Returns members with shared segments among them.
pub(super) fn with_segments(members: &Members, segments: &[SharedSegment]) -> Members {
    let list = MemberList { sub_segments: segments.to_vec(), ..MemberList::default() };
    added(members.clone(), members_of(&[list]))
}

/// Returns the shared segments among members.
pub(super) fn segments_of(members: &Members) -> Members {
    members.iter().filter(|(kind, _)| *kind == SEGMENTS).map(|(kind, ids)| (kind.clone(), ids.clone())).collect()
}

/// Returns the members as users and groups, for a draw. The members of segments are not known.
pub(super) fn named_members(members: &Members) -> NamedMembers {
    let mut named = NamedMembers::default();
    for (kind, ids) in members {
        match kind.as_str() {
            USERS => named.users.extend(ids.iter().cloned()),
            SEGMENTS => {}
            kind => named.groups.extend(ids.iter().map(|id| (kind.to_owned(), id.clone()))),
        }
    }
    named
}

/// Returns `members` with `more` added.
pub(super) fn added(mut members: Members, more: Members) -> Members {
    for (kind, ids) in more {
        members.entry(kind).or_default().extend(ids);
    }
    members
}

/// Returns `members` with `fewer` removed.
pub(super) fn removed(mut members: Members, fewer: &Members) -> Members {
    for (kind, ids) in fewer {
        if let Some(present) = members.get_mut(kind) {
            present.retain(|id| !ids.contains(id));
        }
    }
    members.retain(|_, ids| !ids.is_empty());
    members
}

/// Returns true if `now` may be the result of an interrupted change from `before` to `after`.
pub(super) fn is_between(now: &Members, before: &Members, after: &Members) -> bool {
    let none = BTreeSet::new();
    let kinds: BTreeSet<_> = now.keys().chain(before.keys()).chain(after.keys()).collect();
    kinds.into_iter().all(|kind| {
        let [now, before, after] = [now, before, after].map(|members| members.get(kind).unwrap_or(&none));
        now.iter().all(|id| before.contains(id) || after.contains(id))
            && before.intersection(after).all(|id| now.contains(id))
    })
}

/// Returns all members in words: `u1, u2, classId 5B, segment “Pilot teachers”`. A card shortens what is too long for it.
pub(super) fn words(members: &Members) -> String {
    let all = members.iter().flat_map(|(kind, ids)| {
        ids.iter().map(move |id| match kind.as_str() {
            USERS => id.clone(),
            SEGMENTS => format!("segment “{id}”"),
            kind => format!("{kind} {id}"),
        })
    });
    let all: Vec<_> = all.collect();
    if all.is_empty() { "nobody".to_owned() } else { all.join(", ") }
}

/// Sends the requests, from 6.3 on, after which an experiment's lists have exactly the members `to_be`, and these shared
/// segments in addition to those that they have.
pub(super) async fn settle(
    client: &UpgradeClient,
    window: &SendWindow,
    now: &View,
    (side, to_be): (Side, &Members),
    segments: &[SharedSegment],
) -> Result<(), Error> {
    let mut lacking = to_be.clone();
    lacking.remove(SEGMENTS);
    let mut wanted = Vec::new();
    for list in now.lists(side) {
        let mut after = list.clone();
        after.users.retain(|user| keep_on_list(to_be, &mut lacking, USERS, user));
        after.groups.retain(|(kind, id)| keep_on_list(to_be, &mut lacking, kind, id));
        wanted.push((list, after));
    }
    for (kind, ids) in lacking.into_iter().filter(|(_, ids)| !ids.is_empty()) {
        let of_kind = wanted.iter_mut().find(|(list, _)| list.list_type.as_deref() == Some(&kind));
        match of_kind {
            Some((_, after)) => add_members(after, &kind, ids),
            None => {
                let mut list = MemberList { list_type: Some(kind.clone()), ..MemberList::default() };
                list.name = if kind == USERS { "people".to_owned() } else { kind.clone() };
                add_members(&mut list, &kind, ids);
                window.ensure_open()?;
                client.add_list(now.id, side, &list_body(&list, now.context())).await?;
            }
        }
    }
    for (before, after) in wanted.iter().filter(|(before, after)| *before != after) {
        window.ensure_open()?;
        if after.is_empty() {
            client.remove_list(now.id, side, &before.segment).await?;
        } else {
            client.replace_list(now.id, side, &before.segment, &list_body(after, now.context())).await?;
        }
    }
    let has = |segment: &SharedSegment| {
        now.lists(side).iter().flat_map(|list| &list.sub_segments).any(|present| present.id == segment.id)
    };
    let new: Vec<_> = segments.iter().filter(|segment| !has(segment)).cloned().collect();
    if !new.is_empty() {
        let list = MemberList {
            list_type: Some(SEGMENTS.to_owned()),
            name: "segments".to_owned(),
            sub_segments: new,
            ..MemberList::default()
        };
        window.ensure_open()?;
        client.add_list(now.id, side, &list_body(&list, now.context())).await?;
    }
    Ok(())
}

/// Writes the members into an experiment for a server below 6.3, where a list is part of the
/// experiment.
pub(super) fn write(experiment: &mut Value, side: Side, members: &Members) {
    let segment = &mut experiment[side.field()]["segment"];
    let users = members.get(USERS).into_iter().flatten().map(|user| json!({ "userId": user }));
    segment["individualForSegment"] = users.collect();
    let groups = members.iter().filter(|(kind, _)| ![USERS, SEGMENTS].contains(&kind.as_str()));
    let groups = groups.flat_map(|(kind, ids)| ids.iter().map(move |id| json!({ "type": kind, "groupId": id })));
    segment["groupForSegment"] = groups.collect();
}

/// Returns true if a member should stay on the list, and removes it from `lacking`.
fn keep_on_list(to_be: &Members, lacking: &mut Members, kind: &str, id: &str) -> bool {
    if let Some(ids) = lacking.get_mut(kind) {
        ids.remove(id);
    }
    to_be.get(kind).is_some_and(|ids| ids.contains(id))
}

fn add_members(list: &mut MemberList, kind: &str, ids: BTreeSet<String>) {
    match kind {
        USERS => list.users.extend(ids),
        kind => list.groups.extend(ids.into_iter().map(|id| (kind.to_owned(), id))),
    }
}

/// Returns a list in the format of the endpoints. Without a `listType` the platform would hide lists with
/// several kinds of members.
fn list_body(list: &MemberList, context: &str) -> Value {
    let kind = match (&list.list_type, list.groups.first()) {
        (Some(kind), _) => kind.as_str(),
        (None, Some((kind, _))) if list.users.is_empty() => kind.as_str(),
        (None, None) if list.users.is_empty() && !list.sub_segments.is_empty() => SEGMENTS,
        (None, _) => USERS,
    };
    let groups = list.groups.iter().map(|(kind, id)| json!({ "type": kind, "groupId": id }));
    let shared = list.sub_segments.iter().map(|segment| &segment.id);
    let mut body = json!({
        "name": list.name, "description": list.description, "context": context, "type": "private", "listType": kind,
        "userIds": list.users, "groups": groups.collect::<Vec<_>>(), "subSegmentIds": shared.collect::<Vec<_>>(),
    });
    if !list.segment.is_empty() {
        body["id"] = json!(list.segment);
    }
    body
}
