//! A Dovecot of its own for a test: a real mail server, gone with the test.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, chown},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, getegid, geteuid, kill_process};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
};

use super::{certificates::make_certificates, ports::free_port};

/// How long a server may take until it answers.
const START_LIMIT: Duration = Duration::from_secs(60);
/// How often another port is tried.
const PORTS: usize = 5;
/// The user to whom mails belong if the tests run as root, under whom Dovecot reads no mail: `nobody`.
const NOBODY: u32 = 65534;
/// The password of every user.
pub(crate) const PASSWORD: &str = "secret";

/// A running Dovecot. Any name can sign in with [`PASSWORD`] and has a mailbox.
#[derive(Debug)]
pub(crate) struct Dovecot {
    port: u16,
    /// The port for encrypted connections; `None` if there are none.
    encrypted: Option<u16>,
    process: Option<Child>,
    directory: TempDir,
}

impl Dovecot {
    /// Starts a server without encryption.
    pub(crate) async fn start() -> Self {
        Self::launched(false).await
    }

    /// Starts a server with a certificate for `localhost`, which an authority of its own has issued.
    pub(crate) async fn encrypted() -> Self {
        Self::launched(true).await
    }

    async fn launched(is_encrypted: bool) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
        if is_encrypted {
            make_certificates(directory.path(), "DNS:localhost");
        }
        let mut server = Self { port: 0, encrypted: None, process: None, directory };
        for _ in 0..PORTS {
            server.port = free_port();
            server.encrypted = is_encrypted.then(free_port);
            if server.launch().await {
                return server;
            }
        }
        panic!("dovecot did not start:\n{}", server.log());
    }

    /// The port on which it listens.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The port on which connections are encrypted from the first byte.
    pub(crate) fn encrypted_port(&self) -> u16 {
        self.encrypted.expect("the server has a certificate")
    }

    /// The certificate of the authority, in the format PEM.
    pub(crate) fn authority(&self) -> Vec<u8> {
        fs::read(self.directory.path().join("ca.pem")).expect("the server has a certificate")
    }

    /// Puts a message into a mailbox, with these flags.
    pub(crate) async fn deliver(&self, user: &str, mailbox: &str, message: &[u8]) {
        let mut client = RawClient::sign_in(self.port, user).await;
        client.send(&format!("a APPEND \"{mailbox}\" {{{}+}}\r\n", message.len())).await;
        client.stream.write_all(message).await.expect("it listens");
        client.send("\r\n").await;
        client.done("a").await;
    }

    /// Runs a command in a mailbox, and returns the lines of the answer.
    pub(crate) async fn ask(&self, user: &str, mailbox: &str, command: &str) -> Vec<String> {
        let mut client = RawClient::sign_in(self.port, user).await;
        client.send(&format!("a SELECT \"{mailbox}\"\r\n")).await;
        client.done("a").await;
        client.send(&format!("b {command}\r\n")).await;
        client.done("b").await
    }

    /// Gives new ids to all mails of a user, as after a mailbox was restored.
    pub(crate) fn renew_ids(&self, user: &str) {
        let maildir = self.directory.path().join("home").join(user).join("Maildir");
        let list = maildir.join("dovecot-uidlist");
        let ids = fs::read_to_string(&list).expect("a list of ids");
        // The first line is such as `3 V1795430968 N1 G…`, with the number that stands for all ids.
        let validity = ids.split([' ', '\n']).find(|word| word.starts_with('V')).expect("a number");
        let renewed = validity[1..].parse::<u32>().expect("a number") + 1_000;
        fs::write(&list, ids.replacen(validity, &format!("V{renewed}"), 1)).expect("it is ours");
        for entry in fs::read_dir(&maildir).expect("a mailbox").flatten() {
            if entry.file_name().to_string_lossy().starts_with("dovecot.index") {
                fs::remove_file(entry.path()).expect("it is ours");
            }
        }
    }

    /// Returns true once it answers; false if it ended, as when its port is taken.
    async fn launch(&mut self) -> bool {
        let path = self.directory.path();
        let home = path.join("home");
        fs::create_dir_all(&home).expect("it is ours");
        if geteuid().is_root() {
            chown(&home, Some(NOBODY), Some(NOBODY)).expect("we are root");
        }
        let settings = path.join("dovecot.conf");
        fs::write(&settings, configuration(path, self.port, self.encrypted)).expect("it is ours");
        let start = |program: &str| {
            let mut command = Command::new(program);
            command.arg("-F").arg("-c").arg(&settings);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
        };
        // Debian's folder for it is not in everyone's path.
        let process = start("dovecot").or_else(|_| start("/usr/sbin/dovecot")).unwrap_or_else(|error| {
            panic!("cannot start dovecot ({error}): these tests need it; install it, as with `apt-get install dovecot-imapd`")
        });
        let process = self.process.insert(process);
        let began = Instant::now();
        while process.try_wait().expect("it is our child").is_none() {
            if TcpStream::connect(("127.0.0.1", self.port)).await.is_ok() {
                return true;
            }
            assert!(began.elapsed() < START_LIMIT, "dovecot does not answer on port {}", self.port);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.process = None;
        false
    }

    fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("dovecot.log")).unwrap_or_default()
    }
}

impl Drop for Dovecot {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            // Killed, it would leave its own processes behind.
            kill_process(Pid::from_child(&process), Signal::TERM).ok();
            process.wait().ok();
        }
    }
}

/// The settings of a server that runs as whoever runs the tests.
fn configuration(path: &Path, port: u16, encrypted: Option<u16>) -> String {
    let (path, is_root) = (path.display(), geteuid().is_root());
    let (uid, gid) = if is_root { (NOBODY, NOBODY) } else { (geteuid().as_raw(), getegid().as_raw()) };
    let tls = match encrypted {
        None => "ssl = no".to_owned(),
        Some(_) => format!("ssl = yes\nssl_cert = <{path}/server.pem\nssl_key = <{path}/server.key"),
    };
    let encrypted = encrypted.unwrap_or_default();
    let own_user = if is_root { String::new() } else { unprivileged() };
    format!(
        r#"base_dir = {path}/run
state_dir = {path}/state
log_path = {path}/dovecot.log
protocols = imap
listen = 127.0.0.1
{tls}
disable_plaintext_auth = no
mail_location = maildir:~/Maildir
first_valid_uid = 1
passdb {{
  driver = static
  args = password={PASSWORD}
}}
userdb {{
  driver = static
  args = uid={uid} gid={gid} home={path}/home/%u
}}
namespace inbox {{
  inbox = yes
  mailbox "Sent Mail" {{
    special_use = \Sent
    auto = create
  }}
}}
service imap-login {{
  inet_listener imap {{
    port = {port}
  }}
  inet_listener imaps {{
    port = {encrypted}
  }}
}}
{own_user}"#
    )
}

/// The settings without which only root can start it.
fn unprivileged() -> String {
    let name = |option: &str| {
        let output = Command::new("id").arg(option).output().expect("`id` is everywhere");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    let (user, group) = (name("-un"), name("-gn"));
    format!(
        "default_internal_user = {user}\ndefault_internal_group = {group}\ndefault_login_user = {user}\n\
         service anvil {{\n  chroot =\n}}\nservice imap-login {{\n  chroot =\n}}\n"
    )
}

/// A client without any library.
struct RawClient {
    stream: BufReader<TcpStream>,
}

impl RawClient {
    async fn sign_in(port: u16, user: &str) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).await.expect("it listens");
        let mut client = Self { stream: BufReader::new(stream) };
        client.send(&format!("l LOGIN {user} {PASSWORD}\r\n")).await;
        client.done("l").await;
        client
    }

    async fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.expect("it listens");
        self.stream.flush().await.expect("it listens");
    }

    /// Reads up to the end of a command, which must succeed.
    async fn done(&mut self, tag: &str) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            let read = self.stream.read_line(&mut line).await.expect("it answers");
            assert!(read > 0, "dovecot left after {lines:?}");
            if let Some(outcome) = line.strip_prefix(&format!("{tag} ")) {
                assert!(outcome.starts_with("OK"), "{outcome} after {lines:?}");
                return lines;
            }
            lines.push(line.trim_end().to_owned());
        }
    }
}
