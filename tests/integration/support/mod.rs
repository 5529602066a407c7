//! The production app wired to the sandbox servers.

pub(crate) mod bot;
pub(crate) mod certificates;
pub(crate) mod collector;
pub(crate) mod dovecot;
pub(crate) mod ports;
pub(crate) mod postgres;
pub(crate) mod proxy;
pub(crate) mod raced_store;
pub(crate) mod redis;
pub(crate) mod redis_cluster;
pub(crate) mod sentinel;
pub(crate) mod short;
pub(crate) mod stream;
pub(crate) mod thread;
pub(crate) mod watched_store;
