//! kubectl exec.

use super::{POD, UNDER_A_TERMINAL, with_each_kubectl};

#[tokio::test(flavor = "multi_thread")]
async fn exec_runs_in_the_container_and_returns_the_exit_code() {
    with_each_kubectl(POD, async |session| {
        session.ready("pod/box").await;
        let inside = session
            .sh("kubectl exec box -c main -- sh -c 'pwd; echo $COLOUR; hostname'")
            .await;
        session.same(&inside, "/tmp\nblue\nbox\n");
        // The command runs in the PID namespace of the container, in which the init
        // process is the first.
        let first = session
            .sh("kubectl exec box -c main -- cat /proc/1/comm")
            .await;
        session.same(&first, "longshore-init\n");
        for (command, code) in [
            ("true", 0),
            ("exit 3", 3),
            ("none-such-command", 127),
            ("kill -TERM $$", 143),
            ("kill -KILL $$", 137),
        ] {
            let ran = session
                .kubectl
                .run(&["exec", "box", "-c", "main", "--", "sh", "-c", command])
                .await;
            assert_eq!(ran.code, Some(code), "{command}: {ran:?}");
        }
        let none = session
            .kubectl
            .run(&["exec", "box", "-c", "main", "--", "none-such"])
            .await;
        assert_eq!(none.code, Some(127), "{none:?}");
        assert!(
            none.stderr.contains("executable file not found in $PATH"),
            "{none:?}"
        );
        let wrong = session
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
        let missing = session
            .kubectl
            .run(&["exec", "missing", "--", "true"])
            .await;
        assert!(
            missing.stderr.contains("pods \"missing\" not found"),
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
        let apart = session.kubectl.run(&apart).await;
        session.same(&apart.stdout, "out\n");
        assert!(apart.stderr.ends_with("err\n"), "{apart:?}");
        // exec does not wait for background processes.
        let left = session
            .sh("kubectl exec box -c main -- sh -c 'sleep 1000 & echo started'")
            .await;
        session.same(&left, "started\n");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn exec_carries_ten_megabytes_both_ways() {
    with_each_kubectl(POD, async |session| {
        session.ready("pod/box").await;
        session.sh("head -c 10000000 /dev/urandom > sent").await;
        session.sh("kubectl exec -i box -c main -- cat < sent > got && cmp sent got").await;
        let sum = session.sh("kubectl exec -i box -c main -- sha256sum < sent").await;
        let own = session.sh("sha256sum < sent").await;
        session.same(&sum, &own);
        // Newer versions use SPDY if websockets are disabled.
        let spdy = "KUBECTL_REMOTE_COMMAND_WEBSOCKETS=false kubectl";
        session
            .sh(&format!(
                "{spdy} exec -i box -c main -- cat < sent > got && cmp sent got"
            ))
            .await;
        // exec ends although the command does not read the input.
        session.sh("kubectl exec -i box -c main -- true < sent").await;
        // Large output just before the end of the command is complete.
        let many = session.sh("kubectl exec box -c main -- seq 1 500000 | sha256sum").await;
        let own = session.sh("seq 1 500000 | sha256sum").await;
        session.same(&many, &own);
        // Concurrent sessions.
        let lines = "for i in 1 2 3 4 5 6; do kubectl exec box -c main -- sh -c \"sleep 0.2; echo $i\" & done; wait";
        let mut at_once: Vec<_> = session.sh(lines).await.lines().map(str::to_owned).collect();
        at_once.sort();
        assert_eq!(at_once, ["1", "2", "3", "4", "5", "6"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn exec_has_a_terminal() {
    with_each_kubectl(POD, async |session| {
        session.ready("pod/box").await;
        session.sh(&format!("cat > under.py <<'EOF'{UNDER_A_TERMINAL}EOF")).await;
        let size = session
            .sh("sleep 0.2; python3 under.py '' kubectl exec -it box -c main -- sh -c 'sleep 0.5; tty >/dev/null && stty size'")
            .await;
        // Like the kubelet, the node first sends an empty message of the standard output.
        // Older versions of kubectl report it if they have not created that stream yet.
        let size: String = (size.split_inclusive('\n'))
            .filter(|line| !line.ends_with("] Unknown stream id 1, discarding message\n"))
            .collect();
        session.same(&size, "30 100\n");
        let shell = session
            .sh("python3 under.py 'echo $((6*7))\\nexit 5\\n' kubectl exec -it box -c main -- sh -c 'echo begin; exec sh -i'; echo code $?")
            .await;
        assert!(shell.contains("42\n") && shell.ends_with("code 5\n"), "{shell}");
    })
    .await;
}

/// As in Kubernetes, a command continues after its client disconnects.
#[tokio::test(flavor = "multi_thread")]
async fn exec_continues_without_its_client() {
    with_each_kubectl(POD, async |session| {
        session.ready("pod/box").await;
        for environment in ["", "KUBECTL_REMOTE_COMMAND_WEBSOCKETS=false"] {
            let folder = session.sh("mktemp -d").await;
            let folder = folder.trim();
            // The client is killed after the command has started. The standard input
            // stays open, and the command writes output afterwards.
            let script = format!(
                "echo begin > {folder}/file; until test -e {folder}/go; do sleep 0.05; done; \
                 echo more; sleep 1; echo end >> {folder}/file"
            );
            let until = |what: &str| format!("for i in $(seq 600); do {what} && break; sleep 0.1; done");
            session
                .sh(&format!(
                    "sleep 20 2> /dev/null | {environment} kubectl exec -i box -c main -- sh -c '{script}' \
                     > /dev/null 2>&1 & client=$!; {}; kill -KILL $client; touch {folder}/go; {}; \
                     grep -q end {folder}/file",
                    until(&format!("test -s {folder}/file")),
                    until(&format!("grep -q end {folder}/file")),
                ))
                .await;
            session.sh(&format!("rm -r {folder}")).await;
        }
    })
    .await;
}
