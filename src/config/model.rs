//! `[model]`: the language models.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    time::Duration,
};

use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Problem, check::between, line::Line, secrets::wrong_address};

/// The members of requests that `extra` cannot replace, as the rest of the program depends on them.
const OWN_MEMBERS: &[&str] =
    &["model", "messages", "contents", "system", "systemInstruction", "tools", "toolConfig", "tool_choice", "stream"];

/// A provider of language models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    /// Anthropic, or another server with the Messages API.
    Anthropic,
    /// OpenAI, or another server with the Chat Completions API.
    OpenAi,
    /// Google.
    Gemini,
}

impl Provider {
    /// All providers, in the order in which they are listed.
    pub const ALL: [Self; 3] = [Self::Anthropic, Self::OpenAi, Self::Gemini];

    /// Returns the variable that contains the key.
    pub fn key_variable(self) -> &'static str {
        match self {
            Self::Anthropic => "ANTHROPIC_API_KEY",
            Self::OpenAi => "OPENAI_API_KEY",
            Self::Gemini => "GEMINI_API_KEY",
        }
    }

    /// Returns the variable that contains the address.
    pub fn url_variable(self) -> &'static str {
        match self {
            Self::Anthropic => "ANTHROPIC_BASE_URL",
            Self::OpenAi => "OPENAI_BASE_URL",
            Self::Gemini => "GEMINI_BASE_URL",
        }
    }

    /// Returns the model for embeddings that is used if none is named; `None` if the provider has none.
    pub fn default_embedding_model(self) -> Option<&'static str> {
        match self {
            Self::Anthropic => None,
            Self::OpenAi => Some("text-embedding-3-small"),
            Self::Gemini => Some("gemini-embedding-001"),
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::Gemini => "gemini",
        })
    }
}

/// A purpose that can have a model of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelPurpose {
    /// Determine what a person wants.
    Analyze,
    /// Collect what is needed for the answer.
    Gather,
    /// Answer a person.
    Respond,
    /// Classify an e-mail.
    Classify,
    /// Draft the answer to an e-mail.
    Generate,
}

impl ModelPurpose {
    /// All purposes, in the order of the settings.
    pub const ALL: [Self; 5] = [Self::Analyze, Self::Gather, Self::Respond, Self::Classify, Self::Generate];

    /// Returns the key of the purpose in the settings.
    pub fn key(self) -> &'static str {
        match self {
            Self::Analyze => "model.analyze",
            Self::Gather => "model.gather",
            Self::Respond => "model.respond",
            Self::Classify => "model.classify",
            Self::Generate => "model.generate",
        }
    }
}

/// `[model]`: the language models. Without any key, only the documented phrases are understood.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// The provider. If it is not set, the one whose key is set; Anthropic if several are.
    #[serde(default)]
    pub provider: Option<Provider>,
    /// The model's name at its provider. If it is not set, the newest model of the provider's [`Line`].
    #[serde(default)]
    pub name: Option<String>,
    /// The address of the API, instead of the provider's own.
    #[serde(default)]
    pub base_url: Option<String>,
    /// Members that are added to each request, such as the effort.
    #[serde(default)]
    pub extra: Map<String, Value>,
    /// The address of the Messages API; also `ANTHROPIC_BASE_URL`.
    pub anthropic_url: String,
    /// The address of the Chat Completions API; also `OPENAI_BASE_URL`.
    pub openai_url: String,
    /// The address of the Gemini API; also `GEMINI_BASE_URL`.
    pub gemini_url: String,
    /// The time limit of one attempt of a call.
    #[serde(with = "humantime_serde")]
    pub timeout: Duration,
    /// The total number of attempts of a call.
    pub attempts: u32,
    /// The amounts that models may cost.
    #[serde(default)]
    pub limits: CostLimits,
    /// The prices of models that are not in the program's table, or that cost something else.
    #[serde(default)]
    pub prices: BTreeMap<String, ModelPrice>,
    /// The model that determines what a person wants, if it is another one.
    #[serde(default)]
    pub analyze: Option<OtherModel>,
    /// The model that collects what is needed for an answer, if it is another one.
    #[serde(default)]
    pub gather: Option<OtherModel>,
    /// The model that answers a person, if it is another one.
    #[serde(default)]
    pub respond: Option<OtherModel>,
    /// The model that classifies e-mails, if it is another one.
    #[serde(default)]
    pub classify: Option<OtherModel>,
    /// The model that drafts answers to e-mails, if it is another one.
    #[serde(default)]
    pub generate: Option<OtherModel>,
    /// The model for embeddings. If it is not set, one of the provider, if it has any.
    #[serde(default)]
    pub embed: Option<OtherModel>,
    /// `ANTHROPIC_API_KEY`.
    #[serde(skip)]
    pub api_key: Option<SecretString>,
    /// `OPENAI_API_KEY`.
    #[serde(skip)]
    pub openai_api_key: Option<SecretString>,
    /// `GEMINI_API_KEY`.
    #[serde(skip)]
    pub gemini_api_key: Option<SecretString>,
    /// The names of the default models, where the lists of the providers tell them; the keys are the provider and the
    /// address of its API.
    #[serde(skip)]
    pub newest: HashMap<(Provider, String), String>,
}

/// The amounts that models may cost, in US dollars. Without one there is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostLimits {
    /// The amount for one thread.
    #[serde(default)]
    pub thread: Option<f64>,
    /// The amount for one person on one day.
    #[serde(default)]
    pub person_a_day: Option<f64>,
    /// The amount for everyone on one day.
    #[serde(default)]
    pub day: Option<f64>,
}

impl CostLimits {
    /// Returns the key of each limit in the settings, and its amount if it is set.
    fn all(&self) -> [(&'static str, Option<f64>); 3] {
        [
            ("model.limits.thread", self.thread),
            ("model.limits.person_a_day", self.person_a_day),
            ("model.limits.day", self.day),
        ]
    }

    /// Returns the key of the first limit that is set.
    pub fn first(&self) -> Option<&'static str> {
        self.all().into_iter().find_map(|(key, amount)| amount.map(|_| key))
    }
}

/// The price of a model, in US dollars for a million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelPrice {
    /// Input that is not read from the cache.
    pub input: f64,
    /// Input that is read from the cache.
    pub cached: f64,
    /// Output.
    pub output: f64,
}

/// The settings of a model for one purpose. What is not set is as in `[model]`; with another provider, name and address
/// are those of that provider.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OtherModel {
    /// The provider.
    #[serde(default)]
    pub provider: Option<Provider>,
    /// The model's name at its provider.
    #[serde(default)]
    pub name: Option<String>,
    /// The address of the API.
    #[serde(default)]
    pub base_url: Option<String>,
    /// The time limit of one attempt of a call.
    #[serde(default, with = "humantime_serde::option")]
    pub timeout: Option<Duration>,
    /// Members that are added to each request. With another provider, those of `[model]` are not.
    #[serde(default)]
    pub extra: Option<Map<String, Value>>,
}

/// A model that the settings choose.
#[derive(Clone, Debug)]
pub struct ChosenModel {
    /// The provider.
    pub provider: Provider,
    /// The model's name at its provider.
    pub name: String,
    /// True if the settings contain the name, false if it is a default.
    pub is_named: bool,
    /// The address of the API.
    pub base_url: String,
    /// The key; `None` for a server that needs none.
    pub api_key: Option<SecretString>,
    /// The time limit of one attempt of a call.
    pub timeout: Duration,
    /// The total number of attempts of a call.
    pub attempts: u32,
    /// Members that are added to each request.
    pub extra: Map<String, Value>,
}

impl Model {
    /// Returns the model for all purposes that have none of their own; `None` if there is no key.
    pub fn general(&self) -> Option<ChosenModel> {
        let provider = self.chosen_provider()?;
        Some(self.chosen(provider, &OtherModel::default()))
    }

    /// Returns the model for a purpose, if it is another one than the general model.
    pub fn of(&self, purpose: ModelPurpose) -> Option<ChosenModel> {
        let other = self.other(purpose)?;
        let provider = other.provider.or_else(|| self.chosen_provider())?;
        Some(self.chosen(provider, other))
    }

    /// Returns all models that the settings choose, with their keys in the settings.
    pub fn all(&self) -> Vec<(&'static str, ChosenModel)> {
        let general = self.general().map(|general| ("model", general));
        let others = ModelPurpose::ALL.into_iter().filter_map(|purpose| Some((purpose.key(), self.of(purpose)?)));
        let embedding = self.embedding().map(|embedding| ("model.embed", embedding));
        general.into_iter().chain(others).chain(embedding).collect()
    }

    /// Returns the model for embeddings; `None` if none is set and there is no key of a provider that has any.
    pub fn embedding(&self) -> Option<ChosenModel> {
        let none = OtherModel::default();
        let other = self.embed.as_ref().unwrap_or(&none);
        let is_usable =
            |provider: &Provider| provider.default_embedding_model().is_some() && self.key_of(*provider).is_some();
        let general = self.chosen_provider().filter(is_usable);
        let provider = other.provider.or(general).or_else(|| Provider::ALL.into_iter().find(is_usable))?;
        let mut chosen = self.chosen(provider, other);
        chosen.extra = other.extra.clone().unwrap_or_default();
        if other.name.is_none() {
            provider.default_embedding_model()?.clone_into(&mut chosen.name);
        }
        chosen.is_named = other.name.is_some();
        Some(chosen)
    }

    /// Returns the key of a provider, if it is set and not blank.
    pub fn key_of(&self, provider: Provider) -> Option<&SecretString> {
        let key = match provider {
            Provider::Anthropic => &self.api_key,
            Provider::OpenAi => &self.openai_api_key,
            Provider::Gemini => &self.gemini_api_key,
        };
        key.as_ref().filter(|key| !key.expose_secret().trim().is_empty())
    }

    /// Returns the provider that is set, or the only one with a key. Anthropic is chosen if it has a key.
    fn chosen_provider(&self) -> Option<Provider> {
        let mut keyed = Provider::ALL.into_iter().filter(|provider| self.key_of(*provider).is_some());
        self.provider.or_else(|| keyed.next())
    }

    fn other(&self, purpose: ModelPurpose) -> Option<&OtherModel> {
        match purpose {
            ModelPurpose::Analyze => self.analyze.as_ref(),
            ModelPurpose::Gather => self.gather.as_ref(),
            ModelPurpose::Respond => self.respond.as_ref(),
            ModelPurpose::Classify => self.classify.as_ref(),
            ModelPurpose::Generate => self.generate.as_ref(),
        }
    }

    fn chosen(&self, provider: Provider, other: &OtherModel) -> ChosenModel {
        let is_general = self.chosen_provider() == Some(provider);
        let general = |value: &Option<String>| value.clone().filter(|_| is_general);
        let own_url = match provider {
            Provider::Anthropic => &self.anthropic_url,
            Provider::OpenAi => &self.openai_url,
            Provider::Gemini => &self.gemini_url,
        };
        let name = other.name.clone().or_else(|| general(&self.name));
        let base_url = other.base_url.clone().or_else(|| general(&self.base_url));
        let base_url = base_url.unwrap_or_else(|| own_url.clone());
        let default = || {
            let newest = self.newest.get(&(provider, base_url.clone())).cloned();
            newest.unwrap_or_else(|| Line::of(provider).known.to_owned())
        };
        let general_extra = if is_general { self.extra.clone() } else { Map::new() };
        ChosenModel {
            provider,
            is_named: name.is_some(),
            name: name.unwrap_or_else(default),
            base_url,
            api_key: self.key_of(provider).cloned(),
            timeout: other.timeout.unwrap_or(self.timeout),
            attempts: self.attempts,
            extra: other.extra.clone().unwrap_or(general_extra),
        }
    }

    /// Returns the key in the settings and the values of each model for one purpose.
    fn others(&self) -> impl Iterator<Item = (&'static str, &OtherModel)> {
        let purposes = ModelPurpose::ALL.into_iter().map(|purpose| (purpose.key(), self.other(purpose)));
        let all = purposes.chain([("model.embed", self.embed.as_ref())]);
        all.filter_map(|(key, other)| Some((key, other?)))
    }

    /// Returns all problems with the values.
    pub(super) fn problems(&self) -> Vec<Problem> {
        let mut found = Vec::new();
        let mut note = |key: String, what: Option<String>| found.extend(what.map(|what| Problem { key, what }));
        for (key, url) in
            [("anthropic_url", &self.anthropic_url), ("openai_url", &self.openai_url), ("gemini_url", &self.gemini_url)]
        {
            note(format!("model.{key}"), wrong_address(url));
        }
        let own = OtherModel {
            provider: self.provider,
            name: self.name.clone(),
            base_url: self.base_url.clone(),
            timeout: Some(self.timeout),
            extra: Some(self.extra.clone()),
        };
        for (key, model) in std::iter::once(("model", &own)).chain(self.others()) {
            note(format!("{key}.base_url"), model.base_url.as_deref().and_then(wrong_address));
            let is_blank = model.name.as_ref().is_some_and(|name| name.trim().is_empty());
            note(format!("{key}.name"), is_blank.then(|| "found nothing; expected its name".to_owned()));
            note(format!("{key}.timeout"), model.timeout.and_then(|timeout| between(timeout, 1, 600)));
            let extra = model.extra.as_ref();
            let own = OWN_MEMBERS.iter().find(|own| extra.is_some_and(|extra| extra.contains_key(**own)));
            let what = own.map(|own| format!("found `{own}`, which each request has; expected an optional member"));
            note(format!("{key}.extra"), what);
        }
        let attempts = self.attempts;
        let wrong = !(1..=10).contains(&attempts);
        note("model.attempts".to_owned(), wrong.then(|| format!("found {attempts}; expected 1 to 10")));
        for (key, amount) in self.limits.all() {
            let wrong = amount.filter(|amount| !(amount.is_finite() && *amount > 0.0));
            note(
                key.to_owned(),
                wrong.map(|amount| format!("found {amount}; expected an amount in US dollars above 0")),
            );
        }
        for (name, ModelPrice { input, cached, output }) in &self.prices {
            let wrong = [input, cached, output].into_iter().find(|price| !(price.is_finite() && **price >= 0.0));
            let what =
                wrong.map(|price| format!("found {price}; expected US dollars for a million tokens, at least 0"));
            note(format!("model.prices.{name}"), what);
        }
        if self.chosen_provider().is_none() {
            // A conversation needs a model for all of its purposes.
            let what = "found a model for this purpose, but none for the others; expected model.provider or a key";
            for purpose in [ModelPurpose::Analyze, ModelPurpose::Gather, ModelPurpose::Respond] {
                note(purpose.key().to_owned(), self.other(purpose).map(|_| what.to_owned()));
            }
        }
        let has_none = self.embed.as_ref().and_then(|embed| embed.provider) == Some(Provider::Anthropic);
        let what = || "found `anthropic`, which has no embeddings; expected openai or gemini".to_owned();
        note("model.embed.provider".to_owned(), has_none.then(what));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Additions, Config};

    /// The settings with these variables.
    fn model(variables: &[(&str, &str)]) -> Model {
        let environment = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let read = Config::load(None, &environment, &Additions::default());
        read.unwrap_or_else(|problems| panic!("{problems}")).model
    }

    const ANTHROPIC: (&str, &str) = ("ANTHROPIC_API_KEY", "key-1");
    const OPENAI: (&str, &str) = ("OPENAI_API_KEY", "key-2");
    const GEMINI: (&str, &str) = ("GEMINI_API_KEY", "key-3");

    fn shown(chosen: Option<ChosenModel>) -> Option<String> {
        let ChosenModel { provider, name, base_url, .. } = chosen?;
        Some(format!("{provider} {name} {base_url}"))
    }

    #[test]
    fn the_provider_follows_from_the_keys() {
        let general = |keys: &[(&str, &str)]| model(keys).general().map(|chosen| chosen.provider);
        assert_eq!(general(&[]), None);
        assert_eq!(general(&[ANTHROPIC]), Some(Provider::Anthropic));
        assert_eq!(general(&[OPENAI]), Some(Provider::OpenAi));
        assert_eq!(general(&[GEMINI]), Some(Provider::Gemini));
        assert_eq!(general(&[GEMINI, ANTHROPIC]), Some(Provider::Anthropic));
        let set = model(&[ANTHROPIC, ("COUNTERSIGN__MODEL__PROVIDER", "gemini")]).general();
        assert_eq!(set.map(|chosen| (chosen.provider, chosen.api_key.is_some())), Some((Provider::Gemini, false)));
    }

    #[test]
    fn a_purpose_can_have_another_model() {
        let model = model(&[
            OPENAI,
            ("COUNTERSIGN__MODEL__NAME", "large"),
            ("COUNTERSIGN__MODEL__CLASSIFY__NAME", "small"),
            ("COUNTERSIGN__MODEL__CLASSIFY__TIMEOUT", "5s"),
            ("COUNTERSIGN__MODEL__GENERATE__PROVIDER", "gemini"),
        ]);
        let openai = "https://api.openai.com/v1";
        assert_eq!(shown(model.general()), Some(format!("openai large {openai}")));
        assert_eq!(shown(model.of(ModelPurpose::Classify)), Some(format!("openai small {openai}")));
        assert_eq!(model.of(ModelPurpose::Classify).map(|chosen| chosen.timeout), Some(Duration::from_secs(5)));
        let gemini = "gemini gemini-3.8-flash https://generativelanguage.googleapis.com";
        assert_eq!(shown(model.of(ModelPurpose::Generate)), Some(gemini.to_owned()));
        assert_eq!(shown(model.of(ModelPurpose::Respond)), None);
        assert_eq!(shown(model.embedding()), Some(format!("openai text-embedding-3-small {openai}")));
    }

    #[test]
    fn a_default_is_the_newest_that_the_list_of_the_provider_has() {
        let mut model = model(&[ANTHROPIC, OPENAI, ("COUNTERSIGN__MODEL__CLASSIFY__PROVIDER", "openai")]);
        let newest = ((Provider::Anthropic, "https://api.anthropic.com".to_owned()), "claude-sonnet-6".to_owned());
        model.newest.extend([newest]);
        let names: Vec<_> = model.all().into_iter().map(|(key, chosen)| (key, chosen.name, chosen.is_named)).collect();
        let expected = [
            ("model", "claude-sonnet-6", false),
            ("model.classify", "gpt-6-luna", false),
            ("model.embed", "text-embedding-3-small", false),
        ];
        assert_eq!(names, expected.map(|(key, name, is_named)| (key, name.to_owned(), is_named)));
    }

    #[test]
    fn extra_members_keep_their_names() {
        let extra = "{ generationConfig = { thinkingConfig = { thinkingLevel = \"low\" } } }";
        let file = format!("[model]\nprovider = \"gemini\"\nextra = {extra}\nclassify = {{ provider = \"openai\" }}\n");
        let path = std::env::temp_dir().join(format!("countersign-extra-{}.toml", std::process::id()));
        std::fs::write(&path, file).unwrap();
        let read = Config::load(Some(&path), &Default::default(), &Additions::default());
        std::fs::remove_file(&path).unwrap();
        let model = read.unwrap_or_else(|problems| panic!("{problems}")).model;
        let expected = serde_json::json!({ "generationConfig": { "thinkingConfig": { "thinkingLevel": "low" } } });
        assert_eq!(Value::Object(model.general().unwrap().extra), expected);
        assert_eq!(model.of(ModelPurpose::Classify).unwrap().extra, Map::new());
    }

    #[test]
    fn embeddings_come_from_a_provider_that_has_some() {
        let embedding = |variables: &[(&str, &str)]| model(variables).embedding().map(|chosen| chosen.name);
        assert_eq!(embedding(&[ANTHROPIC]), None);
        assert_eq!(embedding(&[ANTHROPIC, GEMINI]).as_deref(), Some("gemini-embedding-001"));
        let local = [
            ANTHROPIC,
            ("COUNTERSIGN__MODEL__EMBED__PROVIDER", "openai"),
            ("COUNTERSIGN__MODEL__EMBED__NAME", "nomic"),
        ];
        assert_eq!(embedding(&local).as_deref(), Some("nomic"));
    }

    #[test]
    fn limits_and_prices_are_read() {
        let model = model(&[("COUNTERSIGN__MODEL__LIMITS__DAY", "12.5")]);
        assert_eq!((model.limits.day, model.limits.first()), (Some(12.5), Some("model.limits.day")));
        let text = "[model.prices]\n\"qwen3.6\" = { input = 0, cached = 0, output = 0.5 }\n";
        let file = std::env::temp_dir().join(format!("countersign-prices-{}.toml", std::process::id()));
        std::fs::write(&file, text).unwrap();
        let read = Config::load(Some(&file), &Default::default(), &Additions::default());
        std::fs::remove_file(&file).unwrap();
        let read = read.unwrap_or_else(|problems| panic!("{problems}"));
        assert_eq!(read.model.prices["qwen3.6"].output, 0.5);
    }

    #[test]
    fn wrong_values_are_reported() {
        let mut model = model(&[]);
        model.openai_url = "api.openai.com".to_owned();
        model.timeout = Duration::ZERO;
        model.classify = Some(OtherModel { name: Some(" ".to_owned()), ..OtherModel::default() });
        model.respond = Some(OtherModel::default());
        model.extra.insert("messages".to_owned(), Value::Null);
        model.embed = Some(OtherModel { provider: Some(Provider::Anthropic), ..OtherModel::default() });
        model.limits.day = Some(-1.0);
        model.prices.insert("mine".to_owned(), ModelPrice { input: 1.0, cached: f64::NAN, output: 1.0 });
        let keys: Vec<_> = model.problems().into_iter().map(|problem| problem.key).collect();
        let expected = [
            "model.openai_url",
            "model.timeout",
            "model.extra",
            "model.classify.name",
            "model.limits.day",
            "model.prices.mine",
            "model.respond",
            "model.embed.provider",
        ];
        assert_eq!(keys, expected);
    }
}
