//! The lifecycle of pods: start, restart, deletion, volumes.

use super::{helpers::has_namespaces, *};

#[tokio::test(flavor = "multi_thread")]
async fn the_node_is_registered_and_a_pod_completes() {
    let stage = Stage::new().await;
    let node = stage
        .cluster
        .nodes()
        .fetch("here")
        .await
        .unwrap()
        .raw()
        .unwrap();
    assert_eq!(node["status"]["capacity"]["pods"], "250");
    let conditions = node["status"]["conditions"].as_array().unwrap();
    assert!(
        conditions
            .iter()
            .any(|one| one["type"] == "Ready" && one["status"] == "True")
    );

    stage
        .run("good", run_once("echo hello $POD_IP; echo $HOSTNAME >&2"))
        .await;
    let pod = stage.ended("good").await;
    assert_eq!(pod["status"]["phase"], "Succeeded");
    assert_eq!(terminated(&pod)["reason"], "Completed");
    let address = pod["status"]["podIP"].as_str().unwrap();
    assert!(address.starts_with("127."), "{address}");
    let mut lines: Vec<_> = stage.log(&pod).await.lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["good".to_owned(), format!("hello {address}")]);

    stage.run("bad", run_once("exit 3")).await;
    let pod = stage.ended("bad").await;
    assert_eq!(pod["status"]["phase"], "Failed");
    assert_eq!(
        (&terminated(&pod)["exitCode"], &terminated(&pod)["reason"]),
        (&json!(3), &json!("Error"))
    );
    assert_eq!(
        stage.event("bad", "Started").await,
        "Started container main"
    );
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_cannot_start_reports_the_cause() {
    let stage = Stage::new().await;
    let container = json!({"name": "main", "image": "none", "command": ["nosuch"]});
    stage
        .run(
            "lost",
            json!({"restartPolicy": "Never", "containers": [container]}),
        )
        .await;
    let pod = stage.ended("lost").await;
    assert_eq!(terminated(&pod)["exitCode"], 128);
    assert_eq!(terminated(&pod)["reason"], "StartError");
    let message = terminated(&pod)["message"].as_str().unwrap();
    assert_eq!(
        message,
        "exec: \"nosuch\": executable file not found in $PATH"
    );
    assert!(stage.event("lost", "Failed").await.contains("nosuch"));

    stage
        .run(
            "image",
            json!({"containers": [{"name": "main", "image": "httpd"}]}),
        )
        .await;
    let reason =
        |pod: &Value| pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"].clone();
    stage
        .until("image", |pod| reason(pod) == "ErrImageNeedsCommand")
        .await;
    assert!(stage.event("image", "Failed").await.contains("not pulled"));

    stage.run("config", json!({"restartPolicy": "Never", "containers": [{
        "name": "main", "image": "none", "command": ["sh", "-c", "echo $KEY"],
        "env": [{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "later", "key": "k"}}}]
    }]}))
    .await;
    let pod = stage
        .until("config", |pod| reason(pod) == "CreateContainerConfigError")
        .await;
    assert!(matches!(
        stage.read(query(&pod)).await,
        Err(LogError::NotReady(_))
    ));
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "later"},
        "stringData": {"k": "found"}});
    stage
        .cluster
        .secrets()
        .in_namespace("default")
        .unwrap()
        .create(&secret)
        .await
        .unwrap();
    let pod = stage.ended("config").await;
    assert_eq!(stage.log(&pod).await, "found\n");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn volumes_init_containers_and_restarts() {
    let stage = Stage::new().await;
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "map"},
        "data": {"a": "from the map"}});
    stage
        .cluster
        .configmaps()
        .in_namespace("default")
        .unwrap()
        .create(&map)
        .await
        .unwrap();
    let mounts = json!([{"name": "shared", "mountPath": "/longshore-test/work"},
                        {"name": "map", "mountPath": "/etc/longshore-test"}]);
    let mut init = shell("cat /etc/longshore-test/a > /longshore-test/work/copy");
    init["name"] = json!("init");
    init["volumeMounts"] = mounts.clone();
    // The first run fails; the immediate restart succeeds.
    let mut main =
        shell("cd /longshore-test/work; cat copy; mkdir again 2>/dev/null && exit 1; echo :second");
    main["volumeMounts"] = mounts;
    stage.run("files", json!({
        "restartPolicy": "OnFailure",
        "initContainers": [init],
        "containers": [main],
        "volumes": [{"name": "shared", "emptyDir": {}}, {"name": "map", "configMap": {"name": "map"}}],
    }))
    .await;
    let pod = stage.ended("files").await;
    assert_eq!(pod["status"]["phase"], "Succeeded", "{:#}", pod["status"]);
    let status = &pod["status"]["containerStatuses"][0];
    assert_eq!(status["restartCount"], 1);
    assert_eq!(status["lastState"]["terminated"]["exitCode"], 1);
    let main = LogRequest {
        container: "main".to_owned(),
        ..query(&pod)
    };
    assert_eq!(
        stage.read(main.clone()).await.unwrap(),
        "from the map:second\n"
    );
    let previous = LogRequest {
        previous: true,
        ..main
    };
    assert_eq!(stage.read(previous).await.unwrap(), "from the map\n");
    assert!(!Path::new("/longshore-test").exists());
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_a_pod_ends_it_gracefully_and_cleans_up() {
    let stage = Stage::new().await;
    let script = "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done";
    stage.run("long", run_once(script)).await;
    let pod = stage
        .until("long", |pod| pod["status"]["phase"] == "Running")
        .await;
    let ready = &pod["status"]["conditions"].as_array().unwrap().clone();
    assert!(
        ready
            .iter()
            .any(|one| one["type"] == "Ready" && one["status"] == "True"),
        "{ready:?}"
    );
    let logs = stage.agent.as_ref().unwrap().logs();
    let follow = LogRequest {
        follow: true,
        ..query(&pod)
    };
    let mut stream = Box::pin(logs.open(follow).await.unwrap());
    assert_eq!(stream.next().await.unwrap().unwrap(), "ready\n");
    let pods = stage.cluster.pods().in_namespace("default").unwrap();
    pods.delete("long", &DeleteOptions::default())
        .await
        .unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap(), "bye\n");
    assert!(stream.next().await.is_none());
    stage.until("long", Value::is_null).await;
    let uid = pod["metadata"]["uid"].as_str().unwrap();
    let gone = async {
        while ["pods", "logs"].iter().any(|part| {
            stage
                .folder
                .path()
                .join("data")
                .join(part)
                .join(uid)
                .exists()
        }) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, gone).await.unwrap();

    // A grace period of zero: the pod is killed, even if it ignores signals.
    stage
        .run("stubborn", run_once("trap '' TERM; echo $$; sleep 1000"))
        .await;
    stage
        .until("stubborn", |pod| pod["status"]["phase"] == "Running")
        .await;
    let now = DeleteOptions {
        grace_seconds: Some(0),
        ..DeleteOptions::default()
    };
    pods.delete("stubborn", &now).await.unwrap();
    stage.until("stubborn", Value::is_null).await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deadlines_and_restarts_of_the_agent() {
    let mut stage = Stage::new().await;
    let mut spec = run_once("sleep 1000");
    spec["activeDeadlineSeconds"] = json!(1);
    stage.run("late", spec).await;
    let pod = stage.ended("late").await;
    assert_eq!(
        (&pod["status"]["phase"], &pod["status"]["reason"]),
        (&json!("Failed"), &json!("DeadlineExceeded"))
    );

    stage.run("never", run_once("echo one; sleep 1000")).await;
    let mut again = run_once("echo two; sleep 1000");
    again["restartPolicy"] = json!("Always");
    stage.run("always", again).await;
    for name in ["never", "always"] {
        let pod = stage
            .until(name, |pod| pod["status"]["phase"] == "Running")
            .await;
        // The pod runs; its output may appear slightly later.
        while stage.log(&pod).await.is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    stage.agent.take().unwrap().stop().await;
    stage.start().await;
    let pod = stage.ended("never").await;
    assert_eq!(terminated(&pod)["reason"], "ContainerStatusUnknown");
    assert_eq!(stage.log(&pod).await, "one\n");
    let restarted = |pod: &Value| {
        let status = &pod["status"]["containerStatuses"][0];
        status["restartCount"] == 1 && status["ready"] == true
    };
    stage.until("always", restarted).await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn volumes_are_updated_with_their_sources() {
    let stage = Stage::new().await;
    let maps = stage.cluster.configmaps().in_namespace("default").unwrap();
    let map = |value: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "map"},
            "data": {"a": value}})
    };
    maps.create(&map("first")).await.unwrap();
    let script = "for word in second third; do \
        until grep -q $word /etc/longshore-test/a; do sleep 0.01; done; echo $word; done";
    let mut main = shell(script);
    main["volumeMounts"] = json!([{"name": "map", "mountPath": "/etc/longshore-test"}]);
    stage
        .run(
            "reader",
            json!({
                "restartPolicy": "Never",
                "containers": [main],
                "volumes": [{"name": "map", "configMap": {"name": "map"}}],
            }),
        )
        .await;
    let pod = stage
        .until("reader", |pod| pod["status"]["phase"] == "Running")
        .await;
    let logs = stage.agent.as_ref().unwrap().logs();
    let follow = LogRequest {
        follow: true,
        ..query(&pod)
    };
    let mut stream = Box::pin(logs.open(follow).await.unwrap());
    for word in ["second", "third"] {
        maps.replace("map", &map(word)).await.unwrap();
        let line = tokio::time::timeout(TIMEOUT, stream.next())
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        assert_eq!(line, format!("{word}\n"));
    }
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_pods_are_cleaned_up() {
    let stage = Stage::new().await;
    for index in 0..100 {
        stage.run(&format!("pod-{index}"), run_once("true")).await;
    }
    for index in 0..100 {
        let pod = stage.ended(&format!("pod-{index}")).await;
        assert_eq!(pod["status"]["phase"], "Succeeded");
    }
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exponential_environment_fails_its_container_with_the_variables_name() {
    let stage = Stage::new().await;
    let mut env = vec![json!({"name": "A0", "value": "0123456789abcdef0123456789abcdef"})];
    env.extend((1..40).map(|number| {
        let before = number - 1;
        json!({"name": format!("A{number}"), "value": format!("$(A{before})$(A{before})")})
    }));
    let mut spec = run_once("true");
    spec["containers"][0]["env"] = json!(env);
    stage.run("doubling", spec).await;
    let pod = stage.ended("doubling").await;
    assert_eq!(terminated(&pod)["reason"], "StartError");
    let expected = "variable A12 has more than 131072 bytes";
    let message = terminated(&pod)["message"].as_str().unwrap();
    assert!(message.starts_with(expected), "{message}");
    let event = stage.event("doubling", "Failed").await;
    assert!(event.contains(expected), "{event}");
    // The same limit applies to the arguments of a command.
    let mut spec = run_once("true");
    spec["containers"][0]["env"] = json!(&env[..12]);
    spec["containers"][0]["args"] = json!([format!("x{}", "$(A11)".repeat(4))]);
    stage.run("words", spec).await;
    let pod = stage.ended("words").await;
    let message = terminated(&pod)["message"].as_str().unwrap();
    assert!(message.starts_with("args[0] has more than"), "{message}");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn args_without_a_command_run_unless_the_image_has_an_entrypoint() {
    let stage = Stage::new().await;
    let with = |container: Value| json!({"restartPolicy": "Never", "containers": [container]});
    let args = json!({"name": "main", "image": "any", "args": ["sh", "-c", "echo $0", "argument"]});
    stage.run("args", with(args)).await;
    let pod = stage.ended("args").await;
    assert_eq!(stage.log(&pod).await, "argument\n");
    let image = json!({"name": "main", "image": "trainer:2", "args": ["$(POD_IP)"]});
    stage.run("image", with(image)).await;
    let pod = stage.ended("image").await;
    let address = pod["status"]["podIP"].as_str().unwrap();
    assert_eq!(stage.log(&pod).await, format!("trained {address}\n"));
    let command = json!({"name": "main", "image": "trainer", "command": ["echo", "own"]});
    stage.run("command", with(command)).await;
    let pod = stage.ended("command").await;
    assert_eq!(stage.log(&pod).await, "own\n");
    // If the arguments do not name a program, the error says how they were used.
    let options = json!({"name": "main", "image": "any", "args": ["--epochs", "3"]});
    stage.run("options", with(options)).await;
    let pod = stage.ended("options").await;
    let message = terminated(&pod)["message"].as_str().unwrap();
    assert!(
        message.contains("\"--epochs\": executable file not found")
            && message.contains("--image-entrypoint"),
        "{message}"
    );
    let missing = json!({"name": "main", "image": "nginx"});
    stage.run("missing", with(missing)).await;
    let pod = stage.ended("missing").await;
    let message = terminated(&pod)["message"].as_str().unwrap();
    assert!(
        message.contains("\"no-such-nginx\": executable file not found")
            && message.contains("install the program"),
        "{message}"
    );
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_container_starts_in_its_own_empty_folder() {
    let stage = Stage::new().await;
    let script = "pwd; ls -A | wc -l; touch left && ls";
    stage.run("one", run_once(script)).await;
    stage.run("two", run_once(script)).await;
    let mut folders = Vec::new();
    for name in ["one", "two"] {
        let pod = stage.ended(name).await;
        let log = stage.log(&pod).await;
        let (folder, rest) = log.split_once('\n').unwrap();
        assert_eq!(rest, "0\nleft\n");
        folders.push(folder.to_owned());
    }
    assert_ne!(folders[0], folders[1]);
    let mut spec = run_once("pwd");
    spec["containers"][0]["workingDir"] = json!("/usr");
    stage.run("named", spec).await;
    let pod = stage.ended("named").await;
    assert_eq!(stage.log(&pod).await, "/usr\n");
    // A missing folder is created in an empty volume, and nowhere else.
    if has_namespaces(&stage).await {
        let mut spec = run_once("pwd");
        spec["volumes"] = json!([{"name": "own", "emptyDir": {}}]);
        spec["containers"][0]["volumeMounts"] =
            json!([{"name": "own", "mountPath": "/longshore-test/own"}]);
        spec["containers"][0]["workingDir"] = json!("/longshore-test/own/work/deeper");
        stage.run("made", spec.clone()).await;
        let pod = stage.ended("made").await;
        assert_eq!(stage.log(&pod).await, "/longshore-test/own/work/deeper\n");
        let outside = "/longshore-test/own/../../tmp/longshore-test-missing";
        spec["containers"][0]["workingDir"] = json!(outside);
        stage.run("outside", spec).await;
        let pod = stage.ended("outside").await;
        assert_ne!(terminated(&pod)["exitCode"], 0, "{pod:#}");
    }
    let mut spec = run_once("pwd");
    spec["containers"][0]["workingDir"] = json!("/tmp/longshore-test-missing");
    stage.run("missing", spec).await;
    let pod = stage.ended("missing").await;
    let message = terminated(&pod)["message"].as_str().unwrap();
    assert!(message.contains("/tmp/longshore-test-missing"), "{message}");
    // The folder is removed when the pod has ended.
    let gone = async {
        while Path::new(&folders[0]).exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, gone).await.unwrap();
    stage.stop().await;
}

#[tokio::test]
async fn an_agent_removes_only_the_nodes_of_its_own_data_folder() {
    let stage = Stage::new().await;
    let names = async || {
        let nodes = stage.cluster.nodes().list().await.unwrap().items;
        let names = nodes.iter().map(|node| node.name().to_owned());
        names.collect::<Vec<_>>()
    };
    let other = NodeAgent::start(stage.options("other", "another"))
        .await
        .unwrap();
    assert_eq!(names().await, ["here", "other"]);
    other.stop().await;
    let renamed = NodeAgent::start(stage.options("renamed", "another"))
        .await
        .unwrap();
    assert_eq!(names().await, ["here", "renamed"]);
    let leases = stage
        .cluster
        .leases()
        .in_namespace("kube-node-lease")
        .unwrap();
    assert!(leases.find("other").await.unwrap().is_none());
    renamed.stop().await;
    stage.stop().await;
}
