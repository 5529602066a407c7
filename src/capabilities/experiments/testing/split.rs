//! The expected split of newcomers over the conditions of a design, computed by drawing for fictitious
//! users. Nothing is sent.
//!
//! The future participants are not known, so the draw is made for stand-ins in a few stand-in
//! experiments, and the mean is shown. The stand-ins are always the same, so the same design has the
//! same split on every card, and two designs can be compared. If only people named on a list take
//! part, the draw is made for them in their own experiment, and is their real one.

use std::sync::LazyLock;

use super::draw;

/// The number of new users for which the split is shown.
pub const USERS: u32 = 1_000;
/// The number of new groups for which the split is shown, which is realistic for a study.
pub const GROUPS: u32 = 100;

/// The number of stand-in experiments. The split of a single one may be far off, and would be on every
/// card.
const SAMPLES: u32 = 8;

/// Users and groups by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedMembers {
    /// The ids of the users.
    pub users: Vec<String>,
    /// The groups: type and id.
    pub groups: Vec<(String, String)>,
}

/// The parts of an experiment that decide how newcomers split.
#[derive(Clone, Debug, PartialEq)]
pub struct Design {
    /// The experiment's id.
    pub experiment: String,
    /// The codes and weights of the conditions, in order.
    pub conditions: Vec<(String, f64)>,
    /// The unit of assignment: `individual`, `group` or `within-subjects`.
    pub unit: String,
    /// The type of group, with unit `group`.
    pub group: Option<String>,
    /// The order in which people get the conditions, within subjects.
    pub order: Option<String>,
    /// The factor of a stratified draw.
    pub strata: Option<String>,
    /// True if only users on the inclusion list are included.
    pub only_named: bool,
    /// The inclusion list.
    pub included: NamedMembers,
    /// The exclusion list.
    pub excluded: NamedMembers,
    /// True if people who visited before the start are excluded.
    pub early_stay_out: bool,
    /// The number of other live experiments at the same points.
    pub rivals: usize,
}

/// The users or groups that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// [`USERS`] new users.
    NewUsers,
    /// [`GROUPS`] new groups.
    NewGroups,
    /// The users on the inclusion list.
    NamedUsers,
    /// The groups on the inclusion list.
    NamedGroups,
}

/// The split of newcomers.
#[derive(Clone, Debug, PartialEq)]
pub enum Split {
    /// There is no draw: everybody gets all conditions.
    Everyone,
    /// Nobody takes part.
    Nobody,
    /// The members of the groups on the list take part, whose number is not known.
    MembersOfGroups,
    /// There is a draw, with these counts.
    Drawn(Drawn),
}

/// The result of a draw.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    /// The users or groups that drew.
    pub who: Who,
    /// The number of draws.
    pub of: u32,
    /// The number of draws for each condition, in order.
    pub counts: Vec<u32>,
    /// The number of draws that lead to another experiment at the same point.
    pub elsewhere: u32,
    /// The distance between a count and its expected value that chance does not exceed 19 times in 20,
    /// for the condition where it is largest.
    pub spread: u32,
}

impl Split {
    /// Computes the split of a design.
    pub fn of(design: &Design) -> Self {
        if design.unit == "within-subjects" {
            return Self::Everyone;
        }
        let by_group = design.unit == "group";
        if !design.only_named {
            let (who, of) = if by_group { (Who::NewGroups, GROUPS) } else { (Who::NewUsers, USERS) };
            return Self::Drawn(by_stand_ins(design, who, of));
        }
        let NamedMembers { users, groups } = &design.included;
        let kind = design.group.as_deref().unwrap_or_default();
        let draw: Vec<_> = match by_group {
            true => groups
                .iter()
                .filter(|group| group.0 == kind && !design.excluded.groups.contains(group))
                .map(|g| &g.1)
                .collect(),
            false => users.iter().filter(|user| !design.excluded.users.contains(user)).collect(),
        };
        match (draw.is_empty(), users.is_empty() && groups.is_empty()) {
            (true, true) => Self::Nobody,
            (true, false) => Self::MembersOfGroups,
            (false, _) => {
                let who = if by_group { Who::NamedGroups } else { Who::NamedUsers };
                Self::Drawn(by_names(design, who, &draw))
            }
        }
    }
}

/// The random numbers of a stand-in.
struct StandIn {
    /// The number that selects a condition.
    number: f64,
    /// The number that selects one of the experiments at the point.
    pool_number: f64,
}

/// The stand-ins of each sample. Their draws do not depend on the design, so they are computed once.
static STAND_INS: LazyLock<Vec<Vec<StandIn>>> = LazyLock::new(|| {
    let stand_in = |sample: u32, nth: u32| {
        let experiment = format!("expected-split-{sample}");
        let name = format!("newcomer-{nth:04}");
        StandIn {
            number: draw::number(&experiment, &name),
            pool_number: draw::pool_number(&format!("{experiment}-{name}")),
        }
    };
    (0..SAMPLES).map(|sample| (0..USERS).map(|nth| stand_in(sample, nth)).collect()).collect()
});

/// The number of draws that a condition can expect.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpectedCount {
    /// The expectation.
    pub mean: f64,
    /// The smallest count that chance gives 19 times in 20, by the normal approximation.
    pub least: u32,
    /// The largest such count.
    pub most: u32,
}

/// Returns the count that each weight can expect of this many draws.
pub fn expected_counts(weights: &[f64], draws: u32) -> Vec<ExpectedCount> {
    let total: f64 = weights.iter().sum();
    let expected = |weight: &f64| {
        let share = if total > 0.0 { (weight / total).clamp(0.0, 1.0) } else { 0.0 };
        let mean = f64::from(draws) * share;
        let spread = 1.96 * (mean * (1.0 - share)).sqrt();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and the number of draws"
        )]
        let (least, most) = ((mean - spread).max(0.0).floor() as u32, (mean + spread).min(draws.into()).ceil() as u32);
        ExpectedCount { mean, least, most }
    };
    weights.iter().map(expected).collect()
}

/// Returns the draws of the stand-ins for each weight, `of` in all and at most [`USERS`]. They are always the same.
pub fn draw_stand_ins(weights: &[f64], of: u32) -> Vec<u32> {
    let mut counts = vec![0; weights.len()];
    for stand_in in STAND_INS.iter().take(1).flatten().take(of as usize) {
        count(&mut counts, weights, stand_in.number);
    }
    counts
}

fn by_stand_ins(design: &Design, who: Who, of: u32) -> Drawn {
    let weights = weights(design);
    // The last count is that of users who are assigned to another experiment.
    let mut counts = vec![0; weights.len() + 1];
    for StandIn { number, pool_number } in STAND_INS.iter().flat_map(|sample| sample.iter().take(of as usize)) {
        match draw::pool_member(design.rivals + 1, *pool_number) {
            0 => count(&mut counts, &weights, *number),
            _ => counts[weights.len()] += 1,
        }
    }
    let mut counts = mean(&counts, of);
    let elsewhere = counts.pop().unwrap_or_default();
    Drawn { who, of, spread: spread(&weights, of - elsewhere), counts, elsewhere }
}

/// Returns the mean of the samples from their summed counts, rounded so that it adds up to `of`.
fn mean(counts: &[u32], of: u32) -> Vec<u32> {
    let mut mean: Vec<u32> = counts.iter().map(|count| count / SAMPLES).collect();
    let mut places: Vec<usize> = (0..counts.len()).collect();
    places.sort_by_key(|place| std::cmp::Reverse(counts[*place] % SAMPLES));
    let missing = of.saturating_sub(mean.iter().sum());
    for place in places.into_iter().take(missing as usize) {
        mean[place] += 1;
    }
    mean
}

fn by_names(design: &Design, who: Who, names: &[&String]) -> Drawn {
    let weights = weights(design);
    let mut counts = vec![0; weights.len()];
    for name in names {
        count(&mut counts, &weights, draw::number(&design.experiment, name));
    }
    let of = u32::try_from(names.len()).unwrap_or(u32::MAX);
    Drawn { who, of, spread: spread(&weights, of), counts, elsewhere: 0 }
}

fn count(counts: &mut [u32], weights: &[f64], number: f64) {
    if let Some(count) = counts.get_mut(draw::condition_index(weights, number)) {
        *count += 1;
    }
}

fn weights(design: &Design) -> Vec<f64> {
    design.conditions.iter().map(|(_, weight)| *weight).collect()
}

/// Returns 1.96 standard deviations of a count, by the normal approximation, for the condition where
/// this is largest.
fn spread(weights: &[f64], of: u32) -> u32 {
    let deviation = |weight: &f64| {
        let share = (weight / 100.0).clamp(0.0, 1.0);
        (f64::from(of) * share * (1.0 - share)).sqrt()
    };
    let largest = weights.iter().map(deviation).fold(0.0, f64::max);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most the square root of a count")]
    let spread = (1.96 * largest).ceil() as u32;
    spread
}

#[cfg(test)]
mod tests {
    use super::*;

    fn design(unit: &str, weights: &[f64]) -> Design {
        Design {
            experiment: "419f9e2f-875c-4688-9bb1-abb74dc0c280".to_owned(),
            conditions: weights
                .iter()
                .zip(["control", "variant", "concrete"])
                .map(|(w, c)| (c.to_owned(), *w))
                .collect(),
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

    fn drawn(design: &Design) -> Drawn {
        match Split::of(design) {
            Split::Drawn(drawn) => drawn,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_count_is_expected_within_a_range() {
        let expected = expected_counts(&[40.0, 30.0, 30.0], 1_000);
        let read: Vec<_> = expected.iter().map(|count| (count.mean.round(), count.least, count.most)).collect();
        assert_eq!(read, [(400.0, 369, 431), (300.0, 271, 329), (300.0, 271, 329)]);
        let all = expected_counts(&[100.0, 0.0], 10);
        assert_eq!(all.iter().map(|count| (count.least, count.most)).collect::<Vec<_>>(), [(10, 10), (0, 0)]);
    }

    #[test]
    fn newcomers_split_close_to_the_weights_and_always_the_same() {
        for weights in [[50.0, 50.0], [70.0, 30.0], [10.0, 90.0], [100.0, 0.0]] {
            let split = drawn(&design("individual", &weights));
            assert_eq!(split, drawn(&design("individual", &weights)));
            assert_eq!((split.of, split.counts.iter().sum::<u32>()), (USERS, USERS));
            let off = (f64::from(split.counts[0]) - 10.0 * weights[0]).abs();
            assert!(off <= f64::from(split.spread) / 2.0, "{weights:?}: {split:?}");
        }
        assert_eq!(drawn(&design("individual", &[50.0, 50.0])).spread, 31);
        assert_eq!(drawn(&design("individual", &[100.0, 0.0])).spread, 0);
    }

    #[test]
    fn groups_draw_as_one() {
        let split = drawn(&design("group", &[50.0, 50.0]));
        assert_eq!((split.who, split.of, split.spread), (Who::NewGroups, GROUPS, 10));
    }

    #[test]
    fn within_subjects_nobody_draws() {
        assert_eq!(Split::of(&design("within-subjects", &[50.0, 50.0])), Split::Everyone);
    }

    #[test]
    fn rivals_take_their_share() {
        let split = drawn(&Design { rivals: 1, ..design("individual", &[50.0, 50.0]) });
        assert!((450..=550).contains(&split.elsewhere), "{split:?}");
        assert_eq!(split.counts.iter().sum::<u32>() + split.elsewhere, USERS);
    }

    #[test]
    fn named_users_get_the_conditions_that_the_server_gave_them() {
        let names = ["student-1", "student-2", "student-nobody", "five-1", "preview-1"].map(str::to_owned);
        let included = NamedMembers { users: names.to_vec(), ..NamedMembers::default() };
        let only = Design { only_named: true, included, ..design("individual", &[50.0, 50.0]) };
        let split = drawn(&only);
        assert_eq!((split.who, split.of, split.counts.as_slice()), (Who::NamedUsers, 5, [2, 3].as_slice()));
        let excluded = NamedMembers { users: vec!["student-1".to_owned()], ..NamedMembers::default() };
        assert_eq!(drawn(&Design { excluded, ..only }).counts, [2, 2]);
    }

    #[test]
    fn an_empty_list_and_a_list_of_groups() {
        let only = Design { only_named: true, ..design("individual", &[50.0, 50.0]) };
        assert_eq!(Split::of(&only), Split::Nobody);
        let groups = vec![("classId".to_owned(), "5B".to_owned()), ("schoolId".to_owned(), "north".to_owned())];
        let included = NamedMembers { groups, ..NamedMembers::default() };
        assert_eq!(Split::of(&Design { included: included.clone(), ..only.clone() }), Split::MembersOfGroups);
        let by_group = Design { only_named: true, included, ..design("group", &[50.0, 50.0]) };
        assert_eq!((drawn(&by_group).who, drawn(&by_group).of), (Who::NamedGroups, 1));
    }
}
