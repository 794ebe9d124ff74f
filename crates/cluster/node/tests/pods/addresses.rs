//! Calls of containers about addresses that attack the agent, which has another process answer
//! them.

use std::fs;

use super::{helpers::*, *};

/// Binds a socket to an address in memory whose page faults are never answered.
const BINDS_FROM_MEMORY_THAT_NEVER_ANSWERS: &str = r#"
import ctypes, fcntl, mmap, os, platform, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
faults = libc.syscall(282 if platform.machine() == "aarch64" else 323, os.O_CLOEXEC)
if faults < 0:
    print("no userfaultfd:", os.strerror(ctypes.get_errno()), flush=True)
    sys.exit()
fcntl.ioctl(faults, 0xc018aa3f, bytearray(struct.pack("QQQ", 0xaa, 0, 0)))
memory = mmap.mmap(-1, mmap.PAGESIZE)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
fcntl.ioctl(faults, 0xc020aa00, bytearray(struct.pack("QQQQ", address, mmap.PAGESIZE, 1, 0)))
server = socket.socket()
print("binds", flush=True)
libc.bind(server.fileno(), ctypes.c_void_p(address), 16)
print("bound", flush=True)
"#;

async fn until_logged(stage: &Stage, pod: &Value, container: &str, text: &str) -> String {
    let logged = async {
        loop {
            let log = stage.log_of(pod, container).await;
            if log.contains(text) {
                return log;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let logged = tokio::time::timeout(TIMEOUT, logged).await;
    logged.unwrap_or_else(|_| panic!("{container} did not log {text}"))
}

fn now() -> DeleteOptions {
    DeleteOptions {
        grace_seconds: Some(0),
        ..DeleteOptions::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[allow(clippy::print_stderr, reason = "says why it is skipped")]
async fn memory_that_never_answers_holds_up_its_container_only() {
    let stage = Stage::new().await;
    if !has_namespaces(&stage).await {
        return;
    }
    let command = json!([
        "/usr/bin/python3",
        "-c",
        BINDS_FROM_MEMORY_THAT_NEVER_ANSWERS
    ]);
    let context = json!({"privileged": is_root()});
    // More containers than the runtime has threads, and another one that is not stuck.
    let names = ["a", "b", "c", "d"];
    let mut containers: Vec<Value> = names
        .iter()
        .map(|name| {
            json!({"name": name, "image": "none", "command": command, "securityContext": context})
        })
        .collect();
    let script = "import socket, time; print(socket.create_server(('', 8080)).getsockname()[0], \
                  flush=True); time.sleep(600)";
    let command = json!(["/usr/bin/python3", "-c", script]);
    containers.push(json!({"name": "main", "image": "none", "command": command}));
    let spec = json!({"restartPolicy": "Never", "containers": containers});
    stage.run("stuck", spec).await;
    let running = |pod: &Value| pod["status"]["phase"] == "Running";
    let pod = stage.until("stuck", running).await;
    for name in names {
        let log = until_logged(&stage, &pod, name, "\n").await;
        if log.contains("no userfaultfd") {
            return eprintln!("skipped: {log}");
        }
    }
    let address = pod["status"]["podIP"].as_str().unwrap();
    until_logged(&stage, &pod, "main", address).await;

    stage.run("other", run_once("echo ran")).await;
    let other = stage.ended("other").await;
    assert_eq!(stage.log(&other).await, "ran\n");
    assert_eq!(stage.log_of(&pod, "a").await, "binds\n");
    let pods = stage.cluster.pods().in_namespace("default").unwrap();
    pods.delete("stuck", &now()).await.unwrap();
    stage.until("stuck", Value::is_null).await;
    stage.stop().await;
}

/// Connects many times to a server whose queue is full, and then performs another task.
const CONNECTS_TO_A_FULL_QUEUE: &str = r#"
import socket, sys, threading, time
server = socket.create_server(("", 9000), backlog=0)
def connect():
    while True:
        try: socket.socket().connect(("127.0.0.1", 9000))
        except OSError: pass
for _ in range(40):
    threading.Thread(target=connect, daemon=True).start()
time.sleep(1)
print("other", socket.create_server(("", 9001)).getsockname()[1], flush=True)
time.sleep(600)
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_wait_use_no_threads_of_the_agent() {
    let stage = Stage::new().await;
    if !has_namespaces(&stage).await {
        return;
    }
    let command = json!(["/usr/bin/python3", "-c", CONNECTS_TO_A_FULL_QUEUE]);
    let main = json!({"name": "main", "image": "none", "command": command});
    let pods = ["a", "b", "c"];
    for name in pods {
        let spec = json!({"restartPolicy": "Never", "containers": [main]});
        stage.run(name, spec).await;
    }
    let running = |pod: &Value| pod["status"]["phase"] == "Running";
    for name in pods {
        let pod = stage.until(name, running).await;
        until_logged(&stage, &pod, "main", "other 9001").await;
    }
    // 120 connections wait now. Other tests of this program use threads, too.
    let threads = fs::read_dir("/proc/self/task").unwrap().count();
    assert!(threads < 100, "{threads} threads");
    let view = stage.cluster.pods().in_namespace("default").unwrap();
    for name in pods {
        view.delete(name, &now()).await.unwrap();
        stage.until(name, Value::is_null).await;
    }
    stage.stop().await;
}

/// Tries to bind a low port, also in its own user namespace.
const BINDS_A_LOW_PORT: &str = r#"
import ctypes, errno, os, socket
def bind(address):
    try:
        with socket.socket() as server:
            server.bind((address, 81))
            return server.getsockname()[0]
    except OSError as error:
        return errno.errorcode[error.errno]
print("all", bind(""), flush=True)
print("local", bind("127.0.0.1"), flush=True)
print("own", bind(os.environ["POD_IP"]), flush=True)
if os.fork() == 0:
    entered = ctypes.CDLL(None).unshare(0x10000000) == 0
    print("nested", bind("") if entered else "EACCES", flush=True)
else:
    os.wait()
"#;

#[tokio::test(flavor = "multi_thread")]
#[allow(clippy::print_stderr, reason = "says why it is skipped")]
async fn a_low_port_needs_the_capability_as_in_the_kernel() {
    let start = fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start").unwrap();
    if !is_root() || start.trim().parse::<u16>().unwrap() <= 81 {
        return eprintln!("skipped: every process may use every port, or only root may be others");
    }
    let stage = Stage::new().await;
    if !has_namespaces(&stage).await {
        return;
    }
    let no = json!({"drop": ["ALL"]});
    let one = json!({"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]});
    for (name, context, is_allowed) in [
        ("root", json!({}), true),
        ("root-without", json!({"capabilities": no}), false),
        ("root-with", json!({"capabilities": one}), true),
        ("user", json!({"runAsUser": UNPRIVILEGED}), false),
        (
            "user-without",
            json!({"runAsUser": UNPRIVILEGED, "capabilities": no}),
            false,
        ),
        (
            "confined",
            json!({"runAsUser": UNPRIVILEGED, "capabilities": no,
            "allowPrivilegeEscalation": false, "runAsNonRoot": true,
            "seccompProfile": {"type": "RuntimeDefault"}}),
            false,
        ),
    ] {
        let command = json!(["/usr/bin/python3", "-c", BINDS_A_LOW_PORT]);
        let container = json!({
            "name": "main", "image": "none", "command": command, "securityContext": context,
            "env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        });
        let spec = json!({"restartPolicy": "Never", "containers": [container]});
        let facts = facts_of(&stage, name, spec).await;
        let pod = stage.ended(name).await;
        let address = pod["status"]["podIP"].as_str().unwrap();
        let expected = if is_allowed { address } else { "EACCES" };
        let all = ["all", "local", "own"].map(|fact| (fact, expected));
        check(&facts, &all);
        check(&facts, &[("nested", "EACCES")]);
    }
    stage.stop().await;
}
