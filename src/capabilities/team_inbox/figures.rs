//! Figures about mails: how many, of which classes, and how long an answer took.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

use super::mail_list::{Entry, MailStatus};

/// The bands of the times until an answer: the label, and the time below which a band ends.
const BANDS: [(&str, Duration); 5] = [
    ("under 5 min", Duration::from_secs(5 * 60)),
    ("5 min to 1 h", Duration::from_secs(3600)),
    ("1 to 4 h", Duration::from_secs(4 * 3600)),
    ("4 h to 1 day", Duration::from_secs(24 * 3600)),
    ("1 day or more", Duration::MAX),
];

/// Figures about the mails of a period.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// The number of mails.
    pub received: usize,
    /// The number of answered mails.
    pub answered: usize,
    /// The number of mails that were answered without a person.
    pub automatic: usize,
    /// The number of mails that a person rejected.
    pub rejected: usize,
    /// The number of mails that were closed as spam.
    #[serde(default)]
    pub spam: usize,
    /// The number of mails that wait for a person.
    pub waiting: usize,
    /// The classes, the most frequent first.
    pub classes: Vec<ClassCount>,
    /// The bands of times until an answer, in order.
    pub bands: Vec<Band>,
    /// The time within which half of the answered mails were answered, in seconds.
    pub p50_s: Option<u64>,
    /// The time within which 90% of them were answered, in seconds.
    pub p90_s: Option<u64>,
    /// The time within which 99% of them were answered, in seconds.
    pub p99_s: Option<u64>,
}

/// The number of mails of a class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassCount {
    /// The class.
    pub class: String,
    /// The number of its mails.
    pub count: usize,
    /// The share of all classified mails in percent, with two decimals.
    pub share: f64,
}

/// The number of answers in a band of times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Band {
    /// The label, such as `1 to 4 h`.
    pub label: String,
    /// The number of answers by a person.
    pub by_people: usize,
    /// The number of answers without a person.
    pub automatic: usize,
}

impl Figures {
    /// Computes the figures of these mails.
    pub fn of(entries: &[Entry]) -> Self {
        let count = |is: &dyn Fn(&Entry) -> bool| entries.iter().filter(|entry| is(entry)).count();
        let answered = || entries.iter().filter(|entry| entry.status == MailStatus::Sent);
        let took = |entry: &Entry| entry.settled_at.map(|at| at.since(entry.received_at));
        let mut times: Vec<Duration> = answered().filter_map(took).collect();
        times.sort_unstable();
        let mut bands = BANDS.map(|(label, _)| Band { label: label.to_owned(), by_people: 0, automatic: 0 });
        for entry in answered() {
            let Some(took) = took(entry) else { continue };
            let at = BANDS.iter().position(|(_, end)| took < *end).unwrap_or(BANDS.len() - 1);
            match entry.is_automatic {
                true => bands[at].automatic += 1,
                false => bands[at].by_people += 1,
            }
        }
        let percentile = |percent| percentile(&times, percent).map(|time| time.as_secs());
        Self {
            received: entries.len(),
            answered: answered().count(),
            automatic: count(&|entry| entry.status == MailStatus::Sent && entry.is_automatic),
            rejected: count(&|entry| entry.status == MailStatus::Rejected && !entry.is_spam && !entry.is_put_away),
            spam: count(&|entry| entry.is_spam && entry.status != MailStatus::Sent),
            waiting: count(&|entry| entry.status.waits()),
            classes: classes(entries),
            bands: bands.into(),
            p50_s: percentile(50),
            p90_s: percentile(90),
            p99_s: percentile(99),
        }
    }
}

fn classes(entries: &[Entry]) -> Vec<ClassCount> {
    let mut counts = BTreeMap::<&str, usize>::new();
    for class in entries.iter().filter_map(|entry| entry.class.as_deref()) {
        *counts.entry(class).or_default() += 1;
    }
    let all: usize = counts.values().sum();
    let share = |count: usize| (count as f64 * 10_000.0 / all as f64).round() / 100.0;
    let mut classes: Vec<_> = counts
        .into_iter()
        .map(|(class, count)| ClassCount { class: class.to_owned(), count, share: share(count) })
        .collect();
    classes.sort_by_key(|class| std::cmp::Reverse(class.count)); // stable: equal ones stay in alphabetical order
    classes
}

/// Returns a percentile of sorted values by the nearest rank, rounded up; `None` if there are no values.
pub fn percentile<T: Copy>(sorted: &[T], percent: usize) -> Option<T> {
    let rank = (percent * sorted.len()).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{answered, entry};

    #[test]
    fn a_percentile_is_the_nearest_rank_rounded_up() {
        let ten: Vec<u32> = (1..=10).collect();
        assert_eq!(percentile(&ten, 50), Some(5));
        assert_eq!(percentile(&ten, 90), Some(9));
        assert_eq!(percentile(&ten, 99), Some(10), "9.9 is rounded up");
        assert_eq!(percentile(&[7], 1), Some(7));
        assert_eq!(percentile::<u32>(&[], 50), None);
    }

    #[test]
    fn figures_count_answers_and_their_times() {
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        let entries = [
            answered("a", minutes(2), true),
            answered("b", minutes(5), false),
            answered("c", minutes(600), false),
            entry("d", MailStatus::NeedsReview),
            entry("e", MailStatus::Rejected),
        ];
        let figures = Figures::of(&entries);
        assert_eq!((figures.received, figures.answered, figures.automatic), (5, 3, 1));
        assert_eq!((figures.rejected, figures.waiting), (1, 1));
        assert_eq!((figures.p50_s, figures.p90_s), (Some(300), Some(36_000)));
        let bands: Vec<_> = figures.bands.iter().map(|band| (band.by_people, band.automatic)).collect();
        assert_eq!(bands, [(0, 1), (1, 0), (0, 0), (1, 0), (0, 0)]);
    }

    #[test]
    fn classes_have_their_share_of_what_was_classified() {
        let of = |class: Option<&str>| Entry { class: class.map(str::to_owned), ..entry("a", MailStatus::NeedsReview) };
        let entries = [of(Some("other")), of(Some("inquiry")), of(Some("inquiry")), of(None)];
        let classes: Vec<_> =
            Figures::of(&entries).classes.into_iter().map(|class| (class.class, class.count, class.share)).collect();
        assert_eq!(classes, [("inquiry".to_owned(), 2, 66.67), ("other".to_owned(), 1, 33.33)]);
        assert_eq!(Figures::of(&[]), Figures { bands: Figures::of(&[]).bands, ..Figures::default() });
    }
}
