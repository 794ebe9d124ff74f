//! kubectl port-forward.

use super::with_each_kubectl;

/// A pod that serves two files by HTTP.
const SERVER: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: box}
spec:
  terminationGracePeriodSeconds: 1
  volumes: [{name: data, emptyDir: {}}]
  containers:
  - name: main
    image: any
    workingDir: /data
    volumeMounts: [{name: data, mountPath: /data}]
    command:
    - sh
    - -c
    - head -c 2000000 /dev/urandom > big; echo hello > index.html; exec python3 -m http.server --bind $POD_IP 8000
"#;

/// Forwards a port with a server and one without. Requests a small file, then a large one
/// four times concurrently, then the port without a server.
///
/// The server must listen before: kubectl ends if it forwards a connection to a port without a
/// server.
const REQUESTS: &str = r#"
listens='import os, socket; socket.create_connection((os.environ["POD_IP"], 8000))'
for i in $(seq 100); do kubectl exec box -- python3 -c "$listens" < /dev/null 2> /dev/null && break; sleep 0.1; done
ask='import sys, urllib.request; sys.stdout.buffer.write(urllib.request.urlopen(sys.argv[1]).read())'
rm -f ports errors
kubectl port-forward box :8000 :8001 > ports 2> errors & forward=$!
trap "kill $forward" EXIT
for i in $(seq 600); do [ "$(grep -c 127.0.0.1 ports 2>/dev/null)" = 2 ] && break; sleep 0.1; done
port=$(sed -n 's/.*127.0.0.1:\([0-9]*\) -> 8000/\1/p' ports)
none=$(sed -n 's/.*127.0.0.1:\([0-9]*\) -> 8001/\1/p' ports)
python3 -c "$ask" http://127.0.0.1:$port/
kubectl exec box -- sha256sum < /dev/null big
for i in 1 2 3 4; do python3 -c "$ask" http://127.0.0.1:$port/big | sha256sum & pids="$pids $!"; done
wait $pids
python3 -c "$ask" http://127.0.0.1:$none/ 2>/dev/null && echo answered
for i in $(seq 50); do grep -q refused errors && break; sleep 0.1; done
cat errors
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_port_is_forwarded() {
    with_each_kubectl(SERVER, async |session| {
        session.ready("pod/box").await;
        // Newer versions use SPDY if websockets are disabled.
        for websockets in ["true", "false"] {
            let say = format!("export KUBECTL_PORT_FORWARD_WEBSOCKETS={websockets}");
            let shown = session.sh(&format!("{say}{REQUESTS}")).await;
            let lines: Vec<&str> = shown.lines().collect();
            assert_eq!(lines[0], "hello", "{shown}");
            let sum = |line: &str| line.split(' ').next().unwrap().to_owned();
            let sums: Vec<_> = lines[1..6].iter().map(|line| sum(line)).collect();
            assert!(sums.iter().all(|other| *other == sums[0]), "{shown}");
            let refused = lines[6..]
                .iter()
                .any(|line| line.contains("connection refused"));
            assert!(refused, "{shown}");
        }
    })
    .await;
}
