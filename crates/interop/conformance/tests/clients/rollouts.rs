//! Rollouts of StatefulSets and DaemonSets, with all pinned kubectl versions.

use longshore_conformance::{Kubectl, Server};

const OBJECTS: &str = "
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web}
spec:
  serviceName: web
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: x, command: [sleep, '600'], env: [{name: V, value: one}]}]
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: x, command: [sleep, '600'], env: [{name: V, value: one}]}]
";

/// The value of the environment of each pod, sorted by name.
async fn values(kubectl: &Kubectl, namespace: &str, app: &str) -> String {
    let selector = format!("app={app}");
    let path = "jsonpath={range .items[*]}{.spec.containers[0].env[0].value} {end}";
    kubectl
        .ok(&["-n", namespace, "get", "pods", "-l", &selector, "-o", path])
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn rollouts_of_stateful_sets_and_daemon_sets_complete_and_are_undone() {
    let server = Server::start().await;
    for kubectl in Kubectl::all(&server.kubeconfig()) {
        let namespace = kubectl.name();
        kubectl.ok(&["create", "namespace", &namespace]).await;
        let n = ["--namespace", namespace.as_str()];
        let run = async |words: &[&str]| kubectl.ok(&[&n[..], words].concat()).await;
        let apply = [&n[..], &["apply", "-f", "-"]].concat();
        let made = kubectl.run_with(&apply, OBJECTS).await;
        assert_eq!((made.code, made.stderr.as_str()), (Some(0), ""), "{made:?}");
        for (kind, name, pods) in [("statefulset", "web", 2), ("daemonset", "agent", 1)] {
            let object = format!("{kind}/{name}");
            let status = ["rollout", "status", &object, "--timeout=60s"];
            run(&status).await;
            assert_eq!(
                values(&kubectl, &namespace, name).await,
                "one ".repeat(pods)
            );

            run(&["set", "env", &object, "V=two"]).await;
            run(&status).await;
            assert_eq!(
                values(&kubectl, &namespace, name).await,
                "two ".repeat(pods)
            );
            let history = run(&["rollout", "history", &object]).await;
            assert!(
                history.contains("\n1 ") && history.contains("\n2 "),
                "{history}"
            );
            let first = run(&["rollout", "history", &object, "--revision=1"]).await;
            assert!(first.contains("one"), "{first}");

            run(&["rollout", "undo", &object]).await;
            run(&status).await;
            assert_eq!(
                values(&kubectl, &namespace, name).await,
                "one ".repeat(pods)
            );
            let history = run(&["rollout", "history", &object]).await;
            assert!(
                !history.contains("\n1 ") && history.contains("\n3 "),
                "{history}"
            );

            run(&["rollout", "restart", &object]).await;
            run(&status).await;
            let history = run(&["rollout", "history", &object]).await;
            assert!(history.contains("\n4 "), "{history}");
        }
        run(&["scale", "statefulset/web", "--replicas=1"]).await;
        // An error if the pod is already deleted.
        let wait = ["wait", "pod/web-1", "--for=delete", "--timeout=60s"];
        kubectl.run(&[&n[..], &wait].concat()).await;
        assert_eq!(values(&kubectl, &namespace, "web").await, "one ");
        kubectl.ok(&["delete", "namespace", &namespace]).await;
    }
    server.stop().await;
}
