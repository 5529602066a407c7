//! Calls of the bot.

use std::{sync::Arc, time::Duration};

use countersign::clock::ManualClock;
use countersign_sandbox::slack::{Options, SandboxSlack};
use serde_json::{Value, json};
use slack_morphism::prelude::*;

use super::{buttons, call, http, modal, post, quick};

#[tokio::test]
async fn tokens_are_asked_for() {
    let slack = SandboxSlack::start(quick()).await.unwrap();
    let with = async |method: &str, token: Option<&str>| -> Value {
        let request = http().post(format!("{}/{method}", slack.api_url())).form(&[("a", "b")]);
        let request = token.iter().fold(request, |request, token| request.bearer_auth(token));
        request.send().await.unwrap().json().await.unwrap()
    };
    assert_eq!(with("auth.test", None).await["error"], "not_authed");
    assert_eq!(with("auth.test", Some("xoxb-other")).await["error"], "invalid_auth");
    assert_eq!(with("auth.test", Some(slack.app_token())).await["error"], "not_allowed_token_type");
    assert_eq!(with("apps.connections.open", Some(slack.bot_token())).await["error"], "not_allowed_token_type");
    assert_eq!(with("chat.shout", Some(slack.bot_token())).await["error"], "unknown_method");
    assert_eq!(with("auth.test", Some(slack.bot_token())).await["user_id"], "U_BOT");
    let written = serde_json::to_string(&slack.recorded()).unwrap();
    assert!(!written.contains("xoxb-") && !written.contains("xapp-"), "no token in the ledger");
}

#[tokio::test]
async fn scopes_are_told_and_missed() {
    let slack = SandboxSlack::start(Options { scopes: vec!["chat:write".to_owned()], ..quick() }).await.unwrap();
    let request = http().post(format!("{}/auth.test", slack.api_url())).bearer_auth(slack.bot_token());
    assert_eq!(request.send().await.unwrap().headers()["x-oauth-scopes"], "chat:write");
    let refused = call(&slack, "users.info", json!({ "user": "U1" })).await;
    assert_eq!((&refused["error"], &refused["needed"]), (&json!("missing_scope"), &json!("users:read")));
}

#[tokio::test]
async fn slack_morphism_works_against_it() {
    rustls::crypto::ring::default_provider().install_default().ok();
    let slack = SandboxSlack::start(quick()).await.unwrap();
    let https = hyper_rustls::HttpsConnectorBuilder::new()
        .with_tls_config(countersign::wire::tls::client(false).unwrap())
        .https_or_http()
        .enable_http1();
    let connector = SlackClientHyperConnector::with_connector(https.build()).with_slack_api_url(&slack.api_url());
    let client = Arc::new(SlackClient::new(connector));
    let token = SlackApiToken::new(slack.bot_token().into());
    let session = client.open_session(&token);

    assert_eq!(session.auth_test().await.unwrap().user_id, "U_BOT".into());
    let content = SlackMessageContent::new().with_text("hello".into());
    let posted = session.chat_post_message(&SlackApiChatPostMessageRequest::new("C1".into(), content)).await.unwrap();
    let replies = SlackApiConversationsRepliesRequest::new("C1".into(), posted.ts.clone());
    let replies = session.conversations_replies(&replies).await.unwrap();
    assert_eq!(replies.messages[0].content.text.as_deref(), Some("hello"));
    let user = session.users_info(&SlackApiUsersInfoRequest::new("U1".into())).await.unwrap();
    assert_eq!(user.user.real_name.as_deref(), Some("Ana"));
    let group = SlackApiUserGroupsUsersListRequest::new("S1".into());
    assert_eq!(session.usergroups_users_list(&group).await.unwrap().users, ["U2".into(), "U3".into()]);
    let groups = SlackApiUserGroupsListRequest::new().with_include_count(true);
    let groups = session.usergroups_list(&groups).await.unwrap().usergroups;
    assert_eq!((&*groups[0].id.0, &*groups[0].handle, groups[0].user_count), ("S1", "approvers", 2));
    let history = SlackApiConversationsHistoryRequest::new().with_channel("C1".into());
    assert_eq!(session.conversations_history(&history).await.unwrap().messages.len(), 1);
}

#[tokio::test]
async fn a_post_that_makes_no_sense_is_refused_by_name() {
    let slack = SandboxSlack::start(quick()).await.unwrap();
    slack.arrange(|world| {
        let general = world.channels.iter_mut().find(|channel| channel.name == "general").unwrap();
        general.members.retain(|user| user.as_str() != "U_BOT");
    });
    let many = json!(vec![json!({ "type": "divider" }); 51]);
    for (body, error) in [
        (json!({ "channel": "C9", "text": "hi" }), "channel_not_found"),
        (json!({ "channel": "C2", "text": "hi" }), "not_in_channel"),
        (json!({ "channel": "C1" }), "no_text"),
        (json!({ "channel": "C1", "text": "hi", "thread_ts": "1.000001" }), "thread_not_found"),
        (json!({ "channel": "C1", "text": "hi", "blocks": many }), "invalid_blocks"),
        (json!({ "channel": "C1", "text": "hi", "blocks": [{ "type": "banner" }] }), "invalid_blocks"),
        (json!({ "channel": "C1", "text": "hi", "markdown_text": "hi" }), "markdown_text_conflict"),
        (json!({ "channel": "C1", "markdown_text": "x".repeat(12_001) }), "msg_too_long"),
        (
            json!({ "channel": "C1", "text": "hi", "metadata": { "event_type": "t", "event_payload": { "n": 1 } } }),
            "invalid_metadata_schema",
        ),
    ] {
        let answer = call(&slack, "chat.postMessage", body.clone()).await;
        assert_eq!((&answer["ok"], &answer["error"]), (&json!(false), &json!(error)), "{body}");
    }
    assert!(slack.messages("C1").is_empty());
}

#[tokio::test]
async fn an_update_replaces_the_layout_and_keeps_the_metadata() {
    let slack = SandboxSlack::start(quick()).await.unwrap();
    let metadata = json!({ "event_type": "post", "event_payload": { "nonce": "n1" } });
    let ts =
        post(&slack, json!({ "channel": "C1", "text": "?", "blocks": buttons(&["Go"]), "metadata": metadata })).await;

    let changed = json!({ "channel": "C1", "ts": ts, "text": "Done.", "blocks": buttons(&["Undo"]) });
    assert_eq!(call(&slack, "chat.update", changed).await["ok"], true);
    assert!(slack.messages("C1")[0].edited.is_none(), "with blocks there is no mark");
    assert_eq!(call(&slack, "chat.update", json!({ "channel": "C1", "ts": ts, "text": "Done." })).await["ok"], true);
    let message = slack.messages("C1").remove(0);
    assert!(message.blocks.is_empty() && message.edited.is_some());
    assert_eq!(message.metadata, Some(metadata));

    let update = async |body: Value| call(&slack, "chat.update", body).await["error"].clone();
    let mine = slack.says("ana", "C1", "mine", None).unwrap();
    assert_eq!(update(json!({ "channel": "C1", "ts": ts, "text": "x".repeat(4_001) })).await, "msg_too_long");
    assert_eq!(update(json!({ "channel": "C1", "ts": "1.000001", "text": "x" })).await, "message_not_found");
    assert_eq!(update(json!({ "channel": "C1", "ts": mine, "text": "x" })).await, "cant_update_message");
    let cleared = json!({ "channel": "C1", "ts": ts, "text": "x", "metadata": {} });
    assert_eq!(call(&slack, "chat.update", cleared).await["ok"], true);
    assert_eq!(slack.messages("C1")[0].metadata, None);
}

#[tokio::test]
async fn a_direct_message_may_be_named_by_its_user_to_post_but_not_to_edit() {
    let slack = SandboxSlack::start(quick()).await.unwrap();
    let answer = call(&slack, "chat.postMessage", json!({ "channel": "U2", "text": "hi" })).await;
    assert_eq!(answer["channel"], "D2");
    let update = json!({ "channel": "U2", "ts": answer["ts"], "text": "ho" });
    assert_eq!(call(&slack, "chat.update", update).await["error"], "channel_not_found");
    assert_eq!(call(&slack, "conversations.open", json!({ "users": "U2" })).await["channel"]["id"], "D2");
}

#[tokio::test]
async fn a_thread_is_read_page_by_page_with_metadata_on_request() {
    let slack = SandboxSlack::start(quick()).await.unwrap();
    let root = slack.says("ana", "C1", "begin", None).unwrap();
    let metadata = json!({ "event_type": "post", "event_payload": { "nonce": "n1" } });
    for n in 0..4 {
        let body = json!({ "channel": "C1", "text": format!("{n}"), "thread_ts": root, "metadata": metadata });
        post(&slack, body).await;
    }
    let read = async |cursor: &str| {
        let body = json!({ "channel": "C1", "ts": root, "limit": 2, "cursor": cursor, "include_all_metadata": true });
        call(&slack, "conversations.replies", body).await
    };
    let mut texts = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = read(&cursor).await;
        for message in page["messages"].as_array().unwrap() {
            texts.push(message["text"].as_str().unwrap().to_owned());
            assert_eq!(message["metadata"]["event_payload"]["nonce"] == "n1", message["text"] != "begin");
        }
        cursor = page["response_metadata"]["next_cursor"].as_str().unwrap().to_owned();
        assert_eq!(page["has_more"], !cursor.is_empty());
        if cursor.is_empty() {
            break;
        }
    }
    assert_eq!(texts, ["begin", "0", "1", "2", "3"]);
    assert_eq!(read("next:1.000001").await["error"], "invalid_cursor");
}

#[tokio::test]
async fn a_reply_needs_the_root_and_not_another_reply() {
    let slack = SandboxSlack::start(quick()).await.unwrap();
    let root = post(&slack, json!({ "channel": "C1", "text": "root" })).await;
    let reply = post(&slack, json!({ "channel": "C1", "text": "reply", "thread_ts": root })).await;
    let wrong = call(&slack, "chat.postMessage", json!({ "channel": "C1", "text": "x", "thread_ts": reply })).await;
    assert_eq!(wrong["error"], "thread_not_found");
    let link = call(&slack, "chat.getPermalink", json!({ "channel": "C1", "message_ts": reply })).await;
    let expected = format!("/archives/C1/p{}?thread_ts={root}&cid=C1", reply.replace('.', ""));
    assert!(link["permalink"].as_str().unwrap().ends_with(&expected), "{link}");
    call(&slack, "chat.delete", json!({ "channel": "C1", "ts": reply })).await;
    assert_eq!(slack.thread("C1", &root.as_str().into()).len(), 1);
}

#[tokio::test]
async fn an_ephemeral_message_is_for_one_person_and_cannot_be_edited() {
    let slack = SandboxSlack::start(quick()).await.unwrap();
    let answer = call(&slack, "chat.postEphemeral", json!({ "channel": "C1", "user": "U2", "text": "psst" })).await;
    assert_eq!(slack.ephemerals("bo")[0].text, "psst");
    assert!(slack.messages("C1").is_empty() && slack.ephemerals("ana").is_empty());
    let update = json!({ "channel": "C1", "ts": answer["message_ts"], "text": "loud" });
    assert_eq!(call(&slack, "chat.update", update).await["error"], "message_not_found");
    let stranger = json!({ "channel": "D1", "user": "U2", "text": "psst" });
    assert_eq!(call(&slack, "chat.postEphemeral", stranger).await["error"], "user_not_in_channel");
}

#[tokio::test]
async fn a_file_is_announced_uploaded_and_shared_once() {
    let slack = SandboxSlack::start(quick()).await.unwrap();
    let root = slack.says("ana", "C1", "chart?", None).unwrap();
    let form = [("filename", "chart.png"), ("length", "4")];
    let url = format!("{}/files.getUploadURLExternal", slack.api_url());
    let request = http().post(url).bearer_auth(slack.bot_token()).form(&form);
    let ticket: Value = request.send().await.unwrap().json().await.unwrap();
    let upload = async |bytes: &'static [u8]| {
        http().post(ticket["upload_url"].as_str().unwrap()).body(bytes).send().await.unwrap().status().as_u16()
    };
    assert_eq!(upload(b"12345").await, 400, "not what was announced");
    assert_eq!(upload(b"1234").await, 200);
    let share =
        json!({ "files": [{ "id": ticket["file_id"], "title": "Weights" }], "channel_id": "C1", "thread_ts": root });
    assert_eq!(call(&slack, "files.completeUploadExternal", share.clone()).await["ok"], true);
    assert_eq!(call(&slack, "files.completeUploadExternal", share).await["error"], "file_not_found", "only once");
    let reply = slack.thread("C1", &root).remove(1);
    let url = format!("{}/workspace/file/{}", slack.url(), reply.files[0]);
    let answer = http().get(url).send().await.unwrap();
    assert_eq!(answer.headers()["content-type"], "image/png");
    assert_eq!(answer.bytes().await.unwrap().as_ref(), b"1234");
}

#[tokio::test]
async fn a_modal_needs_a_fresh_trigger() {
    let clock = ManualClock::default();
    let options = Options { clock: Arc::new(clock.clone()), ..quick() };
    let slack = SandboxSlack::start(options).await.unwrap();
    let trigger = async || {
        slack.command("ana", "C1", "/upgrade list").await.ok();
        slack.look(|world| world.triggers.iter().max_by_key(|(id, t)| (t.at, (*id).clone())).unwrap().0.clone())
    };
    let open =
        async |trigger: &str| call(&slack, "views.open", json!({ "trigger_id": trigger, "view": modal("Why?") })).await;
    let first = trigger().await;
    let view = open(&first).await["view"].clone();
    assert_eq!(open(&first).await["error"], "exchanged_trigger_id");
    assert_eq!(open("1.2.abc").await["error"], "invalid_trigger_id");

    let update = json!({ "view_id": view["id"], "view": modal("Really?"), "hash": "0.0" });
    assert_eq!(call(&slack, "views.update", update).await["error"], "hash_conflict");
    let update = json!({ "view_id": view["id"], "view": modal("Really?"), "hash": view["hash"] });
    assert_eq!(call(&slack, "views.update", update).await["view"]["title"]["text"], "Really?");

    clock.advance(Duration::from_secs(1));
    let late = trigger().await;
    clock.advance(Duration::from_millis(3_100));
    assert_eq!(open(&late).await["error"], "trigger_expired");
}

#[tokio::test]
async fn no_more_than_three_modals_lie_on_each_other() {
    let slack = SandboxSlack::start(quick()).await.unwrap();
    let mut errors = Vec::new();
    for method in ["views.push", "views.open", "views.push", "views.push", "views.push"] {
        let before: Vec<String> = slack.look(|world| world.triggers.keys().cloned().collect());
        slack.command("ana", "C1", "/upgrade list").await.ok();
        let fresh = slack.look(|world| world.triggers.keys().find(|id| !before.contains(id)).cloned().unwrap());
        let answer = call(&slack, method, json!({ "trigger_id": fresh, "view": modal("Why?") })).await;
        errors.push(answer["error"].as_str().unwrap_or("ok").to_owned());
    }
    assert_eq!(errors, ["not_found", "ok", "ok", "ok", "push_limit_reached"]);
}

#[tokio::test]
async fn a_response_url_lives_for_a_while_and_a_few_uses() {
    let clock = ManualClock::default();
    let slack = SandboxSlack::start(Options { clock: Arc::new(clock.clone()), ..quick() }).await.unwrap();
    let url = async || {
        slack.command("ana", "C1", "/upgrade list").await.ok();
        slack.look(|world| world.response_urls.iter().find(|(_, url)| url.uses == 0).unwrap().0.clone())
    };
    let answer = async |id: &str, body: Value| {
        http().post(format!("{}/response/{id}", slack.url())).json(&body).send().await.unwrap().status().as_u16()
    };
    let first = url().await;
    let before = slack.ephemerals("ana").len();
    for _ in 0..4 {
        assert_eq!(answer(&first, json!({ "text": "here" })).await, 200);
    }
    assert_eq!(slack.ephemerals("ana").len(), before + 4);
    assert_eq!(answer(&first, json!({ "text": "all", "response_type": "in_channel" })).await, 200);
    assert_eq!(slack.messages("C1").len(), 1);
    assert_eq!(answer(&first, json!({ "text": "too much" })).await, 404);
    let second = url().await;
    clock.advance(Duration::from_secs(31 * 60));
    assert_eq!(answer(&second, json!({ "text": "too late" })).await, 404);
}

#[tokio::test]
async fn tiers_are_kept_where_the_options_say_so() {
    let slack = SandboxSlack::start(Options { rate_limits: true, ..quick() }).await.unwrap();
    let mut statuses = Vec::new();
    for _ in 0..6 {
        let request = http().post(format!("{}/chat.postMessage", slack.api_url())).bearer_auth(slack.bot_token());
        let answer = request.json(&json!({ "channel": "C1", "text": "x" })).send().await.unwrap();
        statuses.push((answer.status().as_u16(), answer.headers().contains_key("retry-after")));
    }
    assert_eq!(statuses[..5], [(200, false); 5]);
    assert_eq!(statuses[5], (429, true));
}
