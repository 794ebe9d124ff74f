//! Generates `docs/kinds.md` from the tables of kinds and fails if the file is out of
//! date. `LONGSHORE_UPDATE_DOCS=1` updates the file.
#![allow(clippy::unwrap_used)]

use std::{fmt::Write as _, fs, path::PathBuf};

use longshore_builtin::{Behaviour, find};
use longshore_model::{KindInfo, kind::BUILTIN};

fn row(kind: &KindInfo) -> String {
    let does = match find(&kind.gvk.group, &kind.gvk.kind).unwrap().behaviour {
        Behaviour::Acts(does) => does.to_owned(),
        Behaviour::Data => "stored, as in Kubernetes".to_owned(),
        Behaviour::Stored(missing) => format!("stored: {missing}"),
    };
    let scope = if kind.is_namespaced() {
        "namespaced"
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
         This page lists the kinds that the embedded cluster serves. It stores, watches, defaults,\n\
         and validates all of them as Kubernetes 1.37 does, and all objects take part in garbage\n\
         collection. *Stored* means that the embedded cluster does not act on the objects: no\n\
         controller routes the requests of an Ingress, for example.\n\
         If you create or apply such an object, the API server returns a warning, which kubectl and\n\
         `longshore` print:\n\n    \
         Warning: ingresses.networking.k8s.io are stored, but this cluster does not act on them: no requests are routed; see docs/kinds.md\n\n\
         The server does not return this warning for custom kinds, or if it runs without controllers\n\
         (`start_server()`, in Python `pods=False`) for use with external controllers. For the\n\
         effects on kubectl commands, see [clients.md](clients.md#kubectl-limitations).\n\n\
         | API version | kind | resource | short names | scope | behaviour |\n\
         |---|---|---|---|---|---|\n",
    );
    for kind in BUILTIN {
        writeln!(text, "{}", row(kind)).unwrap();
    }
    text.push_str(
        "\nA new cluster contains the namespaces `default`, `kube-system`, `kube-public`, and\n\
         `kube-node-lease`, a service account `default` in each, the Service `kubernetes`, the two\n\
         system PriorityClasses, and the APIServices of the API groups above. Controllers create the\n\
         ServiceCIDR `kubernetes` and an IPAddress for each address of a Service. A cluster that listens\n\
         also contains the Endpoints and the EndpointSlice of that Service, with its own listen\n\
         address, and, in each namespace, the ConfigMap `kube-root-ca.crt` with the CA certificate\n\
         that signed its serving certificate.\n\
         Each served version of a custom group gets an APIService.\n\n\
         There are no default FlowSchemas and PriorityLevelConfigurations, and FlowSchemas do not get the\n\
         condition `Dangling`. Objects named `exempt` or `catch-all` can have any valid spec. No request is\n\
         queued or rejected because of these kinds.\n\n\
         Kubernetes has a controller of StorageVersionMigrations, the embedded cluster does not. To store the\n\
         objects of a custom kind in a new storage version, write them without changes\n\
         (`kubectl get KIND -A -o json | kubectl replace -f -`), then remove the old version from\n\
         `status.storedVersions` of the CustomResourceDefinition (`kubectl patch --subresource=status`).\n\n\
         Objects of aggregated API servers take part in garbage collection if their kind supports `list`,\n\
         `watch` and `delete`, and are deleted with their namespace. While an aggregated API server does not\n\
         respond, its objects and what they own remain, and a namespace in deletion remains with the condition\n\
         `NamespaceDeletionDiscoveryFailure`: delete the APIService if its server is gone. New kinds of a server\n\
         are discovered within 30 seconds.\n\n\
         Admission webhooks are called as in Kubernetes, for all kinds and for the subresources\n\
         `status`, `scale`, `finalize`, `approval`, `binding`, `eviction`, `token`, `exec`, `attach` and\n\
         `portforward`. A webhook behind a Service is called at the ready pods that the Service selects,\n\
         or at the addresses in its EndpointSlices and Endpoints if it has no selector. A webhook\n\
         without `caBundle` must have a certificate that the system trusts. Audit annotations are recorded in the [audit log](audit.md). The server's own\n\
         objects, such as the service account `default` of a new namespace, are not reviewed.\n\n\
         Admission policies apply as in Kubernetes to the same requests, except those for the policies and\n\
         bindings themselves, from the next request on. Parameters are of any served kind. The server checks\n\
         the types of the expressions of a ValidatingAdmissionPolicy when it is written, and sets the\n\
         warnings in its status a moment later. Failed validations with the action `Audit`,\n\
         and audit annotations, are recorded in the audit log.\n\n\
         HorizontalPodAutoscalers are also served in autoscaling/v1; annotations contain the fields\n\
         that this version lacks. CertificateSigningRequests have the subresource `approval`. The\n\
         server does not validate the contents of the PEM blocks of their requests and\n\
         certificates, including their signatures. PodCertificateRequests are validated completely,\n\
         except that signatures with RSA-PSS or SHA-1 are refused.\n\n\
         The embedded cluster does not set the taint `not-ready` on new nodes, which can run pods at\n\
         once. The finalizers that protect volumes and claims in use are set as in Kubernetes:\n\
         without controllers (`start_server()`), your own controllers or you remove them. It does not\n\
         serve `componentstatuses`, which is deprecated since 1.19 and would report the status of\n\
         etcd and of processes that the embedded cluster does not have.\n\n\
         Pods have the subresources `log`, `exec`, `attach`, `portforward`, `binding`, `eviction`,\n\
         `ephemeralcontainers`, and `resize`. Pods and Services have `proxy`, which forwards requests to a port of a\n\
         pod; links in its HTML pages lead through the proxy. Exec and attach support WebSocket (`v5.channel.k8s.io`, `v4.`, and older\n\
         protocols, also in base64) and SPDY/3.1. Port-forward supports SPDY/3.1, SPDY over\n\
         WebSocket, and `v4.channel.k8s.io`.\n\n\
         As in Kubernetes, an exec command continues after its client disconnects, until the command\n\
         or its container ends. Data that the client has already sent is delivered, then standard\n\
         input is closed; output is discarded. A node runs up to 2000 such commands at a time. A\n\
         command that is not found exits with code 127, a command that cannot be executed with code\n\
         126.\n\n\
         An attached client that does not read its output blocks the container for at most ten\n\
         seconds. After that, the session ends with an error and the container continues.\n\
         Port-forward connects to the pod's own address (`POD_IP`), not to the machine's `localhost`.\n\
         While one stream of a SPDY connection waits for its reader, the other streams of the\n\
         connection wait, too. A WebSocket message can have up to 32 MiB, as in Kubernetes. Large\n\
         messages share a buffer limit of 256 MiB while they are received; if a message exceeds it,\n\
         its session is closed with code 1013. Messages of up to 64 KiB are always accepted.\n\n\
         For the effect of each `securityContext` field, the isolation of pods from the machine, and\n\
         the tokens of pods, see [security-context.md](security-context.md). If the node cannot\n\
         enforce a field, it rejects the container with an event that names the field.\n\n\
         Objects can be nested up to 120 levels deep. Kubernetes allows 10,000, but some client\n\
         parsers are limited to 128. A server-side apply request with an object that does not match\n\
         the structure of its type gets code 500 without a reason, as in all Kubernetes versions so\n\
         far.\n",
    );
    text
}

#[test]
fn the_document_is_up_to_date() {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../../../docs/kinds.md"]
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
