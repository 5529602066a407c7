//! Creates the configured components: store, Slack client, capabilities and model.

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use anyhow::{Context, bail};
use async_trait::async_trait;
use countersign_api::{
    graph::{API, ApiState},
    settings::Api,
};
use countersign_assistant::{
    blob_cache::{BlobCache, MIN_RETENTION},
    state::AgentState,
};
use countersign_capabilities::{Allowances, Capability, History, Registry};
use countersign_config::{ChosenModel, Config, ModelPrice, ModelPurpose, Provider, StoreDurability, StoreKind};
use countersign_conversation::{
    approvals::policy,
    commands::settings::{self, ActionPolicies, Settings},
    presentation::links::Links,
};
use countersign_core::{
    cause,
    clock::Clock,
    ids::{CHAT, GraphName},
};
use countersign_email::{MAIL, send, spam, state::MailState};
use countersign_graph::{
    action::{ActionKind, ActionRecord, Label, Scope},
    conversing::Memories,
    engine::{PolicyFor, PolicyInput},
    standing::Entitled,
    store::{ActionFilter, Keep, Store},
};
use countersign_memory::{self as memory, Memory, notes::Notes};
use countersign_model::{
    Model, Purpose,
    anthropic::AnthropicModel,
    by_purpose::ModelByPurpose,
    embeddings::Embeddings,
    gemini::{GeminiEmbeddings, GeminiModel},
    openai::{self, OpenAiEmbeddings, OpenAiModel},
    prices::{Price, price_of},
    remote,
};
use countersign_plans::{self as plans, Plans};
use countersign_slack::client::SlackClient;
use countersign_standing::{self as standing, StandingApprovals, register::GrantRegister};
use countersign_store::{
    redis::{RedisStore, address::Access, durability::Trust},
    sqlite::SqliteStore,
};
use countersign_understanding::{RulesModel, phrase_book::PhraseBook as Phrases};
use countersign_watches::{self as watches, Watches, register::WatchRegister, settings::WatchSettings};
use countersign_wire::tls::{self, Authorities, Identity};
use secrecy::{ExposeSecret, SecretString};
use tokio::time::timeout;
use url::Url;

use super::installed;

/// The names of the graphs in this program.
pub const GRAPHS: &[&str] = &[CHAT, MAIL, API];

/// The actions of the capabilities that have no platform, and of the mail graph. The settings can name them, too.
const OWN_ACTIONS: &[&[&str]] = &[&standing::ACTIONS, &memory::ACTIONS, &plans::ACTIONS, &[send::NAME, spam::NAME]];

/// Returns the readers of the state of each graph's threads.
pub fn memories() -> Memories {
    Memories::default()
        .with::<AgentState>(GraphName::default())
        .with::<MailState>(GraphName::new(MAIL))
        .with::<ApiState>(GraphName::new(API))
}

/// Returns the policy of each change, as the settings say: those of `[api]` for what programs ask for, and those of
/// `[approvals]` for everything else.
pub fn policies(config: &Config) -> PolicyFor {
    let (general, api) = (config.approvals.clone(), config.sections.get::<Api>().clone());
    Arc::new(move |input| api.policy_of(input, &general).unwrap_or_else(|| policy::policy_for(&general, input)))
}

/// Returns everyone whom the settings name as approvers: people, user groups, `channel` and `requester`.
pub fn approvers_named(config: &Config) -> Vec<String> {
    let mut named = config.approvals.named();
    named.extend(config.sections.get::<Api>().named());
    named.sort();
    named.dedup();
    named
}

/// Opens the configured store, and creates it if necessary.
pub async fn store(config: &Config, clock: Arc<dyn Clock>) -> anyhow::Result<Arc<dyn Store>> {
    match config.store_kind() {
        StoreKind::Sqlite => {
            let path = &config.store.path;
            if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
                std::fs::create_dir_all(folder)
                    .with_context(|| format!("cannot create the folder {}", folder.display()))?;
            }
            let store = SqliteStore::open(path, clock);
            Ok(Arc::new(store.with_context(|| format!("cannot open the store {}", path.display()))?))
        }
        StoreKind::Redis => {
            let store = RedisStore::open(redis_address(config)?, &redis_access(config)?).await;
            Ok(Arc::new(store.context(NO_REDIS)?))
        }
    }
}

/// Opens the configured store for reading only, which is possible while a bot uses it. No store is created.
pub async fn store_to_read(config: &Config, clock: Arc<dyn Clock>) -> anyhow::Result<Arc<dyn Store>> {
    match config.store_kind() {
        StoreKind::Sqlite => Ok(Arc::new(SqliteStore::open_to_read(&config.store.path, clock)?)),
        StoreKind::Redis => {
            let store = RedisStore::open_to_read(redis_address(config)?, &redis_access(config)?).await;
            Ok(Arc::new(store.context(NO_REDIS)?))
        }
    }
}

/// Returns the address of Redis, if it is the configured store.
pub fn redis_url(config: &Config) -> anyhow::Result<Option<&SecretString>> {
    match (config.store_kind(), &config.store.redis_url) {
        (StoreKind::Redis, None) => bail!("store.kind is \"redis\", but REDIS_URL is not set"),
        (StoreKind::Redis, Some(url)) => Ok(Some(url)),
        (StoreKind::Sqlite, _) => Ok(None),
    }
}

/// The error if Redis is the store and cannot be opened.
const NO_REDIS: &str = "cannot open the Redis store";

/// Returns the address of Redis, which is the configured store.
fn redis_address(config: &Config) -> anyhow::Result<&str> {
    Ok(redis_url(config)?.expect("called only if Redis is the store").expose_secret())
}

/// Returns a client for the configured workspace.
pub fn slack(config: &Config) -> anyhow::Result<SlackClient> {
    let Some(token) = &config.slack.bot_token else {
        bail!("SLACK_BOT_TOKEN is not set; it begins with xoxb- and is on the app's page under OAuth & Permissions");
    };
    let settings = &config.slack;
    SlackClient::with_answer_limit(settings.max_answer_mb << 20, &settings.api_url, token, settings.timeout)
        .context("cannot set up the Slack client")
}

/// Returns how the configured Redis is reached.
pub(super) fn redis_access(config: &Config) -> anyhow::Result<Access> {
    let settings = &config.store;
    let trust = match (settings.allow_lossy, settings.durability) {
        (true, _) => Trust::Lossy,
        (false, StoreDurability::Vouched) => Trust::Vouched,
        (false, StoreDurability::Checked) => Trust::Checked,
    };
    let read = |key: &str, path: &Path| {
        std::fs::read(path).with_context(|| format!("cannot read store.{key}, {}", path.display()))
    };
    let authorities = match &settings.ca_file {
        Some(path) => Authorities::from_pem(read("ca_file", path)?)
            .with_context(|| format!("store.ca_file, {}, cannot be used", path.display()))?,
        None => Authorities::default(),
    };
    let files = settings.cert_file.as_deref().zip(settings.key_file.as_deref());
    let identity = files.map(|(cert, key)| {
        let identity = Identity::from_pem(&read("cert_file", cert)?, &read("key_file", key)?);
        let (cert, key) = (cert.display(), key.display());
        identity.with_context(|| format!("store.cert_file, {cert}, and store.key_file, {key}, cannot be used"))
    });
    let identity = identity.transpose()?;
    let needs_tls = settings.ca_file.is_some() || identity.is_some();
    let tls = needs_tls.then(|| tls::client_as(&authorities, identity)).transpose();
    let tls = tls.context("the certificates in store.ca_file, store.cert_file and store.key_file cannot be used")?;
    Ok(Access { trust, tls: tls.map(Arc::new) })
}

/// Returns the registry of the installed capabilities, without those that need a store, such as standing approvals.
///
/// # Errors
///
/// If a client cannot be set up, or as [`registry`].
pub fn capabilities(config: &Config, clock: Arc<dyn Clock>) -> anyhow::Result<Registry> {
    registry(config, installed::capabilities(config, clock)?)
}

/// Returns the registry of these capabilities and of those that need the store or the others: memory, plans, watches and
/// standing approvals. Also returns the register of standing approvals.
///
/// # Errors
///
/// As [`capabilities`].
pub fn with_standing_approvals(
    config: &Config,
    mut all: Vec<Arc<dyn Capability>>,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    entitled: Arc<dyn Entitled>,
    links: Links,
) -> anyhow::Result<(Registry, Arc<GrantRegister>)> {
    let records: Arc<dyn History> = Arc::new(Records { store: store.clone(), links });
    all.iter().for_each(|capability| capability.remember_by(records.clone()));
    all.push(Arc::new(Memory(Arc::new(Notes::new(store.clone(), clock.clone())))));
    all.push(Arc::new(Plans::new(Registry::build(all.clone())?)));
    let every = config.sections.get::<WatchSettings>().every;
    let book = WatchRegister::new(store.clone(), clock.clone());
    all.push(Arc::new(Watches::new(book, watches::observers(&all), every)));
    let allowances = Allowances::new(all.iter().flat_map(|capability| capability.info().allowances));
    let book = Arc::new(GrantRegister::new(store, clock.clone(), entitled, allowances));
    all.push(Arc::new(StandingApprovals::new(book.clone(), all.clone(), clock)));
    let mut registry = registry(config, all)?;
    registry.history = Some(records);
    Ok((registry, book))
}

/// The time limit for reading the records that a question is about.
const RECORDS_WITHIN: Duration = Duration::from_secs(5);

/// The records of past changes in a store.
struct Records {
    store: Arc<dyn Store>,
    links: Links,
}

impl Records {
    /// Returns the records with any of these labels.
    async fn read(&self, labels: &[Label], limit: usize) -> Option<Vec<ActionRecord>> {
        let filter = ActionFilter::under(labels, &[], limit);
        let failure = match timeout(RECORDS_WITHIN, self.store.actions(&filter)).await {
            Ok(Ok(found)) => return Some(found),
            Ok(Err(error)) => cause::chain(&error),
            Err(late) => late.to_string(),
        };
        tracing::warn!(error = failure, "Cannot read the records of past changes");
        None
    }
}

#[async_trait]
impl History for Records {
    async fn of(&self, target: &str, limit: usize) -> Vec<ActionRecord> {
        let mut found = self.read(&[Label::About(target.to_owned())], limit).await.unwrap_or_default();
        found.retain(|record| record.intent_at.is_some() && record.proof.holds());
        found
    }

    async fn under(&self, labels: &[Label], limit: usize) -> Option<Vec<ActionRecord>> {
        let mut found = self.read(labels, limit).await?;
        found.retain(|record| record.proof.holds());
        Some(found)
    }

    async fn address(&self, record: &ActionRecord) -> Option<String> {
        timeout(RECORDS_WITHIN, self.links.card(record)).await.ok()?.ok()?
    }
}

/// Returns the registry of these capabilities. Fails if they conflict, or if a rule in the settings is for an unknown
/// action.
fn registry(config: &Config, all: Vec<Arc<dyn Capability>>) -> anyhow::Result<Registry> {
    let registry = Registry::build(all)?;
    let contexts = &config.approvals.contexts;
    let within =
        contexts.iter().map(|(context, rule)| (format!("approvals.contexts.{context}.actions"), &rule.actions));
    let rules = std::iter::once(("approvals.actions".to_owned(), &config.approvals.actions)).chain(within);
    for (key, name) in rules.flat_map(|(key, rules)| rules.keys().map(move |name| (key.clone(), name))) {
        let is_off = || registry.hidden().contains(name.as_str());
        let is_own = || OWN_ACTIONS.iter().any(|own| own.contains(&name.as_str()));
        if !registry.actions.contains_key(name.as_str()) && !is_own() && !is_off() {
            let known = registry.actions.keys().copied().chain(OWN_ACTIONS.iter().copied().flatten().copied());
            match countersign_config::nearest(name, known) {
                Some(nearest) => bail!("{key}.{name}: there is no such action; the nearest is {nearest}"),
                None => bail!(
                    "{key}.{name}: there is no such action here; those of a platform exist once its address is set"
                ),
            }
        }
    }
    Ok(registry)
}

/// Returns the configured models, and the rule-based fallback. Without an API key there is only the latter.
///
/// # Errors
///
/// If a provider is chosen whose key is not set, a client cannot be set up, or there are limits of the cost and the price
/// of a model is not known.
pub fn models(config: &Config, phrases: Arc<Phrases>) -> anyhow::Result<(ModelByPurpose, Arc<dyn Model>)> {
    let rules: Arc<dyn Model> = Arc::new(RulesModel(phrases));
    let general = config.model.general().map(|chosen| model(config, "model", chosen)).transpose()?;
    let mut models = ModelByPurpose::new(general.unwrap_or_else(|| rules.clone()));
    for setting in ModelPurpose::ALL {
        if let Some(chosen) = config.model.of(setting) {
            models = models.with(purpose_of(setting), model(config, setting.key(), chosen)?);
        }
    }
    Ok((models, rules))
}

/// Returns the source of embeddings, if one is configured.
///
/// # Errors
///
/// As [`models`].
pub fn embeddings(config: &Config) -> anyhow::Result<Option<Arc<dyn Embeddings>>> {
    let Some(chosen) = config.model.embedding() else { return Ok(None) };
    let (provider, settings) = model_settings(config, "model.embed", chosen)?;
    let embeddings: Arc<dyn Embeddings> = match provider {
        Provider::Anthropic => bail!("model.embed.provider: anthropic has no embeddings"),
        Provider::OpenAi => Arc::new(OpenAiEmbeddings::new(settings).context("cannot set up model.embed")?),
        Provider::Gemini => Arc::new(GeminiEmbeddings::new(settings).context("cannot set up model.embed")?),
    };
    Ok(Some(embeddings))
}

/// Returns the price of a model, if it is known.
pub(super) fn price(config: &Config, name: &str) -> Option<Price> {
    let own = config.model.prices.iter().map(|(name, ModelPrice { input, cached, output })| {
        (name.clone(), Price { input: *input, cached: *cached, output: *output })
    });
    price_of(name, &own.collect())
}

/// Returns the client for a model that the settings choose under `key`.
fn model(config: &Config, key: &str, chosen: ChosenModel) -> anyhow::Result<Arc<dyn Model>> {
    if let Some(limit) = config.model.limits.first()
        && price(config, &chosen.name).is_none()
    {
        bail!(
            "{limit} is set, but the price of `{name}` is not known; set model.prices.\"{name}\", such as {{ input = 0.5, \
             cached = 0.05, output = 2.0 }}",
            name = chosen.name
        );
    }
    let (provider, settings) = model_settings(config, key, chosen)?;
    let failed = || format!("cannot set up the client for the language model of {key}");
    let model: Arc<dyn Model> = match provider {
        Provider::Anthropic => Arc::new(AnthropicModel::new(settings).with_context(failed)?),
        Provider::OpenAi => Arc::new(OpenAiModel::new(settings).with_context(failed)?),
        Provider::Gemini => Arc::new(GeminiModel::new(settings).with_context(failed)?),
    };
    Ok(model)
}

/// Returns the settings of a client. Only other servers than OpenAI's and Azure's may need no key.
pub(super) fn model_settings(
    config: &Config,
    key: &str,
    chosen: ChosenModel,
) -> anyhow::Result<(Provider, remote::Settings)> {
    let ChosenModel { provider, name, base_url, api_key, timeout, attempts, extra, is_named: _ } = chosen;
    let base_url: Url = base_url.parse().with_context(|| format!("{key}.base_url isn't a valid URL"))?;
    if api_key.is_none() && (provider != Provider::OpenAi || openai::is_official(&base_url)) {
        bail!("{key}.provider is \"{provider}\", but {} is not set", provider.key_variable());
    }
    let price = price(config, &name);
    let settings = remote::Settings {
        base_url,
        api_key: api_key.unwrap_or_default(),
        model: name,
        // All attempts together take up to 1.5 times this. The rest of the step's time is for the fallback.
        timeout: timeout.min(config.workers.step_timeout / 2),
        attempts,
        extra,
        price,
    };
    Ok((provider, settings))
}

/// Returns the purpose of requests to the model that is configured for `setting`.
pub(super) fn purpose_of(setting: ModelPurpose) -> Purpose {
    match setting {
        ModelPurpose::Analyze => Purpose::Analyze,
        ModelPurpose::Gather => Purpose::Gather,
        ModelPurpose::Respond => Purpose::Respond,
        ModelPurpose::Classify => Purpose::Classify,
        ModelPurpose::Generate => Purpose::Generate,
    }
}

/// Returns the user groups that the settings name as approvers.
pub fn groups_named(config: &Config) -> Vec<String> {
    approvers_named(config).into_iter().filter(|name| name.starts_with('S')).collect()
}

/// Returns the settings as they are shown to people.
pub fn shown_settings(config: &Config, actions: &BTreeMap<&'static str, Arc<dyn ActionKind>>) -> Settings {
    let within = |scope: &Scope| {
        let shown = actions.iter().filter(|(_, kind)| !kind.info().is_personal);
        let policies = shown.map(|(name, kind)| {
            let policy = |irreversible| {
                policy::policy_for(
                    &config.approvals,
                    &PolicyInput { action: name, irreversible, scope, is_suggested: false },
                )
            };
            ActionPolicies {
                action: (*name).to_owned(),
                policy: policy(kind.irreversible()),
                irreversible: policy(true),
            }
        });
        policies.collect::<Vec<_>>()
    };
    let policies = within(&Scope::default());
    let contexts = config.approvals.contexts.keys().map(|context| {
        let there = within(&Scope::default().in_context(context.as_str()));
        (context.clone(), settings::differing(there, &policies))
    });
    let contexts = contexts.collect();
    Settings {
        policies,
        contexts,
        envelopes: config.approvals.envelopes.clone(),
        measures: config.approvals.measures,
        model: config.model.general().map(|chosen| chosen.name),
        costs: config.model.limits,
        expires_after: config.approvals.expires_after,
        threads: config.workers.threads,
        step_timeout: config.workers.step_timeout,
    }
}

/// The blob cache of the assistant, in the store.
pub struct StoreBlobCache(pub Arc<dyn Store>);

#[async_trait]
impl BlobCache for StoreBlobCache {
    async fn put(&self, bytes: &[u8]) -> Option<String> {
        let put = self.0.put_blob(bytes, Keep::For(MIN_RETENTION)).await;
        put.inspect_err(|error| {
            tracing::warn!(
                error = cause::chain(&error),
                "Cannot store a large answer as a blob; it stays in its thread's state"
            )
        })
        .ok()
    }

    async fn get(&self, name: &str) -> Option<Vec<u8>> {
        let got = self.0.get_blob(name).await;
        got.inspect_err(|error| {
            tracing::warn!(error = cause::chain(&error), "Cannot read a large answer from the store")
        })
        .ok()?
    }
}
