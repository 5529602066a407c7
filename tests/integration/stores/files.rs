//! The file of a store: what happens to it while a bot runs, who may open it, who may read it.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    sync::Arc,
};

use countersign::{
    clock::SystemClock,
    graph::store::{Error, Handling, Ingested, Store as _},
    store::sqlite::{OpenError, SqliteStore},
};
use tempfile::TempDir;

use super::fixture::{delivery, thread};
use countersign::clock::Timestamp;

struct Given {
    store: SqliteStore,
    path: PathBuf,
    dir: TempDir,
}

fn open(path: &Path) -> Result<SqliteStore, OpenError> {
    SqliteStore::open(path, Arc::new(SystemClock))
}

fn given() -> Given {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("data")).unwrap();
    let path = dir.path().join("data/countersign.sqlite");
    Given { store: open(&path).unwrap(), path, dir }
}

fn beside(path: &Path, what: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(what);
    name.into()
}

impl Given {
    async fn hears(&self, text: &str) -> Result<Ingested, Error> {
        self.store
            .ingest(&delivery(&thread(1), text, true, &[text], Timestamp(1)), Handling::Later)
            .await
            .map(|(ingested, _)| ingested)
    }

    async fn refuses(&self, what: &str) {
        let refused = self.hears(what).await;
        assert!(matches!(refused, Err(Error::Unavailable(_))), "{what}: it would be lost, and is {refused:?}");
        assert!(self.store.probe().await.is_err(), "{what}: it is not ready");
    }
}

#[tokio::test]
async fn what_would_not_be_found_again_is_not_acknowledged() {
    for gone in ["", "-wal", "-shm"] {
        let given = given();
        given.hears("before").await.unwrap();
        given.store.probe().await.unwrap();
        fs::remove_file(beside(&given.path, gone)).unwrap();
        given.refuses(&format!("after `{gone}` was deleted")).await;
        assert!(!given.path.exists() || !gone.is_empty(), "it is not made anew behind people's backs");
    }
}

#[tokio::test]
async fn a_replaced_file_is_noticed() {
    for part in ["", "-wal", "-shm"] {
        let given = given();
        given.hears("before").await.unwrap();
        let name = beside(&given.path, part);
        let (copy, mode) = (beside(&name, ".copy"), fs::metadata(&name).unwrap().ino());
        fs::copy(&name, &copy).unwrap();
        fs::rename(&copy, &name).unwrap();
        assert_ne!(fs::metadata(&name).unwrap().ino(), mode);
        given.refuses(&format!("after `{part}` was replaced by its copy")).await;
    }
}

#[tokio::test]
async fn a_folder_that_was_moved_away_and_back_is_noticed() {
    let given = given();
    given.hears("before").await.unwrap();
    let (folder, away) = (given.dir.path().join("data"), given.dir.path().join("away"));
    fs::rename(&folder, &away).unwrap();
    given.refuses("its folder is away").await;
    fs::create_dir(&folder).unwrap();
    given.refuses("another folder is in its place").await;
    fs::remove_dir(&folder).unwrap();
    fs::rename(&away, &folder).unwrap();
    given.hears("it is back").await.unwrap();
    given.store.probe().await.unwrap();
}

#[tokio::test]
async fn a_link_that_points_elsewhere_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let (link, one, two) = (dir.path().join("link"), dir.path().join("one"), dir.path().join("two"));
    symlink(&one, &link).unwrap();
    let given = Given { store: open(&link).unwrap(), path: link.clone(), dir };
    given.hears("before").await.unwrap();
    fs::copy(&one, &two).unwrap();
    fs::remove_file(&link).unwrap();
    symlink(&two, &link).unwrap();
    given.refuses("the next start would open another file").await;
}

#[test]
fn links_that_lead_to_each_other_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (one, other) = (dir.path().join("one"), dir.path().join("other"));
    symlink(&one, &other).unwrap();
    symlink(&other, &one).unwrap();
    let refused = open(&one).unwrap_err();
    assert!(refused.to_string().contains("one"), "{refused}");
}

#[test]
fn one_file_has_one_process_whatever_it_is_called() {
    let Given { store: _store, path, dir } = given();
    let link = dir.path().join("link.sqlite");
    symlink(&path, &link).unwrap();
    let through_folder = dir.path().join("folder");
    symlink(path.parent().unwrap(), &through_folder).unwrap();
    for other in
        [link, through_folder.join("countersign.sqlite"), path.parent().unwrap().join("../data/countersign.sqlite")]
    {
        let refused = open(&other);
        assert!(matches!(refused, Err(OpenError::InUse { .. })), "{}: {refused:?}", other.display());
    }
}

/// SQLite names the log after the file: under another name the same file has another log.
#[test]
fn a_file_with_two_names_is_refused() {
    let Given { store, path, dir } = given();
    let link = dir.path().join("hard.sqlite");
    fs::hard_link(&path, &link).unwrap();
    let refused = open(&link).unwrap_err();
    assert!(refused.to_string().contains("2 names"), "{refused}");
    drop(store);
    let refused = open(&path).unwrap_err();
    assert!(refused.to_string().contains("2 names"), "{refused}");
    fs::remove_file(&link).unwrap();
    open(&path).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn nobody_else_may_read_it() {
    let given = given();
    given.hears("a secret").await.unwrap();
    for part in ["", "-wal", "-shm", ".lock"] {
        let name = beside(&given.path, part);
        assert_eq!(mode(&name), 0o600, "{}", name.display());
    }
}

#[tokio::test]
async fn a_file_that_everybody_could_read_is_closed_to_them() {
    let Given { store, path, dir: _dir } = given();
    drop(store);
    for part in ["", ".lock"] {
        fs::set_permissions(beside(&path, part), fs::Permissions::from_mode(0o666)).unwrap();
    }
    let _store = open(&path).unwrap();
    for part in ["", "-wal", "-shm", ".lock"] {
        assert_eq!(mode(&beside(&path, part)), 0o600, "{part}");
    }
}
