//! The leaves: modules that every crate may use and that use none of our other crates.
//!
//! They are independent of Slack, stores, models and platforms. Start reading at [`ids`] and [`send_permit`].

pub mod addresses;
pub mod cause;
pub mod clock;
pub mod draft;
pub mod emoji;
pub mod hash;
pub mod http_log;
pub mod ids;
pub mod private_file;
pub mod recent;
pub mod reply;
pub mod send_permit;
pub mod spans;
pub mod status_line;
pub mod units;

/// A text that never changes. It is short or shared by its copies, so it is cheap to copy.
pub use smol_str::SmolStr;
