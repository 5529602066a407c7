//! The production app wired to the sandbox servers.

pub(crate) mod proxy;
pub(crate) mod redis;
