//! A hook that populates new volumes of a pod before its containers start.

use std::{collections::BTreeMap, fmt, path::Path};

use k8s_openapi::api::core::v1::{Pod, SecurityContext, Volume};

use crate::{
    images::ImageUsers,
    memory::is_in_memory,
    security::{AgentPrivileges, owner},
};

/// A new, empty volume of a pod whose containers all run as the agent's user.
#[derive(Debug, Clone, Copy)]
pub struct NewVolume<'a> {
    /// The name of the volume in the pod.
    pub name: &'a str,
    /// The pod's annotations.
    pub annotations: &'a BTreeMap<String, String>,
    /// The directory, which is not in use yet.
    pub path: &'a Path,
}

/// Writes files into new volumes of pods before their containers start.
pub trait FillVolumes: fmt::Debug + Send + Sync {
    /// Populates an `emptyDir`, or leaves it empty. Called once per volume, on a thread that may
    /// block; the pod waits for it.
    fn fill(&self, volume: &NewVolume<'_>);
}

/// Returns the names of the pod's `emptyDir` volumes, except those in memory.
pub(crate) fn empty_volumes(pod: &Pod) -> impl Iterator<Item = &str> {
    let spec = pod.spec.iter();
    let volumes = spec.flat_map(|spec| spec.volumes.iter().flatten());
    let is_empty = |volume: &&Volume| volume.empty_dir.is_some() && !is_in_memory(volume);
    volumes.filter(is_empty).map(|volume| volume.name.as_str())
}

/// Returns true if files of the agent have the same owner as files of the pod's containers.
pub(crate) fn is_agents_own(
    pod: &Pod,
    agent_privileges: &AgentPrivileges,
    image_users: &ImageUsers,
) -> bool {
    let owner = owner(pod, agent_privileges, image_users);
    let Some(spec) = &pod.spec else {
        return false;
    };
    let of_pod = spec.security_context.as_ref();
    let group =
        |group: Option<i64>| group.is_none_or(|group| group == i64::from(agent_privileges.gid));
    let of_container = |context: &Option<SecurityContext>| {
        group(context.as_ref().and_then(|context| context.run_as_group))
    };
    let inits = spec.init_containers.iter().flatten();
    let mut containers = inits.chain(&spec.containers);
    // Without root, no other users and groups exist on the disk.
    !agent_privileges.is_root()
        || owner.user == Some(agent_privileges.uid)
            && owner.group.is_none()
            && group(of_pod.and_then(|context| context.run_as_group))
            && containers.all(|container| of_container(&container.security_context))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn own(uid: u32, of_pod: Value, of_container: Value) -> bool {
        let pod = json!({"spec": {
            "securityContext": of_pod,
            "initContainers": [{"name": "fetch"}],
            "containers": [{"name": "main", "securityContext": of_container}],
        }});
        let agent_privileges = AgentPrivileges {
            uid,
            gid: uid,
            ..AgentPrivileges::of_this_process()
        };
        let pod = serde_json::from_value(pod).unwrap();
        is_agents_own(&pod, &agent_privileges, &ImageUsers::default())
    }

    #[test]
    fn pods_of_other_users_and_groups_are_not_the_agents_own() {
        let none = || json!({});
        assert!(own(0, none(), none()));
        assert!(own(0, json!({"runAsUser": 0}), json!({"runAsGroup": 0})));
        for field in ["runAsUser", "runAsGroup", "fsGroup"] {
            assert!(!own(0, json!({field: 1000}), none()), "{field} of the pod");
        }
        for field in ["runAsUser", "runAsGroup"] {
            assert!(
                !own(0, none(), json!({field: 1000})),
                "{field} of the container"
            );
        }
        // Without root, the users of containers exist only in their user namespaces.
        assert!(own(1000, json!({"runAsUser": 1, "fsGroup": 2}), none()));
    }
}
