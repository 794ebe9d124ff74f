//! Allocates devices to containers. A device belongs to one container of one pod until all
//! processes of the pod have ended.

use std::collections::{BTreeMap, HashMap};

use k8s_openapi::api::core::v1::Container;
use longshore_model::Quantity;
use parking_lot::Mutex;

use super::{Device, Group};

/// The container that holds a device.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Holder {
    uid: String,
    container: String,
}

/// The result of a device allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Allocation {
    /// The variables that name the allocated devices. Empty if the container requests none.
    Allocated(Vec<(String, String)>),
    /// Other pods hold the devices and may still be terminating.
    Busy(String),
    /// The node has fewer devices than requested.
    Impossible(String),
}

/// The node's devices and their holders.
#[derive(Debug, Default)]
pub(crate) struct Devices {
    groups: Vec<Group>,
    /// Holders by index of the group and index of the device in it.
    holders: Mutex<HashMap<(usize, usize), Holder>>,
}

impl Devices {
    pub(crate) fn new(groups: Vec<Group>) -> Self {
        Self {
            groups,
            holders: Mutex::default(),
        }
    }

    /// Returns the number of devices of each resource.
    pub(crate) fn amounts(&self) -> BTreeMap<String, usize> {
        let groups = self.groups.iter();
        groups
            .map(|group| (group.resource.to_owned(), group.devices.len()))
            .collect()
    }

    /// Returns the labels that describe the devices.
    pub(crate) fn labels(&self) -> BTreeMap<String, String> {
        let labels = self.groups.iter().flat_map(|group| group.labels.clone());
        labels.collect()
    }

    /// Allocates all devices that a container requests, or none. The container keeps its devices
    /// from before a restart, and can reuse devices of the completed containers `finished` in the
    /// same pod.
    pub(crate) fn allocate(
        &self,
        uid: &str,
        container: &Container,
        finished: &[&str],
    ) -> Allocation {
        let mut holders = self.holders.lock();
        let mut taken = Vec::new();
        let mut variables = Vec::new();
        for (group_index, group) in self.groups.iter().enumerate() {
            let requested = requested(container, group.resource);
            if requested == 0 {
                continue;
            }
            let total = group.devices.len();
            let asks = |has: String| {
                let (name, resource) = (&container.name, group.resource);
                format!("container {name} asks for {requested} of {resource}, and {has}")
            };
            if requested > total as u64 {
                return Allocation::Impossible(asks(format!("the node has {total}")));
            }
            let rank = |index: usize| match holders.get(&(group_index, index)) {
                Some(holder) if holder.uid == uid && holder.container == container.name => Some(0),
                Some(holder) if holder.uid == uid && finished.contains(&&*holder.container) => {
                    Some(1)
                }
                None => Some(2),
                Some(_) => None,
            };
            let mut indexes: Vec<(u8, usize)> = (0..total)
                .filter_map(|index| Some((rank(index)?, index)))
                .collect();
            indexes.sort_unstable();
            let free = indexes.len();
            if (free as u64) < requested {
                return Allocation::Busy(asks(format!("{free} of the node's {total} are free")));
            }
            indexes.truncate(usize::try_from(requested).unwrap_or(usize::MAX));
            let mut indexes: Vec<usize> = indexes.into_iter().map(|(_, index)| index).collect();
            indexes.sort_unstable();
            let devices: Vec<&Device> = indexes.iter().map(|at| &group.devices[*at]).collect();
            variables.extend((group.variables)(&devices));
            taken.extend(indexes.into_iter().map(|index| (group_index, index)));
        }
        for index in taken {
            let holder = Holder {
                uid: uid.to_owned(),
                container: container.name.clone(),
            };
            holders.insert(index, holder);
        }
        Allocation::Allocated(variables)
    }

    /// Frees the devices of a pod whose processes have all ended.
    pub(crate) fn release(&self, uid: &str) {
        self.holders.lock().retain(|_, holder| holder.uid != uid);
    }
}

/// Returns the number of devices a container requests. The API server ensures
/// that limits and requests of extended resources are equal.
fn requested(container: &Container, resource: &str) -> u64 {
    let resources = container.resources.as_ref();
    let lists = resources.map(|all| [all.limits.as_ref(), all.requests.as_ref()]);
    let mut lists = lists.into_iter().flatten().flatten();
    let quantity = lists.find_map(|list| list.get(resource));
    let value = quantity.and_then(|quantity| quantity.0.parse::<Quantity>().ok());
    let value = value.map_or(0.0, |quantity| quantity.value());
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "saturates, as wanted"
    )]
    {
        value.ceil() as u64
    }
}
