//! One suite for every backend (store §3): each function is a rule, run against an empty store.
//!
//! A backend's tests call [`conformance!`](crate::conformance!) with a function that makes one.

mod asks;
mod erasure;
mod extras;
mod import;
mod leases;
mod lists;
mod locks;
mod log;
mod notices;
mod outbox;
mod rows;
mod search;
mod storm;
mod swapped;
mod tenants;
mod wakes;

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use portcullis_event::{Chain, Event};
use portcullis_store::{Head, SessionKey, Store};

pub use asks::*;
pub use erasure::*;
pub use extras::*;
pub use import::*;
pub use leases::*;
pub use lists::*;
pub use locks::*;
pub use log::*;
pub use notices::*;
pub use outbox::*;
pub use rows::*;
pub use search::*;
pub use storm::*;
pub use swapped::*;
pub use tenants::*;
pub use wakes::*;

use crate::World;

/// How long a lease of the suite lasts.
const TTL: Duration = Duration::from_secs(30);

/// A store under test, and whatever must live as long as it does.
pub struct Backend {
    pub store: Arc<dyn Store>,
    _keep: Box<dyn Any + Send + Sync>,
}

impl Backend {
    /// `keep` is dropped after the store: a temporary folder, for example.
    pub fn new(store: Arc<dyn Store>, keep: impl Any + Send + Sync) -> Self {
        Self { store, _keep: Box::new(keep) }
    }
}

/// Makes an empty store of a world.
pub type Make = fn(&World) -> Backend;

/// Makes one test of every rule of the suite, named after it.
#[macro_export]
macro_rules! conformance {
    ($make:expr) => {
        $crate::conformance! { @rules $make;
            s01_seqs_have_no_gap_under_clients_and_a_worker
            s02_the_chain_verifies_and_ends_in_the_head
            s03_fences_rise_and_belong_to_one_worker
            s04_older_fence_never_commits
            s05_a_reader_never_sees_a_gap
            s07_an_intent_starts_once_and_is_observed_once
            s10_two_answers_one_wins
            s10_racing_answers_have_one_winner
            s10_an_expired_ask_takes_no_answer
            s10_an_unknown_ask_takes_no_answer
            h18_a_terminated_session_takes_no_input
            a_decision_made_on_an_older_log_is_not_committed
            s11_a_release_does_not_forget_what_came_meanwhile
            s11_an_ask_that_is_closed_unanswered_makes_its_session_due
            s12_work_put_off_is_due_later_or_when_somebody_speaks
            s12_input_makes_a_session_due_and_a_block_holds_it
            s12_claim_takes_due_sessions_only
            s12_a_wake_is_due_at_its_time_and_taken_up_once
            s12_of_equal_wakes_the_first_stays_and_the_earlier_time_wins
            s11_a_release_remembers_pending_wakes
            s11_what_a_dead_holder_left_is_due_whatever_it_did
            s12_claim_takes_the_most_urgent_first_and_age_counts
            f13_a_flooding_tenant_leaves_the_others_their_share
            f13_low_priority_is_served_although_urgent_work_never_ends
            f18_a_clock_that_jumps_loses_no_wake_and_lets_no_old_fence_write
            s11_a_sweep_makes_sessions_with_expired_asks_due
            s17_a_response_is_forgotten_after_a_day
            the_failures_of_wakes_are_counted_in_a_row
            a_session_plans_only_so_many_wakes
            s13_a_blob_is_readable_with_its_append
            s14_no_call_reaches_another_tenant
            s15_rows_equal_the_fold
            s15_a_settled_intent_keeps_no_sealed_value
            reads_list_what_a_commit_looks_up
            s15_the_end_of_a_task_leaves_its_intent_settled
            s16_a_snapshot_is_kept_by_code_version
            s17_an_idempotent_request_takes_effect_once
            s17_a_request_outside_sessions_is_one_commit_of_events_records_and_response
            l72_an_unknown_type_survives_unchanged
            check06_l75_with_two_workers_only_the_newest_fence_writes
            a_stale_expected_seq_is_chained_after_the_client
            check01_a_repeated_append_is_a_no_op
            check03_events_stand_in_the_order_of_their_appends_whatever_their_times_say
            a_refused_commit_leaves_nothing
            clients_and_deliveries_append_only_the_types_that_are_theirs
            a_session_is_created_once_and_needs_its_creation
            an_oversized_append_is_refused
            an_entry_that_its_log_refuses_holds_up_no_other_log
            the_outbox_is_delivered_exactly_once
            the_outbox_creates_and_seeds_a_session_once
            f02_a_crash_between_delivery_and_removal_delivers_once
            each_delivered_event_takes_effect_once_by_its_own_key
            deliveries_to_one_log_share_an_append
            an_entry_that_cannot_be_delivered_is_not_taken
            a_webhook_is_claimed_by_one_sender_when_it_is_due
            the_ledger_names_sessions_and_checkpoints
            a_lock_excludes_its_ancestors_and_descendants
            a_lock_is_freed_only_by_its_session
            l42_racing_takers_of_a_folder_and_what_is_in_it_have_one_winner
            f05_a_lost_key_excludes_everybody_until_its_grace_is_over
            f05_no_lost_key_stays_when_the_clock_is_set_back
            a_live_owner_is_held_and_a_dead_one_taken_over
            a_lease_runs_out_by_the_clock
            renew_and_release_know_their_fence
            a_head_is_changed_by_column
            records_have_versions
            records_ride_with_a_commit_or_not_at_all
            artifacts_are_counted_once_by_content
            changes_move_after_a_commit
            only_the_readers_of_a_session_wake_for_it
            a_listener_hears_of_its_topic_only
            lists_are_newest_first_without_reserved_logs
            sessions_are_listed_by_every_condition
            a_list_is_not_disturbed_by_what_is_written_meanwhile
            asks_are_listed_by_every_condition
            unknown_outcomes_are_listed_until_they_are_resolved
            records_are_listed_by_their_declared_fields
            s14_a_cursor_of_another_list_is_refused
            s14_no_list_holds_anything_of_another_tenant
            an_erased_session_is_in_no_list
            f15_an_imported_log_has_equal_digests_and_rows
            an_import_is_whole_and_true_or_nothing
            an_import_replaces_no_row_of_another_session
            search_finds_whole_words_newest_first_once_taken_in
            search_takes_any_text_as_words
            s14_search_reaches_no_other_tenant
            f17_a_tenant_cannot_tell_that_there_is_another
            an_erased_session_keeps_its_hashes_and_nothing_else
            nothing_is_added_to_an_erased_session
            what_a_policy_takes_becomes_a_tombstone_and_then_goes
        }
    };
    (@rules $make:expr; $($rule:ident)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $rule() {
            $crate::conformance::$rule($make).await;
        }
    )*};
}

pub(crate) fn setup(make: Make) -> (World, Backend) {
    let world = World::new(1);
    let backend = make(&world);
    (world, backend)
}

/// The head of a session that exists.
async fn head(store: &dyn Store, key: SessionKey) -> Head {
    store.head(key).await.expect("a head").expect("the session")
}

/// The whole log, in pages that are deliberately small.
pub async fn whole(store: &dyn Store, key: SessionKey) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    loop {
        let after = events.last().map_or(0, |event| event.seq);
        let page = store.read(key, after, 7).await.expect("a log can be read");
        if page.is_empty() {
            return events;
        }
        events.extend(page);
    }
}

/// S1 and S2 of one log: gap-free seqs, a chain that verifies and ends in the head.
pub async fn assert_sound(store: &dyn Store, key: SessionKey) {
    let head = store.head(key).await.expect("a head can be read").expect("the log exists");
    let mut chain = Chain::start(key.session);
    for event in whole(store, key).await {
        chain.step(&event).expect("every event follows its predecessor");
    }
    chain.finish(head.last_seq, head.last_hash).expect("the log ends in its head");
}
