//! ResourceClaims, their templates, and DeviceClasses.

use longshore_model::CauseList;

use super::{
    FieldValue, at_most, attribute, configuration,
    requests::{self, Names},
};
use crate::{
    cause::Cause,
    json::Object,
    validate::{field_value::Causes, immutable},
};

pub(crate) fn claim(object: &Object, causes: &mut CauseList) {
    let spec = FieldValue::field(object, "spec");
    devices(&spec.get("devices"), &mut Causes(causes));
}

pub(crate) fn template(object: &Object, causes: &mut CauseList) {
    let (spec, causes) = (FieldValue::field(object, "spec"), &mut Causes(causes));
    let metadata = spec.get("metadata");
    causes.labels(&metadata.get("labels"));
    devices(&spec.get("spec").get("devices"), causes);
}

pub(crate) fn fixed_spec(before: &Object, after: &Object, causes: &mut CauseList) {
    immutable::fixed(before, after, &["spec"], causes);
}

fn devices(devices: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let names = Names::of(devices);
    let requests = devices.get("requests");
    at_most(&requests, 32, causes);
    for request in requests.items() {
        requests::request(&request, causes);
    }
    causes.unique(requests.items().map(|request| {
        let path = request.path.clone();
        request.get("name").with_path(path)
    }));
    let constraints = devices.get("constraints");
    at_most(&constraints, 32, causes);
    for constraint in constraints.items() {
        names.check_all(&constraint.get("requests"), causes);
        let (same, distinct) = (
            constraint.get("matchAttribute"),
            constraint.get("distinctAttribute"),
        );
        match (same.is_set(), distinct.is_set()) {
            (true, _) => attribute(&same, causes),
            (false, true) => attribute(&distinct, causes),
            (false, false) => causes.required(
                &constraint,
                r#"exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set"#,
            ),
        }
    }
    let configs = devices.get("config");
    at_most(&configs, 32, causes);
    for config in configs.items() {
        names.check_all(&config.get("requests"), causes);
        configuration(&config, causes);
    }
}

pub(crate) fn class(object: &Object, causes: &mut CauseList) {
    let (spec, causes) = (FieldValue::field(object, "spec"), &mut Causes(causes));
    requests::selectors(&spec.get("selectors"), causes);
    let configs = spec.get("config");
    at_most(&configs, 32, causes);
    for config in configs.items() {
        configuration(&config, causes);
    }
    let name = spec.get("extendedResourceName");
    if name.is_set() && !is_extended_resource(name.text()) {
        causes.0.push(Cause::invalid(
            &name.path,
            name.text(),
            "must be a valid extended resource name",
        ));
    }
}

/// Returns true if a resource has a domain outside of Kubernetes.
fn is_extended_resource(name: &str) -> bool {
    let mut problems = CauseList::new();
    crate::validate::meta::qualified("name", &format!("requests.{name}"), &mut problems);
    name.contains('/')
        && !name.contains("kubernetes.io/")
        && !name.starts_with("requests.")
        && problems.is_empty()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn problems(check: fn(&Object, &mut CauseList), spec: Value) -> Vec<String> {
        let mut object = Object::new();
        object.insert("spec".into(), spec);
        let mut causes = CauseList::new();
        check(&object, &mut causes);
        let causes = causes.into_iter();
        causes
            .map(|cause| format!("{}: {}", cause.field, cause.message))
            .collect()
    }

    fn exactly(name: &str) -> Value {
        json!({"name": name, "exactly":
            {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}})
    }

    #[test]
    fn a_claim_has_requests_and_constraints_about_them() {
        let valid = json!({"devices": {
            "requests": [exactly("a"), {"name": "b", "firstAvailable": [
                {"name": "x", "deviceClassName": "gpu", "allocationMode": "All"}]}],
            "constraints": [{"requests": ["a", "b/x"], "matchAttribute": "a.org/numa"}],
            "config": [{"requests": ["b"], "opaque": {"driver": "a.org", "parameters": {}}}],
        }});
        assert_eq!(problems(claim, valid), Vec::<String>::new());
        let invalid = json!({"devices": {
            "requests": [exactly("a"), exactly("a"), {"name": "c"}, {"name": "d", "exactly":
                {"allocationMode": "All", "count": 2}}],
            "constraints": [{"requests": ["x"], "matchAttribute": "numa"}, {}],
            "config": [{}],
        }});
        let found = problems(claim, invalid);
        let fields: Vec<&str> = found
            .iter()
            .filter_map(|one| one.split(": ").next())
            .collect();
        let expected = [
            "spec.devices.requests[2]",
            "spec.devices.requests[3].exactly.deviceClassName",
            "spec.devices.requests[3].exactly.count",
            "spec.devices.requests[1]",
            "spec.devices.constraints[0].requests[0]",
            "spec.devices.constraints[0].matchAttribute",
            "spec.devices.constraints[1]",
            "spec.devices.config[0].opaque",
        ];
        assert_eq!(fields, expected, "{found:#?}");
    }

    #[test]
    fn a_class_may_have_an_extended_resource() {
        let named = |name: &str| json!({"extendedResourceName": name});
        assert_eq!(problems(class, named("a.org/gpu")), Vec::<String>::new());
        for name in ["gpu", "kubernetes.io/gpu", "requests.a/b", "a.org/-"] {
            assert_eq!(problems(class, named(name)).len(), 1, "{name}");
        }
    }
}
