//! Tests of the production graph on the engine and a store, with a scripted model and stand-ins for the account and the
//! sources of context.
//!
//! The faults of the reference that the contract lists, and the tests that they are not ours:
//!
//! | | fault | test |
//! | --- | --- | --- |
//! | D | threshold 0.8 or 0.9 | `rules::the_line_is_drawn_at_the_threshold_itself`, `rules::a_class_has_its_own_threshold` |
//! | D | a rejected mail becomes pending | `flow::a_rejected_mail_is_rejected` |
//! | D | unsure spam skips the rest | `flow::unsure_spam_is_drafted_without_tools_and_asks` |
//! | R | a waiting mail is stored as drafted, sure spam as well | `flow::a_mail_that_waits_needs_review`, `flow::sure_spam_ends_at_once` |
//! | R | the trace id given is not the run's | `records::one_run_has_one_trace_id` |
//! | R | two rows for one step, empty input states | `records::each_step_is_recorded_once_with_the_state_before_and_after` |
//! | R | every automatic answer fails | `flow::a_sure_inquiry_is_sent_by_the_setting` |
//! | R | replies begin a new conversation | `sending::an_answer_stays_in_its_conversation` |
//! | R | the second run after an automatic answer hangs | `flow::two_automatic_answers_follow_each_other` |
//! | R | the draft is made before its text exists | `sending::the_draft_is_made_when_it_is_sent` |
//! | R | a failed classification is only logged | `failures::without_a_class_nothing_is_sent` |
//! | C | an empty reply is sent with a sure class | `failures::an_empty_draft_is_never_sent` |
//! | R | a time-out writes no rows | `failures::a_run_that_takes_too_long_is_recorded_and_asks` |
//! | R | retrieval finds nothing: the contact is looked up by the whole sender field | `flow::the_contact_is_looked_up_by_the_address` |
//! | R | the calendar's methods are named differently by its callers | `flow::a_meeting_request_reads_the_calendar` |
//! | C | every error of the server is retried | the tests of the account clients |
//! | C | bulk classification rejects unsure spam | `flow::unsure_spam_is_drafted_without_tools_and_asks`: there is one line for all |
//! | C | a rejected mail may be processed again and asks again | `flow::a_rejected_mail_can_be_drafted_again_and_asks` |
//! | C | percentiles are rounded down | the report's own tests |
//! | C | approval ignores the version that was seen | `sending::an_older_version_is_not_sent` |

mod failures;
pub(crate) mod fakes;
mod flow;
mod records;
mod sending;
pub(crate) mod support;
mod surroundings;
mod syncing;
mod talking;
