//! Whom the stand-ins answer: this machine, and no page from elsewhere whose name was made to lead here.

use countersign_sandbox::{
    google::SandboxGoogle,
    model::SandboxModel,
    slack::{self, SandboxSlack},
    upgrade::{self, SandboxUpgrade},
};

#[tokio::test]
async fn pages_from_elsewhere_are_refused_everywhere() {
    let slack = SandboxSlack::start(slack::Options::default()).await.unwrap();
    let upgrade = SandboxUpgrade::start(upgrade::Options::default()).await.unwrap();
    let google = SandboxGoogle::start().await.unwrap();
    let model = SandboxModel::start(0).await.unwrap();
    let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
    for address in [
        format!("{}/auth.test", slack.api_url()),
        format!("{}/response/x", slack.url()),
        format!("{}/upload/x", slack.url()),
        format!("{}/workspace/state?as=U1", slack.url()),
        format!("{}/experiments/names", upgrade.url()),
        upgrade.url().replace("/api", "/sandbox/ledger"),
        google.endpoint().to_owned(),
        format!("{}/v1/messages", model.url()),
    ] {
        let own = address.split('/').nth(2).unwrap().to_owned();
        for (host, origin, answered) in [
            (own.as_str(), None, true),
            (own.as_str(), Some(format!("http://{own}")), true),
            (own.as_str(), Some("http://evil.example".to_owned()), false),
            (own.as_str(), Some("null".to_owned()), false),
            ("evil.example", None, false),
            ("evil.example", Some("http://evil.example".to_owned()), false),
        ] {
            let mut request = client.get(&address).header("host", host);
            if let Some(origin) = &origin {
                request = request.header("origin", origin);
            }
            let status = request.send().await.unwrap().status();
            assert_eq!(status != 403, answered, "{address} as {host} from {origin:?}: {status}");
        }
    }
}
