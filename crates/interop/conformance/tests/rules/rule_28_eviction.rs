//! Rule 28: an eviction deletes a pod if its PodDisruptionBudget allows it.

use longshore_conformance::{ApiTest, PatchType};
use serde_json::{Value, json};

use crate::common::{pod, with};

/// A test and the paths of its objects.
struct EvictionTest {
    test: ApiTest,
    pods: String,
    budgets: String,
    version: &'static str,
}

impl EvictionTest {
    async fn start() -> Self {
        let test = ApiTest::start().await;
        let why = "evictions and budgets are in policy/v1beta1";
        let version = test.old_or_new("policy/v1beta1", "policy/v1", why);
        Self {
            pods: test.path("v1", "pods"),
            budgets: test.path(version, "poddisruptionbudgets"),
            version,
            test,
        }
    }

    /// Creates a pod that is bound to a node and sets its phase.
    async fn pod(&self, name: &str, phase: &str, ready: bool) {
        let labelled = with(
            pod(name),
            &[
                ("/metadata/labels", json!({"app": "a"})),
                ("/spec/nodeName", json!("nowhere")),
            ],
        );
        self.test.create(&self.pods, &labelled).await;
        let ready = if ready { "True" } else { "False" };
        let status = json!({"phase": phase, "conditions": [{"type": "Ready", "status": ready}]});
        self.status(&format!("{}/{name}", self.pods), status).await;
    }

    async fn budget(&self, name: &str, allowed: i64, (healthy, desired): (i64, i64)) -> Value {
        let budget = json!({
            "apiVersion": self.version, "kind": "PodDisruptionBudget", "metadata": {"name": name},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}},
        });
        self.test.create(&self.budgets, &budget).await;
        let status = json!({"disruptionsAllowed": allowed, "observedGeneration": 1,
            "currentHealthy": healthy, "desiredHealthy": desired, "expectedPods": healthy});
        self.status(&format!("{}/{name}", self.budgets), status)
            .await
    }

    async fn status(&self, path: &str, status: Value) -> Value {
        let path = format!("{path}/status");
        let patch = json!({"status": status});
        let response = self.test.patch(&path, PatchType::Merge, &patch).await;
        response.ok()
    }

    fn eviction(&self, name: &str, options: Value) -> Value {
        json!({"apiVersion": self.version, "kind": "Eviction", "metadata": {"name": name},
            "deleteOptions": options})
    }

    async fn evict(&self, name: &str, options: Value) -> longshore_conformance::Response {
        let path = format!("{}/{name}/eviction", self.pods);
        let eviction = self.eviction(name, options);
        self.test.post(&path, &eviction).await
    }

    async fn is_deleted(&self, name: &str) -> bool {
        let pod = self.test.get(&format!("{}/{name}", self.pods)).await;
        pod.code == 404 || pod.ok()["metadata"]["deletionTimestamp"].is_string()
    }
}

#[tokio::test]
async fn rule_28_an_eviction_applies_its_delete_options() {
    let eviction_test = EvictionTest::start().await;
    eviction_test.pod("a", "Running", true).await;
    eviction_test
        .evict("a", json!({"preconditions": {"uid": "other"}}))
        .await
        .refused(409, "Conflict");
    let dry = eviction_test
        .evict("a", json!({"dryRun": ["All"]}))
        .await
        .is(201);
    assert_eq!(dry["status"], "Success");
    assert!(!eviction_test.is_deleted("a").await);
    let path = format!("{}/a/eviction", eviction_test.pods);
    let dry = eviction_test
        .test
        .post(
            &format!("{path}?dryRun=All"),
            &eviction_test.eviction("a", json!(null)),
        )
        .await;
    dry.is(201);
    assert!(!eviction_test.is_deleted("a").await);
    let done = eviction_test
        .evict("a", json!({"gracePeriodSeconds": 7}))
        .await
        .is(201);
    assert_eq!(
        (&done["kind"], &done["status"], &done["code"]),
        (&json!("Status"), &json!("Success"), &json!(201))
    );
    let pod = eviction_test
        .test
        .get(&format!("{}/a", eviction_test.pods))
        .await
        .ok();
    assert_eq!(pod["metadata"]["deletionGracePeriodSeconds"], 7);
    if eviction_test
        .test
        .is_newer("the pod condition DisruptionTarget requires Kubernetes 1.26")
    {
        let condition = &pod["status"]["conditions"][1];
        assert_eq!(
            (&condition["type"], &condition["reason"]),
            (&json!("DisruptionTarget"), &json!("EvictionByEvictionAPI"))
        );
    }
    eviction_test
        .evict("none", json!(null))
        .await
        .refused(404, "NotFound");
    let other = eviction_test.eviction("b", json!(null));
    let response = eviction_test.test.post(&path, &other).await;
    response.refused(400, "BadRequest");
}

#[tokio::test]
async fn rule_28_an_eviction_updates_the_budget() {
    let eviction_test = EvictionTest::start().await;
    for name in ["a", "b"] {
        eviction_test.pod(name, "Running", true).await;
    }
    eviction_test.budget("guard", 1, (2, 1)).await;
    let budget = format!("{}/guard", eviction_test.budgets);
    eviction_test
        .evict("a", json!({"dryRun": ["All"]}))
        .await
        .is(201);
    let same = eviction_test.test.get(&budget).await.ok();
    assert_eq!(same["status"]["disruptionsAllowed"], 1);
    eviction_test.evict("a", json!(null)).await.is(201);
    assert!(eviction_test.is_deleted("a").await);
    let counted = eviction_test.test.get(&budget).await.ok();
    assert_eq!(counted["status"]["disruptionsAllowed"], 0);
    assert!(counted["status"]["disruptedPods"]["a"].is_string());

    let refused = eviction_test.evict("b", json!(null)).await;
    let status = refused.refused(429, "TooManyRequests");
    assert_eq!(
        status["message"],
        "Cannot evict pod as it would violate the pod's disruption budget."
    );
    let cause = &status["details"]["causes"][0];
    assert_eq!(cause["reason"], "DisruptionBudget");
    assert_eq!(
        cause["message"],
        eviction_test.test.old_or_new(
            "The disruption budget guard needs 1 healthy pods and has 2 currently",
            "The disruption budget guard does not allow evicting pods currently",
            "the message for an exhausted budget",
        )
    );
    assert!(!eviction_test.is_deleted("b").await);

    // A change of the budget that no controller has processed yet.
    let patch = json!({"spec": {"minAvailable": 0}});
    let changed = eviction_test
        .test
        .patch(&budget, PatchType::Merge, &patch)
        .await;
    changed.ok();
    let refused = eviction_test.evict("b", json!(null)).await;
    let status = refused.refused(429, "TooManyRequests");
    if eviction_test
        .test
        .is_newer("the response has Retry-After, unlike in 1.20")
    {
        assert_eq!(status["details"]["retryAfterSeconds"], 10);
        assert_eq!(refused.header("retry-after"), "10");
    }
    assert_eq!(
        status["details"]["causes"][0]["message"],
        "The disruption budget guard is still being processed by the server."
    );
}

#[tokio::test]
async fn rule_28_pods_that_are_not_running_are_evicted_regardless_of_the_budget() {
    let eviction_test = EvictionTest::start().await;
    eviction_test.budget("guard", 0, (0, 1)).await;
    for (name, phase) in [("done", "Succeeded"), ("new", "Pending")] {
        eviction_test.pod(name, phase, false).await;
        eviction_test.evict(name, json!(null)).await.is(201);
        assert!(eviction_test.is_deleted(name).await, "{name}");
    }
    eviction_test.pod("ill", "Running", false).await;
    let refused = eviction_test.evict("ill", json!(null)).await;
    refused.refused(429, "TooManyRequests");
    if !eviction_test
        .test
        .is_newer("since 1.26, unready pods can be evicted while enough others are healthy")
    {
        return;
    }
    let budget = format!("{}/guard", eviction_test.budgets);
    let enough = json!({"currentHealthy": 1, "desiredHealthy": 1});
    eviction_test.status(&budget, enough).await;
    eviction_test.evict("ill", json!(null)).await.is(201);
    let none = json!({"currentHealthy": 0, "observedGeneration": 2});
    eviction_test.status(&budget, none).await;
    let always = json!({"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}});
    let changed = eviction_test
        .test
        .patch(&budget, PatchType::Merge, &always)
        .await;
    changed.ok();
    eviction_test.pod("worse", "Running", false).await;
    eviction_test.evict("worse", json!(null)).await.is(201);
    let budget = eviction_test.test.get(&budget).await.ok();
    assert_eq!(budget["status"]["disruptedPods"], Value::Null);
}

#[tokio::test]
async fn rule_28_a_pod_with_several_budgets_cannot_be_evicted() {
    let eviction_test = EvictionTest::start().await;
    eviction_test.pod("a", "Running", true).await;
    for name in ["one", "two"] {
        eviction_test.budget(name, 1, (2, 1)).await;
    }
    let response = eviction_test.evict("a", json!(null)).await;
    let status = response.json();
    assert_eq!(
        (&status["status"], &status["code"]),
        (&json!("Failure"), &json!(500))
    );
    assert_eq!(response.code, 500);
    assert!(
        status["message"]
            .as_str()
            .unwrap()
            .starts_with("This pod has more than one PodDisruptionBudget")
    );
    assert!(!eviction_test.is_deleted("a").await);
}
