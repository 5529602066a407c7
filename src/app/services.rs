//! The health of the platforms behind the capabilities, as shown by `/readyz`.
//!
//! No probe waits for them: a look is taken in the background when a probe comes and the last result is old, one at a
//! time and for no longer than [`TIMEOUT`]. A result stands until the next look has ended, and says how old it is. A
//! process that is not probed asks no platform.
//!
//! *Architecture Invariant:* none of it decides whether the bot is ready. Without a platform it still takes in, keeps
//! and answers what people say, and a process that is taken out of service would do less, not more.

use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use countersign_capabilities::Capability;
use serde_json::{Map, Value, json};
use tokio::{
    task::AbortHandle,
    time::{Instant, timeout},
};

/// The time for which a system that answered is not asked again.
const MAX_AGE: Duration = Duration::from_secs(15);
/// The time for which one that did not answer is not asked again.
const RETRY_AFTER: Duration = Duration::from_secs(2);
/// The time limit of a look.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Watches the outside systems.
#[derive(Clone)]
pub(super) struct Services(Arc<[Watched]>);

/// One outside system, and its last known state.
struct Watched {
    name: &'static str,
    capability: Arc<dyn Capability>,
    state: Arc<Mutex<State>>,
}

/// The last result, and the look that is being taken.
#[derive(Default)]
struct State {
    found: Option<(Instant, Result<String, String>)>,
    look: Option<AbortHandle>,
}

impl Services {
    /// Creates a watch of those of these capabilities that have an outside system.
    pub(super) fn new(capabilities: &[Arc<dyn Capability>]) -> Self {
        let watched = |capability: &Arc<dyn Capability>| {
            let name = capability.service()?.name;
            Some(Watched { name, capability: capability.clone(), state: Arc::default() })
        };
        Self(capabilities.iter().filter_map(watched).collect())
    }

    /// The state of each system as far as it is known, at once: whether it answers (null before the first look has
    /// ended), what it said, and how many seconds ago. An old result is renewed in the background.
    pub(super) fn report(&self) -> Map<String, Value> {
        self.0.iter().map(|watched| (watched.name.to_owned(), watched.report())).collect()
    }
}

impl Watched {
    fn report(&self) -> Value {
        let mut state = lock(&self.state);
        let is_old = state
            .found
            .as_ref()
            .is_none_or(|(at, found)| at.elapsed() >= if found.is_ok() { MAX_AGE } else { RETRY_AFTER });
        let is_looked_at = state.look.as_ref().is_some_and(|look| !look.is_finished());
        if is_old && !is_looked_at {
            state.look = Some(self.look());
        }
        match &state.found {
            None => json!({ "ok": null, "what": "it is being asked for the first time" }),
            Some((at, found)) => {
                let (Ok(what) | Err(what)) = found;
                json!({ "ok": found.is_ok(), "what": what, "seconds_ago": at.elapsed().as_secs() })
            }
        }
    }

    /// Asks the system in the background, and notes its answer.
    fn look(&self) -> AbortHandle {
        let (name, capability, state) = (self.name, self.capability.clone(), self.state.clone());
        let look = async move {
            let found = match timeout(TIMEOUT, capability.check()).await {
                Ok(Some((_, found))) => found,
                Ok(None) => Err("nothing tells how it is".to_owned()),
                Err(_) => Err(format!("{name} has not answered within {} s", TIMEOUT.as_secs())),
            };
            lock(&state).found = Some((Instant::now(), found));
        };
        tokio::spawn(look).abort_handle()
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().expect("no holder panics")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;
    use tokio::time::{advance, sleep};

    use super::*;
    use countersign_capabilities::{Service, Tool, ToolError};
    use countersign_graph::action::ActionKind;

    /// A platform that answers after a while, well or not, and counts the questions.
    #[derive(Default)]
    struct Platform {
        asked: AtomicUsize,
        takes: Mutex<Duration>,
        is_down: Mutex<bool>,
    }

    #[async_trait]
    impl Capability for Platform {
        fn name(&self) -> &'static str {
            "documents"
        }

        fn purpose(&self) -> &'static str {
            "Documents."
        }

        fn tools(&self) -> Vec<Arc<dyn Tool>> {
            Vec::new()
        }

        fn actions(&self) -> Vec<Arc<dyn ActionKind>> {
            Vec::new()
        }

        fn service(&self) -> Option<Service> {
            let (timeout, settle_within) = (Duration::ZERO, Duration::ZERO);
            Some(Service { name: "Shelf", health: "check_shelf", timeout, settle_within })
        }

        async fn check(&self) -> Option<(&'static str, Result<String, String>)> {
            let takes = *self.takes.lock().unwrap();
            self.asked.fetch_add(1, Ordering::SeqCst);
            sleep(takes).await;
            let found = if *self.is_down.lock().unwrap() { Err("it is down") } else { Ok("Shelf 1.0") };
            Some(("shelf", found.map(str::to_owned).map_err(str::to_owned)))
        }
    }

    /// The state that is shown now, and the number of questions so far; then gives the look time to end.
    async fn probe(services: &Services, platform: &Platform) -> (Value, usize) {
        let told = services.report()["Shelf"].clone();
        tokio::task::yield_now().await;
        (told, platform.asked.load(Ordering::SeqCst))
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_is_taken_when_it_is_old_and_nobody_waits_for_it() {
        let platform = Arc::new(Platform::default());
        let known: Arc<dyn Capability> = platform.clone();
        let services = Services::new(&[known]);
        let first = json!({ "ok": null, "what": "it is being asked for the first time" });
        assert_eq!(probe(&services, &platform).await, (first, 1));
        sleep(Duration::from_millis(1)).await;
        let well = |seconds: u64| json!({ "ok": true, "what": "Shelf 1.0", "seconds_ago": seconds });
        assert_eq!(probe(&services, &platform).await, (well(0), 1));
        advance(Duration::from_secs(14)).await;
        assert_eq!(probe(&services, &platform).await, (well(14), 1));

        *platform.is_down.lock().unwrap() = true;
        advance(Duration::from_secs(2)).await;
        assert_eq!(probe(&services, &platform).await, (well(16), 2), "what is known is told until more is");
        sleep(Duration::from_millis(1)).await;
        assert_eq!(probe(&services, &platform).await.0["ok"], false);
        *platform.is_down.lock().unwrap() = false;
        advance(Duration::from_secs(2)).await;
        probe(&services, &platform).await;
        sleep(Duration::from_millis(1)).await;
        assert_eq!(probe(&services, &platform).await, (well(0), 3), "one that was away is asked again soon");
    }

    /// A platform that is known by its health alone.
    struct Silent;

    #[async_trait]
    impl Tool for Silent {
        fn name(&self) -> &'static str {
            "check_shelf"
        }

        fn description(&self) -> &'static str {
            "Checks the shelf."
        }

        fn schema(&self) -> Value {
            json!({ "type": "object" })
        }

        async fn call(&self, _: &Value) -> Result<Value, ToolError> {
            Ok(json!({ "name": "Shelf", "version": "2.0" }))
        }
    }

    #[async_trait]
    impl Capability for Silent {
        fn name(&self) -> &'static str {
            "documents"
        }

        fn purpose(&self) -> &'static str {
            "Documents."
        }

        fn tools(&self) -> Vec<Arc<dyn Tool>> {
            vec![Arc::new(Silent)]
        }

        fn actions(&self) -> Vec<Arc<dyn ActionKind>> {
            Vec::new()
        }

        fn service(&self) -> Option<Service> {
            Platform::default().service()
        }
    }

    #[tokio::test]
    async fn a_capability_that_says_no_more_is_told_by_its_health() {
        assert_eq!(Silent.check().await, Some(("Shelf", Ok("Shelf 2.0".to_owned()))));
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_does_not_answer_is_asked_by_one_at_a_time_and_told_in_the_end() {
        let platform = Arc::new(Platform::default());
        *platform.takes.lock().unwrap() = Duration::from_secs(60);
        let known: Arc<dyn Capability> = platform.clone();
        let services = Services::new(&[known]);
        for _ in 0..4 {
            assert_eq!(probe(&services, &platform).await.1, 1);
            sleep(Duration::from_secs(1)).await;
        }
        sleep(Duration::from_millis(1500)).await;
        let silent = json!({ "ok": false, "what": "Shelf has not answered within 5 s", "seconds_ago": 0 });
        assert_eq!(probe(&services, &platform).await, (silent, 1));
    }
}
