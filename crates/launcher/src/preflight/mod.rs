//! Problems of a plan, found before anything of it is created and reported together.
//!
//! Asking ([`check`]) stands apart from deciding ([`judge`]), which is pure.

mod addons;
mod admission;
mod ask;
mod images;
mod limits;
mod needs;
mod quota;
mod references;
mod rights;
mod server;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, fmt};

use longshore_client::{Cluster, Error};

pub use addons::{Addon, Presence};
pub use admission::RefusedPod;
pub use needs::{Needs, RoleNeed};
pub use references::{Found, Reference, What};
pub use rights::Right;
pub use server::ServerVersion;

use crate::{
    evidence::{LimitRangeEvidence, QuotaEvidence},
    explain::Cause,
    fit::{self, Need, Nodes},
    plan::Plan,
};

/// What the run will be used for, and so which rights it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To be followed to its end.
    Follow,
    /// To be left alone.
    Detach,
}

/// One thing that speaks against the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The sort of it.
    pub kind: Cause,
    /// What is wrong, in one sentence.
    pub problem: String,
    /// What to do about it.
    pub remedy: String,
}

impl Finding {
    fn new(kind: Cause, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            kind,
            problem: problem.into(),
            remedy: remedy.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.problem, self.remedy)
    }
}

/// All that speaks against the plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// With these the run cannot begin.
    pub refusals: Vec<Finding>,
    /// With these it may not begin, or late.
    pub warnings: Vec<Finding>,
}

/// Where the namespace stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NamespaceState {
    /// It may not be seen.
    #[default]
    Unseen,
    /// It is there.
    There,
    /// It is not there.
    Missing,
    /// It is being deleted.
    Ends,
}

/// What the cluster says: the input of [`judge`]. What could not be seen is `None`, and
/// speaks against nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Evidence {
    /// The server's version.
    pub version: Option<ServerVersion>,
    /// The namespace.
    pub namespace: NamespaceState,
    /// Rights that are missing.
    pub lacks: Vec<Right>,
    /// The namespace's quotas.
    pub quotas: Option<Vec<QuotaEvidence>>,
    /// The namespace's LimitRanges.
    pub limit_ranges: Option<Vec<LimitRangeEvidence>>,
    /// The nodes.
    pub nodes: Option<Nodes>,
    /// What the pods refer to.
    pub references: BTreeMap<Reference, Found>,
    /// What not every cluster has.
    pub addons: Vec<(Addon, Presence)>,
    /// Pods that the server would refuse.
    pub refused: Vec<RefusedPod>,
}

/// Asks the cluster whether the plan can be carried out.
///
/// # Errors
/// The cluster does not answer. All else is in the report.
pub async fn check(cluster: &Cluster, plan: &Plan, purpose: Purpose) -> Result<Report, Error> {
    let needs = Needs::of(plan);
    let pods = admission::pods(plan);
    let evidence = ask::ask(cluster, &needs, &pods, purpose).await?;
    Ok(judge(&needs, &evidence))
}

/// What speaks against it. Pure.
#[must_use]
pub fn judge(needs: &Needs, evidence: &Evidence) -> Report {
    let namespace = &needs.namespace;
    let gone = match evidence.namespace {
        NamespaceState::Missing => Some(Finding::new(
            Cause::Namespace,
            format!("the cluster has no namespace {namespace:?}"),
            format!("create it with `kubectl create namespace {namespace}`, or choose another"),
        )),
        NamespaceState::Ends => Some(Finding::new(
            Cause::Namespace,
            format!("the namespace {namespace:?} is being deleted"),
            "choose another",
        )),
        _ => None,
    };
    // In a namespace that is not there, nothing else can be checked.
    if let Some(gone) = gone {
        return Report {
            refusals: vec![gone],
            warnings: Vec::new(),
        };
    }
    let mut report = Report::default();
    report
        .refusals
        .extend(rights::judge(namespace, &evidence.lacks));
    server::judge(evidence.version, &mut report);
    let nodes_seen = evidence.nodes.as_ref().map(|nodes| nodes.seen.as_slice());
    let is_embedded = server::is_embedded(nodes_seen);
    images::judge(needs, is_embedded, &mut report);
    let has_claims = is_embedded != Some(true);
    if !has_claims {
        references::refuse_claims(&needs.references, &mut report);
    }
    addons::judge(namespace, &evidence.addons, &mut report);
    references::judge(&evidence.references, has_claims, &mut report);
    // What a LimitRange fills in is what is then counted.
    let ranges = evidence.limit_ranges.as_deref().unwrap_or_default();
    let filled = needs.with_defaults(ranges);
    limits::judge(&filled, ranges, &mut report);
    quota::judge(
        &filled,
        evidence.quotas.as_deref().unwrap_or_default(),
        &mut report,
    );
    nodes(&filled, evidence.nodes.as_ref(), &mut report);
    admission::judge(&evidence.refused, &mut report);
    report
}

/// Whether each role's task fits some node.
fn nodes(needs: &Needs, nodes: Option<&Nodes>, report: &mut Report) {
    for role in &needs.roles {
        let need = Need::of(&role.spec);
        let Some(nodes) = nodes else {
            let rare = need.amounts.keys().find(|name| name.contains('/'));
            if let Some(rare) = rare {
                report.warnings.push(Finding::new(
                    Cause::NeverFits,
                    format!(
                        "whether a node has {rare} for {:?} cannot be seen: the nodes may not be listed",
                        role.name
                    ),
                    "if its tasks stay pending, `longshore why` tells what is known",
                ));
            }
            continue;
        };
        let Err(misfit) = fit::check(&need, &nodes.seen) else {
            continue;
        };
        let (problem, remedy) = misfit.tell();
        let problem = format!("{}: {problem}", role.name);
        if nodes.more || fit::may_grow(&nodes.seen) {
            let remedy =
                format!("{remedy}; unless the cluster adds a node that fits, its tasks wait");
            let finding = Finding::new(Cause::NeverFits, problem, remedy);
            report.warnings.push(finding);
        } else {
            let finding = Finding::new(Cause::NeverFits, problem, remedy);
            report.refusals.push(finding);
        }
    }
}
