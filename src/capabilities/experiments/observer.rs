//! Experiments as things that people follow over time: status, numbers of participants, and the split.

use std::{collections::HashMap, sync::Arc};

use async_trait::async_trait;
use countersign_capabilities::{Observed, ObservedPart, Observer, Phase, ToolError};

use super::access;
use crate::upgrade::{
    client::UpgradeClient,
    error::Error,
    experiment::{ExperimentId, View},
    participants::EnrollmentDetail,
    status::Status,
};

/// The maximum number of running experiments that are read at once.
const MAX_READ: usize = 100;

/// The reader of experiments for those who follow them.
pub(super) struct ExperimentObserver(pub(super) Arc<UpgradeClient>);

#[async_trait]
impl Observer for ExperimentObserver {
    fn things(&self) -> &'static str {
        "experiments"
    }

    async fn find(
        &self,
        name: &str,
        request_with: &(dyn for<'n> Fn(&'n str) -> String + Send + Sync),
    ) -> Result<Observed, ToolError> {
        let found = access::experiment(&self.0, name, request_with).await?;
        let enrolled = self.0.enrollment_detail(&found.view).await?;
        Ok(observed(&found.view, &enrolled))
    }

    async fn observe(&self, id: &str) -> Result<Option<Observed>, ToolError> {
        let Ok(id) = id.parse::<ExperimentId>() else { return Ok(None) };
        let read = async {
            let view = self.0.single(id).await?.view;
            let enrolled = self.0.enrollment_detail(&view).await?;
            Ok(observed(&view, &enrolled))
        };
        match read.await {
            Ok(observed) => Ok(Some(observed)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn in_progress(&self) -> Result<Vec<Observed>, ToolError> {
        let all = self.0.all().await?;
        let running: Vec<&View> = all.iter().filter(|view| view.state == Status::Enrolling).take(MAX_READ).collect();
        if running.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<ExperimentId> = running.iter().map(|view| view.id).collect();
        let counted = self.0.enrollment(&ids).await?;
        let users: HashMap<ExperimentId, (u64, u64)> =
            counted.iter().map(|row| (row.id, (row.users, row.test_users))).collect();
        let of = |view: &View| users.get(&view.id).copied().unwrap_or_default();
        let with_users = |view: &&View| Observed {
            id: view.id.to_string(),
            name: view.name.clone(),
            phase: phase(view.state),
            enrolled: of(view).0,
            simulated: of(view).1,
            participants: "users".to_owned(),
            parts: Vec::new(),
        };
        Ok(running.iter().map(with_users).collect())
    }
}

fn phase(status: Status) -> Phase {
    match status {
        Status::Draft | Status::Inactive | Status::Preview | Status::Scheduled | Status::Other => Phase::NotStarted,
        Status::Enrolling => Phase::Running,
        Status::EnrollmentComplete => Phase::Paused,
        Status::Cancelled | Status::Archived => Phase::Ended,
    }
}

fn observed(view: &View, enrolled: &EnrollmentDetail) -> Observed {
    Observed {
        id: view.id.to_string(),
        name: view.name.clone(),
        phase: phase(view.state),
        enrolled: enrolled.users,
        simulated: enrolled.test_users,
        participants: "users".to_owned(),
        parts: parts(view, enrolled),
    }
}

/// Returns the conditions with the numbers of those who were drawn: users, or groups if whole groups are assigned. There
/// are none if the draws are not independent, as within subjects and in a stratified draw.
fn parts(view: &View, enrolled: &EnrollmentDetail) -> Vec<ObservedPart> {
    let by_group = view.assignment_unit == "group";
    let is_independent = (by_group || view.assignment_unit == "individual") && view.stratification_factor.is_none();
    if !is_independent {
        return Vec::new();
    }
    let count = |id: &str| {
        let row = enrolled.conditions.iter().find(|row| row.id == id);
        row.map_or(0, |row| if by_group { row.groups } else { row.users })
    };
    let part = |condition: &crate::upgrade::experiment::Condition| ObservedPart {
        name: condition.condition_code.clone(),
        share: condition.assignment_weight / 100.0,
        count: count(&condition.id),
    };
    view.conditions.iter().map(part).collect()
}
