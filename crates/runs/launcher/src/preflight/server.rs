//! The server's version, and the type of its node.

use longshore_client::{Cluster, Error};
use longshore_diagnosis::explain::Cause;
use longshore_model::facts::NodeFacts;

use super::{Finding, Report};

/// The first minor version of Kubernetes 1 with Indexed Jobs enabled by default.
const INDEXED_JOBS_SINCE: u32 = 22;
/// The first minor version with backoff limits per index enabled by default.
const BACKOFF_LIMITS_PER_INDEX_SINCE: u32 = 29;
/// The runtime version prefix of the embedded cluster's node.
const EMBEDDED_RUNTIME: &str = "longshore://";

/// The version of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ServerVersion {
    /// The major version.
    pub(crate) major: u32,
    /// The minor version, such as 34 of 1.34.
    pub(crate) minor: u32,
}

/// Queries the version. `None` if it cannot be parsed.
pub(super) async fn version(cluster: &Cluster) -> Result<Option<ServerVersion>, Error> {
    let answer = cluster.proxy().get("/version", &[]).await?;
    let number = |field: &str| {
        let text = answer[field].as_str()?;
        // Some distributions write `21+`.
        let digits = text.find(|c: char| !c.is_ascii_digit());
        text[..digits.unwrap_or(text.len())].parse().ok()
    };
    Ok(number("major")
        .zip(number("minor"))
        .map(|(major, minor)| ServerVersion { major, minor }))
}

/// Reports a server without Indexed Jobs, whose pods could not be mapped to tasks, and a server
/// whose Jobs do not count the failures of each task, if an option needs this.
pub(super) fn check(
    version: Option<ServerVersion>,
    counts_failures: Option<&str>,
    report: &mut Report,
) {
    let (minor, lacks) = match counts_failures {
        None => (INDEXED_JOBS_SINCE, "Indexed Jobs".to_owned()),
        Some(option) => (
            BACKOFF_LIMITS_PER_INDEX_SINCE,
            format!("backoff limits per index, which {option}"),
        ),
    };
    let oldest = ServerVersion { major: 1, minor };
    if let Some(found) = version.filter(|found| *found < oldest) {
        report.refusals.push(Finding::new(
            Cause::ServerTooOld,
            format!(
                "the cluster runs Kubernetes {}.{}, which has no {lacks}",
                found.major, found.minor
            ),
            format!("use a cluster of version 1.{minor} or newer"),
        ));
    }
}

/// Returns true if pods run on the embedded cluster's node. `None` if no node is visible.
pub(super) fn is_embedded(nodes: Option<&[NodeFacts]>) -> Option<bool> {
    let nodes = nodes.filter(|nodes| !nodes.is_empty())?;
    let is_ours = |node: &NodeFacts| {
        let runtime = &node.status.node_info.container_runtime_version;
        runtime.starts_with(EMBEDDED_RUNTIME)
    };
    Some(nodes.iter().any(is_ours))
}
