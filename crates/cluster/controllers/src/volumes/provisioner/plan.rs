//! Decides which claims get a volume, which volumes are expanded, and which are
//! removed. Pure.

use super::{
    super::{
        facts::{ClaimFacts, ClassFacts, VolumeFacts},
        names::{PROVISIONED_BY, PROVISIONER},
        store::Store,
    },
    PROVISIONER_NAME,
};

/// An action for a claim.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Action {
    /// Make a volume.
    Provision(ClassFacts),
    /// Reject the claim, because this provisioner cannot provide such a volume.
    Refuse(String),
    /// Set the sizes of the volume and the claim to the requested size.
    Expand(Box<VolumeFacts>),
    /// Nothing.
    Nothing,
}

/// Returns true if this provisioner made the volume.
pub(crate) fn is_ours(volume: &VolumeFacts) -> bool {
    let provisioner = volume.annotations.get(PROVISIONED_BY);
    provisioner.is_some_and(|name| name == PROVISIONER_NAME)
}

/// Decides what to do for a claim.
pub(crate) fn claim_action(claim: &ClaimFacts, store: &Store, nodes: &[String]) -> Action {
    if claim.deleting {
        return Action::Nothing;
    }
    if !claim.volume.is_empty() {
        let volume = store.volume(&claim.volume);
        let is_smaller = claim.capacity.is_some_and(|capacity| capacity < claim.size);
        return match volume {
            Some(volume) if claim.phase == "Bound" && is_smaller && is_ours(volume) => {
                Action::Expand(Box::new(volume.clone()))
            }
            _ => Action::Nothing,
        };
    }
    let provisioner = claim.annotations.get(PROVISIONER);
    let Some(class) = store
        .class(claim.class())
        .filter(|class| class.provisioner == PROVISIONER_NAME)
        .filter(|class| provisioner == Some(&class.provisioner))
    else {
        return Action::Nothing;
    };
    if class.waits_for_pod && claim.selected_node().is_none() {
        return Action::Nothing;
    }
    let refusal = match claim.selected_node() {
        Some(other) if !nodes.iter().any(|node| node == other) => {
            let nodes = nodes.join(", ");
            format!("node {other:?} is not on this machine; volumes are made on {nodes}")
        }
        _ if claim.selector.is_some() => {
            "claim.spec.selector is not supported: remove it, or create a volume with these labels"
                .to_owned()
        }
        _ if claim.volume_mode != "Filesystem" => {
            "volumeMode Block is not supported: use Filesystem".to_owned()
        }
        _ if claim.has_source => {
            "claim.spec.dataSource is not supported: remove it, or fill the volume in a pod"
                .to_owned()
        }
        _ => return Action::Provision(class.clone()),
    };
    Action::Refuse(format!(
        "failed to provision volume with StorageClass {:?}: {refusal}",
        class.name
    ))
}

/// Returns true if the volume and its data are to be removed.
pub(crate) fn is_to_be_removed(volume: &VolumeFacts) -> bool {
    is_ours(volume)
        && volume.reclaim_policy == "Delete"
        && matches!(volume.phase.as_str(), "Released" | "Failed")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{
        super::super::{names::SELECTED_NODE, testing::*},
        *,
    };

    fn store() -> Store {
        let mut store = Store::default();
        let ours = |mode: &str| json!({"provisioner": PROVISIONER_NAME, "volumeBindingMode": mode});
        store.put_class(class("now", ours("Immediate")));
        store.put_class(class("late", ours("WaitForFirstConsumer")));
        store.put_class(class("other", json!({})));
        store
    }

    fn nodes() -> Vec<String> {
        vec!["n".to_owned(), "second".to_owned()]
    }

    fn requesting(spec: Value) -> ClaimFacts {
        let mut claim = claim(spec);
        claim
            .annotations
            .insert(PROVISIONER.into(), PROVISIONER_NAME.into());
        claim
    }

    #[test]
    fn claims_of_the_provisioners_classes_get_volumes() {
        let action = |claim: &ClaimFacts| claim_action(claim, &store(), &nodes());
        let now = requesting(json!({"storageClassName": "now"}));
        assert!(matches!(action(&now), Action::Provision(class) if class.name == "now"));
        let mut unrequested = now.clone();
        unrequested.annotations.clear();
        assert_eq!(action(&unrequested), Action::Nothing);
        let mut deleting = now.clone();
        deleting.deleting = true;
        assert_eq!(action(&deleting), Action::Nothing);
        let other = requesting(json!({"storageClassName": "other"}));
        assert_eq!(action(&other), Action::Nothing);
        let mut late = requesting(json!({"storageClassName": "late"}));
        assert_eq!(action(&late), Action::Nothing);
        late.annotations.insert(SELECTED_NODE.into(), "n".into());
        assert!(matches!(action(&late), Action::Provision(_)));
        late.annotations
            .insert(SELECTED_NODE.into(), "second".into());
        assert!(matches!(action(&late), Action::Provision(_)));
        late.annotations.insert(SELECTED_NODE.into(), "m".into());
        assert!(matches!(action(&late), Action::Refuse(text) if text.contains("\"m\"")));
    }

    #[test]
    fn unsupported_claims_are_refused() {
        let table = [
            (json!({"selector": {"matchLabels": {"a": "b"}}}), "selector"),
            (json!({"volumeMode": "Block"}), "volumeMode"),
            (
                json!({"dataSource": {"kind": "PersistentVolumeClaim", "name": "x"}}),
                "dataSource",
            ),
        ];
        for (mut spec, field) in table {
            spec["storageClassName"] = "now".into();
            let action = claim_action(&requesting(spec), &store(), &nodes());
            assert!(
                matches!(&action, Action::Refuse(text) if text.contains(field)),
                "{action:?}"
            );
        }
    }

    #[test]
    fn bound_claims_are_expanded_only_in_own_volumes() {
        let mut store = store();
        let mut made = volume("v", json!({}));
        store.put_volume(made.clone());
        let mut claim = claim(json!({"volumeName": "v"}));
        claim.phase = "Bound".into();
        claim.capacity = Some(1.0);
        assert_eq!(claim_action(&claim, &store, &nodes()), Action::Nothing);
        made.annotations
            .insert(PROVISIONED_BY.into(), PROVISIONER_NAME.into());
        store.put_volume(made.clone());
        assert_eq!(
            claim_action(&claim, &store, &nodes()),
            Action::Expand(Box::new(made))
        );
        claim.capacity = Some(claim.size);
        assert_eq!(claim_action(&claim, &store, &nodes()), Action::Nothing);
    }

    #[test]
    fn released_volumes_are_removed_unless_they_are_retained() {
        let mut volume = volume("v", json!({"persistentVolumeReclaimPolicy": "Delete"}));
        volume.phase = "Released".into();
        assert!(!is_to_be_removed(&volume));
        volume
            .annotations
            .insert(PROVISIONED_BY.into(), PROVISIONER_NAME.into());
        assert!(is_to_be_removed(&volume));
        volume.phase = "Bound".into();
        assert!(!is_to_be_removed(&volume));
        volume.phase = "Released".into();
        volume.reclaim_policy = "Retain".into();
        assert!(!is_to_be_removed(&volume));
    }
}
