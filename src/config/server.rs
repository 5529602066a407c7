//! `[server]`: the address for Slack's requests, health and metrics.

use std::net::IpAddr;

use serde::Deserialize;

/// `[server]`: the address for Slack's requests, health and metrics.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// The address to listen on.
    pub address: IpAddr,
    /// The port to listen on; also `PORT`.
    pub port: u16,
    /// How much is logged, such as `info` or `countersign=debug,info`.
    pub log: String,
    /// `text` or `json`.
    pub log_format: LogFormat,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// For people.
    Text,
    /// For machines.
    Json,
}
