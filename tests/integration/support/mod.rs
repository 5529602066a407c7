//! The production app wired to the sandbox servers.
