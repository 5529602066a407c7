//! Dates and times as people write them, in the time zone of the person who writes.

use crate::support::bot::TestBot;

/// Requests, each with what the answer has to contain.
async fn check(zone: &str, rows: &[(&str, &[&str])]) {
    let bot = TestBot::start().await;
    bot.slack.arrange(|world| world.users.iter_mut().for_each(|user| zone.clone_into(&mut user.tz)));
    for (said, expected) in rows {
        let mut thread = bot.user("ana").says(said).await;
        let heard = thread.heard();
        for part in *expected {
            assert!(heard.contains(part), "{said}\nlacks “{part}” in:\n{heard}");
        }
        thread.says("ana", "never mind").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_is_meant_in_the_zone_of_the_person_who_asks() {
    check(
        "Europe/Berlin",
        &[
            (
                "start Math Hints on 3 December 2098 at 09:30",
                &["*Schedule “Math Hints”?*", "*Starts*  2098-12-03 08:30 UTC"],
            ),
            ("schedule Math Hints for July 1, 2098 8am", &["*Starts*  2098-07-01 06:00 UTC"]),
            ("start Math Hints on 2098-12-03 at 9am UTC", &["*Starts*  2098-12-03 09:00 UTC"]),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_can_bring_its_end() {
    check(
        "UTC",
        &[
            (
                "Run Math Hints from Dec 1, 2098 to Dec 18, 2098",
                &["*Schedule “Math Hints”?*", "*Starts*  2098-12-01 00:00 UTC", "*Ends*  2098-12-18 23:59 UTC"],
            ),
            ("end Lesson Video Hints on Dec 1, 2098", &["2098-12-01 23:59 UTC"]),
            ("please pause class hint rollout on friday evening", &["*Ends*"]),
            ("start Math Hints after Thanksgiving", &["*Schedule “Math Hints”?*"]),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn both_dates_are_set_by_one_card() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").asks("Run Math Hints from Dec 1, 2098 to Dec 18, 2098").await;
    thread.clicked("bo", "Schedule experiment").await;
    let made = bot.upgrade.experiment("Math Hints").unwrap();
    assert_eq!(made["state"], "scheduled");
    assert_eq!(made["startOn"], "2098-12-01T00:00:00.000Z");
    assert_eq!(made["endOn"], "2098-12-18T23:59:00.000Z");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_date_with_two_meanings_is_asked_about() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").says("start Math Hints on 12/03/2098").await;
    let heard = thread.heard();
    assert!(heard.contains("Is 12/03/2098 December 3, 2098 or March 12, 2098?"), "{heard}");
    thread.clicks("ana", "start Math Hints on March 12, 2098").await;
    let heard = thread.heard();
    assert!(heard.contains("*Starts*  2098-03-12 00:00 UTC"), "{heard}");
}

#[tokio::test(flavor = "multi_thread")]
async fn all_times_of_a_message_are_meant_in_one_zone() {
    for (said, start, end) in [
        (
            "start Math Hints on 15 March 2098 at 9:00, then end it on 30 April 2098 at 18:00",
            "2098-03-15 08:00 UTC",
            "2098-04-30 16:00 UTC",
        ),
        (
            "start Math Hints on 15 March 2098 at 9:00 ET, then end it on 30 April 2098 at 18:00",
            "2098-03-15 13:00 UTC",
            "2098-04-30 22:00 UTC",
        ),
    ] {
        let bot = TestBot::start().await;
        bot.slack.arrange(|world| world.users.iter_mut().for_each(|user| "Europe/Berlin".clone_into(&mut user.tz)));
        let mut thread = bot.user("ana").says(said).await;
        let heard = thread.heard();
        assert!(heard.contains(&format!("*Starts*  {start}")), "{heard}");
        thread.clicks("bo", "Schedule experiment").await;
        let heard = thread.heard();
        assert!(heard.contains(end), "{heard}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_keeps_the_times_of_the_person_who_began_it() {
    let bot = TestBot::start().await;
    bot.slack.arrange(|world| {
        for user in &mut world.users {
            (if user.name == "bo" { "America/New_York" } else { "Europe/Berlin" }).clone_into(&mut user.tz);
        }
    });
    let said = "create experiment Foo with conditions control, variant at SelectSection/area_model, starting 15 March 2098 9:00";
    let mut thread = bot.user("ana").asks(said).await;
    thread.says("bo", "@countersign assign-prog").await;
    let heard = thread.heard();
    assert!(heard.contains("2098-03-15 08:00 UTC") || heard.contains("2098-03-15 09:00 CET"), "{heard}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_that_the_clocks_skip_or_show_twice_is_asked_about() {
    let bot = TestBot::start().await;
    bot.slack.arrange(|world| world.users.iter_mut().for_each(|user| "Europe/Berlin".clone_into(&mut user.tz)));
    let mut thread = bot.user("ana").says("start Math Hints on 30 March 2098 at 2:30").await;
    let heard = thread.heard();
    assert!(heard.contains("The clocks in Europe/Berlin skip 2:30 on March 30, 2098."), "{heard}");
    thread.clicks("ana", "2098-03-30 3:30 UTC+2").await;
    let heard = thread.heard();
    assert!(heard.contains("*Schedule “Math Hints”?*") && heard.contains("2098-03-30 01:30 UTC"), "{heard}");
    thread.clicks("ana", "Withdraw").await;
    thread.skip();
    thread.says("ana", "start Math Hints on 26 October 2098 at 2:30").await;
    let heard = thread.heard();
    assert!(heard.contains("show 2:30 twice on October 26, 2098: first in CEST, then in CET."), "{heard}");
    thread.clicks("ana", "2098-10-26 2:30 UTC+1").await;
    let heard = thread.heard();
    assert!(heard.contains("2098-10-26 01:30 UTC"), "{heard}");
}
