//! The kinds of the core group, except volumes.

use crate::{
    Admission, Behaviour, Generation, KindRules, Lifecycle, NameRule, OtherVersion, PLAIN,
    PodSelector, SentStatus, defaults, json,
    table::{self, columns},
    validate::{self, endpoints, workload},
};
use Behaviour::{Acts, Data};

pub(super) static KINDS: &[KindRules] = &[
    KindRules {
        kind: "ConfigMap",
        behaviour: Acts("pods read it"),
        validate: validate::config::config_map,
        validate_update: validate::config::config_map_change,
        columns: columns::CONFIG_MAP,
        cells: table::plain::config_map,
        ..PLAIN
    },
    KindRules {
        kind: "Endpoints",
        behaviour: Acts("a controller writes the addresses of the pods that a Service selects"),
        create_on_update: true,
        fill: defaults::network::endpoints,
        validate: endpoints::endpoints,
        columns: table::network::ENDPOINTS,
        cells: table::network::endpoints,
        ..PLAIN
    },
    KindRules {
        kind: "Event",
        behaviour: Acts(
            "written by controllers and the node; expires one hour after its last write",
        ),
        other_version: Some(OtherVersion::EventsV1),
        fields: &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        create_on_update: true,
        fill: defaults::event::fill,
        validate: validate::event::object,
        lifecycle: Lifecycle::Expiring,
        columns: columns::EVENT,
        cells: table::plain::event,
        ..PLAIN
    },
    KindRules {
        kind: "LimitRange",
        behaviour: Acts("its defaults and limits apply to new pods and claims"),
        create_on_update: true,
        fill: defaults::limits::limit_range,
        validate: validate::limit_range::object,
        columns: table::policies::CREATED,
        cells: table::policies::created,
        ..PLAIN
    },
    KindRules {
        kind: "Namespace",
        behaviour: Acts(
            "a controller creates its default service account, and deletes its contents with it; its labels set the Pod Security Standards of its pods",
        ),
        fields: &["status.phase"],
        name: NameRule::Label,
        fill: defaults::namespace::fill,
        on_create: defaults::namespace::on_create,
        on_update: |before, object| json::copy(before, object, "spec"),
        validate: validate::node::namespace,
        validate_new: validate::node::new_namespace,
        validate_update: validate::node::namespace_change,
        validate_status: |_, after, causes| validate::node::namespace_status(after, causes),
        lifecycle: Lifecycle::Namespace,
        columns: columns::NAMESPACE,
        cells: table::plain::namespace,
        ..PLAIN
    },
    KindRules {
        kind: "Node",
        behaviour: Acts(
            "the node agent registers itself; a controller taints it if it is not ready or silent",
        ),
        fields: &["spec.unschedulable"],
        sent_status: SentStatus::Kept,
        fill: defaults::node::fill,
        on_create: defaults::node::on_create,
        validate: validate::node::node,
        validate_update: validate::node::node_change,
        columns: columns::NODE,
        cells: table::nodes::cells,
        ..PLAIN
    },
    KindRules {
        kind: "Pod",
        behaviour: Acts("the scheduler assigns it, the node runs it as processes"),
        fields: &[
            "spec.nodeName",
            "status.phase",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
        ],
        generation: Generation::Spec,
        // Status updates of an old kubelet would remove the owner references.
        status_metadata: &["labels", "annotations", "finalizers"],
        fill: defaults::pod::fill,
        on_create: defaults::pod::on_create,
        on_insert: defaults::pod::on_insert,
        on_update: defaults::pod::on_update,
        on_status: |before, pod, _| defaults::pod::on_status(before, pod),
        validate: validate::pod::object,
        validate_new: validate::pod::ephemeral::new_pod,
        validate_update: validate::pod::change::object,
        validate_status: validate::pod::status::change,
        admission: Admission::PodClasses,
        reads_all_of: &[
            ("scheduling.k8s.io", "PriorityClass"),
            ("policy", "PodDisruptionBudget"),
        ],
        lifecycle: Lifecycle::GracePeriod,
        returns_deleted: true,
        columns: columns::POD,
        cells: table::pods::cells,
        row_conditions: table::pods::conditions,
        ..PLAIN
    },
    KindRules {
        kind: "PodTemplate",
        behaviour: Data,
        generation: Generation::Content,
        fill: defaults::pod::fill_template,
        validate: |object, causes| validate::pod::template(object, "template", causes),
        returns_deleted: true,
        columns: table::workloads::TEMPLATE,
        cells: table::workloads::template,
        ..PLAIN
    },
    KindRules {
        kind: "ReplicationController",
        behaviour: Acts("a controller creates its pods"),
        fields: &["status.replicas"],
        generation: Generation::Spec,
        fill: defaults::workload::replication_controller,
        validate: workload::replication_controller,
        validate_status: workload::replicas_status,
        pod_selector: PodSelector::Map,
        orphan_by_default: true,
        columns: table::workloads::REPLICAS,
        cells: table::workloads::replication_controller,
        ..PLAIN
    },
    KindRules {
        kind: "ResourceQuota",
        behaviour: Acts("new objects are charged to it; a controller counts what objects use"),
        validate: validate::quota::object,
        validate_update: validate::quota::change,
        returns_deleted: true,
        columns: table::policies::QUOTA,
        cells: table::policies::quota,
        ..PLAIN
    },
    KindRules {
        kind: "Secret",
        behaviour: Acts("pods read it; a controller writes the tokens of service accounts"),
        fields: &["type"],
        fill: defaults::config::secret,
        validate: validate::config::secret,
        validate_update: validate::config::secret_change,
        columns: columns::SECRET,
        cells: table::plain::secret,
        ..PLAIN
    },
    KindRules {
        kind: "Service",
        behaviour: Acts(
            "answers at its address and its node ports, which the node forwards to the ready endpoints; its name and those of its pods resolve",
        ),
        fields: &["spec.clusterIP", "spec.type"],
        name: NameRule::Label,
        fill: defaults::service::fill,
        on_create: defaults::service::on_create,
        on_update: defaults::service::on_update,
        on_status: |_, service, _| defaults::service::on_status(service),
        validate: validate::service::object,
        validate_update: validate::service::change,
        admission: Admission::ServiceAddresses,
        reads_all_of: &[("", "Service")],
        returns_deleted: true,
        columns: columns::SERVICE,
        cells: table::services::cells,
        ..PLAIN
    },
    KindRules {
        kind: "ServiceAccount",
        behaviour: Acts("new pods need it, and get a token of it"),
        returns_deleted: true,
        columns: columns::SERVICE_ACCOUNT,
        cells: table::plain::service_account,
        ..PLAIN
    },
];
