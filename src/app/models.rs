//! The providers' lists of models: the newest model of a line is the default, and the log, `/readyz` and `check` report a
//! model that is no longer offered, or not for long.
//!
//! The lists are asked for once at the start, with a short time limit, and then once a day. Without a list, the default is
//! the name in [`Line`], and nothing is reported: not every server has a list.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use countersign_config::{ChosenModel, Config, Line, Provider, nearest, successor};
use countersign_model::{
    Error,
    anthropic::MessagesApi,
    gemini::GenerateContentApi,
    list::{Listed, list},
    openai::{self, ChatCompletionsApi},
    remote::Settings,
};
use futures_util::future::join_all;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::dependencies;

/// The time limit for a list. The start waits for it.
const LIMIT: Duration = Duration::from_secs(4);

/// The time between two looks at the lists.
const EVERY: Duration = Duration::from_secs(24 * 60 * 60);

/// The key of the model for embeddings, which is of no line.
const EMBEDDING: &str = "model.embed";

/// The lists of the providers of the configured models, by provider and address. Those that cannot be read are missing.
#[derive(Debug, Default)]
pub struct Offered(HashMap<(Provider, String), Vec<Listed>>);

/// What a list says against a configured model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct News {
    /// The key of the model in the settings.
    pub key: &'static str,
    /// The fact.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
}

impl fmt::Display for News {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.what, self.remedy)
    }
}

impl Offered {
    /// Asks the providers of all configured models for their lists.
    pub async fn ask(config: &Config) -> Self {
        let mut places: HashMap<_, _> = HashMap::new();
        for (key, chosen) in config.model.all() {
            let place = (chosen.provider, chosen.base_url.clone());
            // Only chosen models are asked, so a model without a key is left to the error that the start reports.
            if let Ok((provider, settings)) = dependencies::model_settings(config, key, chosen) {
                let settings = Settings { timeout: settings.timeout.min(LIMIT), ..settings };
                places.entry(place).or_insert((provider, settings));
            }
        }
        // The list of Azure has the models of a region, not the deployments, whose names one chooses.
        places.retain(|_, (_, settings)| !openai::is_azure(&settings.base_url));
        let asked = places.into_iter().map(|(place, (provider, settings))| async move {
            let list = list_of(provider, &settings).await;
            list.inspect_err(|error| tracing::info!(%provider, "Cannot read the provider's list of models: {error}"))
                .ok()
                .map(|list| (place, list))
        });
        Self(join_all(asked).await.into_iter().flatten().collect())
    }

    /// Returns the settings with the names of the default models.
    pub fn with_names(&self, config: &Config) -> Config {
        let mut config = config.clone();
        for ((provider, base_url), list) in &self.0 {
            let names = list.iter().filter(|listed| !is_ending(listed)).map(|listed| listed.name.as_str());
            // A server with one model needs no name.
            let only = match &**list {
                [only] => Some(only.name.as_str()),
                _ => None,
            };
            if let Some(newest) = Line::of(*provider).newest(names).or(only) {
                config.model.newest.insert((*provider, base_url.clone()), newest.to_owned());
            }
        }
        config
    }

    /// Returns what the lists say against the configured models.
    pub fn news(&self, config: &Config) -> Vec<News> {
        config.model.all().iter().filter_map(|(key, chosen)| self.news_of(key, chosen)).collect()
    }

    /// Returns what a list says against a model.
    pub fn news_of(&self, key: &'static str, chosen: &ChosenModel) -> Option<News> {
        let list = self.list_of(chosen)?;
        let (name, is_embedding) = (&chosen.name, key == EMBEDDING);
        if is_embedding && !chosen.is_named {
            return None; // it may be another server's, and nobody uses it
        }
        let what = match find(list, name) {
            None if list.is_empty() || name.contains('/') => return None, // of one's own, such as tunedModels/ours
            None => format!("the provider's list of models lacks {name}, so it is retired or was never there"),
            Some(Listed { retires_on: Some(day), .. }) => format!("the provider retires {name} on {day}"),
            Some(Listed { is_deprecated: true, .. }) => format!("the provider is about to retire {name}"),
            Some(_) => return None,
        };
        let lasting = || list.iter().filter(|listed| !is_ending(listed)).map(|listed| listed.name.as_str());
        let newest = || Line::of(chosen.provider).newest(lasting()).filter(|_| !is_embedding);
        let next = successor(name, lasting()).or_else(newest);
        let remedy = match next.or_else(|| nearest(name, lasting())) {
            Some(next) => format!("set {key}.name to \"{next}\""),
            None => format!("set {key}.name to one of its models"),
        };
        Some(News { key, what, remedy })
    }

    /// Returns the maximum length of a request to a model, in tokens, if the list tells it.
    pub fn context_of(&self, chosen: &ChosenModel) -> Option<u64> {
        find(self.list_of(chosen)?, &chosen.name)?.context
    }

    fn list_of(&self, chosen: &ChosenModel) -> Option<&[Listed]> {
        self.0.get(&(chosen.provider, chosen.base_url.clone())).map(Vec::as_slice)
    }
}

fn find<'a>(list: &'a [Listed], name: &str) -> Option<&'a Listed> {
    list.iter().find(|listed| listed.name == name).or_else(|| list.iter().find(|listed| listed.is_called(name)))
}

fn is_ending(listed: &Listed) -> bool {
    listed.is_deprecated || listed.retires_on.is_some()
}

async fn list_of(provider: Provider, settings: &Settings) -> Result<Vec<Listed>, Error> {
    match provider {
        Provider::Anthropic => list::<MessagesApi>(settings).await,
        Provider::OpenAi => list::<ChatCompletionsApi>(settings).await,
        Provider::Gemini => list::<GenerateContentApi>(settings).await,
    }
}

/// The latest news about the configured models.
#[derive(Clone, Debug, Default)]
pub(super) struct ModelNews(Arc<Mutex<Vec<News>>>);

impl ModelNews {
    /// Replaces the news. Those that are new are logged.
    pub(super) fn tell(&self, news: Vec<News>) {
        let mut told = self.lock();
        for new in news.iter().filter(|new| !told.contains(new)) {
            tracing::warn!(setting = new.key, "A language model will not answer for long: {new}");
        }
        metrics::gauge!("countersign_models_retiring").set(news.len() as f64);
        *told = news;
    }

    /// Returns the news as sentences.
    pub(super) fn lines(&self) -> Vec<String> {
        self.lock().iter().map(ToString::to_string).collect()
    }

    /// Looks at the lists once a day.
    pub(super) async fn keep_up(self, config: Config, stop: CancellationToken) {
        while stop.run_until_cancelled(sleep(EVERY)).await.is_some() {
            let offered = Offered::ask(&config).await;
            self.tell(offered.news(&config));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<News>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(name: &str, retires_on: Option<&str>) -> Listed {
        let retires_on = retires_on.map(str::to_owned);
        Listed { name: name.to_owned(), retires_on, is_deprecated: false, context: Some(1000) }
    }

    fn chosen(name: &str) -> ChosenModel {
        ChosenModel {
            provider: Provider::OpenAi,
            name: name.to_owned(),
            is_named: true,
            base_url: "https://api.openai.com/v1".to_owned(),
            api_key: None,
            timeout: Duration::from_secs(1),
            attempts: 1,
            extra: serde_json::Map::new(),
        }
    }

    fn news(list: Vec<Listed>, name: &str) -> Option<String> {
        let place = (Provider::OpenAi, "https://api.openai.com/v1".to_owned());
        Offered([(place, list)].into()).news_of("model", &chosen(name)).map(|news| news.to_string())
    }

    #[test]
    fn a_model_that_is_gone_or_goes_is_told_with_the_next_one() {
        let list = || {
            let mini = listed("gpt-4.1-mini", Some("2027-01-14"));
            vec![
                mini,
                listed("gpt-6-luna", None),
                listed("gpt-6.1-sol", None),
                listed("gpt-5.6-sol", Some("2027-09-01")),
            ]
        };
        assert_eq!(news(list(), "gpt-6-luna"), None);
        let retires = "the provider retires gpt-4.1-mini on 2027-01-14; set model.name to \"gpt-6-luna\"";
        assert_eq!(news(list(), "gpt-4.1-mini").as_deref(), Some(retires));
        let retires = "the provider retires gpt-5.6-sol on 2027-09-01; set model.name to \"gpt-6.1-sol\"";
        assert_eq!(news(list(), "gpt-5.6-sol").as_deref(), Some(retires));
        let gone = "the provider's list of models lacks gpt-4-sol, so it is retired or was never there; set model.name to \
                    \"gpt-6.1-sol\"";
        assert_eq!(news(list(), "gpt-4-sol").as_deref(), Some(gone));
        assert_eq!(news(Vec::new(), "gpt-4-sol"), None);
        assert_eq!(Offered::default().news_of("model", &chosen("gpt-4-sol")), None);
    }
}
