//! Security contexts with various agent privileges.

#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::*;

const ADMIN: u64 = 1 << 21;

fn root() -> AgentPrivileges {
    AgentPrivileges {
        namespaces: true,
        read_only_views: true,
        selinux: true,
        groups: vec![0, 7],
        capabilities: (1 << 41) - 1,
        effective: (1 << 41) - 1,
        ..AgentPrivileges::default()
    }
}

fn user() -> AgentPrivileges {
    AgentPrivileges {
        uid: 1001,
        gid: 1002,
        groups: vec![1002, 44],
        user_namespace: true,
        effective: 0,
        ..root()
    }
}

/// An agent without root and without namespaces.
fn unprivileged() -> AgentPrivileges {
    AgentPrivileges {
        namespaces: false,
        user_namespace: false,
        read_only_views: false,
        ..user()
    }
}

fn accounts() -> Accounts {
    Accounts {
        passwd: "root:x:0:0::/:/bin/sh\nann:x:1000:1500::/:/bin/sh\n".to_owned(),
        group: "root:x:0:\nann:x:1500:\nvideo:x:44:bob,ann\n".to_owned(),
    }
}

fn image_users() -> ImageUsers {
    let known = ["hardened=1234", "grouped=1234:55", "rooted=0"];
    ImageUsers(known.map(|text| text.parse().unwrap()).to_vec())
}

fn pod(of_pod: Value, own: Value) -> Pod {
    let mut spec = json!({"containers": [{"name": "c"}]});
    for (key, value) in of_pod.as_object().unwrap() {
        spec[key] = value.clone();
    }
    if !own.is_null() {
        spec["containers"][0]["securityContext"] = own;
    }
    serde_json::from_value(json!({
        "metadata": {"name": "p", "namespace": "n", "uid": "u"}, "spec": spec}))
    .unwrap()
}

fn enforce_in(agent_privileges: &AgentPrivileges, pod: &Pod) -> Result<Enforced, Refusal> {
    let container = &pod.spec.as_ref().unwrap().containers[0];
    let users = image_users();
    enforce(pod, container, agent_privileges, &accounts(), &users)
}

fn own(agent_privileges: &AgentPrivileges, context: Value) -> Enforced {
    enforce_in(agent_privileges, &pod(json!({}), context)).unwrap()
}

fn whole(agent_privileges: &AgentPrivileges, context: Value) -> Enforced {
    let spec = json!({"securityContext": context});
    enforce_in(agent_privileges, &pod(spec, Value::Null)).unwrap()
}

fn refusal(agent_privileges: &AgentPrivileges, of_pod: Value, own: Value) -> String {
    enforce_in(agent_privileges, &pod(of_pod, own))
        .unwrap_err()
        .to_string()
}

#[test]
fn users_and_groups_of_root() {
    let privileges = own(&root(), Value::Null).privileges;
    assert_eq!(
        (privileges.user, privileges.group, privileges.groups),
        (None, None, None)
    );
    // The group is the user's primary group, or a separate group.
    let privileges = own(&root(), json!({"runAsUser": 1000})).privileges;
    assert_eq!(
        (privileges.user, privileges.group),
        (Some(1000), Some(1500))
    );
    assert_eq!(privileges.groups, Some(vec![44, 1500]));
    let privileges = own(&root(), json!({"runAsUser": 4321})).privileges;
    assert_eq!(privileges.groups, Some(vec![4321]));
    let context = json!({"runAsUser": 1000, "runAsGroup": 5, "fsGroup": 6,
        "supplementalGroups": [9, 8]});
    let privileges = whole(&root(), context.clone()).privileges;
    assert_eq!(privileges.groups, Some(vec![5, 6, 8, 9, 44]));
    let mut strict = context;
    strict["supplementalGroupsPolicy"] = json!("Strict");
    let privileges = whole(&root(), strict).privileges;
    assert_eq!(privileges.groups, Some(vec![5, 6, 8, 9]));
    let privileges = whole(&root(), json!({"fsGroup": 6})).privileges;
    assert_eq!(
        (privileges.user, privileges.groups),
        (None, Some(vec![0, 6, 7]))
    );
    // The container's own context takes precedence.
    let both = pod(
        json!({"securityContext": {"runAsUser": 1000}}),
        json!({"runAsUser": 3}),
    );
    assert_eq!(enforce_in(&root(), &both).unwrap().privileges.user, Some(3));
}

#[test]
fn one_user_and_one_group_without_root() {
    let privileges = own(&user(), Value::Null).privileges;
    assert_eq!(
        (privileges.user, privileges.group),
        (Some(1001), Some(1002))
    );
    let context = json!({"runAsUser": 1000, "fsGroup": 2000});
    let privileges = whole(&user(), context).privileges;
    assert_eq!(
        (privileges.user, privileges.group),
        (Some(1000), Some(2000))
    );
    let context = json!({"runAsGroup": 1000, "fsGroup": 2000});
    let text = refusal(&user(), json!({"securityContext": context}), Value::Null);
    assert!(text.starts_with("pod securityContext.fsGroup: "), "{text}");
    let context = json!({"fsGroup": 2000, "supplementalGroups": [2000, 3000]});
    let text = refusal(&user(), json!({"securityContext": context}), Value::Null);
    assert!(text.contains("supplementalGroups"), "{text}");

    assert!(
        own(
            &unprivileged(),
            json!({"runAsUser": 1001, "runAsGroup": 1002})
        )
        .privileges
        .user
        .is_none()
    );
    whole(
        &unprivileged(),
        json!({"fsGroup": 44, "supplementalGroups": [1002]}),
    );
    for (context, field) in [
        (json!({"runAsUser": 1000}), "runAsUser"),
        (json!({"runAsGroup": 44}), "runAsGroup"),
    ] {
        let text = refusal(&unprivileged(), json!({}), context);
        assert!(
            text.starts_with(&format!("container \"c\" securityContext.{field}: ")),
            "{text}"
        );
    }
}

#[test]
fn run_as_non_root_is_enforced_like_by_the_kubelet() {
    let must = json!({"runAsNonRoot": true});
    assert_eq!(
        refusal(&root(), json!({}), must.clone()),
        "container has runAsNonRoot and image will run as root (pod: \"p_n(u)\", container: c); \
         set runAsUser"
    );
    assert_eq!(
        refusal(
            &root(),
            json!({"securityContext": must}),
            json!({"runAsUser": 0})
        ),
        "container's runAsUser breaks non-root policy (pod: \"p_n(u)\", container: c); \
         set another runAsUser"
    );
    own(&root(), json!({"runAsNonRoot": true, "runAsUser": 1}));
    own(&user(), must);
    // The container's own context takes precedence.
    let may = pod(
        json!({"securityContext": {"runAsNonRoot": true}}),
        json!({"runAsNonRoot": false}),
    );
    enforce_in(&root(), &may).unwrap();
}

#[test]
fn the_user_of_the_image_applies_without_run_as_user() {
    let with = |image: &str, agent: &AgentPrivileges, context: Value| {
        let mut pod = pod(json!({}), context);
        let container = &mut pod.spec.as_mut().unwrap().containers[0];
        container.image = Some(image.to_owned());
        let privileges = enforce_in(agent, &pod).map(|enforced| enforced.privileges);
        privileges.map(|privileges| (privileges.user, privileges.group))
    };
    let must = json!({"runAsNonRoot": true});
    let ids = |user, group| Ok((Some(user), Some(group)));
    assert_eq!(with("hardened:1", &root(), must.clone()), ids(1234, 1234));
    assert_eq!(with("grouped", &root(), must.clone()), ids(1234, 55));
    // The pod takes precedence, and the image's group belongs to the image's user.
    assert_eq!(with("grouped", &root(), json!({"runAsUser": 7})), ids(7, 7));
    assert_eq!(
        with("grouped", &root(), json!({"runAsGroup": 8})),
        ids(1234, 8)
    );
    let refused = with("rooted", &root(), must.clone()).unwrap_err();
    assert!(refused.to_string().ends_with(
        "container has runAsNonRoot and image will run as root (pod: \"p_n(u)\", container: c); \
         set runAsUser, or the image's user when the cluster starts: --image-user rooted=UID"
    ));
    // In a user namespace the user has this number; without one, it is not changed.
    assert_eq!(with("grouped", &user(), must.clone()), ids(1234, 55));
    assert_eq!(with("grouped", &unprivileged(), must), Ok((None, None)));
    // The pod's files belong to the user of the image.
    let mut pod = pod(json!({}), Value::Null);
    pod.spec.as_mut().unwrap().containers[0].image = Some("hardened".to_owned());
    assert_eq!(owner(&pod, &root(), &image_users()).user, Some(1234));
}

#[test]
fn capabilities_in_the_order_of_containerd() {
    let set = |context: Value| {
        own(&root(), json!({"capabilities": context}))
            .privileges
            .capabilities
    };
    let default_set = own(&root(), Value::Null).privileges.capabilities.unwrap();
    assert_eq!(default_set.count_ones(), 13);
    assert_eq!(default_set & ADMIN, 0);
    assert_eq!(set(json!({"drop": ["ALL"]})), Some(0));
    let bind = json!({"drop": ["all"], "add": ["CAP_NET_BIND_SERVICE"]});
    assert_eq!(set(bind), Some(1 << 10));
    assert_eq!(
        set(json!({"add": ["sys_admin"]})),
        Some(default_set | ADMIN)
    );
    assert_eq!(
        set(json!({"add": ["ALL"], "drop": ["SYS_ADMIN"]})),
        Some(((1 << 41) - 1) & !ADMIN)
    );
    assert_eq!(
        set(json!({"add": ["CHOWN"], "drop": ["CHOWN"]})),
        Some(default_set & !1)
    );
    let text = refusal(
        &root(),
        json!({}),
        json!({"capabilities": {"drop": ["NOPE"]}}),
    );
    assert!(
        text.contains("capabilities.drop: \"NOPE\" is not"),
        "{text}"
    );

    // Capabilities that the agent lacks cannot be added, in any spelling.
    let poor = AgentPrivileges {
        capabilities: default_set,
        ..root()
    };
    let text = refusal(
        &poor,
        json!({}),
        json!({"capabilities": {"add": ["NET_ADMIN"]}}),
    );
    assert!(
        text.ends_with("the node agent itself does not have NET_ADMIN"),
        "{text}"
    );
    for agent_privileges in [user(), unprivileged()] {
        for name in ["NET_ADMIN", "ALL"] {
            let text = refusal(
                &agent_privileges,
                json!({}),
                json!({"capabilities": {"add": [name]}}),
            );
            assert!(
                text.contains("capabilities.add") && text.ends_with(name),
                "{text}"
            );
        }
    }
    // An agent that cannot drop capabilities can run the container only if it has no capabilities.
    let drop = json!({"capabilities": {"drop": ["ALL"]}});
    let privileges = own(&unprivileged(), drop.clone()).privileges;
    assert_eq!(
        (privileges.capabilities, privileges.no_new_privileges),
        (None, true)
    );
    let weak = AgentPrivileges {
        effective: 0,
        ..root()
    };
    assert!(refusal(&weak, json!({}), drop).contains("SETPCAP"));
    assert_eq!(own(&weak, Value::Null).privileges.capabilities, None);
}

#[test]
fn a_restricted_manifest_is_enforced_and_runs_everywhere() {
    // The requirements of the Pod Security Standard `restricted`.
    let of_pod = json!({"securityContext": {"runAsNonRoot": true, "runAsUser": 1001,
        "seccompProfile": {"type": "RuntimeDefault"}}});
    let context = json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}});
    for agent_privileges in [root(), user(), unprivileged()] {
        let enforced =
            enforce_in(&agent_privileges, &pod(of_pod.clone(), context.clone())).unwrap();
        let privileges = enforced.privileges;
        assert!(privileges.no_new_privileges && privileges.filters_system_calls);
        assert_eq!(enforced.masks_proc, agent_privileges.namespaces);
    }
    // The filter needs one of the two.
    let filter = json!({"seccompProfile": {"type": "RuntimeDefault"}});
    assert!(!own(&root(), filter.clone()).privileges.no_new_privileges);
    assert!(!own(&user(), filter.clone()).privileges.no_new_privileges);
    assert!(own(&unprivileged(), filter).privileges.no_new_privileges);
}

#[test]
fn privileged_containers_have_what_the_agent_has() {
    let context = json!({"privileged": true, "seccompProfile": {"type": "RuntimeDefault"}});
    let enforced = own(&root(), context.clone());
    assert_eq!(enforced, Enforced::default());
    for agent_privileges in [user(), unprivileged()] {
        let text = refusal(&agent_privileges, json!({}), context.clone());
        assert!(
            text.starts_with("container \"c\" securityContext.privileged: "),
            "{text}"
        );
    }
    let unmasked = own(&root(), json!({"procMount": "Unmasked"}));
    assert!(!unmasked.masks_proc);
}

#[test]
fn unenforceable_fields_are_named() {
    let fields = [
        (
            json!({"securityContext": {"sysctls": [{"name": "a.b", "value": "1"}]}}),
            json!({}),
            "pod securityContext.sysctls: ",
        ),
        (
            json!({"hostUsers": false}),
            json!({}),
            "pod hostUsers: false: ",
        ),
        (json!({"hostPID": true}), json!({}), "pod hostPID: "),
        (
            json!({"shareProcessNamespace": true}),
            json!({}),
            "pod shareProcessNamespace: ",
        ),
        (
            json!({"securityContext": {"seLinuxOptions": {"level": "s0"}}}),
            json!({}),
            "pod securityContext.seLinuxOptions: ",
        ),
        (
            json!({"securityContext": {"appArmorProfile": {"type": "RuntimeDefault"}}}),
            json!({}),
            "pod securityContext.appArmorProfile: ",
        ),
        (
            json!({"securityContext": {"windowsOptions": {"runAsUserName": "x"}}}),
            json!({}),
            "pod securityContext.windowsOptions: ",
        ),
        (
            json!({"securityContext": {"seccompProfile": {"type": "Localhost", "localhostProfile": "x"}}}),
            json!({}),
            "pod securityContext.seccompProfile: ",
        ),
        (
            json!({}),
            json!({"seccompProfile": {"type": "Localhost", "localhostProfile": "x"}}),
            "container \"c\" securityContext.seccompProfile: ",
        ),
        (
            json!({}),
            json!({"appArmorProfile": {"type": "Localhost", "localhostProfile": "x"}}),
            "container \"c\" securityContext.appArmorProfile: ",
        ),
        (
            json!({}),
            json!({"seLinuxOptions": {"type": "x"}}),
            "container \"c\" securityContext.seLinuxOptions: ",
        ),
        (
            json!({}),
            json!({"windowsOptions": {"hostProcess": true}}),
            "container \"c\" securityContext.windowsOptions: ",
        ),
    ];
    for (of_pod, context, start) in fields {
        let text = refusal(&root(), of_pod, context);
        assert!(text.starts_with(start), "{text}");
    }
    let blind = AgentPrivileges {
        read_only_views: false,
        ..root()
    };
    let text = refusal(&blind, json!({}), json!({"readOnlyRootFilesystem": true}));
    assert!(text.contains("readOnlyRootFilesystem"), "{text}");
    let mut annotated = pod(json!({}), Value::Null);
    let key = "container.apparmor.security.beta.kubernetes.io/c".to_owned();
    annotated.metadata.annotations = Some([(key, "runtime/default".to_owned())].into());
    assert!(
        enforce_in(&root(), &annotated)
            .unwrap_err()
            .to_string()
            .contains("annotation")
    );

    // Fields that request behaviour that applies anyway.
    let harmless = json!({"hostUsers": true, "hostIPC": true, "hostNetwork": true,
        "securityContext": {"seLinuxOptions": {}, "appArmorProfile": {"type": "Unconfined"},
            "seccompProfile": {"type": "Unconfined"}, "fsGroupChangePolicy": "Always",
            "seLinuxChangePolicy": "Recursive", "sysctls": []}});
    let own = json!({"procMount": "Default", "privileged": false, "windowsOptions": {}});
    enforce_in(&root(), &pod(harmless, own)).unwrap();
    // Without SELinux, its labels have no effect.
    let none = AgentPrivileges {
        selinux: false,
        ..root()
    };
    let labels = json!({"seLinuxOptions": {"level": "s0"}});
    enforce_in(
        &none,
        &pod(json!({"securityContext": labels.clone()}), labels),
    )
    .unwrap();
    enforce_in(&user(), &pod(json!({"hostUsers": false}), Value::Null)).unwrap();
    enforce_in(&unprivileged(), &pod(json!({"hostPID": true}), Value::Null)).unwrap();
}

#[test]
fn files_belong_to_the_one_user_or_to_the_group() {
    let of = |spec: Value| owner(&pod(spec, Value::Null), &root(), &image_users());
    let agents = of(json!({}));
    assert_eq!((agents.user, agents.group), (Some(0), None));
    let one = of(json!({"securityContext": {"runAsUser": 5, "fsGroup": 6}}));
    assert_eq!((one.user, one.group), (Some(5), Some(6)));
    let two = of(json!({"initContainers": [{"name": "i", "securityContext": {"runAsUser": 4}}]}));
    assert_eq!((two.user, two.group), (None, None));
    // Without root, no other users exist.
    let users = owner(
        &pod(json!({"securityContext": {"fsGroup": 6}}), Value::Null),
        &user(),
        &image_users(),
    );
    assert_eq!((users.user, users.group), (Some(1001), None));
}
