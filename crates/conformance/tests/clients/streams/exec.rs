//! kubectl exec.

use super::{POD, UNDER_A_TERMINAL, with_each_kubectl};

#[tokio::test(flavor = "multi_thread")]
async fn exec_runs_inside_and_tells_how_it_ended() {
    with_each_kubectl(POD, async |stage| {
        stage.ready("pod/box").await;
        let inside = stage
            .sh("kubectl exec box -c main -- sh -c 'pwd; echo $COLOUR; hostname'")
            .await;
        stage.same(&inside, "/tmp\nblue\nbox\n");
        // It is in the container's PID namespace: its command is near the first.
        let first = stage
            .sh("kubectl exec box -c main -- cat /proc/1/comm")
            .await;
        stage.same(&first, "longshore-init\n");
        for (command, code) in [
            ("true", 0),
            ("exit 3", 3),
            ("none-such-command", 127),
            ("kill -TERM $$", 143),
            ("kill -KILL $$", 137),
        ] {
            let ran = stage
                .kubectl
                .run(&["exec", "box", "-c", "main", "--", "sh", "-c", command])
                .await;
            assert_eq!(ran.code, Some(code), "{command}: {ran:?}");
        }
        let none = stage
            .kubectl
            .run(&["exec", "box", "-c", "main", "--", "none-such"])
            .await;
        assert_eq!(none.code, Some(127), "{none:?}");
        assert!(
            none.stderr.contains("executable file not found in $PATH"),
            "{none:?}"
        );
        let wrong = stage
            .kubectl
            .run(&["exec", "box", "-c", "none", "--", "true"])
            .await;
        assert_eq!(wrong.code, Some(1), "{wrong:?}");
        assert!(
            wrong
                .stderr
                .contains("container none is not valid for pod box"),
            "{wrong:?}"
        );
        let missing = stage.kubectl.run(&["exec", "nobody", "--", "true"]).await;
        assert!(
            missing.stderr.contains("pods \"nobody\" not found"),
            "{missing:?}"
        );
        let apart = [
            "exec",
            "box",
            "-c",
            "main",
            "--",
            "sh",
            "-c",
            "echo out; echo err >&2",
        ];
        let apart = stage.kubectl.run(&apart).await;
        stage.same(&apart.stdout, "out\n");
        assert!(apart.stderr.ends_with("err\n"), "{apart:?}");
        // What is left running is not waited for.
        let left = stage
            .sh("kubectl exec box -c main -- sh -c 'sleep 1000 & echo started'")
            .await;
        stage.same(&left, "started\n");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn exec_carries_ten_megabytes_both_ways() {
    with_each_kubectl(POD, async |stage| {
        stage.ready("pod/box").await;
        stage.sh("head -c 10000000 /dev/urandom > sent").await;
        stage.sh("kubectl exec -i box -c main -- cat < sent > got && cmp sent got").await;
        let sum = stage.sh("kubectl exec -i box -c main -- sha256sum < sent").await;
        let own = stage.sh("sha256sum < sent").await;
        stage.same(&sum, &own);
        // Those that speak websockets can be told not to.
        let spdy = "KUBECTL_REMOTE_COMMAND_WEBSOCKETS=false kubectl";
        stage
            .sh(&format!(
                "{spdy} exec -i box -c main -- cat < sent > got && cmp sent got"
            ))
            .await;
        // A command that reads nothing is not waited for.
        stage.sh("kubectl exec -i box -c main -- true < sent").await;
        // Its output comes whole, also when much is written at once at the end.
        let many = stage.sh("kubectl exec box -c main -- seq 1 500000 | sha256sum").await;
        let own = stage.sh("seq 1 500000 | sha256sum").await;
        stage.same(&many, &own);
        // Many at a time.
        let lines = "for i in 1 2 3 4 5 6; do kubectl exec box -c main -- sh -c \"sleep 0.2; echo $i\" & done; wait";
        let mut at_once: Vec<_> = stage.sh(lines).await.lines().map(str::to_owned).collect();
        at_once.sort();
        assert_eq!(at_once, ["1", "2", "3", "4", "5", "6"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn exec_has_a_terminal() {
    with_each_kubectl(POD, async |stage| {
        stage.ready("pod/box").await;
        stage.sh(&format!("cat > under.py <<'EOF'{UNDER_A_TERMINAL}EOF")).await;
        let size = stage
            .sh("sleep 0.2; python3 under.py '' kubectl exec -it box -c main -- sh -c 'sleep 0.5; tty >/dev/null && stty size'")
            .await;
        stage.same(&size, "30 100\n");
        let shell = stage
            .sh("python3 under.py 'echo $((6*7))\\nexit 5\\n' kubectl exec -it box -c main -- sh -c 'echo begin; exec sh -i'; echo code $?")
            .await;
        assert!(shell.contains("42\n") && shell.ends_with("code 5\n"), "{shell}");
    })
    .await;
}

/// Kubernetes leaves a command running whose client is gone.
#[tokio::test(flavor = "multi_thread")]
async fn exec_goes_on_without_its_client() {
    with_each_kubectl(POD, async |stage| {
        stage.ready("pod/box").await;
        for environment in ["", "KUBECTL_REMOTE_COMMAND_WEBSOCKETS=false"] {
            let folder = stage.sh("mktemp -d").await;
            let folder = folder.trim();
            // The client, whose input stays open, is killed when the command has
            // begun; the command writes to it afterwards.
            let script = format!(
                "echo begin > {folder}/file; until test -e {folder}/go; do sleep 0.05; done; \
                 echo more; sleep 1; echo end >> {folder}/file"
            );
            let until = |what: &str| format!("for i in $(seq 600); do {what} && break; sleep 0.1; done");
            stage
                .sh(&format!(
                    "sleep 20 2> /dev/null | {environment} kubectl exec -i box -c main -- sh -c '{script}' \
                     > /dev/null 2>&1 & client=$!; {}; kill -KILL $client; touch {folder}/go; {}; \
                     grep -q end {folder}/file",
                    until(&format!("test -s {folder}/file")),
                    until(&format!("grep -q end {folder}/file")),
                ))
                .await;
            stage.sh(&format!("rm -r {folder}")).await;
        }
    })
    .await;
}
