//! Figures, and the table they end in.

use std::{fmt, time::Duration};

/// Rows of what, which and how much.
#[derive(Default)]
pub(crate) struct Table(Vec<[String; 3]>);

impl Table {
    /// Adds a row, and says so at once: the whole takes a while.
    pub(crate) fn row(&mut self, what: impl Into<String>, figure: impl Into<String>, value: impl Into<String>) {
        let row = [what.into(), figure.into(), value.into()];
        eprintln!("  {} {}: {}", row[0], row[1], row[2]);
        self.0.push(row);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| | | |\n| --- | --- | ---: |")?;
        for [what, figure, value] in &self.0 {
            writeln!(f, "| {what} | {figure} | {value} |")?;
        }
        Ok(())
    }
}

/// Half of them took at most so long, and all but one in a hundred.
pub(crate) fn quantiles(took: &[Duration]) -> String {
    let at = |share: f64| quantile(took, share);
    format!("{} · {}", millis(at(0.5)), millis(at(0.99)))
}

/// All but so large a share of them took at most so long.
pub(crate) fn quantile(took: &[Duration], share: f64) -> Duration {
    let mut sorted = took.to_vec();
    sorted.sort_unstable();
    let nth = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(nth.saturating_sub(1)).copied().unwrap_or_default()
}

/// In milliseconds, as precisely as makes sense.
pub(crate) fn millis(took: Duration) -> String {
    let millis = took.as_secs_f64() * 1e3;
    if millis < 10.0 { format!("{millis:.1} ms") } else { format!("{millis:.0} ms") }
}

/// In KiB.
pub(crate) fn kib(bytes: f64) -> String {
    format!("{:.1} KiB", bytes / 1024.0)
}
