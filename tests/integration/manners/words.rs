//! Whatever anybody writes, drawn in every way there is.

use countersign::{
    conversation::presentation::render,
    reply::{Card, CardState, Choice, Part, Reply, Span, Text},
};
use proptest::{prelude::*, test_runner::Config};
use serde_json::{Value, json};

use super::judge;

/// What people, models and other systems write when they are careless or up to something.
pub(super) const TRICKS: [&str; 44] = [
    "<!channel>",
    "<!here|x>",
    "<!everyone>",
    "<!subteam^S1>",
    "<@U1>",
    "<#C1|general>",
    "<https://evil.example|https://bank.example>",
    "<mailto:a@evil.example|mail>",
    "&lt;!channel&gt;",
    "&#60;!channel>",
    "https://evil.example/a_(b)?x=1&y=2#z",
    "HTTP://EVIL.EXAMPLE",
    "www.evil.com",
    "evil.com/path",
    "ana@evil.com",
    "javascript:alert(1)",
    "data:text/html,<b>",
    "[bank](https://evil.example)",
    "[https://bank.example](https://evil.example \"title\")",
    "![x](https://evil.example/pixel.png)",
    "[a][1]\n\n[1]: https://evil.example",
    "[a](<https://evil.example>)",
    "https\\://evil.example",
    "`",
    "``",
    "```",
    "````",
    "~~~",
    "\n```js\n",
    "*",
    "**bold**",
    "_",
    "~",
    "\\",
    "\u{200b}",
    "\u{202e}",
    "\u{2066}",
    "\u{0}",
    "\r\n",
    "\n\n",
    "> quote",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "- point",
    "🦀🇩🇪é",
];

/// A text made of tricks, words and whatever there is.
pub(super) fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        6 => prop::sample::select(TRICKS.to_vec()).prop_map(str::to_owned),
        3 => "[a-z ]{0,12}",
        1 => any::<String>(),
        1 => (1_usize..2_500, prop::sample::select(vec!["x", "&", "<", "🦀", "`", "a b\n", "* "])).prop_map(|(n, s)| s.repeat(n)),
    ];
    prop::collection::vec(piece, 0..10).prop_map(|pieces| pieces.concat())
}

fn text() -> impl Strategy<Value = Text> {
    let span = prop_oneof![
        hostile().prop_map(Span::Plain),
        hostile().prop_map(Span::Bold),
        hostile().prop_map(Span::Italic),
        hostile().prop_map(Span::Code),
        (hostile(), hostile()).prop_map(|(path, text)| Span::Link { url: format!("{}{path}", judge::GIVEN), text }),
        (hostile(), hostile()).prop_map(|(rest, text)| Span::Link { url: format!("javascript:{rest}"), text }),
    ];
    prop::collection::vec(span, 0..3).prop_map(Text)
}

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        text().prop_map(Part::Text),
        hostile().prop_map(Part::Heading),
        prop::collection::vec(text(), 0..30).prop_map(Part::List),
        prop::collection::vec((hostile(), text()), 0..15).prop_map(Part::Facts),
        (prop::collection::vec(hostile(), 0..4), prop::collection::vec(prop::collection::vec(text(), 0..4), 0..30))
            .prop_map(|(columns, rows)| Part::Table { columns, rows }),
        hostile().prop_map(Part::Markdown),
        prop::collection::vec(hostile(), 0..20).prop_map(|all| Part::Markdown(all.join("\n"))),
        hostile().prop_map(Part::Code),
        text().prop_map(Part::Note),
    ]
}

fn reply() -> impl Strategy<Value = Reply> {
    let choice = (hostile(), hostile()).prop_map(|(label, says)| Choice { label, says });
    (prop::collection::vec(part(), 0..5), prop::collection::vec(choice, 0..4)).prop_map(|(parts, choices)| Reply {
        parts,
        choices,
        ..Reply::default()
    })
}

/// A card as it is stored: fields that it gains later have what they have by default.
fn card() -> impl Strategy<Value = Card> {
    let fact = (hostile(), prop::option::of(text()), text());
    (
        (hostile(), hostile(), hostile(), any::<bool>()),
        prop::collection::vec(fact, 0..8),
        prop::collection::vec(text(), 0..3),
        prop::collection::vec(text(), 0..3),
    )
        .prop_map(|((title, approve, reject, irreversible), facts, warnings, notes)| {
            let facts: Vec<Value> = facts
                .into_iter()
                .map(|(label, before, after)| match before {
                    Some(before) => json!({ "label": label, "before": before, "after": after }),
                    None => json!({ "label": label, "after": after }),
                })
                .collect();
            let card = json!({
                "title": title, "facts": facts, "warnings": warnings, "notes": notes, "approve": approve,
                "reject": reject, "done": title, "irreversible": irreversible,
            });
            serde_json::from_value(card).unwrap()
        })
}

fn states(words: &Text) -> Vec<CardState> {
    let approval = "0800000000000000000000000000000007";
    let at = 1_767_225_600_000_i64;
    let state = |state: Value| serde_json::from_value(state).unwrap();
    vec![
        state(json!({
            "state": "open", "approval": approval, "asked_by": "U1", "deciders": words, "expires_at": at,
            "digest": "1a2b3c4d", "approved_by": ["U2"], "needed": 2,
        })),
        state(json!({ "state": "running", "by": ["U2"], "at": at })),
        state(json!({
            "state": "running", "by": ["U2"], "at": at,
            "meter": { "approval": approval, "done": 5, "total": 9, "seconds_left": 3, "note": words },
        })),
        state(json!({ "state": "closed", "decision": words, "outcome": words, "digest": "1a2b3c4d" })),
    ]
}

fn sent(message: &countersign::slack::blocks::Message) -> Value {
    json!({ "text": message.text, "blocks": message.blocks })
}

fn cases(cases: u32) -> Config {
    Config { cases, failure_persistence: None, max_shrink_iters: 100, ..Config::default() }
}

proptest! {
    #![proptest_config(cases(40))]

    #[test]
    fn no_answer_calls_leads_or_breaks(any in reply()) {
        judge::message(&sent(&render::reply(&any)));
        for chunk in render::chunks(any) {
            judge::message(&sent(&render::reply(&chunk)));
        }
    }

    #[test]
    fn no_card_calls_leads_or_breaks(any in card(), words in text()) {
        for state in states(&words) {
            judge::message(&sent(&render::card(&any, &state)));
        }
    }
}

proptest! {
    #![proptest_config(cases(250))]

    #[test]
    fn no_model_calls_or_leads(any in hostile()) {
        judge::message(&sent(&render::reply(&Reply::markdown(any.clone()).hint("x"))));
        judge::message(&sent(&render::status(&any)));
    }
}

#[test]
fn a_long_name_is_short_in_a_title_and_a_list_and_whole_once() {
    let name = "Hint Timing ".repeat(30);
    let list = render::reply(&Reply::default().and(Part::List(vec![Text::new().bold(name.clone())])));
    let shown = list.blocks[0]["text"]["text"].as_str().unwrap();
    assert!(shown.chars().count() < 100 && shown.ends_with("…*"), "{shown}");
    let title = format!("Start “{name}”?");
    let card: Card = serde_json::from_value(json!({
        "title": title, "facts": [], "approve": "Start", "reject": "Cancel request", "done": "", "irreversible": false,
    }))
    .unwrap();
    let drawn = render::card(&card, &states(&"x".into())[0]);
    let lines: Vec<_> = drawn.blocks.iter().filter_map(|block| block["text"]["text"].as_str()).collect();
    assert!(lines[0].starts_with("*Start “Hint Timing") && lines[0].ends_with("…”?*"), "{lines:?}");
    assert!(lines[0].chars().count() < 110, "{}", lines[0]);
    assert!(lines[1].starts_with("*In full*") && lines[1].contains(name.trim()), "{lines:?}");
}
