//! The resource usage of an object, by kind.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    Quota,
    names::{
        self, CLAIM, HUGE_PAGES, OF_STORAGE_CLASS, POD, SERVICE, alias_of, count_of,
        limits_extended,
    },
    pod::Pod,
};
use crate::quantity::{Amount, Amounts};

/// The usage that quotas count for the objects of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Evaluator {
    /// Pods and their resources.
    Pods,
    /// Services and their ports.
    Services,
    /// PersistentVolumeClaims and their storage.
    Claims,
    /// Only the number of objects, under these names.
    Count(Vec<String>),
}

impl Evaluator {
    /// The evaluator of a kind, given its group and plural. Quotas do not count Events.
    ///
    /// ```
    /// use longshore_model::quota::Evaluator;
    /// let names = |group, plural| Evaluator::of(group, plural);
    /// assert_eq!(names("", "pods"), Some(Evaluator::Pods));
    /// let count = Evaluator::Count(vec!["count/jobs.batch".to_owned()]);
    /// assert_eq!(names("batch", "jobs"), Some(count));
    /// assert_eq!(names("", "events"), None);
    /// ```
    #[must_use]
    pub fn of(group: &str, plural: &str) -> Option<Self> {
        match (group, plural) {
            ("" | "events.k8s.io", "events") => None,
            ("", "pods") => Some(Self::Pods),
            ("", "services") => Some(Self::Services),
            ("", "persistentvolumeclaims") => Some(Self::Claims),
            _ => {
                let mut counted = vec![count_of(group, plural)];
                counted.extend(alias_of(group, plural).map(str::to_owned));
                Some(Self::Count(counted))
            }
        }
    }

    /// Returns true if a limit of this name can apply to the objects.
    #[must_use]
    pub fn counts(&self, name: &str) -> bool {
        match self {
            Self::Pods => {
                let of_requests = name.strip_prefix(names::REQUESTS).unwrap_or(name);
                POD.contains(&name) || of_requests.starts_with(HUGE_PAGES) || limits_extended(name)
            }
            Self::Services => SERVICE.contains(&name),
            Self::Claims => {
                let class = name.split_once(OF_STORAGE_CLASS);
                let resource = class.map_or(name, |(_, resource)| resource);
                name == "count/persistentvolumeclaims" || CLAIM.contains(&resource)
            }
            Self::Count(own) => own.iter().any(|own| own == name),
        }
    }

    /// The limits of a quota in force that can apply to the objects.
    pub(super) fn limited(&self, quota: &Quota) -> BTreeSet<String> {
        let names = quota.hard.keys();
        names.filter(|name| self.counts(name)).cloned().collect()
    }

    /// Returns true if an object is in all scopes of a quota.
    #[must_use]
    pub fn is_in_scope(&self, quota: &Quota, object: &Map<String, Value>) -> bool {
        if quota.scopes.is_empty() {
            return true;
        }
        match self {
            Self::Pods => {
                let pod = Pod::of(object);
                quota.scopes.iter().all(|scope| scope.has_pod(&pod))
            }
            Self::Claims => {
                let claim = Claim::of(object);
                let classes = claim.attributes_classes();
                quota.scopes.iter().all(|scope| scope.has_claim(&classes))
            }
            Self::Services | Self::Count(_) => false,
        }
    }

    /// Returns the resource usage of an object.
    #[must_use]
    pub fn usage(&self, object: &Map<String, Value>, now: Timestamp) -> Amounts {
        match self {
            Self::Pods => Pod::of(object).usage(now),
            Self::Services => service_usage(object),
            Self::Claims => Claim::of(object).usage(),
            Self::Count(names) => {
                let names = names.iter();
                names.map(|name| (name.clone(), Amount::of(1))).collect()
            }
        }
    }

    /// Returns the resources that quotas require and the object does not specify, in the text of
    /// Kubernetes' message.
    pub(super) fn missing(
        &self,
        limited: &BTreeSet<String>,
        object: &Map<String, Value>,
    ) -> Option<String> {
        match self {
            Self::Pods => Pod::of(object).missing(limited),
            _ => None,
        }
    }

    /// Returns true if an update of an object can change what quotas count.
    #[must_use]
    pub fn is_charged_for_update(
        &self,
        before: &Map<String, Value>,
        after: &Map<String, Value>,
    ) -> bool {
        match self {
            Self::Pods => Pod::of(before).has_deadline() != Pod::of(after).has_deadline(),
            Self::Services | Self::Claims => true,
            Self::Count(_) => false,
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Service {
    r#type: String,
    ports: Option<Vec<Port>>,
    allocate_load_balancer_node_ports: Option<bool>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Port {
    node_port: i64,
}

fn service_usage(object: &Map<String, Value>) -> Amounts {
    let spec = object.get("spec").unwrap_or(&Value::Null);
    let service = Service::deserialize(spec).unwrap_or_default();
    let ports = service.ports.unwrap_or_default();
    let with_node_port = ports.iter().filter(|port| port.node_port != 0).count();
    let (node_ports, balancers) = match &*service.r#type {
        "NodePort" => (ports.len(), 0),
        "LoadBalancer" if service.allocate_load_balancer_node_ports == Some(false) => {
            (with_node_port, 1)
        }
        "LoadBalancer" => (ports.len(), 1),
        _ => (0, 0),
    };
    let node_ports = i64::try_from(node_ports).unwrap_or(i64::MAX);
    let amounts = SERVICE.iter().zip([1, 1, node_ports, balancers]);
    amounts
        .map(|(name, amount)| ((*name).to_owned(), Amount::of(amount)))
        .collect()
}

/// A PersistentVolumeClaim, as far as quotas depend on it.
struct Claim<'a>(&'a Map<String, Value>);

impl<'a> Claim<'a> {
    fn of(object: &'a Map<String, Value>) -> Self {
        Self(object)
    }

    fn text(&self, path: &[&str]) -> &'a str {
        let (first, rest) = match path {
            [first, rest @ ..] => (first, rest),
            [] => return "",
        };
        let mut found = self.0.get(*first);
        for name in rest {
            found = found.and_then(|value| value.get(name));
        }
        found.and_then(Value::as_str).unwrap_or_default()
    }

    fn attributes_classes(&self) -> Vec<&'a str> {
        let classes = [
            self.text(&["spec", "volumeAttributesClassName"]),
            self.text(&["status", "currentVolumeAttributesClassName"]),
            self.text(&[
                "status",
                "modifyVolumeStatus",
                "targetVolumeAttributesClassName",
            ]),
        ];
        classes
            .into_iter()
            .filter(|name| !name.is_empty())
            .collect()
    }

    fn storage(&self) -> Option<Amount> {
        let amount = |path: &[&str]| self.text(path).parse::<Amount>().ok();
        let requested = amount(&["spec", "resources", "requests", "storage"])?;
        let allocated = amount(&["status", "allocatedResources", "storage"]);
        // A volume that is being expanded has the larger size.
        let most = allocated.filter(|allocated| *allocated > requested);
        Some(most.unwrap_or(requested).rounded_up())
    }

    fn usage(&self) -> Amounts {
        let class = match self.text(&[
            "metadata",
            "annotations",
            "volume.beta.kubernetes.io/storage-class",
        ]) {
            "" => self.text(&["spec", "storageClassName"]),
            class => class,
        };
        let mut usage = Amounts::from([("count/persistentvolumeclaims".to_owned(), Amount::of(1))]);
        let amounts = CLAIM.iter().zip([Some(Amount::of(1)), self.storage()]);
        for (name, amount) in amounts {
            let Some(amount) = amount else { continue };
            usage.insert((*name).to_owned(), amount);
            if !class.is_empty() {
                usage.insert(format!("{class}{OF_STORAGE_CLASS}{name}"), amount);
            }
        }
        usage
    }
}
