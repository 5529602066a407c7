//! The world on disk: a JSON document, which is replaced as a whole, and a folder with the contents
//! of files next to it.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use axum::{
    extract::{Request, State},
    http::Method,
    middleware::Next,
    response::Response,
};

use super::{server::Server, world::World};
use crate::files;

/// Loads the saved world, or the seed if there is none.
pub(super) fn load(path: Option<&Path>) -> io::Result<World> {
    let Some(path) = path else { return Ok(World::seed()) };
    let Some(text) = files::read(path)? else {
        // Otherwise the files of the previous world would be taken for those of the new one.
        std::fs::remove_dir_all(path.with_extension("files")).ok();
        return Ok(World::seed());
    };
    let mut world: World = serde_json::from_slice(&text)?;
    for file in world.files.values_mut() {
        file.bytes = std::fs::read(bytes_of(path, &file.id)).unwrap_or_default();
    }
    world.index();
    Ok(world)
}

/// Saves the world before a request is answered, so that acknowledged changes survive a crash.
pub(super) async fn save_before_answering(State(server): State<Arc<Server>>, request: Request, next: Next) -> Response {
    let reads = request.method() == Method::GET;
    let response = next.run(request).await;
    if !reads {
        save(&server);
    }
    response
}

/// Saves the world, if it is to be kept.
pub(super) fn save(server: &Server) {
    let Some(path) = &server.options.persist else { return };
    server.change(|world| {
        let uploaded = world.files.values().filter(|file| !file.bytes.is_empty());
        let mut new = uploaded.filter(|file| !bytes_of(path, &file.id).exists());
        let saved = new.try_for_each(|file| keep(&bytes_of(path, &file.id), &file.bytes));
        if let Err(error) = saved {
            tracing::warn!(%error, "The files of the sandbox workspace cannot be saved");
        }
    });
}

fn keep(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    files::replace(path, bytes)
}

fn bytes_of(path: &Path, id: &str) -> PathBuf {
    path.with_extension("files").join(id)
}
