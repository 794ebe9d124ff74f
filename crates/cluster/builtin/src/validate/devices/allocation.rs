//! Validates the status of a ResourceClaim: the allocated devices and their users.

use std::collections::HashSet;

use longshore_model::CauseList;

use super::{FieldValue, at_most, configuration, index, pool_name, requests::Names, taint};
use crate::{
    cause::Cause,
    json::{self, Object},
    validate::{field_value::Causes, storage::driver_name},
};

pub(crate) fn claim_status(before: &Object, after: &Object, causes: &mut CauseList) {
    let causes = &mut Causes(causes);
    let names = Names::of(&FieldValue::field(after, "spec").get("devices"));
    let old = FieldValue::field(before, "status");
    let new = FieldValue::field(after, "status");
    let allocation = new.get("allocation");
    let users = new.get("reservedFor");
    reserved(&users, causes);
    devices(&new, causes);
    if users.len() > 0 && !allocation.is_set() {
        causes.forbidden(&users, "may not be specified when `allocated` is not set");
    } else if users.len() > 0 && json::at(after, "metadata.deletionTimestamp").is_some() {
        let known: HashSet<String> = uids(&old.get("reservedFor")).collect();
        if uids(&users).any(|uid| !known.contains(&uid)) {
            causes.forbidden(
                &users,
                "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set",
            );
        }
    }
    let known = old.get("allocation");
    if known.is_set() && allocation.is_set() {
        causes.immutable(&known, &allocation);
    } else if allocation.is_set() {
        allocated(&allocation, &names, causes);
    }
}

fn uids(users: &FieldValue<'_>) -> impl Iterator<Item = String> {
    users.items().map(|user| user.get("uid").text().to_owned())
}

fn reserved(users: &FieldValue<'_>, causes: &mut Causes<'_>) {
    at_most(users, 256, causes);
    for user in users.items() {
        for name in ["resource", "name", "uid"] {
            let field = user.get(name);
            if field.text().is_empty() {
                causes.required(&field, "");
            }
        }
    }
    let mut seen = HashSet::new();
    for (number, uid) in uids(users).enumerate() {
        if !uid.is_empty() && !seen.insert(uid.clone()) {
            causes.0.push(Cause::duplicate(&index(users, number), uid));
        }
    }
}

/// The identity of an allocated device.
fn device(entry: &FieldValue<'_>) -> [String; 4] {
    ["driver", "pool", "device", "shareID"].map(|name| entry.get(name).text().to_owned())
}

/// Requires that drivers report only about allocated devices.
fn devices(status: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let results = status.get("allocation").get("devices").get("results");
    let allocated: HashSet<[String; 4]> = results.items().map(|one| device(&one)).collect();
    for reported in status.get("devices").items() {
        if !allocated.contains(&device(&reported)) {
            let detail = "must be an allocated device in the claim";
            causes.invalid(&reported, detail);
        }
    }
}

fn allocated(allocation: &FieldValue<'_>, names: &Names<'_>, causes: &mut Causes<'_>) {
    let devices = allocation.get("devices");
    let (results, configs) = (devices.get("results"), devices.get("config"));
    at_most(&results, 32, causes);
    for result in results.items() {
        names.check(&result.get("request"), causes);
        driver_name(&result.get("driver"), causes);
        pool_name(&result.get("pool"), causes);
        causes.label(&result.get("device"));
        for toleration in result.get("tolerations").items() {
            taint::toleration(&toleration, causes);
        }
    }
    at_most(&configs, 64, causes);
    for config in configs.items() {
        let source = config.get("source");
        match source.text() {
            "" => causes.required(&source, ""),
            _ => causes.one_of(&source, &["FromClaim", "FromClass"]),
        }
        names.check_all(&config.get("requests"), causes);
        configuration(&config, causes);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn object(status: Value) -> Object {
        let spec = json!({"devices": {"requests": [{"name": "a"}]}});
        let fields = [("spec", spec), ("status", status)];
        fields
            .map(|(name, value)| (name.to_owned(), value))
            .into_iter()
            .collect()
    }

    fn fields(before: Value, after: Value) -> Vec<String> {
        let mut causes = CauseList::new();
        claim_status(&object(before), &object(after), &mut causes);
        causes.into_iter().map(|cause| cause.field).collect()
    }

    #[test]
    fn an_allocation_is_for_requests_and_does_not_change() {
        let result = json!({"request": "a", "driver": "a.org", "pool": "p", "device": "d"});
        let user = json!({"resource": "pods", "name": "p", "uid": "1"});
        let allocation = json!({"devices": {"results": [result]}});
        let status = json!({"allocation": allocation, "reservedFor": [user]});
        assert_eq!(fields(json!({}), status.clone()), Vec::<String>::new());
        assert_eq!(fields(status.clone(), status.clone()), Vec::<String>::new());
        let mut other = status.clone();
        other["allocation"]["devices"]["results"][0]["request"] = json!("b");
        let path = "status.allocation.devices.results[0].request";
        assert_eq!(fields(json!({}), other.clone()), [path]);
        assert_eq!(fields(status, other), ["status.allocation"]);
        let expected = ["status.reservedFor[1]", "status.reservedFor"];
        assert_eq!(
            fields(json!({}), json!({"reservedFor": [user, user]})),
            expected
        );
        let reported = json!({"devices": [{"driver": "a.org", "pool": "p", "device": "d"}]});
        assert_eq!(fields(json!({}), reported), ["status.devices[0]"]);
    }
}
