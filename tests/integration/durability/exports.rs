//! A thread's notebook as operators know it: written by one command, checked by another, each a process of its own.

use std::{
    ffi::OsStr,
    fs,
    path::Path,
    process::{Command, Output},
};

use super::{
    process::{COUNTERSIGN, Process, serve},
    processes::{By, given},
};

/// `countersign audit verify`, which needs no settings and no network.
fn verify(file: &Path, more: &[&OsStr]) -> (Option<i32>, String) {
    let mut command = Command::new(COUNTERSIGN);
    command.args(["audit", "verify"]).arg(file).args(more).env_clear();
    ended(&command.output().unwrap())
}

/// How it ended, and what it said.
fn ended(output: &Output) -> (Option<i32>, String) {
    let said = [&output.stdout[..], &output.stderr[..]].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_notebook_is_written_and_checked() {
    let given = given(By::Socket, None).await;
    let bot = Process::start(serve(&given.settings), &given.folder.path().join("bot.log"));
    given.page.until("it is up", async || bot.is_up()).await;
    let root = given.page.says("ana", "@countersign start the Math Hints experiment").await;
    given.page.message_with(&root, "approve").await;

    let out = given.folder.path().join("out");
    let notebook = |thread: &str| {
        let mut command = Command::new(COUNTERSIGN);
        command.arg("notebook").arg(thread).arg("--out").arg(&out).env_clear().envs(&given.settings);
        ended(&command.output().unwrap())
    };
    let (code, said) = notebook(&format!("T1/C1/{root}")); // the bot goes on meanwhile
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("notebook.md") && said.contains("notebook.jsonl"), "{said}");
    assert!(fs::read_to_string(out.join("notebook.md")).unwrap().contains("start the Math Hints experiment"));
    let last = said.trim().rsplit(' ').next().unwrap().to_owned();
    let (code, said) = notebook("T1/C1/1.000001");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("T1/C1/1.000001"), "{said}");

    let file = out.join("notebook.jsonl");
    let (code, said) = verify(&file, &[]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("intact: ") && said.contains(&format!("last hash {last}")), "{said}");
    assert!(said.contains("unchanged since export: notebook.md") && said.contains("(--last)"), "{said}");
    let (code, said) = verify(&file, &["--last".as_ref(), last.as_ref()]);
    assert_eq!((code, said.contains("--last")), (Some(0), false), "{said}");
    let (code, said) = verify(&file, &["--last".as_ref(), "feed".as_ref()]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains(&format!("its last entry has hash {last}, not feed")), "{said}");

    let whole = fs::read(&file).unwrap();
    let third = whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n').nth(1).unwrap().0 + 20;
    let mut changed = whole.clone();
    changed[third] ^= 1;
    fs::write(&file, changed).unwrap();
    let (code, said) = verify(&file, &[]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("is not intact") && said.contains("line 3"), "{said}");
    fs::write(&file, &whole).unwrap();
    fs::write(out.join("notebook.md"), "# Another story\n").unwrap();
    let (code, said) = verify(&file, &[]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("notebook.md is next to it"), "{said}");
    let (code, said) = verify(&out.join("nothing.jsonl"), &[]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("cannot read"), "{said}");
    assert!(bot.stop().await.success(), "{}", bot.log());
}
