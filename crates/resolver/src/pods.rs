//! From pods to a cluster spec. Pure: pods come in as values.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use jiff::Timestamp;
use serde::Deserialize;

use crate::ClusterSpec;

/// Label and annotation that carry the index of an Indexed Job's pod.
pub const COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// What a resolver needs to know of a pod; reads from a pod's JSON.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PodFacts {
    /// `metadata`.
    pub metadata: PodMeta,
    /// `spec`.
    pub spec: PodSpec,
    /// `status`.
    pub status: PodStatus,
}

/// The part of `metadata` that matters here.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodMeta {
    /// The pod's name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its uid.
    pub uid: String,
    /// Set when it is being deleted.
    pub deletion_timestamp: Option<Timestamp>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
}

/// The part of `spec` that matters here.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodSpec {
    /// Host name inside the pod.
    pub hostname: Option<String>,
    /// The headless Service under which the host name is known.
    pub subdomain: Option<String>,
    /// The containers.
    pub containers: Vec<Container>,
}

/// The part of a container that matters here.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Container {
    /// Requests and limits.
    pub resources: Resources,
}

/// Resource limits of a container.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Resources {
    /// Resource → quantity.
    pub limits: BTreeMap<String, serde_json::Value>,
}

/// The part of `status` that matters here.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PodStatus {
    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    pub phase: String,
    /// The pod's own address.
    #[serde(rename = "podIP")]
    pub pod_ip: Option<String>,
    /// The address of its node.
    #[serde(rename = "hostIP")]
    pub host_ip: Option<String>,
}

/// Which of a pod's addresses goes into the spec.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Address {
    /// `status.podIP`.
    #[default]
    PodIp,
    /// `status.hostIP`, as TensorFlow's own resolver does.
    HostIp,
    /// `hostname.subdomain.namespace.svc`, for pods behind a headless Service.
    Dns,
}

/// In which order the pods of a selector become tasks. A completion index, if
/// all pods of the role carry one, wins over both.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// Numbers in names compare as numbers: `worker-2` before `worker-10`.
    #[default]
    Natural,
    /// Byte by byte, as TensorFlow's own resolver does.
    Lexical,
}

/// What to do about pods that are not running.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Policy {
    /// Refuse the whole spec.
    #[default]
    Fail,
    /// Leave out pods that have finished or are being deleted; refuse others.
    SkipFinished,
    /// Leave out whatever does not run.
    SkipNotRunning,
}

/// How pods become a spec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assembly {
    /// The port of every task.
    pub port: u16,
    /// The address to use.
    pub address: Address,
    /// The order of the tasks.
    pub order: Order,
    /// What to do about pods that are not running.
    pub policy: Policy,
    /// Count a pod matched by two selectors once, instead of refusing it.
    pub deduplicate: bool,
}

impl Default for Assembly {
    fn default() -> Self {
        Self {
            port: 8470,
            address: Address::default(),
            order: Order::default(),
            policy: Policy::default(),
            deduplicate: false,
        }
    }
}

/// Why pods do not make a spec.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PodError {
    /// A pod that must run does not.
    #[error("Pod \"{name}\" is not running; phase: \"{phase}\"")]
    NotRunning {
        /// The pod's name.
        name: String,
        /// The phase it is in.
        phase: String,
    },
    /// A running pod without the address asked for.
    #[error(
        "Pod \"{name}\" has no {what}; wait until its status has one, or choose another kind of address"
    )]
    NoAddress {
        /// The pod's name.
        name: String,
        /// The field that is missing.
        what: &'static str,
    },
    /// A pod that two selectors match.
    #[error(
        "Pod \"{name}\" is matched by two selectors, of role \"{first}\" and role \"{second}\"; make the selectors disjoint, or deduplicate"
    )]
    Duplicate {
        /// The pod's name.
        name: String,
        /// The role that had it first.
        first: String,
        /// The role that matched it again.
        second: String,
    },
    /// Two running pods with one completion index.
    #[error(
        "Pods \"{first}\" and \"{second}\" both have completion index {index} in role \"{role}\"; select the pods of one Job only"
    )]
    SameIndex {
        /// The role.
        role: String,
        /// The index that both carry.
        index: u32,
        /// One pod.
        first: String,
        /// The other.
        second: String,
    },
}

/// A role with the pods of each of its selectors, in the selectors' order.
pub type Selected = (String, Vec<Vec<PodFacts>>);

impl PodFacts {
    /// The completion index of an Indexed Job's pod.
    #[must_use]
    pub fn completion_index(&self) -> Option<u32> {
        let meta = &self.metadata;
        let text = meta
            .annotations
            .get(COMPLETION_INDEX)
            .or_else(|| meta.labels.get(COMPLETION_INDEX));
        text?.parse().ok()
    }

    /// Whether its containers are up and it is not going away.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.status.phase == "Running"
    }

    /// Whether it has ended, or is being deleted.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
            || matches!(self.status.phase.as_str(), "Succeeded" | "Failed")
    }

    /// Its host as `address`, IPv6 in brackets.
    ///
    /// # Errors
    /// [`PodError::NoAddress`].
    pub fn host(&self, address: Address) -> Result<String, PodError> {
        let missing = |what| PodError::NoAddress {
            name: self.metadata.name.clone(),
            what,
        };
        let ip = |text: &Option<String>, what| {
            let text = text
                .as_deref()
                .filter(|text| !text.is_empty())
                .ok_or_else(|| missing(what))?;
            Ok(bracketed(text))
        };
        match address {
            Address::PodIp => ip(&self.status.pod_ip, "status.podIP"),
            Address::HostIp => ip(&self.status.host_ip, "status.hostIP"),
            Address::Dns => {
                let subdomain = self
                    .spec
                    .subdomain
                    .as_deref()
                    .filter(|text| !text.is_empty())
                    .ok_or_else(|| missing("spec.subdomain"))?;
                let hostname = self.spec.hostname.as_deref().unwrap_or(&self.metadata.name);
                Ok(format!(
                    "{hostname}.{subdomain}.{}.svc",
                    self.metadata.namespace
                ))
            }
        }
    }

    /// Accelerators in the containers' limits: resource → number.
    #[must_use]
    pub fn accelerators(&self) -> BTreeMap<String, u64> {
        let mut found = BTreeMap::new();
        for container in &self.spec.containers {
            for (resource, quantity) in &container.resources.limits {
                if !ACCELERATORS.contains(&resource.as_str()) {
                    continue;
                }
                let number = quantity
                    .as_u64()
                    .or_else(|| quantity.as_str()?.parse().ok());
                *found.entry(resource.clone()).or_insert(0) += number.unwrap_or(0);
            }
        }
        found
    }
}

/// Resource names of accelerators, as their device plugins register them.
pub const ACCELERATORS: &[&str] = &[
    "nvidia.com/gpu",
    "amd.com/gpu",
    "gpu.intel.com/i915",
    "gpu.intel.com/xe",
    "google.com/tpu",
    "aws.amazon.com/neuron",
    "aws.amazon.com/neuroncore",
    "habana.ai/gaudi",
];

/// Puts an IPv6 address in brackets; leaves everything else as it is.
#[must_use]
pub fn bracketed(address: &str) -> String {
    match address.parse::<IpAddr>() {
        Ok(IpAddr::V6(v6)) => format!("[{v6}]"),
        _ => address.to_owned(),
    }
}

/// Compares texts with their numbers as numbers: `a2` before `a10`.
#[must_use]
pub fn natural_order(left: &str, right: &str) -> Ordering {
    let (mut a, mut b) = (left.as_bytes(), right.as_bytes());
    loop {
        match (a.first(), b.first()) {
            (None, None) => return left.cmp(right),
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(x), Some(y)) if x.is_ascii_digit() && y.is_ascii_digit() => {
                let (x, rest_a) = number(a);
                let (y, rest_b) = number(b);
                let order = x.len().cmp(&y.len()).then_with(|| x.cmp(y));
                if order != Ordering::Equal {
                    return order;
                }
                (a, b) = (rest_a, rest_b);
            }
            (Some(x), Some(y)) if x != y => return x.cmp(y),
            _ => (a, b) = (&a[1..], &b[1..]),
        }
    }
}

/// The leading digits without leading zeros, and what follows them.
fn number(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text
        .iter()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let zeros = digits
        .iter()
        .position(|byte| *byte != b'0')
        .unwrap_or(digits.len());
    (&digits[zeros..], rest)
}

/// Builds the spec of the pods selected for each role.
///
/// Within a role, pods of the first selector come first, each selector's pods
/// in the order asked for. When every pod of the role carries a completion
/// index, that index is the task's index, and holes stay holes.
///
/// # Errors
/// A pod that does not run (by the policy), has no address, or is matched
/// twice.
pub fn assemble(roles: &[Selected], how: &Assembly) -> Result<ClusterSpec, PodError> {
    let mut spec = ClusterSpec::new();
    let mut seen: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    for (role, selectors) in roles {
        spec.add_job(role);
        let mut chosen: Vec<&PodFacts> = Vec::new();
        for pods in selectors {
            let mut pods: Vec<&PodFacts> = pods.iter().collect();
            pods.sort_by(|a, b| {
                let (a, b) = (&a.metadata.name, &b.metadata.name);
                match how.order {
                    Order::Natural => natural_order(a, b),
                    Order::Lexical => a.cmp(b),
                }
            });
            for pod in pods {
                let key = (pod.metadata.namespace.as_str(), pod.metadata.name.as_str());
                if let Some(first) = seen.insert(key, role) {
                    if how.deduplicate {
                        seen.insert(key, first);
                        continue;
                    }
                    return Err(PodError::Duplicate {
                        name: pod.metadata.name.clone(),
                        first: first.to_owned(),
                        second: role.clone(),
                    });
                }
                if !is_wanted(pod, how.policy)? {
                    continue;
                }
                chosen.push(pod);
            }
        }
        let indexed =
            !chosen.is_empty() && chosen.iter().all(|pod| pod.completion_index().is_some());
        let mut by_index: BTreeMap<u32, &str> = BTreeMap::new();
        for pod in chosen {
            let address = format!("{}:{}", pod.host(how.address)?, how.port);
            match pod.completion_index().filter(|_| indexed) {
                Some(index) => {
                    if let Some(first) = by_index.insert(index, &pod.metadata.name) {
                        return Err(PodError::SameIndex {
                            role: role.clone(),
                            index,
                            first: first.to_owned(),
                            second: pod.metadata.name.clone(),
                        });
                    }
                    spec.set(role, index, address);
                }
                None => {
                    spec.push(role, address);
                }
            }
        }
    }
    Ok(spec)
}

fn is_wanted(pod: &PodFacts, policy: Policy) -> Result<bool, PodError> {
    let refuse = || {
        Err(PodError::NotRunning {
            name: pod.metadata.name.clone(),
            phase: pod.status.phase.clone(),
        })
    };
    match policy {
        Policy::Fail if !pod.is_running() => refuse(),
        Policy::Fail => Ok(true),
        Policy::SkipFinished if pod.is_finished() => Ok(false),
        Policy::SkipFinished if !pod.is_running() => refuse(),
        Policy::SkipFinished => Ok(true),
        Policy::SkipNotRunning => Ok(pod.is_running() && !pod.is_finished()),
    }
}

/// Says, for each role, who is missing and why: `worker: 1 of 3; worker-1 is
/// Pending`. Empty when every role has what it needs.
#[must_use]
pub fn missing(
    roles: &[Selected],
    needed: &BTreeMap<String, usize>,
    address: Address,
) -> Vec<String> {
    let mut report = Vec::new();
    let known: BTreeSet<&str> = roles.iter().map(|(role, _)| role.as_str()).collect();
    for (role, needed) in needed {
        if !known.contains(role.as_str()) {
            report.push(format!(
                "{role}: 0 of {needed}; no selector is given for this role"
            ));
        }
    }
    for (role, selectors) in roles {
        let needed = needed.get(role).copied().unwrap_or(0);
        let mut reasons = Vec::new();
        let mut ready = 0;
        let mut pods: Vec<_> = selectors.iter().flatten().collect();
        pods.sort_by(|a, b| natural_order(&a.metadata.name, &b.metadata.name));
        for pod in pods {
            let name = &pod.metadata.name;
            if pod.metadata.deletion_timestamp.is_some() {
                reasons.push(format!("{name} is being deleted"));
            } else if !pod.is_running() {
                reasons.push(format!("{name} is {}", pod.status.phase));
            } else if let Err(error) = pod.host(address) {
                reasons.push(error.to_string());
            } else {
                ready += 1;
            }
        }
        if ready >= needed {
            continue;
        }
        let matched = ready + reasons.len();
        if matched < needed {
            let others = if matched == 0 {
                "no pod matches".to_owned()
            } else {
                format!("{} not created yet", needed - matched)
            };
            reasons.push(others);
        }
        report.push(format!(
            "{role}: {ready} of {needed}; {}",
            reasons.join(", ")
        ));
    }
    report
}

#[cfg(test)]
#[path = "pods_tests.rs"]
mod tests;
