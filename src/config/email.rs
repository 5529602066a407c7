//! `[email]`: the mail account that is read and answered, and the limits of automatic answers.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use jiff::{civil::Time, tz::TimeZone};
use secrecy::SecretString;
use serde::Deserialize;

use super::{Problem, between, nearest::nearest, wrong_address};

/// The classes of mail that may be answered without a person.
const CLASSES: [&str; 5] = ["inquiry", "meeting_request", "follow_up", "other", "spam"];

/// The class of mail that a person always decides about.
const COMPLAINT: &str = "complaint";

/// The name of the file with the context of mails, beside the store.
const CONTEXT_FILE: &str = "mail-context.sqlite";

/// `[email]`: the mail account, the channel in which its mails appear, and the limits of automatic answers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Email {
    /// The channel (`C…`) in which each mail becomes a thread. Left out: no mail is read.
    pub channel: Option<String>,
    /// The kind of mail account. Left out: the one that has its credentials ([`Self::provider`]).
    pub provider: Option<MailProvider>,
    /// The address of the account. Gmail can name its own.
    pub address: Option<String>,
    /// The name that answers carry as their sender.
    pub name: Option<String>,
    /// The other addresses of the account; nothing from them is answered.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// The time between two looks for new mail, such as `"1min"`.
    #[serde(with = "humantime_serde")]
    pub sync_every: Duration,
    /// The time for which a mail's card is open, such as `"72h"`. Left out: until someone decides.
    #[serde(default, with = "humantime_serde::option")]
    pub expires_after: Option<Duration>,
    /// The time after which people are reminded of a mail's card that stays open, and again after each such time; `"0s"`
    /// for never.
    #[serde(with = "humantime_serde")]
    pub remind_every: Duration,
    /// True if answers may be sent without a person, within the limits below.
    pub automatic: bool,
    /// The confidence from which a mail is answered without a person.
    pub threshold: f64,
    /// The same for single classes of mail.
    #[serde(default)]
    pub thresholds: BTreeMap<String, f64>,
    /// The maximum number of answers a day that are sent without a person.
    pub answers_a_day: u32,
    /// The maximum number of them to one address a day.
    pub answers_to_one_address: u32,
    /// The time zone of the team, such as `"Europe/Berlin"`: of offered times, of days, and of the digest.
    pub time_zone: String,
    /// The time of the daily digest, such as `"08:30"`. Left out: none.
    pub digest: Option<String>,
    /// The time limit of one call to a mail server, calendar or address book.
    #[serde(with = "humantime_serde")]
    pub timeout: Duration,
    /// The address of the Gmail API; also `GMAIL_API_URL`.
    pub gmail_api_url: String,
    /// The address at which people read their mail, to which the cards link.
    pub gmail_web_url: String,
    /// The address of the Calendar API; also `CALENDAR_API_URL`.
    pub calendar_api_url: String,
    /// The address where Google issues tokens; also `GOOGLE_TOKEN_URL`.
    pub google_token_url: String,
    /// The calendar that is looked at for free times, such as `"primary"`. Left out: none.
    pub calendar: Option<String>,
    /// The key file of a Google service account that may act for [`Self::address`]; also `GOOGLE_SERVICE_ACCOUNT`.
    pub service_account: Option<PathBuf>,
    /// The Pub/Sub topic to which Gmail announces new mail. Left out: mail is looked for every [`Self::sync_every`].
    pub pubsub_topic: Option<String>,
    /// The subscription to that topic.
    pub pubsub_subscription: Option<String>,
    /// The address of the Pub/Sub API; also `PUBSUB_API_URL`.
    pub pubsub_api_url: String,
    /// The IMAP server; also `IMAP_HOST`.
    pub imap_host: Option<String>,
    /// The port of the IMAP server.
    pub imap_port: u16,
    /// The encryption of the connection to the IMAP server.
    pub imap_encryption: Encryption,
    /// The SMTP server; also `SMTP_HOST`.
    pub smtp_host: Option<String>,
    /// The port of the SMTP server.
    pub smtp_port: u16,
    /// The encryption of the connection to the SMTP server.
    pub smtp_encryption: Encryption,
    /// The file with certificates (PEM) of authorities that the IMAP and the SMTP server's certificates may come from, in
    /// addition to those that the machine trusts.
    pub ca_file: Option<PathBuf>,
    /// The name of the user at both servers. Left out: [`Self::address`].
    pub user: Option<String>,
    /// The SQLite file with similar mails and contacts. Left out: `mail-context.sqlite` beside the store. Not used if
    /// `DATABASE_URL` is set.
    pub context_path: Option<PathBuf>,
    /// The address of HubSpot; also `HUBSPOT_API_URL`.
    pub hubspot_api_url: String,
    /// `GOOGLE_CLIENT_ID`.
    #[serde(skip)]
    pub google_client_id: Option<SecretString>,
    /// `GOOGLE_CLIENT_SECRET`.
    #[serde(skip)]
    pub google_client_secret: Option<SecretString>,
    /// `GOOGLE_REFRESH_TOKEN`.
    #[serde(skip)]
    pub google_refresh_token: Option<SecretString>,
    /// `IMAP_PASSWORD`: the password for both servers.
    #[serde(skip)]
    pub imap_password: Option<SecretString>,
    /// `DATABASE_URL`: the PostgreSQL server with similar mails and contacts, instead of the file.
    #[serde(skip)]
    pub database_url: Option<SecretString>,
    /// `HUBSPOT_TOKEN`: looks contacts up in HubSpot instead of the store.
    #[serde(skip)]
    pub hubspot_token: Option<SecretString>,
}

/// The kind of mail account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MailProvider {
    /// Gmail, through its API.
    Gmail,
    /// Any server that speaks IMAP and SMTP.
    Imap,
}

/// The encryption of a connection to a mail server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Encryption {
    /// TLS from the first byte.
    Tls,
    /// TLS after a command, without which nothing else is sent.
    Starttls,
    /// None, which is possible for servers on this machine only.
    None,
}

impl Email {
    /// Returns the kind of mail account. If it is not set, it is Gmail if there are credentials of Google, else IMAP if
    /// its server is set, else none.
    pub fn provider(&self) -> Option<MailProvider> {
        let google = self.google_refresh_token.is_some() || self.service_account.is_some();
        let inferred = match (google, &self.imap_host) {
            (true, _) => Some(MailProvider::Gmail),
            (false, Some(_)) => Some(MailProvider::Imap),
            (false, None) => None,
        };
        self.provider.or(inferred)
    }

    /// Returns the threshold of a class: its own, or the general one.
    pub fn threshold_of(&self, class: &str) -> f64 {
        self.thresholds.get(class).copied().unwrap_or(self.threshold)
    }

    /// Returns the file with similar mails and contacts; `store` is the file of the bot's store.
    pub fn context_file(&self, store: &Path) -> PathBuf {
        self.context_path.clone().unwrap_or_else(|| store.with_file_name(CONTEXT_FILE))
    }

    /// Describes what is missing for the account to be read and answered, if any of it is set. Secrets are included, so
    /// this is not a check of the values alone.
    pub fn missing(&self) -> Vec<Problem> {
        let mut found = Vec::new();
        let mut need = |is_set: bool, key: &str, what: &str| {
            if !is_set {
                found.push(Problem { key: key.to_owned(), what: what.to_owned() });
            }
        };
        let channel = self.channel.is_some();
        let Some(provider) = self.provider() else {
            let what = "it is set, but no mail account is; set GOOGLE_CLIENT_ID, GOOGLE_CLIENT_SECRET and \
                        GOOGLE_REFRESH_TOKEN for Gmail, or email.imap_host";
            need(!channel, "email.channel", what);
            return found;
        };
        need(
            channel,
            "email.channel",
            "a mail account is set, but no channel for its email; expected a channel ID (C…)",
        );
        match provider {
            MailProvider::Gmail if self.service_account.is_some() => {
                need(self.address.is_some(), "email.address", "a service account needs the address it acts for");
                let both = self.google_refresh_token.is_some();
                need(!both, "email.service_account", "GOOGLE_REFRESH_TOKEN is set as well; expected one of them");
            }
            MailProvider::Gmail => {
                let secrets = [
                    ("GOOGLE_CLIENT_ID", &self.google_client_id),
                    ("GOOGLE_CLIENT_SECRET", &self.google_client_secret),
                    ("GOOGLE_REFRESH_TOKEN", &self.google_refresh_token),
                ];
                for (name, secret) in secrets {
                    need(secret.is_some(), name, "it is not set; the mail account is Gmail");
                }
            }
            MailProvider::Imap => {
                need(self.imap_host.is_some(), "email.imap_host", "it is not set; the mail account is IMAP");
                need(self.smtp_host.is_some(), "email.smtp_host", "it is not set; answers are sent by SMTP");
                need(self.address.is_some(), "email.address", "it is not set; answers need a sender");
                need(self.imap_password.is_some(), "IMAP_PASSWORD", "it is not set; the mail account is IMAP");
            }
        }
        found
    }
}

/// Returns all problems with the values.
pub(super) fn problems(settings: &Email) -> Vec<Problem> {
    let mut found = Vec::new();
    let mut wrong = |key: &str, what: String| found.push(Problem { key: format!("email.{key}"), what });
    let addresses = [
        ("gmail_api_url", &settings.gmail_api_url),
        ("gmail_web_url", &settings.gmail_web_url),
        ("calendar_api_url", &settings.calendar_api_url),
        ("google_token_url", &settings.google_token_url),
        ("pubsub_api_url", &settings.pubsub_api_url),
        ("hubspot_api_url", &settings.hubspot_api_url),
    ];
    for (key, url) in addresses {
        if let Some(what) = wrong_address(url) {
            wrong(key, what);
        }
    }
    if let Some(channel) = settings.channel.as_deref().filter(|channel| !is_channel(channel)) {
        wrong("channel", format!("found `{channel}`; expected a channel ID (C…), not a name"));
    }
    let own = settings.address.iter().map(|address| ("address", address));
    for (key, address) in own.chain(settings.aliases.iter().map(|alias| ("aliases", alias))) {
        if !is_mail_address(address) {
            wrong(key, format!("found `{address}`; expected an address such as support@example.com"));
        }
    }
    for (key, time, least, most) in
        [("sync_every", settings.sync_every, 1, 24 * 3600), ("timeout", settings.timeout, 1, 120)]
    {
        if let Some(what) = between(time, least, most) {
            wrong(key, what);
        }
    }
    let month = 30 * 24 * 3600;
    let expires_after = settings.expires_after.and_then(|time| between(time, 60, 12 * month));
    let is_reminded = !settings.remind_every.is_zero();
    let remind_every = is_reminded.then(|| between(settings.remind_every, 60, month)).flatten();
    for (key, what) in [("expires_after", expires_after), ("remind_every", remind_every)] {
        if let Some(what) = what {
            wrong(key, what);
        }
    }
    if let Some(what) = wrong_share(settings.threshold) {
        wrong("threshold", what);
    }
    for (class, threshold) in &settings.thresholds {
        let key = format!("thresholds.{class}");
        if class == COMPLAINT {
            wrong(&key, "complaints are never answered automatically; remove this".to_owned());
        } else if !CLASSES.contains(&class.as_str()) {
            let near =
                nearest(class, CLASSES.into_iter()).map(|near| format!("did you mean {near}? ")).unwrap_or_default();
            wrong(&key, format!("there is no such class; {near}the classes are {}", CLASSES.join(", ")));
        } else if let Some(what) = wrong_share(*threshold) {
            wrong(&key, what);
        }
    }
    for (key, number) in
        [("answers_a_day", settings.answers_a_day), ("answers_to_one_address", settings.answers_to_one_address)]
    {
        if number > 1000 {
            wrong(key, format!("found {number}; expected 0 to 1000"));
        }
    }
    // Looking up a time zone takes milliseconds the first time: the names of all of them are read. UTC is always known.
    if settings.time_zone != "UTC" && TimeZone::get(&settings.time_zone).is_err() {
        let right = "expected a name such as Europe/Berlin, or UTC; the machine needs the package tzdata";
        wrong("time_zone", format!("found `{}`; {right}", settings.time_zone));
    }
    if let Some(time) = settings.digest.as_deref().filter(|time| Time::strptime("%H:%M", time).is_err()) {
        wrong("digest", format!("found `{time}`; expected a time such as 08:30"));
    }
    if settings.pubsub_topic.is_some() != settings.pubsub_subscription.is_some() {
        let what = "pubsub_topic and pubsub_subscription belong together; expected both, or neither";
        wrong("pubsub_topic", what.to_owned());
    }
    let files = [
        ("service_account", &settings.service_account),
        ("context_path", &settings.context_path),
        ("ca_file", &settings.ca_file),
    ];
    for (key, path) in files {
        if path.as_ref().is_some_and(|path| path.as_os_str().is_empty()) {
            wrong(key, "found nothing; expected a file".to_owned());
        }
    }
    for (key, host) in [("imap_host", &settings.imap_host), ("smtp_host", &settings.smtp_host)] {
        if let Some(host) = host.as_deref().filter(|host| host.is_empty() || host.contains(['/', ':', '@', ' '])) {
            wrong(key, format!("found `{host}`; expected the name of a host, such as mail.example.com"));
        }
    }
    found
}

/// Describes the problem with a share that is not between 0 and 1.
fn wrong_share(share: f64) -> Option<String> {
    (!(0.0..=1.0).contains(&share)).then(|| format!("found {share}; expected 0 to 1"))
}

fn is_channel(id: &str) -> bool {
    id.len() > 1 && id.starts_with(['C', 'G']) && id.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit())
}

fn is_mail_address(text: &str) -> bool {
    text.split_once('@').is_some_and(|(user, host)| !user.is_empty() && !host.is_empty() && !host.contains('@'))
        && !text.contains(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | ','))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::{Additions, Config};

    fn read(settings: &[(&str, &str)]) -> (Email, Vec<String>) {
        let named = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let environment: HashMap<_, _> = settings.iter().map(named).collect();
        let (config, problems) = Config::read(None, &environment, &Additions::default());
        (config.unwrap().email, problems.0.iter().map(ToString::to_string).collect())
    }

    fn missing(settings: &[(&str, &str)]) -> Vec<String> {
        let (email, problems) = read(settings);
        assert_eq!(problems, Vec::<String>::new());
        email.missing().iter().map(|problem| problem.key.clone()).collect()
    }

    #[test]
    fn without_settings_no_mail_is_read_and_nothing_is_sent_by_itself() {
        let (email, problems) = read(&[]);
        assert_eq!(problems, Vec::<String>::new());
        assert_eq!((email.provider(), email.automatic, email.missing()), (None, false, Vec::new()));
        assert_eq!((email.threshold_of("inquiry"), email.answers_a_day), (0.8, 50));
        assert_eq!(email.context_file(Path::new("/data/bot.sqlite")), Path::new("/data/mail-context.sqlite"));
    }

    #[test]
    fn the_credentials_decide_on_the_account() {
        let google =
            [("GOOGLE_CLIENT_ID", "id"), ("GOOGLE_CLIENT_SECRET", "secret"), ("GOOGLE_REFRESH_TOKEN", "token")];
        assert_eq!(read(&google).0.provider(), Some(MailProvider::Gmail));
        assert_eq!(read(&[("IMAP_HOST", "mail.example.com")]).0.provider(), Some(MailProvider::Imap));
        let both = [&google[..], &[("COUNTERSIGN__EMAIL__PROVIDER", "imap")]].concat();
        assert_eq!(read(&both).0.provider(), Some(MailProvider::Imap));
    }

    #[test]
    fn half_an_account_is_told() {
        assert_eq!(missing(&[("COUNTERSIGN__EMAIL__CHANNEL", "C1")]), ["email.channel"]);
        assert_eq!(
            missing(&[("GOOGLE_REFRESH_TOKEN", "t")]),
            ["email.channel", "GOOGLE_CLIENT_ID", "GOOGLE_CLIENT_SECRET"]
        );
        let imap = [("COUNTERSIGN__EMAIL__CHANNEL", "C1"), ("IMAP_HOST", "mail.example.com")];
        assert_eq!(missing(&imap), ["email.smtp_host", "email.address", "IMAP_PASSWORD"]);
        let account = [
            ("COUNTERSIGN__EMAIL__CHANNEL", "C1"),
            ("GOOGLE_SERVICE_ACCOUNT", "key.json"),
            ("GOOGLE_REFRESH_TOKEN", "t"),
        ];
        assert_eq!(missing(&account), ["email.address", "email.service_account"]);
    }

    #[test]
    fn wrong_values_are_told_with_what_would_be_right() {
        let every = [
            ("COUNTERSIGN__EMAIL__CHANNEL", "#support", "email.channel", "a channel ID"),
            ("COUNTERSIGN__EMAIL__ADDRESS", "Support <s@example.com>", "email.address", "support@example.com"),
            ("COUNTERSIGN__EMAIL__ALIASES", "a@example.com, b", "email.aliases", "found `b`"),
            ("COUNTERSIGN__EMAIL__SYNC_EVERY", "0s", "email.sync_every", "between 1s and 1day"),
            ("COUNTERSIGN__EMAIL__THRESHOLD", "1.1", "email.threshold", "0 to 1"),
            ("COUNTERSIGN__EMAIL__THRESHOLDS__INQUIRY", "-0.1", "email.thresholds.inquiry", "0 to 1"),
            ("COUNTERSIGN__EMAIL__THRESHOLDS__COMPLAINT", "0.9", "email.thresholds.complaint", "never answered"),
            ("COUNTERSIGN__EMAIL__THRESHOLDS__INQURY", "0.9", "email.thresholds.inqury", "did you mean inquiry?"),
            ("COUNTERSIGN__EMAIL__ANSWERS_A_DAY", "1001", "email.answers_a_day", "0 to 1000"),
            ("COUNTERSIGN__EMAIL__TIME_ZONE", "Berlin", "email.time_zone", "Europe/Berlin"),
            ("COUNTERSIGN__EMAIL__DIGEST", "8 o'clock", "email.digest", "08:30"),
            ("COUNTERSIGN__EMAIL__PUBSUB_TOPIC", "projects/p/topics/t", "email.pubsub_topic", "both, or neither"),
            ("COUNTERSIGN__EMAIL__PROVIDER", "outlook", "email.provider", "outlook"),
            ("GMAIL_API_URL", "gmail.example.com", "email.gmail_api_url", "http://"),
            ("IMAP_HOST", "imaps://mail.example.com", "email.imap_host", "the name of a host"),
            ("DATABASE_URL", "mysql://hidden", "DATABASE_URL", "postgresql://"),
        ];
        for (name, value, key, right) in every {
            let told = read(&[(name, value)]).1.join("\n");
            assert!(told.starts_with(&format!("{key}: ")) && told.contains(right), "{name}={value}: {told}");
            assert!(!told.contains("hidden"), "{told}");
        }
    }

    #[test]
    fn what_is_right_is_read() {
        let every = [
            ("COUNTERSIGN__EMAIL__THRESHOLDS__INQUIRY", "0.95"),
            ("COUNTERSIGN__EMAIL__AUTOMATIC", "true"),
            ("COUNTERSIGN__EMAIL__TIME_ZONE", "UTC"),
            ("COUNTERSIGN__EMAIL__DIGEST", "08:30"),
            ("COUNTERSIGN__EMAIL__ALIASES", "a@example.com, b@example.com"),
            ("DATABASE_URL", "postgresql://user:secret@db.example.com/countersign"),
            ("IMAP_PASSWORD", "four words are fine"),
        ];
        let (email, problems) = read(&every);
        assert_eq!(problems, Vec::<String>::new());
        assert_eq!((email.threshold_of("inquiry"), email.threshold_of("other")), (0.95, 0.8));
        assert!(email.automatic && email.database_url.is_some() && email.imap_password.is_some());
        assert_eq!(email.aliases, ["a@example.com", "b@example.com"]);
        assert!(!format!("{email:?}").contains("secret@"));
    }
}
