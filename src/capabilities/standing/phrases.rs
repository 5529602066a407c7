//! Phrases for standing approvals: `allow up to 200 simulated users in Math Hints until Friday`, `list standing
//! approvals`, `revoke standing approval sa-1a2b3c`.

use countersign_understanding::{
    lines::Candidate,
    phrases::{Phrases, Utterance, Vocabulary},
};

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

    /// Returns the id of a standing approval, such as `sa-1a2b3c`, for a slot of the kind `grant`.
    fn slot(&self, kind: &str, utterance: Utterance<'_>) -> Vec<Candidate> {
        let first = utterance.words.first().filter(|word| kind == "grant" && word.lower.starts_with("sa-"));
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
