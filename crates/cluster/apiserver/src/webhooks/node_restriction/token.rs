//! Tokens of service accounts that a node requests: only for pods that are bound to it, and
//! for audiences that these pods use.

use longshore_builtin::PodReferences;
use longshore_cel::AccessRequest;
use longshore_engine::Error;
use serde::Deserialize as _;
use serde_json::Value;

use super::{Change, text};
use crate::{authorization::claim_of, webhooks::attributes::Operation};

/// The verb that allows a node to request tokens for further audiences.
const VERB: &str = "request-serviceaccounts-token-audience";

/// Volume sources that drivers have replaced, and the drivers.
const DRIVERS: &[(&str, &str)] = &[
    ("awsElasticBlockStore", "ebs.csi.aws.com"),
    ("azureDisk", "disk.csi.azure.com"),
    ("azureFile", "file.csi.azure.com"),
    ("cinder", "cinder.csi.openstack.org"),
    ("gcePersistentDisk", "pd.csi.storage.gke.io"),
    ("portworxVolume", "pxd.portworx.com"),
    ("vsphereVolume", "csi.vsphere.vmware.com"),
];

pub(super) fn check(node: &str, change: &Change<'_>) -> Result<(), Error> {
    if change.operation != Operation::Create || change.attributes.subresource != "token" {
        return Ok(());
    }
    let spec = &change.object["spec"];
    let bound = &spec["boundObjectRef"];
    let name = text(bound, "/name");
    if bound["apiVersion"] != "v1" || bound["kind"] != "Pod" || name.is_empty() {
        return Err(change.forbidden("node requested token not bound to a pod"));
    }
    let uid = text(bound, "/uid");
    if uid.is_empty() {
        return Err(change.forbidden("node requested token with a pod binding without a uid"));
    }
    let pod = change.read("pods", &change.attributes.namespace, name)?;
    if text(&pod, "/metadata/uid") != uid {
        return Err(change.forbidden(format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been deleted and then recreated"
        )));
    }
    if text(&pod, "/spec/nodeName") != node {
        return Err(
            change.forbidden("node requested token bound to a pod scheduled on a different node")
        );
    }
    let audience = match spec["audiences"].as_array().map(Vec::as_slice) {
        None | Some([]) => "",
        Some([audience]) => audience.as_str().unwrap_or_default(),
        Some(_) => return Err(change.forbidden("node may only request 0 or 1 audiences")),
    };
    check_audience(change, &pod, audience)
}

fn check_audience(change: &Change<'_>, pod: &Value, audience: &str) -> Result<(), Error> {
    match uses_audience(change, pod, audience) {
        Ok(true) => return Ok(()),
        Ok(false) => {}
        Err(problem) => {
            return Err(
                change.forbidden(format!("error validating audience {audience:?}: {problem}"))
            );
        }
    }
    let attributes = change.attributes;
    let decision = attributes.authorizer.decide(&AccessRequest {
        verb: VERB.to_owned(),
        group: attributes.resource.group.clone(),
        version: attributes.resource.version.clone(),
        resource: audience.to_owned(),
        namespace: attributes.namespace.clone(),
        name: change.name.to_owned(),
        ..AccessRequest::default()
    });
    match decision.allowed {
        true => Ok(()),
        false => Err(change.forbidden(format!(
            "{} is not authorized to request tokens for audience {audience:?}",
            attributes.user.name
        ))),
    }
}

/// Returns true if a volume of a pod has a token for an audience.
fn uses_audience(change: &Change<'_>, pod: &Value, audience: &str) -> Result<bool, String> {
    let facts = PodReferences::deserialize(pod).map_err(|error| error.to_string())?;
    let is_for = |source: &Value| {
        let token = source
            .get("serviceAccountToken")
            .filter(|token| token.is_object());
        token.is_some_and(|token| text(token, "/audience") == audience)
    };
    let mut problems = Vec::new();
    for volume in facts.volumes() {
        let sources = volume["projected"]["sources"].as_array();
        if sources.is_some_and(|sources| sources.iter().any(is_for)) {
            return Ok(true);
        }
        match driver(change, pod, volume).and_then(|driver| match driver {
            Some(driver) => driver_has_audience(change, &driver, audience),
            None => Ok(false),
        }) {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(problem) => problems.push(problem.to_string()),
        }
    }
    match problems.as_slice() {
        [] => Ok(false),
        [problem] => Err(problem.clone()),
        problems => Err(format!("[{}]", problems.join(", "))),
    }
}

/// The driver of a volume; `None` if it does not have one.
fn driver(change: &Change<'_>, pod: &Value, volume: &Value) -> Result<Option<String>, Error> {
    if let Some(claim) = claim_of(volume, text(pod, "/metadata/name")) {
        let namespace = &change.attributes.namespace;
        let claim = change.read("persistentvolumeclaims", namespace, &claim)?;
        let volume = text(&claim, "/spec/volumeName");
        let volume = change.read("persistentvolumes", "", volume)?;
        return Ok(driver_of(&volume["spec"]));
    }
    Ok(driver_of(volume))
}

/// The driver in a volume source.
fn driver_of(source: &Value) -> Option<String> {
    let own = text(source, "/csi/driver");
    if !own.is_empty() {
        return Some(own.to_owned());
    }
    let has = |name: &str| source.get(name).is_some_and(Value::is_object);
    let replaced = DRIVERS.iter().find(|(name, _)| has(name));
    replaced.map(|(_, driver)| (*driver).to_owned())
}

fn driver_has_audience(change: &Change<'_>, driver: &str, audience: &str) -> Result<bool, Error> {
    let driver = change.read_of_group("storage.k8s.io", "csidrivers", "", driver)?;
    let requests = driver["spec"]["tokenRequests"].as_array();
    let mut requests = requests.into_iter().flatten();
    Ok(requests.any(|request| text(request, "/audience") == audience))
}
