//! ResourceQuotas.

use serde_json::json;

use crate::{
    objects::{spec, text},
    plane::Plane,
};

#[tokio::test]
async fn a_quota_counts_and_limits_objects() {
    let plane = Plane::with_nodes(1).await;
    let quotas = plane.path("v1", "resourcequotas");
    let hard = json!({"pods": "1", "count/configmaps": "10"});
    let quota = json!({"metadata": {"name": "few"}, "spec": {"hard": hard}});
    plane.create(&quotas, &quota).await;
    let path = format!("{quotas}/few");
    let uses = |count: &'static str| {
        move |quota: &serde_json::Value| text(quota, "/status/used/pods") == count
    };
    let quota = plane.until(&path, uses("0")).await;
    assert_eq!(quota["status"]["hard"], hard);
    let pods = plane.path("v1", "pods");
    let pod = |name: &str| json!({"metadata": {"name": name}, "spec": spec(plane.namespace())});
    plane.create(&pods, &pod("a")).await;
    plane.until(&path, uses("1")).await;
    let refused = plane.post(&pods, &pod("b")).await;
    let message = refused.refused(403, "Forbidden");
    let message = text(&message, "/message");
    assert!(
        message.contains("exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1")
    );
    plane.delete(&format!("{pods}/a")).await.ok();
    plane.until(&path, uses("0")).await;
    plane.create(&pods, &pod("b")).await;
}
