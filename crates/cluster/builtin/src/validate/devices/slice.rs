//! ResourceSlices: the devices that a driver offers.

use longshore_model::CauseList;

use super::{FieldValue, at_most, pool_name, taint};
use crate::{
    cause::Cause,
    json::Object,
    validate::{field_value::Causes, immutable, meta, node_selector, storage::driver_name},
};

/// The fields that select the nodes with access to the devices.
const NODES: [&str; 4] = [
    "nodeName",
    "nodeSelector",
    "allNodes",
    "perDeviceNodeSelection",
];

pub(crate) fn slice(object: &Object, causes: &mut CauseList) {
    let (spec, causes) = (FieldValue::field(object, "spec"), &mut Causes(causes));
    driver_name(&spec.get("driver"), causes);
    pool(&spec.get("pool"), causes);
    nodes(&spec, causes);
    let (devices, counters) = (spec.get("devices"), spec.get("sharedCounters"));
    if devices.is_set() && counters.is_set() {
        causes.0.push(Cause::invalid(
            &spec.path,
            "",
            "only one of `sharedCounters` or `devices` is allowed",
        ));
    }
    let is_advanced = |device: FieldValue<'_>| {
        ["taints", "consumesCounters"]
            .iter()
            .any(|field| device.get(field).len() > 0)
    };
    let limit = if devices.items().any(is_advanced) {
        64
    } else {
        128
    };
    at_most(&devices, limit, causes);
    for device in devices.items() {
        self::device(&device, causes);
    }
    causes.unique(devices.items().map(|device| {
        let path = device.path.clone();
        device.get("name").with_path(path)
    }));
    at_most(&counters, 8, causes);
    for set in counters.items() {
        causes.label(&set.get("name"));
        let counters = set.get("counters");
        if counters.len() == 0 {
            causes.required(&counters, "");
        }
        at_most(&counters, 32, causes);
    }
}

pub(crate) fn slice_change(before: &Object, after: &Object, causes: &mut CauseList) {
    let fixed = ["spec.pool.name", "spec.driver", "spec.nodeName"];
    immutable::fixed(before, after, &fixed, causes);
}

fn pool(pool: &FieldValue<'_>, causes: &mut Causes<'_>) {
    pool_name(&pool.get("name"), causes);
    let (count, generation) = (pool.get("resourceSliceCount"), pool.get("generation"));
    let number = count.number().unwrap_or_default();
    if number <= 0 {
        let detail = "must be greater than zero";
        causes.0.push(Cause::invalid(&count.path, number, detail));
    }
    if generation.number().unwrap_or_default() < 0 {
        causes.invalid(&generation, "must be greater than or equal to zero");
    }
}

/// Requires that exactly one field selects the nodes with access.
fn nodes(spec: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let mut set = Vec::new();
    for name in NODES {
        let field = spec.get(name);
        match name {
            _ if !field.is_set() => continue,
            "nodeName" if field.text().is_empty() => {
                causes.invalid(&field, "must be either unset or set to a non-empty string");
                continue;
            }
            "nodeName" => meta::subdomain(&field.path, field.text(), causes.0),
            "nodeSelector" => {
                let terms = field.get("nodeSelectorTerms");
                for term in terms.items() {
                    node_selector::term(&term, causes);
                }
                if terms.len() != 1 {
                    causes.invalid(&terms, "must have exactly one node selector term");
                }
            }
            _ if !field.is_true() => {
                causes.invalid(&field, "must be either unset or set to true");
                continue;
            }
            _ => {}
        }
        set.push(format!("`{name}`"));
    }
    let all = NODES.map(|name| format!("`{name}`")).join(", ");
    let detail = format!("exactly one of {all} is required");
    match set.len() {
        1 => {}
        0 => causes.required(spec, &detail),
        _ => causes.0.push(Cause::invalid(
            &spec.path,
            format!("{{{}}}", set.join(", ")),
            &format!("{detail}, but multiple fields are set"),
        )),
    }
}

fn device(device: &FieldValue<'_>, causes: &mut Causes<'_>) {
    causes.label(&device.get("name"));
    let (attributes, capacity) = (device.get("attributes"), device.get("capacity"));
    let count = attributes.len().saturating_add(capacity.len());
    if count > 32 {
        causes.0.push(Cause::invalid(
            &device.path,
            count,
            "the total number of attributes and capacities must not exceed 32",
        ));
    }
    for (_, attribute) in attributes.entries() {
        if attribute.len() != 1 {
            causes.0.push(Cause::invalid(
                &attribute.path,
                attribute.value(),
                "exactly one value must be specified",
            ));
        }
    }
    let taints = device.get("taints");
    at_most(&taints, 16, causes);
    for one in taints.items() {
        taint::taint(&one, causes);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn fields(spec: Value) -> Vec<String> {
        let mut object = Object::new();
        object.insert("spec".into(), spec);
        let mut causes = CauseList::new();
        slice(&object, &mut causes);
        causes.into_iter().map(|cause| cause.field).collect()
    }

    #[test]
    fn a_slice_has_a_driver_a_pool_and_nodes() {
        let pool = json!({"name": "a.org/b", "resourceSliceCount": 1, "generation": 0});
        let valid = json!({"driver": "a.org", "pool": pool, "nodeName": "n",
            "devices": [{"name": "gpu-0", "attributes": {"model": {"string": "x"}}}]});
        assert_eq!(fields(valid.clone()), Vec::<String>::new());
        let mut both = valid.clone();
        both["allNodes"] = json!(true);
        assert_eq!(fields(both), ["spec"]);
        let mut same = valid;
        same["devices"] = json!([{"name": "a"}, {"name": "a", "taints": [{"key": "k"}]}]);
        let expected = ["spec.devices[1].taints[0].effect", "spec.devices[1]"];
        assert_eq!(fields(same), expected);
        let expected = [
            "spec.driver",
            "spec.pool.name",
            "spec.pool.resourceSliceCount",
            "spec",
        ];
        assert_eq!(fields(json!({})), expected);
    }
}
