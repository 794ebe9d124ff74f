//! Security contexts: which fields are enforced, and which are rejected.

use std::fs;

use super::{helpers::*, *};

/// Prints the privileges of its process.
const STATUS: &str = "grep -E '^(NoNewPrivs|Seccomp_filters|CapBnd|CapEff):' /proc/self/status; \
                      echo user $(id -u); echo group $(id -g); echo groups $(id -G);";

/// Prints which attempts succeed.
const ATTEMPTS: &str = "
attempt() { name=$1; shift; \"$@\" 2>/dev/null && echo $name yes || echo $name no; }
attempt etc touch /etc/longshore-test
attempt tmp touch /tmp/longshore-test
attempt volume touch /longshore-test/v/x
attempt memory touch /dev/shm/longshore-test
attempt null sh -c 'echo > /dev/null'
attempt remount mount -o remount,rw /
attempt bind mount -o remount,bind,rw /
attempt unmount umount /longshore-test/v
attempt device mknod /longshore-test/v/disk b 254 0
attempt namespace unshare --user true
attempt sysctl sh -c 'echo 1 > /proc/sys/vm/drop_caches'
attempt suid perl -e '$> = 0; exit($> != 0)'
rm -f /tmp/longshore-test /dev/shm/longshore-test
echo owner $(stat -c %g:%a /longshore-test/v)
echo made $(stat -c %g /longshore-test/v/x)
";

fn with_volume(script: &str, of_pod: Value, own: Value) -> Value {
    let mut main = shell(script);
    main["volumeMounts"] = json!([{"name": "v", "mountPath": "/longshore-test/v"}]);
    main["securityContext"] = own;
    json!({"restartPolicy": "Never", "securityContext": of_pod, "containers": [main],
        "volumes": [{"name": "v", "emptyDir": {}}]})
}

const NONE: &str = "0000000000000000";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by security_contexts_are_enforced"]
async fn agent_with_security_contexts() {
    let stage = Stage::new().await;
    if !has_namespaces(&stage).await {
        return;
    }
    let script = format!("{STATUS}{ATTEMPTS}");
    // Everything that the Pod Security Standard `restricted` requires, and more.
    let of_pod = json!({"runAsNonRoot": true, "runAsUser": 1234, "runAsGroup": 4321,
        "fsGroup": 4321, "seccompProfile": {"type": "RuntimeDefault"}});
    let own = json!({"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
        "capabilities": {"drop": ["ALL"]}});
    let spec = with_volume(&script, of_pod, own);
    let restricted = [
        ("NoNewPrivs:", "1"),
        // The filters of the ports and of the profile.
        ("Seccomp_filters:", "2"),
        ("CapBnd:", NONE),
        ("CapEff:", NONE),
        ("user", "1234"),
        ("group", "4321"),
        ("groups", "4321"),
    ];
    let facts_of_it = facts_of(&stage, "restricted", spec.clone()).await;
    check(&facts_of_it, &restricted);
    let attempts = [
        ("etc", "no"),
        ("tmp", "no"),
        ("volume", "yes"),
        ("memory", "yes"),
        ("null", "yes"),
        ("remount", "no"),
        ("bind", "no"),
        ("unmount", "no"),
        ("device", "no"),
        ("namespace", "no"),
        ("sysctl", "no"),
        ("made", "4321"),
    ];
    check(&facts_of_it, &attempts);

    // A session in the container has the same restrictions.
    let mut long = spec;
    long["containers"][0]["command"] = json!(["sleep", "1000"]);
    stage.run("long", long).await;
    let running = |pod: &Value| pod["status"]["phase"] == "Running";
    let pod = stage.until("long", running).await;
    let wanted = StreamsWanted {
        output: true,
        ..Default::default()
    };
    let words = ["sh", "-c", &script].map(str::to_owned).to_vec();
    let sessions = stage.agent.as_ref().unwrap().sessions();
    let session = sessions.exec(main_container(&pod), words, wanted).await;
    let mut session = session.unwrap();
    let (mut output, mut text) = (session.output.take().unwrap(), String::new());
    let reading = tokio::io::AsyncReadExt::read_to_string(&mut output, &mut text);
    let (read, code) = tokio::join!(reading, session.end);
    read.unwrap();
    assert_eq!(code, 0, "{text}");
    check(&split(&text), &restricted);
    check(&split(&text), &attempts);

    if is_root() {
        // Root, without the privileges to escape.
        let own = json!({"readOnlyRootFilesystem": true, "seccompProfile": {"type": "Unconfined"}});
        let of_pod = json!({"fsGroup": 77, "supplementalGroups": [88]});
        let facts_of_it = facts_of(&stage, "root", with_volume(&script, of_pod, own)).await;
        check(
            &facts_of_it,
            &[
                ("NoNewPrivs:", "0"),
                ("Seccomp_filters:", "1"),
                ("user", "0"),
                ("etc", "no"),
                ("tmp", "no"),
                ("volume", "yes"),
                ("remount", "no"),
                ("bind", "no"),
                ("unmount", "no"),
                ("device", "no"),
                ("sysctl", "no"),
                ("owner", "77:2777"),
                ("made", "77"),
            ],
        );
        assert!(facts_of_it["groups"].ends_with("77 88"), "{facts_of_it:#?}");
        let own = json!({"capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}});
        let facts_of_it = facts_of(&stage, "bind", with_volume(STATUS, json!({}), own)).await;
        check(&facts_of_it, &[("CapEff:", "0000000000000400")]);
        let own = json!({"privileged": true});
        let privileged = facts_of(&stage, "privileged", with_volume(STATUS, json!({}), own)).await;
        let status = fs::read_to_string("/proc/self/status").unwrap();
        check(&privileged, &[("CapBnd:", &split(&status)["CapBnd:"])]);
    } else {
        let refused = json!({"privileged": true});
        stage
            .run("refused", with_volume("true", json!({}), refused))
            .await;
        let message = stage.event("refused", "Failed").await;
        assert!(message.contains("securityContext.privileged"), "{message}");
    }
    stage.stop().await;
}

#[test]
fn security_contexts_are_enforced() {
    run_as_both("contexts::agent_with_security_contexts", &[]);
}

#[tokio::test(flavor = "multi_thread")]
async fn contexts_that_cannot_be_enforced_are_rejected_with_an_event() {
    let stage = Stage::new().await;
    let refused = [
        (
            "settings",
            json!({"sysctls": [{"name": "kernel.shm_rmid_forced", "value": "1"}]}),
            "Error: pod securityContext.sysctls: ",
        ),
        (
            "profile",
            json!({"seccompProfile": {"type": "Localhost", "localhostProfile": "p.json"}}),
            "Error: pod securityContext.seccompProfile: ",
        ),
        (
            "armour",
            json!({"appArmorProfile": {"type": "RuntimeDefault"}}),
            "Error: pod securityContext.appArmorProfile: ",
        ),
    ];
    for (name, context, start) in refused {
        let mut spec = run_once("echo it ran");
        spec["securityContext"] = context;
        stage.run(name, spec).await;
        stage.until(name, waits_for_config).await;
        let message = stage.event(name, "Failed").await;
        assert!(message.starts_with(start), "{message}");
    }
    if is_root() {
        // The user of the image applies, which has no home directory on this machine.
        let mut spec = run_once("id -u; id -g; echo $HOME");
        spec["containers"][0]["image"] = json!("hardened:1.0");
        spec["securityContext"] = json!({"runAsNonRoot": true});
        stage.run("hardened", spec).await;
        let pod = stage.ended("hardened").await;
        assert_eq!(stage.log(&pod).await, "1234\n1235\n/\n");

        let mut spec = run_once("echo it ran");
        spec["securityContext"] = json!({"runAsNonRoot": true});
        stage.run("root", spec).await;
        let pod = stage.until("root", waits_for_config).await;
        let uid = pod["metadata"]["uid"].as_str().unwrap();
        assert_eq!(
            stage.event("root", "Failed").await,
            format!(
                "Error: container has runAsNonRoot and image will run as root \
                 (pod: \"root_default({uid})\", container: main); set runAsUser, or the \
                 image's user when the cluster starts: --image-user none=UID"
            )
        );
    }
    stage.stop().await;
}
