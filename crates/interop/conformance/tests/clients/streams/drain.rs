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
        // The controller counts the ready pod.
        let until = |field: &str, value: u8| {
            let get = format!("kubectl get pdb web -o jsonpath={{.status.{field}}}");
            format!("until [ \"$({get})\" = {value} ]; do sleep 0.1; done")
        };
        session.sh(&until("currentHealthy", 1)).await;
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
        let none = r#"{"spec": {"minAvailable": 0}}"#;
        kubectl
            .ok(&["patch", "pdb", "web", "--type=merge", "-p", none])
            .await;
        session.sh(&until("disruptionsAllowed", 1)).await;
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
        session.sh(&until("disruptionsAllowed", 0)).await;
        kubectl.ok(&["uncordon", "longshore"]).await;
        kubectl.ok(&["delete", "pdb", "web"]).await;
    }
    server.stop().await;
}
