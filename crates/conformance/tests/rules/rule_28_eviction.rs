//! Rule 28: an eviction is a delete that asks the pod's budget first.

use longshore_conformance::{ApiTest, PatchType};
use serde_json::{Value, json};

use crate::common::{pod, with};

/// What the tests write to.
struct Stage {
    test: ApiTest,
    pods: String,
    budgets: String,
    version: &'static str,
}

impl Stage {
    async fn start() -> Self {
        let test = ApiTest::start().await;
        let why = "evictions and budgets are of policy/v1beta1";
        let version = test.old_or_new("policy/v1beta1", "policy/v1", why);
        Self {
            pods: test.path("v1", "pods"),
            budgets: test.path(version, "poddisruptionbudgets"),
            version,
            test,
        }
    }

    /// A pod on a node, in a phase.
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
        let answer = self.test.patch(&path, PatchType::Merge, &patch).await;
        answer.ok()
    }

    fn eviction(&self, name: &str, options: Value) -> Value {
        json!({"apiVersion": self.version, "kind": "Eviction", "metadata": {"name": name},
            "deleteOptions": options})
    }

    async fn evict(&self, name: &str, options: Value) -> longshore_conformance::Answer {
        let path = format!("{}/{name}/eviction", self.pods);
        let eviction = self.eviction(name, options);
        self.test.post(&path, &eviction).await
    }

    async fn is_going(&self, name: &str) -> bool {
        let pod = self.test.get(&format!("{}/{name}", self.pods)).await;
        pod.code == 404 || pod.ok()["metadata"]["deletionTimestamp"].is_string()
    }
}

#[tokio::test]
async fn rule_28_an_eviction_deletes_as_its_options_say() {
    let stage = Stage::start().await;
    stage.pod("a", "Running", true).await;
    stage
        .evict("a", json!({"preconditions": {"uid": "other"}}))
        .await
        .refused(409, "Conflict");
    let dry = stage.evict("a", json!({"dryRun": ["All"]})).await.is(201);
    assert_eq!(dry["status"], "Success");
    assert!(!stage.is_going("a").await);
    let path = format!("{}/a/eviction", stage.pods);
    let dry = stage
        .test
        .post(
            &format!("{path}?dryRun=All"),
            &stage.eviction("a", json!(null)),
        )
        .await;
    dry.is(201);
    assert!(!stage.is_going("a").await);
    let done = stage
        .evict("a", json!({"gracePeriodSeconds": 7}))
        .await
        .is(201);
    assert_eq!(
        (&done["kind"], &done["status"], &done["code"]),
        (&json!("Status"), &json!("Success"), &json!(201))
    );
    let pod = stage.test.get(&format!("{}/a", stage.pods)).await.ok();
    assert_eq!(pod["metadata"]["deletionGracePeriodSeconds"], 7);
    if stage
        .test
        .newer("the pod's condition DisruptionTarget: 1.26")
    {
        let condition = &pod["status"]["conditions"][1];
        assert_eq!(
            (&condition["type"], &condition["reason"]),
            (&json!("DisruptionTarget"), &json!("EvictionByEvictionAPI"))
        );
    }
    stage
        .evict("none", json!(null))
        .await
        .refused(404, "NotFound");
    let other = stage.eviction("b", json!(null));
    let answer = stage.test.post(&path, &other).await;
    answer.refused(400, "BadRequest");
}

#[tokio::test]
async fn rule_28_a_budget_counts_what_is_evicted() {
    let stage = Stage::start().await;
    for name in ["a", "b"] {
        stage.pod(name, "Running", true).await;
    }
    stage.budget("guard", 1, (2, 1)).await;
    let budget = format!("{}/guard", stage.budgets);
    stage.evict("a", json!({"dryRun": ["All"]})).await.is(201);
    let same = stage.test.get(&budget).await.ok();
    assert_eq!(same["status"]["disruptionsAllowed"], 1);
    stage.evict("a", json!(null)).await.is(201);
    assert!(stage.is_going("a").await);
    let counted = stage.test.get(&budget).await.ok();
    assert_eq!(counted["status"]["disruptionsAllowed"], 0);
    assert!(counted["status"]["disruptedPods"]["a"].is_string());

    let refused = stage.evict("b", json!(null)).await;
    let status = refused.refused(429, "TooManyRequests");
    assert_eq!(
        status["message"],
        "Cannot evict pod as it would violate the pod's disruption budget."
    );
    let cause = &status["details"]["causes"][0];
    assert_eq!(cause["reason"], "DisruptionBudget");
    assert_eq!(
        cause["message"],
        stage.test.old_or_new(
            "The disruption budget guard needs 1 healthy pods and has 2 currently",
            "The disruption budget guard does not allow evicting pods currently",
            "a budget that is used up says so",
        )
    );
    assert!(!stage.is_going("b").await);

    // A budget that has changed since nobody counted.
    let patch = json!({"spec": {"minAvailable": 0}});
    let changed = stage.test.patch(&budget, PatchType::Merge, &patch).await;
    changed.ok();
    let refused = stage.evict("b", json!(null)).await;
    let status = refused.refused(429, "TooManyRequests");
    if stage.test.newer("when to try again: later than 1.20") {
        assert_eq!(status["details"]["retryAfterSeconds"], 10);
        assert_eq!(refused.header("retry-after"), "10");
    }
    assert_eq!(
        status["details"]["causes"][0]["message"],
        "The disruption budget guard is still being processed by the server."
    );
}

#[tokio::test]
async fn rule_28_pods_that_do_not_count_go_without_a_budget() {
    let stage = Stage::start().await;
    stage.budget("guard", 0, (0, 1)).await;
    for (name, phase) in [("done", "Succeeded"), ("new", "Pending")] {
        stage.pod(name, phase, false).await;
        stage.evict(name, json!(null)).await.is(201);
        assert!(stage.is_going(name).await, "{name}");
    }
    stage.pod("ill", "Running", false).await;
    let refused = stage.evict("ill", json!(null)).await;
    refused.refused(429, "TooManyRequests");
    if !stage
        .test
        .newer("pods that are not ready go when enough others are: 1.26")
    {
        return;
    }
    let budget = format!("{}/guard", stage.budgets);
    let enough = json!({"currentHealthy": 1, "desiredHealthy": 1});
    stage.status(&budget, enough).await;
    stage.evict("ill", json!(null)).await.is(201);
    let none = json!({"currentHealthy": 0, "observedGeneration": 2});
    stage.status(&budget, none).await;
    let always = json!({"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}});
    let changed = stage.test.patch(&budget, PatchType::Merge, &always).await;
    changed.ok();
    stage.pod("worse", "Running", false).await;
    stage.evict("worse", json!(null)).await.is(201);
    let budget = stage.test.get(&budget).await.ok();
    assert_eq!(budget["status"]["disruptedPods"], Value::Null);
}

#[tokio::test]
async fn rule_28_several_budgets_are_one_too_many() {
    let stage = Stage::start().await;
    stage.pod("a", "Running", true).await;
    for name in ["one", "two"] {
        stage.budget(name, 1, (2, 1)).await;
    }
    let answer = stage.evict("a", json!(null)).await;
    let status = answer.json();
    assert_eq!(
        (&status["status"], &status["code"]),
        (&json!("Failure"), &json!(500))
    );
    assert_eq!(answer.code, 500);
    assert!(
        status["message"]
            .as_str()
            .unwrap()
            .starts_with("This pod has more than one PodDisruptionBudget")
    );
    assert!(!stage.is_going("a").await);
}
