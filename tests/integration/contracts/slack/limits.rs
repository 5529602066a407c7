//! The table of limits: what is just within one is taken, what is just over it is refused.

use countersign_sandbox::slack::SandboxSlack;
use serde_json::{Value, json};

use super::{call, quick};

/// A layout that holds so much of something.
type Sized = fn(usize) -> Value;

fn words(n: usize) -> String {
    "é".repeat(n)
}

fn plain(n: usize) -> Value {
    json!({ "type": "plain_text", "text": words(n) })
}

fn section(n: usize) -> Value {
    json!({ "type": "section", "text": { "type": "mrkdwn", "text": words(n) } })
}

fn actions(element: Value) -> Value {
    json!([{ "type": "actions", "elements": [element] }])
}

fn button(more: Value) -> Value {
    let mut button = json!({ "type": "button", "text": plain(1) });
    button.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    actions(button)
}

fn confirm(field: &str, n: usize) -> Value {
    let mut confirm = json!({ "title": plain(1), "text": plain(1), "confirm": plain(1), "deny": plain(1) });
    confirm[field] = plain(n);
    button(json!({ "confirm": confirm }))
}

fn options(n: usize) -> Vec<Value> {
    (0..n).map(|i| json!({ "text": plain(1), "value": format!("{i}") })).collect()
}

fn option(more: Value) -> Value {
    let mut option = json!({ "text": plain(1), "value": "a" });
    option.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    option
}

fn image(field: &str, n: usize) -> Value {
    let mut image = json!({ "type": "image", "image_url": "u", "alt_text": "a" });
    image[field] = json!(words(n));
    image
}

fn select(more: Value) -> Value {
    let mut select = json!({ "type": "static_select", "options": options(1) });
    select.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    actions(select)
}

fn several(n: usize, of: impl Fn(usize) -> Value) -> Vec<Value> {
    (0..n).map(of).collect()
}

fn icon(more: Value) -> Value {
    let mut icon = json!({ "type": "icon_button", "icon": "trash", "text": plain(1) });
    icon.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    icon
}

fn feedback(more: Value) -> Value {
    let mut yes = json!({ "text": plain(1), "value": "yes" });
    yes.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let no = json!({ "text": plain(1), "value": "no" });
    json!([{ "type": "context_actions", "elements": [
        { "type": "feedback_buttons", "positive_button": yes, "negative_button": no }] }])
}

fn choices(kind: &str, option: Value) -> Value {
    actions(json!({ "type": kind, "options": [option] }))
}

fn task(more: Value) -> Value {
    let mut task = json!({ "type": "task_card", "task_id": "t", "title": "t" });
    task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    task
}

fn input(more: Value) -> Value {
    let mut input = json!({ "type": "input", "label": plain(1), "element": { "type": "plain_text_input" } });
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!([input])
}

const MESSAGE: &[(&str, usize, Sized)] = &[
    ("blocks", 50, |n| json!(vec![json!({ "type": "divider" }); n])),
    ("block_id", 255, |n| json!([{ "type": "divider", "block_id": words(n) }])),
    ("action_id", 255, |n| button(json!({ "action_id": words(n) }))),
    ("section text", 3_000, |n| json!([section(n)])),
    ("section fields", 10, |n| json!([{ "type": "section", "fields": several(n, |_| plain(1)) }])),
    ("field text", 2_000, |n| json!([{ "type": "section", "fields": [plain(n)] }])),
    ("header", 150, |n| json!([{ "type": "header", "text": plain(n) }])),
    ("context text", 3_000, |n| json!([{ "type": "context", "elements": [plain(n)] }])),
    ("context image", 2_000, |n| json!([{ "type": "context", "elements": [image("alt_text", n)] }])),
    ("context elements", 10, |n| json!([{ "type": "context", "elements": several(n, |_| plain(1)) }])),
    (
        "actions elements",
        25,
        |n| json!([{ "type": "actions", "elements": several(n, |i| json!({ "type": "button", "text": plain(1), "action_id": i.to_string() })) }]),
    ),
    (
        "context_actions elements",
        5,
        |n| json!([{ "type": "context_actions", "elements": several(n, |_| icon(json!({}))) }]),
    ),
    ("button text", 75, |n| button(json!({ "text": plain(n) }))),
    ("button value", 2_000, |n| button(json!({ "value": words(n) }))),
    ("button url", 3_000, |n| button(json!({ "url": words(n) }))),
    ("button label", 75, |n| button(json!({ "accessibility_label": words(n) }))),
    (
        "icon button text",
        75,
        |n| json!([{ "type": "context_actions", "elements": [icon(json!({ "text": plain(n) }))] }]),
    ),
    (
        "icon button label",
        75,
        |n| json!([{ "type": "context_actions", "elements": [icon(json!({ "accessibility_label": words(n) }))] }]),
    ),
    (
        "icon button value",
        2_000,
        |n| json!([{ "type": "context_actions", "elements": [icon(json!({ "value": words(n) }))] }]),
    ),
    ("feedback text", 75, |n| feedback(json!({ "text": plain(n) }))),
    ("feedback value", 2_000, |n| feedback(json!({ "value": words(n) }))),
    ("feedback label", 75, |n| feedback(json!({ "accessibility_label": words(n) }))),
    ("confirm title", 100, |n| confirm("title", n)),
    ("confirm text", 300, |n| confirm("text", n)),
    ("confirm confirm", 30, |n| confirm("confirm", n)),
    ("confirm deny", 30, |n| confirm("deny", n)),
    ("select options", 100, |n| select(json!({ "options": options(n) }))),
    ("option text", 75, |n| select(json!({ "options": [{ "text": plain(n), "value": "a" }] }))),
    ("option value", 150, |n| select(json!({ "options": [{ "text": plain(1), "value": words(n) }] }))),
    ("placeholder", 150, |n| select(json!({ "placeholder": plain(n) }))),
    ("option description", 75, |n| select(json!({ "options": [option(json!({ "description": plain(n) }))] }))),
    ("option groups", 100, |n| {
        let group = json!({ "label": plain(1), "options": options(1) });
        actions(json!({ "type": "static_select", "option_groups": vec![group; n] }))
    }),
    ("option group label", 75, |n| {
        let group = json!({ "label": plain(n), "options": options(1) });
        actions(json!({ "type": "static_select", "option_groups": [group] }))
    }),
    ("options of a group", 100, |n| {
        let group = json!({ "label": plain(1), "options": options(n) });
        actions(json!({ "type": "static_select", "option_groups": [group] }))
    }),
    ("menu of several", 100, |n| input(json!({ "element": { "type": "multi_static_select", "options": options(n) } }))),
    ("placeholder of several", 150, |n| {
        input(json!({ "element": { "type": "multi_users_select", "placeholder": plain(n) } }))
    }),
    ("overflow option", 75, |n| choices("overflow", option(json!({ "text": plain(n) })))),
    ("overflow url", 3_000, |n| choices("overflow", option(json!({ "url": words(n) })))),
    ("radio value", 150, |n| choices("radio_buttons", option(json!({ "value": words(n) })))),
    ("checkbox text", 75, |n| choices("checkboxes", option(json!({ "text": plain(n) })))),
    ("overflow", 5, |n| actions(json!({ "type": "overflow", "options": options(n) }))),
    ("radio buttons", 10, |n| actions(json!({ "type": "radio_buttons", "options": options(n) }))),
    ("checkboxes", 10, |n| actions(json!({ "type": "checkboxes", "options": options(n) }))),
    ("input label", 2_000, |n| input(json!({ "label": plain(n) }))),
    ("input hint", 2_000, |n| input(json!({ "hint": plain(n) }))),
    ("plain_text_input", 3_000, |n| {
        input(json!({ "element": { "type": "plain_text_input", "initial_value": words(n) } }))
    }),
    ("input placeholder", 150, |n| {
        input(json!({ "element": { "type": "email_text_input", "placeholder": plain(n) } }))
    }),
    ("max_length", 3_000, |n| input(json!({ "element": { "type": "plain_text_input", "max_length": n } }))),
    ("image url", 3_000, |n| json!([{ "type": "image", "image_url": words(n), "alt_text": "a" }])),
    ("image alt", 2_000, |n| json!([{ "type": "image", "image_url": "u", "alt_text": words(n) }])),
    (
        "image beside a text",
        3_000,
        |n| json!([{ "type": "section", "text": plain(1), "accessory": image("image_url", n) }]),
    ),
    ("image title", 2_000, |n| json!([{ "type": "image", "image_url": "u", "alt_text": "a", "title": plain(n) }])),
    ("table rows", 100, |n| json!([{ "type": "table", "rows": several(n, |_| json!([plain(1)])) }])),
    ("table cells", 20, |n| json!([{ "type": "table", "rows": [several(n, |_| plain(1))] }])),
    (
        "plan tasks",
        50,
        |n| json!([{ "type": "plan", "title": "p", "tasks": several(n, |_| task(json!({ "status": "pending" }))) }]),
    ),
    ("task name", 255, |n| json!([task(json!({ "task_id": words(n) }))])),
    ("card title", 150, |n| json!([{ "type": "card", "title": plain(n) }])),
    ("card subtitle", 150, |n| json!([{ "type": "card", "title": plain(1), "subtitle": plain(n) }])),
    ("card picture", 2_000, |n| json!([{ "type": "card", "hero_image": image("alt_text", n) }])),
    ("card button", 75, |n| {
        let button = json!({ "type": "button", "text": plain(n) });
        json!([{ "type": "card", "actions": [button] }])
    }),
    ("card body", 200, |n| json!([{ "type": "card", "body": plain(n) }])),
    (
        "carousel",
        10,
        |n| json!([{ "type": "carousel", "elements": several(n, |_| json!({ "type": "card", "title": plain(1) })) }]),
    ),
    (
        "card of a carousel",
        200,
        |n| json!([{ "type": "carousel", "elements": [{ "type": "card", "body": plain(n) }] }]),
    ),
    (
        "container",
        10,
        |n| json!([{ "type": "container", "child_blocks": several(n, |_| json!({ "type": "divider" })) }]),
    ),
    (
        "container title",
        150,
        |n| json!([{ "type": "container", "title": plain(n), "child_blocks": [{ "type": "divider" }] }]),
    ),
    ("text inside of a container", 3_000, |n| json!([{ "type": "container", "child_blocks": [section(n)] }])),
    ("alert", 200, |n| json!([{ "type": "alert", "text": plain(n) }])),
];

#[tokio::test]
async fn every_limit_of_a_message_holds_to_the_character() {
    let slack = SandboxSlack::start(quick()).await.unwrap();
    for (name, limit, layout) in MESSAGE {
        let post = async |n: usize| {
            let body = json!({ "channel": "C1", "text": "x", "blocks": layout(n) });
            call(&slack, "chat.postMessage", body).await
        };
        let within = post(*limit).await;
        assert_eq!(within["ok"], true, "{name}: {limit} are within: {within}");
        let over = post(limit + 1).await;
        assert_eq!(over["error"], "invalid_blocks", "{name}: {} are over", limit + 1);
        assert!(over["errors"][0].as_str().unwrap().contains("json-pointer:/blocks"), "{over}");
    }
}

#[tokio::test]
async fn too_little_and_what_does_not_belong_are_refused_too() {
    let slack = SandboxSlack::start(quick()).await.unwrap();
    let same = json!({ "type": "divider", "block_id": "same" });
    let twice = json!({ "type": "button", "text": plain(1), "action_id": "same" });
    for (name, blocks, error) in [
        ("empty text", json!([section(0)]), "invalid_blocks"),
        ("no elements", json!([{ "type": "actions", "elements": [] }]), "invalid_blocks"),
        ("no text", json!([{ "type": "section" }]), "invalid_blocks"),
        (
            "header in mrkdwn",
            json!([{ "type": "header", "text": { "type": "mrkdwn", "text": "x" } }]),
            "invalid_blocks",
        ),
        ("unknown style", button(json!({ "style": "gold" })), "invalid_blocks"),
        ("unknown element", actions(json!({ "type": "lever" })), "invalid_blocks"),
        (
            "unknown style of a confirmation",
            {
                let words = json!({ "title": plain(1), "text": plain(1), "confirm": plain(1), "deny": plain(1), "style": "gold" });
                button(json!({ "confirm": words }))
            },
            "invalid_blocks",
        ),
        ("unknown status", json!([task(json!({ "status": "lost" }))]), "invalid_blocks"),
        ("a task without a name", json!([{ "type": "task_card", "title": "t" }]), "invalid_blocks"),
        ("details that are several", json!([task(json!({ "details": [{ "type": "rich_text" }] }))]), "invalid_blocks"),
        ("output in words", json!([task(json!({ "output": "done" }))]), "invalid_blocks"),
        ("a plan without a title", json!([{ "type": "plan", "tasks": [] }]), "invalid_blocks"),
        ("an empty card", json!([{ "type": "card", "icon": image("alt_text", 1) }]), "invalid_blocks"),
        ("an empty carousel", json!([{ "type": "carousel", "elements": [] }]), "invalid_blocks"),
        ("an empty container", json!([{ "type": "container", "child_blocks": [] }]), "invalid_blocks"),
        ("an option without a value", choices("overflow", json!({ "text": plain(1) })), "invalid_blocks"),
        (
            "an icon button without an icon",
            json!([{ "type": "context_actions", "elements": [
            { "type": "icon_button", "text": plain(1) }] }]),
            "invalid_blocks",
        ),
        (
            "a button among small signs",
            json!([{ "type": "context_actions", "elements": [
            { "type": "button", "text": plain(1) }] }]),
            "invalid_blocks",
        ),
        ("same block id", json!([same, same]), "invalid_blocks"),
        ("same block id inside", json!([same, { "type": "container", "child_blocks": [same] }]), "invalid_blocks"),
        (
            "a table inside and one outside",
            json!([
                { "type": "table", "rows": [[plain(1)]] },
                { "type": "container", "child_blocks": [{ "type": "table", "rows": [[plain(1)]] }] },
            ]),
            "invalid_attachments",
        ),
        ("same action id", json!([{ "type": "actions", "elements": [twice, twice] }]), "invalid_blocks"),
        (
            "a number without its kind",
            json!([{ "type": "input", "label": plain(1), "element": { "type": "number_input" } }]),
            "invalid_blocks",
        ),
        (
            "a first choice that is none",
            select(json!({ "initial_option": { "text": plain(1), "value": "elsewhere" } })),
            "invalid_blocks",
        ),
        (
            "much beside Markdown",
            json!([{ "type": "markdown", "text": words(11_000) }, section(2_001)]),
            "msg_blocks_too_long",
        ),
        ("two tables", json!(vec![json!({ "type": "table", "rows": [[plain(1)]] }); 2]), "invalid_attachments"),
        ("markdown", json!(vec![json!({ "type": "markdown", "text": words(6_001) }); 2]), "msg_blocks_too_long"),
    ] {
        let answer = call(&slack, "chat.postMessage", json!({ "channel": "C1", "text": "x", "blocks": blocks })).await;
        assert_eq!(answer["error"], error, "{name}");
    }
    let markdown = json!(vec![json!({ "type": "markdown", "text": words(6_000) }); 2]);
    let answer = call(&slack, "chat.postMessage", json!({ "channel": "C1", "text": "x", "blocks": markdown })).await;
    assert_eq!(answer["ok"], true, "{answer}");
}

#[tokio::test]
async fn a_text_is_cut_where_slack_cuts_it() {
    let slack = SandboxSlack::start(quick()).await.unwrap();
    call(&slack, "chat.postMessage", json!({ "channel": "C1", "text": words(40_001) })).await;
    assert_eq!(slack.messages("C1")[0].text.chars().count(), 40_000);
}

const VIEW: &[(&str, usize, Sized)] = &[
    ("title", 24, |n| json!({ "title": plain(n) })),
    ("submit", 24, |n| json!({ "submit": plain(n) })),
    ("close", 24, |n| json!({ "close": plain(n) })),
    ("private_metadata", 3_000, |n| json!({ "private_metadata": words(n) })),
    ("callback_id", 255, |n| json!({ "callback_id": words(n) })),
    ("external_id", 255, |n| json!({ "external_id": words(n) })),
    ("blocks", 100, |n| json!({ "blocks": vec![json!({ "type": "divider" }); n] })),
];

#[tokio::test]
async fn every_limit_of_a_view_holds_to_the_character() {
    let slack = SandboxSlack::start(quick()).await.unwrap();
    let open = async |more: Value| {
        let mut view = json!({ "type": "modal", "title": plain(1), "blocks": [] });
        view.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        // Without a valid trigger a good view gets as far as that.
        call(&slack, "views.open", json!({ "trigger_id": "none", "view": view })).await["error"].clone()
    };
    for (name, limit, view) in VIEW {
        assert_eq!(open(view(*limit)).await, "invalid_trigger_id", "{name}: {limit} are within");
        assert_eq!(open(view(limit + 1)).await, "invalid_arguments", "{name}: {} are over", limit + 1);
    }
    assert_eq!(open(json!({ "blocks": input(json!({})) })).await, "invalid_arguments", "an input needs a submit");
    let small = json!([{ "type": "context_actions", "elements": [icon(json!({}))] }]);
    assert_eq!(open(json!({ "blocks": small })).await, "invalid_arguments", "small signs are for messages only");
    let large: Vec<Value> = several(90, |_| section(3_000));
    assert_eq!(open(json!({ "blocks": large })).await, "view_too_large");
    let home = json!({ "type": "home", "blocks": vec![json!({ "type": "divider" }); 101] });
    let published = call(&slack, "views.publish", json!({ "user_id": "U1", "view": home })).await;
    assert_eq!(published["error"], "invalid_arguments");
}

#[tokio::test]
async fn attachments_are_few_and_their_layouts_are_looked_at() {
    let slack = SandboxSlack::start(quick()).await.unwrap();
    for (name, attachments, error) in [
        ("100", vec![json!({ "text": "x" }); 100], Value::Null),
        ("101", vec![json!({ "text": "x" }); 101], json!("too_many_attachments")),
        ("a good layout", vec![json!({ "blocks": [section(3_000)] })], Value::Null),
        ("a bad layout", vec![json!({ "blocks": [section(3_001)] })], json!("invalid_attachments")),
    ] {
        let body = json!({ "channel": "C1", "text": "x", "attachments": attachments });
        assert_eq!(call(&slack, "chat.postMessage", body).await["error"], error, "{name}");
    }
}

/// What Slack takes and nobody should send, and what is refused: all of it is noted, whichever way it came.
#[tokio::test]
async fn whatever_is_sent_is_looked_at() {
    let slack = SandboxSlack::start(quick()).await.unwrap();
    let mut noted = 0;
    let mut one_more = |what: &str| {
        let complaints = slack.ledger().complaints();
        assert_eq!(complaints.len(), noted + 1, "{what}: {complaints:?}");
        noted += 1;
        complaints[noted - 1].error.clone()
    };
    let fine = call(&slack, "chat.postMessage", json!({ "channel": "C1", "text": "x", "blocks": [section(1)] })).await;
    let ts = fine["ts"].clone();
    let actions = |label: &str| {
        json!([{ "type": "actions", "block_id": "a", "elements": [
        { "type": "button", "action_id": "b", "text": { "type": "plain_text", "text": label } }] }])
    };
    for (method, body, error) in [
        ("chat.postMessage", json!({ "channel": "C1", "text": words(4_001) }), "bad_manners"),
        ("chat.postMessage", json!({ "channel": "C1", "blocks": [section(1)] }), "bad_manners"),
        ("chat.postMessage", json!({ "channel": "C1", "text": "<!here>" }), "bad_manners"),
        ("chat.postMessage", json!({ "channel": "C1" }), "no_text"),
        ("chat.postMessage", json!({ "channel": "C1", "text": "x", "blocks": [section(0)] }), "invalid_blocks"),
        (
            "chat.postMessage",
            json!({ "channel": "C1", "text": "x", "attachments": vec![json!({}); 101] }),
            "too_many_attachments",
        ),
        ("chat.update", json!({ "channel": "C1", "ts": ts, "text": words(4_001) }), "msg_too_long"),
        (
            "chat.update",
            json!({ "channel": "C1", "ts": ts, "text": "x", "blocks": [section(3_001)] }),
            "invalid_blocks",
        ),
        ("chat.postEphemeral", json!({ "channel": "C1", "user": "U1", "blocks": [section(1)] }), "bad_manners"),
        (
            "chat.postEphemeral",
            json!({ "channel": "C1", "user": "U1", "text": "x", "blocks": [section(0)] }),
            "invalid_blocks",
        ),
        (
            "views.publish",
            json!({ "user_id": "U1", "view": { "type": "home", "blocks": [section(3_001)] } }),
            "invalid_arguments",
        ),
        (
            "views.publish",
            json!({ "user_id": "U1", "view": { "type": "home", "blocks": [
                { "type": "section", "text": { "type": "mrkdwn", "text": "<!channel>" } }] } }),
            "bad_manners",
        ),
        (
            "assistant.threads.setStatus",
            json!({ "channel_id": "C1", "thread_ts": ts, "status": "x", "loading_messages": vec!["x"; 11] }),
            "invalid_arguments",
        ),
    ] {
        call(&slack, method, body).await;
        assert_eq!(one_more(method), error, "{method}");
    }
    let post = json!({ "channel": "C1", "text": "x", "blocks": actions("Start") });
    let asked = call(&slack, "chat.postMessage", post).await["ts"].clone();
    let edit = json!({ "channel": "C1", "ts": asked, "text": "x", "blocks": actions("Start") });
    call(&slack, "chat.update", edit).await;
    let edit = json!({ "channel": "C1", "ts": asked, "text": "x", "blocks": actions("Stop") });
    call(&slack, "chat.update", edit).await;
    assert_eq!(one_more("a block that became another"), "bad_manners");
}
