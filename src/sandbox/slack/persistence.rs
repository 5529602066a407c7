//! The world on disk: a JSON document, which is replaced as a whole, and a folder with the contents
//! of files next to it.

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

/// The delay before changes are written, so that several are written together.
const GATHER: Duration = Duration::from_millis(100);

/// Loads the saved world, or the seed if there is none.
pub(super) fn load(path: Option<&Path>) -> io::Result<World> {
    let Some(path) = path else { return Ok(World::seed()) };
    let text = match std::fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // Otherwise the files of the previous world would be taken for those of the new one.
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

/// Writes the world after each change until the server stops, and then once more.
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

/// Saves the world before a request is answered, so that acknowledged changes survive a crash.
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
        let file_path = bytes_of(path, &id);
        if tokio::fs::try_exists(&file_path).await? {
            continue;
        }
        let bytes = server.world().files.get(&id).map(|file| file.bytes.clone()).unwrap_or_default();
        if let Some(folder) = file_path.parent() {
            tokio::fs::create_dir_all(folder).await?;
        }
        replace(&file_path, &bytes).await?;
    }
    replace(path, &document).await
}

async fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".half");
    let (to, bytes) = (temporary.clone(), bytes.to_vec());
    tokio::task::spawn_blocking(move || private_file::write(to.as_ref(), &bytes)).await.map_err(io::Error::other)??;
    tokio::fs::rename(&temporary, path).await
}

fn bytes_of(path: &Path, id: &str) -> PathBuf {
    path.with_extension("files").join(id)
}
