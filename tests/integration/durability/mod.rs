//! What survives what: killed processes, a network that misbehaves, stores that go away.

mod batches;
mod beside;
mod bridge_restarts;
mod crash_matrix;
mod crashing_bot;
mod crashing_store;
mod deliveries;
mod dialogues;
mod dialogues_beside;
mod dialogues_mail;
mod exports;
mod gate;
mod lease_loss;
mod mail_operators;
mod mail_servers;
mod many_mails;
mod operators;
mod platform_away;
mod process;
mod processes;
mod redis_down;
mod script;
mod slow_clients;
mod standing_still;
mod store_lost;
mod undelivered;
