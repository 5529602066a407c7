//! Property tests: no text can break a message.

use proptest::prelude::*;

use super::*;

fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[a-z <>@!#|&*_~`\\[\\]():/.\n🦀]{0,200}",
        "(<!channel>|<@U1>|<https://evil.io\\|a>|[a-z ]|&lt;|```|\n){0,40}",
        (1_usize..3200, prop_oneof![Just("&"), Just("x"), Just("🦀"), Just("a b\n"), Just("`")])
            .prop_map(|(n, s)| s.repeat(n)),
    ]
}

fn span() -> impl Strategy<Value = Span> {
    prop_oneof![
        words().prop_map(Span::Plain),
        words().prop_map(Span::Bold),
        words().prop_map(Span::Italic),
        words().prop_map(Span::Quote),
        words().prop_map(Span::Code),
        words().prop_map(|id| Span::Person(
            id.chars().filter(|c| c.is_ascii_alphanumeric()).collect::<String>().as_str().into()
        )),
        Just(Span::Moment(Timestamp(1_767_225_600_000))),
        (words(), words()).prop_map(|(path, text)| Span::Link { url: format!("https://given.example/{path}"), text }),
        (words(), words()).prop_map(|(url, text)| Span::Link { url: format!("javascript:{url}"), text }),
    ]
}

fn text() -> impl Strategy<Value = Text> {
    prop::collection::vec(span(), 0..3).prop_map(Text)
}

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        text().prop_map(Part::Text),
        words().prop_map(Part::Heading),
        prop::collection::vec(text(), 0..12).prop_map(Part::List),
        prop::collection::vec((words(), text()), 0..15).prop_map(Part::Facts),
        (prop::collection::vec(words(), 0..23), prop::collection::vec(prop::collection::vec(text(), 0..23), 0..4))
            .prop_map(|(columns, rows)| Part::Table { columns, rows }),
        (0_usize..130, "[a-z<&]{0,9}".prop_map(Text::from))
            .prop_map(|(n, text)| Part::Table { columns: vec!["one".into()], rows: vec![vec![text]; n] }),
        words().prop_map(Part::Markdown),
        words().prop_map(Part::Code),
        text().prop_map(Part::Note),
    ]
}

fn any_reply() -> impl Strategy<Value = Reply> {
    let choice = (words(), words()).prop_map(|(label, says)| Choice { label, says });
    (prop::collection::vec(part(), 0..6), prop::collection::vec(choice, 0..28), 1_usize..10).prop_map(
        |(parts, choices, times)| Reply {
            parts: parts.iter().cycle().take(parts.len() * times).cloned().collect(),
            choices,
            ..Reply::default()
        },
    )
}

fn any_card() -> impl Strategy<Value = Card> {
    let fact =
        (words(), prop::option::of(text()), text()).prop_map(|(label, before, after)| Fact { label, before, after });
    (
        (words(), words(), words(), words()),
        prop::collection::vec(fact, 0..20),
        prop::collection::vec(text(), 0..5),
        prop::collection::vec(text(), 0..5),
        any::<bool>(),
    )
        .prop_map(|((title, approve, reject, done), facts, warnings, notes, irreversible)| Card {
            title,
            facts,
            warnings,
            notes,
            approve,
            reject,
            done,
            irreversible,
            editable: irreversible,
        })
}

fn any_state() -> impl Strategy<Value = CardState> {
    let at = Timestamp(1_767_225_600_000);
    prop_oneof![
        (words(), words(), 0_u32..3).prop_map(move |(deciders, digest, needed)| CardState::Open {
            approval: approval(),
            asked_by: "U0ANA".into(),
            deciders: deciders.into(),
            expires_at: at,
            digest,
            approved_by: vec!["U0BO".into(); needed.saturating_sub(1) as usize],
            needed,
            edited_by: vec!["U0CY".into(); needed as usize],
            because: (needed > 1).then(|| "Outside the envelope.".to_owned()),
            is_risky: false,
            ended_by: Default::default(),
            origin: (needed > 1).then(|| Text::from("Nobody mentioned it.")),
        }),
        (prop::option::of(meter()), any::<bool>()).prop_map(move |(meter, is_elsewhere)| {
            CardState::Running { by: vec!["U0BO".into(); 100], at, meter, is_elsewhere }
        }),
        (text(), prop::option::of(text()), words()).prop_map(|(decision, outcome, digest)| CardState::Closed {
            decision,
            asked_by: Some("U0ANA".into()),
            edited_by: vec!["U0CY".into(); 100],
            is_suggested: true,
            newer: outcome.is_none().then(|| Slot::new("card:a2")),
            outcome,
            digest,
            approval: Some(approval()),
            follow_ups: vec![
                FollowUp::Check,
                FollowUp::MarkDone,
                FollowUp::Again("Try again".into()),
                FollowUp::Abandon
            ],
        }),
    ]
}

fn meter() -> impl Strategy<Value = Meter> {
    let meter =
        |(done, seconds_left, note)| Meter { approval: approval(), done, total: 1000, seconds_left, note, asks: None };
    (0_u64..2000, any::<Option<u64>>(), text()).prop_map(meter)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn no_reply_is_refused_or_forged(any in any_reply()) {
        check(&reply(&any));
    }

    #[test]
    fn no_card_is_refused_or_forged(any in any_card(), state in any_state()) {
        let message = card(&any, &state);
        check(&message);
        let buttons = message.blocks.iter().any(|block| block["type"] == "actions");
        prop_assert_eq!(buttons, !matches!(state, CardState::Running { meter: None, .. }));
    }

    #[test]
    fn no_status_is_refused_or_forged(any in words()) {
        check(&status(&any));
    }
}
