//! Settings: one struct per component, read once. All invalid values are reported together. Capabilities add their own
//! sections ([`Additions`]).
//!
//! Settings are read from `config/default.toml` (embedded; it explains every key), then from the given file or the
//! chosen profile, then from the environment. Only this crate reads the environment. Secrets come only from the
//! environment and are [`secrecy::SecretString`]s, so that they cannot be printed. Start reading at [`Config`].
//!
//! This crate depends on none of the components that it configures, and names no capability.

mod approvals;
mod check;
mod digest_keys;
mod email;
mod envelopes;
mod line;
mod load;
mod log;
mod measure;
mod model;
mod nearest;
pub mod plans;
mod problem;
mod record;
mod secrets;
mod section;
mod server;
mod slack;
mod store;
mod telemetry;
mod variables;
mod workers;

use std::path::PathBuf;

pub use self::{
    approvals::{Approvals, ContextRule, Rule},
    check::between,
    digest_keys::digest_key,
    email::{Email, Encryption, MailProvider},
    envelopes::Envelope,
    line::{Line, successor},
    load::environment,
    log::{MODULES as LOG_MODULES, directives as log_directives},
    measure::{Kind, Limits, Measure},
    model::{ChosenModel, CostLimits, Model, ModelPrice, ModelPurpose, OtherModel, Provider},
    nearest::{most_similar, nearest},
    problem::{Problem, Problems},
    record::{Kept, Record, Stream},
    secrets::wrong_address,
    section::{Additions, Section, SectionSpec, Sections},
    server::{LogFormat, Server},
    slack::{Slack, SlackMode},
    store::{Store, StoreDurability, StoreKind},
    telemetry::Telemetry,
    variables::OPTIONAL,
    workers::Workers,
};

/// All settings.
#[derive(Clone, Debug)]
pub struct Config {
    /// The file that they were read from, if there is one.
    pub file: Option<PathBuf>,
    /// `[slack]`: the connection to Slack.
    pub slack: Slack,
    /// `[server]`: the address for Slack's requests, health and metrics.
    pub server: Server,
    /// `[store]`: the place where threads are stored.
    pub store: Store,
    /// `[workers]`: the distribution of threads among workers, and time limits.
    pub workers: Workers,
    /// `[approvals]`: the people who may approve or reject actions.
    pub approvals: Approvals,
    /// `[plans]`: requests with several steps.
    pub plans: plans::Plans,
    /// `[record]`: the retention of records, and the contents of an export.
    pub record: Record,
    /// `[model]`: the language models.
    pub model: Model,
    /// `[email]`: the mail account.
    pub email: Email,
    /// `[telemetry]`: the export of traces.
    pub telemetry: Telemetry,
    /// The sections of the capabilities.
    pub sections: Sections,
}
