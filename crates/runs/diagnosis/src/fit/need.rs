//! The requirements of a task for its node.

use std::collections::BTreeMap;

use longshore_model::Quantity;
use longshore_model::facts::{Container, PodSpec, Quantities, Taint, Toleration};
use serde_json::Value;

/// A requested amount of a resource.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Asked {
    /// The amount in the resource's unit: cores, bytes, or a count.
    pub(crate) number: f64,
}

impl Asked {
    /// The amount in human-readable form.
    pub(crate) fn text(&self, resource: &str) -> String {
        people(resource, &exact(self.number))
    }
}

/// The requirements of a task for its node.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Need {
    /// Quantities of resources, by name.
    pub amounts: BTreeMap<String, Asked>,
    /// Labels that the node must have.
    pub(crate) node_selector: BTreeMap<String, String>,
    /// The pod's affinity, as Kubernetes writes it.
    pub(crate) affinity: Value,
    tolerations: Vec<Toleration>,
}

impl Need {
    /// The requirements of a pod with this spec.
    #[must_use]
    pub fn of(spec: &PodSpec) -> Self {
        let asked = requests(spec).into_iter();
        Self {
            amounts: asked
                .filter(|(_, number)| *number > 0.0)
                .map(|(name, number)| (name, Asked { number }))
                .collect(),
            node_selector: spec.node_selector.clone(),
            affinity: spec.affinity.clone(),
            tolerations: spec.tolerations.clone(),
        }
    }

    /// Returns true if the task tolerates a taint.
    pub(crate) fn tolerates(&self, taint: &Taint) -> bool {
        self.tolerations.iter().any(|known| {
            let effect = known.effect.is_empty() || known.effect == taint.effect;
            let everything = known.key.is_empty() && known.operator == "Exists";
            let same = known.key == taint.key
                && (known.operator == "Exists" || known.value == taint.value);
            effect && (everything || same)
        })
    }
}

/// The requests of a pod: the sum over its containers, or the requests of an init container if they
/// are higher.
#[must_use]
pub fn requests(spec: &PodSpec) -> BTreeMap<String, f64> {
    let mut sum = total(spec, |container| {
        let mut amounts = container.resources.limits.clone();
        amounts.extend(container.resources.requests.clone());
        amounts
    });
    add(&mut sum, &spec.overhead);
    sum
}

/// The limits of a pod, computed like the requests.
#[must_use]
pub fn limits(spec: &PodSpec) -> BTreeMap<String, f64> {
    let mut sum = total(spec, |container| container.resources.limits.clone());
    // The overhead does not limit resources without a limit.
    let mut overhead = spec.overhead.clone();
    overhead.retain(|name, _| sum.contains_key(name));
    add(&mut sum, &overhead);
    sum
}

fn total(spec: &PodSpec, of: impl Fn(&Container) -> Quantities) -> BTreeMap<String, f64> {
    let mut sum = BTreeMap::new();
    for container in &spec.containers {
        add(&mut sum, &of(container));
    }
    // The requests of a sidecar are added to the requests of the containers, and of the init
    // containers after it.
    let mut beside = BTreeMap::new();
    let mut most: BTreeMap<String, f64> = BTreeMap::new();
    for container in &spec.init_containers {
        let amounts = of(container);
        if container.restart_policy == "Always" {
            add(&mut sum, &amounts);
            add(&mut beside, &amounts);
            continue;
        }
        let mut now = beside.clone();
        add(&mut now, &amounts);
        for (name, number) in now {
            let known = most.entry(name).or_default();
            *known = known.max(number);
        }
    }
    for (name, number) in most {
        let known = sum.entry(name).or_default();
        *known = known.max(number);
    }
    sum
}

fn add(sum: &mut BTreeMap<String, f64>, amounts: &Quantities) {
    for (name, text) in amounts {
        if let Ok(quantity) = text.parse::<Quantity>() {
            *sum.entry(name.clone()).or_default() += quantity.value();
        }
    }
}

/// A number as a quantity: an integer, or in thousandths.
#[must_use]
pub fn exact(number: f64) -> String {
    if number.fract() == 0.0 {
        format!("{number}")
    } else {
        format!("{}m", (number * 1000.0).ceil())
    }
}

/// A human-readable amount: bytes in powers of 1024.
#[must_use]
pub fn people(resource: &str, text: &str) -> String {
    let Ok(quantity) = text.parse::<Quantity>() else {
        return text.to_owned();
    };
    let is_bytes = ["memory", "storage", "hugepages-"]
        .iter()
        .any(|word| resource.contains(word));
    let mut value = quantity.value();
    if !is_bytes || value < 1024.0 {
        return quantity.canonical();
    }
    let mut unit = "";
    for next in ["Ki", "Mi", "Gi", "Ti", "Pi"] {
        if value < 1024.0 {
            break;
        }
        (value, unit) = (value / 1024.0, next);
    }
    let text = format!("{value:.1}");
    format!("{}{unit}", text.trim_end_matches(".0"))
}
