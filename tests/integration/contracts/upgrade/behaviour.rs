//! The assignment engine against runs on a real server.
