//! The figures about mail: for the command line, and as metrics.

use std::sync::Arc;

use anyhow::Context as _;
use countersign_config::Config;
use countersign_core::{
    cause,
    clock::{Clock, SystemClock},
};
use countersign_email::{
    figures::{Figures, HandledMail, Latency, SPAM, UNCLASSIFIED},
    register::{MailRegister, MailStatus},
    rules::Class,
};
use tokio::{
    sync::Mutex,
    time::{Duration, Instant, timeout},
};

use super::super::{dependencies, keys};

/// The number of newest mails that are counted.
pub const MAX_COUNTED: usize = 10_000;

/// The time for which the metrics are not computed again.
const GOOD_FOR: Duration = Duration::from_secs(60);

/// The time limit for computing them. After that the earlier ones are shown.
const LIMIT: Duration = Duration::from_secs(5);

/// The commands about mail.
#[derive(Clone, Copy, Debug, clap::Subcommand)]
pub enum Command {
    /// Prints how many emails arrived, their outcomes, and how long each step took.
    Report,
}

/// Returns the figures about the newest mails as text.
///
/// # Errors
///
/// Fails if there is no mail account, or the store cannot be read.
pub async fn report(config: &Config) -> anyhow::Result<String> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let account = super::account::address(config, &clock).await?;
    let store = keys::sealed_to_read(dependencies::store_to_read(config, clock).await?, config)?;
    Ok(figures(&MailRegister::new(store, account)).await?.to_string())
}

async fn figures(book: &MailRegister) -> anyhow::Result<Figures> {
    let entries = book.newest(MAX_COUNTED).await.context("cannot read the list of emails")?;
    Ok(Figures::of(&entries.iter().map(HandledMail::of).collect::<Vec<_>>()))
}

/// Publishes the figures as metrics, computed at most once per [`GOOD_FOR`].
#[derive(Clone, Debug)]
pub struct MailMetrics {
    book: MailRegister,
    last: Arc<Mutex<Option<Instant>>>,
}

impl MailMetrics {
    /// Creates the metrics of the mails in this list.
    pub fn new(book: MailRegister) -> Self {
        Self { book, last: Arc::default() }
    }

    /// Computes the metrics again if they are old. Without an answer of the store the earlier ones stay.
    pub async fn refresh(&self) {
        let mut last = self.last.lock().await;
        if last.is_some_and(|at| at.elapsed() < GOOD_FOR) {
            return;
        }
        *last = Some(Instant::now());
        match timeout(LIMIT, figures(&self.book)).await {
            Ok(Ok(figures)) => publish(&figures),
            Ok(Err(error)) => {
                tracing::warn!(error = cause::chain(&*error), "Cannot compute the metrics of mail");
            }
            Err(_) => tracing::warn!("The metrics of mail were not computed in time"),
        }
    }
}

/// Sets the metrics. Classes and statuses without mails are set to 0.
fn publish(figures: &Figures) {
    for class in Class::ALL.into_iter().map(Class::as_str).chain([UNCLASSIFIED]) {
        let count = figures.classes.iter().find(|(name, _)| name == class).map_or(0, |(_, count)| *count);
        metrics::gauge!("countersign_mails", "class" => class).set(count as f64);
    }
    for status in MailStatus::ALL.into_iter().map(MailStatus::as_str).chain([SPAM]) {
        let count = figures.statuses.get(status).copied().unwrap_or_default();
        metrics::gauge!("countersign_mails_in_status", "status" => status).set(count as f64);
    }
    metrics::gauge!("countersign_mails_answered_automatically").set(figures.automatic as f64);
    metrics::gauge!("countersign_mail_approval_ratio").set(figures.approval_rate());
    metrics::gauge!("countersign_mail_review_ratio").set(figures.review_rate());
    for (node, latency) in &figures.nodes {
        publish_latency("countersign_mail_node_seconds", node, latency);
    }
    if let Some(run) = &figures.run {
        publish_latency("countersign_mail_run_seconds", "all", run);
    }
    for tool in &figures.tools {
        for (result, count) in [("success", tool.successes), ("failure", tool.failures())] {
            let name = tool.name.clone();
            metrics::gauge!("countersign_mail_tool_calls", "tool" => name, "result" => result).set(count as f64);
        }
        if let Some(mean) = tool.mean {
            metrics::gauge!("countersign_mail_tool_mean_seconds", "tool" => tool.name.clone()).set(mean / 1000.0);
        }
    }
}

/// Sets the percentiles of a distribution, in seconds.
fn publish_latency(name: &'static str, node: &str, latency: &Latency) {
    let Latency { count: _, p50, p90, p99, mean, min, max } = *latency;
    let values = [("p50", p50), ("p90", p90), ("p99", p99), ("mean", mean), ("min", min), ("max", max)];
    for (statistic, millis) in values {
        metrics::gauge!(name, "node" => node.to_owned(), "statistic" => statistic).set(millis / 1000.0);
    }
}
