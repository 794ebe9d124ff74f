//! The cluster's DNS server, and the resolvers of pods.

use super::{helpers::has_namespaces, helpers::run_as_both, *};

/// Asks the first name server of `resolv.conf`, over UDP and TCP, and prints the addresses and the
/// codes of the replies. Without arguments, prints the file.
const ASKS: &str = r"
import socket, struct, sys
lines = open('/etc/resolv.conf').read()
server = next(l.split()[1] for l in lines.splitlines() if l.startswith('nameserver'))
def encode(name):
    return b''.join(bytes([len(l)]) + l.encode() for l in name.split('.')) + b'\0'
def skip(reply, at):
    while reply[at]:
        if reply[at] >= 192:
            return at + 2
        at += reply[at] + 1
    return at + 1
def show(reply):
    id, flags, questions, answers, _, _ = struct.unpack('!6H', reply[:12])
    assert id == 7 and flags & 0x8000
    at = skip(reply, 12) + 4
    found = []
    for _ in range(answers):
        at = skip(reply, at)
        kind, _, ttl, size = struct.unpack('!HHIH', reply[at:at + 10])
        at += 10
        if kind == 1:
            found.append(socket.inet_ntoa(reply[at:at + size]))
        if kind == 33:
            found.append('port %d' % struct.unpack('!3H', reply[at:at + 6])[2])
        at += size
    return '%d %s' % (flags & 15, ' '.join(sorted(found)))
def udp(query):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(30)
        s.connect((server, 53))
        s.send(query)
        return s.recv(65535)
def tcp(query):
    with socket.create_connection((server, 53), 30) as s:
        # Two queries of a connection.
        s.sendall((struct.pack('!H', len(query)) + query) * 2)
        for _ in range(2):
            size = struct.unpack('!H', s.recv(2, socket.MSG_WAITALL))[0]
            reply = s.recv(size, socket.MSG_WAITALL)
        return reply
for argument in sys.argv[1:]:
    name, kind = argument.split('/')
    query = struct.pack('!6H', 7, 0x100, 1, 0, 0, 0) + encode(name)
    query += struct.pack('!HH', int(kind), 1)
    replies = {show(ask(query)) for ask in (udp, tcp)}
    print(name, *replies)
";

fn asks(names: &[&str]) -> Value {
    let mut command = vec!["/usr/bin/python3", "-c", ASKS];
    command.extend(names);
    let container = json!({"name": "main", "image": "none", "command": command});
    json!({"restartPolicy": "Never", "containers": [container]})
}

async fn output(stage: &Stage, name: &str, spec: Value) -> String {
    stage.run(name, spec).await;
    let pod = stage.ended(name).await;
    let log = stage.log(&pod).await;
    assert_eq!(pod["status"]["phase"], "Succeeded", "{log} {pod:#}");
    log
}

#[test]
fn pods_ask_the_dns_server_with_and_without_root() {
    run_as_both("dns::pods_ask_the_dns_server", &[]);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by pods_ask_the_dns_server_with_and_without_root"]
async fn pods_ask_the_dns_server() {
    let stage = Stage::new().await;
    if !has_namespaces(&stage).await {
        return;
    }
    let services = stage.cluster.services();
    let own = services.clone().in_namespace("kube-system").unwrap();
    let own = own.fetch("kube-dns").await.unwrap().raw().unwrap();
    let server = own["spec"]["clusterIP"].as_str().unwrap();
    let services = services.in_namespace("default").unwrap();
    let port = json!({"name": "http", "port": 8080});
    let web = json!({"metadata": {"name": "web"}, "spec": {"ports": [port]}});
    let web = services.create(&web).await.unwrap().raw().unwrap();
    let web = web["spec"]["clusterIP"].as_str().unwrap();
    // The programs wait until the node knows the Service.
    let waits = "until getent hosts web.default.svc.cluster.local; do sleep 0.01; done";
    output(&stage, "waits", run_once(waits)).await;
    let names = [
        "web.default.svc.cluster.local/1",
        "web.default.svc.cluster.local/28",
        "_http._tcp.web.default.svc.cluster.local/33",
        "kube-dns.kube-system.svc.cluster.local/1",
        "none.default.svc.cluster.local/1",
    ];
    let expected = format!(
        "web.default.svc.cluster.local 0 {web}\n\
         web.default.svc.cluster.local 0 \n\
         _http._tcp.web.default.svc.cluster.local 0 port 8080\n\
         kube-dns.kube-system.svc.cluster.local 0 {server}\n\
         none.default.svc.cluster.local 3 \n"
    );
    assert_eq!(output(&stage, "asks", asks(&names)).await, expected);
    let mut on_machine = asks(&names);
    on_machine["hostNetwork"] = json!(true);
    on_machine["dnsPolicy"] = json!("ClusterFirstWithHostNet");
    assert_eq!(output(&stage, "on-machine", on_machine).await, expected);
    // The C library's resolver, without the hosts file.
    let finds = |name: &str| {
        let script = format!(
            "echo '127.0.0.1 localhost' > /etc/hosts; getent ahostsv4 {name} | head -1; \
             cat /etc/resolv.conf"
        );
        // Only this pod's file is changed.
        run_once(&script)
    };
    for (pod, name) in [("short", "web"), ("long", "web.default.svc")] {
        let log = output(&stage, pod, finds(name)).await;
        assert!(log.starts_with(web), "{log}");
        let search = "search default.svc.cluster.local svc.cluster.local cluster.local";
        assert!(log.contains(search), "{log}");
        assert!(log.contains(&format!("nameserver {server}\n")), "{log}");
        assert!(log.ends_with("options ndots:5\n"), "{log}");
    }
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_have_the_resolver_settings_of_their_spec() {
    let stage = Stage::new().await;
    if !has_namespaces(&stage).await {
        return;
    }
    let mut spec = run_once("cat /etc/resolv.conf");
    spec["dnsPolicy"] = json!("None");
    spec["dnsConfig"] = json!({
        "nameservers": ["1.1.1.1"],
        "searches": ["a.example"],
        "options": [{"name": "ndots", "value": "2"}, {"name": "edns0"}],
    });
    let own = "search a.example\nnameserver 1.1.1.1\noptions ndots:2 edns0\n";
    assert_eq!(output(&stage, "own", spec.clone()).await, own);
    let searches: Vec<String> = (0..32).map(|number| format!("s{number}")).collect();
    spec["dnsPolicy"] = json!("ClusterFirst");
    spec["dnsConfig"] = json!({"searches": searches});
    stage.run("many", spec).await;
    stage.ended("many").await;
    let message = stage.event("many", "DNSConfigForming").await;
    assert!(
        message
            .starts_with("Search Line limits were exceeded, some search paths have been omitted"),
        "{message}"
    );
    stage.stop().await;
}

/// The settings of the pod's volume take precedence over the node's.
#[tokio::test(flavor = "multi_thread")]
async fn a_volume_may_replace_the_resolver_settings() {
    let stage = Stage::new().await;
    if !has_namespaces(&stage).await {
        return;
    }
    let maps = stage.cluster.configmaps().in_namespace("default").unwrap();
    let map = json!({"metadata": {"name": "m"}, "data": {"resolv.conf": "nameserver 2.2.2.2\n"}});
    maps.create(&map).await.unwrap();
    let mut spec = run_once("cat /etc/resolv.conf");
    spec["volumes"] = json!([{"name": "v", "configMap": {"name": "m"}}]);
    spec["containers"][0]["volumeMounts"] =
        json!([{"name": "v", "mountPath": "/etc/resolv.conf", "subPath": "resolv.conf"}]);
    assert_eq!(output(&stage, "own", spec).await, "nameserver 2.2.2.2\n");
    stage.stop().await;
}
