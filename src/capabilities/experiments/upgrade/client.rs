//! One method for each call the bot makes.
//!
//! Reads are repeated a few times when the platform cannot be reached; changes are sent once, whatever happens, each on a
//! connection of its own and under the permit of the work it is part of ([`countersign_core::permit`]). The platform knows no
//! conditional requests and no idempotency keys: the id that a creation chooses comes closest, and sending it twice
//! doubles what it holds. The answer to a change counts only as far as it tells of that change: what tells of something
//! else, or cannot be read, is [`Error::Unclear`], and is read back.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, Ordering},
};

use countersign_services::{changes::Changes, http, shared_read::SharedRead};
use reqwest::{Client, Method};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{
    UpgradeConfig,
    answer::{Kind, says_nothing, unreadable, validation_problems},
    calls::As,
    context::Contexts,
    error::Error,
    experiment::{Condition, Experiment, ExperimentId, Named, View},
    lists::Side,
    participants::{Assignment, Enrolled, Enrollment, EnrollmentDetail, Introduction, Mark, Marked},
    sign_in::SignIn,
    status::Status,
    version::Version,
};

/// Talks to one UpGrade server.
#[derive(Debug)]
pub struct UpgradeClient {
    pub(super) client: Client,
    pub(super) changes: Changes,
    pub(super) longest: usize,
    pub(super) base: String,
    pub(super) sign_in: SignIn,
    pub(super) timeout: std::time::Duration,
    pub(super) version: Mutex<Option<Version>>,
    pub(super) changes_made: AtomicU64,
    all: SharedRead<Result<Arc<[View]>, Error>>,
}

/// What the server says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

impl UpgradeClient {
    /// A client for the server of `config`. Asks nothing yet.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] if there is no TLS to be had on this machine.
    pub fn new(config: UpgradeConfig) -> Result<Self, Error> {
        let UpgradeConfig { base_url, sign_in, timeout } = config;
        let client = http::client(&base_url, timeout)
            .map_err(|error| Error::Unavailable { reason: error.without_url().to_string() })?;
        let changes = Changes::to(&base_url, timeout, http::LONGEST)
            .map_err(|error| Error::Unavailable { reason: error.to_string() })?;
        let base = base_url.as_str().trim_end_matches('/').to_owned();
        let (version, all, changes_made) = (Mutex::default(), SharedRead::default(), AtomicU64::default());
        Ok(Self { client, changes, longest: http::LONGEST, base, sign_in, timeout, version, changes_made, all })
    }

    /// Reads answers up to so many bytes.
    #[must_use]
    pub fn reading_at_most(self, longest: usize) -> Self {
        Self { longest, changes: self.changes.reading_at_most(longest), ..self }
    }

    /// The longest any call may take, the sign-in before it included.
    pub fn timeout(&self) -> std::time::Duration {
        match self.sign_in {
            SignIn::Nobody | SignIn::Token(_) => self.timeout,
            SignIn::ServiceAccount(_) => self.timeout * 2,
        }
    }

    /// How many changes were asked for from here, whatever became of them.
    pub fn changes_made(&self) -> u64 {
        self.changes_made.load(Ordering::Relaxed)
    }

    /// How it proves who asks.
    pub fn sign_in(&self) -> &SignIn {
        &self.sign_in
    }

    /// Asks for something that only those get who are signed in.
    ///
    /// # Errors
    ///
    /// [`Error::Auth`] if we are not.
    pub async fn signed_in(&self) -> Result<(), Error> {
        self.read::<Value>(Method::GET, "/version", As::Admin, None).await.map(|_| ())
    }

    /// What the server says of itself; needs no credentials.
    ///
    /// # Errors
    ///
    /// [`Error`], as for every read.
    pub async fn health(&self) -> Result<Health, Error> {
        self.read(Method::GET, "", As::Anyone, None).await
    }

    /// Which contract the server keeps: asked once, and again after the server was away, as it may have been replaced.
    ///
    /// # Errors
    ///
    /// [`Error`], as for every read.
    pub async fn version(&self) -> Result<Version, Error> {
        let known = self.version.lock().expect("nothing panics while it is held").clone();
        if let Some(version) = known {
            return Ok(version);
        }
        let version = Version { text: self.health().await?.version };
        *self.version.lock().expect("nothing panics while it is held") = Some(version.clone());
        Ok(version)
    }

    /// The vocabulary of every context.
    ///
    /// # Errors
    ///
    /// [`Error`], as for every read.
    pub async fn context_metadata(&self) -> Result<Contexts, Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Body {
            context_metadata: Contexts,
        }
        let body: Body = self.read(Method::GET, "/experiments/contextMetaData", As::Admin, None).await?;
        Ok(body.context_metadata)
    }

    /// The names of all experiments, by name.
    ///
    /// # Errors
    ///
    /// [`Error`], as for every read.
    pub async fn names(&self) -> Result<Vec<Named>, Error> {
        let mut names: Vec<Named> = self.read(Method::GET, "/experiments/names", As::Admin, None).await?;
        names.sort_by(|a, b| (&a.name, a.id).cmp(&(&b.name, b.id)));
        Ok(names)
    }

    /// What we read of all experiments, by name: there may be hundreds, and each brings its whole history, so those who ask
    /// at the same time share the answer.
    ///
    /// # Errors
    ///
    /// [`Error`], as for every read.
    pub async fn all(&self) -> Result<Arc<[View]>, Error> {
        let read = async || {
            let all: Vec<View> = self.read(Method::GET, "/experiments", As::Admin, None).await?;
            let mut all: Vec<_> = all.into_iter().map(View::in_order).collect();
            all.sort_by(|a, b| (&a.name, a.id).cmp(&(&b.name, b.id)));
            Ok(Arc::from(all))
        };
        self.all.get(read).await
    }

    /// One experiment.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] if there is none of that id.
    pub async fn single(&self, id: ExperimentId) -> Result<Experiment, Error> {
        let path = format!("/experiments/single/{id}");
        let experiment = experiment(Kind::Read, self.read(Method::GET, &path, As::Admin, None).await?)?;
        match experiment.view.id == id {
            true => Ok(experiment),
            false => Err(Error::Decode { reason: ANOTHER.to_owned() }),
        }
    }

    /// The conditions of one experiment, in order.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] if there is no experiment of that id.
    pub async fn conditions(&self, id: ExperimentId) -> Result<Vec<Condition>, Error> {
        let path = format!("/experiments/conditions/{id}");
        let mut conditions: Vec<Condition> = self.read(Method::GET, &path, As::Admin, None).await?;
        conditions.sort_by_key(|condition| condition.order);
        Ok(conditions)
    }

    /// Creates an experiment. The answer has no inclusion and exclusion lists.
    ///
    /// The body should choose its `id`, so that it can be looked for if no answer comes. Sending an id that exists does not
    /// fail: it overwrites the experiment and doubles its conditions.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] with everything that is wrong with the body.
    pub async fn create(&self, body: &Value) -> Result<Experiment, Error> {
        let answer = self.write(Method::POST, "/experiments", As::Admin, Some(body)).await;
        let created = experiment(Kind::Write, self.explained(answer, body).await?)?;
        told(json!(created.view.id) == body["id"] || body["id"].is_null(), ANOTHER)?;
        Ok(created)
    }

    /// Replaces an experiment by `body`, which must be whole: read, edited, sent back.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] if there is none of that id, [`Error::Invalid`] with everything that is wrong with the body.
    pub async fn update(&self, id: ExperimentId, body: &Value) -> Result<Experiment, Error> {
        let answer = self.write(Method::PUT, &format!("/experiments/{id}"), As::Admin, Some(body)).await;
        let answer = self.explained(answer, body).await;
        let updated = experiment(Kind::Write, self.or_missing(id, answer).await?)?;
        told(updated.view.id == id, ANOTHER)?;
        Ok(updated)
    }

    /// Adds an inclusion or exclusion list. From 6.3 on; the server does not check `list`.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] if there is no experiment of that id.
    pub async fn add_list(&self, id: ExperimentId, side: Side, list: &Value) -> Result<(), Error> {
        let body = json!({ "experimentId": id, "list": list });
        let answer = self.write(Method::POST, side.path(), As::Admin, Some(&body)).await;
        self.or_missing(id, answer).await.map(|_| ())
    }

    /// Replaces a list by `list`, whose `id` must be its segment's. From 6.3 on.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] if there is no experiment of that id.
    pub async fn replace_list(&self, id: ExperimentId, side: Side, segment: &str, list: &Value) -> Result<(), Error> {
        let body = json!({ "experimentId": id, "list": list });
        let answer = self.write(Method::PUT, &format!("{}/{segment}", side.path()), As::Admin, Some(&body)).await;
        self.or_missing(id, answer).await.map(|_| ())
    }

    /// Removes a list. From 6.3 on.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] if there is no experiment of that id.
    pub async fn remove_list(&self, id: ExperimentId, side: Side, segment: &str) -> Result<(), Error> {
        let answer = self.write(Method::DELETE, &format!("{}/{segment}", side.path()), As::Admin, None).await;
        self.or_missing(id, answer).await.map(|_| ())
    }

    /// Moves an experiment to another status, `scheduled` with the moment of its start. The server allows every move.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] if there is none of that id.
    pub async fn set_state(
        &self,
        id: ExperimentId,
        state: Status,
        start_on: Option<&str>,
    ) -> Result<Experiment, Error> {
        let mut body = json!({ "experimentId": id, "state": state });
        if let Some(date) = start_on {
            body["scheduleDate"] = json!(date);
        }
        let answer = self.write(Method::POST, "/experiments/state", As::Admin, Some(&body)).await;
        let moved = experiment(Kind::Write, self.or_missing(id, answer).await?)?;
        told(moved.view.id == id, ANOTHER)?;
        told(moved.view.state == state, "it answered with another status")?;
        told(start_on.is_none() || moved.view.start_on.as_deref() == start_on, "it answered with another start")?;
        Ok(moved)
    }

    /// Deletes an experiment with all its enrolments.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] if there is none of that id.
    pub async fn delete(&self, id: ExperimentId) -> Result<(), Error> {
        let answer = self.write(Method::DELETE, &format!("/experiments/{id}"), As::Admin, None).await?;
        let deleted = answer.as_array().is_some_and(|rows| rows.iter().any(|row| row["id"] == json!(id)));
        told(deleted, "its answer does not name the experiment")
    }

    /// How many take part, for each of several experiments.
    ///
    /// # Errors
    ///
    /// [`Error`], as for every read.
    pub async fn enrollment(&self, ids: &[ExperimentId]) -> Result<Vec<Enrollment>, Error> {
        let body = json!({ "experimentIds": ids });
        self.read(Method::POST, "/stats/enrollment", As::Admin, Some(&body)).await
    }

    /// How many take part in one experiment, by condition.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] if there is no experiment of that id.
    pub async fn enrollment_detail(&self, id: ExperimentId) -> Result<EnrollmentDetail, Error> {
        let body = json!({ "experimentId": id });
        let answer = self.read(Method::POST, "/stats/enrollment/detail", As::Admin, Some(&body)).await;
        self.or_missing(id, answer).await
    }

    /// Introduces a participant, or changes what is known of one.
    ///
    /// # Errors
    ///
    /// [`Error`], as for every change.
    pub async fn init_user(&self, user: &str, introduction: &Introduction) -> Result<(), Error> {
        let body = json!(introduction);
        let answer = self.write(Method::POST, "/v6/init", As::User(user), Some(&body)).await?;
        told(answer["id"] == user, "its answer does not name the user")?;
        let stored: Introduction = decode(Kind::Write, answer)?;
        told(introduction.is_part_of(&stored), "it answered with other groups")
    }

    /// What each decision point of a context gives a participant. Asking does not enrol.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] if the participant is not known, [`Error::Invalid`] if the context is not.
    pub async fn assign(&self, user: &str, context: &str) -> Result<Vec<Assignment>, Error> {
        self.read(Method::POST, "/v6/assign", As::User(user), Some(&json!({ "context": context }))).await
    }

    /// Records that a participant was at a decision point, and enrols.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] if the participant is not known, or the experiment does not own the point.
    pub async fn mark(&self, user: &str, mark: &Mark) -> Result<Marked, Error> {
        let answer = self.write(Method::POST, "/v6/mark", As::User(user), Some(&json!(mark))).await?;
        let marked: Marked = decode(Kind::Write, answer)?;
        told(marked.is_of(user, mark), "it answered about another visit")?;
        Ok(marked)
    }

    /// Who is enrolled in an experiment, and in which condition. Reads every enrolment on the platform: for rare use.
    ///
    /// # Errors
    ///
    /// [`Error`], as for every read.
    pub async fn enrolled(&self, id: ExperimentId) -> Result<Vec<Enrolled>, Error> {
        let all: Vec<Enrolled> = self.read(Method::GET, "/check/individualAssignment", As::Admin, None).await?;
        Ok(all.into_iter().filter(|enrolled| enrolled.experiment_id == id).collect())
    }

    /// What is wrong with the body of an experiment; empty if nothing is.
    ///
    /// # Errors
    ///
    /// [`Error`], as for every read.
    pub async fn validation(&self, body: &Value) -> Result<Vec<String>, Error> {
        #[derive(Deserialize)]
        struct File {
            error: Option<String>,
        }
        let files = json!([{ "fileName": "experiment.json", "fileContent": body.to_string() }]);
        let files: Vec<File> = self.read(Method::POST, "/experiments/validation", As::Admin, Some(&files)).await?;
        Ok(files.into_iter().filter_map(|file| file.error).flat_map(|text| validation_problems(&text)).collect())
    }

    /// From 6.3 on, a 400 does not say what is wrong: asks.
    async fn explained(&self, answer: Result<Value, Error>, body: &Value) -> Result<Value, Error> {
        match answer {
            Err(Error::Invalid { problems }) if says_nothing(&problems) => match self.validation(body).await {
                Ok(explained) if !explained.is_empty() => Err(Error::Invalid { problems: explained }),
                _ => Err(Error::Invalid { problems }),
            },
            answer => answer,
        }
    }

    /// An unknown experiment makes some calls trip over `null`, in words that differ by version: looks whether it is there.
    async fn or_missing<T>(&self, id: ExperimentId, answer: Result<T, Error>) -> Result<T, Error> {
        match answer {
            Err(Error::Faulted { reason }) => match self.single(id).await {
                Err(Error::NotFound { reason }) => Err(Error::NotFound { reason }),
                _ => Err(Error::Faulted { reason }),
            },
            answer => answer,
        }
    }
}

/// What is wrong with an answer about another experiment than the one that was named.
const ANOTHER: &str = "it answered about another experiment";

/// Nothing, if an answer tells of the change that was asked for.
fn told(so: bool, instead: &str) -> Result<(), Error> {
    if so { Ok(()) } else { Err(Error::Unclear { reason: instead.to_owned() }) }
}

fn experiment(kind: Kind, body: Value) -> Result<Experiment, Error> {
    Experiment::from_value(body).map_err(|error| unreadable(kind, &error.to_string()))
}

fn decode<T: DeserializeOwned>(kind: Kind, body: Value) -> Result<T, Error> {
    serde_json::from_value(body).map_err(|error| unreadable(kind, &error.to_string()))
}
