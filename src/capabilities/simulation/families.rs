//! The families of this capability: its tools and actions, grouped for a language model.

use countersign_capabilities::Family;

use super::tools::HEALTH;

/// Returns the families, in the order in which a model sees them.
pub(super) fn all() -> Vec<Family> {
    vec![
        Family::new(
            "simulation",
            "pharmacokinetic simulations: load a model, read and set parameters, run it, compare values",
        )
        .tools([
            "list_simulations",
            "use_simulation",
            "list_parameters",
            "get_parameter_value",
            "discover_models",
            HEALTH,
        ])
        .actions(["load_simulation", "set_parameter_value", "run_simulation", "compare_values"])
        .often(),
        Family::new("simulation_jobs", "runs of simulations: state, results, PK figures, canceling")
            .within("simulation")
            .tools([
                "get_job_status",
                "calculate_pk_parameters",
                "get_results",
                "get_population_results",
                "compare_runs",
            ])
            .actions(["cancel_job"]),
        Family::new("simulation_studies", "populations, sensitivity analyses, snapshots of simulations")
            .within("simulation")
            .tools(["list_snapshots"])
            .actions([
                "run_population_simulation",
                "run_sensitivity_analysis",
                "snapshot_simulation",
                "restore_simulation",
            ]),
    ]
}
