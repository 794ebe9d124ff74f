//! The default objects as tables. Mandatory objects get their spec back if it is changed, suggested
//! objects only as long as their annotation allows it.

use serde_json::{Value, json};

use super::{AUTO_UPDATE, EXEMPT};

/// A default object.
#[derive(Debug, Clone, Copy)]
pub struct DefaultObject {
    /// The name of the object.
    pub name: &'static str,
    /// True if its spec cannot be changed.
    pub is_mandatory: bool,
    spec: Spec,
}

#[derive(Debug, Clone, Copy)]
enum Spec {
    /// A level whose requests are never limited.
    Exempt,
    /// A level with its shares, the percentage that other levels may borrow, and the queues;
    /// without queues, requests above the limit are rejected.
    Limited(u32, u32, Option<Queues>),
    Schema(Schema),
}

/// The number of queues, and the hand size.
type Queues = (u32, u32);

#[derive(Debug, Clone, Copy)]
struct Schema {
    level: &'static str,
    precedence: u32,
    /// `ByUser` or `ByNamespace`.
    distinguisher: Option<&'static str>,
    subjects: &'static [Subject],
    requests: Requests,
}

#[derive(Debug, Clone, Copy)]
enum Subject {
    Group(&'static str),
    User(&'static str),
    /// All service accounts of the namespace `kube-system`.
    SystemAccounts,
}

#[derive(Debug, Clone, Copy)]
enum Requests {
    All,
    Resources(&'static [Resources]),
    /// Verb and paths of requests that are not for resources.
    Paths(&'static str, &'static [&'static str]),
}

/// Requests for resources in all namespaces.
#[derive(Debug, Clone, Copy)]
struct Resources {
    verbs: &'static [&'static str],
    group: &'static str,
    resources: &'static [&'static str],
    /// True if requests outside of namespaces match, too.
    cluster_scope: bool,
}

const ALL: &str = "*";
const BY_USER: Option<&str> = Some("ByUser");
const BY_NAMESPACE: Option<&str> = Some("ByNamespace");
const ALL_USERS: &[Subject] = &[
    Subject::Group("system:unauthenticated"),
    Subject::Group("system:authenticated"),
];
const NODES: &[Subject] = &[Subject::Group("system:nodes")];
const CONTROLLER_MANAGER: Subject = Subject::User("system:kube-controller-manager");
const SCHEDULER: Subject = Subject::User("system:kube-scheduler");
const QUEUE_LENGTH: u32 = 50;

const fn level(name: &'static str, spec: Spec) -> DefaultObject {
    DefaultObject {
        name,
        is_mandatory: false,
        spec,
    }
}

const fn schema(
    name: &'static str,
    (level, precedence): (&'static str, u32),
    distinguisher: Option<&'static str>,
    subjects: &'static [Subject],
    requests: Requests,
) -> DefaultObject {
    let schema = Schema {
        level,
        precedence,
        distinguisher,
        subjects,
        requests,
    };
    self::level(name, Spec::Schema(schema))
}

const fn mandatory(default: DefaultObject) -> DefaultObject {
    DefaultObject {
        is_mandatory: true,
        ..default
    }
}

/// The PriorityLevelConfigurations.
pub const LEVELS: &[DefaultObject] = &[
    mandatory(level("catch-all", Spec::Limited(5, 0, None))),
    mandatory(level(EXEMPT, Spec::Exempt)),
    level("system", Spec::Limited(30, 33, Some((64, 6)))),
    level("node-high", Spec::Limited(40, 25, Some((64, 6)))),
    level("leader-election", Spec::Limited(10, 0, Some((16, 4)))),
    level("workload-high", Spec::Limited(40, 50, Some((128, 6)))),
    level("workload-low", Spec::Limited(100, 90, Some((128, 6)))),
    level("global-default", Spec::Limited(20, 50, Some((128, 6)))),
];

/// The FlowSchemas, by their precedence.
pub const SCHEMAS: &[DefaultObject] = &[
    mandatory(schema(
        EXEMPT,
        (EXEMPT, 1),
        None,
        &[Subject::Group("system:masters")],
        Requests::All,
    )),
    schema(
        "probes",
        (EXEMPT, 2),
        None,
        ALL_USERS,
        Requests::Paths("get", &["/healthz", "/readyz", "/livez"]),
    ),
    schema(
        "system-leader-election",
        ("leader-election", 100),
        BY_USER,
        &[CONTROLLER_MANAGER, SCHEDULER, Subject::SystemAccounts],
        Requests::Resources(&[Resources {
            verbs: &["get", "create", "update"],
            group: "coordination.k8s.io",
            resources: &["leases"],
            cluster_scope: false,
        }]),
    ),
    schema(
        "system-node-high",
        ("node-high", 400),
        BY_USER,
        NODES,
        Requests::Resources(&[
            Resources {
                verbs: &[ALL],
                group: "",
                resources: &["nodes", "nodes/status"],
                cluster_scope: true,
            },
            Resources {
                verbs: &[ALL],
                group: "coordination.k8s.io",
                resources: &["leases"],
                cluster_scope: false,
            },
        ]),
    ),
    schema(
        "system-nodes",
        ("system", 500),
        BY_USER,
        NODES,
        Requests::All,
    ),
    schema(
        "kube-controller-manager",
        ("workload-high", 800),
        BY_NAMESPACE,
        &[CONTROLLER_MANAGER],
        Requests::All,
    ),
    schema(
        "kube-scheduler",
        ("workload-high", 800),
        BY_NAMESPACE,
        &[SCHEDULER],
        Requests::All,
    ),
    schema(
        "kube-system-service-accounts",
        ("workload-high", 900),
        BY_NAMESPACE,
        &[Subject::SystemAccounts],
        Requests::All,
    ),
    schema(
        "service-accounts",
        ("workload-low", 9000),
        BY_USER,
        &[Subject::Group("system:serviceaccounts")],
        Requests::All,
    ),
    schema(
        "global-default",
        ("global-default", 9900),
        BY_USER,
        ALL_USERS,
        Requests::All,
    ),
    mandatory(schema(
        "catch-all",
        ("catch-all", 10_000),
        BY_USER,
        ALL_USERS,
        Requests::All,
    )),
];

impl DefaultObject {
    /// The object, without its API version and kind.
    #[must_use]
    pub fn object(&self) -> Value {
        json!({
            "metadata": {"name": self.name, "annotations": {AUTO_UPDATE: "true"}},
            "spec": self.spec(),
        })
    }

    /// The spec.
    #[must_use]
    pub fn spec(&self) -> Value {
        match &self.spec {
            Spec::Exempt => json!({
                "type": "Exempt",
                "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0},
            }),
            Spec::Limited(shares, lendable, queues) => json!({
                "type": "Limited",
                "limited": {
                    "nominalConcurrencyShares": shares,
                    "lendablePercent": lendable,
                    "limitResponse": response(*queues),
                },
            }),
            Spec::Schema(schema) => schema.spec(),
        }
    }

    /// The level to which a FlowSchema refers.
    #[must_use]
    pub fn level(&self) -> Option<&'static str> {
        match &self.spec {
            Spec::Schema(schema) => Some(schema.level),
            Spec::Exempt | Spec::Limited(..) => None,
        }
    }
}

fn response(queues: Option<Queues>) -> Value {
    let Some((queues, hand)) = queues else {
        return json!({"type": "Reject"});
    };
    json!({
        "type": "Queue",
        "queuing": {"queues": queues, "handSize": hand, "queueLengthLimit": QUEUE_LENGTH},
    })
}

impl Schema {
    fn spec(&self) -> Value {
        let subjects: Vec<Value> = self.subjects.iter().map(Subject::json).collect();
        let mut rules = json!({"subjects": subjects});
        let all = [Resources {
            verbs: &[ALL],
            group: ALL,
            resources: &[ALL],
            cluster_scope: true,
        }];
        let (resources, paths): (&[Resources], _) = match self.requests {
            Requests::All => (&all, Some((ALL, &[ALL] as &[&str]))),
            Requests::Resources(resources) => (resources, None),
            Requests::Paths(verb, paths) => (&[], Some((verb, paths))),
        };
        if !resources.is_empty() {
            rules["resourceRules"] = resources.iter().map(Resources::json).collect();
        }
        if let Some((verb, paths)) = paths {
            rules["nonResourceRules"] = json!([{"verbs": [verb], "nonResourceURLs": paths}]);
        }
        let mut spec = json!({
            "priorityLevelConfiguration": {"name": self.level},
            "matchingPrecedence": self.precedence,
            "rules": [rules],
        });
        if let Some(distinguisher) = self.distinguisher {
            spec["distinguisherMethod"] = json!({"type": distinguisher});
        }
        spec
    }
}

impl Subject {
    fn json(&self) -> Value {
        match self {
            Self::Group(name) => json!({"kind": "Group", "group": {"name": name}}),
            Self::User(name) => json!({"kind": "User", "user": {"name": name}}),
            Self::SystemAccounts => json!({
                "kind": "ServiceAccount",
                "serviceAccount": {"name": ALL, "namespace": "kube-system"},
            }),
        }
    }
}

impl Resources {
    fn json(&self) -> Value {
        let mut rule = json!({
            "verbs": self.verbs,
            "apiGroups": [self.group],
            "resources": self.resources,
            "namespaces": [ALL],
        });
        if self.cluster_scope {
            rule["clusterScope"] = true.into();
        }
        rule
    }
}
