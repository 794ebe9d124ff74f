//! Grace periods that no clock can count to.

use super::*;

/// The largest grace period, added to the time that is now, is over the end of time.
#[tokio::test(flavor = "multi_thread")]
async fn grace_periods_without_bound_are_bounded() {
    let stage = Stage::new().await;
    let mut spec = once("trap '' TERM; echo ready; while :; do sleep 0.01; done");
    spec["terminationGracePeriodSeconds"] = json!(i64::MAX);
    spec["activeDeadlineSeconds"] = json!(1);
    stage.run("patient", spec).await;
    assert_eq!(
        stage.event("patient", "Killing").await,
        "Stopping container main"
    );
    // It is still looked after: a shorter grace period ends it.
    let pods = stage.cluster.pods().in_namespace("default").unwrap();
    let pod = pods.fetch("patient").await.unwrap().raw().unwrap();
    assert_eq!(pod["status"]["phase"], "Running", "{pod:#}");
    let now = DeleteOptions {
        grace_seconds: Some(1),
        ..DeleteOptions::default()
    };
    pods.delete("patient", &now).await.unwrap();
    stage.until("patient", Value::is_null).await;
    stage.run("next", once("true")).await;
    assert_eq!(stage.ended("next").await["status"]["phase"], "Succeeded");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deletes_and_evictions_with_a_grace_without_bound() {
    let stage = Stage::new().await;
    let pods = stage.cluster.pods().in_namespace("default").unwrap();
    let largest = json!({"gracePeriodSeconds": i64::MAX});
    let delete = async |name: &str| {
        let path = format!("/api/v1/namespaces/default/pods/{name}");
        let proxy = stage.cluster.proxy();
        proxy.delete(&path, &[], Some(&largest)).await.unwrap();
    };
    for (name, evicts) in [("deleted", false), ("evicted", true)] {
        let script = "trap 'echo told' TERM; echo ready; while :; do sleep 0.01; done";
        stage.run(name, once(script)).await;
        let pod = stage
            .until(name, |pod| pod["status"]["phase"] == "Running")
            .await;
        let ready = async {
            while !stage.log(&pod).await.contains("ready") {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(AT_MOST, ready).await.unwrap();
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
        // It was told to end, and may take its time.
        let told = async {
            while !stage.log(&pod).await.contains("told") {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(AT_MOST, told).await.unwrap();
        let pod = pods.fetch(name).await.unwrap().raw().unwrap();
        assert_eq!(pod["status"]["phase"], "Running", "{pod:#}");
        assert_eq!(pod["metadata"]["deletionGracePeriodSeconds"], i64::MAX);
        // The same again changes nothing; 0 ends it at once.
        delete(name).await;
        let now = DeleteOptions {
            grace_seconds: Some(0),
            ..DeleteOptions::default()
        };
        pods.delete(name, &now).await.unwrap();
        stage.until(name, Value::is_null).await;
    }
    stage.run("next", once("true")).await;
    assert_eq!(stage.ended("next").await["status"]["phase"], "Succeeded");
    stage.stop().await;
}
