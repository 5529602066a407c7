//! The tables: for each policy, who counts when, and what everybody is told.

use std::time::Duration;

use countersign::{
    config::{Config, ContextRule, Envelope},
    graph::store::{ActionKey, AuditKind},
};
use insta::{allow_duplicates, assert_snapshot};

use super::matrix::{Case, Shown, Table, enlist, table};
use crate::support::{
    bot::{TestBot, eventually},
    thread::Thread,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_press_in_the_home_tab_counts_for_who_is_named_at_that_moment() {
    let bot = TestBot::decided_by(&["S1"]).await;
    enlist(&bot);
    let thread = bot.user("ana").says("start Math Hints").await;
    for (name, has_button) in [("ana", false), ("bo", false), ("di", true), ("eve", true), ("fay", false)] {
        let home = bot.user(name).opens_home().await;
        assert_eq!(home.contains("[Start experiment]"), has_button, "{name}: {home}");
    }
    bot.slack.arrange(|world| world.groups[0].members.retain(|member| member.as_str() != "U5"));
    bot.clock.advance(Duration::from_secs(11));
    bot.user("eve").presses_at_home("Start experiment").await;
    eventually("an answer", || bot.user("eve").home().starts_with("You can't approve or reject this.")).await;
    bot.settled().await;
    assert!(bot.upgrade.effects().is_empty());
    bot.user("di").presses_at_home("Start experiment").await;
    eventually("an answer", || bot.user("di").home().contains("Approved by @di")).await;
    bot.settled().await;
    assert!(thread.messages().iter().any(|message| message.words().contains("Approved by <@U4>")));
    assert_eq!(bot.upgrade.effects().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_home_tab_follows_the_settings_of_the_day() {
    let mut bot = TestBot::decided_by(&["U2"]).await;
    bot.user("ana").says("start Math Hints").await;
    assert!(bot.user("bo").opens_home().await.contains("[Start experiment]"));
    bot.stop().await;
    bot.config.approvals.approvers = vec!["U3".to_owned()];
    bot.run().await;
    bot.user("bo").presses_at_home("Start experiment").await;
    let told = "You can't approve or reject this.\nWho can decide: @cy.";
    eventually("an answer", || bot.user("bo").home().starts_with(told)).await;
    let home = bot.user("bo").opens_home().await;
    assert!(!home.contains("[Start experiment]"), "{home}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_left_a_channel_no_longer_decides_for_it_at_home() {
    let bot = TestBot::start().await;
    bot.user("ana").says("start Math Hints").await;
    assert!(bot.user("bo").opens_home().await.contains("[Start experiment]"));
    bot.slack.arrange(|world| {
        let channel = world.channels.iter_mut().find(|channel| channel.id.as_str() == "C1").unwrap();
        channel.members.retain(|member| member.as_str() != "U2");
    });
    bot.clock.advance(Duration::from_secs(11));
    bot.user("bo").presses_at_home("Start experiment").await;
    let told = "You can't approve or reject this.\nWho can decide: anyone in <#C1>.";
    eventually("an answer", || bot.user("bo").home().starts_with(told)).await;
    bot.settled().await;
    assert!(bot.upgrade.effects().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_named_since_a_card_was_shown_finds_it_at_home() {
    let mut bot = TestBot::decided_by(&["U2"]).await;
    let root = bot.user("ana").says("start Math Hints").await.root.clone();
    assert!(!bot.user("cy").opens_home().await.contains("“Math Hints”"));
    bot.stop().await;
    bot.config.approvals.approvers = vec!["U3".to_owned()];
    bot.run().await;
    let thread = Thread::new(&bot, "experiments", root);
    assert!(!bot.user("bo").opens_home().await.contains("[Start experiment]"), "bo is named no more");
    let home = bot.user("cy").opens_home().await;
    assert!(home.contains("[Start experiment]") && home.contains("Asked by @ana · @cy can approve"), "{home}");
    let pending = bot.user("cy").types_in("general", "/countersign pending").await;
    assert!(pending.contains("*Start “Math Hints”*"), "{pending}");
    bot.user("cy").presses_at_home("Start experiment").await;
    eventually("an answer", || bot.user("cy").home().contains("Approved by @cy")).await;
    bot.settled().await;
    assert!(thread.messages().iter().any(|message| message.words().contains("Approved by <@U3>")));
    assert_eq!(bot.upgrade.effects().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn contexts_whose_approvers_have_nobody_in_common_are_named() {
    let bot = TestBot::with_settings(|config| {
        for (context, approver) in [("assign-prog", "U2"), ("livehint-ai", "U3")] {
            let rule = ContextRule { approvers: Some(vec![approver.to_owned()]), ..ContextRule::default() };
            config.approvals.contexts.insert(context.to_owned(), rule);
        }
    })
    .await;
    bot.upgrade.has("Pilot", "cancelled");
    let mut thread = bot.user("ana").says("archive all completed experiments").await;
    assert_snapshot!(thread.in_short(), @"
    *Archive 2 experiments?*
    *Chat Tone*  cancelled → *archived*
    *Pilot*  cancelled → *archived*
    *Enrolled*  24 users in total
    One decision covers all of them. I'll report the outcome of each.
    🔒 no one can approve this: the app's operator must list the same person in approvals.contexts.livehint-ai and approvals.contexts.assign-prog
    Asked by @ana · no one (the approvers of `livehint-ai` and `assign-prog` have no one in common) can approve · expires ‹time› · digest `‹id›`
    [Archive 2 experiments] [Reject…] [Withdraw] [Show all]
    ");
    assert_snapshot!(thread.private_answer("bo", "Archive 2 experiments").await, @"
    You can't approve or reject this.
    Who can decide: no one (the approvers of `livehint-ai` and `assign-prog` have no one in common).
    ");
    assert!(bot.upgrade.effects().is_empty());
}

/// What counted counts after a change of the settings as long as its giver may still approve; the next press follows the new ones.
async fn after_a_change_of(change: fn(&mut Config), presses: [&'static str; 2]) -> String {
    let mut bot = TestBot::with_settings(|config| config.approvals.needed = 2).await;
    enlist(&bot);
    let (root, ts, key) = {
        let table = Table { bot: &bot, rows: Vec::new() };
        let card = table.card("start Math Hints").await;
        assert!(table.press("bo", &card).await.1);
        (card.thread.root.clone(), card.ts, card.key)
    };
    bot.stop().await;
    change(&mut bot.config);
    bot.run().await;
    let mut table = Table { bot: &bot, rows: Vec::new() };
    let card = Shown { thread: Thread::new(&bot, "experiments", root), ts, key };
    for name in presses {
        let cell = table.press(name, &card).await;
        bot.settled().await; // the card is drawn anew with the new policy, too
        table.rows("restarted with another policy", vec![cell]);
    }
    let rows = table.rows;
    bot.settled().await;
    assert_eq!(bot.upgrade.effects().len(), 1);
    bot.finish().await;
    rows.join("\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_decide_is_changed_while_a_card_is_open() {
    let change = |config: &mut Config| config.approvals.approvers = vec!["U3".to_owned(), "U4".to_owned()];
    assert_snapshot!(after_a_change_of(change, ["cy", "di"]).await, @"
    restarted with another policy | cy | counts | 1 of 2: approved by ‹them›.
    restarted with another policy | di | counts | Approved by @cy and ‹them› · ‹time›
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_of_a_person_who_has_left_no_longer_counts() {
    let bot = TestBot::with_settings(|config| config.approvals.needed = 2).await;
    enlist(&bot);
    let mut table = Table { bot: &bot, rows: Vec::new() };
    let card = table.card("start Math Hints").await;
    assert!(table.press("bo", &card).await.1);
    bot.slack.arrange(|world| world.users.iter_mut().find(|user| user.name == "bo").unwrap().deleted = true);
    bot.clock.advance(Duration::from_secs(11));
    for name in ["cy", "di"] {
        let cell = table.press(name, &card).await;
        bot.settled().await;
        table.rows("bo has left", vec![cell]);
        let told = bot.upgrade.effects().len();
        assert_eq!(told, usize::from(name == "di"), "two people who are here have to approve");
    }
    let record = bot.store().action(ActionKey::ByApproval(&card.key)).await.unwrap().unwrap();
    assert_eq!(record.lapses.len(), 1);
    assert_eq!(record.card.notes.last().unwrap().words(), "@U2’s approval no longer counts: deactivated account.");
    let audit = bot.store().audit(&record.thread).await.unwrap();
    assert_eq!(audit.iter().filter(|entry| entry.event.kind == AuditKind::Lapsed).count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn fewer_are_needed_while_a_card_is_open() {
    let change = |config: &mut Config| config.approvals.needed = 1;
    assert_snapshot!(after_a_change_of(change, ["bo", "ana"]).await, @"
    restarted with another policy | bo | counts | Approved by ‹them› · ‹time›
    restarted with another policy | ana | does not | @bo approved this ‹while› ago; it is done.
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_answers_when_the_time_is_over_is_told_so_and_the_thread_goes_on() {
    // Nobody looks for what is due: nothing but the answers can close the cards.
    let settings = |config: &mut Config| {
        config.workers.sweep_every = Duration::from_secs(3600);
        config.approvals.approvers = vec!["channel".to_owned(), "U2".to_owned()];
    };
    let bot = TestBot::with_settings(settings).await;
    let table = Table { bot: &bot, rows: Vec::new() };
    let mut cards = Vec::new();
    for answer in ["Start experiment", "Reject…", "Edit…", "yes", "no"] {
        cards.push((answer, table.card("start Math Hints").await));
    }
    cards.insert(0, ("at home", table.card("delete Math Hints").await));
    bot.user("bo").opens_home().await;
    bot.clock.advance(Duration::from_secs(25 * 60 * 60));
    let mut told = Vec::new();
    for (answer, Shown { thread, key, .. }) in &cards {
        let before = bot.slack.ephemerals("bo").len();
        match *answer {
            "yes" | "no" => thread.says("bo", answer).await,
            "at home" => drop(bot.user("bo").presses_at_home("Delete permanently").await),
            button => thread.clicks("bo", button).await,
        }
        let record = bot.store().action(ActionKey::ByApproval(key)).await.unwrap().unwrap();
        let mut private: Vec<_> = bot.slack.ephemerals("bo")[before..].iter().map(|told| told.words()).collect();
        if *answer == "at home" {
            private.extend(bot.user("bo").home().lines().take(2).map(str::to_owned));
        }
        let [private, public] = [private.join("\n"), thread.last()].map(|words| words.replace('\n', " "));
        told.push(format!("{answer} | {} | {private}\n  {public}", record.status));
    }
    assert_snapshot!(told.join("\n"), @"
    at home | expired | This card has expired. Nothing was changed. If you still want it, ask again in the thread.
      @ana no one decided in time about *Permanently delete “Math Hints”*, so nothing was changed. [Ask again]
    Start experiment | expired | This card has expired. Nothing was changed. If you still want it, ask again in the thread.
      @ana no one decided in time about *Start “Math Hints”*, so nothing was changed. [Ask again]
    Reject… | expired | This card has expired. Nothing was changed. If you still want it, ask again in the thread.
      @ana no one decided in time about *Start “Math Hints”*, so nothing was changed. [Ask again]
    Edit… | expired | This card has expired. Nothing was changed. If you still want it, ask again in the thread.
      @ana no one decided in time about *Start “Math Hints”*, so nothing was changed. [Ask again]
    yes | expired | This card has expired. Nothing was changed. If you still want it, ask again in the thread.
      @ana no one decided in time about *Start “Math Hints”*, so nothing was changed. [Ask again]
    no | expired | This card has expired. Nothing was changed. If you still want it, ask again in the thread.
      @ana no one decided in time about *Start “Math Hints”*, so nothing was changed. [Ask again]
    ");
    assert!(bot.upgrade.effects().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn anybody_in_the_channel() {
    let case = Case::of(|_| (), &["bo"], Some("bo"));
    assert_snapshot!(table(case).await, @"
    edited by bo, old card | ana, bo, di, eve, fay | does not | @bo edited this ‹while› ago, so another card took its place. ‹Open the newer card›
    open | ana, bo, di, eve, fay | counts | Approved by ‹them› · ‹time›
    edited by bo | ana | does not | You asked for this and it can't be undone, so another person has to approve it.
    edited by bo | bo | does not | You edited this, so another person has to approve it.
    edited by bo | di, eve, fay | counts | Approved by ‹them› · ‹time›
    closed, by bo | everybody | does not | as always
    restarted | as when it was open
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_person_who_asked() {
    let settings = |config: &mut Config| config.approvals.approvers = vec!["requester".to_owned()];
    let case = Case::of(settings, &["ana"], None);
    assert_snapshot!(table(case).await, @"
    open | ana | counts | Approved by ‹them› · ‹time›
    open | bo, di, eve, fay | does not | You can't approve or reject this. Who can decide: the requester.
    closed, by ana | everybody | does not | as always
    restarted | as when it was open
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_named_person() {
    let settings = |config: &mut Config| config.approvals.approvers = vec!["U2".to_owned()];
    let case = Case::of(settings, &["bo"], Some("ana"));
    assert_snapshot!(table(case).await, @"
    edited by ana, old card | ana, bo, di, eve, fay | does not | @ana edited this ‹while› ago, so another card took its place. ‹Open the newer card›
    open | ana, di, eve, fay | does not | You can't approve or reject this. Who can decide: @bo.
    open | bo | counts | Approved by ‹them› · ‹time›
    edited by ana | ana, di, eve, fay | does not | You can't approve or reject this. Who can decide: @bo (but not the requester and editors).
    edited by ana | bo | counts | Approved by ‹them› · ‹time›
    closed, by bo | everybody | does not | as always
    restarted | as when it was open
    ");
}

/// Whoever is in the group when they press decides.
async fn the_group_decides(settings: fn(&mut Config)) {
    let table = table(Case::of(settings, &["di"], Some("ana"))).await;
    allow_duplicates! {
        assert_snapshot!(table, @"
        edited by ana, old card | ana, bo, di, eve, fay | does not | @ana edited this ‹while› ago, so another card took its place. ‹Open the newer card›
        open | ana, bo, eve, fay | does not | You can't approve or reject this. Who can decide: a member of `@approvers`.
        open | di | counts | Approved by ‹them› · ‹time›
        edited by ana | ana, bo, eve, fay | does not | You can't approve or reject this. Who can decide: a member of `@approvers` (but not the requester and editors).
        edited by ana | di | counts | Approved by ‹them› · ‹time›
        closed, by di | everybody | does not | as always
        restarted | as when it was open
        ");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_group() {
    the_group_decides(|config| config.approvals.approvers = vec!["S1".to_owned()]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody() {
    let settings = |config: &mut Config| config.approvals.approvers = Vec::new();
    let case = Case { again: "start Math Hints", ..Case::of(settings, &[], Some("ana")) };
    assert_snapshot!(table(case).await, @"
    edited by ana, old card | ana, bo, di, eve, fay | does not | @ana edited this ‹while› ago, so another card took its place. ‹Open the newer card›
    open | ana, bo, di, eve, fay | does not | You can't approve or reject this. Who can decide: no one (no approvers are configured).
    edited by ana | ana, bo, di, eve, fay | does not | You can't approve or reject this. Who can decide: no one (no approvers are configured).
    closed | everybody | does not | as always
    restarted | as when it was open
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_of_several() {
    let settings = |config: &mut Config| {
        config.approvals.approvers = vec!["U2".to_owned(), "S1".to_owned(), "requester".to_owned()];
        config.approvals.needed = 2;
    };
    let case = Case::of(settings, &["bo", "di"], Some("ana"));
    assert_snapshot!(table(case).await, @"
    edited by ana, old card | ana, bo, di, eve, fay | does not | @ana edited this ‹while› ago, so another card took its place. ‹Open the newer card›
    open | ana, bo, di | counts | 1 of 2: approved by ‹them›.
    open | eve, fay | does not | You can't approve or reject this. Who can decide: @bo, a member of `@approvers` or the requester.
    bo has approved | ana, di | counts | Approved by @bo and ‹them› · ‹time›
    bo has approved | bo | does not | You already approved this. Another person has to approve it too. Who can decide: @bo, a member of `@approvers` or the requester.
    bo has approved | eve, fay | does not | You can't approve or reject this. Who can decide: @bo, a member of `@approvers` or the requester.
    edited by ana | ana | does not | You asked for this and it can't be undone, so another person has to approve it. Who can decide: @bo or a member of `@approvers` (but not the requester and editors).
    edited by ana | bo, di | counts | 1 of 2: approved by ‹them›.
    edited by ana | eve, fay | does not | You can't approve or reject this. Who can decide: @bo or a member of `@approvers` (but not the requester and editors).
    closed, by di | everybody | does not | as always
    restarted | as when it was open
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn not_the_person_who_asked() {
    let settings = |config: &mut Config| config.approvals.own_request = false;
    let case = Case::of(settings, &["bo"], Some("bo"));
    assert_snapshot!(table(case).await, @"
    edited by bo, old card | ana, bo, di, eve, fay | does not | @bo edited this ‹while› ago, so another card took its place. ‹Open the newer card›
    open | ana | does not | You asked for this, so another person has to approve it.
    open | bo, di, eve, fay | counts | Approved by ‹them› · ‹time›
    edited by bo | ana | does not | You asked for this and it can't be undone, so another person has to approve it.
    edited by bo | bo | does not | You edited this, so another person has to approve it.
    edited by bo | di, eve, fay | counts | Approved by ‹them› · ‹time›
    closed, by bo | everybody | does not | as always
    restarted | as when it was open
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_undone() {
    let asks = ["delete Math Hints", "start Math Hints"];
    let case = Case { asks, again: "delete Lesson Video Hints", ..Case::of(|_| (), &["bo"], None) };
    assert_snapshot!(table(case).await, @"
    open | ana | does not | You asked for this and it can't be undone, so another person has to approve it.
    open | bo, di, eve, fay | counts | Approved by ‹them› · ‹time›
    closed, by bo | everybody | does not | as always
    restarted | as when it was open
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_for_a_context() {
    the_group_decides(|config| {
        let rule = ContextRule { approvers: Some(vec!["S1".to_owned()]), ..ContextRule::default() };
        config.approvals.contexts.insert("assign-prog".to_owned(), rule);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn outside_an_envelope() {
    let settings = |config: &mut Config| {
        let subjects = vec!["Math Hints".to_owned()];
        let pilot = Envelope {
            subjects,
            limits: [("statuses".to_owned(), serde_json::json!(["scheduled"]))].into(),
            ..Envelope::default()
        };
        config.approvals.envelopes.insert("pilot".to_owned(), pilot);
    };
    let case = Case::of(settings, &["bo", "di"], Some("bo"));
    assert_snapshot!(table(case).await, @"
    edited by bo, old card | ana, bo, di, eve, fay | does not | @bo edited this ‹while› ago, so another card took its place. ‹Open the newer card›
    open | ana | does not | You asked for this, so another person has to approve it.
    open | bo, di, eve, fay | counts | 1 of 2: approved by ‹them›.
    bo has approved | ana | does not | You asked for this, so another person has to approve it.
    bo has approved | bo | does not | You already approved this. Another person has to approve it too.
    bo has approved | di, eve, fay | counts | Approved by @bo and ‹them› · ‹time›
    edited by bo | ana | does not | You asked for this and it can't be undone, so another person has to approve it.
    edited by bo | bo | does not | You edited this, so another person has to approve it.
    edited by bo | di, eve, fay | counts | 1 of 2: approved by ‹them›.
    closed, by di | everybody | does not | as always
    restarted | as when it was open
    ");
}
