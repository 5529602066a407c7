//! Many mails of every kind while Gmail fails in every way: none is lost, and none is answered twice.
//!
//! `cargo bench --bench load -- --mail 10000` does the same on a larger scale, with figures.

pub(crate) mod made_up;
pub(crate) mod verdict;

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
    time::Duration,
};

use countersign::{
    clock::ManualClock,
    config::{Config, MailProvider},
    ids::MessageTs,
};
use countersign_sandbox::{
    faults::Fault,
    google::{CLIENT_ID, CLIENT_SECRET, PERSON, REFRESH_TOKEN},
    model::SandboxModel,
    slack::world::message::Message,
};

use self::{
    made_up::{Mailbox, Way, answers, letter, number_in},
    verdict::{End, Seen, broken},
};
use crate::{
    dialogues::scripted::asking,
    support::{
        bot::{Setup, TestBot, in_time},
        thread::rejects_without_reason,
    },
};

/// The channel of mails.
const CHANNEL: (&str, &str) = ("C1", "experiments");
/// The number of mails, and of those that arrive together.
const MAILS: usize = 200;
const WAVE: usize = 50;
/// The seed of the faults.
const SEED: u64 = 7;
/// The rate of each fault of sending, in thousandths.
const PER_MILLE: u16 = 25;
/// How long all of it may take before the test gives up.
const BOUND: Duration = Duration::from_secs(240);

/// The mails as people see them, and what was pressed.
#[derive(Default)]
struct Watched {
    seen: BTreeMap<usize, Seen>,
    /// The thread of each mail.
    roots: BTreeMap<MessageTs, usize>,
    /// What was pressed, and how long the thread was then: who is told to try again later does.
    pressed: HashSet<(MessageTs, &'static str, usize)>,
}

impl Watched {
    /// Looks at every thread whose mail has no end yet, and presses as the plan says.
    async fn looks(&mut self, bot: &TestBot) {
        let roots: Vec<(MessageTs, String)> = bot
            .slack
            .look(|world| world.roots(&CHANNEL.0.into()).map(|root| (root.ts.clone(), root.words())).collect());
        for (root, words) in roots {
            let Some(number) = number_in(&words) else { continue };
            if self.roots.insert(root, number).is_none() {
                self.seen.entry(number).or_default().threads += 1;
            }
        }
        for (root, number) in self.roots.clone() {
            if self.seen[&number].end.is_none() {
                let end = self.look(bot, &root, number).await;
                self.seen.entry(number).or_default().end = end;
            }
        }
    }

    async fn look(&mut self, bot: &TestBot, root: &MessageTs, number: usize) -> Option<End> {
        let messages = bot.slack.thread(CHANNEL.1, root);
        let replies = messages.iter().filter(|message| message.ts != *root && !message.deleted);
        let is_told_to_wait = messages.last().is_some_and(|last| last.words().contains("Try again in"));
        let length = if is_told_to_wait { messages.len() } else { 0 };
        if let Some(end) = replies.clone().find_map(|message| End::told_by(&message.words())) {
            return Some(end);
        }
        for message in replies {
            let label = match Way::of(number) {
                _ if has(message, "Try again") => "Try again",
                _ if !has(message, "Send") => continue,
                Way::Sends => "Send",
                Way::Rejects => "Reject…",
                Way::Leaves => return Some(End::Waits),
            };
            if self.pressed.insert((message.ts.clone(), label, length)) {
                bot.slack.clicks("bo", CHANNEL.1, &message.ts, label).await.unwrap();
                // A window that takes longer than Slack allows does not open, and the person presses again.
                let is_there =
                    || bot.slack.thread(CHANNEL.1, root).iter().any(|card| card.ts == message.ts && has(card, label));
                while label == "Reject…" && !rejects_in_time(bot).await && is_there() {
                    bot.slack.clicks("bo", CHANNEL.1, &message.ts, label).await.unwrap();
                }
            }
        }
        None
    }

    fn arrived(&self) -> usize {
        self.seen.len()
    }

    fn ended(&self) -> usize {
        self.seen.values().filter(|seen| seen.end.is_some()).count()
    }

    /// The threads of the mails that have no end yet, in words.
    fn without_an_end(&self, bot: &TestBot) -> String {
        let open = self.roots.iter().filter(|(_, number)| self.seen[number].end.is_none());
        let threads = open.map(|(root, number)| {
            let messages = bot.slack.thread(CHANNEL.1, root);
            let words: Vec<String> =
                messages.iter().map(|message| format!("{}\n{:?}", message.words(), message.buttons())).collect();
            format!("mail {number} has no end:\n{}", words.join("\n---\n"))
        });
        threads.collect::<Vec<_>>().join("\n\n")
    }
}

/// Rejects in the window that asks for a reason, if it opens within the time of its trigger.
async fn rejects_in_time(bot: &TestBot) -> bool {
    const OPENS_WITHIN: Duration = Duration::from_secs(3);
    let deadline = tokio::time::Instant::now() + OPENS_WITHIN;
    while tokio::time::Instant::now() < deadline {
        if rejects_without_reason(&bot.slack, "bo").await {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    false
}

fn has(message: &Message, label: &str) -> bool {
    message.buttons().iter().any(|button| button.label == label)
}

fn settings(mailbox: &Mailbox, config: &mut Config) {
    config.workers.lease = Duration::from_secs(20);
    let variables: BTreeMap<_, _> = mailbox.variables(CHANNEL.0).into_iter().collect();
    let email = &mut config.email;
    (email.provider, email.channel) = (Some(MailProvider::Gmail), Some(CHANNEL.0.to_owned()));
    (email.address, email.sync_every) = (Some(PERSON.to_owned()), Duration::from_secs(1));
    (email.timeout, email.automatic, email.answers_a_day) = (Duration::from_secs(2), true, 1000);
    email.gmail_api_url.clone_from(&variables["GMAIL_API_URL"]);
    email.google_token_url.clone_from(&variables["GOOGLE_TOKEN_URL"]);
    email.google_client_id = Some(CLIENT_ID.into());
    email.google_client_secret = Some(CLIENT_SECRET.into());
    email.google_refresh_token = Some(REFRESH_TOKEN.into());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_mails_under_faults_are_neither_lost_nor_answered_twice() {
    let clock = ManualClock::default();
    let mailbox = Arc::new(Mailbox::start(Arc::new(clock.clone())).await.unwrap());
    let model = SandboxModel::start(0).await.unwrap();
    model.answers_by(answers);
    let (asks, box_of_bot) = (asking(&model), mailbox.clone());
    let settings = Box::new(move |config: &mut Config| {
        asks(config);
        settings(&box_of_bot, config);
    });
    let bot = TestBot::with(Setup { settings, clock, ..Setup::default() }).await;
    mailbox.is_unreliable(SEED, PER_MILLE, 0);

    let mut watched = Watched::default();
    let deadline = tokio::time::Instant::now() + BOUND;
    for wave in 0..MAILS / WAVE {
        match wave {
            1 => mailbox.gmail.expires_history(),
            2 => mailbox.tokens().revoke(),
            _ => {}
        }
        for number in wave * WAVE..(wave + 1) * WAVE {
            mailbox.gmail.receives(&letter(number));
        }
        if wave == 2 {
            // What arrived is in no history that can still be asked for.
            mailbox.gmail.expires_history();
        }
        while watched.arrived() < (wave + 1) * WAVE {
            assert!(tokio::time::Instant::now() < deadline, "{} mails arrived", watched.arrived());
            watched.looks(&bot).await;
            bot.clock.advance(Duration::from_millis(50));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    while watched.ended() < MAILS {
        assert!(tokio::time::Instant::now() < deadline, "{}", watched.without_an_end(&bot));
        watched.looks(&bot).await;
        // Slowly, since what is being done has a time limit on this clock.
        bot.clock.advance(Duration::from_millis(100));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }

    let applied = mailbox.gmail.faults().applied();
    mailbox.gmail.faults().clear();
    // Labels are tried again after waits, and everything else is done.
    bot.sends_everything().await;
    let is_answered =
        |mail: &countersign_sandbox::gmail::StoredMail| mail.labels.iter().any(|label| label == "Countersign/answered");
    let answered = watched.seen.values().filter(|seen| seen.end == Some(End::Sent)).count();
    let labelled = || mailbox.gmail.mails().iter().filter(|mail| is_answered(mail)).count() == answered;
    in_time(&bot, "the labels of answered mails", labelled).await;
    assert_eq!(broken(MAILS, &watched.seen, &mailbox.gmail.sent()), Vec::<String>::new());
    assert_eq!(mailbox.gmail.drafts(), [], "those of replies that were certainly not sent are deleted");
    let kinds = [Fault::LostAnswer, Fault::TooMany(0), Fault::Status(500)];
    assert!(kinds.iter().all(|kind| applied.iter().any(|(fault, _)| fault == kind)), "{applied:?}");
    assert_eq!(model.violations(), Vec::<String>::new());
}
