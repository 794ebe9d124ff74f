//! kubectl drain.

use longshore_conformance::{Kubectl, Server};

use super::Session;

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_respects_the_budget() {
    const SET: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: pause}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec:
  minAvailable: 1
  selector: {matchLabels: {app: web}}
"#;
    let server = Server::start().await;
    for kubectl in Kubectl::all(&server.kubeconfig()) {
        let session = Session { kubectl: &kubectl };
        kubectl.ok_with(&["apply", "-f", "-"], SET).await;
        session.ready("pod/web").await;
        // There is no disruption controller: the test writes the status.
        let status = |allowed: u8| {
            let path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/web";
            format!(
                r#"kubectl get --raw {path} | python3 -c '
import json, sys
budget = json.load(sys.stdin)
budget["status"] = {{"disruptionsAllowed": {allowed}, "observedGeneration": budget["metadata"]["generation"],
    "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}}
json.dump(budget, open("budget.json", "w"))' && kubectl replace --raw {path}/status -f budget.json"#
            )
        };
        session.sh(&status(0)).await;
        let before = session.sh("kubectl get pods -l app=web -o name").await;
        let drain = "kubectl drain longshore --force --ignore-daemonsets --timeout=2s";
        let kept = kubectl.shell(drain).await;
        assert_ne!(kept.code, Some(0), "{kept:?}");
        let why = "Cannot evict pod as it would violate the pod's disruption budget.";
        assert!(kept.stdout.contains(why), "{kept:?}");
        assert_eq!(
            session.sh("kubectl get pods -l app=web -o name").await,
            before
        );
        session.sh(&status(1)).await;
        // kubectl 1.20 requires apiextensions.k8s.io/v1beta1 for a server dry run, which
        // is not served.
        if !kubectl.name().ends_with("v20") {
            let tried = session.sh(&format!("{drain} --dry-run=server")).await;
            assert!(tried.contains("(server dry run)"), "{tried}");
        }
        assert_eq!(
            session.sh("kubectl get pods -l app=web -o name").await,
            before
        );
        let drained = session
            .sh("kubectl drain longshore --force --ignore-daemonsets --timeout=60s")
            .await;
        assert!(drained.contains("pod/web evicted"), "{drained}");
        let left = session
            .sh("kubectl get pdb web -o jsonpath={.status.disruptionsAllowed}")
            .await;
        assert_eq!(left, "0");
        kubectl.ok(&["uncordon", "longshore"]).await;
        kubectl.ok(&["delete", "pdb", "web"]).await;
    }
    server.stop().await;
}
