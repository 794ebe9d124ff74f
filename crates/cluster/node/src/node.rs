//! The Node objects and their Leases.

use jiff::Timestamp;
use longshore_client::{Cluster, DeleteOptions, Error, Patch};
use longshore_clock::Clock;
use longshore_model::{node_condition::LIMITS_ENFORCED, release, time};
use serde_json::{Value, json};
use std::{collections::BTreeMap, net::Ipv4Addr, time::Duration};

use crate::{
    cgroups::Cgroups,
    devices::{self, Devices},
    machine::{self, MachineInfo},
};

const LEASES: &str = "kube-node-lease";
const RENEWAL_INTERVAL: Duration = Duration::from_secs(10);
/// Number of lease renewals between updates of the status.
const RENEWALS_PER_STATUS: u32 = 30;
const PODS: &str = "250";

/// The data that the agent reports about one of its nodes.
#[derive(Debug, Clone)]
pub(crate) struct NodeInfo {
    pub(crate) name: String,
    pub(crate) address: Ipv4Addr,
    pub(crate) machine: MachineInfo,
    /// Enforces the limits of pods.
    pub(crate) cgroups: Cgroups,
    /// Whole devices by resource.
    amounts: BTreeMap<String, usize>,
    /// Labels that describe the devices.
    labels: BTreeMap<String, String>,
}

impl NodeInfo {
    pub(crate) fn new(
        name: &str,
        address: Ipv4Addr,
        machine: MachineInfo,
        cgroups: Cgroups,
        devices: &Devices,
    ) -> Self {
        Self {
            name: name.to_owned(),
            address,
            machine,
            cgroups,
            amounts: devices.amounts(),
            labels: devices.labels(),
        }
    }
}

/// Creates the Node, or updates its labels and status.
pub(crate) async fn register(
    cluster: &Cluster,
    info: &NodeInfo,
    clock: &Clock,
) -> Result<(), Error> {
    let name = info.name.as_str();
    let node = render(info, clock.now());
    match cluster.nodes().create(&node).await {
        Ok(_) => {}
        Err(error) if error.is_already_exists() => {
            let earlier: Value = cluster.nodes().fetch(name).await?.raw()?;
            let (labels, resources) = renew_devices(&earlier, &node);
            let labels = json!({"metadata": {"labels": labels}});
            cluster.nodes().patch(name, &Patch::merge(labels)).await?;
            let resources = json!({"status": {"capacity": resources, "allocatable": resources}});
            let patch = Patch::strategic(resources);
            cluster.nodes().patch_status(name, &patch).await?;
        }
        Err(error) => return Err(error),
    }
    write_status(cluster, info, clock.now(), clock.now()).await
}

/// Returns patches of the node's labels and of its device counts. Entries that no longer apply are
/// removed.
fn renew_devices(earlier: &Value, node: &Value) -> (Value, Value) {
    let mut labels = node["metadata"]["labels"].clone();
    let left = earlier["metadata"]["labels"].as_object();
    let of_devices = |name: &&String| devices::LABELS.iter().any(|begin| name.starts_with(begin));
    for name in left
        .into_iter()
        .flat_map(|left| left.keys())
        .filter(of_devices)
    {
        if labels[name].is_null() {
            labels[name] = Value::Null;
        }
    }
    let mut resources = json!({});
    for name in devices::RESOURCES {
        resources[name] = node["status"]["capacity"][name].clone();
    }
    (labels, resources)
}

/// The container runtime that nodes of this agent report, without its version.
const RUNTIME: &str = "longshore";

/// Deletes nodes of an earlier agent, and their Leases. The controllers delete the pods of the
/// nodes.
pub(crate) async fn remove(cluster: &Cluster, names: &[String]) -> Result<(), Error> {
    let nodes = cluster.nodes();
    for name in names {
        let found = nodes.find(name).await?;
        // Another program may use the name now.
        if !found.map_or(Ok(false), |node| {
            node.raw().map(|node| is_of_an_agent(&node))
        })? {
            continue;
        }
        tracing::info!(node = name, "removing a node of an earlier start");
        let leases = cluster.leases().in_namespace(LEASES)?;
        match leases.delete(name, &DeleteOptions::default()).await {
            Err(error) if !error.is_not_found() => return Err(error),
            _ => {}
        }
        match nodes.delete(name, &DeleteOptions::default()).await {
            Err(error) if !error.is_not_found() => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Returns true if an agent of this program reported a node.
fn is_of_an_agent(node: &Value) -> bool {
    let runtime = node.pointer("/status/nodeInfo/containerRuntimeVersion");
    let runtime = runtime.and_then(Value::as_str).unwrap_or_default();
    runtime
        .split_once("://")
        .is_some_and(|(name, _)| name == RUNTIME)
}

/// Renews the Lease and, at longer intervals, the status, forever.
pub(crate) async fn keep_alive(cluster: Cluster, info: NodeInfo, clock: Clock) {
    let heartbeat = clock.heartbeat();
    let started = clock.now();
    let mut round = 0;
    let mut refusal = info.cgroups.refusal();
    loop {
        let (begin, now) = (clock.instant(), clock.now());
        if let Err(error) = renew(&cluster, &info.name, now).await {
            tracing::debug!(%error, "cannot renew the node's lease");
        }
        round = (round + 1) % RENEWALS_PER_STATUS;
        let before = std::mem::replace(&mut refusal, info.cgroups.refusal());
        if (round == 0 || before != refusal)
            && let Err(error) = write_status(&cluster, &info, started, now).await
        {
            tracing::debug!(%error, "cannot write the node's status");
        }
        heartbeat.sleep(begin, RENEWAL_INTERVAL).await;
    }
}

async fn renew(cluster: &Cluster, name: &str, now: Timestamp) -> Result<(), Error> {
    let now = time::micros(now);
    let leases = cluster.leases().in_namespace(LEASES)?;
    let spec = json!({"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": now});
    match leases
        .patch(name, &Patch::merge(json!({"spec": spec})))
        .await
    {
        Err(error) if error.is_not_found() => {}
        result => return result.map(drop),
    }
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": LEASES},
        "spec": spec,
    });
    leases.create(&lease).await.map(drop)
}

async fn write_status(
    cluster: &Cluster,
    info: &NodeInfo,
    ready_since: Timestamp,
    now: Timestamp,
) -> Result<(), Error> {
    let status = status(info, ready_since, now);
    let patch = Patch::strategic(json!({"status": status}));
    cluster
        .nodes()
        .patch_status(&info.name, &patch)
        .await
        .map(drop)
}

fn render(info: &NodeInfo, now: Timestamp) -> Value {
    let name = info.name.as_str();
    let architecture = machine::architecture();
    let mut node = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": architecture,
                "beta.kubernetes.io/os": "linux",
                "beta.kubernetes.io/arch": architecture,
            },
        },
        "status": status(info, now, now),
    });
    for (name, value) in &info.labels {
        node["metadata"]["labels"][name] = value.as_str().into();
    }
    node
}

fn status(info: &NodeInfo, ready_since: Timestamp, now: Timestamp) -> Value {
    let machine_info = &info.machine;
    let mut resources = json!({
        "cpu": machine_info.cores.to_string(),
        "memory": format!("{}Ki", machine_info.memory / 1024),
        "ephemeral-storage": format!("{}Ki", machine_info.storage / 1024),
        "pods": PODS,
    });
    for (name, count) in &info.amounts {
        resources[name] = count.to_string().into();
    }
    let condition = |kind: &str, holds: bool, reason: &str, message: &str| {
        json!({
            "type": kind,
            "status": if holds { "True" } else { "False" },
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": time::seconds(now),
            "lastTransitionTime": time::seconds(ready_since),
        })
    };
    let refusal = info.cgroups.refusal();
    let (reason, message) = match &refusal {
        None => (
            "HasCgroups",
            "limits of CPU and memory are enforced by cgroups".to_owned(),
        ),
        Some(refusal) => ("NoCgroups", refusal.with_remedy()),
    };
    let version = format!(
        "{}+longshore.{}",
        release::VERSION,
        env!("CARGO_PKG_VERSION")
    );
    json!({
        "capacity": resources,
        "allocatable": resources,
        "conditions": [
            condition("MemoryPressure", false, "NotMeasured", "the agent does not measure it"),
            condition("DiskPressure", false, "NotMeasured", "the agent does not measure it"),
            condition("PIDPressure", false, "NotMeasured", "the agent does not measure it"),
            condition(LIMITS_ENFORCED, refusal.is_none(), reason, &message),
            condition("Ready", true, "KubeletReady", "the node agent runs pods as processes"),
        ],
        "addresses": [
            {"type": "InternalIP", "address": info.address.to_string()},
            {"type": "Hostname", "address": info.name},
        ],
        "nodeInfo": {
            "architecture": machine::architecture(),
            "bootID": machine_info.boot_id,
            "containerRuntimeVersion": format!("{RUNTIME}://{}", env!("CARGO_PKG_VERSION")),
            "kernelVersion": machine_info.kernel,
            "kubeProxyVersion": version,
            "kubeletVersion": version,
            "machineID": machine_info.machine_id,
            "operatingSystem": "linux",
            "osImage": machine_info.os_image,
            "systemUUID": machine_info.machine_id,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_devices_are_removed_from_the_node() {
        let earlier = json!({"metadata": {"labels": {
            "nvidia.com/gpu.product": "Old", "nvidia.com/gpu.count": "2", "mine": "x"}}});
        let node = json!({
            "metadata": {"labels": {"nvidia.com/gpu.count": "1"}},
            "status": {"capacity": {"nvidia.com/gpu": "1", "cpu": "4"}},
        });
        let (labels, resources) = renew_devices(&earlier, &node);
        let expected = json!({"nvidia.com/gpu.product": null, "nvidia.com/gpu.count": "1"});
        assert_eq!(labels, expected);
        assert_eq!(
            resources,
            json!({"nvidia.com/gpu": "1", "amd.com/gpu": null})
        );
    }
}
