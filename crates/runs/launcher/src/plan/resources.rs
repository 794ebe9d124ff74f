//! Resource requests and limits of containers.

use std::collections::BTreeMap;

use longshore_client::k8s_openapi::{
    api::core::v1::ResourceRequirements, apimachinery::pkg::api::resource::Quantity,
};
use longshore_model::Quantity as Number;
use longshore_resolver::accelerators::device;

use crate::config::RoleSpec;

/// The full name of the resource `gpu`.
const GPU: &str = "nvidia.com/gpu";

/// The number of accelerators of each task of a role, of the most frequent kind.
pub(super) fn accelerators(role: &RoleSpec) -> u64 {
    let numbers = role
        .resources
        .iter()
        .filter_map(|(name, quantity)| device(full_name(name)).and_then(|_| quantity.parse().ok()));
    numbers.max().unwrap_or(0)
}

fn full_name(name: &str) -> &str {
    if name == "gpu" { GPU } else { name }
}

/// Requests, and equal limits except for CPU: memory must not be exceeded, and Kubernetes
/// requires limits for accelerators.
pub(super) fn of_command(role: &RoleSpec) -> Option<ResourceRequirements> {
    let (mut requests, mut limits) = (BTreeMap::new(), BTreeMap::new());
    for (name, quantity) in &role.resources {
        let name = full_name(name);
        if name != "cpu" {
            limits.insert(name.to_owned(), Quantity(quantity.clone()));
        }
        if !name.contains('/') {
            requests.insert(name.to_owned(), Quantity(quantity.clone()));
        }
    }
    let given = |map: BTreeMap<_, _>| Some(map).filter(|map| !map.is_empty());
    (!role.resources.is_empty()).then(|| ResourceRequirements {
        requests: given(requests),
        limits: given(limits),
        ..ResourceRequirements::default()
    })
}

/// The small requests and limits of an init container if the role sets resources, because a quota
/// requires them of each container. They never exceed the command's, so that they meet a
/// LimitRange.
pub(super) fn of_init_container(role: &RoleSpec) -> Option<ResourceRequirements> {
    let at_most = |name: &str, enough: &str| {
        let number = |text: &str| text.parse::<Number>().ok().map(|number| number.value());
        let own = role.resources.get(name).map(String::as_str);
        let less = own.filter(|own| number(own) < number(enough));
        (name.to_owned(), Quantity(less.unwrap_or(enough).to_owned()))
    };
    (!role.resources.is_empty()).then(|| ResourceRequirements {
        requests: Some([at_most("cpu", "100m"), at_most("memory", "64Mi")].into()),
        limits: Some([at_most("memory", "256Mi")].into()),
        ..ResourceRequirements::default()
    })
}
