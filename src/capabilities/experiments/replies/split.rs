//! The expected split of newcomers, on cards.

use countersign_core::reply::{Fact, Text};

use crate::testing::split::{Design, Drawn, Split, Who};

/// Returns the line about the split of a new design.
pub fn line(design: &Design) -> Option<Fact> {
    let split = Split::of(design);
    Some(Fact::new(label(design, &split), words(design, &split)?))
}

/// Returns the line about the split before and after a change; `None` if it stays the same.
pub fn changing(before: &Design, after: &Design) -> Option<Fact> {
    let (was, will) = (Split::of(before), Split::of(after));
    let (label_was, label_will) = (label(before, &was), label(after, &will));
    let after = words(after, &will)?;
    // Counts of users cannot be compared with counts of groups.
    let before = words(before, &was).filter(|_| label_was == label_will);
    (before.as_ref() != Some(&after)).then(|| Fact {
        label: label_will,
        before: before.map(Text::from),
        after: Text::from(after),
    })
}

/// Returns the note on the figures: the effect of chance, and the people who are not counted.
pub fn note(design: &Design) -> Option<Text> {
    let mut sentences = Vec::new();
    match Split::of(design) {
        Split::Nobody => return None, // there is a warning
        Split::Everyone | Split::MembersOfGroups => {}
        Split::Drawn(Drawn { who, spread, .. }) => {
            match who {
                Who::NewUsers | Who::NewGroups if spread > 0 => sentences.push(format!(
                    "Simulated with UpGrade's own assignment. 95% of the time, each count lands within ±{spread}."
                )),
                Who::NewUsers | Who::NewGroups => {}
                Who::NamedUsers | Who::NamedGroups => sentences.push(
                    "Only users on the inclusion list are included; their conditions are computed from their IDs."
                        .to_owned(),
                ),
            }
            if matches!(who, Who::NewGroups | Who::NamedGroups) {
                let words =
                    "Everyone in a group gets the same condition, so the split of users depends on the group sizes.";
                sentences.push(words.to_owned());
            }
        }
    }
    if let Some(factor) = &design.strata {
        sentences.push(format!(
            "Assignment is balanced within each value of {factor}, which brings it closer to the weights."
        ));
    }
    if design.only_named && design.unit == "individual" && !design.included.groups.is_empty() {
        sentences.push("Members of the groups on the list are added to that and split by the weights.".to_owned());
    }
    let excluded = design.excluded.users.len() + design.excluded.groups.len();
    if excluded > 0 && !design.only_named {
        sentences.push("Users on the exclusion list get no condition.".to_owned());
    }
    if design.early_stay_out {
        sentences.push("Users who reached its decision points before the start get no condition.".to_owned());
    }
    (!sentences.is_empty()).then(|| Text::from(sentences.join(" ")))
}

fn label(design: &Design, split: &Split) -> String {
    let group = || design.group.clone().unwrap_or_else(|| "group".to_owned());
    match split {
        Split::Everyone | Split::Nobody | Split::MembersOfGroups => "Expected split".to_owned(),
        Split::Drawn(Drawn { who, of, .. }) => match who {
            Who::NewUsers => format!("Of {} new users", thousands(*of)),
            Who::NewGroups => format!("Of {of} new groups ({})", group()),
            Who::NamedUsers if *of == 1 => "Of the 1 user named".to_owned(),
            Who::NamedUsers => format!("Of the {} users named", thousands(*of)),
            Who::NamedGroups if *of == 1 => format!("Of the 1 group named ({})", group()),
            Who::NamedGroups => format!("Of the {of} groups named ({})", group()),
        },
    }
}

/// Returns the split in words; `None` if there is a warning instead.
fn words(design: &Design, split: &Split) -> Option<String> {
    Some(match split {
        Split::Nobody => return None,
        Split::Everyone => {
            let how = match design.order.as_deref() {
                Some("random round robin") => "in turn, from a random one",
                Some("ordered round robin") => "in turn, from the first",
                _ => "in random order",
            };
            format!("none: each user gets every condition, {how}")
        }
        Split::MembersOfGroups => match design.unit.as_str() {
            "group" => "by the weights, assigned once for each group on the list".to_owned(),
            _ => "by the weights, however many belong to the groups on the list".to_owned(),
        },
        Split::Drawn(Drawn { counts, elsewhere, .. }) => {
            let each = design.conditions.iter().zip(counts);
            let each: Vec<_> = each.map(|((code, _), count)| format!("{} {code}", thousands(*count))).collect();
            let rest = match elsewhere {
                0 => String::new(),
                more => format!("; {} go to other experiments at this decision point", thousands(*more)),
            };
            format!("about {}{rest}", each.join(", "))
        }
    })
}

/// Formats a number with a thousands separator: `1,000`.
fn thousands(number: u32) -> String {
    match number {
        0..=999 => number.to_string(),
        _ => format!("{},{:03}", number / 1_000, number % 1_000),
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::testing::split::NamedMembers;

    fn design(unit: &str, weights: [f64; 2]) -> Design {
        Design {
            experiment: "419f9e2f-875c-4688-9bb1-abb74dc0c280".to_owned(),
            conditions: vec![("control".to_owned(), weights[0]), ("variant".to_owned(), weights[1])],
            unit: unit.to_owned(),
            group: (unit == "group").then(|| "classId".to_owned()),
            order: None,
            strata: None,
            only_named: false,
            included: NamedMembers::default(),
            excluded: NamedMembers::default(),
            early_stay_out: false,
            rivals: 0,
        }
    }

    fn lines(fact: Option<Fact>, note: Option<Text>) -> String {
        let fact = fact.map(|fact| {
            let before = fact.before.map(|before| format!("{} → ", before.words())).unwrap_or_default();
            format!("{}: {before}{}", fact.label, fact.after.words())
        });
        let note = note.map(|note| note.words());
        [fact, note].into_iter().map(|line| line.unwrap_or_else(|| "–".to_owned())).collect::<Vec<_>>().join("\n")
    }

    fn card(design: &Design) -> String {
        lines(line(design), note(design))
    }

    #[test]
    fn a_card_says_how_newcomers_split() {
        assert_snapshot!(card(&design("individual", [50.0, 50.0])), @"
        Of 1,000 new users: about 496 control, 504 variant
        Simulated with UpGrade's own assignment. 95% of the time, each count lands within ±31.
        ");
        assert_snapshot!(card(&design("group", [70.0, 30.0])), @"
        Of 100 new groups (classId): about 71 control, 29 variant
        Simulated with UpGrade's own assignment. 95% of the time, each count lands within ±9. Everyone in a group gets the same condition, so the split of users depends on the group sizes.
        ");
        assert_snapshot!(card(&design("within-subjects", [50.0, 50.0])), @"
        Expected split: none: each user gets every condition, in random order
        –
        ");
        let turn = Some("random round robin".to_owned());
        assert_snapshot!(card(&Design { order: turn, ..design("within-subjects", [50.0, 50.0]) }), @"
        Expected split: none: each user gets every condition, in turn, from a random one
        –
        ");
    }

    #[test]
    fn a_card_says_who_does_not_draw() {
        let excluded = NamedMembers { users: vec!["u1".to_owned()], ..NamedMembers::default() };
        let busy = Design { rivals: 1, early_stay_out: true, excluded, ..design("individual", [50.0, 50.0]) };
        assert_snapshot!(card(&busy), @"
        Of 1,000 new users: about 256 control, 248 variant; 496 go to other experiments at this decision point
        Simulated with UpGrade's own assignment. 95% of the time, each count lands within ±23. Users on the exclusion list get no condition. Users who reached its decision points before the start get no condition.
        ");
        assert_snapshot!(card(&Design { only_named: true, ..design("individual", [50.0, 50.0]) }), @"
        –
        –
        ");
        let users = ["student-1", "student-2", "student-nobody"].map(str::to_owned).to_vec();
        let included = NamedMembers { users, groups: vec![("classId".to_owned(), "5B".to_owned())] };
        assert_snapshot!(card(&Design { only_named: true, included, ..design("individual", [50.0, 50.0]) }), @"
        Of the 3 users named: about 1 control, 2 variant
        Only users on the inclusion list are included; their conditions are computed from their IDs. Members of the groups on the list are added to that and split by the weights.
        ");
    }

    #[test]
    fn a_change_is_shown_with_the_earlier_split() {
        let (before, after) = (design("individual", [50.0, 50.0]), design("individual", [70.0, 30.0]));
        assert_snapshot!(lines(changing(&before, &after), None), @"
        Of 1,000 new users: about 496 control, 504 variant → about 689 control, 311 variant
        –
        ");
        assert_snapshot!(lines(changing(&before, &design("group", [50.0, 50.0])), None), @"
        Of 100 new groups (classId): about 52 control, 48 variant
        –
        ");
        assert_eq!(changing(&before, &before), None);
    }
}
