//! Certificates that a node requests: for itself, or for pods that are bound to it.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use longshore_builtin::PodReferences;
use longshore_cel::AccessRequest;
use longshore_engine::Error;
use serde::Deserialize as _;
use serde_json::Value;

use super::{Change, text};
use crate::{certificate_request::CertificateRequest, webhooks::attributes::Operation};

/// The signers of certificates of nodes.
const SIGNERS: [&str; 2] = [
    "kubernetes.io/kubelet-serving",
    "kubernetes.io/kube-apiserver-client-kubelet",
];
/// The verb that allows a node to request certificates from further signers for a pod.
const VERB: &str = "request-serviceaccounts-podcertificate-signer";

pub(super) fn check(node: &str, change: &Change<'_>) -> Result<(), Error> {
    let signer = text(change.object, "/spec/signerName");
    if change.operation != Operation::Create || !SIGNERS.contains(&signer) {
        return Ok(());
    }
    let pem = STANDARD.decode(text(change.object, "/spec/request"));
    let request = CertificateRequest::read(&pem.unwrap_or_default());
    let request =
        request.map_err(|error| change.forbidden(format!("unable to parse csr: {error}")))?;
    match request.common_name.strip_prefix("system:node:") == Some(node) {
        true => Ok(()),
        false => Err(change.forbidden(format!(
            "can only create a node CSR with CN=system:node:{node}"
        ))),
    }
}

/// The objects that the request of a pod's certificate names.
struct Named<'a> {
    spec: &'a Value,
    namespace: &'a str,
    /// The pod with its namespace.
    pod: String,
}

impl<'a> Named<'a> {
    fn of(change: &Change<'a>) -> Self {
        let spec = &change.object["spec"];
        let namespace = change.attributes.namespace.as_str();
        Self {
            pod: format!("{namespace}/{}", text(spec, "/podName")),
            spec,
            namespace,
        }
    }
}

/// Checks that a request for a pod's certificate names this node, a pod of the node, and the
/// service account of the pod. Temporary errors are not answered with 403.
pub(super) fn check_of_pod(node: &str, change: &Change<'_>) -> Result<(), Error> {
    if change.operation != Operation::Create {
        let operation = change.operation.as_str();
        return Err(change.forbidden(format!("unexpected operation {operation}")));
    }
    let subresource = &change.attributes.subresource;
    if !subresource.is_empty() {
        return Err(change.forbidden(format!("unexpected subresource {subresource}")));
    }
    let named = Named::of(change);
    let Named { spec, pod, .. } = &named;
    let named_node = text(spec, "/nodeName");
    if named_node != node {
        return Err(change.forbidden(format!(
            "PodCertificateRequest.Spec.NodeName={named_node:?}, which is not the requesting node {node:?}"
        )));
    }
    let what = format!("node {node:?}");
    let stored = read(change, &what, ("nodes", "", node))?;
    let (given, uid) = (text(spec, "/nodeUID"), text(&stored, "/metadata/uid"));
    if given != uid {
        return Err(retried(format!(
            "PodCertificateRequest for pod {pod:?} names node UID {given:?}, inconsistent with the running node ({uid:?})"
        )));
    }
    let running = check_pod(node, change, &named)?;
    check_account(change, &named, &running)?;
    check_signer(change, &named, &running)
}

/// Reads an object that a request names.
fn read(
    change: &Change<'_>,
    what: &str,
    (plural, namespace, name): (&str, &str, &str),
) -> Result<Value, Error> {
    let found = change.read(plural, namespace, name);
    found.map_err(|error| {
        retried(format!(
            "while retrieving {what} named in the PodCertificateRequest: {error}"
        ))
    })
}

/// An error after which clients repeat the request.
fn retried(problem: String) -> Error {
    Error::Untyped(problem)
}

fn check_pod(node: &str, change: &Change<'_>, named: &Named<'_>) -> Result<PodReferences, Error> {
    let Named {
        spec,
        namespace,
        pod,
    } = named;
    let what = format!("pod {pod:?}");
    let running = read(change, &what, ("pods", namespace, text(spec, "/podName")))?;
    let (given, uid) = (text(spec, "/podUID"), text(&running, "/metadata/uid"));
    if given != uid {
        return Err(retried(format!(
            "PodCertificateRequest for pod {pod:?} contains pod UID ({given:?}) which differs from running pod {uid:?}"
        )));
    }
    let running = PodReferences::deserialize(&running)
        .map_err(|error| change.forbidden(error.to_string()))?;
    if running.node() != node {
        return Err(change.forbidden(format!(
            "pod {pod:?} is not running on node {node:?} named in the PodCertificateRequest"
        )));
    }
    match running.is_mirror() {
        true => Err(change.forbidden(format!("pod {pod:?} is a mirror pod"))),
        false => Ok(running),
    }
}

fn check_account(
    change: &Change<'_>,
    named: &Named<'_>,
    running: &PodReferences,
) -> Result<(), Error> {
    let Named {
        spec,
        namespace,
        pod,
    } = named;
    let name = text(spec, "/serviceAccountName");
    let own = running.service_account();
    if name != own {
        return Err(change.forbidden(format!(
            "PodCertificateRequest for pod {pod:?} contains serviceAccountName ({name:?}) that differs from running pod ({own:?})"
        )));
    }
    let what = format!("service account {:?}", format!("{namespace}/{name}"));
    let account = read(change, &what, ("serviceaccounts", namespace, name))?;
    let (given, uid) = (
        text(spec, "/serviceAccountUID"),
        text(&account, "/metadata/uid"),
    );
    if given != uid {
        return Err(retried(format!(
            "PodCertificateRequest for pod {pod:?} names service account UID {given:?}, which differs from the running service account ({uid:?})"
        )));
    }
    Ok(())
}

/// Checks that the pod has a volume with a certificate of the signer.
fn check_signer(
    change: &Change<'_>,
    named: &Named<'_>,
    running: &PodReferences,
) -> Result<(), Error> {
    let signer = text(named.spec, "/signerName");
    let mut sources = running.projected_sources();
    if sources.any(|source| source["podCertificate"]["signerName"] == signer) {
        return Ok(());
    }
    let attributes = change.attributes;
    let decision = attributes.authorizer.decide(&AccessRequest {
        verb: VERB.to_owned(),
        group: attributes.resource.group.clone(),
        version: attributes.resource.version.clone(),
        resource: signer.replace('/', ":"),
        namespace: attributes.namespace.clone(),
        name: text(named.spec, "/serviceAccountName").to_owned(),
        ..AccessRequest::default()
    });
    match decision.allowed {
        true => Ok(()),
        false => Err(change.forbidden(format!(
            "pod {:?} does not mount a podCertificate projected volume for signer {signer:?}",
            named.pod
        ))),
    }
}
