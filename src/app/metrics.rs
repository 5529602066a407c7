//! All metrics, with their units and what they mean.
//!
//! A test compares this table with the places that count, with the page for operators, and with the dashboards and alerts.

use metrics::{
    Unit::{self, Count, Seconds},
    describe_counter, describe_gauge, describe_histogram,
};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder};

/// The kinds of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number that only grows; zero at the start of the process.
    Counter,
    /// A number that changes.
    Gauge,
    /// A distribution, with its count and sum.
    Histogram,
}

/// A metric: its name, kind, unit and meaning.
pub type Metric = (&'static str, Kind, Unit, &'static str);

use Kind::{Counter, Gauge, Histogram};

/// All metrics, by name.
pub const METRICS: &[Metric] = &[
    ("countersign_actions_total", Counter, Count, "Changes that ended, by action and outcome."),
    ("countersign_api_callbacks_total", Counter, Count, "Attempts to call back programs, by result."),
    ("countersign_api_claims_refused_total", Counter, Count, "Claims of programs that were refused, by reason."),
    ("countersign_api_claims_total", Counter, Count, "Approvals that programs claimed."),
    ("countersign_api_refused_sign_ins_total", Counter, Count, "Requests to the API with a wrong key."),
    ("countersign_api_requests_total", Counter, Count, "Requests to the API, by result."),
    ("countersign_api_waiters", Gauge, Count, "Connections of programs that wait for a decision."),
    ("countersign_api_waiting_requests", Gauge, Count, "Requests of programs that have no card yet."),
    ("countersign_asked_to_wait_total", Counter, Count, "Messages that Slack asked to send later."),
    ("countersign_audit_stream_entries_total", Counter, Count, "Entries of records that were sent to another system."),
    (
        "countersign_audit_stream_lag_seconds",
        Gauge,
        Seconds,
        "Age of the oldest entry that waits to be sent; 0 if there is none.",
    ),
    ("countersign_cards_open", Gauge, Count, "Cards that wait for a decision, up to 1000."),
    ("countersign_cards_total", Counter, Count, "Cards by action and event: opened, or how they were decided."),
    ("countersign_claims_lost_total", Counter, Count, "Messages that another process took over while they were sent."),
    ("countersign_dead_letters", Gauge, Count, "Messages and clicks that were given up and are kept."),
    (
        "countersign_decision_seconds",
        Histogram,
        Seconds,
        "Time from a request to its approval or rejection, by action and policy.",
    ),
    ("countersign_duplicates_total", Counter, Count, "Deliveries that had been stored before."),
    ("countersign_http_accept_errors_total", Counter, Count, "Connections that could not be accepted."),
    ("countersign_http_connections", Gauge, Count, "Open connections to the bot's server."),
    ("countersign_http_cut_off_total", Counter, Count, "Connections that the bot closed, by phase and reason."),
    (
        "countersign_inbox_busy_seconds",
        Gauge,
        Seconds,
        "Time since the inbox was last seen empty; no click waits for longer.",
    ),
    ("countersign_inbox_entries", Gauge, Count, "Clicks, commands and timers that wait or are handled."),
    ("countersign_mail_approval_ratio", Gauge, Count, "The part of the decided drafts that was approved."),
    ("countersign_mail_automatic_total", Counter, Count, "Emails that were answered without a person, by class."),
    ("countersign_mail_classified_total", Counter, Count, "Emails by the class that they were given."),
    ("countersign_mail_dispatched_total", Counter, Count, "Emails by how they ended."),
    ("countersign_mail_node_seconds", Gauge, Seconds, "Time of each step of the mail graph, by statistic."),
    ("countersign_mail_review_ratio", Gauge, Count, "The part of the emails that a person looked at."),
    ("countersign_mail_run_seconds", Gauge, Seconds, "Time from an email's arrival to its end, by statistic."),
    ("countersign_mail_step_seconds", Histogram, Seconds, "Time of each step of the mail graph."),
    ("countersign_mail_sync_age_seconds", Gauge, Seconds, "Time since the mailbox was last read."),
    ("countersign_mail_tool_calls", Gauge, Count, "Calls of tools about emails, by tool and result."),
    ("countersign_mail_tool_mean_seconds", Gauge, Seconds, "Mean time of a tool's calls about emails."),
    ("countersign_mail_tools_total", Counter, Count, "Calls of tools about emails, by tool and outcome."),
    ("countersign_mails", Gauge, Count, "Emails in the store, by class."),
    (
        "countersign_mails_answered_automatically",
        Gauge,
        Count,
        "Emails in the store that were answered without a person.",
    ),
    ("countersign_mails_in_status", Gauge, Count, "Emails in the store, by state."),
    ("countersign_mails_stuck_total", Counter, Count, "Emails that were in progress for too long."),
    ("countersign_mails_total", Counter, Count, "Emails that arrived."),
    ("countersign_mails_waiting", Gauge, Count, "Emails that wait for a person."),
    (
        "countersign_messages_for_other_channels_total",
        Counter,
        Count,
        "Messages for a channel that this program does not have.",
    ),
    ("countersign_messages_late", Gauge, Count, "Messages that wait for more than three minutes."),
    ("countersign_model_calls_total", Counter, Count, "Calls of language models, by model and result."),
    (
        "countersign_model_cost_usd",
        Histogram,
        Count,
        "Cost of each call of a language model whose price is known, in US dollars, by model.",
    ),
    (
        "countersign_model_over_limit_total",
        Counter,
        Count,
        "Calls of language models that were not made, by the limit of the cost that was reached.",
    ),
    ("countersign_model_tokens_total", Counter, Count, "Tokens by model and kind: input, cached, output."),
    ("countersign_models_retiring", Gauge, Count, "Configured models that their provider retires or no longer lists."),
    ("countersign_outbound_seconds", Histogram, Seconds, "Calls of outside systems, by system and status."),
    (
        "countersign_outbox_oldest_seconds",
        Gauge,
        Seconds,
        "Time for which the oldest message that is due waits; 0 if there is none.",
    ),
    ("countersign_panics_total", Counter, Count, "Panics: faults of the program."),
    ("countersign_ready", Gauge, Count, "1 if /readyz is green, else 0."),
    (
        "countersign_sent_after_claim_total",
        Counter,
        Count,
        "Messages that were sent after another process could have taken over.",
    ),
    ("countersign_slack_calls_total", Counter, Count, "Calls of Slack's Web API, by method and result."),
    ("countersign_slack_forged_total", Counter, Count, "Requests without a valid signature of Slack."),
    ("countersign_slack_ignored_total", Counter, Count, "Deliveries of Slack that are of no use to the bot."),
    ("countersign_slack_received_total", Counter, Count, "Deliveries of Slack, by kind."),
    (
        "countersign_slack_refused_total",
        Counter,
        Count,
        "Deliveries that were not acknowledged, since they could not be stored.",
    ),
    ("countersign_slack_retries_total", Counter, Count, "Deliveries that Slack repeated."),
    ("countersign_slack_socket_failures_total", Counter, Count, "Socket Mode connections that could not be opened."),
    ("countersign_slack_sockets", Gauge, Count, "Open Socket Mode connections."),
    ("countersign_slack_unreadable_total", Counter, Count, "Deliveries of Slack that cannot be read."),
    (
        "countersign_spans_dropped_total",
        Counter,
        Count,
        "Spans that were not exported: no room, or the collector did not take them.",
    ),
    ("countersign_step_seconds", Histogram, Seconds, "Time of each step of a thread, by node."),
    ("countersign_store_partition_unwritable", Gauge, Count, "1 for a part of the store that takes no writes."),
    ("countersign_store_round_trips_total", Counter, Count, "Exchanges with Redis."),
    ("countersign_store_synced_writes_total", Counter, Count, "Writes to SQLite that were synced to the disk."),
    ("countersign_store_unreadable_total", Counter, Count, "Entries of the store that cannot be read, by kind."),
    ("countersign_tasks_ended_total", Counter, Count, "Tasks that ended although they should always run."),
    ("countersign_threads_broken_off_total", Counter, Count, "Threads whose work panicked outside of a step."),
    ("countersign_threads_of_other_graphs_total", Counter, Count, "Threads that wait for a program with their graph."),
    ("countersign_twins_removed_total", Counter, Count, "Messages that had been posted twice and were deleted."),
    ("countersign_undelivered_total", Counter, Count, "Messages that were given up, by kind."),
    ("countersign_unhandled_total", Counter, Count, "Clicks and commands that were given up."),
];

/// The bounds of the buckets for the time of a step or a call, in seconds.
const SHORT: &[f64] = &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0];

/// The bounds of the buckets for the time of a decision, in seconds: from 10 s to a week.
const LONG: &[f64] =
    &[10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 4.0 * 3600.0, 24.0 * 3600.0, 3.0 * 86400.0, 7.0 * 86400.0];

/// The bounds of the buckets for the cost of a call, in US dollars.
const CENTS: &[f64] = &[0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0];

/// Returns a recorder for all metrics, which are not described yet.
pub(super) fn builder() -> Result<PrometheusBuilder, BuildError> {
    PrometheusBuilder::new()
        .set_buckets(SHORT)?
        .set_buckets_for_metric(Matcher::Full("countersign_decision_seconds".to_owned()), LONG)?
        .set_buckets_for_metric(Matcher::Full("countersign_model_cost_usd".to_owned()), CENTS)
}

/// Describes all metrics to the recorder.
pub(super) fn describe() {
    for (name, kind, unit, help) in METRICS {
        match kind {
            Counter => describe_counter!(*name, *unit, *help),
            Gauge => describe_gauge!(*name, *unit, *help),
            Histogram => describe_histogram!(*name, *unit, *help),
        }
    }
}
