//! Defaults of the kinds of resource.k8s.io.

use jiff::Timestamp;
use serde_json::Value;

use crate::json::{self, Object};

/// Completes the requests of a ResourceClaim.
pub(crate) fn claim(claim: &mut Object) {
    claim_spec(json::child(claim, "spec"));
}

/// Completes the requests of a ResourceClaimTemplate.
pub(crate) fn template(template: &mut Object) {
    claim_spec(json::child(json::child(template, "spec"), "spec"));
}

fn claim_spec(spec: &mut Object) {
    let devices = json::child(spec, "devices");
    for request in json::items_mut(devices, "requests") {
        if let Some(exactly) = request.get_mut("exactly").and_then(Value::as_object_mut) {
            count(exactly);
        }
        json::items_mut(request, "firstAvailable").for_each(count);
    }
}

/// Requests one device by default.
fn count(request: &mut Object) {
    json::default_text(request, "allocationMode", "ExactCount");
    if json::text(request, "allocationMode") == "ExactCount"
        && json::number(request, "count").unwrap_or_default() == 0
    {
        request.insert("count".into(), 1.into());
    }
}

/// Removes the statuses that drivers reported about devices when the allocation is removed.
pub(crate) fn claim_status(before: &Object, claim: &mut Object, _: Timestamp) {
    let was_allocated = json::at(before, "status.allocation").is_some();
    if was_allocated && json::at(claim, "status.allocation").is_none() {
        json::child(claim, "status").remove("devices");
    }
}

fn taint_time(taint: &mut Object, now: &str) {
    json::default(taint, "timeAdded", now);
}

/// Sets when the taint of a new DeviceTaintRule was added.
pub(crate) fn taint_rule_time(rule: &mut Object, now: &str) {
    taint_time(json::child(json::child(rule, "spec"), "taint"), now);
}

/// Sets when the taints of a new ResourceSlice were added.
pub(crate) fn slice_times(slice: &mut Object, now: &str) {
    for device in json::items_mut(json::child(slice, "spec"), "devices") {
        json::items_mut(device, "taints").for_each(|taint| taint_time(taint, now));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_is_for_one_device() {
        let request = json!({"name": "a", "exactly": {"deviceClassName": "gpu"}});
        let all = json!({"name": "b", "firstAvailable": [
            {"name": "x", "allocationMode": "All"}, {"name": "y", "count": 3}]});
        let mut object = Object::new();
        object.insert(
            "spec".into(),
            json!({"devices": {"requests": [request, all]}}),
        );
        claim(&mut object);
        let requests = &object["spec"]["devices"]["requests"];
        assert_eq!(requests[0]["exactly"]["allocationMode"], "ExactCount");
        assert_eq!(requests[0]["exactly"]["count"], 1);
        assert_eq!(requests[1]["firstAvailable"][0].get("count"), None);
        assert_eq!(requests[1]["firstAvailable"][1]["count"], 3);
    }
}
