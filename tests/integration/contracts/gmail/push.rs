//! Notifications of new mails.

use std::time::Duration;

use countersign::{
    clock::Clock as _,
    mail::{Address, GmailAccount, MailAccount as _},
};
use countersign_sandbox::{faults::Fault, google::PERSON};

use super::{World, by_refresh_token, settings, with_push};

/// Longer than any test takes, so that only a notification ends a wait.
const LONG: Duration = Duration::from_secs(600);
/// The path of a request for notifications.
const PULL: &str = "mail:pull";

fn notified(world: &World) -> GmailAccount {
    let settings = settings(&world.gmail, by_refresh_token(&world.google, &world.clock), &world.clock);
    GmailAccount::new(with_push(&world.gmail, settings), Address::parse(PERSON).unwrap()).unwrap()
}

#[tokio::test]
async fn a_new_mail_ends_the_wait() {
    let world = World::start().await;
    let account = notified(&world);
    account.wait_for_news(LONG).await; // Gmail announces at once that it watches
    let (waited, ()) = tokio::join!(account.wait_for_news(LONG), async {
        while world.requests(PULL) < 2 {
            tokio::task::yield_now().await;
        }
        world.receives("Order 7");
    });
    assert_eq!(waited, ());
    assert_eq!(world.gmail.unacknowledged(), 0);
    assert_eq!(world.requests("POST /gmail/v1/users/me/watch"), 1);
}

#[tokio::test]
async fn the_watch_is_renewed_each_day() {
    let world = World::start().await;
    let account = notified(&world);
    account.wait_for_news(LONG).await;
    let first = world.gmail.watched_until().unwrap();
    world.clock.advance(Duration::from_secs(25 * 3600));
    world.receives("Order 7");
    account.wait_for_news(LONG).await;
    assert_eq!(world.requests("POST /gmail/v1/users/me/watch"), 2);
    assert!(world.gmail.watched_until().unwrap() > first);
    assert!(world.gmail.watched_until().unwrap() > world.clock.now());
}

#[tokio::test]
async fn the_check_says_whether_notifications_work() {
    let world = World::start().await;
    let line = notified(&world).check().await.unwrap();
    assert!(line.ends_with("notified by Pub/Sub"), "{line}");
    let settings = settings(&world.gmail, by_refresh_token(&world.google, &world.clock), &world.clock);
    let mut settings = with_push(&world.gmail, settings);
    settings.push.as_mut().unwrap().topic = "projects/sandbox/topics/other".to_owned();
    let other = GmailAccount::new(settings, Address::parse(PERSON).unwrap()).unwrap();
    let error = other.check().await.unwrap_err().to_string();
    assert!(error.contains("projects/sandbox/topics/other"), "{error}");
}

#[tokio::test]
async fn a_failure_of_notifications_only_lasts_for_one_wait() {
    let world = World::start().await;
    let account = notified(&world);
    (0..3).for_each(|_| world.gmail.faults().next_on(PULL, Fault::Status(500)));
    account.wait_for_news(Duration::from_millis(1)).await;
    world.gmail.faults().clear();
    world.receives("Order 7");
    account.wait_for_news(LONG).await;
}
