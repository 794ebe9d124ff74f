//! The cluster's servers: their settings, their order, their end.

use serde_json::json;

use super::{
    Places,
    certificates::{API_SERVICE, NODE_NAME},
    cgroups,
    ctr::ctr,
    make_folder,
    network::{NODE, PODS, enter},
    process, registry, until, write,
};
use crate::{image, run::Outcome};

/// All of them, in the order of their start.
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
const ETCD: &str = "http://127.0.0.1:2379";
const SERVICES: &str = "10.96.0.0/16";
const DNS: &str = "10.96.0.10";

/// Starts all, and waits until the node is ready.
pub(super) fn start(places: &Places) -> Outcome {
    etcd(places)?;
    registry::start(places)?;
    containerd(places)?;
    apiserver(places)?;
    controllers(places)?;
    kubelet(places)?;
    proxy(places)?;
    names(places)?;
    until("the node is ready", || {
        let path = "-o=jsonpath={.items[*].status.conditions[?(@.type=='Ready')].status}";
        places
            .kubectl(&["get", "nodes", path])
            .is_ok_and(|ready| ready == "True")
    })
}

/// Stops all, pods first.
pub(super) fn stop(places: &Places) {
    // It would start them again.
    process::stop(places, "kubelet");
    if let Ok(running) = ctr(places, &["tasks", "list", "--quiet"]) {
        for task in running.split_whitespace() {
            let _ = ctr(places, &["tasks", "delete", "--force", task]);
        }
    }
    for name in NAMES.iter().rev() {
        process::stop(places, name);
    }
}

fn run(places: &Places, name: &str, options: &[(&str, &str)]) -> Outcome {
    let mut command = enter(places.program(name));
    command.args(
        options
            .iter()
            .map(|(name, value)| format!("--{name}={value}")),
    );
    // containerd looks for its shim there.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::split_paths(&path);
    let path = std::env::join_paths(std::iter::once(places.programs.clone()).chain(path));
    command.env("PATH", path.map_err(|error| error.to_string())?);
    process::start(places, name, command)
}

fn etcd(places: &Places) -> Outcome {
    let peers = "http://127.0.0.1:2380";
    let data = places.state("etcd").display().to_string();
    let options = [
        ("data-dir", data.as_str()),
        ("listen-client-urls", ETCD),
        ("advertise-client-urls", ETCD),
        ("listen-peer-urls", peers),
        ("initial-advertise-peer-urls", peers),
        ("initial-cluster", &format!("default={peers}")),
        // Nothing here outlives the cluster.
        ("unsafe-no-fsync", "true"),
    ];
    run(places, "etcd", &options)
}

fn containerd(places: &Places) -> Outcome {
    let state = places.state.display();
    let programs = places.programs.display();
    let runc = "plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc";
    // Without CAP_SYS_RESOURCE, as in some sandboxes, no score can be lowered.
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
    let settings = places.state("containerd.toml");
    write(&settings, &text)?;
    make_folder(&places.state("cni"))?;
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
                "dataDir": places.state("addresses"),
                "ranges": [[{"subnet": PODS}]],
                "routes": [{"dst": "0.0.0.0/0"}],
            },
        }, {
            "type": "portmap",
            "capabilities": {"portMappings": true},
        }],
    });
    write(
        &places.state("cni/10-bridge.conflist"),
        &network.to_string(),
    )?;
    run(
        places,
        "containerd",
        &[("config", &settings.display().to_string())],
    )?;
    until("containerd answers", || ctr(places, &["version"]).is_ok())?;
    let mut archives = vec![image::pause(&places.state)?];
    archives.extend(image::made());
    for archive in &archives {
        let archive = archive.display().to_string();
        ctr(places, &["images", "import", &archive])?;
    }
    registry::fill(places)
}

fn apiserver(places: &Places) -> Outcome {
    let pki = |name: &str| places.state("pki").join(name).display().to_string();
    let options = [
        ("etcd-servers", ETCD),
        ("bind-address", "0.0.0.0"),
        ("advertise-address", NODE),
        ("tls-cert-file", &pki("apiserver.crt")),
        ("tls-private-key-file", &pki("apiserver.key")),
        ("client-ca-file", &pki("ca.crt")),
        ("service-account-key-file", &pki("sa.pub")),
        ("service-account-signing-key-file", &pki("sa.key")),
        ("service-account-issuer", "https://kubernetes.default.svc"),
        ("authorization-mode", "Node,RBAC"),
        ("enable-admission-plugins", "NodeRestriction"),
        ("allow-privileged", "true"),
        ("service-cluster-ip-range", SERVICES),
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
    run(places, "kube-apiserver", &options)?;
    until("kube-apiserver is ready", || {
        places
            .kubectl(&["get", "--raw", "/readyz"])
            .is_ok_and(|answer| answer == "ok")
    })
}

fn controllers(places: &Places) -> Outcome {
    let kubeconfig = |name: &str| {
        places
            .state(&format!("{name}.kubeconfig"))
            .display()
            .to_string()
    };
    let pki = |name: &str| places.state("pki").join(name).display().to_string();
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
    run(places, "kube-controller-manager", &borrowed(&options))?;
    run(
        places,
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

fn kubelet(places: &Places) -> Outcome {
    let pki = |name: &str| places.state("pki").join(name);
    let names = places.state("resolv.conf");
    write(&names, "nameserver 127.0.0.1\n")?;
    cgroups::make()?;
    let settings = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": format!("/{}", cgroups::NAME),
        // Machines with the old control groups serve, too.
        "failCgroupV1": false,
        "failSwapOn": false,
        "enforceNodeAllocatable": [],
        // On a full disk too: what was imported cannot be pulled again.
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
        "clusterDNS": [DNS],
        "clusterDomain": "cluster.local",
        "containerRuntimeEndpoint":
            format!("unix://{}", places.state("containerd.sock").display()),
        "podLogsDir": places.state("pod-logs"),
        "resolvConf": names,
    });
    let file = places.state("kubelet.json");
    write(&file, &settings.to_string())?;
    let shown = |name: &str| places.state(name).display().to_string();
    let options = [
        ("config", shown("kubelet.json")),
        ("kubeconfig", shown(&format!("{NODE_NAME}.kubeconfig"))),
        ("root-dir", shown("kubelet")),
        ("cert-dir", shown("kubelet/pki")),
        ("hostname-override", NODE_NAME.to_owned()),
        ("node-ip", NODE.to_owned()),
    ];
    run(places, "kubelet", &borrowed(&options))
}

fn proxy(places: &Places) -> Outcome {
    let settings = json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": places.state("proxy.kubeconfig")},
        "mode": "nftables",
        "clusterCIDR": PODS,
        "hostnameOverride": NODE_NAME,
    });
    let file = places.state("kube-proxy.json");
    write(&file, &settings.to_string())?;
    run(
        places,
        "kube-proxy",
        &[("config", &file.display().to_string())],
    )?;
    // Its first rule is that of the API server's own Service.
    until("kube-proxy has its rules", || {
        let mut rules = enter("nft");
        rules.args(["list", "table", "ip", "kube-proxy"]);
        crate::run::output(&mut rules).is_ok_and(|rules| rules.contains(API_SERVICE))
    })
}

/// CoreDNS, on the node, with the Service by which pods reach it.
fn names(places: &Places) -> Outcome {
    let kubeconfig = places.state("admin.kubeconfig");
    let zones = format!(
        ".:53 {{\n  bind {NODE}\n  errors\n  kubernetes cluster.local in-addr.arpa {{\n    \
         kubeconfig {}\n    pods insecure\n  }}\n  cache 5\n}}\n",
        kubeconfig.display()
    );
    let file = places.state("Corefile");
    write(&file, &zones)?;
    run(places, "coredns", &[("conf", &file.display().to_string())])?;
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
        "spec": {"clusterIP": DNS, "ports": ports},
    });
    let endpoints = json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": metadata,
        "addressType": "IPv4",
        "ports": ports,
        "endpoints": [{"addresses": [NODE]}],
    });
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [service, endpoints]});
    let file = places.state("kube-dns.json");
    write(&file, &list.to_string())?;
    let file = file.display().to_string();
    places.kubectl(&["apply", "--filename", &file]).map(drop)
}
