//! Limits of CPU and memory, enforced by cgroups.
#![allow(clippy::print_stdout, reason = "says what is not tested")]

use std::{fs, path::PathBuf};

use serde_json::{Value, json};

use super::{
    Stage, helpers::is_root, helpers::run_as_unprivileged, main_container, run_once, terminated,
};
use longshore_model::node_condition::LIMITS_ENFORCED;
use longshore_node_api::{NodeStreams as _, StreamsWanted};

/// A pod whose container has limits.
fn limited(script: &str, limits: &Value) -> Value {
    let mut spec = run_once(script);
    spec["containers"][0]["resources"] = json!({"limits": limits});
    spec
}

/// Returns true if the node enforces limits on this machine.
async fn has_cgroups(stage: &Stage) -> bool {
    let script = "cat /proc/self/cgroup";
    stage
        .run("probe", limited(script, &json!({"cpu": "1"})))
        .await;
    let pod = stage.ended("probe").await;
    let found = stage.log(&pod).await.contains("/pod");
    let node = stage.cluster.nodes().fetch("here").await.unwrap();
    let condition = node.condition(LIMITS_ENFORCED).unwrap().unwrap();
    assert_eq!(condition.holds(), found, "{condition:?}");
    if !found {
        println!(
            "not tested: {}",
            stage.event("here", "LimitsNotEnforced").await
        );
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_beyond_its_memory_limit_is_killed() {
    let stage = Stage::new().await;
    if !has_cgroups(&stage).await {
        return;
    }
    let limits = json!({"memory": "32Mi"});
    stage
        .run("p", limited("exec tail /dev/zero", &limits))
        .await;
    let pod = stage.ended("p").await;
    let end = terminated(&pod);
    assert_eq!(
        (&end["reason"], &end["exitCode"]),
        (&json!("OOMKilled"), &json!(137))
    );
    assert_eq!(pod["status"]["phase"], "Failed");

    // The kernel kills a child process, which ends the main process.
    stage
        .run("q", limited("tail /dev/zero; exit $?", &limits))
        .await;
    let pod = stage.ended("q").await;
    let end = terminated(&pod);
    assert_eq!(
        (&end["reason"], &end["exitCode"]),
        (&json!("OOMKilled"), &json!(137))
    );

    // The first pod has enough memory. The limit of the second one is too low for its start.
    stage
        .run(
            "r",
            limited(
                "head -c 9000000 /dev/zero | tail -c 9000000 | wc -c",
                &limits,
            ),
        )
        .await;
    let pod = stage.ended("r").await;
    assert_eq!(terminated(&pod)["reason"], "Completed", "{pod:#}");
    stage
        .run("s", limited("true", &json!({"memory": "1"})))
        .await;
    let pod = stage.ended("s").await;
    let end = terminated(&pod);
    assert_eq!(
        (&end["reason"], &end["exitCode"]),
        (&json!("StartError"), &json!(128)),
        "{pod:#}"
    );
    assert!(
        end["message"]
            .as_str()
            .unwrap()
            .contains("memory limit too low"),
        "{pod:#}"
    );
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_sees_its_limits_and_cannot_change_them() {
    let stage = Stage::new().await;
    if !has_cgroups(&stage).await || !is_root() {
        return;
    }
    let script = "cd /sys/fs/cgroup; cat cpu/cpu.cfs_quota_us cpu.max cpu/cpu.shares cpu.weight \
        memory/memory.limit_in_bytes memory.max 2>/dev/null
        for file in cpu/cpu.cfs_quota_us cpu.max memory/memory.limit_in_bytes memory.max; do
        test ! -e $file || (echo 50000 > $file) 2>/dev/null && echo written to $file
        done; grep -c longshore- /proc/self/cgroup >&2; true";
    let limits = json!({"cpu": "100m", "memory": "64Mi"});
    for user in [0, 65_534] {
        let name = format!("p{user}");
        let mut spec = limited(script, &limits);
        spec["securityContext"] = json!({"runAsUser": user});
        stage.run(&name, spec).await;
        let pod = stage.ended(&name).await;
        let log = stage.log(&pod).await;
        // The line on the standard error may be the first.
        let has = |text: &str| {
            log.lines()
                .any(|line| line == text || line.starts_with(&format!("{text} ")))
        };
        assert!(has("10000"), "{log} {pod:#}");
        assert!(has("67108864"), "{log}");
        assert!(has("102") || has("17"), "{log}");
        for line in log.lines().filter(|line| line.starts_with("written")) {
            // A file that does not exist was not written to either.
            let file = line.trim_start_matches("written to ");
            assert!(
                !fs::exists(PathBuf::from("/sys/fs/cgroup").join(file)).unwrap(),
                "{log}"
            );
        }
    }
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_join_the_cgroup_which_ends_with_the_pod() {
    let stage = Stage::new().await;
    if !has_cgroups(&stage).await {
        return;
    }
    let spec = limited(
        "cat /proc/self/cgroup; exec sleep 1000",
        &json!({"memory": "64Mi"}),
    );
    stage.run("p", spec).await;
    let is_running =
        |pod: &Value| pod["status"]["containerStatuses"][0]["state"]["running"].is_object();
    let pod = stage.until("p", is_running).await;
    let sessions = stage.agent.as_ref().unwrap().sessions();
    let words = ["cat", "/proc/self/cgroup"].map(str::to_owned).to_vec();
    let wanted = StreamsWanted {
        output: true,
        ..StreamsWanted::default()
    };
    let session = sessions
        .exec(main_container(&pod), words, wanted)
        .await
        .unwrap();
    let mut text = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut session.output.unwrap(), &mut text)
        .await
        .unwrap();
    let uid = pod["metadata"]["uid"].as_str().unwrap();
    let of_memory = |line: &&str| line.contains(uid) && line.contains("/main-");
    let line = text.lines().find(of_memory).unwrap().to_owned();

    let measured = sessions.measure().unwrap().await.unwrap();
    let usage = measured.containers[0].usage;
    assert!((1..64 << 20).contains(&usage.memory), "{usage:?}");

    let below = line
        .rsplit_once(':')
        .unwrap()
        .1
        .trim_start_matches('/')
        .to_owned();
    let roots = [
        "/sys/fs/cgroup/memory",
        "/sys/fs/cgroup/cpu",
        "/sys/fs/cgroup",
    ];
    let folder = roots
        .iter()
        .map(|root| PathBuf::from(root).join(&below))
        .find(|folder| folder.exists())
        .unwrap();
    let pods = stage.cluster.pods().in_namespace("default").unwrap();
    pods.delete("p", &super::DeleteOptions::default())
        .await
        .unwrap();
    stage.until("p", Value::is_null).await;
    let pod_folder = folder.parent().unwrap().to_owned();
    let agents_folder = pod_folder.parent().unwrap().to_owned();
    stage.stop().await;
    assert!(!pod_folder.exists(), "{pod_folder:?}");
    for _ in 0..1000 {
        if !agents_folder.exists() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("{agents_folder:?} still exists");
}

/// The directory of this process's cgroup with version 1 of the memory controller.
fn own_memory_cgroup() -> Option<PathBuf> {
    let text = fs::read_to_string("/proc/self/cgroup").unwrap();
    let below = text.lines().find_map(|line| line.split_once(":memory:/"));
    below.map(|(_, below)| PathBuf::from("/sys/fs/cgroup/memory").join(below))
}

#[tokio::test(flavor = "multi_thread")]
async fn cgroups_of_a_killed_agent_are_removed_when_the_next_starts() {
    let left = own_memory_cgroup().map(|own| own.join("longshore-1-1"));
    let Some(left) = left.filter(|left| fs::create_dir(left).is_ok()) else {
        println!("not tested: this process cannot create a cgroup of version 1");
        return;
    };
    // A parallel test may remove it at once.
    let _ = fs::create_dir_all(left.join("pod/container"));
    let stage = Stage::new().await;
    let removed = async {
        while left.exists() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(super::TIMEOUT, removed).await.unwrap();
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_without_cgroups_run_and_an_event_of_the_node_says_why() {
    if is_root() {
        run_as_unprivileged("cgroups::unprivileged_limits");
    }
}

/// Run by the test above, without root.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "run without root"]
async fn unprivileged_limits() {
    let stage = Stage::new().await;
    let limits = json!({"cpu": "100m", "memory": "32Mi"});
    for name in ["p", "q"] {
        stage
            .run(name, limited("cat /proc/self/cgroup", &limits))
            .await;
        let pod = stage.ended(name).await;
        assert_eq!(pod["status"]["phase"], "Succeeded", "{pod:#}");
        if stage.log(&pod).await.contains("/pod") {
            println!("not tested: the cgroups are delegated to this user");
            return;
        }
    }
    let message = stage.event("here", "LimitsNotEnforced").await;
    assert!(message.contains("systemd-run"), "{message}");
    let node = stage.cluster.nodes().fetch("here").await.unwrap();
    let condition = node.condition(LIMITS_ENFORCED).unwrap().unwrap();
    let reason = condition.message.as_deref().unwrap_or_default();
    assert!(!condition.holds(), "{condition:?}");
    assert!(reason.contains("systemd-run"), "{condition:?}");
    let events = stage.events("here").await;
    assert_eq!(events.len(), 1, "{events:?}");
    stage.stop().await;
}
