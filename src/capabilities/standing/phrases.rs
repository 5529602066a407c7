//! Phrases for standing approvals: `allow up to 200 simulated users in Math Hints until Friday`, `list standing
//! approvals`, `revoke standing approval sa-1a2b3c`.

use std::sync::LazyLock;

use countersign_understanding::{
    lines::{Candidate, Lines},
    phrases::{Phrases, Stage, Utterance, Vocabulary},
    user_request::Interpretation,
    words::{Word, after, text},
};
use serde_json::Value;

/// Requests to let one person start and stop something.
const FOR_ONE: &str = "
$do = (start|stop|pause|resume|starting|stopping|start up|turn on|turn off|switch on|switch off)
$without = (without <how:asking>|(by|on) (himself|herself|themselves|her own|his own|their own)|alone|freely)
change grant_standing_approval
    (let|allow|permit) <who:word> [to] $do [and|or|and/or] [$do] <within:thing> $without [(until|till|through) <until:text>]
    (let|allow|permit) <who:word> [to] $do [and|or|and/or] [$do] <within:thing> [(until|till|through) <until:text>] $without
    <who:word> (may|can|should be able to|should be allowed to|is allowed to) $do [and|or|and/or] [$do] <within:thing> $without [(until|till|through) <until:text>]
";

/// The phrases for standing approvals.
pub(super) struct StandingApprovalPhrases;

impl Phrases for StandingApprovalPhrases {
    fn vocabulary(&self) -> Vocabulary {
        Vocabulary {
            lines: include_str!("phrases.txt"),
            greeting: "",
            about_others: true,
            ended_by: &[
                ("grant_standing_approval", "revoke the standing approval for “<within>”"),
                ("list_standing_approvals", "revoke the standing approval"),
            ],
            ..Vocabulary::new(&["approval", "approvals"])
        }
    }

    /// Asks about a standing approval for one person: it holds for everybody.
    fn read(&self, stage: Stage, utterance: Utterance<'_>) -> Option<Interpretation> {
        static LINES: LazyLock<Lines> = LazyLock::new(|| Lines::read(FOR_ONE).expect("the lines can be read"));
        let given = LINES.values_in(utterance, self, "").filter(|_| stage == Stage::First)?;
        let of = |key: &str| given.get(key).and_then(Value::as_str);
        let until = of("until").map(|until| format!(" until {until}")).unwrap_or_default();
        let how = of("how").map(|how| format!(" without {how}")).unwrap_or_default();
        let what = format!("allow starting and stopping “{}”{how}{until}", of("within")?);
        let question = "A standing approval isn't for one person: it covers everyone's starts and stops in this conversation, \
            up to a number and until a day. Should I ask for one?";
        Some(Interpretation::unclear(question, vec![what]))
    }

    /// Returns the id of a standing approval, such as `sa-1a2b3c`, for a slot of the kind `grant`, and what is not needed
    /// for one of the kind `asking`.
    fn slot(&self, kind: &str, utterance: Utterance<'_>) -> Vec<Candidate> {
        const ASKING: &str = "asking anyone every time|asking every time|asking each time|asking anyone|asking anybody|asking us|\
            asking me|asking first|asking|approval each time|approval every time|approvals|approval|approving|a card|cards|\
            confirmation|permission";
        let words = utterance.words;
        if kind == "asking" {
            let rest = ASKING.split('|').find_map(|said| after(words, said));
            let known = |rest: &[Word]| {
                let taken = words.len() - rest.len();
                Candidate::known(text(&words[..taken]), taken)
            };
            return rest.map(known).into_iter().collect();
        }
        let first = words.first().filter(|word| kind == "grant" && word.lower.starts_with("sa-"));
        first.map(|word| Candidate::known(word.text.clone(), 1)).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::StandingApprovalPhrases;
    use countersign_understanding::{
        checking::{check, check_offers},
        phrase_book::PhraseBook,
        situation::{Situation, Topic},
    };

    #[test]
    fn each_suggestion_is_read() {
        check_offers(
            &PhraseBook::default().with("standing approvals", &StandingApprovalPhrases).unwrap(),
            &Situation::default(),
        );
    }

    #[test]
    fn what_was_listed_or_granted_last_is_meant() {
        let book = PhraseBook::default().with("standing approvals", &StandingApprovalPhrases).unwrap();
        let after = |call: &str, parameters: &[(&str, &str)]| {
            let parameters = parameters.iter().map(|(key, value)| ((*key).to_owned(), (*value).into())).collect();
            let last = Topic { capability: "standing approvals".to_owned(), call: call.to_owned(), parameters };
            Situation { aside: Some(last), last_subject: Some("Chat Tone".to_owned()), ..Situation::default() }
        };
        let granted = after("grant_standing_approval", &[("within", "Math Hints"), ("what", "simulate")]);
        let revoked = r#"revoke_standing_approval {"id":"Math Hints"}"#;
        check(
            &book,
            &granted,
            &[
                ("revoke it", revoked),
                ("remove that approval", revoked),
                ("which ones do we have already", "read list_standing_approvals"),
            ],
        );
        let listed = after("list_standing_approvals", &[]);
        check(&book, &listed, &[("revoke it", "revoke_standing_approval {}"), ("revoke all of them", "unclear")]);
    }

    #[test]
    fn one_for_a_person_is_asked_about() {
        let book = PhraseBook::default().with("standing approvals", &StandingApprovalPhrases).unwrap();
        let all = |how: &str| format!("unclear: allow starting and stopping “math hints”{how} until friday");
        let granted = r#"grant_standing_approval {"until":"friday","what":"start_and_stop","within":"math hints"}"#;
        check(
            &book,
            &Situation::default(),
            &[
                ("let ana start and stop math hints without asking until friday", &all(" without asking")),
                ("let ana start and stop math hints until friday without approval", &all(" without approval")),
                ("permit bo to start or stop math hints on his own till friday", &all("")),
                ("allow starting and stopping “math hints” without asking until friday", granted),
            ],
        );
    }

    #[test]
    fn standing_approvals_are_granted_listed_and_revoked() {
        let simulate =
            r#"grant_standing_approval {"limit":200,"until":"Friday","what":"simulate","within":"Math Hints"}"#;
        check(
            &PhraseBook::default().with("standing approvals", &StandingApprovalPhrases).unwrap(),
            &Situation::default(),
            &[
                ("allow up to 200 simulated users in Math Hints until Friday", simulate),
                ("may simulate up to 200 users in Math Hints until Friday", simulate),
                ("you may simulate up to 200 users in “Math Hints” until Friday", simulate),
                ("please allow us to simulate 200 test users in Math Hints until Friday", simulate),
                ("grant a standing approval to simulate up to 200 users in Math Hints until Friday", simulate),
                ("standing approval for up to 200 simulated users in Math Hints until Friday", simulate),
                (
                    "allow at most 50 simulated users in assign-prog until 2027-01-15 09:00",
                    r#"grant_standing_approval {"limit":50,"until":"2027-01-15 09:00","what":"simulate","within":"assign-prog"}"#,
                ),
                (
                    "allow up to 5 starts and stops of Math Hints until Friday",
                    r#"grant_standing_approval {"limit":5,"until":"Friday","what":"start_and_stop","within":"Math Hints"}"#,
                ),
                (
                    "allow starting and stopping Math Hints until tomorrow",
                    r#"grant_standing_approval {"until":"tomorrow","what":"start_and_stop","within":"Math Hints"}"#,
                ),
                ("allow weight changes on math hints without asking until friday", "unclear"),
                ("revoke all standing approvals", "unclear"),
                ("grant a standing approval", "grant_standing_approval {}"),
                ("list standing approvals", "read list_standing_approvals"),
                ("show me the standing approvals", "read list_standing_approvals"),
                ("which standing approvals are there?", "read list_standing_approvals"),
                ("what may be done without asking?", "read list_standing_approvals"),
                ("revoke standing approval sa-1a2b3c", r#"revoke_standing_approval {"id":"sa-1a2b3c"}"#),
                ("revoke sa-1a2b3c", r#"revoke_standing_approval {"id":"sa-1a2b3c"}"#),
                ("end the standing approval for Math Hints", r#"revoke_standing_approval {"id":"Math Hints"}"#),
                ("revoke the standing approval", "revoke_standing_approval {}"),
            ],
        );
    }
}
