//! The playground: everything that runs without a real system.
//!
//! [`workspace`] runs the production bot against stand-ins and shows it on [`page`], a workspace in the browser.
//! [`sandbox`] runs only the stand-ins, and [`evaluate`] measures how well a language model understands a set of
//! utterances. The stand-ins themselves are in the crate `countersign-sandbox`; here they are started together and
//! connected to the settings of a bot ([`platform_stand_in`], [`mail_stand_in`], [`model_stand_in`]).
//!
//! The bot must not know this crate, so that the program for a real workspace contains no stand-in.
//! `tests/integration/tidy.rs` checks this.

mod customers;
pub mod evaluate;
pub mod mail_stand_in;
pub mod model_stand_in;
pub mod page;
pub mod platform_stand_in;
pub mod sandbox;
pub mod workspace;
