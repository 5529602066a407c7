//! The number of descriptors that connections may take, so that enough are left for everything else.

use countersign_config as config;
use rustix::process::{Resource, getrlimit};

/// The most connections, however many descriptors there are: more are no sign of more work, only of a fault.
const MAX_CONNECTIONS: usize = 4096;

/// The descriptors that the process needs apart from connections of either kind: the files of the store, the runtime's
/// own, the logs.
const RESERVED: usize = 64;

/// Returns the number of files and sockets this process may have open, which is `RLIMIT_NOFILE`.
pub(super) fn limit() -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
}

/// Returns the number of `limit` descriptors that connections of clients may take. Each thread that is advanced and
/// each message that is sent may have a connection of its own, and another that is kept for the next; those are left.
/// If that is nearly all, clients have a quarter.
pub(super) fn for_connections(limit: usize, workers: &config::Workers) -> usize {
    let outgoing = workers.threads.saturating_add(workers.senders).saturating_mul(2);
    let left = limit.saturating_sub(RESERVED.saturating_add(outgoing));
    left.max(limit / 4).clamp(1, MAX_CONNECTIONS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use countersign_config::Config;

    #[test]
    fn enough_is_left_for_everything_else() {
        let mut workers = Config::load(None, &Default::default(), &crate::app::installed::SETTINGS).unwrap().workers;
        (workers.threads, workers.senders) = (64, 32);
        let of = |limit: usize, workers: &config::Workers| for_connections(limit, workers);
        assert_eq!(of(1024, &workers), 1024 - 256);
        assert_eq!(of(usize::MAX, &workers), MAX_CONNECTIONS);
        assert_eq!(of(300, &workers), 75, "a quarter, if the settings would use up the rest");
        assert_eq!(of(1, &workers), 1);
        workers.threads = usize::MAX;
        assert_eq!(of(1024, &workers), 256);
    }
}
