//! The client: one method for each call that the bot makes.
//!
//! Reads are retried a few times if the platform cannot be reached. A change is sent only once, on
//! its own connection and under the permit of the action that it belongs to
//! ([`countersign_core::send_permit`]). The platform has neither conditional requests nor idempotency keys.
//! The nearest equivalent is the id that the client chooses for a new experiment, but sending it
//! twice duplicates the contents of the experiment. The answer to a change counts only if it
//! describes that change. An answer about something else, or one that cannot be read, is
//! [`Error::Unclear`], and the change is read back.

use std::sync::{Arc, Mutex};

use countersign_core::clock::{Clock, SystemClock};
use countersign_services::{changes::Changes, http, shared_read::SharedRead};
use futures_util::future::join_all;
use reqwest::{Client, Method};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use url::Url;

use super::{
    UpgradeConfig,
    answer::{Kind, says_nothing, unreadable, validation_problems},
    calls::As,
    context::Contexts,
    error::Error,
    experiment::{Condition, Experiment, ExperimentId, View},
    known::{self, Effect, Known},
    lists::Side,
    participants::{Assignment, DayEnrollment, Enrolled, Enrollment, EnrollmentDetail, Introduction, Mark, Marked},
    sign_in::SignIn,
    status::Status,
    version::Version,
};
use crate::testing::enrolled::{self, OwnTests};

/// A client of one UpGrade server.
#[derive(Debug)]
pub struct UpgradeClient {
    pub(super) client: Client,
    pub(super) changes: Changes,
    pub(super) longest: usize,
    /// The base address, with a slash at its end.
    pub(super) base: Url,
    pub(super) sign_in: SignIn,
    pub(super) timeout: std::time::Duration,
    pub(super) version: Mutex<Option<Version>>,
    pub(super) known: Known,
    own_tests: OwnTests,
    all: SharedRead<Result<Arc<[View]>, Error>>,
}

/// The name and version that the server reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// The server's name.
    pub name: String,
    /// The server's version.
    pub version: String,
}

impl UpgradeClient {
    /// Creates a client for the server in `config`. Makes no call yet.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Unavailable`] if TLS is not available on this machine.
    pub fn new(config: UpgradeConfig) -> Result<Self, Error> {
        let UpgradeConfig { base_url, sign_in, timeout } = config;
        let client =
            http::client(&base_url, timeout).map_err(|error| Error::Unavailable { reason: error.to_string() })?;
        let changes = Changes::to("upgrade", &base_url, timeout, http::MAX_ANSWER_BYTES)
            .map_err(|error| Error::Unavailable { reason: error.to_string() })?;
        let mut base = base_url;
        base.set_path(&format!("{}/", base.path().trim_end_matches('/')));
        let (version, all, known) = (Mutex::default(), SharedRead::default(), Known::new(Arc::new(SystemClock)));
        let (longest, own_tests) = (http::MAX_ANSWER_BYTES, OwnTests::default());
        Ok(Self { client, changes, longest, base, sign_in, timeout, version, known, own_tests, all })
    }

    /// Limits answers to this number of bytes.
    #[must_use]
    pub fn reading_at_most(self, longest: usize) -> Self {
        Self { longest, changes: self.changes.reading_at_most(longest), ..self }
    }

    /// Measures the age of what is kept in memory by this clock.
    #[must_use]
    pub fn timed_by(self, clock: Arc<dyn Clock>) -> Self {
        Self { known: Known::new(clock), ..self }
    }

    /// Returns the time limit of a call, including the sign-in before it.
    pub fn timeout(&self) -> std::time::Duration {
        match self.sign_in {
            SignIn::Nobody | SignIn::Token(_) => self.timeout,
            SignIn::ServiceAccount(_) => self.timeout * 2,
        }
    }

    /// Returns the method of signing in.
    pub fn sign_in(&self) -> &SignIn {
        &self.sign_in
    }

    /// Makes a call that requires credentials.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Auth`] if the credentials are not accepted.
    pub async fn signed_in(&self) -> Result<(), Error> {
        self.read::<Value>(Method::GET, "/version", As::Admin, None).await.map(|_| ())
    }

    /// Reads the server's name and version. Needs no credentials.
    ///
    /// # Errors
    ///
    /// Returns [`Error`], like every read.
    pub async fn health(&self) -> Result<Health, Error> {
        self.read(Method::GET, "", As::Anyone, None).await
    }

    /// Returns the server's version. It is read once, and again after the server was not available,
    /// since it may have been replaced.
    ///
    /// # Errors
    ///
    /// Returns [`Error`], like every read.
    pub async fn version(&self) -> Result<Version, Error> {
        let known = self.version.lock().expect("nothing panics while it is held").clone();
        if let Some(version) = known {
            return Ok(version);
        }
        let version = Version { text: self.health().await?.version };
        *self.version.lock().expect("nothing panics while it is held") = Some(version.clone());
        Ok(version)
    }

    /// Reads the vocabulary of every context.
    ///
    /// # Errors
    ///
    /// Returns [`Error`], like every read.
    pub async fn context_metadata(&self) -> Result<Contexts, Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Body {
            context_metadata: Contexts,
        }
        let body: Body = self.read(Method::GET, "/experiments/contextMetaData", As::Admin, None).await?;
        Ok(body.context_metadata)
    }

    /// Reads the names of the uploaded stratification factors, sorted.
    ///
    /// # Errors
    ///
    /// Returns [`Error`], like every read.
    pub async fn stratification_factors(&self) -> Result<Vec<String>, Error> {
        #[derive(Deserialize)]
        struct Uploaded {
            factor: String,
        }
        let all: Vec<Uploaded> = self.read(Method::GET, "/stratification", As::Admin, None).await?;
        let mut names: Vec<_> = all.into_iter().map(|uploaded| uploaded.factor).collect();
        names.sort();
        Ok(names)
    }

    /// Reads all experiments, sorted by name. There may be hundreds, each with its whole history, so
    /// concurrent callers share one answer.
    ///
    /// # Errors
    ///
    /// Returns [`Error`], like every read.
    pub async fn all(&self) -> Result<Arc<[View]>, Error> {
        let read = async || {
            let all: Vec<View> = self.read(Method::GET, "/experiments", As::Admin, None).await?;
            let mut all: Vec<_> = all.into_iter().map(View::in_order).collect();
            all.sort_by(|a, b| (&a.name, a.id).cmp(&(&b.name, b.id)));
            Ok(Arc::from(all))
        };
        self.all.get(read).await
    }

    /// Reads one experiment.
    ///
    /// # Errors
    ///
    /// Returns [`Error::NotFound`] if no experiment has that id.
    pub async fn single(&self, id: ExperimentId) -> Result<Experiment, Error> {
        let path = format!("/experiments/single/{id}");
        let experiment: Experiment = self.read(Method::GET, &path, As::Admin, None).await?;
        match experiment.view.id == id {
            true => Ok(experiment),
            false => Err(Error::Decode { reason: ANOTHER.to_owned() }),
        }
    }

    /// Reads the conditions of one experiment, in order.
    ///
    /// # Errors
    ///
    /// Returns [`Error::NotFound`] if no experiment has that id.
    pub async fn conditions(&self, id: ExperimentId) -> Result<Vec<Condition>, Error> {
        let path = format!("/experiments/conditions/{id}");
        let mut conditions: Vec<Condition> = self.read(Method::GET, &path, As::Admin, None).await?;
        conditions.sort_by_key(|condition| condition.order);
        Ok(conditions)
    }

    /// Creates an experiment. The answer lacks the inclusion and exclusion lists.
    ///
    /// The body should have an `id`, so that the experiment can be looked up if no answer arrives.
    /// Sending an existing id does not fail: it overwrites the experiment and duplicates its
    /// conditions.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] with all problems of the body.
    pub async fn create(&self, body: &Value) -> Result<Experiment, Error> {
        let effect = Effect::Design(ExperimentId::deserialize(&body["id"]).ok());
        let answer = self.write(effect, Method::POST, "/experiments", As::Admin, Some(body)).await;
        let created = experiment(&self.explained(answer, body).await?)?;
        confirm(json!(created.view.id) == body["id"] || body["id"].is_null(), ANOTHER)?;
        Ok(created)
    }

    /// Replaces an experiment with `body`, which must be complete: read, edited and sent back.
    ///
    /// # Errors
    ///
    /// Returns [`Error::NotFound`] if no experiment has that id, [`Error::Invalid`] with all problems of the body.
    pub async fn update(&self, id: ExperimentId, body: &Value) -> Result<Experiment, Error> {
        let path = format!("/experiments/{id}");
        let answer = self.write(Effect::Design(Some(id)), Method::PUT, &path, As::Admin, Some(body)).await;
        let answer = self.explained(answer, body).await;
        let updated = experiment(&self.or_missing(id, answer).await?)?;
        confirm(updated.view.id == id, ANOTHER)?;
        Ok(updated)
    }

    /// Adds an inclusion or exclusion list. Only from 6.3 on. The server does not check `list`.
    ///
    /// # Errors
    ///
    /// Returns [`Error::NotFound`] if no experiment has that id.
    pub async fn add_list(&self, id: ExperimentId, side: Side, list: &Value) -> Result<(), Error> {
        let body = json!({ "experimentId": id, "list": list });
        let answer = self.write::<Value>(Effect::Unkept, Method::POST, side.path(), As::Admin, Some(&body)).await;
        self.or_missing(id, answer).await.map(|_| ())
    }

    /// Replaces a list with `list`, whose `id` must be `segment`. Only from 6.3 on.
    ///
    /// # Errors
    ///
    /// Returns [`Error::NotFound`] if no experiment has that id.
    pub async fn replace_list(&self, id: ExperimentId, side: Side, segment: &str, list: &Value) -> Result<(), Error> {
        let body = json!({ "experimentId": id, "list": list });
        let path = format!("{}/{segment}", side.path());
        let answer = self.write::<Value>(Effect::Unkept, Method::PUT, &path, As::Admin, Some(&body)).await;
        self.or_missing(id, answer).await.map(|_| ())
    }

    /// Removes a list. Only from 6.3 on.
    ///
    /// # Errors
    ///
    /// Returns [`Error::NotFound`] if no experiment has that id.
    pub async fn remove_list(&self, id: ExperimentId, side: Side, segment: &str) -> Result<(), Error> {
        let path = format!("{}/{segment}", side.path());
        let answer = self.write::<Value>(Effect::Unkept, Method::DELETE, &path, As::Admin, None).await;
        self.or_missing(id, answer).await.map(|_| ())
    }

    /// Changes the status of an experiment; `start_on` is the start of a scheduled one. The server
    /// accepts every change.
    ///
    /// # Errors
    ///
    /// Returns [`Error::NotFound`] if no experiment has that id.
    pub async fn set_state(&self, id: ExperimentId, state: Status, start_on: Option<&str>) -> Result<View, Error> {
        let mut body = json!({ "experimentId": id, "state": state });
        if let Some(date) = start_on {
            body["scheduleDate"] = json!(date);
        }
        let effect = Effect::Status(id, state);
        let answer = self.write(effect, Method::POST, "/experiments/state", As::Admin, Some(&body)).await;
        let changed: View = self.or_missing(id, answer).await?;
        let changed = changed.in_order();
        confirm(changed.id == id, ANOTHER)?;
        confirm(changed.state == state, "it answered with a different status")?;
        confirm(
            start_on.is_none() || changed.start_on.as_deref() == start_on,
            "it answered with a different start time",
        )?;
        Ok(changed)
    }

    /// Deletes an experiment with all its enrolments.
    ///
    /// # Errors
    ///
    /// Returns [`Error::NotFound`] if no experiment has that id.
    pub async fn delete(&self, id: ExperimentId) -> Result<(), Error> {
        let path = format!("/experiments/{id}");
        let answer = self.write(Effect::Deletion(id), Method::DELETE, &path, As::Admin, None).await?;
        confirm(known::deletes(&answer, id), "its answer doesn't name the experiment")
    }

    /// Returns the tests that this bot made, whose users the platform counts like all others.
    pub fn own_tests(&self) -> &OwnTests {
        &self.own_tests
    }

    /// Reads the number of participants of each of several experiments, with those of this bot's tests apart.
    ///
    /// # Errors
    ///
    /// Returns [`Error`], like every read.
    pub async fn enrollment(&self, ids: &[ExperimentId]) -> Result<Vec<Enrollment>, Error> {
        let body = json!({ "experimentIds": ids });
        let mut all: Vec<Enrollment> = self.read(Method::POST, "/stats/enrollment", As::Admin, Some(&body)).await?;
        let set_apart = all.iter_mut().filter(|counted| counted.users > 0).map(|counted| async {
            enrolled::set_apart(counted, &self.own_tests.of(counted.id).await);
        });
        join_all(set_apart).await;
        Ok(all)
    }

    /// Reads the number of participants of one experiment, by condition, with those of this bot's tests apart.
    ///
    /// # Errors
    ///
    /// Returns [`Error::NotFound`] if no experiment has that id.
    pub async fn enrollment_detail(&self, view: &View) -> Result<EnrollmentDetail, Error> {
        let body = json!({ "experimentId": view.id });
        let answer = self.read(Method::POST, "/stats/enrollment/detail", As::Admin, Some(&body)).await;
        let mut counted: EnrollmentDetail = self.or_missing(view.id, answer).await?;
        if counted.users > 0 {
            enrolled::set_apart_in_detail(&mut counted, view, &self.own_tests.of(view.id).await);
        }
        Ok(counted)
    }

    /// Reads the users who were enrolled on each day since the first, newest day first. `offset` is the number of minutes
    /// to add to the local time of the reader to get UTC, as in JavaScript.
    ///
    /// # Errors
    ///
    /// Returns [`Error::NotFound`] if no experiment has that id.
    pub async fn enrollment_by_day(&self, id: ExperimentId, offset: i64) -> Result<Vec<DayEnrollment>, Error> {
        let body = json!({ "experimentId": id, "dateEnum": "total", "clientOffset": offset });
        let answer = self.read(Method::POST, "/stats/enrollment/date", As::Admin, Some(&body)).await;
        self.or_missing(id, answer).await
    }

    /// Registers a participant, or changes the stored groups of an existing one.
    ///
    /// # Errors
    ///
    /// Returns [`Error`], like every change.
    pub async fn init_user(&self, user: &str, introduction: &Introduction) -> Result<(), Error> {
        let body = json!(introduction);
        let answer: Value = self.write(Effect::Unkept, Method::POST, "/v6/init", As::User(user), Some(&body)).await?;
        confirm(answer["id"] == user, "its answer doesn't name the user")?;
        let stored: Introduction = decode(Kind::Write, answer)?;
        confirm(introduction.is_part_of(&stored), "it answered with different groups")
    }

    /// Reads the condition of a participant at each decision point of a context. Reading does not
    /// enrol the participant.
    ///
    /// # Errors
    ///
    /// Returns [`Error::NotFound`] if the participant is not known, [`Error::Invalid`] if the context is not.
    pub async fn assign(&self, user: &str, context: &str) -> Result<Vec<Assignment>, Error> {
        self.read(Method::POST, "/v6/assign", As::User(user), Some(&json!({ "context": context }))).await
    }

    /// Records that a participant visited a decision point, which enrols them.
    ///
    /// # Errors
    ///
    /// Returns [`Error::NotFound`] if the participant is not known, or the experiment does not have the
    /// point.
    pub async fn mark(&self, user: &str, mark: &Mark) -> Result<Marked, Error> {
        let answer = self.write(Effect::Unkept, Method::POST, "/v6/mark", As::User(user), Some(&json!(mark))).await?;
        let marked: Marked = decode(Kind::Write, answer)?;
        confirm(marked.describes(user, mark), "it answered about a different visit")?;
        Ok(marked)
    }

    /// Reads the enrolled users of an experiment with their conditions. This is expensive, since it
    /// reads every enrolment on the platform.
    ///
    /// # Errors
    ///
    /// Returns [`Error`], like every read.
    pub async fn enrolled(&self, id: ExperimentId) -> Result<Vec<Enrolled>, Error> {
        let all: Vec<Enrolled> = self.read(Method::GET, "/check/individualAssignment", As::Admin, None).await?;
        Ok(all.into_iter().filter(|enrolled| enrolled.experiment_id == id).collect())
    }

    /// Has the server check the body of an experiment, and returns the problems that it finds.
    ///
    /// # Errors
    ///
    /// Returns [`Error`], like every read.
    pub async fn validation(&self, body: &Value) -> Result<Vec<String>, Error> {
        #[derive(Deserialize)]
        struct File {
            error: Option<String>,
        }
        let files = json!([{ "fileName": "experiment.json", "fileContent": body.to_string() }]);
        let files: Vec<File> = self.read(Method::POST, "/experiments/validation", As::Admin, Some(&files)).await?;
        Ok(files.into_iter().filter_map(|file| file.error).flat_map(|text| validation_problems(&text)).collect())
    }

    /// Replaces a 400 without details, as sent from 6.3 on, with the problems that the validation call
    /// lists.
    async fn explained(&self, answer: Result<Value, Error>, body: &Value) -> Result<Value, Error> {
        match answer {
            Err(Error::Invalid { problems }) if says_nothing(&problems) => match self.validation(body).await {
                Ok(explained) if !explained.is_empty() => Err(Error::Invalid { problems: explained }),
                _ => Err(Error::Invalid { problems }),
            },
            answer => answer,
        }
    }

    /// Replaces [`Error::Faulted`] with [`Error::NotFound`] if the experiment does not exist. Some calls
    /// then fail on `null`, with a message that differs between versions.
    async fn or_missing<T>(&self, id: ExperimentId, answer: Result<T, Error>) -> Result<T, Error> {
        match answer {
            Err(Error::Faulted { reason }) => match Box::pin(self.single(id)).await {
                Err(Error::NotFound { reason }) => Err(Error::NotFound { reason }),
                _ => Err(Error::Faulted { reason }),
            },
            answer => answer,
        }
    }
}

/// The reason in the error if an answer is about another experiment.
const ANOTHER: &str = "it answered about a different experiment";

/// Returns [`Error::Unclear`] unless the answer describes the requested change.
fn confirm(matches: bool, reason: &str) -> Result<(), Error> {
    if matches { Ok(()) } else { Err(Error::Unclear { reason: reason.to_owned() }) }
}

fn experiment(answer: &Value) -> Result<Experiment, Error> {
    Experiment::from_value(answer).map_err(|error| unreadable(Kind::Write, &error.to_string()))
}

fn decode<T: DeserializeOwned>(kind: Kind, body: Value) -> Result<T, Error> {
    serde_json::from_value(body).map_err(|error| unreadable(kind, &error.to_string()))
}
