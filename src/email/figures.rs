//! The figures about answered mail: classes, times, tools, and how much was sent without a person.
//!
//! They are computed from what the store has of each mail, so the command line, the metrics and the pictures in a
//! thread show the same numbers.

use std::{collections::BTreeMap, fmt};

use serde_json::Value;

use super::{
    register::{Entry, MailStatus},
    state::StepEntry,
};

/// The class of a mail that was not classified, because that failed or has not happened yet.
pub const UNCLASSIFIED: &str = "unclassified";

/// The outcome of a mail that was closed as spam.
pub const SPAM: &str = "spam";

/// The outcome of a mail that needs no reply. Nobody has processed it.
pub const PUT_AWAY: &str = "no_reply_needed";

/// A mail that was handled, or is being handled.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HandledMail {
    /// Its class, if it has one.
    pub class: Option<String>,
    /// Its status, such as `needs_review`, or [`SPAM`].
    pub status: String,
    /// The duration of each step in milliseconds, with the name of its node, in order.
    pub steps: Vec<(String, f64)>,
    /// The calls of tools.
    pub tools: Vec<ToolCall>,
    /// True if an answer was sent without a person.
    pub is_automatic: bool,
}

impl HandledMail {
    /// Returns what the list of mails has about a mail.
    pub fn of(entry: &Entry) -> Self {
        Self {
            class: entry.class.map(|class| class.as_str().to_owned()),
            status: match entry.status {
                _ if entry.is_put_away() => PUT_AWAY,
                status if !entry.is_spam || status == MailStatus::Sent => status.as_str(),
                _ => SPAM,
            }
            .to_owned(),
            steps: entry.steps.iter().map(|step| (step.step.clone(), step.latency_ms as f64)).collect(),
            tools: entry.steps.iter().flat_map(tool_calls).collect(),
            is_automatic: entry.is_automatic && entry.status == MailStatus::Sent,
        }
    }
}

/// Returns the calls of tools that a step noted.
fn tool_calls(step: &StepEntry) -> Vec<ToolCall> {
    let noted = step.facts.get("tools").and_then(Value::as_array).into_iter().flatten();
    let call = |noted: &Value| {
        let name = noted["tool"].as_str()?.to_owned();
        Some(ToolCall { name, succeeded: noted["success"] == true, millis: noted["latency_ms"].as_f64() })
    };
    noted.filter_map(call).collect()
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The name of the tool.
    pub name: String,
    /// True if it returned a result.
    pub succeeded: bool,
    /// The duration in milliseconds, if it was recorded.
    pub millis: Option<f64>,
}

/// The figures about a set of mails.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// The number of mails.
    pub mails: usize,
    /// The number of answers that were sent without a person.
    pub automatic: usize,
    /// The classes with their counts, the most frequent first.
    pub classes: Vec<(String, usize)>,
    /// The number of mails in each status.
    pub statuses: BTreeMap<String, usize>,
    /// The times of whole runs: the sum of the steps of each mail.
    pub run: Option<Latency>,
    /// The times of single steps by node, in the order in which nodes first ran.
    pub nodes: Vec<(String, Latency)>,
    /// The tools, the most frequently called first.
    pub tools: Vec<ToolFigures>,
}

/// The distribution of durations, in milliseconds with two decimals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latency {
    /// The number of durations.
    pub count: usize,
    /// The median.
    pub p50: f64,
    /// The 90th percentile.
    pub p90: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The mean.
    pub mean: f64,
    /// The shortest.
    pub min: f64,
    /// The longest.
    pub max: f64,
}

/// The figures of one tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolFigures {
    /// The name of the tool.
    pub name: String,
    /// The number of calls.
    pub calls: usize,
    /// The number of calls that returned a result.
    pub successes: usize,
    /// The mean duration in milliseconds, if any was recorded.
    pub mean: Option<f64>,
}

impl ToolFigures {
    /// Returns the number of calls that failed.
    pub fn failures(&self) -> usize {
        self.calls - self.successes
    }

    /// Returns the share of calls that returned a result, with four decimals.
    pub fn rate(&self) -> f64 {
        share(self.successes, self.calls)
    }
}

impl Latency {
    /// Returns the distribution of these durations; `None` if there are none. Percentiles are by nearest rank.
    pub fn of(durations: &[f64]) -> Option<Self> {
        let mut sorted: Vec<f64> = durations.iter().copied().filter(|duration| duration.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let percentile = |percent: usize| {
            let rank = (percent * sorted.len()).div_ceil(100).max(1);
            hundredths(sorted[rank - 1])
        };
        Some(Self {
            count: sorted.len(),
            p50: percentile(50),
            p90: percentile(90),
            p99: percentile(99),
            mean: hundredths(mean(&sorted)),
            min: hundredths(min),
            max: hundredths(max),
        })
    }
}

impl Figures {
    /// Computes the figures of these mails.
    pub fn of(mails: &[HandledMail]) -> Self {
        let mut classes: BTreeMap<&str, usize> = BTreeMap::new();
        let mut statuses: BTreeMap<String, usize> = BTreeMap::new();
        let mut nodes: Vec<(&str, Vec<f64>)> = Vec::new();
        let mut tools: BTreeMap<&str, Vec<&ToolCall>> = BTreeMap::new();
        for mail in mails {
            *classes.entry(mail.class.as_deref().unwrap_or(UNCLASSIFIED)).or_default() += 1;
            *statuses.entry(mail.status.clone()).or_default() += 1;
            for (node, duration) in &mail.steps {
                match nodes.iter_mut().find(|(known, _)| known == node) {
                    Some((_, durations)) => durations.push(*duration),
                    None => nodes.push((node, vec![*duration])),
                }
            }
            for call in &mail.tools {
                tools.entry(&call.name).or_default().push(call);
            }
        }
        let mut classes: Vec<_> = classes.into_iter().map(|(class, count)| (class.to_owned(), count)).collect();
        classes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let mut tools: Vec<_> = tools.into_iter().map(|(name, calls)| tool(name, &calls)).collect();
        tools.sort_by_key(|tool| std::cmp::Reverse(tool.calls));
        let timed = mails.iter().filter(|mail| !mail.steps.is_empty());
        let runs: Vec<f64> = timed.map(|mail| mail.steps.iter().map(|(_, duration)| duration).sum()).collect();
        let of = |(node, durations): (&str, Vec<f64>)| Some((node.to_owned(), Latency::of(&durations)?));
        Self {
            mails: mails.len(),
            automatic: mails.iter().filter(|mail| mail.is_automatic).count(),
            classes,
            statuses,
            run: Latency::of(&runs),
            nodes: nodes.into_iter().filter_map(of).collect(),
            tools,
        }
    }

    /// Returns the number of mails that reached a person or an end.
    pub fn processed(&self) -> usize {
        self.among(&["drafted", "needs_review", "approved", "sent", "rejected", SPAM])
    }

    /// Returns the share of processed mails that were answered.
    pub fn approval_rate(&self) -> f64 {
        share(self.among(&["approved", "sent"]), self.processed())
    }

    /// Returns the share of processed mails that wait for a person.
    pub fn review_rate(&self) -> f64 {
        share(self.among(&["needs_review"]), self.processed())
    }

    fn among(&self, statuses: &[&str]) -> usize {
        statuses.iter().filter_map(|status| self.statuses.get(*status)).sum()
    }
}

/// The report for the command line: a few sentences, then tables.
impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.mails == 0 {
            return f.write_str("No email has arrived yet.");
        }
        let emails = if self.mails == 1 { "1 email".to_owned() } else { format!("{} emails", self.mails) };
        write!(
            f,
            "{emails}, {} processed: {} answered, {} waiting for review. {} sent automatically.",
            self.processed(),
            percent(self.approval_rate()),
            percent(self.review_rate()),
            self.automatic,
        )?;
        write!(f, "\n\n{:<18}{:>8}{:>8}", "Class", "Emails", "Share")?;
        for (class, count) in &self.classes {
            write!(f, "\n{class:<18}{count:>8}{:>8}", percent(share(*count, self.mails)))?;
        }
        write!(f, "\n\n{:<18}{:>8}", "Status", "Emails")?;
        for (status, count) in &self.statuses {
            write!(f, "\n{status:<18}{count:>8}")?;
        }
        write!(f, "\n\n{:<18}{:>8}{:>11}{:>11}{:>11}{:>11}", "Time in ms", "Runs", "p50", "p90", "p99", "mean")?;
        let whole = self.run.iter().map(|run| ("all steps", run));
        for (node, latency) in self.nodes.iter().map(|(node, latency)| (node.as_str(), latency)).chain(whole) {
            let Latency { count, p50, p90, p99, mean, .. } = latency;
            write!(f, "\n{node:<18}{count:>8}{p50:>11.2}{p90:>11.2}{p99:>11.2}{mean:>11.2}")?;
        }
        if !self.tools.is_empty() {
            write!(f, "\n\n{:<18}{:>8}{:>11}{:>11}{:>11}", "Tool", "Calls", "Failures", "Success", "Mean ms")?;
        }
        for tool in &self.tools {
            let mean = tool.mean.map_or_else(|| "–".to_owned(), |mean| format!("{mean:.2}"));
            let rate = percent(tool.rate());
            write!(f, "\n{:<18}{:>8}{:>11}{rate:>11}{mean:>11}", tool.name, tool.calls, tool.failures())?;
        }
        Ok(())
    }
}

fn tool(name: &str, calls: &[&ToolCall]) -> ToolFigures {
    let times: Vec<f64> = calls.iter().filter_map(|call| call.millis).collect();
    ToolFigures {
        name: name.to_owned(),
        calls: calls.len(),
        successes: calls.iter().filter(|call| call.succeeded).count(),
        mean: (!times.is_empty()).then(|| hundredths(mean(&times))),
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Rounds to two decimals.
fn hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// Returns the share with four decimals, 0 of nothing.
fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    (part as f64 / whole as f64 * 10_000.0).round() / 10_000.0
}

fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

#[cfg(test)]
mod tests {
    use countersign_core::clock::Timestamp;

    use super::*;

    fn mail(class: &str, status: &str, steps: &[(&str, f64)]) -> HandledMail {
        HandledMail {
            class: Some(class.to_owned()),
            status: status.to_owned(),
            steps: steps.iter().map(|(node, duration)| ((*node).to_owned(), *duration)).collect(),
            ..HandledMail::default()
        }
    }

    #[test]
    fn percentiles_are_by_nearest_rank_and_rounded_up() {
        let ten: Vec<f64> = (1..=10).map(f64::from).collect();
        let of_ten = Latency::of(&ten).unwrap();
        assert_eq!((of_ten.p50, of_ten.p90, of_ten.p99), (5.0, 9.0, 10.0));
        assert_eq!((of_ten.mean, of_ten.min, of_ten.max, of_ten.count), (5.5, 1.0, 10.0, 10));
        let of_three = Latency::of(&[3.0, 1.0, 2.0]).unwrap();
        assert_eq!((of_three.p50, of_three.p90), (2.0, 3.0));
        assert_eq!(Latency::of(&[1.2345]).unwrap().p50, 1.23);
        assert_eq!(Latency::of(&[]), None);
    }

    #[test]
    fn a_run_is_the_sum_of_its_steps() {
        let mails = [
            mail("inquiry", "sent", &[("classify", 10.0), ("generate", 30.0)]),
            mail("inquiry", "needs_review", &[("classify", 20.0), ("generate", 40.0)]),
            mail("complaint", "pending", &[]),
        ];
        let figures = Figures::of(&mails);
        assert_eq!(figures.run.unwrap().mean, 50.0);
        assert_eq!(figures.nodes[0], ("classify".to_owned(), Latency::of(&[10.0, 20.0]).unwrap()));
        assert_eq!(figures.classes, [("inquiry".to_owned(), 2), ("complaint".to_owned(), 1)]);
        assert_eq!((figures.processed(), figures.approval_rate(), figures.review_rate()), (2, 0.5, 0.5));
    }

    #[test]
    fn spam_is_an_outcome_of_its_own() {
        let mut entry = Entry::new(&crate::tests::support::mail(), Timestamp(1));
        assert!(entry.move_to(MailStatus::Processing, Timestamp(2)) && entry.close_as_spam(Timestamp(3)));
        assert_eq!((entry.status, entry.outcome()), (MailStatus::Rejected, "marked as spam"));
        let figures = Figures::of(&[HandledMail::of(&entry), mail("inquiry", "rejected", &[])]);
        assert_eq!(figures.statuses, [("rejected".to_owned(), 1), ("spam".to_owned(), 1)].into());
        assert_eq!(figures.processed(), 2);
        assert!(entry.move_to(MailStatus::Processing, Timestamp(4)));
        assert!(!entry.is_spam, "someone wants to answer it after all");
        assert!(entry.move_to(MailStatus::Sent, Timestamp(5)) && entry.close_as_spam(Timestamp(6)));
        assert_eq!(HandledMail::of(&entry).status, "sent", "it was answered before");
    }

    #[test]
    fn tools_are_counted_with_their_failures() {
        let call = |name: &str, succeeded, millis| ToolCall { name: name.to_owned(), succeeded, millis };
        let calls = vec![
            call("get_contact", true, Some(10.0)),
            call("get_contact", false, None),
            call("get_contact", true, Some(20.0)),
            call("check_calendar", true, None),
        ];
        let figures = Figures::of(&[HandledMail { tools: calls, ..mail("inquiry", "sent", &[]) }]);
        let contact = &figures.tools[0];
        assert_eq!((contact.name.as_str(), contact.calls, contact.failures()), ("get_contact", 3, 1));
        assert_eq!((contact.rate(), contact.mean), (0.6667, Some(15.0)));
        assert_eq!(figures.tools[1].mean, None);
    }

    #[test]
    fn the_report_has_words_and_tables() {
        let mut answered = mail("inquiry", "sent", &[("classify", 12.5)]);
        answered.is_automatic = true;
        answered.tools = vec![ToolCall { name: "get_contact".to_owned(), succeeded: true, millis: Some(3.0) }];
        let report = Figures::of(&[answered, mail("complaint", "needs_review", &[("classify", 7.5)])]).to_string();
        for line in [
            "2 emails, 2 processed: 50.0% answered, 50.0% waiting for review. 1 sent automatically.",
            "complaint                1   50.0%",
            "needs_review             1",
            "classify                 2       7.50      12.50      12.50      10.00",
            "get_contact              1          0     100.0%       3.00",
        ] {
            assert!(report.lines().any(|found| found == line), "{line}\n{report}");
        }
        assert_eq!(Figures::of(&[]).to_string(), "No email has arrived yet.");
    }
}
