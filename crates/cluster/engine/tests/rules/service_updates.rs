//! Updates of Services: fields that cannot change after they are set.

use serde_json::{Value, json};

use crate::support::{api, status};

/// Creates a Service with these fields, changes it, and returns the error.
async fn refusal(spec: Value, change: Value) -> Option<String> {
    let api = api();
    let mut service = json!({"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}], "selector": {"a": "b"}}});
    let fields = spec.as_object().unwrap().clone();
    service["spec"].as_object_mut().unwrap().extend(fields);
    api.create("services", service).await.unwrap();
    match api.merge("services", "a", json!({"spec": change})).await {
        Ok(_) => None,
        outcome => {
            let (code, reason, message) = status(outcome);
            assert_eq!((code, &*reason), (422, "Invalid"), "{message}");
            Some(message)
        }
    }
}

#[tokio::test]
async fn the_class_of_a_load_balancer_is_fixed() {
    let class = |class: Value| json!({"type": "LoadBalancer", "loadBalancerClass": class});
    let (a, b) = (json!("example.com/a"), json!("example.com/b"));
    for (before, after) in [(&a, &b), (&a, &Value::Null), (&Value::Null, &b)] {
        let message = refusal(class(before.clone()), class(after.clone())).await;
        let message = message.unwrap_or_default();
        let expected = "spec.loadBalancerClass: Invalid value: ";
        assert!(message.contains(expected), "{before} {after}: {message}");
        assert!(message.contains("may not change once set"), "{message}");
    }
    assert_eq!(refusal(class(a.clone()), class(a.clone())).await, None);
    // If the type changes, the class may also change.
    assert_eq!(
        refusal(json!({"type": "ClusterIP"}), class(a.clone())).await,
        None
    );
    let other = json!({"type": "ClusterIP", "loadBalancerClass": null});
    assert_eq!(refusal(class(a), other).await, None);
}

#[tokio::test]
async fn the_first_address_family_is_fixed() {
    let families =
        |families: &[&str], policy: &str| json!({"ipFamilies": families, "ipFamilyPolicy": policy});
    let (single, dual) = ("SingleStack", "PreferDualStack");
    for (before, after, expected) in [
        (
            families(&["IPv4"], single),
            families(&["IPv6"], single),
            Some("spec.ipFamilies[0]: Invalid value: "),
        ),
        (
            families(&["IPv4", "IPv6"], dual),
            families(&["IPv6", "IPv4"], dual),
            Some("spec.ipFamilies[0]: Invalid value: "),
        ),
        (
            families(&["IPv4"], single),
            families(&["IPv6", "IPv4"], dual),
            Some("spec.ipFamilies[0]: Invalid value: "),
        ),
        (
            families(&["IPv4", "IPv6"], dual),
            families(&["IPv4"], dual),
            Some("spec.ipFamilyPolicy: Invalid value: "),
        ),
        (
            families(&["IPv4"], single),
            families(&["IPv4"], single),
            None,
        ),
        (
            families(&["IPv4"], single),
            families(&["IPv4", "IPv6"], dual),
            None,
        ),
        (
            families(&["IPv4", "IPv6"], dual),
            families(&["IPv4"], single),
            None,
        ),
    ] {
        let case = format!("{before} {after}");
        let message = refusal(before, after).await;
        match expected {
            Some(words) => {
                let message = message.unwrap_or_default();
                assert!(message.contains(words), "{case}: {message}");
            }
            None => assert_eq!(message, None, "{case}"),
        }
    }
}
