//! `[server]`: the address for Slack's requests, health and metrics.

use std::{net::IpAddr, time::Duration};

use serde::Deserialize;

/// `[server]`: the address for Slack's requests, health and metrics.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// The address to listen on.
    pub address: IpAddr,
    /// The port to listen on; also `PORT`.
    pub port: u16,
    /// The maximum number of open connections. Left out: as many as the limit of open files allows.
    pub connections: Option<usize>,
    /// The time limit for receiving the head of a request, such as `"10s"`.
    #[serde(with = "humantime_serde")]
    pub header_timeout: Duration,
    /// The time limit for receiving the body of a request.
    #[serde(with = "humantime_serde")]
    pub body_timeout: Duration,
    /// The time for which a connection may stay open without a request.
    #[serde(with = "humantime_serde")]
    pub idle_timeout: Duration,
    /// The log levels, such as `info` or `countersign=debug,info`.
    pub log: String,
    /// The format of log lines: `text` or `json`.
    pub log_format: LogFormat,
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// Text for people.
    Text,
    /// One JSON object per line, for machines.
    Json,
}
