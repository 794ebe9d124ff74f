//! `emptyDir` volumes in memory.

use serde_json::json;

use longshore_node_api::LogRequest;

use super::{Stage, helpers::is_root, query, run_once, shell};

/// The containers of a pod share the volume, also after a restart, and the machine
/// does not have it.
#[tokio::test(flavor = "multi_thread")]
async fn volumes_in_memory_are_shared_and_limited() {
    if !is_root() {
        return;
    }
    let stage = Stage::new().await;
    let mounts = json!([{"name": "v", "mountPath": "/longshore-test/v"},
        {"name": "v", "mountPath": "/longshore-test/part", "subPath": "part"}]);
    let mut first = shell("echo kept > /longshore-test/v/file; echo part > /longshore-test/part/x");
    first["name"] = json!("first");
    first["volumeMounts"] = mounts.clone();
    let script = "cd /longshore-test/v; stat -f -c %T .; stat -c %a .; cat file part/x; \
                  head -c 2000000 /dev/zero 2>/dev/null > large || echo full; rm large; \
                  test -e again || { touch again; exit 1; }";
    let mut spec = run_once(script);
    spec["restartPolicy"] = json!("OnFailure");
    spec["initContainers"] = json!([first]);
    spec["containers"][0]["volumeMounts"] = mounts;
    spec["volumes"] = json!([{"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}]);
    stage.run("p", spec).await;
    let pod = stage.ended("p").await;
    let main = LogRequest {
        container: "main".to_owned(),
        ..query(&pod)
    };
    assert_eq!(
        stage.read(main).await.unwrap(),
        "tmpfs\n777\nkept\npart\nfull\n",
        "{pod:#}"
    );
    assert_eq!(pod["status"]["containerStatuses"][0]["restartCount"], 1);
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let folder = stage.folder.path().to_str().unwrap();
    assert!(!mounts.contains(folder), "{mounts}");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_volume_in_memory_belongs_to_the_pods_group() {
    if !is_root() {
        return;
    }
    let stage = Stage::new().await;
    let mut spec = run_once("stat -c '%a %g' /longshore-test/v");
    spec["securityContext"] = json!({"fsGroup": 1234});
    spec["containers"][0]["volumeMounts"] =
        json!([{"name": "v", "mountPath": "/longshore-test/v"}]);
    spec["volumes"] = json!([{"name": "v", "emptyDir": {"medium": "Memory"}}]);
    stage.run("p", spec).await;
    let pod = stage.ended("p").await;
    assert_eq!(stage.log(&pod).await, "2777 1234\n", "{pod:#}");
    stage.stop().await;
}
