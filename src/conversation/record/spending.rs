//! What language models cost: for everyone on the present day, and for each person, and a model that keeps to the limits.
//!
//! The amounts are in registers of the store, so that all processes share them and a restart forgets nothing. A call is
//! allowed as long as no limit is reached, and counted when it has been answered; calls at the same time can therefore
//! go beyond a limit. What a thread has cost is in its own state and comes with the request.

use std::sync::Arc;

use async_trait::async_trait;
use countersign_config::CostLimits;
use countersign_core::{
    cause,
    clock::{Clock, Timestamp},
    ids::UserId,
};
use countersign_graph::store::{self, Store, TypedRegister};
use countersign_model::{
    Error, Model, Request, Response,
    limits::{Limit, Payer, Reached},
    prices::NANO,
};
use serde::{Deserialize, Serialize};

/// The key of the register for everyone; that of a person has the id at its end.
const KEY: &str = "model-cost";

/// The length of a day in milliseconds.
const DAY: i64 = 24 * 60 * 60 * 1000;

/// The limits, in billionths of a US dollar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// That of one thread.
    pub thread: Option<u64>,
    /// That of one person on one day.
    pub person_a_day: Option<u64>,
    /// That of everyone on one day.
    pub day: Option<u64>,
}

impl From<&CostLimits> for Limits {
    fn from(CostLimits { thread, person_a_day, day }: &CostLimits) -> Self {
        let nano = |usd: &Option<f64>| usd.map(|usd| (usd * NANO) as u64);
        Self { thread: nano(thread), person_a_day: nano(person_a_day), day: nano(day) }
    }
}

/// What models have cost on one day, as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct DayCost {
    /// The number of days since 1970.
    day: i64,
    nano_usd: u64,
}

impl DayCost {
    /// Returns the amount, if it is of this day.
    fn on(&self, day: i64) -> u64 {
        if self.day == day { self.nano_usd } else { 0 }
    }

    /// Adds an amount, and returns the amounts before and after it. The clock of another process may be a day ahead.
    fn add(&mut self, day: i64, nano_usd: u64) -> (u64, u64) {
        let day = day.max(self.day);
        let before = self.on(day);
        *self = Self { day, nano_usd: before.saturating_add(nano_usd) };
        (before, self.nano_usd)
    }
}

/// What models have cost on the present day, in billionths of a US dollar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Today {
    /// For everyone.
    pub everyone: u64,
    /// For one person.
    pub person: u64,
    /// The limits.
    pub limits: Limits,
}

/// The cost of language models and its limits.
#[derive(Clone, Debug)]
pub struct Spending {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    limits: Limits,
}

impl Spending {
    /// Creates the account of the cost in a store. A day begins at midnight UTC.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, limits: Limits) -> Self {
        Self { store, clock, limits }
    }

    /// Returns what models have cost today.
    ///
    /// # Errors
    ///
    /// Fails if the store isn't answering.
    pub async fn today(&self, person: &UserId) -> Result<Today, store::Error> {
        let day = self.day();
        let (everyone, person) = (self.register(None).load().await?.1, self.register(Some(person)).load().await?.1);
        Ok(Today { everyone: everyone.on(day), person: person.on(day), limits: self.limits })
    }

    /// Returns the limit that does not allow a call; `None` if it is allowed.
    async fn reached(&self, payer: &Payer) -> Result<Option<Reached>, store::Error> {
        let Limits { thread, person_a_day, day: everyone } = self.limits;
        let day = self.day();
        let until = Some(Timestamp((day + 1) * DAY));
        let is_over = |limit: Option<u64>, cost: u64| limit.is_some_and(|limit| cost >= limit);
        if everyone.is_some() && is_over(everyone, self.register(None).load().await?.1.on(day)) {
            return Ok(Some(Reached { limit: Limit::Day, until }));
        }
        if let (Some(_), Some(person)) = (person_a_day, &payer.person)
            && is_over(person_a_day, self.register(Some(person)).load().await?.1.on(day))
        {
            return Ok(Some(Reached { limit: Limit::Person, until }));
        }
        Ok(is_over(thread, payer.thread_cost).then_some(Reached { limit: Limit::Thread, until: None }))
    }

    /// Adds the cost of a call. Tells the operator when a limit is reached by it.
    async fn add(&self, payer: &Payer, nano_usd: u64) {
        let Limits { thread, person_a_day, day: everyone } = self.limits;
        let day = self.day();
        let crosses = |limit: Option<u64>, (before, after): (u64, u64)| {
            limit.is_some_and(|limit| before < limit && limit <= after)
        };
        let added = self.register(None).change(|cost| cost.add(day, nano_usd)).await;
        match added {
            Ok(cost) if crosses(everyone, cost) => tracing::error!(
                "The language models have cost as much as model.limits.day allows; until midnight UTC everyone gets the \
                 documented phrases only"
            ),
            Ok(_) => {}
            Err(error) => tracing::error!(error = cause::chain(&error), "Cannot store what a call of a model cost"),
        }
        if let Some(person) = &payer.person {
            match self.register(Some(person)).change(|cost| cost.add(day, nano_usd)).await {
                Ok(cost) if crosses(person_a_day, cost) => {
                    tracing::warn!(user.id = %person, "A person has reached model.limits.person_a_day");
                }
                Ok(_) => {}
                Err(error) => tracing::error!(error = cause::chain(&error), "Cannot store what a person's call cost"),
            }
        }
        if crosses(thread, (payer.thread_cost, payer.thread_cost.saturating_add(nano_usd))) {
            tracing::warn!("A thread has reached model.limits.thread");
        }
    }

    /// Returns the number of days since 1970.
    fn day(&self) -> i64 {
        self.clock.now().millis().div_euclid(DAY)
    }

    fn register(&self, person: Option<&UserId>) -> TypedRegister<DayCost> {
        let key = person.map_or_else(|| KEY.to_owned(), |person| format!("{KEY}/{person}"));
        TypedRegister::new(self.store.clone(), key)
    }
}

/// A model on a server that answers until a limit is reached.
#[derive(Debug)]
pub struct Limited {
    model: Arc<dyn Model>,
    spending: Spending,
}

impl Limited {
    /// Wraps a model.
    pub fn new(model: Arc<dyn Model>, spending: Spending) -> Self {
        Self { model, spending }
    }
}

#[async_trait]
impl Model for Limited {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn is_remote(&self) -> bool {
        self.model.is_remote()
    }

    async fn respond(&self, request: &Request) -> Result<Response, Error> {
        match self.spending.reached(&request.payer).await {
            Ok(None) => {}
            Ok(Some(reached)) => {
                let limit = reached.limit.key();
                metrics::counter!("countersign_model_over_limit_total", "limit" => limit).increment(1);
                return Err(Error::OverLimit(reached));
            }
            Err(error) => {
                let reason = format!("what it has cost today cannot be read: {}", cause::chain(&error));
                return Err(Error::Unavailable { reason });
            }
        }
        let answer = self.model.respond(request).await?;
        if let Some(nano_usd) = answer.usage.nano_usd {
            self.spending.add(&request.payer, nano_usd).await;
        }
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use countersign_core::clock::ManualClock;
    use countersign_model::{Purpose, ToolChoice, Usage};
    use countersign_store::sqlite::SqliteStore;
    use tempfile::TempDir;

    use super::*;

    /// A model each of whose calls costs a cent.
    #[derive(Debug)]
    struct Cent;

    #[async_trait]
    impl Model for Cent {
        fn name(&self) -> &'static str {
            "cent"
        }

        async fn respond(&self, _: &Request) -> Result<Response, Error> {
            let usage = Usage { nano_usd: Some(10_000_000), ..Usage::default() };
            Ok(Response { content: Vec::new(), stop_reason: "end_turn".to_owned(), usage })
        }
    }

    struct World {
        _folder: TempDir,
        store: Arc<dyn Store>,
        clock: ManualClock,
    }

    impl World {
        fn new() -> Self {
            let (folder, clock) = (tempfile::tempdir().unwrap(), ManualClock::default());
            let since_midnight = clock.now().millis().rem_euclid(DAY).unsigned_abs();
            clock.advance(Duration::from_millis(36 * 60 * 60 * 1000 - since_midnight)); // noon
            let store = SqliteStore::open(folder.path().join("threads.sqlite"), Arc::new(clock.clone())).unwrap();
            Self { _folder: folder, store: Arc::new(store), clock }
        }

        /// The model in another process each time.
        async fn asks(&self, limits: Limits, person: &str, thread_cost: u64) -> Option<Limit> {
            let spending = Spending::new(self.store.clone(), Arc::new(self.clock.clone()), limits);
            let request = Request {
                purpose: Purpose::Gather,
                instructions: "".into(),
                tools: [].into(),
                history: Vec::new(),
                situation: serde_json::Value::Null,
                exchange: Vec::new(),
                tool_choice: ToolChoice::Auto,
                answer_schema: None,
                max_tokens: 1,
                payer: Payer { person: Some(person.into()), thread_cost },
                words: None,
            };
            match Limited::new(Arc::new(Cent), spending).respond(&request).await {
                Ok(_) => None,
                Err(Error::OverLimit(reached)) => Some(reached.limit),
                Err(error) => panic!("{error}"),
            }
        }
    }

    #[tokio::test]
    async fn calls_are_made_until_a_limit_is_reached_and_again_the_next_day() {
        let world = World::new();
        let limits = Limits::from(&CostLimits { thread: Some(1.0), person_a_day: Some(0.02), day: Some(0.03) });
        assert_eq!(world.asks(limits, "U1", 1_000_000_000).await, Some(Limit::Thread));
        for _ in 0..2 {
            assert_eq!(world.asks(limits, "U1", 999_999_999).await, None);
        }
        assert_eq!(world.asks(limits, "U1", 0).await, Some(Limit::Person));
        assert_eq!(world.asks(limits, "U2", 0).await, None);
        assert_eq!(world.asks(limits, "U2", 0).await, Some(Limit::Day));
        let spending = Spending::new(world.store.clone(), Arc::new(world.clock.clone()), limits);
        let today = Today { everyone: 30_000_000, person: 20_000_000, limits };
        assert_eq!(spending.today(&"U1".into()).await.unwrap(), today);

        world.clock.advance(Duration::from_secs(24 * 60 * 60));
        assert_eq!(spending.today(&"U1".into()).await.unwrap(), Today { limits, ..Today::default() });
        assert_eq!(world.asks(limits, "U1", 0).await, None);
    }

    #[tokio::test]
    async fn without_limits_calls_are_only_counted() {
        let world = World::new();
        for _ in 0..3 {
            assert_eq!(world.asks(Limits::default(), "U1", u64::MAX).await, None);
        }
        let spending = Spending::new(world.store.clone(), Arc::new(world.clock.clone()), Limits::default());
        assert_eq!(spending.today(&"U1".into()).await.unwrap().everyone, 30_000_000);
    }

    #[test]
    fn a_clock_behind_does_not_begin_a_day_again() {
        let mut cost = DayCost { day: 7, nano_usd: 5 };
        assert_eq!(cost.add(6, 2), (5, 7));
        assert_eq!(cost.add(8, 2), (0, 2));
        assert_eq!(cost, DayCost { day: 8, nano_usd: 2 });
    }
}
