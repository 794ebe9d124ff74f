//! Typical first commands of a new user, with all pinned kubectl versions.

use std::time::Duration;

use longshore_conformance::{Kubectl, Server};

const CONFIG_MAP: &str = "
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
data:
  colour: blue
";

const CRON_JOB: &str = "
apiVersion: batch/v1
kind: CronJob
metadata:
  name: ticks
spec:
  schedule: '@every 1s'
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers:
          - {name: main, image: x, command: [echo, tick]}
";

async fn with_each_kubectl(session: impl AsyncFn(&Kubectl, &str)) {
    let server = Server::start().await;
    for kubectl in Kubectl::all(&server.kubeconfig()) {
        // Each kubectl uses its own namespace.
        let namespace = kubectl.name();
        kubectl.ok(&["create", "namespace", &namespace]).await;
        session(&kubectl, &namespace).await;
        kubectl.ok(&["delete", "namespace", &namespace]).await;
        let gone = kubectl.run(&["get", "namespace", &namespace]).await;
        assert_eq!(gone.code, Some(1), "{gone:?}");
        assert!(gone.stderr.contains("not found"), "{gone:?}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_and_namespaces_are_listed() {
    with_each_kubectl(async |kubectl, namespace| {
        let shown = kubectl.ok(&["get", "nodes,ns"]).await;
        let node = shown
            .lines()
            .find(|line| line.starts_with("node/longshore"))
            .unwrap();
        assert!(node.contains("Ready"), "{shown}");
        for name in ["default", "kube-system", namespace] {
            let line = format!("namespace/{name} ");
            let row = shown
                .lines()
                .find(|row| row.starts_with(&line))
                .unwrap_or_else(|| {
                    panic!("no namespace {name} in:\n{shown}");
                });
            assert!(row.contains("Active"), "{row}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_runs_and_is_deleted() {
    with_each_kubectl(async |kubectl, namespace| {
        let n = ["--namespace", namespace];
        let run = async |words: &[&str]| kubectl.ok(&[words, &n].concat()).await;
        kubectl
            .ok(&[
                "-n",
                namespace,
                "create",
                "job",
                "hello",
                "--image=x",
                "--",
                "echo",
                "hi",
            ])
            .await;
        run(&[
            "wait",
            "--for=condition=complete",
            "job/hello",
            "--timeout=30s",
        ])
        .await;
        assert_eq!(run(&["logs", "job/hello"]).await, "hi\n");
        let pods = run(&["get", "pods"]).await;
        assert!(
            pods.contains("Completed") && pods.contains("hello-"),
            "{pods}"
        );
        let jobs = run(&["get", "jobs"]).await;
        assert!(jobs.contains("1/1"), "{jobs}");
        let described = run(&["describe", "job", "hello"]).await;
        assert!(described.contains("1 Succeeded"), "{described}");
        run(&["delete", "job", "hello"]).await;
        // The pods of the job are deleted after it.
        for _ in 0..300 {
            if run(&["get", "pods", "--output=name"]).await.is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let none = kubectl.run(&[&["get", "pods"][..], &n].concat()).await;
        assert!(none.stderr.contains("No resources found"), "{none:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_shows_a_pod_from_its_start_to_its_end() {
    with_each_kubectl(async |kubectl, namespace| {
        let mut watch = kubectl.spawn(&["get", "pods", "--watch", "-n", namespace]);
        kubectl
            .ok(&[
                "-n",
                namespace,
                "create",
                "job",
                "seen",
                "--image=x",
                "--",
                "echo",
                "hi",
            ])
            .await;
        watch.until(&["seen-", "Completed"]).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn applying_twice_changes_once() {
    with_each_kubectl(async |kubectl, namespace| {
        let apply = ["apply", "-n", namespace, "-f", "-"];
        assert_eq!(
            kubectl.ok_with(&apply, CONFIG_MAP).await,
            "configmap/settings created\n"
        );
        assert_eq!(
            kubectl.ok_with(&apply, CONFIG_MAP).await,
            "configmap/settings unchanged\n"
        );
        let red = CONFIG_MAP.replace("blue", "red");
        assert_eq!(
            kubectl.ok_with(&apply, &red).await,
            "configmap/settings configured\n"
        );
        let colour = [
            "get",
            "cm",
            "settings",
            "-n",
            namespace,
            "-o",
            "jsonpath={.data.colour}",
        ];
        assert_eq!(kubectl.ok(&colour).await, "red");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn apply_rejects_an_unknown_field() {
    with_each_kubectl(async |kubectl, namespace| {
        let wrong = CONFIG_MAP.replace("\ndata:", "\ndtaa:");
        let ran = kubectl
            .run_with(&["apply", "-n", namespace, "-f", "-"], &wrong)
            .await;
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.stderr.contains("dtaa"), "{ran:?}");
        let none = kubectl
            .run(&["get", "cm", "settings", "-n", namespace])
            .await;
        assert!(none.stderr.contains("(NotFound)"), "{none:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_a_cron_job_deletes_its_jobs() {
    with_each_kubectl(async |kubectl, namespace| {
        let n = ["--namespace", namespace];
        let run = async |words: &[&str]| kubectl.ok(&[words, &n].concat()).await;
        let until = async |words: &[&str], holds: &dyn Fn(&str) -> bool| {
            let mut shown = String::new();
            for _ in 0..300 {
                shown = run(words).await;
                if holds(&shown) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            panic!("timed out waiting for {words:?}: {shown}");
        };
        let create = [&["create", "-f", "-"][..], &n].concat();
        kubectl.ok_with(&create, CRON_JOB).await;
        let status = ["get", "cronjob", "ticks", "-o", "jsonpath={.status}"];
        until(&status, &|shown| shown.contains("lastSuccessfulTime")).await;

        let names = run(&["get", "jobs", "-o", "name"]).await;
        let job = names.lines().next().unwrap();
        assert!(job.starts_with("job.batch/ticks-"), "{names}");
        assert_eq!(run(&["logs", job]).await, "tick\n");
        let shown = run(&["get", "cronjobs"]).await;
        let words: Vec<&str> = shown.split_whitespace().collect();
        let row = words.join(" ");
        let expected = "SUSPEND ACTIVE LAST SCHEDULE AGE ticks @every 1s <none> False";
        assert!(row.contains(expected), "{shown}");
        let events = run(&["get", "events"]).await;
        for message in ["Created job ticks-", "Saw completed job: ticks-"] {
            assert!(events.contains(message), "no {message} in:\n{events}");
        }

        run(&["delete", "cronjob", "ticks"]).await;
        until(&["get", "jobs,pods", "-o", "name"], &str::is_empty).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn exec_works_in_a_pod_created_by_run() {
    with_each_kubectl(async |kubectl, namespace| {
        let n = ["--namespace", namespace];
        let run = async |words: &[&str]| kubectl.ok(&[&n[..], words].concat()).await;
        let image = "--image=busybox";
        run(&[
            "run",
            "shell",
            image,
            "--restart=Never",
            "--",
            "sleep",
            "100",
        ])
        .await;
        let ready = "--for=condition=Ready";
        run(&["wait", ready, "pod/shell", "--timeout=60s"]).await;
        assert_eq!(
            run(&["exec", "shell", "--", "echo", "inside"]).await,
            "inside\n"
        );
        let debug = ["debug", "shell", image, "--container=more", "--", "true"];
        let debug = kubectl.run(&[&n[..], &debug].concat()).await;
        // Version 1.20 uses an older form of the request.
        let code = i32::from(namespace.contains("v20"));
        assert_eq!(debug.code, Some(code), "{debug:?}");
        run(&["delete", "pod", "shell", "--grace-period=1"]).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kinds_without_a_controller_cause_warnings() {
    with_each_kubectl(async |kubectl, namespace| {
        let n = ["--namespace", namespace];
        let run = async |words: &[&str]| kubectl.run(&[&n[..], words].concat()).await;
        let message = "Warning: ingresses.networking.k8s.io are stored, but this cluster does not act on them";
        let ingress = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: web}\nspec: {defaultBackend: {service: {name: web, port: {number: 80}}}}\n";
        let apply = [&n[..], &["apply", "-f", "-"]].concat();
        let made = kubectl.run_with(&apply, ingress).await;
        assert_eq!(made.code, Some(0), "{made:?}");
        assert!(made.stderr.contains(message), "{made:?}");
        run(&["create", "deployment", "web", "--image=x", "--replicas=0"]).await;
        let autoscaled = run(&["autoscale", "deployment/web", "--max=3"]).await;
        assert_eq!(autoscaled.code, Some(0), "{autoscaled:?}");
        assert!(!autoscaled.stderr.contains("Warning"), "{autoscaled:?}");
        let top = run(&["top", "nodes"]).await;
        assert!(top.stdout.contains("longshore"), "{top:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_decide_what_users_may_do() {
    with_each_kubectl(async |kubectl, namespace| {
        let n = ["--namespace", namespace];
        let run = async |words: &[&str]| kubectl.run(&[&n[..], words].concat()).await;
        let asked = ["auth", "can-i", "list", "pods", "--as=ana"];
        let refused = run(&asked).await;
        assert_eq!((refused.code, refused.stdout.trim()), (Some(1), "no"));
        let list = run(&["get", "pods", "--as=ana"]).await;
        let message = r#"User "ana" cannot list resource "pods" in API group "" in the namespace"#;
        assert!(list.stderr.contains(message), "{list:?}");
        for words in [
            &["create", "role", "r", "--verb=list", "--resource=pods"][..],
            &["create", "rolebinding", "r", "--role=r", "--user=ana"],
        ] {
            let made = run(words).await;
            assert_eq!((made.code, made.stderr.as_str()), (Some(0), ""));
        }
        let allowed = run(&asked).await;
        assert_eq!((allowed.code, allowed.stdout.trim()), (Some(0), "yes"));
        let list = run(&["get", "pods", "--as=ana"]).await;
        assert_eq!(list.code, Some(0), "{list:?}");
        let rules = run(&["auth", "can-i", "--list", "--as=ana"]).await;
        assert!(rules.stdout.contains("[list]"), "{rules:?}");
        assert!(
            rules.stdout.contains("selfsubjectaccessreviews"),
            "{rules:?}"
        );
        let denied = run(&["delete", "role", "r", "--as=ana"]).await;
        assert!(denied.stderr.contains("(Forbidden)"), "{denied:?}");
    })
    .await;
}
