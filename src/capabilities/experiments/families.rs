//! The families of this capability: its tools and actions, grouped for a language model.
//!
//! The assistant distinguishes kinds of requests. If a kind has too many tools and actions to send
//! all of them with each request, it is split into several families that share its name
//! (`Family::within`).

use countersign_capabilities::Family;

use super::knowledge;

/// The shared name of the families for starting, stopping, designing and deleting experiments.
const MANAGEMENT: &str = "experiment_management";

/// Returns the families, in the order in which a model sees them.
pub(super) fn all() -> Vec<Family> {
    vec![
        Family::new("experiment_status", "start, schedule, stop, resume, cancel, archive or delete experiments")
            .within(MANAGEMENT)
            .actions(["update_experiment_status", "delete_experiment"])
            .often(),
        Family::new("experiment_creation", "a new experiment").within(MANAGEMENT).actions(["create_experiment"]),
        Family::new("experiment_changes", "change the design of an experiment there is")
            .within(MANAGEMENT)
            .actions(["update_experiment"]),
        Family::new("experiment_details", "one experiment: how it stands, how it is designed")
            .tools(["get_experiment_details"])
            .often(),
        Family::new("experiment_comparison", "experiments side by side; enrollment over time")
            .tools(["compare_experiments", "get_enrollment_over_time"]),
        Family::new("list_experiments", "which experiments there are; contexts and their vocabulary")
            .tools([
                "get_all_experiments",
                "get_experiment_names",
                "get_available_contexts",
                "get_context_metadata",
                "get_conditions_for_context",
                "get_decision_points_for_context",
                "get_group_types_for_context",
            ])
            .often(),
        Family::new("terminology", "what words mean, and what changes take").tools([
            "explain_upgrade_concept",
            "list_upgrade_concepts",
            "get_core_terms",
            "get_assignment_terms",
            knowledge::EXPLAIN_CHANGE,
        ]),
        Family::new("version_check", "whether the platform answers, and its version").tools(["check_upgrade_health"]),
        Family::new("user_simulation", "what one participant gets; a participant's way through an experiment").actions(
            ["init_experiment_user", "get_decision_point_assignments", "mark_decision_point", "simulate_user_journey"],
        ),
        Family::new("testing", "tests with many simulated users")
            .tools(["generate_test_users"])
            .actions(["test_condition_balance", "test_consistency_rules"]),
    ]
}
