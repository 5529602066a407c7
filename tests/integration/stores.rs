//! One suite for every store.
//!
//! A store joins by implementing [`fixture::Fixture`] and with one line: `store_suite!(redis, redis::Redis, 24);`. The
//! number is that of the sequences of random operations.
//! Each behaviour is an async function over any fixture, in the file of its part of the contract; the list of them is
//! the macro below. Start reading in `fixture.rs`.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod actions;
mod cluster;
mod cluster_load;
mod commits;
mod dead_letters;
mod files;
pub(crate) mod fixture;
mod inbox;
mod leases;
mod mailbox;
mod model;
mod operations;
mod outbox;
mod random;
mod records;
mod redis;
mod redis_commands;
mod redis_places;
mod restart;
mod shapes;
mod sqlite;
mod stream;
mod unreadable;

/// Runs every behaviour against one kind of store.
macro_rules! store_suite {
    ($store:ident, $fixture:ty, $cases:literal) => {
        mod $store {
            #[test]
            fn random_operations_agree_with_the_model() {
                $crate::stores::random::agrees_with_the_model::<$fixture>($cases);
            }

            $crate::stores::store_suite! { @tests $fixture,
                mailbox: [
                    a_message_wakes_its_thread,
                    a_repeat_is_recognised_by_any_of_its_keys,
                    keys_are_remembered_for_a_day,
                    messages_come_in_order_of_arrival,
                    messages_that_came_meanwhile_can_be_asked_for,
                    messages_can_be_looked_at_without_a_lease,
                    what_is_overheard_wakes_nobody,
                    being_addressed_shows_what_was_overheard,
                    what_was_overheard_is_forgotten_after_two_minutes,
                    a_thread_of_ours_is_woken_by_anybody,
                    every_kind_of_mail_comes_back_as_it_was,
                ],
                leases: [
                    one_worker_holds_a_thread,
                    a_thread_is_leased_with_what_arrives,
                    only_the_named_thread_is_leased,
                    a_thread_whose_lease_ran_out_is_taken_over,
                    who_lost_the_thread_cannot_write,
                    who_released_the_thread_cannot_write,
                    renewing_keeps_the_thread,
                    a_worker_that_dies_without_mail_is_replaced,
                    a_released_thread_sleeps,
                    a_thread_released_with_mail_is_ready_at_once,
                    a_thread_waits_until_its_time,
                    unread_mail_waits_with_its_thread,
                    mail_ends_a_wait,
                    the_longest_ready_goes_first,
                    many_workers_share_the_threads,
                    a_thread_belongs_to_the_graph_it_began_with,
                ],
                commits: [
                    a_step_counts_the_version_up,
                    a_write_without_a_step_leaves_the_version,
                    a_snapshot_takes_the_place_of_the_differences,
                    a_wrong_version_writes_nothing,
                    a_repeated_commit_changes_nothing,
                    a_repeated_commit_is_recognised_after_the_lease_is_lost,
                    a_repeated_apply_changes_nothing,
                    mail_in_a_change_wakes_the_thread,
                    acknowledged_messages_are_gone,
                    threads_do_not_mix,
                ],
                actions: [
                    an_action_is_found_by_each_of_its_names,
                    an_action_moves_one_way,
                    every_part_of_an_action_may_change,
                    a_wrong_revision_writes_nothing,
                    an_illegal_move_writes_nothing,
                    an_action_is_created_once,
                    an_action_that_does_not_exist_cannot_move,
                    one_bad_action_stops_the_whole_commit,
                    of_two_who_decide_one_wins,
                    actions_are_listed_newest_first,
                    an_action_is_found_under_its_labels,
                ],
                outbox: [
                    what_is_said_keeps_its_order,
                    one_message_of_a_thread_is_in_flight,
                    a_card_is_known_as_soon_as_it_is_posted,
                    a_card_is_forgotten_if_the_claim_was_lost,
                    what_a_step_says_is_claimed_with_it,
                    a_claim_that_is_given_back_was_not_tried,
                    what_was_claimed_together_may_arrive_one_by_one,
                    threads_speak_side_by_side,
                    only_the_named_thread_is_claimed,
                    a_message_waits_for_its_time,
                    a_slot_remembers_where_it_was_posted,
                    a_retry_waits_and_counts,
                    what_was_tried_often_holds_up_its_own_slot_only,
                    of_those_tried_often_the_one_that_waits_longest_goes,
                    what_was_postponed_counts_as_tried_often,
                    what_waits_is_found_with_the_time_it_was_to_be_sent,
                    what_was_deferred_was_not_tried,
                    what_was_put_back_and_what_came_after_it_become_one,
                    progress_that_was_put_back_gives_way_to_what_came_after_it,
                    a_dropped_message_is_gone,
                    a_void_claim_counts_as_an_attempt,
                    a_late_report_does_not_disturb_the_next_claim,
                    an_untried_message_takes_the_newer_words,
                    a_tried_message_keeps_its_words,
                    different_slots_do_not_replace_each_other,
                    progress_gives_way_to_what_is_newer,
                    progress_waits_for_everything_else,
                    progress_in_flight_stays,
                    tried_progress_goes_before_its_own_slot,
                    removing_what_was_never_posted_says_nothing,
                    removing_what_was_posted_empties_the_slot,
                    removing_what_may_be_posted_is_said,
                    every_kind_of_message_comes_back_as_it_was,
                    many_workers_share_the_outbox,
                ],
                dead_letters: [
                    a_failed_message_is_kept_and_can_be_sent_again,
                    something_newer_takes_the_place_of_a_dead_letter,
                    a_failed_message_is_not_kept_if_a_newer_one_waits,
                    an_entry_that_fails_waits_and_is_kept_in_the_end,
                    an_entry_that_arrives_claimed_counts_as_claimed,
                    a_claim_holds_until_it_is_over,
                    whoever_lost_a_claim_changes_nothing_but_says_what_arrived,
                    a_slot_remembers_the_card_that_it_shows,
                    dead_letters_go_with_their_thread_and_with_time,
                ],
                inbox: [
                    entries_are_claimed_oldest_first,
                    a_claimed_entry_is_given_once,
                    an_entry_can_arrive_claimed,
                    a_claim_that_ran_out_is_given_again,
                    a_repeated_entry_is_dropped,
                    an_entry_is_dealt_with_by_a_change,
                    an_entry_is_dealt_with_as_it_arrives,
                    a_due_timer_is_put_in_the_inbox_once,
                    a_timer_can_be_moved_and_cleared,
                    timers_of_two_threads_share_a_key,
                ],
                records: [
                    steps_are_listed_in_order,
                    the_record_is_chained,
                    a_forged_record_shows,
                    threads_are_listed_newest_change_first,
                    bytes_are_kept_under_their_hash,
                    bytes_may_be_kept_for_a_time_only,
                    bytes_put_again_are_kept_for_longer,
                    a_register_is_set_by_whoever_knows_how_it_stands,
                    of_many_who_count_in_a_register_none_is_lost,
                    a_typed_register_begins_with_the_default,
                    a_change_of_a_register_is_made_again_after_another_one,
                    a_change_of_a_register_that_fails_writes_nothing,
                    of_two_processes_none_spends_what_the_other_did,
                    finished_threads_are_found_oldest_first,
                    a_thread_that_somebody_has_to_do_with_is_not_finished,
                    a_forgotten_thread_goes_on_from_what_stays,
                    a_record_can_be_kept_with_its_words_hidden,
                    a_whole_thread_can_be_dropped,
                    a_file_goes_with_the_last_thread_that_shows_it,
                    a_file_of_whole_threads_is_dropped_with_them,
                    the_store_says_what_it_is,
                ],
                unreadable: [
                    an_unreadable_message_holds_up_no_other,
                    an_unreadable_message_that_came_meanwhile_holds_up_no_other,
                    a_message_waits_for_a_program_that_can_read_it,
                    a_thread_with_a_message_set_aside_is_not_finished,
                    an_unreadable_interaction_holds_up_no_other,
                    an_entry_of_an_unknown_kind_is_kept_for_a_newer_program,
                    an_unreadable_outgoing_message_holds_up_no_other,
                    an_unreadable_action_hides_no_other,
                    an_action_of_a_newer_program_is_not_misread,
                    an_unreadable_line_of_the_record_hides_no_other,
                    an_unreadable_checkpoint_keeps_no_thread_from_being_leased,
                    an_unreadable_step_hides_no_other,
                ],
                stream: [
                    a_stream_loses_nothing_whoever_dies,
                    one_process_at_a_time_sends,
                    a_clock_that_is_set_back_hides_no_entry,
                ],
                restart: [
                    everything_outlives_the_process,
                    claims_and_leases_outlive_the_process,
                ],
            }
        }
    };
    (@tests $fixture:ty, $($part:ident: [$($behaviour:ident),* $(,)?],)*) => {
        $(mod $part {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $behaviour() {
                use $crate::stores::fixture::Fixture as _;
                $crate::stores::$part::$behaviour(<$fixture>::fresh().await).await;
            })*
        })*
    };
}
use store_suite;

store_suite!(on_redis, crate::stores::redis::Redis, 24);
store_suite!(on_redis_cluster, crate::stores::cluster::Cluster, 12);
store_suite!(on_sqlite, crate::stores::sqlite::Sqlite, 24);
