//! From pods to tasks. Pure: pods come in as values.

use std::collections::{BTreeMap, btree_map::Entry};

use serde::Serialize;

use crate::{
    address::{Address, Family, Port, bracketed},
    devices::{self, Accelerators},
    facts::PodFacts,
    order::Order,
    pod_error::PodError,
    policy::{Doubled, Policy},
    spec::{ClusterSpec, SpecError},
};

/// How pods become tasks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Assembly {
    /// The port of every task.
    pub port: Port,
    /// The address to use.
    pub address: Address,
    /// Of which family, where there are two.
    pub family: Family,
    /// The order of the tasks.
    pub order: Order,
    /// What to do about pods that are not simply running.
    pub policy: Policy,
}

impl Assembly {
    /// As TensorFlow's `KubernetesClusterResolver` does it: the nodes'
    /// addresses, names byte by byte, the phase alone.
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

/// A role and the pods of each of its selectors, in the selectors' order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Selected<'a> {
    /// The role's name.
    pub role: &'a str,
    /// The pods of each selector, in any order.
    pub pods: Vec<Vec<&'a PodFacts>>,
}

/// Which pod a task is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskPod {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Its node.
    pub node: Option<String>,
    /// Its host name.
    #[serde(skip)]
    pub(crate) hostname: String,
    /// Its own addresses.
    #[serde(skip)]
    pub(crate) ips: Vec<String>,
}

/// A task: who it is in its role, where it listens, and which pod it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Task {
    /// The role.
    pub role: String,
    /// The index in the role.
    pub index: u32,
    /// `host:port`, IPv6 in brackets.
    pub address: String,
    /// The pod.
    pub pod: TaskPod,
    /// The accelerators in its limits.
    pub accelerators: Accelerators,
}

/// The tasks of a job: by role, in the order of the roles, and by index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tasks {
    roles: Vec<String>,
    tasks: Vec<Task>,
}

impl Tasks {
    /// All of them.
    pub fn iter(&self) -> std::slice::Iter<'_, Task> {
        self.tasks.iter()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Those of a role.
    pub fn of_role<'a>(&'a self, role: &'a str) -> impl Iterator<Item = &'a Task> {
        self.iter().filter(move |task| task.role == role)
    }

    /// One task.
    #[must_use]
    pub fn get(&self, role: &str, index: u32) -> Option<&Task> {
        self.iter()
            .find(|task| task.role == role && task.index == index)
    }

    /// The address of a task as a URL, without a scheme where the layer is empty;
    /// empty when the role or the index is not given.
    ///
    /// # Errors
    /// A job or a task that is not there.
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

    /// How many accelerators a task has, by what frameworks call the device:
    /// `{"GPU": 2}`. Of a role or of all tasks: what every one of them has.
    ///
    /// # Errors
    /// A task that is not there.
    pub fn num_accelerators(
        &self,
        task_type: Option<&str>,
        task_id: Option<u32>,
    ) -> Result<BTreeMap<String, u64>, SpecError> {
        if let (Some(role), Some(index)) = (task_type, task_id) {
            self.spec().task_address(role, index)?;
        }
        let meant = self
            .iter()
            .filter(|task| task_type.is_none_or(|role| task.role == role))
            .filter(|task| task_type.is_none() || task_id.is_none_or(|index| task.index == index));
        Ok(devices::least(meant.map(|task| &task.accelerators)))
    }

    /// Their addresses. Roles without tasks are in it, empty.
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

/// Makes tasks of the pods selected for each role.
///
/// Within a role the pods of the first selector come first, each selector's
/// pods in the order asked for. Where completion indices count, they are the
/// tasks' indices, and holes stay holes; else indices are dense.
///
/// # Errors
/// A pod that does not run (by the policy), has no address or port, or is
/// matched twice.
pub fn assemble(selected: &[Selected<'_>], how: &Assembly) -> Result<Tasks, PodError> {
    let mut tasks = Tasks::default();
    let mut seen: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    for Selected { role, pods } in selected {
        let mut chosen: Vec<Vec<&PodFacts>> = Vec::new();
        for pods in pods {
            let mut pods = pods.clone();
            pods.sort_by(|a, b| how.order.compare(a, b));
            let mut wanted = Vec::new();
            for pod in pods {
                if is_first(&mut seen, pod, role, how.policy.doubled)? && how.policy.wants(pod)? {
                    wanted.push(pod);
                }
            }
            chosen.push(wanted);
        }
        let places = places(role, &chosen, how.order)?;
        if !tasks.roles.iter().any(|known| known == role) {
            tasks.roles.push((*role).to_owned());
        }
        for (index, pod) in places {
            tasks.tasks.push(task(role, index, pod, how)?);
        }
    }
    Ok(tasks)
}

/// Whether no selector before this one has the pod.
fn is_first<'a>(
    seen: &mut BTreeMap<(&'a str, &'a str), &'a str>,
    pod: &'a PodFacts,
    role: &'a str,
    doubled: Doubled,
) -> Result<bool, PodError> {
    match (
        seen.entry((&pod.metadata.namespace, &pod.metadata.name)),
        doubled,
    ) {
        (Entry::Vacant(entry), _) => {
            entry.insert(role);
            Ok(true)
        }
        (Entry::Occupied(_), Doubled::First) => Ok(false),
        (Entry::Occupied(first), Doubled::Refuse) => Err(PodError::Doubled {
            name: pod.metadata.name.clone(),
            first: (*first.get()).to_owned(),
            second: role.to_owned(),
        }),
    }
}

/// The index of each pod of a role.
fn places<'a>(
    role: &str,
    chosen: &[Vec<&'a PodFacts>],
    order: Order,
) -> Result<Vec<(u32, &'a PodFacts)>, PodError> {
    let all = || chosen.iter().flatten().copied();
    let by_index = match order {
        Order::Lexical => false,
        // Several Jobs count from 0 each.
        Order::Natural => chosen.len() == 1 && all().all(|pod| pod.completion_index().is_some()),
        Order::CompletionIndex => true,
    };
    if !by_index {
        return Ok((0..).zip(all()).collect());
    }
    let mut places: BTreeMap<u32, &PodFacts> = BTreeMap::new();
    for pod in all() {
        let name = || pod.metadata.name.clone();
        let index = pod
            .completion_index()
            .ok_or_else(|| PodError::NoIndex { name: name() })?;
        if let Some(first) = places.insert(index, pod) {
            return Err(PodError::SameIndex {
                role: role.to_owned(),
                index,
                first: first.metadata.name.clone(),
                second: name(),
            });
        }
    }
    Ok(places.into_iter().collect())
}

fn task(role: &str, index: u32, pod: &PodFacts, how: &Assembly) -> Result<Task, PodError> {
    let host = bracketed(&pod.host(how.address, how.family)?);
    let port = pod.port(&how.port, how.address)?;
    let meta = &pod.metadata;
    Ok(Task {
        role: role.to_owned(),
        index,
        address: format!("{host}:{port}"),
        pod: TaskPod {
            namespace: meta.namespace.clone(),
            name: meta.name.clone(),
            uid: meta.uid.clone(),
            node: pod.spec.node_name.clone(),
            hostname: pod.hostname().to_owned(),
            ips: pod.ips().map(str::to_owned).collect(),
        },
        accelerators: devices::of(pod),
    })
}

#[cfg(test)]
#[path = "tasks_tests.rs"]
mod tests;
