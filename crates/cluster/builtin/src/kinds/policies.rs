//! Permissions, priorities, disruption budgets and runtime classes.

use crate::{
    Admission, Behaviour, Generation, KindRules, NameRule, PLAIN, defaults,
    table::{flow_control, policies, registrations},
    validate::{self, immutable, policy, rbac, registration},
};
use Behaviour::{Acts, Stored};

const RBAC: KindRules = KindRules {
    group: "rbac.authorization.k8s.io",
    behaviour: Acts("decides what users may do"),
    name: NameRule::PathSegment,
    create_on_update: true,
    columns: policies::CREATED,
    cells: policies::created,
    ..PLAIN
};

const BINDING: KindRules = KindRules {
    fill: defaults::limits::binding,
    validate_update: rbac::binding_change,
    columns: policies::BINDING,
    cells: policies::binding,
    ..RBAC
};

const FLOW_CONTROL: KindRules = KindRules {
    group: "flowcontrol.apiserver.k8s.io",
    behaviour: Stored("requests are not queued by it"),
    generation: Generation::Spec,
    create_on_update: true,
    validate_status: |_, after, causes| validate::flow_control::status(after, causes),
    ..PLAIN
};

pub(super) static KINDS: &[KindRules] = &[
    KindRules {
        kind: "FlowSchema",
        fill: defaults::flow_control::schema,
        validate: validate::flow_control::schema,
        columns: flow_control::SCHEMA,
        cells: flow_control::schema,
        ..FLOW_CONTROL
    },
    KindRules {
        kind: "PriorityLevelConfiguration",
        fill: defaults::flow_control::level,
        validate: validate::flow_control::level,
        columns: flow_control::LEVEL,
        cells: flow_control::level,
        ..FLOW_CONTROL
    },
    KindRules {
        group: "node.k8s.io",
        kind: "RuntimeClass",
        behaviour: Acts(
            "new pods get its overhead and scheduling; the node does not start pods with a RuntimeClass",
        ),
        unconditional_update: false,
        create_on_update: true,
        validate: registration::runtime_class,
        validate_update: |before, after, causes| {
            immutable::fixed_without_value(before, after, &["handler"], causes);
        },
        columns: registrations::RUNTIME,
        cells: registrations::runtime_class,
        ..PLAIN
    },
    KindRules {
        group: "policy",
        kind: "PodDisruptionBudget",
        behaviour: Acts("evictions respect it; a controller counts the pods that it selects"),
        generation: Generation::Spec,
        unconditional_update: false,
        validate: policy::budget,
        validate_status: |_, after, causes| policy::budget_status(after, causes),
        columns: policies::BUDGET,
        cells: policies::budget,
        ..PLAIN
    },
    KindRules {
        kind: "ClusterRole",
        behaviour: Acts(
            "decides what users may do; a controller gathers the rules of aggregated roles",
        ),
        validate: rbac::cluster_role,
        ..RBAC
    },
    KindRules {
        kind: "ClusterRoleBinding",
        validate: |object, causes| rbac::binding(object, &["ClusterRole"], causes),
        ..BINDING
    },
    KindRules {
        kind: "Role",
        validate: rbac::role,
        ..RBAC
    },
    KindRules {
        kind: "RoleBinding",
        validate: |object, causes| rbac::binding(object, &["Role", "ClusterRole"], causes),
        ..BINDING
    },
    KindRules {
        group: "scheduling.k8s.io",
        kind: "PriorityClass",
        behaviour: Acts("new pods get its priority, by which the scheduler preempts others"),
        generation: Generation::Fixed,
        fill: defaults::limits::priority_class,
        validate: policy::priority,
        validate_update: policy::priority_change,
        admission: Admission::SingleDefault,
        reads_all_of: &[("scheduling.k8s.io", "PriorityClass")],
        columns: policies::PRIORITY,
        cells: policies::priority,
        ..PLAIN
    },
];
