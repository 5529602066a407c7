//! `countersign request` and the commands beside it, as a job runs them.

use std::{path::Path, process::Stdio};

use tokio::process::{Child, Command};

use super::Programs;
use crate::support::bot::BOUND;

/// The program itself.
const COUNTERSIGN: &str = env!("CARGO_BIN_EXE_countersign");

struct Job {
    folder: tempfile::TempDir,
    url: String,
    secret: String,
}

impl Job {
    fn new(programs: &Programs) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("plan.json"), r#"{ "version": "1.4.2", "service": "web" }"#).unwrap();
        Self { folder, url: format!("http://{}", programs.bot.api()), secret: programs.secret("ci").to_owned() }
    }

    fn file(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(COUNTERSIGN);
        command.args(line.split_whitespace()).current_dir(self.folder.path()).env_clear();
        command.env("COUNTERSIGN_URL", &self.url).env("COUNTERSIGN_KEY", &self.secret);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    }

    fn starts(&self, line: &str) -> Child {
        self.command(line).spawn().unwrap()
    }

    /// Runs a command to its end: its code, what it wrote, and what it told.
    async fn runs(&self, line: &str) -> (i32, String, String) {
        ended(self.starts(line)).await
    }
}

impl Programs {
    /// Returns the id of the newest request, once it has a card.
    pub(super) async fn newest(&self) -> String {
        let deadline = tokio::time::Instant::now() + BOUND;
        loop {
            let listed = self.get("/v1/approvals?state=pending").await;
            if let Some(last) = listed.body["data"].as_array().and_then(|data| data.last()) {
                return last["id"].as_str().unwrap().to_owned();
            }
            assert!(tokio::time::Instant::now() < deadline, "nothing is asked");
            tokio::task::yield_now().await;
        }
    }

    pub(super) async fn clicks(&self, id: &str, label: &str) {
        self.bot.settled().await;
        let thread = self.thread(&self.looks(id).await.body);
        thread.clicks("bo", label).await;
    }
}

async fn ended(child: Child) -> (i32, String, String) {
    let output = tokio::time::timeout(BOUND, child.wait_with_output()).await.unwrap().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

const ASK: &str =
    "request --policy deploy-prod --title T --payload plan.json --field Version=/version --before Version=1.4.1";

#[tokio::test(flavor = "multi_thread")]
async fn a_job_asks_waits_claims_reports_and_its_executor_verifies() {
    let programs = Programs::with(|api| api.public_url = None).await;
    let job = Job::new(&programs);
    let waiting = job.starts(&format!("{ASK} --key k1 --wait 60s --json --token-out token"));
    let id = programs.newest().await;
    programs.clicks(&id, "Approve").await;
    let (code, out, told) = ended(waiting).await;
    assert_eq!(code, 0, "{told}");
    assert!(told.contains("was approved by") && !out.contains("eyJ"), "{told} {out}");
    assert_eq!(serde_json::from_str::<serde_json::Value>(&out).unwrap()["state"], "intent");
    assert_eq!(mode(&job.file("token")), 0o600);

    // Its executor has the token and the payload.
    std::fs::write(job.file("other.json"), r#"{ "version": "1.4.3" }"#).unwrap();
    let issuer = "http://127.0.0.1:0"; // the settings of the test name port 0
    std::fs::write(
        job.file("keys"),
        programs.call(None, "GET", "/.well-known/jwks.json", &[], None).await.body.to_string(),
    )
    .unwrap();
    let verify = |payload: &str| {
        format!("token verify --token token --keys keys --audience ci-web --url {issuer} --payload {payload}")
    };
    let (code, _, told) = job.runs(&verify("plan.json")).await;
    assert_eq!(code, 0, "{told}");
    let (code, _, told) = job.runs(&verify("other.json")).await;
    assert!(code == 3 && told.contains("not the one that was approved"), "{code} {told}");

    let (code, _, told) = job.runs(&format!("report {id} succeeded --summary Deployed")).await;
    assert_eq!(code, 0, "{told}");
    assert_eq!(programs.looks(&id).await.state(), "done");
    let (code, _, told) = job.runs(&format!("request --attach {id} --payload plan.json --wait 5s")).await;
    assert!(code == 3 && told.contains("claimed before"), "{code} {told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_end_has_its_code() {
    let programs = Programs::start().await;
    let job = Job::new(&programs);
    let (code, _, told) = job.runs(&format!("{ASK} --key k1 --wait 1s")).await;
    assert!(code == 13 && told.contains("--attach apr_"), "{code} {told}");
    let id = programs.newest().await;
    programs.clicks(&id, "Reject…").await;
    let (code, _, told) = job.runs(&format!("request --attach {id} --payload plan.json --wait 20s")).await;
    assert!(code == 10 && told.contains("was rejected by"), "{code} {told}");
    let (code, _, told) = job.runs(&format!("{ASK} --key k2")).await;
    assert!(code == 3 && told.contains("rejected a moment ago"), "{code} {told}");
    let (code, _, _) = job.runs(&format!("{ASK} --target other --key k3")).await;
    assert_eq!(code, 13, "without --wait it does not wait");
    let id = programs.newest().await;
    assert_eq!(programs.cancels(&id).await.state(), "cancelled");
    let (code, _, told) = job.runs(&format!("request --attach {id} --payload plan.json --wait 20s")).await;
    assert_eq!(code, 12, "{told}");
    let (code, _, told) = job.runs("request --policy none --title T --payload plan.json").await;
    assert!(code == 3 && told.contains("policy"), "{code} {told}");
    let (code, _, told) = job.runs("request --policy deploy-prod --title T --payload gone.json").await;
    assert_eq!(code, 2, "{told}");
    let verify = "token verify --audience ci-web --payload plan.json --url http://127.0.0.1:1";
    let (code, _, told) = job.runs(verify).await;
    assert_eq!(code, 4, "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_waits_through_a_restart_of_the_server() {
    let mut programs = Programs::start().await;
    let port = programs.bot.api().port();
    programs.bot.config.sections.get_mut::<countersign::api::settings::Api>().listen =
        Some(std::net::SocketAddr::from(([127, 0, 0, 1], port)));
    let job = Job::new(&programs);
    let waiting = job.starts(&format!("{ASK} --key k1 --wait 60s"));
    let id = programs.newest().await;
    programs.bot.restart().await;
    programs.clicks(&id, "Approve").await;
    let (code, _, told) = ended(waiting).await;
    assert_eq!(code, 0, "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_job_withdraws_its_request_if_it_is_to() {
    let programs = Programs::start().await;
    let job = Job::new(&programs);
    let waiting = job.starts(&format!("{ASK} --key k1 --wait 60s --cancel-on-interrupt"));
    let id = programs.newest().await;
    let pid = rustix::process::Pid::from_raw(i32::try_from(waiting.id().unwrap()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let (code, _, told) = ended(waiting).await;
    assert_eq!(code, 12, "{told}");
    assert_eq!(programs.looks(&id).await.state(), "cancelled");
}

#[test]
fn a_key_is_shown_once_with_what_goes_into_the_settings() {
    let run = |line: &str| {
        let output =
            std::process::Command::new(COUNTERSIGN).args(line.split_whitespace()).env_clear().output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        (output.status.success(), text(&output.stdout), text(&output.stderr))
    };
    let (good, key, told) = run("key create ci-web");
    assert!(good && key.starts_with("csk_ci-web_"), "{key} {told}");
    assert!(told.contains("[api.keys.ci-web]") && !told.contains(key.trim()), "{told}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("settings.toml");
    let hash = told.lines().find(|line| line.starts_with("hashes")).unwrap();
    std::fs::write(&file, format!("[api.keys.ci-web]\n{hash}\nscopes = [\"read\"]\n")).unwrap();
    let with = |line: &str, file: &Path| run(&format!("{line} --config {}", file.display()));
    let (good, listed, _) = with("key list", &file);
    assert!(good && listed.contains("ci-web: 1 secret"), "{listed}");
    let (good, newer, told) = with("key rotate ci-web", &file);
    assert!(good && newer != key && told.contains(hash.split('"').nth(1).unwrap()), "both work for a while: {told}");
    assert!(!with("key create ci-web", &file).0, "there is one");
    assert!(with("key revoke ci-web", &file).2.contains("hashes = []"));
    assert!(!with("key revoke other", &file).0);
}

/// Returns who may access a file.
fn mode(path: &str) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}
