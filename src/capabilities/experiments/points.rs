//! Finds decision points and the experiments that they belong to.

use countersign_graph::action::{ErrorKind, PrepareError};

use super::{
    access, lookup,
    replies::{outcomes, refusals},
};
use crate::upgrade::{client::UpgradeClient, experiment::View, status::Status};

/// Returns the one experiment that has the point, in this context if one is given; `None` if there is
/// none. `request_with` returns the corrected request for an experiment's name, which the buttons of
/// a refusal send.
///
/// # Errors
///
/// A refusal if several experiments have the point, or only one in another context; or an error from
/// the platform.
pub async fn owner(
    client: &UpgradeClient,
    site: &str,
    target: &str,
    context: Option<&str>,
    request_with: impl Fn(&str) -> String,
) -> Result<Option<View>, PrepareError> {
    let all = client.all().await?;
    let mut owners: Vec<_> = all.iter().filter(|view| find(view, site, target).is_some()).cloned().collect();
    if let Some(context) = context {
        let elsewhere = owners.first().cloned();
        owners.retain(|view| view.context() == context);
        // The platform ignores the context, so it would enrol the user in the other experiment.
        if let (Some(other), []) = (elsewhere, owners.as_slice()) {
            let point = outcomes::place(site, Some(target));
            let reply = refusals::point_elsewhere(&point, context, &other, request_with);
            return Err(access::invalid(reply));
        }
    }
    // A running experiment takes precedence over the others.
    if owners.iter().filter(|view| view.state == Status::Enrolling).count() == 1 {
        owners.retain(|view| view.state == Status::Enrolling);
    }
    if owners.len() > 1 {
        let names = owners.iter().map(|view| view.name.clone()).collect::<Vec<_>>();
        let question = format!("Several experiments share {site} / {target}. Which one do you mean?");
        let unique = names.iter().all(|name| names.iter().filter(|other| *other == name).count() == 1);
        if unique {
            return Err(access::ask("experiment", question, names));
        }
        let reply = refusals::several_experiments(&format!("{site} / {target}"), &owners, request_with);
        return Err(access::refused(ErrorKind::UserInput, reply));
    }
    Ok(owners.pop())
}

/// Returns the point's site and target as the experiment spells them.
///
/// # Errors
///
/// A refusal that lists the experiment's points.
pub fn of(owner: &View, site: &str, target: &str) -> Result<(String, String), PrepareError> {
    find(owner, site, target).ok_or_else(|| {
        let reply = refusals::not_its_point(&owner.name, &outcomes::place(site, Some(target)), &owner.places());
        access::invalid(reply)
    })
}

/// Returns the first point that a user can visit, which is one with a target.
pub fn first(owner: &View) -> Option<(String, String)> {
    owner.decision_points.iter().find_map(|point| Some((point.site.clone(), point.target.clone()?)))
}

fn find(owner: &View, site: &str, target: &str) -> Option<(String, String)> {
    let means = |known: &String, asked: &str| lookup::pick(std::slice::from_ref(known), asked).is_some();
    owner.decision_points.iter().find_map(|point| {
        let its_target = point.target.as_ref()?;
        (means(&point.site, site) && means(its_target, target)).then(|| (point.site.clone(), its_target.clone()))
    })
}
