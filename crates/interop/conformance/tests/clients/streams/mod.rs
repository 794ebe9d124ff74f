//! kubectl commands that use running pods: logs, exec, attach, cp, port-forward, drain.
//! They run with all pinned versions. Version 1.20 uses SPDY, later ones use websockets.

mod attach;
mod drain;
mod exec;
mod files;
mod logs;
mod ports;

use longshore_conformance::{Kubectl, Server};

/// A pod with a container that prints four lines, and a second container `quiet`.
const POD: &str = r#"
apiVersion: v1
kind: Pod
metadata:
  name: box
  labels: {app: box}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: any
    workingDir: /tmp
    env: [{name: COLOUR, value: blue}]
    command: [sh, -c, "for i in 1 2 3; do echo line $i; done; echo bad >&2; sleep 1000"]
  - name: quiet
    image: pause
"#;

/// A script that runs a command in a terminal of 100 columns and 30 rows and prints the
/// output. It types `typed` after the first line of output.
const UNDER_A_TERMINAL: &str = r#"
import fcntl, os, pty, struct, sys, termios
pid, fd = pty.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
typed = sys.argv[1].encode().decode("unicode_escape").encode()
text = b""
while True:
    try:
        some = os.read(fd, 4096)
    except OSError:
        break
    if not some:
        break
    text += some
    if typed and b"\n" in text:
        os.write(fd, typed)
        typed = b""
sys.stdout.write(text.decode().replace("\r\n", "\n"))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"#;

/// Runs a test with each kubectl, each in its own namespace.
async fn with_each_kubectl(manifest: &str, test: impl AsyncFn(&Session<'_>)) {
    let server = Server::start().await;
    for kubectl in Kubectl::all(&server.kubeconfig()) {
        let namespace = kubectl.name();
        kubectl.ok(&["create", "namespace", &namespace]).await;
        let set = ["config", "set-context", "--current", "--namespace"];
        kubectl.ok(&[&set[..], &[&namespace]].concat()).await;
        kubectl.ok_with(&["apply", "-f", "-"], manifest).await;
        let session = Session { kubectl: &kubectl };
        test(&session).await;
        kubectl.ok(&["delete", "namespace", &namespace]).await;
    }
    server.stop().await;
}

/// Returns true for an error of kubectl before 1.34: it received the empty message that opens a
/// stream before it knew the stream (kubernetes/kubernetes#131203).
fn is_early_message(line: &str) -> bool {
    line.starts_with('E') && line.contains("] Unknown stream id ")
}

struct Session<'a> {
    kubectl: &'a Kubectl,
}

impl Session<'_> {
    async fn ready(&self, pod: &str) {
        let wait = ["wait", "--for=condition=Ready", "--timeout=30s", pod];
        self.kubectl.ok(&wait).await;
    }

    /// Runs a line of `sh`, asserts success, and returns the output.
    async fn sh(&self, line: &str) -> String {
        let ran = self.kubectl.shell(line).await;
        let shown = format!("{} {line}: {ran:?}", self.kubectl.name());
        assert_eq!(ran.code, Some(0), "{shown}");
        let lines = ran.stdout.split_inclusive('\n');
        lines.filter(|line| !is_early_message(line)).collect()
    }

    #[track_caller]
    fn same(&self, given: &str, wanted: &str) {
        assert_eq!(given, wanted, "{}", self.kubectl.name());
    }
}
