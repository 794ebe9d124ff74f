//! What the server is: its version, and whether its nodes run pods on this machine.

use longshore_client::{Cluster, Error};

use super::{Finding, Report};
use crate::{evidence::NodeEvidence, explain::Cause};

/// The first minor version of Kubernetes 1 whose Jobs are indexed without a feature gate.
const INDEXED_JOBS_SINCE: u32 = 22;
/// How the runtime of the embedded cluster's node calls itself.
const EMBEDDED_RUNTIME: &str = "longshore://";

/// The version of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServerVersion {
    /// 1, today.
    pub major: u32,
    /// As 34 of 1.34.
    pub minor: u32,
}

/// Asks for the version; `None` where the answer cannot be read.
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

/// Refuses a server whose Jobs have no indices: its pods would be nobody's tasks.
pub(super) fn judge(version: Option<ServerVersion>, report: &mut Report) {
    let oldest = ServerVersion {
        major: 1,
        minor: INDEXED_JOBS_SINCE,
    };
    if let Some(found) = version.filter(|found| *found < oldest) {
        report.refusals.push(Finding::new(
            Cause::ServerTooOld,
            format!(
                "the cluster runs Kubernetes {}.{}, which has no Indexed Jobs",
                found.major, found.minor
            ),
            format!("use a cluster of version 1.{INDEXED_JOBS_SINCE} or newer"),
        ));
    }
}

/// Whether pods run on the embedded cluster's node; `None` when no node can be seen.
pub(super) fn is_embedded(nodes: Option<&[NodeEvidence]>) -> Option<bool> {
    let nodes = nodes.filter(|nodes| !nodes.is_empty())?;
    let is_ours = |node: &NodeEvidence| {
        let runtime = &node.status.node_info.container_runtime_version;
        runtime.starts_with(EMBEDDED_RUNTIME)
    };
    Some(nodes.iter().any(is_ours))
}
