//! Countersign: a Slack bot that runs a team's experiments, and changes nothing without a countersignature.

pub mod assistant;
pub mod capabilities;
pub mod clock;
pub mod config;
//pub mod conversation;
pub mod graph;
pub mod ids;
pub mod model;
pub mod playground;
pub mod reply;
pub mod sandbox;
pub mod services;
pub mod slack;
pub mod store;
