//! The volumes of the claims that a pod mounts, read from the API like in the kubelet.

use std::{collections::BTreeMap, fmt};

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod, Volume};
use longshore_client::{Cluster, Error};

/// The volumes of claims, by the volume's name in the pod.
pub(crate) type ClaimVolumes = BTreeMap<String, ClaimVolume>;

/// A volume that a claim is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClaimVolume {
    /// The name of the PersistentVolume.
    pub(crate) name: String,
    /// The source of the volume.
    pub(crate) source: ClaimSource,
    /// True if the pod mounts the volume read-only.
    pub(crate) read_only: bool,
}

/// The supported types of volumes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ClaimSource {
    /// `local`: an existing directory.
    Local(String),
    /// `hostPath`: path and type.
    HostPath(String, String),
    /// A type that this node does not support.
    Unsupported,
}

/// The error for claims that cannot be mounted yet.
#[derive(Debug)]
pub(crate) struct ClaimError {
    volumes: Vec<String>,
    reason: String,
}

impl fmt::Display for ClaimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let volumes = self.volumes.join(" ");
        let reason = &self.reason;
        write!(
            f,
            "Unable to attach or mount volumes: unmounted volumes=[{volumes}], unattached volumes=[], failed to process volumes=[{volumes}]: {reason}"
        )
    }
}

/// Returns the claim's name, and true if it is mounted read-only. Returns `None` for a volume of
/// another type.
fn claim_of(pod: &str, volume: &Volume) -> Option<(String, bool)> {
    if let Some(source) = &volume.persistent_volume_claim {
        return Some((source.claim_name.clone(), source.read_only == Some(true)));
    }
    let claim = || (format!("{pod}-{}", volume.name), false);
    volume.ephemeral.as_ref().map(|_| claim())
}

/// Fetches the volumes of all claims of a pod.
///
/// # Errors
/// A claim is not bound, or cannot be read. The message names all affected volumes, and the first
/// reason.
pub(crate) async fn fetch(cluster: &Cluster, pod: &Pod) -> Result<ClaimVolumes, ClaimError> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    let spec = pod.spec.iter();
    let volumes = spec.flat_map(|spec| spec.volumes.iter().flatten());
    let (mut found, mut failed, mut reason) = (ClaimVolumes::new(), Vec::new(), None);
    for volume in volumes {
        let Some((claim, read_only)) = claim_of(name, volume) else {
            continue;
        };
        let owner = volume.ephemeral.is_some().then_some((name, uid));
        match fetch_one(cluster, namespace, &claim, owner).await {
            Ok(bound) => {
                let bound = of_volume(bound, read_only);
                let bound = bound.map_err(|mode| {
                    let volume = &volume.name;
                    format!(
                        "volume {volume} has volumeMode {mode}, but is specified in volumeMounts"
                    )
                });
                match bound {
                    Ok(bound) => drop(found.insert(volume.name.clone(), bound)),
                    Err(problem) => {
                        failed.push(volume.name.clone());
                        reason.get_or_insert(problem);
                    }
                }
            }
            Err(problem) => {
                failed.push(volume.name.clone());
                reason.get_or_insert(format!(
                    "error processing PVC {namespace}/{claim}: {problem}"
                ));
            }
        }
    }
    match reason {
        None => Ok(found),
        Some(reason) => Err(ClaimError {
            volumes: failed,
            reason,
        }),
    }
}

/// Fetches a claim and its volume. `owner` is the pod of a generic ephemeral
/// volume.
async fn fetch_one(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
    owner: Option<(&str, &str)>,
) -> Result<PersistentVolume, String> {
    let no_claim = |error: Error| format!("failed to fetch PVC from API server: {}", text(&error));
    let view = cluster.persistentvolumeclaims();
    let view = view.in_namespace(namespace).map_err(no_claim)?;
    let claim = view.fetch(name).await.map_err(no_claim)?;
    let claim = claim.object().map_err(no_claim)?;
    let volume = bound_volume(&claim, namespace, name, owner)?;
    let no_volume = |error: Error| {
        format!(
            "failed to fetch PV {volume} from API server: {}",
            text(&error)
        )
    };
    let view = cluster.persistentvolumes();
    let bound = view.fetch(&volume).await.map_err(no_volume)?;
    let bound = bound.object().map_err(no_volume)?;
    check_claim_of(
        &bound,
        &volume,
        claim.metadata.uid.as_deref().unwrap_or_default(),
    )?;
    Ok(bound)
}

fn text(error: &Error) -> String {
    match error.status() {
        Some(status) => status.message.clone(),
        None => error.to_string(),
    }
}

/// Returns the name of a claim's volume.
fn bound_volume(
    claim: &PersistentVolumeClaim,
    namespace: &str,
    name: &str,
    owner: Option<(&str, &str)>,
) -> Result<String, String> {
    if let Some((pod, uid)) = owner {
        let owners = claim.metadata.owner_references.iter().flatten();
        let mut controllers = owners.filter(|owner| owner.controller == Some(true));
        if !controllers.any(|owner| owner.uid == uid) {
            return Err(format!(
                "PVC {namespace}/{name} was not created for pod {namespace}/{pod} (pod is not owner)"
            ));
        }
    }
    if claim.metadata.deletion_timestamp.is_some() {
        return Err("PVC is being deleted".to_owned());
    }
    let phase = claim
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    if phase != Some("Bound") {
        return Err("PVC is not bound".to_owned());
    }
    let spec = claim.spec.as_ref();
    spec.and_then(|spec| spec.volume_name.clone())
        .filter(|volume| !volume.is_empty())
        .ok_or_else(|| "PVC has empty pvc.Spec.VolumeName".to_owned())
}

/// Checks that a volume is bound to the claim.
fn check_claim_of(volume: &PersistentVolume, name: &str, claim: &str) -> Result<(), String> {
    let spec = volume.spec.as_ref();
    let Some(reference) = spec.and_then(|spec| spec.claim_ref.as_ref()) else {
        return Err(format!(
            "found PV object {name} but it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim"
        ));
    };
    let own = reference.uid.as_deref().unwrap_or_default();
    if own != claim {
        return Err(format!(
            "found PV object {name} but its pv.Spec.ClaimRef.UID {own} does not point to claim.UID {claim}"
        ));
    }
    Ok(())
}

/// Reads a volume.
///
/// # Errors
/// Returns the volume mode if it is not a file system.
fn of_volume(volume: PersistentVolume, read_only: bool) -> Result<ClaimVolume, String> {
    let spec = volume.spec.unwrap_or_default();
    match spec.volume_mode {
        Some(mode) if mode != "Filesystem" => return Err(mode),
        _ => {}
    }
    let source = if let Some(local) = spec.local {
        ClaimSource::Local(local.path)
    } else if let Some(host) = spec.host_path {
        ClaimSource::HostPath(host.path, host.type_.unwrap_or_default())
    } else {
        ClaimSource::Unsupported
    };
    Ok(ClaimVolume {
        name: volume.metadata.name.unwrap_or_default(),
        source,
        read_only,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn claim(metadata: Value, spec: Value, phase: &str) -> PersistentVolumeClaim {
        let claim = json!({"metadata": metadata, "spec": spec, "status": {"phase": phase}});
        serde_json::from_value(claim).unwrap()
    }

    #[test]
    fn only_bound_claims_are_mounted() {
        let bound = |claim| bound_volume(&claim, "ns", "c", None);
        let spec = || json!({"volumeName": "v"});
        assert_eq!(bound(claim(json!({}), spec(), "Bound")), Ok("v".into()));
        assert_eq!(
            bound(claim(json!({}), spec(), "Pending")),
            Err("PVC is not bound".into())
        );
        assert_eq!(
            bound(claim(json!({}), json!({}), "Bound")),
            Err("PVC has empty pvc.Spec.VolumeName".into())
        );
        let deleted = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
        assert_eq!(
            bound(claim(deleted, spec(), "Bound")),
            Err("PVC is being deleted".into())
        );
        let owner = json!({"ownerReferences": [{
            "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": true}]});
        let owned = claim(owner, spec(), "Bound");
        assert!(bound_volume(&owned, "ns", "p-v", Some(("p", "u"))).is_ok());
        assert_eq!(
            bound_volume(&owned, "ns", "p-v", Some(("p", "other"))),
            Err("PVC ns/p-v was not created for pod ns/p (pod is not owner)".into())
        );
    }

    fn volume(spec: Value) -> PersistentVolume {
        serde_json::from_value(json!({"metadata": {"name": "v"}, "spec": spec})).unwrap()
    }

    #[test]
    fn volumes_belong_to_their_claim() {
        let of = |uid: &str| volume(json!({"claimRef": {"uid": uid}}));
        assert_eq!(check_claim_of(&of("u"), "v", "u"), Ok(()));
        assert!(check_claim_of(&of("w"), "v", "u").is_err());
        assert!(check_claim_of(&volume(json!({})), "v", "u").is_err());
    }

    #[test]
    fn volumes_are_directories() {
        let source = |spec| of_volume(volume(spec), false).map(|volume| volume.source);
        assert_eq!(
            source(json!({"local": {"path": "/a"}})),
            Ok(ClaimSource::Local("/a".into()))
        );
        assert_eq!(
            source(json!({"hostPath": {"path": "/a", "type": "Directory"}})),
            Ok(ClaimSource::HostPath("/a".into(), "Directory".into()))
        );
        assert_eq!(
            source(json!({"nfs": {"path": "/a", "server": "s"}})),
            Ok(ClaimSource::Unsupported)
        );
        let block = json!({"local": {"path": "/a"}, "volumeMode": "Block"});
        assert_eq!(source(block), Err("Block".into()));
    }
}
