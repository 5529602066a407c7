//! Examples of drawn messages, and checks that no text can break a message.

use std::collections::HashSet;

use countersign_core::{
    clock::Timestamp,
    ids::{ApprovalId, Slot, ThreadId},
    reply::{Choice, Fact, FollowUp, Meter, Part, Span, Text},
};
use countersign_slack::mrkdwn::length;
use insta::assert_snapshot;
use serde_json::{Value, json};

use super::*;

mod anything;

fn approval() -> ApprovalId {
    ApprovalId::new(&ThreadId { team: "T1".into(), channel: "C1".into(), root: "1.0".into() }, 7)
}

fn start_math_hints() -> Card {
    Card {
        title: "Start “Math Hints”?".into(),
        facts: vec![
            Fact { label: "Status".into(), before: Some("inactive".into()), after: "enrolling".into() },
            Fact { label: "Weights".into(), before: None, after: Text::new().plain("control 50 · ").code("hint 50") },
        ],
        warnings: vec!["Students see it at once.".into()],
        notes: vec!["Context assign-prog, 2 decision points.".into()],
        approve: "Start experiment".into(),
        reject: "Cancel request".into(),
        done: "Started “Math Hints”.".into(),
        irreversible: false,
        editable: true,
    }
}

fn open() -> CardState {
    CardState::Open {
        approval: approval(),
        asked_by: "U0ANA".into(),
        deciders: "anyone in this channel".into(),
        expires_at: Timestamp(1_767_225_600_000),
        digest: "1a2b3c4d".into(),
        approved_by: vec![],
        needed: 1,
        edited_by: vec![],
        because: None,
        is_risky: false,
        ended_by: Default::default(),
        origin: None,
    }
}

/// Returns a message as a person would read it on the screen.
fn as_shown(message: &Message) -> String {
    let lines = message.blocks.iter().map(|block| match block["type"].as_str().unwrap() {
        "section" if block["fields"].is_array() => {
            let fields = block["fields"].as_array().unwrap().iter();
            fields.map(|field| field["text"].as_str().unwrap().replace('\n', ": ")).collect::<Vec<_>>().join(" | ")
        }
        "section" => block["text"]["text"].as_str().unwrap().to_owned(),
        "header" => format!("# {}", block["text"]["text"].as_str().unwrap()),
        "context" => format!("({})", block["elements"][0]["text"].as_str().unwrap()),
        "markdown" => format!("md: {}", block["text"].as_str().unwrap()),
        "actions" => {
            let buttons = block["elements"].as_array().unwrap().iter();
            let button = |b: &Value| {
                let style = b["style"].as_str().map(|style| format!(" {style}")).unwrap_or_default();
                let confirm = b["confirm"]["title"]["text"].as_str().map(|t| format!(" asks: {t}")).unwrap_or_default();
                format!(
                    "[{} {}={}{style}{confirm}]",
                    b["text"]["text"].as_str().unwrap(),
                    b["action_id"].as_str().unwrap(),
                    b["value"].as_str().unwrap()
                )
            };
            buttons.map(button).collect::<Vec<_>>().join(" ")
        }
        "table" => {
            let rows = block["rows"].as_array().unwrap().iter();
            rows.map(|row| row.as_array().unwrap().iter().map(cell).collect::<Vec<_>>().join(" | "))
                .collect::<Vec<_>>()
                .join("\n")
        }
        "rich_text" => {
            let elements = |of: &Value| of["elements"].as_array().cloned().unwrap_or_default();
            let texts = elements(block).into_iter().flat_map(|quote| elements(&quote));
            texts.map(|text| text["text"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>().join("\n")
        }
        other => panic!("{other}"),
    });
    format!("text: {}\n{}", message.text, lines.collect::<Vec<_>>().join("\n"))
}

fn cell(cell: &Value) -> String {
    match cell["type"].as_str().unwrap() {
        "raw_text" => cell["text"].as_str().unwrap().to_owned(),
        _ => cell["elements"][0]["elements"].to_string(),
    }
}

#[test]
fn an_open_card_says_who_may_decide() {
    let message = card(&start_math_hints(), &open());
    check(&message);
    assert_snapshot!(as_shown(&message), @"
    text: Start “Math Hints”? Asked by <@U0ANA>.
    *Start “Math Hints”?*
    *Status*  inactive → *enrolling*
    *Weights*  control 50 · `hint 50`
    ⚠️ Students see it at once.
    (Context assign-prog, 2 decision points.)
    (Asked by <@U0ANA> · anyone in this channel can approve · expires <!date^1767225600^{date_short_pretty} {time}|2026-01-01 00:00 UTC> · digest `1a2b3c4d`)
    [Start experiment approve=0800000000000000000000000000000007 primary] [Cancel request reject=0800000000000000000000000000000007] [Edit… edit=0800000000000000000000000000000007] [Show all show_all=0800000000000000000000000000000007]
    ");
}

#[test]
fn an_irreversible_card_is_red_and_asks_for_confirmation() {
    let mut delete = start_math_hints();
    delete.irreversible = true;
    let mut state = open();
    if let CardState::Open { approved_by, needed, .. } = &mut state {
        *approved_by = vec!["U0BO".into()];
        *needed = 2;
    }
    let message = card(&delete, &state);
    check(&message);
    assert_snapshot!(as_shown(&message).lines().rev().take(3).collect::<Vec<_>>().join("\n"), @"
    [Start experiment approve=0800000000000000000000000000000007 danger asks: Start “Math Hints”?] [Cancel request reject=0800000000000000000000000000000007] [Edit… edit=0800000000000000000000000000000007] [Show all show_all=0800000000000000000000000000000007]
    (Asked by <@U0ANA> · anyone in this channel can approve · expires <!date^1767225600^{date_short_pretty} {time}|2026-01-01 00:00 UTC> · digest `1a2b3c4d`)
    1 of 2: approved by <@U0BO>.
    ");
}

#[test]
fn a_decided_card_has_no_buttons() {
    let running = CardState::Running {
        by: vec!["U0BO".into()],
        at: Timestamp(1_767_225_600_000),
        meter: None,
        is_elsewhere: false,
    };
    let message = card(&start_math_hints(), &running);
    check(&message);
    assert_snapshot!(as_shown(&message), @"
    text: Start “Math Hints”? Approved by <@U0BO> · <!date^1767225600^{date_short_pretty} {time}|2026-01-01 00:00 UTC> · running…
    *Start “Math Hints”?*
    *Status*  inactive → *enrolling*
    *Weights*  control 50 · `hint 50`
    ⚠️ Students see it at once.
    (Context assign-prog, 2 decision points.)
    Approved by <@U0BO> · <!date^1767225600^{date_short_pretty} {time}|2026-01-01 00:00 UTC> · running…
    ");
}

#[test]
fn a_closed_card_shows_decision_and_outcome() {
    let closed = CardState::Closed {
        decision: Text::new().plain("Approved by ").person("U0BO".into()),
        outcome: Some("✅ Started “Math Hints”.".into()),
        digest: "1a2b3c4d".into(),
        approval: Some(approval()),
        follow_ups: vec![FollowUp::Undo("Undo: stop experiment".into())],
        newer: None,
        asked_by: Some("U0ANA".into()),
        edited_by: vec!["U0BO".into(), "U0CY".into()],
        is_suggested: false,
    };
    let message = card(&start_math_hints(), &closed);
    check(&message);
    assert_snapshot!(as_shown(&message), @"
    text: ✅ Started “Math Hints”. Approved by <@U0BO>
    ✅ *Started “Math Hints”.*
    Approved by <@U0BO>
    *Status*  inactive → *enrolling*
    (Asked by <@U0ANA>, edited by <@U0BO>, <@U0CY> · digest `1a2b3c4d`)
    [Undo: stop experiment undo=0800000000000000000000000000000007] [Show all show_all=0800000000000000000000000000000007]
    ");
}

#[test]
fn a_closed_card_keeps_the_beginning_of_a_text_that_was_sent() {
    let closed = |outcome: &str| CardState::Closed {
        decision: "Approved".into(),
        outcome: Some(outcome.into()),
        digest: "1a2b3c4d".into(),
        approval: Some(approval()),
        follow_ups: Vec::new(),
        newer: None,
        asked_by: None,
        edited_by: Vec::new(),
        is_suggested: false,
    };
    let mut mail = start_math_hints();
    mail.done = "Sent the reply.".into();
    let quote = |label: &str, text: String| Fact { label: label.into(), before: None, after: Text::new().quote(text) };
    mail.facts = vec![quote("Email", "How much?".into()), quote("Reply", format!("It costs 5.{}", " x".repeat(400)))];
    let message = card(&mail, &closed("✅ Sent the reply."));
    check(&message);
    let shown = as_shown(&message);
    assert!(shown.contains("It costs 5. x") && shown.contains("x …") && shown.contains("How much?"), "{shown}");
    let failed = as_shown(&card(&mail, &closed("❌ Refused.")));
    assert!(!failed.contains("It costs 5."), "it was not sent: {failed}");
}

#[test]
fn mark_as_done_asks_for_confirmation() {
    let closed = CardState::Closed {
        decision: "Approved".into(),
        outcome: None,
        digest: "1a2b3c4d".into(),
        approval: Some(approval()),
        follow_ups: vec![FollowUp::Check, FollowUp::MarkDone],
        newer: None,
        asked_by: None,
        edited_by: Vec::new(),
        is_suggested: false,
    };
    let message = card(&start_math_hints(), &closed);
    check(&message);
    let buttons = message.blocks.last().unwrap()["elements"].as_array().unwrap().clone();
    let asked: Vec<_> = buttons.iter().map(|button| button["confirm"]["title"]["text"].as_str()).collect();
    assert_eq!(asked, [None, Some("Mark as done?"), None], "the last one shows all");
}

#[test]
fn a_superseded_card_is_short() {
    let replaced = CardState::Closed {
        decision: Text::new().plain("Edited by ").person("U0BO".into()),
        outcome: None,
        digest: "1a2b3c4d".into(),
        approval: Some(approval()),
        follow_ups: vec![],
        newer: Some(Slot::new("card:a2")),
        asked_by: None,
        edited_by: Vec::new(),
        is_suggested: false,
    };
    let message = card(&start_math_hints(), &replaced);
    check(&message);
    assert_snapshot!(as_shown(&message), @"
    text: Start “Math Hints” · Edited by <@U0BO>
    *Start “Math Hints”*
    Edited by <@U0BO>
    [Show all show_all=0800000000000000000000000000000007]
    ");
}

#[test]
fn a_value_cannot_look_like_another_line_or_hide_its_asterisks() {
    let mut forged = start_math_hints();
    forged.title = "Start *x*\n*Status* deleted <!channel>?".into();
    forged.facts[0].after = "y\n*Approved by* <@U0BO>".into();
    let message = card(&forged, &open());
    check(&message);
    assert_snapshot!(message.blocks[0]["text"]["text"].as_str().unwrap(), @"*Start ∗x∗ ∗Status∗ deleted &lt;!channel&gt;?*");
    assert_snapshot!(message.blocks[1]["text"]["text"].as_str().unwrap(), @"
    *Status*  inactive → *y ↵ ∗Approved by∗ &lt;@U0BO&gt;*
    *Weights*  control 50 · `hint 50`
    ");
}

#[test]
fn a_quoted_value_is_shown_character_by_character() {
    let mut mail = start_math_hints();
    let text = "Hello,\n\nit costs 5.\r\n*Approved by* <@U0BO> `now` :tada:\u{202e}";
    mail.facts.insert(0, Fact { label: "Reply".into(), before: None, after: Text::new().quote(text) });
    let message = card(&mail, &open());
    check(&message);
    let quotation = &message.blocks[1];
    assert_eq!(quotation["type"], "rich_text");
    assert_eq!(quotation["elements"][0]["elements"][0]["text"], "Reply");
    assert_eq!(
        quotation["elements"][1]["elements"],
        json!([{ "type": "text", "text": "Hello,\n\nit costs 5.\n*Approved by* <@U0BO> `now` :tada:\\u{202e}" }]),
        "nothing is parsed, and nothing is replaced with a look-alike"
    );
    assert!(message.blocks[2]["text"]["text"].as_str().unwrap().starts_with("*Status*  inactive"));
}

#[test]
fn a_card_that_is_too_long_says_what_is_missing() {
    let mut long = start_math_hints();
    long.facts =
        (0..200).map(|n| Fact { label: format!("Line {n}"), before: None, after: "x".repeat(200).into() }).collect();
    let message = card(&long, &open());
    check(&message);
    assert!(
        as_shown(&message).contains("⚠️ Not everything fits here. To see the rest, press *Show all*."),
        "{}",
        as_shown(&message)
    );
    assert!(as_shown(&message).contains("[Start experiment"));
}

#[test]
fn a_reply_draws_each_part() {
    let answer = Reply::default()
        .and(Part::Heading("Experiments".into()))
        .and(Part::Text(Text::new().plain("Two in ").code("assign-prog").plain(", asked by ").person("U0ANA".into())))
        .and(Part::Table {
            columns: vec!["Name".into(), "Status".into()],
            rows: vec![vec!["Math Hints".into(), Text::new().code("inactive")], vec!["A < B".into(), "".into()]],
        })
        .and(Part::List(vec!["one".into(), Text::new().bold("two")]))
        .and(Part::Facts(vec![("Version".into(), "6.2".into()), ("Users".into(), "200".into())]))
        .and(Part::Code("let a = `*b*`;".into()))
        .and(Part::Markdown("**fine** <!here> [a.io](https://b.io)".into()))
        .hint("Ask me to list experiments.")
        .choice("Start Math Hints", "start Math Hints")
        .choice("Stop", "stop");
    let message = reply(&answer);
    check(&message);
    assert_snapshot!(as_shown(&message), @r#"
    text: Experiments
    Two in assign-prog, asked by <@U0ANA>
    Name | Status
    Math Hints | inactive
    A &lt; B | 
    • one
    • two
    Version: 6.2
    Users: 200
    let a = ˋ*b*ˋ;
    fine &lt;!here&gt; a.io
    Ask me to list experiments.
    # Experiments
    Two in `assign-prog`, asked by <@U0ANA>
    [{"style":{"bold":true},"text":"Name","type":"text"}] | [{"style":{"bold":true},"text":"Status","type":"text"}]
    Math Hints | [{"style":{"code":true},"text":"inactive","type":"text"}]
    A < B | –
    • one
    • *two*
    *Version*: 6.2 | *Users*: 200
    ```
    let a = ˋ*b*ˋ;
    ```
    md: **fine** ‹!here> `a.io` (`https://b.io`)
    (Ask me to list experiments.)
    [Start Math Hints say:0=start Math Hints] [Stop say:1=stop]
    "#);
}

#[test]
fn a_long_table_says_how_many_rows_are_missing() {
    let rows: Vec<Vec<Text>> = (0..150).map(|n| vec![format!("row {n}").into()]).collect();
    let answer = Reply::default().and(Part::Table { columns: vec!["Row".into()], rows }).hint("Ask for one.");
    let message = reply(&answer);
    check(&message);
    let shown = as_shown(&message);
    assert_snapshot!(shown.lines().rev().take(3).collect::<Vec<_>>().join("\n"), @"
    (Ask for one.)
    (… and 51 more)
    row 98
    ");
}

#[test]
fn a_choice_with_a_long_text_has_no_button() {
    let message = reply(&Reply::text("Which?").choice("Long", "x".repeat(2001)).choice("Short", "short"));
    check(&message);
    assert_snapshot!(as_shown(&message), @"
    text: Which?
    Which?
    (… and 1 more)
    [Short say:0=short]
    ");
}

#[test]
fn the_status_line_is_small_and_in_italics() {
    assert_snapshot!(as_shown(&status("Looking up experiments…")), @"
    text: Looking up experiments…
    (_Looking up experiments…_)
    ");
    assert_snapshot!(as_shown(&status(" ")), @"
    text: Working…
    (_Working…_)
    ");
}

#[test]
fn a_reply_without_words_is_still_a_message() {
    check(&reply(&Reply::default()));
    check(&reply(&Reply::markdown("\u{0}")));
}

/// Fails unless Slack would accept the message, and it mentions nobody and has only the given
/// links.
fn check(message: &Message) {
    assert!((1..=4000).contains(&length(&message.text)), "text of {}", length(&message.text));
    check_mrkdwn(&message.text);
    assert!(message.blocks.len() <= 50, "{} blocks", message.blocks.len());
    let ids: Vec<_> = message.blocks.iter().filter_map(|block| block["block_id"].as_str()).collect();
    assert_eq!(ids.len(), ids.iter().collect::<HashSet<_>>().len(), "{ids:?}");
    let of = |kind: &str| message.blocks.iter().filter(|block| block["type"] == kind).collect::<Vec<_>>();
    assert!(of("table").len() <= 1);
    assert!(of("markdown").iter().map(|block| length(block["text"].as_str().unwrap())).sum::<usize>() <= 12_000);
    message.blocks.iter().for_each(check_block);
}

fn check_block(block: &Value) {
    match block["type"].as_str().unwrap() {
        "section" => match block["fields"].as_array() {
            Some(fields) => {
                assert!((1..=10).contains(&fields.len()));
                fields.iter().for_each(|field| check_text(field, 2000));
            }
            None => check_text(&block["text"], 3000),
        },
        "header" => check_text(&block["text"], 150),
        "context" => {
            assert!((1..=10).contains(&block["elements"].as_array().unwrap().len()));
            block["elements"].as_array().unwrap().iter().for_each(|element| check_text(element, 3000));
        }
        "markdown" => {
            let text = block["text"].as_str().unwrap();
            assert!(!text.trim().is_empty());
            assert!(!["<!", "<@", "<#"].iter().any(|token| text.contains(token)), "{text}");
        }
        "actions" => {
            let buttons = block["elements"].as_array().unwrap();
            assert!((1..=25).contains(&buttons.len()));
            assert!(length(block["block_id"].as_str().unwrap()) <= 255);
            let ids: HashSet<_> = buttons.iter().map(|button| button["action_id"].as_str().unwrap()).collect();
            assert_eq!(ids.len(), buttons.len());
            for button in buttons {
                check_text(&button["text"], 75);
                assert!((1..=2000).contains(&length(button["value"].as_str().unwrap())));
                if button["confirm"].is_object() {
                    for (part, limit) in [("title", 100), ("text", 300), ("confirm", 30), ("deny", 30)] {
                        check_text(&button["confirm"][part], limit);
                    }
                }
            }
        }
        "rich_text" => {
            for part in block["elements"].as_array().unwrap() {
                assert!(["rich_text_section", "rich_text_quote"].contains(&part["type"].as_str().unwrap()), "{part}");
                let texts = part["elements"].as_array().unwrap();
                assert!(!texts.is_empty());
                texts.iter().for_each(|text| assert!(!text["text"].as_str().unwrap().is_empty(), "{text}"));
            }
        }
        "table" => {
            let rows = block["rows"].as_array().unwrap();
            assert!((1..=100).contains(&rows.len()));
            for row in rows {
                assert!((1..=20).contains(&row.as_array().unwrap().len()));
                assert_eq!(row.as_array().unwrap().len(), rows[0].as_array().unwrap().len());
                for cell in row.as_array().unwrap() {
                    match cell["type"].as_str().unwrap() {
                        "raw_text" => assert!(!cell["text"].as_str().unwrap().is_empty()),
                        "rich_text" => assert!(!cell["elements"][0]["elements"].as_array().unwrap().is_empty()),
                        other => panic!("{other}"),
                    }
                }
            }
        }
        other => panic!("{other}"),
    }
}

fn check_text(object: &Value, limit: usize) {
    let text = object["text"].as_str().unwrap();
    assert!((1..=limit).contains(&length(text)), "{} of {limit}: {text}", length(text));
    assert!(!text.trim().is_empty());
    match object["type"].as_str().unwrap() {
        "plain_text" => {}
        "mrkdwn" => {
            assert_eq!(object["verbatim"], true);
            check_mrkdwn(text);
        }
        other => panic!("{other}"),
    }
}

/// Fails unless every `<` starts a token that the bot wrote.
fn check_mrkdwn(text: &str) {
    for (at, _) in text.match_indices('<') {
        let token = &text[at..];
        let inside = &token[1..token.find('>').expect("closed")];
        let person = inside.strip_prefix('@').is_some_and(|id| id.chars().all(|c| c.is_ascii_alphanumeric()));
        let moment = inside.starts_with("!date^1767225600^");
        let link = inside.starts_with("https://given.example/");
        assert!(person || moment || link, "`<{inside}>` in {text}");
    }
}
