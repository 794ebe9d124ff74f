//! Runs with JobSet and Kueue, with their real controllers and webhooks.

mod jobset;
mod kueue;

use serde_json::json;

use crate::stage::Stage;

const ROLES: &str = r#"
name = "team"
command = 'echo "$LONGSHORE_ROLE/$LONGSHORE_INDEX $LONGSHORE_CLUSTER"; exit ${CODE:-0}'
[roles.ps]
command = "sleep 1000"
[roles.worker]
count = 2
"#;

/// All kinds of objects that a run may have.
const ALL: &str = "jobsets,jobs,pods,secrets,services,workloads";

/// A LocalQueue `team` with a quota of one CPU. Its cluster-scoped objects are deleted on
/// drop.
struct Queue<'a>(&'a Stage);

impl<'a> Queue<'a> {
    fn new(stage: &'a Stage) -> Self {
        let name = &stage.name;
        let version = "kueue.x-k8s.io/v1beta2";
        let quota =
            |resource: &str, amount: &str| json!({"name": resource, "nominalQuota": amount});
        let resources = [quota("cpu", "1"), quota("memory", "4Gi")];
        stage.apply(&json!({"apiVersion": "v1", "kind": "List", "items": [
            {"apiVersion": version, "kind": "ResourceFlavor", "metadata": {"name": name}},
            {
                "apiVersion": version, "kind": "ClusterQueue", "metadata": {"name": name},
                "spec": {
                    "namespaceSelector": {},
                    "resourceGroups": [{
                        "coveredResources": ["cpu", "memory"],
                        "flavors": [{"name": name, "resources": resources}],
                    }],
                },
            },
            {
                "apiVersion": version, "kind": "LocalQueue",
                "metadata": {"name": "team", "namespace": name},
                "spec": {"clusterQueue": name},
            },
        ]}));
        Self(stage)
    }
}

impl Drop for Queue<'_> {
    fn drop(&mut self) {
        for kind in ["clusterqueue", "resourceflavor"] {
            let _ = self.0.ask(&["delete", kind, &self.0.name, "--wait=false"]);
        }
    }
}

/// A stage with a folder of two roles.
fn roles() -> Stage {
    let stage = Stage::new();
    stage.machine.write("longshore.toml", ROLES);
    stage
}

/// Removes a run, which must leave no object.
#[track_caller]
fn remove(stage: &Stage, run: &str) {
    stage.about(&["rm", run]).expect(0);
    stage.eventually("no object is left", || {
        stage.kubectl(&["get", ALL, "--output", "name"]).is_empty()
    });
}

/// The phases of a run's pods.
fn phases(stage: &Stage, run: &str) -> String {
    let selector = format!("longshore.dev/run={run}");
    let path = "-o=jsonpath={.items[*].status.phase}";
    stage.kubectl(&["get", "pods", "--selector", &selector, path])
}

/// Waits until the run is queued; returns the output of `why`.
#[track_caller]
fn eventually_queued(stage: &Stage, run: &str) -> String {
    let mut cause = String::new();
    stage.eventually("why reports the queue", || {
        let why = stage.why(run);
        cause = why["explanation"]["cause"].as_str().unwrap_or("").into();
        why["explanation"]["kind"] == "queued" && cause.contains("quota")
    });
    cause
}

/// A cancelled run must stay so, even after Kueue's next reconciliation.
#[track_caller]
fn stays_cancelled(stage: &Stage, run: &str) {
    for _ in 0..20 {
        assert_eq!(stage.why(run)["state"], "cancelled");
        let phases = phases(stage, run);
        assert!(
            !phases.contains("Running"),
            "{phases}\n{}",
            stage.describe()
        );
        std::thread::sleep(std::time::Duration::from_millis(250));
    }
}
