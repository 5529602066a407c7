//! What people see of mail outside of its threads: `/mail`, the Home tab, figures. The mails are those of a list, so that
//! nothing here depends on the graph that answers them.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use crate::support::bot::{Setup, TestBot};
use async_trait::async_trait;
use countersign::{
    clock::{Clock as _, ManualClock, Timestamp},
    ids::{ChannelId, UserId},
    team_inbox::{
        TeamInbox,
        mail_list::{Entry, MailList, MailListError, MailStatus, Overview, Pause},
    },
};

/// The first private channel of a workspace.
const PRIVATE: &str = "G00000001";

/// The mails in #experiments.
#[derive(Debug)]
struct Mails {
    channel: ChannelId,
    entries: Vec<Entry>,
    overview: Mutex<Overview>,
    clock: ManualClock,
}

#[async_trait]
impl MailList for Mails {
    fn channel(&self) -> &ChannelId {
        &self.channel
    }

    async fn overview(&self) -> Result<Overview, MailListError> {
        Ok(self.overview.lock().unwrap().clone())
    }

    async fn waiting(&self, limit: usize) -> Result<Vec<Entry>, MailListError> {
        Ok(self.entries.iter().filter(|entry| entry.status.waits()).take(limit).cloned().collect())
    }

    async fn find(&self, words: &str, limit: usize) -> Result<Vec<Entry>, MailListError> {
        let fits = |entry: &&Entry| entry.subject.to_lowercase().contains(&words.to_lowercase());
        Ok(self.entries.iter().filter(fits).take(limit).cloned().collect())
    }

    async fn since(&self, _: Timestamp, limit: usize) -> Result<Vec<Entry>, MailListError> {
        Ok(self.entries.iter().take(limit).cloned().collect())
    }

    async fn sync_soon(&self) -> Result<(), MailListError> {
        self.overview.lock().unwrap().last_sync = Some(self.clock.now());
        Ok(())
    }

    async fn set_paused(&self, is_paused: bool, by: &UserId) -> Result<bool, MailListError> {
        let mut overview = self.overview.lock().unwrap();
        let changed = overview.paused.is_some() != is_paused;
        overview.paused = is_paused.then(|| Pause { by: by.clone(), at: Some(self.clock.now()) });
        Ok(changed)
    }
}

fn mails(channel: &str, clock: &ManualClock) -> Mails {
    let received_at = clock.now();
    let waiting = Entry {
        id: "m1".to_owned(),
        sender_name: Some("Ada".to_owned()),
        sender: Some("ada@customer.example".to_owned()),
        subject: "Prices <https://evil.example|here> for *20* seats".to_owned(),
        class: Some("inquiry".to_owned()),
        confidence: Some(0.75),
        status: MailStatus::NeedsReview,
        why: Some("The class is not certain enough".to_owned()),
        received_at,
        settled_at: None,
        is_automatic: false,
        is_spam: false,
        is_put_away: false,
        thread: None,
        link: Some("https://learning-lab.slack.com/archives/C1/p1".to_owned()),
    };
    let answered = Entry {
        id: "m2".to_owned(),
        subject: "Thank you".to_owned(),
        status: MailStatus::Sent,
        settled_at: Some(received_at + Duration::from_secs(600)),
        ..waiting.clone()
    };
    let overview = Overview {
        account: "team@ours.example".to_owned(),
        last_sync: None,
        fault: None,
        paused: None,
        waiting: 1,
        oldest_waiting: Some(received_at),
        in_progress: 0,
        is_automatic: false,
        automatic_today: 0,
        automatic_a_day: 50,
    };
    Mails {
        channel: channel.into(),
        entries: vec![waiting, answered],
        overview: Mutex::new(overview),
        clock: clock.clone(),
    }
}

/// A bot for which these mails are those of the team, five hours after they arrived.
async fn bot() -> TestBot {
    bot_with("C1").await
}

/// The same with the mails in this channel.
async fn bot_with(channel: &str) -> TestBot {
    let clock = ManualClock::default();
    let book = Arc::new(mails(channel, &clock));
    clock.advance(Duration::from_secs(5 * 3600));
    let inbox = Arc::new(TeamInbox::new(book, Arc::new(clock.clone())));
    TestBot::with(Setup { more: vec![inbox], clock, ..Setup::default() }).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mail_command_shows_what_waits_where_mails_are_shown() {
    let bot = bot().await;
    let ana = bot.user("ana");
    let waiting = ana.types("/mail waiting").await;
    assert!(waiting.starts_with("1 email is waiting for review:"), "{waiting}");
    assert!(
        waiting.contains("*Ada*: Prices &lt;https://evil.example|here&gt; for"),
        "a subject is no markup: {waiting}"
    );
    assert!(waiting.contains("· inquiry · 5 h ago · ‹open›"), "{waiting}");
    let shown = ana.types("/mail show prices").await;
    assert!(shown.contains("inquiry, medium confidence") && shown.contains("not certain enough"), "{shown}");
    let elsewhere = ana.types_in("general", "/mail waiting").await;
    assert_eq!(elsewhere, "I only show email in <#C1>. Ask me there.");
    let status = ana.types_in("general", "/mail status").await;
    assert!(status.contains("Email is running.") && status.contains("1 email, the oldest for 5 h"), "{status}");
    assert!(!status.contains("Ada"), "{status}");
    let help = bot.user("bo").types("/mail").await;
    assert!(help.contains("`/mail show &lt;sender, subject or ID&gt;`") && help.contains("`/mail pause`"), "{help}");
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_is_paused_and_goes_on() {
    let bot = bot().await;
    let (ana, bo) = (bot.user("ana"), bot.user("bo"));
    assert!(ana.types("/mail pause").await.starts_with("Paused."));
    let status = bo.types("/mail status").await;
    assert!(status.contains("Email is paused.") && status.contains("paused it just now"), "{status}");
    assert!(bo.types("/mail sync").await.contains("nothing is fetched"));
    assert!(bo.types("/mail resume").await.starts_with("Resumed."));
    assert!(bo.types("/mail status").await.contains("Email is running."));
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_home_tab_names_senders_to_members_of_the_channel_only() {
    let bot = bot().await;
    let home = bot.user("ana").opens_home().await;
    assert!(home.contains("*Ada*: ‹Prices &lt;https") && home.contains("· waiting 5 h"), "{home}");
    bot.finish().await;

    let bot = bot_with(PRIVATE).await;
    assert_eq!(bot.slack.founds_private_channel("ana", "mail", &[]).as_str(), PRIVATE);
    let home = bot.user("cy").opens_home().await;
    assert!(
        home.contains("Email waiting for review") && home.contains("1 email in <#G00000001>, the oldest for 5 h."),
        "{home}"
    );
    assert!(home.contains("inquiry, medium confidence · waiting 5 h · ‹open the thread›"), "{home}");
    assert!(!home.contains("Ada") && !home.contains("Prices"), "{home}");
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn figures_about_mail_are_answered_with_a_picture() {
    let bot = bot().await;
    let mut thread = bot.user("ana").says("how fast do we answer mail?").await;
    let said = thread.heard();
    assert!(said.contains("1 reply went out, within 10 min"), "{said}");
    let files = bot.slack.look(|world| world.files.values().map(|file| file.name.clone()).collect::<Vec<_>>());
    assert!(files.len() == 1 && files[0].starts_with("answer-times-") && files[0].ends_with(".png"), "{files:?}");
    thread.says("ana", "which mails are waiting?").await;
    let said = thread.heard();
    assert!(said.contains("*Ada*"), "{said}");
    thread.says("ana", "show the email about prices").await;
    let said = thread.heard();
    assert!(said.contains("waiting for review") && !said.contains("No experiment"), "{said}");
    drop(thread);
    bot.finish().await;
}
