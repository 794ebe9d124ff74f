//! The user and groups of a container's processes, and the owner of its files.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Pod;

use super::{Accounts, AgentPrivileges, ContextRequest, Refusal};
use crate::{images::ImageUsers, sandbox::Privileges};

pub(super) fn apply(
    request: &ContextRequest<'_>,
    accounts: &Accounts,
    privileges: &mut Privileges,
) -> Result<(), Refusal> {
    let ContextRequest {
        of_pod,
        own,
        agent_privileges,
        ..
    } = request;
    let (own_user, own_group) = (own.run_as_user.is_some(), own.run_as_group.is_some());
    let user = own.run_as_user.or(of_pod.run_as_user);
    let user = number(request, own_user, "runAsUser", user)?;
    let group = own.run_as_group.or(of_pod.run_as_group);
    let group = number(request, own_group, "runAsGroup", group)?;
    let mut more = Vec::new();
    for (field, id) in supplementary(request) {
        more.extend(number(request, false, field, Some(id))?.map(|id| (field, id)));
    }
    refuse_root(request, user)?;
    let of_image = request.image_user.filter(|_| user.is_none());
    let user = user.or(of_image.map(|ids| ids.user));
    let group = group.or(of_image.and_then(|ids| ids.group));
    if agent_privileges.is_root() {
        privileges.user = user;
        privileges.group = group.or_else(|| {
            // An unknown user gets a separate group: group 0 can read more of this machine's files
            // than of an image's.
            user.map(|user| accounts.primary_group(user).unwrap_or(user))
        });
        privileges.groups = groups(request, accounts, privileges, &more);
        return Ok(());
    }
    let (may_choose, has): (bool, Vec<u32>) = if agent_privileges.user_namespace {
        let first = more.first().map(|(_, id)| *id);
        privileges.user = Some(user.unwrap_or(agent_privileges.uid));
        privileges.group = Some(group.or(first).unwrap_or(agent_privileges.gid));
        (true, privileges.group.into_iter().collect())
    } else {
        (
            false,
            agent_privileges
                .groups
                .iter()
                .copied()
                .chain([agent_privileges.gid])
                .collect(),
        )
    };
    if !may_choose && user.is_some_and(|user| user != agent_privileges.uid) {
        let reason = format!(
            "the node agent runs as user {} and may not change to another; run it as root, \
             allow unprivileged user namespaces, or leave the field out",
            agent_privileges.uid
        );
        return Err(request.refuse_either(own_user, "runAsUser", reason));
    }
    if !may_choose && group.is_some_and(|group| group != agent_privileges.gid) {
        let reason = format!(
            "the node agent runs as group {} and may not change to another; run it as root, \
             allow unprivileged user namespaces, or leave the field out",
            agent_privileges.gid
        );
        return Err(request.refuse_either(own_group, "runAsGroup", reason));
    }
    if let Some((field, _)) = more.iter().find(|(_, id)| !has.contains(id)) {
        let reason = format!(
            "the node agent does not run as root and can only give the group {}; run it as root, \
             or use that group",
            has.iter()
                .map(u32::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        );
        return Err(request.refuse_either(false, field, reason));
    }
    Ok(())
}

/// Returns the supplementary groups that the pod requests, with their fields.
fn supplementary(request: &ContextRequest<'_>) -> impl Iterator<Item = (&'static str, i64)> {
    let fs = request.of_pod.fs_group.map(|id| ("fsGroup", id));
    let more = request.of_pod.supplemental_groups.iter().flatten();
    fs.into_iter()
        .chain(more.map(|id| ("supplementalGroups", *id)))
        .collect::<Vec<_>>()
        .into_iter()
}

fn number(
    request: &ContextRequest<'_>,
    own: bool,
    field: &str,
    id: Option<i64>,
) -> Result<Option<u32>, Refusal> {
    let Some(id) = id else { return Ok(None) };
    let number = u32::try_from(id).ok().filter(|number| *number != u32::MAX);
    match number {
        Some(number) => Ok(Some(number)),
        None => Err(request.refuse_either(own, field, format!("{id} is not the number of an id"))),
    }
}

/// Enforces `runAsNonRoot` like the kubelet. If the user of the image is unknown, the agent's own
/// user counts.
fn refuse_root(request: &ContextRequest<'_>, user: Option<u32>) -> Result<(), Refusal> {
    let must_not = request
        .own
        .run_as_non_root
        .or(request.of_pod.run_as_non_root);
    let of_image = request.image_user.map(|ids| ids.user);
    let runs_as = user.or(of_image).unwrap_or(request.agent_privileges.uid);
    if must_not != Some(true) || runs_as != 0 {
        return Ok(());
    }
    let metadata = &request.pod.metadata;
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    Err(Refusal::Root {
        reason: match user {
            Some(_) => "container's runAsUser breaks non-root policy",
            None => "container has runAsNonRoot and image will run as root",
        },
        pod: format!(
            "{}_{}({})",
            text(&metadata.name),
            text(&metadata.namespace),
            text(&metadata.uid)
        ),
        container: request.container.name.clone(),
        remedy: match (user, &request.container.image) {
            (None, Some(image)) => format!(
                "set runAsUser, or the image's user when the cluster starts: \
                 --image-user {image}=UID"
            ),
            (None, None) => "set runAsUser".to_owned(),
            (Some(_), _) => "set another runAsUser".to_owned(),
        },
    })
}

/// Returns the supplementary groups; `None` keeps the agent's.
fn groups(
    request: &ContextRequest<'_>,
    accounts: &Accounts,
    privileges: &Privileges,
    more: &[(&str, u32)],
) -> Option<Vec<u32>> {
    let strict = request.of_pod.supplemental_groups_policy.as_deref() == Some("Strict");
    if privileges.user.is_none() && privileges.group.is_none() && more.is_empty() && !strict {
        return None;
    }
    let mut groups: BTreeSet<u32> = more.iter().map(|(_, id)| *id).collect();
    groups.extend(privileges.group);
    if !strict {
        groups.extend(match privileges.user {
            Some(user) => accounts.groups(user),
            None => request.agent_privileges.groups.clone(),
        });
    }
    Some(groups.into_iter().collect())
}

/// The owner of the files that the node creates for a pod.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Owner {
    /// The user that all containers share, if any.
    pub(crate) user: Option<u32>,
    /// The pod's `fsGroup`, if the agent can change the group of files. Otherwise all containers
    /// run as the agent's user, who owns the files.
    pub(crate) group: Option<u32>,
}

/// Returns the owner of the files that the node creates for `pod`.
pub(crate) fn owner(
    pod: &Pod,
    agent_privileges: &AgentPrivileges,
    image_users: &ImageUsers,
) -> Owner {
    let Some(spec) = pod.spec.as_ref().filter(|_| agent_privileges.is_root()) else {
        return Owner {
            user: Some(agent_privileges.uid),
            group: None,
        };
    };
    let of_pod = spec.security_context.as_ref();
    let inits = spec.init_containers.iter().flatten();
    let users: BTreeSet<i64> = inits
        .chain(&spec.containers)
        .map(|container| {
            let own = container.security_context.as_ref();
            let own = own.and_then(|context| context.run_as_user);
            own.or_else(|| of_pod?.run_as_user).unwrap_or_else(|| {
                let of_image = image_users.find(container.image.as_deref());
                of_image.map_or(agent_privileges.uid, |ids| ids.user).into()
            })
        })
        .collect();
    let id = |id: i64| u32::try_from(id).ok();
    Owner {
        user: users
            .first()
            .filter(|_| users.len() == 1)
            .copied()
            .and_then(id),
        group: of_pod.and_then(|context| context.fs_group).and_then(id),
    }
}
