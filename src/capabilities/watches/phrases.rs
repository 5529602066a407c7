//! The phrases about watches: `tell me when Math Hints reaches 500 users`, `post a digest here every Monday 9am`, `what are
//! you watching?`, `stop watching Math Hints`.

use countersign_understanding::{
    dates,
    lines::Candidate,
    phrases::{Phrases, Utterance, Vocabulary},
    words::{Word, after, lower},
};

use super::{
    schedule,
    tools::{DIGEST, SHOW},
};

/// The maximum number of words that name days: “every”, seven days, five commas and “and”.
const MAX_DAY_WORDS: usize = 14;

/// The phrases about watches.
pub(super) struct OfWatches;

impl Phrases for OfWatches {
    fn vocabulary(&self) -> Vocabulary {
        Vocabulary {
            lines: include_str!("phrases.txt"),
            help: "*Watch*\n\
         • “tell me when Math Hints reaches 500 users”, “tell me when it ends”\n\
         • “tell me if the split of Math Hints looks wrong”\n\
         • “post a digest here every Monday 9am”\n\
         • “what are you watching?”, “stop watching Math Hints”",
            // A thread is about the things that are watched.
            greeting: "",
            about_others: true,
            ended_by: &[("watch", "stop watching “<thing>”"), ("schedule_digest", "stop the digest <days>")],
            subjects: &["thing"],
            ..Vocabulary::new(&["watch", "watches"])
        }
    }

    fn slot(&self, kind: &str, Utterance { words, situation, .. }: Utterance<'_>) -> Vec<Candidate> {
        match kind {
            // No words: the last call was about a digest.
            "of-digest" => {
                let last = situation.aside.as_ref().filter(|last| [DIGEST, SHOW].contains(&last.call.as_str()));
                last.map(|_| Candidate::known(serde_json::Value::Null, 0)).into_iter().collect()
            }
            "days" => days(words),
            "time-of-day" => time_of_day(words),
            "part-of-day" => part_of_day(words),
            _ => Vec::new(),
        }
    }
}

/// Returns the days that some words name, such as `every Monday`.
fn days(words: &[Word]) -> Vec<Candidate> {
    let most = words.len().min(MAX_DAY_WORDS);
    let named = |length: usize| {
        let text = lower(&words[..length]);
        schedule::days(&text).map(|_| Candidate::known(text, length))
    };
    (1..=most).filter_map(named).collect()
}

/// Returns the time of day with which these words begin: `9am`, `at 9:30`, `noon`. A time zone after it holds for the whole
/// message, so it is in the [`Reader`](countersign_graph::action::Reader).
fn time_of_day(words: &[Word]) -> Vec<Candidate> {
    let found = dates::time(words);
    let known = found.map(|(time, rest)| Candidate::known(time, words.len() - dates::without_zone(rest).len()));
    known.into_iter().collect()
}

/// Returns the time that a part of the day with which these words begin stands for: 9am for “morning”.
fn part_of_day(words: &[Word]) -> Vec<Candidate> {
    const PARTS: &[(&str, &str)] = &[
        ("first thing in the morning|in the morning|in the mornings|early morning|morning|mornings", "9am"),
        ("at lunchtime|at lunch|lunchtime|at midday|midday|at noon|noon", "12pm"),
        ("in the afternoon|in the afternoons|late afternoon|afternoon|afternoons", "3pm"),
        ("in the evening|in the evenings|at night|evening|evenings|night|nights", "6pm"),
    ];
    let known = |(said, time): &(&str, &str)| {
        let rest = after(words, said)?;
        Some(Candidate::known(*time, words.len() - rest.len()))
    };
    PARTS.iter().find_map(known).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::OfWatches;
    use countersign_understanding::{
        checking::{check, check_offers},
        phrase_book::PhraseBook,
        situation::{Situation, Topic},
        user_request::UserRequest,
    };

    fn book() -> PhraseBook {
        PhraseBook::default().with("watches", &OfWatches).unwrap()
    }

    #[test]
    fn each_suggestion_is_read() {
        check_offers(&book(), &Situation::default());
    }

    #[test]
    fn the_time_of_a_digest_is_changed_alone() {
        let parameters = [("days", "every Tuesday"), ("time", "9am")];
        let parameters = parameters.map(|(key, value)| (key.to_owned(), value.into()));
        let call = "schedule_digest".to_owned();
        let topic = Topic { capability: "watches".to_owned(), call, parameters: parameters.into_iter().collect() };
        check(
            &book(),
            &Situation { aside: Some(topic), ..Situation::default() },
            &[
                ("make it 10", r#"read schedule_digest {"days":"every Tuesday","instead":true,"time":"10"}"#),
                ("make that 10am", r#"read schedule_digest {"days":"every Tuesday","instead":true,"time":"10am"}"#),
                ("9:30", r#"read schedule_digest {"days":"every Tuesday","instead":true,"time":"9:30"}"#),
                ("8am would be better", r#"read schedule_digest {"days":"every Tuesday","instead":true,"time":"8am"}"#),
                (
                    "actually wednesdays are better",
                    r#"read schedule_digest {"days":"wednesdays","instead":true,"time":"9am"}"#,
                ),
                ("rather fridays", r#"read schedule_digest {"days":"fridays","instead":true,"time":"9am"}"#),
                ("turn it off", r#"read stop_watching {"days":"every tuesday","what":"digest"}"#),
                ("stop that again", r#"read stop_watching {"days":"every tuesday","what":"digest"}"#),
                ("delete that digest", r#"read stop_watching {"days":"every tuesday","what":"digest"}"#),
                ("what will be in it?", "read show_digest"),
                ("give me one now", "read show_digest"),
                ("put it in this channel, not dm", "unclear"),
                ("purple", "unclear"),
                ("and every Friday?", r#"read schedule_digest {"days":"every friday","time":"9am"}"#),
            ],
        );
    }

    #[test]
    fn the_last_watch_is_meant_before_things() {
        let parameters = [("event", "reaches".into()), ("number", 500.into()), ("thing", "Math Hints".into())];
        let parameters = parameters.map(|(key, value): (_, serde_json::Value)| (key.to_owned(), value));
        let topic = Topic {
            capability: "watches".to_owned(),
            call: "watch".to_owned(),
            parameters: parameters.into_iter().collect(),
        };
        let situation =
            Situation { aside: Some(topic), last_subject: Some("Math Hints".to_owned()), ..Situation::default() };
        let ended = r#"read stop_watching {"thing":"Math Hints"}"#;
        check(
            &book(),
            &situation,
            &[
                ("turn it off", ended),
                ("remove the watch", ended),
                ("drop the Math Hints one", ended),
                ("make it 400", r#"read watch {"event":"reaches","instead":true,"number":400,"thing":"Math Hints"}"#),
                ("does bo get those pings too?", "read list_watches"),
            ],
        );
    }

    #[test]
    fn watches_are_begun_listed_and_stopped() {
        let reaches = r#"read watch {"event":"reaches","number":500,"thing":"Math Hints"}"#;
        let of = |event: &str| format!(r#"read watch {{"event":"{event}","thing":"Math Hints"}}"#);
        let (starts, pauses, ends, split) = (of("starts"), of("pauses"), of("ends"), of("split_looks_wrong"));
        check(
            &book(),
            &Situation::default(),
            &[
                ("tell me when Math Hints reaches 500 users", reaches),
                ("let me know when Math Hints reaches 500 users", reaches),
                ("notify me once “Math Hints” has 500 participants", reaches),
                ("please tell us when Math Hints hits 500", reaches),
                ("watch Math Hints until it reaches 500 users", reaches),
                ("watch Math Hints and tell me when it reaches 500 users", reaches),
                ("follow Math Hints and let me know when it ends", &ends),
                ("tell me when Math Hints starts", &starts),
                ("let me know when Math Hints is started", &starts),
                ("tell me when Math Hints pauses", &pauses),
                ("tell me when Math Hints ends", &ends),
                ("let me know when Math Hints is over", &ends),
                ("ping me when Math Hints has ended", &ends),
                ("tell me if the split of Math Hints looks wrong", &split),
                ("let me know if Math Hints's split looks wrong", &split),
                ("warn me if the split of Math Hints is off", &split),
                ("let me know if anyone stops Math Hints", &ends),
                ("what are you watching?", "read list_watches"),
                ("what am i watching right now", "read list_watches"),
                ("how often do you check?", r#"read list_watches {"how_often":true}"#),
                ("how frequently are experiments checked?", r#"read list_watches {"how_often":true}"#),
                ("what are you keeping an eye on for me?", "read list_watches"),
                ("what is in the digest?", "read show_digest"),
                ("list my watches", "read list_watches"),
                ("show the watches", "read list_watches"),
                ("stop watching Math Hints", r#"read stop_watching {"thing":"Math Hints"}"#),
                ("stop watching everything", r#"read stop_watching {"what":"everything"}"#),
                ("stop the watch", r#"read stop_watching {"what":"watch"}"#),
                ("stop the digest", r#"read stop_watching {"what":"digest"}"#),
                ("turn off the digest", r#"read stop_watching {"what":"digest"}"#),
                ("stop posting the digest here", r#"read stop_watching {"what":"digest"}"#),
                ("forget the weekly digest", r#"read stop_watching {"days":"weekly","what":"digest"}"#),
                ("cancel the Monday digest", r#"read stop_watching {"days":"monday","what":"digest"}"#),
                (
                    "stop the digest every Monday, Tuesday, Wednesday and Friday at 9:00 AM",
                    r#"read stop_watching {"days":"every monday tuesday wednesday and friday","time":"9:00am","what":"digest"}"#,
                ),
                ("no more digests", r#"read stop_watching {"what":"digests"}"#),
                ("forget the watch on Math Hints", r#"read stop_watching {"thing":"Math Hints"}"#),
            ],
        );
    }

    #[test]
    fn digests_are_asked_for_with_days_and_a_time() {
        check(
            &book(),
            &Situation::default(),
            &[
                ("post a digest here every Monday 9am", r#"read schedule_digest {"days":"every monday","time":"9am"}"#),
                (
                    "post a digest here every Monday at 9:00",
                    r#"read schedule_digest {"days":"every monday","time":"9:00"}"#,
                ),
                ("send a digest every day at noon", r#"read schedule_digest {"days":"every day","time":"noon"}"#),
                ("post a digest every day at 9am ET", r#"read schedule_digest {"days":"every day","time":"9am"}"#),
                ("post a weekly digest", r#"read schedule_digest {"days":"weekly"}"#),
            ],
        );
    }

    #[test]
    fn a_part_of_the_day_is_a_time() {
        let digest = |days: &str, time: &str| format!(r#"read schedule_digest {{"days":"{days}","time":"{time}"}}"#);
        check(
            &book(),
            &Situation::default(),
            &[
                ("can i get a summary every monday morning", &digest("every monday", "9am")),
                ("send me a summary every friday afternoon", &digest("every friday", "3pm")),
                ("we want a report on weekdays in the evening", &digest("weekdays", "6pm")),
                ("every tuesday at lunchtime post an overview here", &digest("every tuesday", "12pm")),
                ("send me a summary every other friday", "unclear"),
            ],
        );
    }

    #[test]
    fn the_first_user_and_the_end_of_enrollment_are_watched() {
        let first = r#"read watch {"event":"reaches","number":1,"thing":"Math Hints"}"#;
        let ends = r#"read watch {"event":"ends","thing":"Math Hints"}"#;
        check(
            &book(),
            &Situation::default(),
            &[
                ("let me know if Math Hints gets its first student", first),
                ("tell me when the first user joins Math Hints", first),
                ("ping me as soon as somebody enrolls in Math Hints", first),
                ("tell me when Math Hints reaches 1 user", first),
                ("tell me when enrolment in Math Hints stops", ends),
                ("let me know once Math Hints enrollment ends", ends),
            ],
        );
        let last = Topic { capability: "watches".to_owned(), call: "watch".to_owned(), ..Topic::default() };
        let situation = Situation { aside: Some(last), ..Situation::default() };
        check(
            &book(),
            &situation,
            &[
                ("and one for Math Hints when enrolment stops", ends),
                ("another one for Math Hints once it ends", ends),
                ("also one for Math Hints when it gets its first student", first),
            ],
        );
    }

    #[test]
    fn what_a_watch_or_a_digest_cannot_do_is_said() {
        let after = |call: &str| {
            let last = Topic { capability: "watches".to_owned(), call: call.to_owned(), ..Topic::default() };
            Situation { aside: Some(last), ..Situation::default() }
        };
        for (call, said, answer) in [
            ("watch", "can you also ping Bo?", "I post in this thread"),
            ("watch", "let bo know too", "I post in this thread"),
            ("schedule_digest", "only running ones please", "A digest always lists"),
            ("schedule_digest", "can it leave out small ones?", "A digest always lists"),
        ] {
            let found = book().understand(&Situation { said: said.to_owned(), ..after(call) });
            let UserRequest::Unclear { question, .. } = found.user_request else { panic!("“{said}” is answered") };
            assert!(question.starts_with(answer), "{said}: {question}");
        }
    }

    #[test]
    fn it_is_the_last_subject() {
        let situation = Situation { last_subject: Some("Math Hints".to_owned()), ..Situation::default() };
        check(
            &book(),
            &situation,
            &[
                ("tell me when it ends", r#"read watch {"event":"ends","thing":"Math Hints"}"#),
                (
                    "tell me if its split looks wrong",
                    r#"read watch {"event":"split_looks_wrong","thing":"Math Hints"}"#,
                ),
                ("stop watching it", r#"read stop_watching {"thing":"Math Hints"}"#),
                ("stop watching", r#"read stop_watching {"thing":"Math Hints"}"#),
            ],
        );
    }
}
