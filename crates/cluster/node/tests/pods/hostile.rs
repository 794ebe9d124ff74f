//! A hostile container tries to read the agent's memory, and to lead the agent out of a
//! volume.

use std::fs;

use super::{helpers::*, *};

/// Searches all other processes of the container for a text, until a file appears, or once. The
/// first argument contains the bytes of the text in reverse order.
const SEARCH: &str = r#"
import os, sys
needle, stop = sys.argv[1][::-1].encode(), sys.argv[2]
seen, rounds, read = set(), 0, 0
def look(pid):
    global read
    try:
        for name in ("environ", "cmdline"):
            with open(f"/proc/{pid}/{name}", "rb") as file:
                if needle in file.read():
                    print("FOUND in", name, "of", pid, flush=True)
        with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
            for line in maps:
                area, mode = line.split()[:2]
                first, last = (int(word, 16) for word in area.split("-"))
                if "r" not in mode or "[v" in line or last - first > 1 << 28:
                    continue
                try:
                    memory.seek(first)
                    read += 1
                    if needle in memory.read(last - first):
                        print("FOUND in memory of", pid, line, flush=True)
                except (OSError, ValueError):
                    pass
    except (OSError, ValueError):
        pass
while True:
    rounds += 1
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if int(pid) != os.getpid():
            seen.add(pid)
            look(pid)
    if rounds == 1:
        print("ready", flush=True)
    if not stop or os.path.exists(stop):
        break
print("saw", len(seen), "processes and", read, "areas", flush=True)
"#;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by containers_cannot_read_the_agents_memory"]
async fn agent_with_a_secret() {
    let secret = std::env::var("LONGSHORE_TEST_SECRET").unwrap();
    let backwards: String = secret.chars().rev().collect();
    let stage = Stage::new().await;
    if !has_namespaces(&stage).await {
        return;
    }
    // The secret is in the memory of this process, where a container must not find it.
    let kept = secret.repeat(100);
    let stop = stage.folder.path().join("stop");
    let search = |stop: &str| {
        let command = json!(["/usr/bin/python3", "-c", SEARCH, backwards, stop]);
        // Without privileges, the kernel lets the container read very little.
        let context = json!({"privileged": is_root()});
        json!({"restartPolicy": "Never", "containers": [{"name": "main", "image": "none",
            "command": command, "securityContext": context}]})
    };
    stage.run("once", search("")).await;
    let pod = stage.ended("once").await;
    let log = stage.log(&pod).await;
    assert!(log.contains("saw 1 processes"), "{log}");
    assert!(!log.contains("FOUND"), "{log}");
    assert!(!is_root() || !log.contains("and 0 areas"), "{log}");

    // Commands of sessions enter the container while it searches.
    stage.run("long", search(stop.to_str().unwrap())).await;
    let running = |pod: &Value| pod["status"]["phase"] == "Running";
    let pod = stage.until("long", running).await;
    while !stage.log(&pod).await.contains("ready") {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let sessions = stage.agent.as_ref().unwrap().sessions();
    for _ in 0..100 {
        let words = vec!["true".to_owned()];
        let nothing = StreamsWanted::default();
        let session = sessions.exec(main_container(&pod), words, nothing).await;
        assert_eq!(session.unwrap().end.await, 0);
    }
    fs::write(&stop, "").unwrap();
    let pod = stage.ended("long").await;
    let log = stage.log(&pod).await;
    assert!(!log.contains("FOUND"), "{log}");
    assert!(log.contains("saw ") && !log.contains("saw 1 "), "{log}");
    assert_eq!(kept.len(), secret.len() * 100);
    stage.stop().await;
}

#[test]
fn containers_cannot_read_the_agents_memory() {
    let secret = format!("longshore-{}-secret", std::process::id());
    run_as_both(
        "hostile::agent_with_a_secret",
        &[("LONGSHORE_TEST_SECRET", &secret)],
    );
}

/// A pod whose first container changes a volume, which the second one mounts.
fn two_steps(first: &str, second: &str, mounts: Value) -> Value {
    let mut init = shell(first);
    init["name"] = json!("first");
    init["volumeMounts"] = json!([{"name": "v", "mountPath": "/longshore-test/v"}]);
    let mut main = shell(second);
    main["volumeMounts"] = mounts;
    main["env"] = json!([{"name": "LINK", "value": "link"}]);
    json!({
        "restartPolicy": "Never",
        "initContainers": [init],
        "containers": [main],
        "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "emptyDir": {}}],
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn links_in_a_volume_do_not_leave_it() {
    let stage = Stage::new().await;
    if !has_namespaces(&stage).await {
        return;
    }
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "SECRET").unwrap();
    fs::create_dir(outside.path().join("folder")).unwrap();
    let place = outside.path().display();
    let make = format!(
        "cd /longshore-test/v; ln -s {place} link; mkdir real; ln -s {place}/secret real/file; \
         ln -s {place}/new real/dangling"
    );
    let part = |field: &str, path: &str| json!([{"name": "v", "mountPath": "/longshore-test/m", field: path}]);
    let inside = |path: &str| {
        json!([{"name": "v", "mountPath": "/longshore-test/v"},
               {"name": "w", "mountPath": format!("/longshore-test/v/{path}")}])
    };
    let attacks = [
        ("folder", part("subPath", "link")),
        ("below", part("subPath", "link/folder")),
        ("made", part("subPath", "link/made")),
        ("file", part("subPath", "real/file")),
        ("dangling", part("subPath", "real/dangling")),
        ("expression", part("subPathExpr", "$(LINK)/made")),
        ("nested", inside("link/made")),
        ("nested-there", inside("link/folder")),
        ("nested-link", inside("link")),
    ];
    for (name, mounts) in attacks {
        let read = "cat /longshore-test/m /longshore-test/m/secret; echo X > /longshore-test/m/new";
        stage.run(name, two_steps(&make, read, mounts)).await;
        let pod = match name.starts_with("nested") {
            true => stage.ended(name).await,
            // Another container may replace the link.
            false => stage.until(name, waits_for_config).await,
        };
        let state = &pod["status"]["containerStatuses"][0]["state"];
        let message = match name.starts_with("nested") {
            true => &state["terminated"]["message"],
            false => &state["waiting"]["message"],
        };
        let message = message.as_str().unwrap();
        assert!(message.contains("symbolic link"), "{name}: {message}");
    }
    let mut left: Vec<_> = fs::read_dir(&outside)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["folder", "secret"]);
    // Without links, all of it works.
    let make = "mkdir -p /longshore-test/v/real; echo kept > /longshore-test/v/real/file";
    let good = [
        (
            "good",
            "cat /longshore-test/m/file",
            part("subPath", "real"),
        ),
        (
            "good-file",
            "cat /longshore-test/m",
            part("subPath", "real/file"),
        ),
        (
            "good-new",
            "echo kept > /longshore-test/m/x; cat /longshore-test/m/x",
            part("subPath", "new/deep"),
        ),
        (
            "good-nested",
            "cat /longshore-test/v/real/file; touch /longshore-test/v/real/in/x",
            inside("real/in"),
        ),
    ];
    for (name, read, mounts) in good {
        stage.run(name, two_steps(make, read, mounts)).await;
        let pod = stage.ended(name).await;
        assert_eq!(pod["status"]["phase"], "Succeeded", "{name}: {pod:#}");
        let main = LogRequest {
            container: "main".to_owned(),
            ..query(&pod)
        };
        assert_eq!(stage.read(main).await.unwrap(), "kept\n", "{name}");
    }
    stage.stop().await;
}

/// Swaps a folder and a link as long as the pod runs.
const SWAP: &str = r#"
import ctypes, os, random, sys, time
libc = ctypes.CDLL(None)
os.chdir("/longshore-test/v")
os.mkdir("part"), os.symlink(sys.argv[1], "other")
open("part/marker", "w").write("inside")
open("running", "w")
while True:
    libc.renameat2(-100, b"part", -100, b"other", 2)
    # Without a pause others see one of the states only.
    time.sleep(random.random() / 1000)
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_constantly_changing_volume_is_not_left() {
    const READERS: usize = 30;
    let stage = Stage::new().await;
    if !has_namespaces(&stage).await {
        return;
    }
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("marker"), "outside").unwrap();
    let whole = json!({"name": "v", "mountPath": "/longshore-test/v"});
    let sidecar = json!({
        "name": "exchange", "image": "none", "restartPolicy": "Always",
        "command": ["/usr/bin/python3", "-c", SWAP, outside.path()],
        "volumeMounts": [whole],
    });
    let mut wait = shell("until test -e /longshore-test/v/running; do sleep 0.01; done");
    wait["name"] = json!("wait");
    wait["volumeMounts"] = json!([whole]);
    let reader = |number: usize| {
        json!({
            "name": format!("reader-{number}"), "image": "none",
            "command": ["cat", "/longshore-test/m/marker"],
            "volumeMounts": [{"name": "v", "mountPath": "/longshore-test/m", "subPath": "part"}],
        })
    };
    let spec = json!({
        "restartPolicy": "Never",
        "initContainers": [sidecar, wait],
        "containers": (0..READERS).map(reader).collect::<Vec<_>>(),
        "volumes": [{"name": "v", "emptyDir": {}}],
    });
    stage.run("exchange", spec).await;
    // Containers that encounter the link wait for another part of the volume.
    let tried = |pod: &Value| {
        let states = pod["status"]["containerStatuses"].as_array();
        states.is_some_and(|states| {
            states.iter().all(|status| {
                let waits = &status["state"]["waiting"]["reason"];
                status["state"]["terminated"].is_object() || waits == "CreateContainerConfigError"
            })
        })
    };
    let pod = stage.until("exchange", tried).await;
    let mut read = Vec::new();
    for number in 0..READERS {
        let query = LogRequest {
            container: format!("reader-{number}"),
            ..query(&pod)
        };
        // A container that did not start has no log.
        read.push(stage.read(query).await.unwrap_or_default());
    }
    assert!(
        !read.iter().any(|text| text.contains("outside")),
        "{read:?}"
    );
    assert!(read.iter().any(String::is_empty), "{read:?}");
    stage.stop().await;
}
