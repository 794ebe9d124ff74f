//! Grace periods beyond the range of timestamps.

use super::*;

/// The current time plus the largest grace period exceeds the range of timestamps.
#[tokio::test(flavor = "multi_thread")]
async fn endless_grace_periods_are_bounded() {
    let stage = Stage::new().await;
    let mut spec = run_once("trap '' TERM; echo ready; while :; do sleep 0.01; done");
    spec["terminationGracePeriodSeconds"] = json!(i64::MAX);
    spec["activeDeadlineSeconds"] = json!(1);
    stage.run("patient", spec).await;
    assert_eq!(
        stage.event("patient", "Killing").await,
        "Stopping container main"
    );
    // The pod is still managed: a shorter grace period ends it.
    let pods = stage.cluster.pods().in_namespace("default").unwrap();
    let pod = pods.fetch("patient").await.unwrap().raw().unwrap();
    assert_eq!(pod["status"]["phase"], "Running", "{pod:#}");
    let now = DeleteOptions {
        grace_seconds: Some(1),
        ..DeleteOptions::default()
    };
    pods.delete("patient", &now).await.unwrap();
    stage.until("patient", Value::is_null).await;
    stage.run("next", run_once("true")).await;
    assert_eq!(stage.ended("next").await["status"]["phase"], "Succeeded");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deletes_and_evictions_with_an_endless_grace_period() {
    let stage = Stage::new().await;
    let pods = stage.cluster.pods().in_namespace("default").unwrap();
    let largest = json!({"gracePeriodSeconds": i64::MAX});
    let delete = async |name: &str| {
        let path = format!("/api/v1/namespaces/default/pods/{name}");
        let proxy = stage.cluster.proxy();
        proxy.delete(&path, &[], Some(&largest)).await.unwrap();
    };
    for (name, evicts) in [("deleted", false), ("evicted", true)] {
        let script = "trap 'echo terminating' TERM; echo ready; while :; do sleep 0.01; done";
        stage.run(name, run_once(script)).await;
        let pod = stage
            .until(name, |pod| pod["status"]["phase"] == "Running")
            .await;
        let ready = async {
            while !stage.log(&pod).await.contains("ready") {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(TIMEOUT, ready).await.unwrap();
        if evicts {
            let eviction = json!({
                "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name},
                "deleteOptions": {"gracePeriodSeconds": i64::MAX},
            });
            let path = format!("/api/v1/namespaces/default/pods/{name}/eviction");
            stage
                .cluster
                .proxy()
                .post(&path, &[], &eviction)
                .await
                .unwrap();
        } else {
            delete(name).await;
        }
        // The pod received SIGTERM, and has time to end.
        let terminating = async {
            while !stage.log(&pod).await.contains("terminating") {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(TIMEOUT, terminating).await.unwrap();
        let pod = pods.fetch(name).await.unwrap().raw().unwrap();
        assert_eq!(pod["status"]["phase"], "Running", "{pod:#}");
        assert_eq!(pod["metadata"]["deletionGracePeriodSeconds"], i64::MAX);
        // The same request changes nothing; a grace period of 0 ends the pod immediately.
        delete(name).await;
        let now = DeleteOptions {
            grace_seconds: Some(0),
            ..DeleteOptions::default()
        };
        pods.delete(name, &now).await.unwrap();
        stage.until(name, Value::is_null).await;
    }
    stage.run("next", run_once("true")).await;
    assert_eq!(stage.ended("next").await["status"]["phase"], "Succeeded");
    stage.stop().await;
}
