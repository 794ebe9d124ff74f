//! The kinds of apps, batch and autoscaling.

use crate::{
    Behaviour, Generation, KindRules, OtherVersion, PLAIN, defaults,
    table::{self, columns},
    validate::{self, immutable, job, job_status, workload},
};
use Behaviour::{Acts, Data};

const APPS: KindRules = KindRules {
    group: "apps",
    generation: Generation::Spec,
    ..PLAIN
};

pub(super) static KINDS: &[KindRules] = &[
    KindRules {
        kind: "ControllerRevision",
        behaviour: Data,
        generation: Generation::Absent,
        validate: workload::controller_revision,
        validate_update: |before, after, causes| {
            immutable::fixed(before, after, &["data"], causes);
        },
        columns: table::workloads::REVISION,
        cells: table::workloads::revision,
        ..APPS
    },
    KindRules {
        kind: "DaemonSet",
        behaviour: Acts("a controller keeps a pod on each eligible node and rolls out changes"),
        fill: defaults::workload::daemon_set,
        derive_fields: defaults::workload::set_template_generation,
        validate: workload::daemon_set,
        validate_update: immutable::selector,
        validate_status: workload::daemon_set_status,
        columns: table::workloads::DAEMON_SET,
        cells: table::workloads::daemon_set,
        ..APPS
    },
    KindRules {
        kind: "Deployment",
        behaviour: Acts("a controller creates its ReplicaSets and rolls them out"),
        generation: Generation::SpecAndAnnotations,
        status_metadata: &["annotations", "finalizers", "ownerReferences"],
        fill: defaults::workload::deployment,
        validate: workload::deployment,
        validate_update: immutable::selector,
        validate_status: workload::deployment_status,
        columns: table::workloads::DEPLOYMENT,
        cells: table::workloads::deployment,
        ..APPS
    },
    KindRules {
        kind: "ReplicaSet",
        behaviour: Acts("a controller creates its pods"),
        fill: defaults::workload::replica_set,
        validate: workload::replica_set,
        validate_update: immutable::selector,
        validate_status: workload::replicas_status,
        columns: table::workloads::REPLICAS,
        cells: table::workloads::replica_set,
        ..APPS
    },
    KindRules {
        kind: "StatefulSet",
        behaviour: Acts(
            "a controller keeps its pods and creates their claims in order, and rolls out changes",
        ),
        fill: defaults::workload::stateful_set,
        validate: validate::stateful_set::object,
        validate_update: validate::stateful_set::change,
        validate_status: workload::stateful_set_status,
        columns: table::workloads::STATEFUL_SET,
        cells: table::workloads::stateful_set,
        ..APPS
    },
    KindRules {
        group: "autoscaling",
        kind: "HorizontalPodAutoscaler",
        behaviour: Acts(
            "a controller sets the replicas of its target by the resource usage of the target's pods",
        ),
        other_version: Some(OtherVersion::AutoscalingV1),
        generation: Generation::Spec,
        fill: defaults::autoscaling::fill,
        validate: validate::autoscaling::object,
        validate_new: validate::autoscaling::target,
        validate_update: validate::autoscaling::change,
        validate_status: |_, after, causes| validate::autoscaling::status(after, causes),
        columns: table::autoscalers::COLUMNS,
        cells: table::autoscalers::cells,
        ..PLAIN
    },
    KindRules {
        group: "batch",
        kind: "CronJob",
        behaviour: Acts("a controller creates its Jobs, in UTC unless `timeZone` is set"),
        generation: Generation::Spec,
        fill: defaults::workload::cron_job,
        validate: validate::cron::object,
        columns: table::workloads::CRON_JOB,
        cells: table::workloads::cron_job,
        ..PLAIN
    },
    KindRules {
        group: "batch",
        kind: "Job",
        behaviour: Acts("a controller creates and counts its pods"),
        fields: &["status.successful"],
        generation: Generation::Spec,
        fill: defaults::job::fill,
        on_create: defaults::job::on_create,
        validate: job::object,
        validate_update: job::change,
        validate_status: job_status::change,
        orphan_by_default: true,
        columns: columns::JOB,
        cells: table::jobs::cells,
        ..PLAIN
    },
];
