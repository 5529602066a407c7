//! The health of the platforms behind the capabilities, as shown by `/readyz`.
//!
//! No probe waits for a platform. If a probe arrives and the last result is old, a check is started
//! in the background, one at a time and with the time limit [`TIMEOUT`]. A result is shown, with
//! its age, until the next check has ended. Without probes, no platform is checked.
//!
//! *Architecture Invariant:* the health of a platform does not affect the readiness of the bot.
//! Without a platform the bot still receives, stores and answers messages; a process that is taken
//! out of service could do even less.

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

/// The time for which a system that answered is not checked again.
const MAX_AGE: Duration = Duration::from_secs(15);

/// The time for which a system that did not answer is not checked again.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// The time limit of a check.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The outside systems of the capabilities, with their health.
#[derive(Clone)]
pub(super) struct Services(Arc<[Watched]>);

/// One outside system, and its last known state.
struct Watched {
    name: &'static str,
    capability: Arc<dyn Capability>,
    state: Arc<Mutex<State>>,
}

/// The last result, and the check in progress.
#[derive(Default)]
struct State {
    found: Option<(Instant, Result<String, String>)>,
    check: Option<AbortHandle>,
}

impl Services {
    /// Creates the list of outside systems that these capabilities have.
    pub(super) fn new(capabilities: &[Arc<dyn Capability>]) -> Self {
        let watched = |capability: &Arc<dyn Capability>| {
            let name = capability.info().service?.name;
            Some(Watched { name, capability: capability.clone(), state: Arc::default() })
        };
        Self(capabilities.iter().filter_map(watched).collect())
    }

    /// Returns the last known state of each system: `ok`, which is true if it answers and null
    /// before the first check has ended; `what`, its answer; and `seconds_ago`. An old result is
    /// renewed in the background.
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
        let is_being_checked = state.check.as_ref().is_some_and(|check| !check.is_finished());
        if is_old && !is_being_checked {
            state.check = Some(self.start_check());
        }
        match &state.found {
            None => json!({ "ok": null, "what": "not checked yet" }),
            Some((at, found)) => {
                let (Ok(what) | Err(what)) = found;
                json!({ "ok": found.is_ok(), "what": what, "seconds_ago": at.elapsed().as_secs() })
            }
        }
    }

    /// Starts a check of the system in the background, which stores the result.
    fn start_check(&self) -> AbortHandle {
        let (name, capability, state) = (self.name, self.capability.clone(), self.state.clone());
        let check = async move {
            let found = match timeout(TIMEOUT, capability.check()).await {
                Ok(Some((_, found))) => found,
                Ok(None) => Err("its state isn't known".to_owned()),
                Err(_) => Err(format!("{name} didn't answer within {} s", TIMEOUT.as_secs())),
            };
            lock(&state).found = Some((Instant::now(), found));
        };
        tokio::spawn(check).abort_handle()
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
    use countersign_capabilities::{CapabilityInfo, Service, Tool, ToolError, ToolInfo};
    use countersign_graph::action::{ActionKind, Reader};

    /// A platform that answers after a delay, and counts the checks.
    #[derive(Default)]
    struct Platform {
        checks: AtomicUsize,
        takes: Mutex<Duration>,
        is_down: Mutex<bool>,
    }

    #[async_trait]
    impl Capability for Platform {
        fn info(&self) -> CapabilityInfo {
            CapabilityInfo {
                service: {
                    let (timeout, settle_within) = (Duration::ZERO, Duration::ZERO);
                    Some(Service { name: "Shelf", health: "check_shelf", timeout, settle_within })
                },
                ..CapabilityInfo::new("documents", "Documents.")
            }
        }

        fn tools(&self) -> Vec<Arc<dyn Tool>> {
            Vec::new()
        }

        fn actions(&self) -> Vec<Arc<dyn ActionKind>> {
            Vec::new()
        }

        async fn check(&self) -> Option<(&'static str, Result<String, String>)> {
            let takes = *self.takes.lock().unwrap();
            self.checks.fetch_add(1, Ordering::SeqCst);
            sleep(takes).await;
            let found = if *self.is_down.lock().unwrap() { Err("it is down") } else { Ok("Shelf 1.0") };
            Some(("shelf", found.map(str::to_owned).map_err(str::to_owned)))
        }
    }

    /// Returns the state that is shown, and the number of checks after a new one had time to start.
    async fn probe(services: &Services, platform: &Platform) -> (Value, usize) {
        let shown = services.report()["Shelf"].clone();
        tokio::task::yield_now().await;
        (shown, platform.checks.load(Ordering::SeqCst))
    }

    #[tokio::test(start_paused = true)]
    async fn an_old_result_is_renewed_and_no_probe_waits_for_it() {
        let platform = Arc::new(Platform::default());
        let known: Arc<dyn Capability> = platform.clone();
        let services = Services::new(&[known]);
        let first = json!({ "ok": null, "what": "not checked yet" });
        assert_eq!(probe(&services, &platform).await, (first, 1));
        sleep(Duration::from_millis(1)).await;
        let healthy = |seconds: u64| json!({ "ok": true, "what": "Shelf 1.0", "seconds_ago": seconds });
        assert_eq!(probe(&services, &platform).await, (healthy(0), 1));
        advance(Duration::from_secs(14)).await;
        assert_eq!(probe(&services, &platform).await, (healthy(14), 1));

        *platform.is_down.lock().unwrap() = true;
        advance(Duration::from_secs(2)).await;
        assert_eq!(probe(&services, &platform).await, (healthy(16), 2), "the last result is shown until the next one");
        sleep(Duration::from_millis(1)).await;
        assert_eq!(probe(&services, &platform).await.0["ok"], false);
        *platform.is_down.lock().unwrap() = false;
        advance(Duration::from_secs(2)).await;
        probe(&services, &platform).await;
        sleep(Duration::from_millis(1)).await;
        assert_eq!(probe(&services, &platform).await, (healthy(0), 3), "a system that was down is checked again soon");
    }

    /// A capability that does not implement `check`, only its tool for the health.
    struct HealthTool;

    #[async_trait]
    impl Tool for HealthTool {
        fn info(&self) -> ToolInfo {
            ToolInfo::new("check_shelf", "Checks the shelf.")
        }

        fn schema(&self) -> Value {
            json!({ "type": "object" })
        }

        async fn call(&self, _: &Value, _: Option<&Reader>) -> Result<Value, ToolError> {
            Ok(json!({ "name": "Shelf", "version": "2.0" }))
        }
    }

    #[async_trait]
    impl Capability for HealthTool {
        fn info(&self) -> CapabilityInfo {
            CapabilityInfo {
                service: Platform::default().info().service,
                ..CapabilityInfo::new("documents", "Documents.")
            }
        }

        fn tools(&self) -> Vec<Arc<dyn Tool>> {
            vec![Arc::new(HealthTool)]
        }

        fn actions(&self) -> Vec<Arc<dyn ActionKind>> {
            Vec::new()
        }
    }

    #[tokio::test]
    async fn by_default_a_check_calls_the_tool_for_the_health() {
        assert_eq!(HealthTool.check().await, Some(("Shelf", Ok("Shelf 2.0".to_owned()))));
    }

    #[tokio::test(start_paused = true)]
    async fn a_system_that_does_not_answer_is_checked_once_at_a_time_and_reported() {
        let platform = Arc::new(Platform::default());
        *platform.takes.lock().unwrap() = Duration::from_secs(60);
        let known: Arc<dyn Capability> = platform.clone();
        let services = Services::new(&[known]);
        for _ in 0..4 {
            assert_eq!(probe(&services, &platform).await.1, 1);
            sleep(Duration::from_secs(1)).await;
        }
        sleep(Duration::from_millis(1500)).await;
        let silent = json!({ "ok": false, "what": "Shelf didn't answer within 5 s", "seconds_ago": 0 });
        assert_eq!(probe(&services, &platform).await, (silent, 1));
    }
}
