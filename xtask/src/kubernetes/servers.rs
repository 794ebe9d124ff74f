//! Starts and stops the servers of the cluster.

use std::path::Path;

use serde_json::json;

use super::{
    Paths,
    certificates::{API_SERVICE_ADDRESS, NODE_NAME},
    cgroups, create_folder,
    ctr::ctr,
    network::{NODE_ADDRESS, POD_CIDR, enter},
    process, registry, wait_until, write,
};
use crate::{image, run::Outcome};

/// The names of all servers, in start order.
pub(super) const NAMES: [&str; 10] = [
    "etcd",
    "registry",
    "private-registry",
    "containerd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "kube-proxy",
    "coredns",
];
const ETCD_URL: &str = "http://127.0.0.1:2379";
const SERVICE_CIDR: &str = "10.96.0.0/16";
const DNS_ADDRESS: &str = "10.96.0.10";

/// Starts all servers and waits until the node is ready.
pub(super) fn start(paths: &Paths) -> Outcome {
    etcd(paths)?;
    registry::start(paths)?;
    containerd(paths)?;
    apiserver(paths)?;
    controllers(paths)?;
    kubelet(paths)?;
    proxy(paths)?;
    coredns(paths)?;
    wait_until("the node is ready", || {
        let path = "-o=jsonpath={.items[*].status.conditions[?(@.type=='Ready')].status}";
        paths
            .kubectl(&["get", "nodes", path])
            .is_ok_and(|ready| ready == "True")
    })
}

/// Stops the containers, then all servers.
pub(super) fn stop(paths: &Paths) {
    // The kubelet is stopped first, because it would restart the containers.
    process::stop(paths, "kubelet");
    if let Ok(running) = ctr(paths, &["tasks", "list", "--quiet"]) {
        for task in running.split_whitespace() {
            let _ = ctr(paths, &["tasks", "delete", "--force", task]);
        }
    }
    for name in NAMES.iter().rev() {
        process::stop(paths, name);
    }
}

fn run(paths: &Paths, name: &str, options: &[(&str, &str)]) -> Outcome {
    let mut command = enter(paths.program(name));
    command.args(
        options
            .iter()
            .map(|(name, value)| format!("--{name}={value}")),
    );
    // containerd searches the PATH for its shim.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::split_paths(&path);
    let path = std::env::join_paths(std::iter::once(paths.programs.clone()).chain(path));
    command.env("PATH", path.map_err(|error| error.to_string())?);
    process::start(paths, name, command)
}

fn etcd(paths: &Paths) -> Outcome {
    let peers = "http://127.0.0.1:2380";
    let data = paths.state("etcd").display().to_string();
    let options = [
        ("data-dir", data.as_str()),
        ("listen-client-urls", ETCD_URL),
        ("advertise-client-urls", ETCD_URL),
        ("listen-peer-urls", peers),
        ("initial-advertise-peer-urls", peers),
        ("initial-cluster", &format!("default={peers}")),
        // The data is deleted with the cluster.
        ("unsafe-no-fsync", "true"),
    ];
    run(paths, "etcd", &options)
}

fn containerd(paths: &Paths) -> Outcome {
    let state = paths.state.display();
    let programs = paths.programs.display();
    let runc = "plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc";
    // `restrict_oom_score_adj`: lowering the score requires CAP_SYS_RESOURCE, which some
    // sandboxes do not grant.
    let text = format!(
        r#"version = 3
root = "{state}/containerd/root"
state = "{state}/containerd/state"
[grpc]
address = "{state}/containerd.sock"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = "{pause}"
[plugins.'io.containerd.cri.v1.images'.registry]
config_path = "{state}/registries"
[plugins.'io.containerd.cri.v1.runtime']
restrict_oom_score_adj = true
netns_mounts_under_state_dir = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = ["{programs}"]
conf_dir = "{state}/cni"
[{runc}]
runtime_type = "io.containerd.runc.v2"
[{runc}.options]
BinaryName = "{programs}/runc"
SystemdCgroup = false
"#,
        pause = image::PAUSE,
    );
    let settings = paths.state("containerd.toml");
    write(&settings, &text)?;
    create_folder(&paths.state("cni"))?;
    let network = json!({
        "cniVersion": "1.0.0",
        "name": "bridge",
        "plugins": [{
            "type": "bridge",
            "bridge": "cni0",
            "isGateway": true,
            "hairpinMode": true,
            "ipam": {
                "type": "host-local",
                "dataDir": paths.state("addresses"),
                "ranges": [[{"subnet": POD_CIDR}]],
                "routes": [{"dst": "0.0.0.0/0"}],
            },
        }, {
            "type": "portmap",
            "capabilities": {"portMappings": true},
        }],
    });
    write(&paths.state("cni/10-bridge.conflist"), &network.to_string())?;
    run(
        paths,
        "containerd",
        &[("config", &settings.display().to_string())],
    )?;
    wait_until("containerd responds", || ctr(paths, &["version"]).is_ok())?;
    import(paths, &image::build_pause(&paths.state)?)?;
    import_built(paths)
}

/// Imports the images that `cargo xtask image` has built, and pushes them to the registries.
pub(super) fn import_built(paths: &Paths) -> Outcome {
    for archive in image::built_archives() {
        import(paths, &archive)?;
    }
    registry::push_images(paths)
}

fn import(paths: &Paths, archive: &Path) -> Outcome {
    ctr(paths, &["images", "import", &archive.display().to_string()])?;
    Ok(())
}

fn apiserver(paths: &Paths) -> Outcome {
    let pki = |name: &str| paths.state("pki").join(name).display().to_string();
    let options = [
        ("etcd-servers", ETCD_URL),
        ("bind-address", "0.0.0.0"),
        ("advertise-address", NODE_ADDRESS),
        ("tls-cert-file", &pki("apiserver.crt")),
        ("tls-private-key-file", &pki("apiserver.key")),
        ("client-ca-file", &pki("ca.crt")),
        ("service-account-key-file", &pki("sa.pub")),
        ("service-account-signing-key-file", &pki("sa.key")),
        ("service-account-issuer", "https://kubernetes.default.svc"),
        ("authorization-mode", "Node,RBAC"),
        ("enable-admission-plugins", "NodeRestriction"),
        ("allow-privileged", "true"),
        ("service-cluster-ip-range", SERVICE_CIDR),
        ("kubelet-client-certificate", &pki("to-kubelet.crt")),
        ("kubelet-client-key", &pki("to-kubelet.key")),
        ("kubelet-certificate-authority", &pki("ca.crt")),
        ("kubelet-preferred-address-types", "InternalIP"),
        ("requestheader-client-ca-file", &pki("ca.crt")),
        ("requestheader-allowed-names", "front-proxy-client"),
        ("requestheader-username-headers", "X-Remote-User"),
        ("requestheader-group-headers", "X-Remote-Group"),
        ("requestheader-extra-headers-prefix", "X-Remote-Extra-"),
        ("proxy-client-cert-file", &pki("front-proxy.crt")),
        ("proxy-client-key-file", &pki("front-proxy.key")),
    ];
    run(paths, "kube-apiserver", &options)?;
    wait_until("kube-apiserver is ready", || {
        paths
            .kubectl(&["get", "--raw", "/readyz"])
            .is_ok_and(|response| response == "ok")
    })
}

fn controllers(paths: &Paths) -> Outcome {
    let kubeconfig = |name: &str| {
        paths
            .state(&format!("{name}.kubeconfig"))
            .display()
            .to_string()
    };
    let pki = |name: &str| paths.state("pki").join(name).display().to_string();
    let common = |kubeconfig: &str| {
        let names = [
            "kubeconfig",
            "authentication-kubeconfig",
            "authorization-kubeconfig",
        ];
        let given = names.map(|name| (name, kubeconfig.to_owned()));
        let local = [("leader-elect", "false"), ("bind-address", "127.0.0.1")];
        let local = local.map(|(name, value)| (name, value.to_owned()));
        [&given[..], &local].concat()
    };
    let mut options = common(&kubeconfig("controller-manager"));
    options.extend([
        ("service-account-private-key-file", pki("sa.key")),
        ("root-ca-file", pki("ca.crt")),
        ("cluster-signing-cert-file", pki("ca.crt")),
        ("cluster-signing-key-file", pki("ca.key")),
        ("use-service-account-credentials", "true".to_owned()),
    ]);
    run(paths, "kube-controller-manager", &borrowed(&options))?;
    run(
        paths,
        "kube-scheduler",
        &borrowed(&common(&kubeconfig("scheduler"))),
    )
}

fn borrowed<'a>(options: &'a [(&'a str, String)]) -> Vec<(&'a str, &'a str)> {
    options
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect()
}

fn kubelet(paths: &Paths) -> Outcome {
    let pki = |name: &str| paths.state("pki").join(name);
    let resolv_conf = paths.state("resolv.conf");
    write(&resolv_conf, "nameserver 127.0.0.1\n")?;
    cgroups::create()?;
    let settings = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": format!("/{}", cgroups::NAME),
        // Permits hosts with cgroup v1.
        "failCgroupV1": false,
        "failSwapOn": false,
        "enforceNodeAllocatable": [],
        // No image garbage collection: imported images cannot be pulled again.
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {
            "memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%",
        },
        "authentication": {
            "x509": {"clientCAFile": pki("ca.crt")},
            "webhook": {"enabled": true},
            "anonymous": {"enabled": false},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": pki(&format!("{NODE_NAME}.crt")),
        "tlsPrivateKeyFile": pki(&format!("{NODE_NAME}.key")),
        "clusterDNS": [DNS_ADDRESS],
        "clusterDomain": "cluster.local",
        "containerRuntimeEndpoint":
            format!("unix://{}", paths.state("containerd.sock").display()),
        "podLogsDir": paths.state("pod-logs"),
        "resolvConf": resolv_conf,
    });
    let file = paths.state("kubelet.json");
    write(&file, &settings.to_string())?;
    let shown = |name: &str| paths.state(name).display().to_string();
    let options = [
        ("config", shown("kubelet.json")),
        ("kubeconfig", shown(&format!("{NODE_NAME}.kubeconfig"))),
        ("root-dir", shown("kubelet")),
        ("cert-dir", shown("kubelet/pki")),
        ("hostname-override", NODE_NAME.to_owned()),
        ("node-ip", NODE_ADDRESS.to_owned()),
    ];
    run(paths, "kubelet", &borrowed(&options))
}

fn proxy(paths: &Paths) -> Outcome {
    let settings = json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": paths.state("proxy.kubeconfig")},
        "mode": "nftables",
        "clusterCIDR": POD_CIDR,
        "hostnameOverride": NODE_NAME,
    });
    let file = paths.state("kube-proxy.json");
    write(&file, &settings.to_string())?;
    run(
        paths,
        "kube-proxy",
        &[("config", &file.display().to_string())],
    )?;
    // The Service `kubernetes` exists from the start.
    wait_until("kube-proxy has written its rules", || {
        let mut rules = enter("nft");
        rules.args(["list", "table", "ip", "kube-proxy"]);
        crate::run::output(&mut rules).is_ok_and(|rules| rules.contains(API_SERVICE_ADDRESS))
    })
}

/// Starts CoreDNS on the node, and creates the Service through which pods reach it.
fn coredns(paths: &Paths) -> Outcome {
    let kubeconfig = paths.state("admin.kubeconfig");
    let corefile = format!(
        ".:53 {{\n  bind {NODE_ADDRESS}\n  errors\n  kubernetes cluster.local in-addr.arpa {{\n    \
         kubeconfig {}\n    pods insecure\n  }}\n  cache 5\n}}\n",
        kubeconfig.display()
    );
    let file = paths.state("Corefile");
    write(&file, &corefile)?;
    run(paths, "coredns", &[("conf", &file.display().to_string())])?;
    let metadata = json!({
        "name": "kube-dns",
        "namespace": "kube-system",
        "labels": {"kubernetes.io/service-name": "kube-dns"},
    });
    let ports = ["UDP", "TCP"].map(|protocol| {
        let name = format!("dns-{}", protocol.to_lowercase());
        json!({"name": name, "port": 53, "protocol": protocol})
    });
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {"clusterIP": DNS_ADDRESS, "ports": ports},
    });
    let endpoints = json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": metadata,
        "addressType": "IPv4",
        "ports": ports,
        "endpoints": [{"addresses": [NODE_ADDRESS]}],
    });
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [service, endpoints]});
    let file = paths.state("kube-dns.json");
    write(&file, &list.to_string())?;
    let file = file.display().to_string();
    paths.kubectl(&["apply", "--filename", &file]).map(drop)
}
