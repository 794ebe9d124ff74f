//! The claims that a pod's volumes refer to. Pure.

use k8s_openapi::api::core::v1::Volume;

/// A claim of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PodClaim {
    /// The claim's name.
    pub(crate) name: String,
    /// True if the claim is created for the pod, as a generic ephemeral volume.
    pub(crate) is_ephemeral: bool,
}

/// Returns the claims of a pod.
pub(crate) fn claims_of(pod: &str, volumes: &[Volume]) -> Vec<PodClaim> {
    let claim = |volume: &Volume| {
        if let Some(source) = &volume.persistent_volume_claim {
            return Some(PodClaim {
                name: source.claim_name.clone(),
                is_ephemeral: false,
            });
        }
        volume.ephemeral.as_ref().map(|_| PodClaim {
            name: ephemeral_name(pod, &volume.name),
            is_ephemeral: true,
        })
    };
    volumes.iter().filter_map(claim).collect()
}

/// Returns the name of the claim of a generic ephemeral volume.
pub(crate) fn ephemeral_name(pod: &str, volume: &str) -> String {
    format!("{pod}-{volume}")
}

/// Returns the error for a claim that has the name of a generic ephemeral volume, but does not
/// belong to the pod.
pub(crate) fn not_owned(namespace: &str, claim: &str, pod: &str) -> String {
    format!("PVC {namespace}/{claim} was not created for pod {namespace}/{pod} (pod is not owner)")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn claims_are_named_or_created_for_the_pod() {
        let volumes: Vec<Volume> = serde_json::from_value(json!([
            {"name": "a", "emptyDir": {}},
            {"name": "b", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "c", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
        ]))
        .unwrap();
        let claims = claims_of("p", &volumes);
        let names: Vec<_> = claims
            .iter()
            .map(|claim| (claim.name.as_str(), claim.is_ephemeral))
            .collect();
        assert_eq!(names, [("data", false), ("p-c", true)]);
    }
}
