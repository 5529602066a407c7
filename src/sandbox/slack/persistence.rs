//! The world on disk: one JSON document, replaced as a whole, and the bytes of files beside it.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use axum::{
    extract::{Request, State},
    http::Method,
    middleware::Next,
    response::Response,
};
use countersign_core::private_file;

use super::{server::Server, world::World};

/// The time within which changes are written together.
const GATHER: Duration = Duration::from_millis(100);

/// Loads the world as it was saved, or the seed if there is none.
pub(super) fn load(path: Option<&Path>) -> io::Result<World> {
    let Some(path) = path else { return Ok(World::seed()) };
    let text = match std::fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // Files of a world that is gone would be taken for those of the new one.
            std::fs::remove_dir_all(path.with_extension("files")).ok();
            return Ok(World::seed());
        }
        Err(error) => return Err(error),
    };
    let mut world: World = serde_json::from_slice(&text)?;
    for file in world.files.values_mut() {
        file.bytes = std::fs::read(bytes_of(path, &file.id)).unwrap_or_default();
    }
    world.index();
    Ok(world)
}

/// Writes the world after each change, until the server stops; then once more.
pub(super) async fn keep(server: Arc<Server>) {
    let Some(path) = server.options.persist.clone() else { return };
    loop {
        let stopping = tokio::select! {
            () = server.changed.notified() => false,
            () = server.stopped.cancelled() => true,
        };
        if !stopping {
            tokio::select! {
                () = tokio::time::sleep(GATHER) => {}
                () = server.stopped.cancelled() => {}
            }
        }
        if let Err(error) = save(&server, &path).await {
            tracing::warn!(%error, "The sandbox workspace cannot be saved");
        }
        if stopping {
            return;
        }
    }
}

/// Saves the world before a request is answered: what was acknowledged survives a kill.
pub(super) async fn save_before_answering(State(server): State<Arc<Server>>, request: Request, next: Next) -> Response {
    let reads = request.method() == Method::GET;
    let response = next.run(request).await;
    if let (false, Some(path)) = (reads, &server.options.persist)
        && let Err(error) = save(&server, path).await
    {
        tracing::warn!(%error, "The sandbox workspace cannot be saved");
    }
    response
}

async fn save(server: &Server, path: &Path) -> io::Result<()> {
    let _one_at_a_time = server.saving.lock().await;
    let (document, files) = {
        let world = server.world();
        let files: Vec<_> = world.files.values().filter(|f| !f.bytes.is_empty()).map(|f| f.id.clone()).collect();
        (serde_json::to_vec(&*world)?, files)
    };
    for id in files {
        let beside = bytes_of(path, &id);
        if tokio::fs::try_exists(&beside).await? {
            continue;
        }
        let bytes = server.world().files.get(&id).map(|file| file.bytes.clone()).unwrap_or_default();
        if let Some(folder) = beside.parent() {
            tokio::fs::create_dir_all(folder).await?;
        }
        replace(&beside, &bytes).await?;
    }
    replace(path, &document).await
}

async fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut half = path.as_os_str().to_owned();
    half.push(".half");
    let (to, bytes) = (half.clone(), bytes.to_vec());
    tokio::task::spawn_blocking(move || private_file::write(to.as_ref(), &bytes)).await.map_err(io::Error::other)??;
    tokio::fs::rename(&half, path).await
}

fn bytes_of(path: &Path, id: &str) -> PathBuf {
    path.with_extension("files").join(id)
}
