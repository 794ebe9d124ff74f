//! `docs/kinds.md` is written from the table of kinds: this fails when it is
//! out of date. `LONGSHORE_UPDATE_DOCS=1` writes it anew.
#![allow(clippy::unwrap_used)]

use std::{fmt::Write as _, fs, path::PathBuf};

use longshore_model::{
    KindInfo,
    kind::{BUILTIN, Deed, deed},
};

fn row(kind: &KindInfo) -> String {
    let does = match deed(kind).unwrap() {
        Deed::Acts(does) => does.to_owned(),
        Deed::Data => "stored, as in every Kubernetes".to_owned(),
        Deed::Stored(missing) => format!("stored: {missing}"),
    };
    let scope = if kind.is_namespaced() {
        "namespace"
    } else {
        "cluster"
    };
    format!(
        "| {} | {} | {} | {} | {scope} | {does} |",
        kind.api_version(),
        kind.gvk.kind,
        kind.plural,
        kind.short_names.iter().collect::<Vec<_>>().join(", "),
    )
}

fn document() -> String {
    let mut text = String::from(
        "# Kinds\n\n\
         What the embedded cluster serves. All of it is stored, watched, defaulted and\n\
         validated as by Kubernetes 1.37; every object takes part in garbage collection.\n\
         *Stored* means that nothing acts on it: no controller here makes a StatefulSet's\n\
         pods, binds a claim, or asks a Role. Who creates such an object, also by\n\
         apply, gets a warning that says so, which kubectl and `longshore` print:\n\n    \
         Warning: statefulsets.apps are stored, but this cluster does not act on them: no pods are made; see docs/kinds.md\n\n\
         There are no such warnings for custom kinds, and none from a server without\n\
         controllers (`start_server()`, in Python `pods=False`), which waits for those of\n\
         others. What this means for kubectl's commands: [clients.md](clients.md).\n\n\
         | version | kind | resource | short | in | what is done with it |\n\
         |---|---|---|---|---|---|\n",
    );
    for kind in BUILTIN {
        writeln!(text, "{}", row(kind)).unwrap();
    }
    text.push_str(
        "\nA fresh cluster has the namespaces `default`, `kube-system`, `kube-public` and\n\
         `kube-node-lease`, a service account `default` in each, the Service `kubernetes`,\n\
         the system's two PriorityClasses, and the APIServices of the groups above. One that\n\
         listens also has the Endpoints and the EndpointSlice of that Service, with the\n\
         address it listens at, and in each namespace the ConfigMap `kube-root-ca.crt` with\n\
         the certificate that its own is signed with. CustomResourceDefinitions get no\n\
         APIServices.\n\n\
         HorizontalPodAutoscalers are served in autoscaling/v1, too; what that version does\n\
         not have is in annotations there. CertificateSigningRequests have `approval`.\n\
         Two things are stored unchecked: the CEL expressions in the match conditions of\n\
         webhooks (empty ones are refused), and what the PEM blocks of certificate requests\n\
         and certificates hold, their signatures among it.\n\n\
         Left out, since nothing here would take them off again: the taint `not-ready` of\n\
         a new node, and the finalizers that protect volumes and claims in use. Left out\n\
         as well: `componentstatuses`, deprecated since 1.19, which would tell of an etcd\n\
         and of processes that are not here.\n\n\
         Pods have `log`, `exec`, `attach`, `portforward`, `binding` and `eviction`. Exec and\n\
         attach speak websockets (`v5.channel.k8s.io`, `v4.`, and older ones, also in base64)\n\
         and SPDY/3.1; port-forward SPDY/3.1, SPDY inside a websocket, and `v4.channel.k8s.io`.\n\
         As in Kubernetes, a command that exec starts goes on when its client leaves, until it\n\
         or its container ends; what the client has sent is delivered, then its input ends, and\n\
         its output is dropped. Up to 2000 such commands run at a time on the node. One that\n\
         cannot be found ends with 127, one that cannot be run with 126.
A client that attaches and does not read holds the container up for ten seconds at most;
then it is let go of, its session ends with an error, and the container goes on.
Port-forward reaches a pod at its own address (`POD_IP`), not at the machine's
`localhost`. While one stream of a SPDY connection waits for who reads it, the others
of that connection wait, too. A websocket message has at most 32 MiB, as in Kubernetes;
while they arrive, large messages have 256 MiB together, and one for which there is no
room closes its session with code 1013. Smaller messages (64 KiB) always have room.

What a pod's `securityContext` changes, field by field, what separates pods from the
machine, and which tokens they get: [security-context.md](security-context.md). A field
that cannot be enforced refuses the container, with an event that names it.

Objects may be nested 120 levels deep, where Kubernetes takes 10,000: clients'\n\
         parsers are known to stop at 128. A server-side apply that does not have the\n\
         form of its type is answered with code 500 and no reason, as by every Kubernetes\n\
         so far.\n",
    );
    text
}

#[test]
fn the_document_is_up_to_date() {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../../docs/kinds.md"]
        .iter()
        .collect();
    if std::env::var_os("LONGSHORE_UPDATE_DOCS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, document()).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        found,
        document(),
        "run this test with LONGSHORE_UPDATE_DOCS=1"
    );
}
