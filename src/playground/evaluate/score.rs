//! The results of an evaluation, as tables.

use std::{collections::BTreeMap, fmt};

use countersign_model::prices::dollars;

/// The number of columns that the names of categories take up at least.
const MIN_NAME_WIDTH: usize = 20;

/// The end of an utterance, from the best to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// It was understood as expected.
    Understood,
    /// It was not understood, but a button under the answer leads to what was expected.
    Suggested,
    /// It led nowhere: nothing was looked up, proposed or suggested.
    DeadEnd,
    /// Something else was looked up or proposed.
    Wrong,
}

impl Outcome {
    /// All outcomes.
    pub const ALL: [Self; 4] = [Self::Understood, Self::Suggested, Self::DeadEnd, Self::Wrong];

    fn name(self) -> &'static str {
        match self {
            Self::Understood => "understood",
            Self::Suggested => "suggested",
            Self::DeadEnd => "dead end",
            Self::Wrong => "wrong",
        }
    }
}

/// The result for one utterance.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseResult {
    /// The message.
    pub said: String,
    /// The category.
    pub category: String,
    /// The end.
    pub outcome: Outcome,
    /// The differences from the expected interpretation; empty if there are none.
    pub wrong: Vec<String>,
}

/// The results of all utterances.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Score {
    /// The name of the model that was asked.
    pub model: String,
    /// The results, one for each utterance.
    pub lines: Vec<CaseResult>,
    /// The number of calls to a language model.
    pub calls: u64,
    /// The number of tokens of these calls, input and output together.
    pub tokens: u64,
    /// The cost of these calls in billionths of a US dollar; `None` if a price is not known.
    pub nano_usd: Option<u64>,
}

impl Score {
    /// Returns the number of utterances with this outcome.
    pub fn count(&self, outcome: Outcome) -> usize {
        self.lines.iter().filter(|line| line.outcome == outcome).count()
    }

    /// Returns the number of utterances that were understood as expected.
    pub fn understood(&self) -> usize {
        self.count(Outcome::Understood)
    }

    /// Returns the number of each outcome, by category.
    fn by_category(&self) -> BTreeMap<&str, [usize; 4]> {
        let mut found = BTreeMap::<&str, [usize; 4]>::new();
        for CaseResult { category, outcome, .. } in &self.lines {
            found.entry(category).or_default()[*outcome as usize] += 1;
        }
        found
    }

    /// Writes the last line: how much was understood, and what it cost.
    fn summary(&self) -> String {
        let (understood, all) = (self.understood(), self.lines.len());
        let percent = understood * 100 / all.max(1);
        let cost = self.nano_usd.map_or_else(String::new, |cost| format!(", {}", dollars(cost)));
        let calls = match self.calls {
            0 => String::new(),
            calls => format!(", {calls} calls, {} tokens{cost}", self.tokens),
        };
        format!("{}: {understood} of {all} understood ({percent}%){calls}", self.model)
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for CaseResult { said, outcome, wrong, .. } in &self.lines {
            match outcome {
                Outcome::Understood => writeln!(f, "ok         {said}")?,
                other => writeln!(f, "{:<10} {said}\n           {}", other.name(), wrong.join("\n           "))?,
            }
        }
        let categories = self.by_category();
        let width = width_of(categories.keys());
        let row = |name: &str, cells: [String; 5]| {
            let cells = cells.map(|cell| format!("{cell:>12}")).concat();
            format!("{name:<width$}{cells}")
        };
        let [understood, suggested, dead_end, wrong] = Outcome::ALL.map(|outcome| outcome.name().to_owned());
        writeln!(f, "\n{}", row("", [understood, suggested, dead_end, wrong, "of".to_owned()]))?;
        for (name, [a, b, c, d]) in categories {
            writeln!(f, "{}", row(name, [a, b, c, d, a + b + c + d].map(|count| count.to_string())))?;
        }
        let [a, b, c, d] = Outcome::ALL.map(|outcome| self.count(outcome));
        writeln!(f, "{}\n", row("all", [a, b, c, d, self.lines.len()].map(|count| count.to_string())))?;
        write!(f, "{}", self.summary())
    }
}

/// The results of two models on the same utterances.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison(pub [Score; 2]);

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self([one, other]) = self;
        for (a, b) in one.lines.iter().zip(&other.lines).filter(|(a, b)| a.outcome != b.outcome) {
            writeln!(f, "{:<10} {:<10} {}", a.outcome.name(), b.outcome.name(), a.said)?;
            for (Score { model, .. }, CaseResult { wrong, .. }) in [(one, a), (other, b)] {
                for difference in wrong {
                    writeln!(f, "{:>22}{model}: {difference}", "")?;
                }
            }
        }
        let (ours, theirs) = (one.by_category(), other.by_category());
        let width = width_of(ours.keys());
        let cells = |a: &str, b: &str| format!("{a:>24}{b:>24}");
        writeln!(f, "\n{:<width$}{}", "understood", cells(&one.model, &other.model))?;
        for (name, counts) in &ours {
            let of = |counts: &[usize; 4]| format!("{} of {}", counts[0], counts.iter().sum::<usize>());
            let theirs = theirs.get(name).map_or_else(String::new, of);
            writeln!(f, "{name:<width$}{}", cells(&of(counts), &theirs))?;
        }
        write!(f, "\n{}\n{}", one.summary(), other.summary())
    }
}

fn width_of<'a>(names: impl Iterator<Item = &'a &'a str>) -> usize {
    names.map(|name| name.len()).max().unwrap_or_default().max(MIN_NAME_WIDTH)
}
