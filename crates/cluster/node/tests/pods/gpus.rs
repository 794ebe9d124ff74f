//! GPUs of the node, and the containers they are assigned to.

use super::*;

/// A machine with GPUs, simulated by the kernel's files about them.
fn fake_gpus(root: &Path, count: u32) {
    let write = |path: String, text: String| {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    for gpu in 0..count {
        let text = format!("Model: NVIDIA H200\nGPU UUID: GPU-{gpu}\nDevice Minor: {gpu}\n");
        write(
            format!("proc/driver/nvidia/gpus/0000:0{gpu}:00.0/information"),
            text,
        );
        write(format!("dev/nvidia{gpu}"), String::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn gpus_are_allocatable_and_assigned_to_one_container_at_a_time() {
    let mut stage = Stage::without_agent(None, None);
    fake_gpus(&stage.folder.path().join("root"), 2);
    stage.start().await;
    let node = async |stage: &Stage| {
        let node = stage.cluster.nodes().fetch("here").await.unwrap();
        node.raw().unwrap()
    };
    let found = node(&stage).await;
    for list in ["capacity", "allocatable"] {
        assert_eq!(found["status"][list]["nvidia.com/gpu"], "2");
        let storage = found["status"][list]["ephemeral-storage"].as_str().unwrap();
        let kibibytes: u64 = storage.strip_suffix("Ki").unwrap().parse().unwrap();
        assert!(kibibytes > 1024, "{storage}");
    }
    let labels = &found["metadata"]["labels"];
    assert_eq!(labels["nvidia.com/gpu.product"], "NVIDIA-H200");

    let script = "trap '' TERM; echo [$CUDA_VISIBLE_DEVICES]; while :; do sleep 0.01; done";
    let asking = |count: u32, script: &str| {
        let mut spec = run_once(script);
        spec["terminationGracePeriodSeconds"] = json!(1);
        let container = &mut spec["containers"][0];
        container["resources"] = json!({"limits": {"nvidia.com/gpu": count}});
        // The pod's own variable cannot select another container's GPUs.
        container["env"] = json!([{"name": "CUDA_VISIBLE_DEVICES", "value": "0,1"}]);
        spec
    };
    let said = async |stage: &Stage, name: &str| {
        let pod = stage
            .until(name, |pod| pod["status"]["phase"] != "Pending")
            .await;
        let log = async {
            loop {
                let log = stage.log(&pod).await;
                if !log.is_empty() {
                    return log;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(TIMEOUT, log).await.unwrap()
    };
    stage.run("first", asking(1, script)).await;
    stage.run("second", asking(1, script)).await;
    let mut devices = [said(&stage, "first").await, said(&stage, "second").await];
    let first = devices[0].clone();
    devices.sort();
    assert_eq!(devices, ["[GPU-0]\n", "[GPU-1]\n"]);

    // The first request exceeds the capacity. Another request waits for a pod that ends slowly.
    stage.run("third", asking(3, script)).await;
    let pod = stage.ended("third").await;
    let message = terminated(&pod)["message"].as_str().unwrap();
    assert!(
        message.contains("asks for 3 of nvidia.com/gpu, and the node has 2"),
        "{message}"
    );
    stage
        .run("next", asking(1, "echo [$CUDA_VISIBLE_DEVICES]"))
        .await;
    let text = stage.event("next", "WaitingForDevices").await;
    assert!(text.contains("0 of the node's 2 are free"), "{text}");
    let pods = stage.cluster.pods().in_namespace("default").unwrap();
    pods.delete("first", &DeleteOptions::default())
        .await
        .unwrap();
    let pod = stage.ended("next").await;
    assert_eq!(stage.log(&pod).await, first);

    // Without a GPU request, the pod's own variables are kept.
    let mut plain = run_once("echo [$CUDA_VISIBLE_DEVICES]");
    plain["containers"][0]["env"] = json!([{"name": "CUDA_VISIBLE_DEVICES", "value": "7"}]);
    stage.run("plain", plain).await;
    let pod = stage.ended("plain").await;
    assert_eq!(stage.log(&pod).await, "[7]\n");

    // A GPU that is missing at the next start is no longer allocatable.
    stage.agent.take().unwrap().stop().await;
    std::fs::remove_dir_all(stage.folder.path().join("root")).unwrap();
    stage.start().await;
    let found = node(&stage).await;
    assert_eq!(found["status"]["capacity"]["nvidia.com/gpu"], Value::Null);
    let labels = &found["metadata"]["labels"];
    assert_eq!(labels["nvidia.com/gpu.product"], Value::Null);
    stage.stop().await;
}
