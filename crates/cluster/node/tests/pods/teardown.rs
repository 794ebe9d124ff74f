//! Volumes of finished pods.

use std::{fs, path::PathBuf};

use super::{helpers::has_namespaces, *};

impl Stage {
    fn folder_of(&self, pod: &Value) -> PathBuf {
        let uid = pod["metadata"]["uid"].as_str().unwrap();
        self.folder.path().join("data/pods").join(uid)
    }
}

async fn until_removed(path: &Path) {
    let removed = async {
        while path.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let removed = tokio::time::timeout(TIMEOUT, removed).await;
    removed.unwrap_or_else(|_| panic!("{} still exists", path.display()));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_volumes_of_a_finished_pod_are_removed_and_its_log_is_kept() {
    let stage = Stage::new().await;
    if !has_namespaces(&stage).await {
        return;
    }
    let outside = stage.folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("kept"), "kept").unwrap();
    let script = format!(
        "head -c 2000000 /dev/zero > /scratch/big; ln -s {0} /scratch/link; ls /host; sleep 0.2; exit 3",
        outside.display()
    );
    for (name, policy) in [("failed", "Never"), ("again", "OnFailure")] {
        let script = match policy {
            "Never" => script.clone(),
            // After a restart, the volume is the same.
            _ => format!("test -e /scratch/big && {{ ls /host; exit 0; }}; {script}"),
        };
        let mut main = shell(&script);
        main["volumeMounts"] = json!([
            {"name": "scratch", "mountPath": "/scratch"},
            {"name": "host", "mountPath": "/host"},
        ]);
        let spec = json!({"restartPolicy": policy, "containers": [main], "volumes": [
            {"name": "scratch", "emptyDir": {}},
            {"name": "host", "hostPath": {"path": outside}},
        ]});
        stage.run(name, spec).await;
        let running = |pod: &Value| pod["status"]["phase"] == "Running";
        let pod = stage.until(name, running).await;
        let folder = stage.folder_of(&pod);
        assert!(folder.join("volumes/scratch").is_dir(), "{name}");

        let pod = stage.ended(name).await;
        for part in ["volumes", "work"] {
            until_removed(&folder.join(part)).await;
        }
        // The machine's files are not removed although links point to them.
        assert_eq!(fs::read_to_string(outside.join("kept")).unwrap(), "kept");
        // The object and its log remain.
        assert_eq!(stage.log(&pod).await, "kept\n");
    }
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_removes_the_volumes_that_its_predecessor_left() {
    let mut stage = Stage::new().await;
    stage.run("over", run_once("true")).await;
    let pod = stage.ended("over").await;
    let folder = stage.folder_of(&pod);
    until_removed(&folder.join("work")).await;
    stage.agent.take().unwrap().stop().await;
    // The state that an agent leaves if it is killed before it has removed the volumes.
    fs::create_dir_all(folder.join("volumes/scratch/sub")).unwrap();
    fs::write(folder.join("volumes/scratch/sub/file"), "x").unwrap();
    stage.start().await;
    until_removed(&folder.join("volumes")).await;
    let pods = stage.cluster.pods().in_namespace("default").unwrap();
    assert!(pods.find("over").await.unwrap().is_some());
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_of_any_depth_and_mode_are_removed_and_delay_no_start() {
    let mut stage = Stage::new().await;
    if !has_namespaces(&stage).await {
        return;
    }
    // The path is deeper than the maximum length of a path.
    let script = "cd /scratch; mkdir locked locked/in; chmod 0 locked; \
                  i=0; while [ $i -lt 2500 ]; do mkdir dd; cd dd; i=$((i + 1)); done";
    let mut main = shell(script);
    main["volumeMounts"] = json!([{"name": "scratch", "mountPath": "/scratch"}]);
    let spec = json!({"restartPolicy": "Never", "containers": [main], "volumes": [
        {"name": "scratch", "emptyDir": {}},
    ]});
    stage.run("deep", spec).await;
    let pod = stage.ended("deep").await;
    assert_eq!(
        pod["status"]["phase"],
        "Succeeded",
        "{}",
        stage.log(&pod).await
    );
    let folder = stage.folder_of(&pod);
    until_removed(&folder.join("volumes")).await;
    stage.agent.take().unwrap().stop().await;
    // The same in the folder of a pod that was deleted while no agent ran.
    let stale = folder.with_file_name("deleted");
    let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::DIRECTORY;
    let mode = rustix::fs::Mode::RWXU;
    fs::create_dir_all(stale.join("volumes")).unwrap();
    let mut below = rustix::fs::open(stale.join("volumes"), flags, mode).unwrap();
    for _ in 0..2500 {
        rustix::fs::mkdirat(&below, "dd", mode).unwrap();
        below = rustix::fs::openat(&below, "dd", flags, mode).unwrap();
    }
    stage.start().await;
    until_removed(&stale).await;
    stage.stop().await;
}
