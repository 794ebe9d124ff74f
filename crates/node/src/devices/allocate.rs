//! Which container has which device. A device belongs to one container of one
//! pod until all processes of that pod are gone.

use std::collections::{BTreeMap, HashMap};

use k8s_openapi::api::core::v1::Container;
use longshore_model::Quantity;
use parking_lot::Mutex;

use super::{Device, Group};

/// Who has a device.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Holder {
    uid: String,
    container: String,
}

/// What comes of asking for devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Allocation {
    /// The variables that name the devices; none when none were asked for.
    Given(Vec<(String, String)>),
    /// Other pods have them, and may still be ending.
    Busy(String),
    /// The node has never so many.
    Impossible(String),
}

/// The node's devices and who has them.
#[derive(Debug, Default)]
pub(crate) struct Devices {
    groups: Vec<Group>,
    /// By the group's place and the device's place in it.
    holders: Mutex<HashMap<(usize, usize), Holder>>,
}

impl Devices {
    pub(crate) fn new(groups: Vec<Group>) -> Self {
        Self {
            groups,
            holders: Mutex::default(),
        }
    }

    /// How many of each resource the node offers.
    pub(crate) fn amounts(&self) -> BTreeMap<String, usize> {
        let groups = self.groups.iter();
        groups
            .map(|group| (group.resource.to_owned(), group.devices.len()))
            .collect()
    }

    /// The labels that describe the devices.
    pub(crate) fn labels(&self) -> BTreeMap<String, String> {
        let labels = self.groups.iter().flat_map(|group| group.labels.clone());
        labels.collect()
    }

    /// Gives a container the devices that it asks for, all or none. It keeps
    /// what it had before a restart, and may take over what the containers of
    /// `finished`, which ended for good, had in the same pod.
    pub(crate) fn allocate(
        &self,
        uid: &str,
        container: &Container,
        finished: &[&str],
    ) -> Allocation {
        let mut holders = self.holders.lock();
        let mut taken = Vec::new();
        let mut variables = Vec::new();
        for (group_place, group) in self.groups.iter().enumerate() {
            let wanted = wanted(container, group.resource);
            if wanted == 0 {
                continue;
            }
            let total = group.devices.len();
            let asks = |has: String| {
                let (name, resource) = (&container.name, group.resource);
                format!("container {name} asks for {wanted} of {resource}, and {has}")
            };
            if wanted > total as u64 {
                return Allocation::Impossible(asks(format!("the node has {total}")));
            }
            let rank = |place: usize| match holders.get(&(group_place, place)) {
                Some(holder) if holder.uid == uid && holder.container == container.name => Some(0),
                Some(holder) if holder.uid == uid && finished.contains(&&*holder.container) => {
                    Some(1)
                }
                None => Some(2),
                Some(_) => None,
            };
            let mut places: Vec<(u8, usize)> = (0..total)
                .filter_map(|place| Some((rank(place)?, place)))
                .collect();
            places.sort_unstable();
            let free = places.len();
            if (free as u64) < wanted {
                return Allocation::Busy(asks(format!("{free} of the node's {total} are free")));
            }
            places.truncate(usize::try_from(wanted).unwrap_or(usize::MAX));
            let mut places: Vec<usize> = places.into_iter().map(|(_, place)| place).collect();
            places.sort_unstable();
            let devices: Vec<&Device> = places.iter().map(|at| &group.devices[*at]).collect();
            variables.extend((group.variables)(&devices));
            taken.extend(places.into_iter().map(|place| (group_place, place)));
        }
        for place in taken {
            let holder = Holder {
                uid: uid.to_owned(),
                container: container.name.clone(),
            };
            holders.insert(place, holder);
        }
        Allocation::Given(variables)
    }

    /// All processes of a pod are gone.
    pub(crate) fn release(&self, uid: &str) {
        self.holders.lock().retain(|_, holder| holder.uid != uid);
    }
}

/// How many whole devices a container asks for: limits and requests of such a
/// resource are equal where the API server validated them.
fn wanted(container: &Container, resource: &str) -> u64 {
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
