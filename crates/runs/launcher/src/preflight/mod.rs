//! Finds all problems of a plan before anything is created.
//!
//! [`check`] queries the cluster; a pure function evaluates the facts. [`room()`] checks that the
//! tasks could start immediately, which is not required for a run.

mod addons;
mod admission;
mod ask;
mod images;
mod limits;
mod needs;
mod quota;
mod references;
mod rights;
mod role;
mod room;
mod server;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, fmt};

use futures::future::BoxFuture;
use longshore_client::{Cluster, Error};
use longshore_diagnosis::{
    evidence::{LimitRangeEvidence, QuotaEvidence},
    explain::Cause,
    fit::{self, Need, Nodes},
};

use addons::{Addon, Presence};
use admission::RefusedPod;
use needs::Needs;
use references::{Found, Reference};
use rights::Right;
pub use room::{Room, room};
use server::ServerVersion;

use crate::{owner::Owner, plan::Plan};

/// The Role with the permissions for all commands that manage runs, and its RoleBinding for a user,
/// as a manifest in YAML, for an administrator of the cluster.
#[must_use]
pub fn role_manifest(namespace: &str, user: &Owner) -> String {
    role::manifest(namespace, user, &[])
}

/// The use of the run, which determines the required permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The run is followed to its end.
    Follow,
    /// The run is not followed.
    Detach,
}

/// A problem of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The kind of the problem.
    pub kind: Cause,
    /// The problem, in one sentence.
    pub problem: String,
    /// The recommended action.
    pub remedy: String,
    /// The manifest that the remedy mentions, in YAML.
    pub manifest: Option<String>,
}

impl Finding {
    pub(crate) fn new(kind: Cause, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            kind,
            problem: problem.into(),
            remedy: remedy.into(),
            manifest: None,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.problem, self.remedy)
    }
}

/// The problems in one line.
#[must_use]
pub fn listed(findings: &[Finding]) -> String {
    let each: Vec<String> = findings.iter().map(ToString::to_string).collect();
    each.join("; ")
}

/// All problems of the plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Problems with which the run cannot start.
    pub refusals: Vec<Finding>,
    /// Problems with which the run may start late or not at all.
    pub warnings: Vec<Finding>,
}

/// The state of the namespace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum NamespaceState {
    /// The permission to read the namespace is missing.
    #[default]
    Unseen,
    /// The namespace exists.
    There,
    /// The namespace does not exist.
    Missing,
    /// The namespace is being deleted.
    Ends,
}

/// The state of the cluster, as input of [`evaluate`]. Facts that could not be read are `None`
/// and do not cause problems.
#[derive(Debug, Clone, Default, PartialEq)]
struct ClusterState {
    /// The server's version.
    version: Option<ServerVersion>,
    /// The namespace.
    namespace: NamespaceState,
    /// Missing permissions.
    lacks: Vec<Right>,
    /// The user, if permissions are missing.
    user: Option<Owner>,
    /// The namespace's quotas.
    quotas: Option<Vec<QuotaEvidence>>,
    /// The namespace's LimitRanges.
    limit_ranges: Option<Vec<LimitRangeEvidence>>,
    /// The nodes.
    nodes: Option<Nodes>,
    /// The objects that the pods refer to.
    references: BTreeMap<Reference, Found>,
    /// The optional components.
    addons: Vec<(Addon, Presence)>,
    /// Pods that the server would reject.
    refused: Vec<RefusedPod>,
}

/// Checks that the cluster can run the plan.
///
/// # Errors
/// The cluster does not answer. The report contains all other problems.
pub fn check<'a>(
    cluster: &'a Cluster,
    plan: &'a Plan,
    purpose: Purpose,
) -> BoxFuture<'a, Result<Report, Error>> {
    // Boxed, so that this crate compiles the future, not each crate that awaits it.
    Box::pin(query_and_evaluate(cluster, plan, purpose))
}

async fn query_and_evaluate(
    cluster: &Cluster,
    plan: &Plan,
    purpose: Purpose,
) -> Result<Report, Error> {
    let needs = Needs::of(plan)?;
    let pods = admission::pods(plan);
    let state = ask::ask(cluster, &needs, &pods, purpose).await?;
    Ok(evaluate(&needs, &state))
}

/// Finds the problems. Pure.
fn evaluate(needs: &Needs, state: &ClusterState) -> Report {
    let namespace = &needs.namespace;
    let gone = match state.namespace {
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
    // Nothing else can be checked in a missing namespace.
    if let Some(gone) = gone {
        return Report {
            refusals: vec![gone],
            warnings: Vec::new(),
        };
    }
    let mut report = Report::default();
    report
        .refusals
        .extend(rights::check(namespace, &state.lacks, state.user.as_ref()));
    report.warnings.extend(rights::check_queue(
        namespace,
        &state.lacks,
        state.user.as_ref(),
    ));
    server::check(state.version, needs.counts_failures, &mut report);
    let nodes_seen = state.nodes.as_ref().map(|nodes| nodes.seen.as_slice());
    let is_embedded = server::is_embedded(nodes_seen);
    images::check(needs, is_embedded, &mut report);
    addons::check(namespace, &state.addons, &mut report);
    references::check(&state.references, &mut report);
    // Quotas count the defaults of LimitRanges.
    let ranges = state.limit_ranges.as_deref().unwrap_or_default();
    let filled = needs.with_defaults(ranges);
    limits::check(&filled, ranges, &mut report);
    quota::check(
        &filled,
        state.quotas.as_deref().unwrap_or_default(),
        &mut report,
    );
    nodes(&filled, state.nodes.as_ref(), &mut report);
    admission::check(&state.refused, &mut report);
    report
}

/// Checks that each role's tasks fit on a node.
fn nodes(needs: &Needs, nodes: Option<&Nodes>, report: &mut Report) {
    for role in &needs.roles {
        let need = Need::of(&role.spec);
        let Some(nodes) = nodes else {
            let rare = need.amounts.keys().find(|name| name.contains('/'));
            if let Some(rare) = rare {
                report.warnings.push(Finding::new(
                    Cause::NeverFits,
                    format!(
                        "cannot check whether a node has {rare} for {:?}: no permission to list nodes",
                        role.name
                    ),
                    "if its tasks stay pending, `longshore why` shows the cause",
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
                format!("{remedy}; its tasks stay pending until the cluster adds a node that fits");
            let finding = Finding::new(Cause::NeverFits, problem, remedy);
            report.warnings.push(finding);
        } else {
            let finding = Finding::new(Cause::NeverFits, problem, remedy);
            report.refusals.push(finding);
        }
    }
}
