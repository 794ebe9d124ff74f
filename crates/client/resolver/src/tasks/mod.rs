//! Assembles pods into tasks. Pure: the pods are passed in as values.

use std::collections::{BTreeMap, btree_map::Entry};

use longshore_model::facts::PodFacts;
use serde::Serialize;

use crate::{
    address::{self, Address, Family, Port, bracketed},
    devices::{self, Accelerators},
    order::Order,
    pod_error::PodError,
    policy::{Doubled, Policy},
    spec::{ClusterSpec, SpecError},
};

/// The options for assembling pods into tasks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Assembly {
    /// The port of every task.
    pub port: Port,
    /// The address to use.
    pub address: Address,
    /// The IP family to use with dual-stack addresses.
    pub family: Family,
    /// The order of the tasks.
    pub order: Order,
    /// The treatment of pods that are not running and ready.
    pub policy: Policy,
}

impl Assembly {
    /// Returns the behaviour of TensorFlow's `KubernetesClusterResolver`: it uses
    /// node addresses, sorts names byte by byte, and checks only the phase.
    #[must_use]
    pub fn tensorflow() -> Self {
        Self {
            address: Address::HostIp,
            order: Order::Lexical,
            policy: Policy::tensorflow(),
            ..Self::default()
        }
    }
}

/// A role and the pods that each of its selectors matches, in the order of the
/// selectors.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Selected<'a> {
    /// The role's name.
    pub role: &'a str,
    /// The pods of each selector, in any order.
    pub pods: Vec<Vec<&'a PodFacts>>,
}

/// The pod of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskPod {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub name: String,
    /// The pod's UID.
    pub uid: String,
    /// The pod's node.
    pub node: Option<String>,
    /// The pod's host name.
    #[serde(skip)]
    pub(crate) hostname: String,
    /// The pod's IP addresses.
    #[serde(skip)]
    pub(crate) ips: Vec<String>,
}

/// A task: its role and index, its address, and its pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Task {
    /// The role.
    pub role: String,
    /// The index in the role.
    pub index: u32,
    /// `host:port`. IPv6 hosts are in brackets.
    pub address: String,
    /// The pod.
    pub pod: TaskPod,
    /// The accelerators in the pod's limits.
    pub accelerators: Accelerators,
}

/// The tasks of a job, by role in the order of the roles, then by index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tasks {
    roles: Vec<String>,
    tasks: Vec<Task>,
}

impl Tasks {
    /// Returns all tasks.
    pub fn iter(&self) -> std::slice::Iter<'_, Task> {
        self.tasks.iter()
    }

    /// Returns the number of tasks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Returns true if the list of tasks is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Returns the tasks of a role.
    pub fn of_role<'a>(&'a self, role: &'a str) -> impl Iterator<Item = &'a Task> {
        self.iter().filter(move |task| task.role == role)
    }

    /// Returns one task.
    #[must_use]
    pub fn get(&self, role: &str, index: u32) -> Option<&Task> {
        self.iter()
            .find(|task| task.role == role && task.index == index)
    }

    /// Returns the address of a task as a URL. It has no scheme if `rpc_layer` is
    /// empty. The URL is empty if the role or the index is `None`.
    ///
    /// # Errors
    /// The job or the task does not exist.
    pub fn master(
        &self,
        task_type: Option<&str>,
        task_id: Option<u32>,
        rpc_layer: &str,
    ) -> Result<String, SpecError> {
        let (Some(task_type), Some(task_id)) = (task_type, task_id) else {
            return Ok(String::new());
        };
        let spec = self.spec();
        let address = spec.task_address(task_type, task_id)?;
        Ok(match rpc_layer {
            "" => address.to_owned(),
            layer => format!("{layer}://{address}"),
        })
    }

    /// Returns the number of accelerators, by the device names that frameworks use:
    /// `{"GPU": 2}`. For a role, or for all tasks, it is what every one of the
    /// tasks has.
    ///
    /// # Errors
    /// The task does not exist.
    pub fn num_accelerators(
        &self,
        task_type: Option<&str>,
        task_id: Option<u32>,
    ) -> Result<BTreeMap<String, u64>, SpecError> {
        if let (Some(role), Some(index)) = (task_type, task_id) {
            self.spec().task_address(role, index)?;
        }
        let matching = self
            .iter()
            .filter(|task| task_type.is_none_or(|role| task.role == role))
            .filter(|task| task_type.is_none() || task_id.is_none_or(|index| task.index == index));
        Ok(devices::minimum(matching.map(|task| &task.accelerators)))
    }

    /// Returns the addresses of the tasks. Roles without tasks are included with an
    /// empty list.
    #[must_use]
    pub fn spec(&self) -> ClusterSpec {
        let mut spec = ClusterSpec::new();
        for role in &self.roles {
            spec.add_job(role);
        }
        for task in self {
            spec.set(&task.role, task.index, task.address.clone());
        }
        spec
    }
}

impl<'a> IntoIterator for &'a Tasks {
    type Item = &'a Task;
    type IntoIter = std::slice::Iter<'a, Task>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Assembles the pods of each role into tasks.
///
/// Within a role, the pods of the first selector come first. The pods of each
/// selector are sorted as requested. If the order is by completion index, each task
/// keeps its pod's index, even if some indices are missing. Otherwise indices are
/// consecutive.
///
/// # Errors
/// A pod that the policy refuses, that has no address or port, or that two
/// selectors match.
pub fn assemble(selected: &[Selected<'_>], assembly: &Assembly) -> Result<Tasks, PodError> {
    let mut tasks = Tasks::default();
    let mut seen: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    for Selected { role, pods } in selected {
        let mut included_pods: Vec<Vec<&PodFacts>> = Vec::new();
        for pods in pods {
            let mut pods = pods.clone();
            pods.sort_by(|a, b| assembly.order.compare(a, b));
            let mut included = Vec::new();
            for pod in pods {
                if is_first(&mut seen, pod, role, assembly.policy.doubled)?
                    && assembly.policy.includes(pod)?
                {
                    included.push(pod);
                }
            }
            included_pods.push(included);
        }
        let task_indices = task_indices(role, &included_pods, assembly.order)?;
        if !tasks.roles.iter().any(|known| known == role) {
            tasks.roles.push((*role).to_owned());
        }
        for (index, pod) in task_indices {
            tasks.tasks.push(task(role, index, pod, assembly)?);
        }
    }
    Ok(tasks)
}

/// Returns true if no earlier selector matched the pod.
fn is_first<'a>(
    seen: &mut BTreeMap<(&'a str, &'a str), &'a str>,
    pod: &'a PodFacts,
    role: &'a str,
    doubled: Doubled,
) -> Result<bool, PodError> {
    match (
        seen.entry((pod.metadata.namespace(), &pod.metadata.name)),
        doubled,
    ) {
        (Entry::Vacant(entry), _) => {
            entry.insert(role);
            Ok(true)
        }
        (Entry::Occupied(_), Doubled::First) => Ok(false),
        (Entry::Occupied(_), Doubled::Each) => Ok(true),
        (Entry::Occupied(first), Doubled::Refuse) => Err(PodError::Doubled {
            name: pod.metadata.name.clone(),
            first: (*first.get()).to_owned(),
            second: role.to_owned(),
        }),
    }
}

/// Returns the index of each pod of a role.
fn task_indices<'a>(
    role: &str,
    included_pods: &[Vec<&'a PodFacts>],
    order: Order,
) -> Result<Vec<(u32, &'a PodFacts)>, PodError> {
    let all = || included_pods.iter().flatten().copied();
    let by_index = match order {
        Order::Lexical => false,
        // With several Jobs, indices repeat, because each Job counts from 0.
        Order::Natural => {
            included_pods.len() == 1 && all().all(|pod| pod.completion_index().is_some())
        }
        Order::CompletionIndex => true,
    };
    if !by_index {
        return Ok((0..).zip(all()).collect());
    }
    let mut task_indices: BTreeMap<u32, &PodFacts> = BTreeMap::new();
    for pod in all() {
        let name = || pod.metadata.name.clone();
        let index = pod
            .completion_index()
            .ok_or_else(|| PodError::NoIndex { name: name() })?;
        if let Some(first) = task_indices.insert(index, pod) {
            return Err(PodError::SameIndex {
                role: role.to_owned(),
                index,
                first: first.metadata.name.clone(),
                second: name(),
            });
        }
    }
    Ok(task_indices.into_iter().collect())
}

fn task(role: &str, index: u32, pod: &PodFacts, assembly: &Assembly) -> Result<Task, PodError> {
    let host = bracketed(&address::host(pod, assembly.address, assembly.family)?);
    let port = address::port(pod, &assembly.port, assembly.address)?;
    let meta = &pod.metadata;
    Ok(Task {
        role: role.to_owned(),
        index,
        address: format!("{host}:{port}"),
        pod: TaskPod {
            namespace: meta.namespace().to_owned(),
            name: meta.name.clone(),
            uid: meta.uid.clone(),
            node: Some(pod.spec.node_name.clone()).filter(|name| !name.is_empty()),
            hostname: pod.hostname().to_owned(),
            ips: pod.ips().map(str::to_owned).collect(),
        },
        accelerators: devices::of(pod),
    })
}

#[cfg(test)]
mod tests;
