//! Evaluates a metric to the replicas that it requires and its status. Pure.

use jiff::Timestamp;
use k8s_openapi::{
    api::autoscaling::v2::{
        ContainerResourceMetricStatus, ExternalMetricSource, MetricSpec, MetricStatus,
        MetricTarget, MetricValueStatus, ObjectMetricSource, ResourceMetricStatus,
    },
    apimachinery::pkg::api::resource::Quantity as Text,
};
use longshore_model::quantity::Amount;

use super::{
    autoscaler::Tolerances,
    calculate::{self, Target, Wanted},
    pod::PodFacts,
    usage::PodMetricsList,
};
use crate::selector_text;

/// Facts about the pods of the target.
#[derive(Debug)]
pub(super) struct Facts<'a> {
    pub(super) namespace: &'a str,
    /// The current number of replicas.
    pub(super) replicas: i32,
    pub(super) pods: &'a [PodFacts],
    /// The usage of the pods, or the reason why it is unknown.
    pub(super) usage: &'a Result<PodMetricsList, String>,
    pub(super) tolerances: Tolerances,
    pub(super) now: Timestamp,
}

/// The replicas that a metric requires.
#[derive(Debug, PartialEq)]
pub(super) struct Proposal {
    pub(super) replicas: i32,
    /// A description of the metric.
    pub(super) name: String,
    pub(super) status: MetricStatus,
}

/// The reason why a metric cannot be evaluated.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// The reason of the condition and of the event.
    pub(super) reason: &'static str,
    /// The problem as the event states it.
    pub(super) problem: String,
    /// The problem with its context.
    pub(super) error: String,
}

/// The problem of metrics that an adapter would have to provide.
const NO_CUSTOM_METRICS: &str = "unable to fetch metrics from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered";

/// Evaluates a metric.
///
/// # Errors
/// Returns Kubernetes' messages if the metric cannot be evaluated.
pub(super) fn evaluate(metric: &MetricSpec, facts: &Facts<'_>) -> Result<Proposal, Failure> {
    let failure = |reason, context: String| {
        move |problem: String| Failure {
            reason,
            error: format!("{context}: {problem}"),
            problem,
        }
    };
    if let Some(source) = &metric.resource {
        let context = format!("failed to get {} resource metric value", source.name);
        let found = resource(&source.name, None, &source.target, facts)
            .map_err(failure("FailedGetResourceMetric", context))?;
        let status = ResourceMetricStatus {
            name: source.name.clone(),
            current: found.status,
        };
        return Ok(Proposal {
            replicas: found.replicas,
            name: found.name,
            status: MetricStatus {
                type_: metric.type_.clone(),
                resource: Some(status),
                ..MetricStatus::default()
            },
        });
    }
    if let Some(source) = &metric.container_resource {
        let container = &source.container;
        let context = format!("failed to get {container} container metric value");
        let found = resource(&source.name, Some(container), &source.target, facts)
            .map_err(failure("FailedGetContainerResourceMetric", context))?;
        let status = ContainerResourceMetricStatus {
            name: source.name.clone(),
            container: container.clone(),
            current: found.status,
        };
        return Ok(Proposal {
            replicas: found.replicas,
            name: found.name,
            status: MetricStatus {
                type_: metric.type_.clone(),
                container_resource: Some(status),
                ..MetricStatus::default()
            },
        });
    }
    Err(if let Some(source) = &metric.pods {
        let name = &source.metric.name;
        let problem = format!("unable to get metric {name}: {NO_CUSTOM_METRICS}");
        let context = "failed to get pods metric value".to_owned();
        failure("FailedGetPodsMetric", context)(problem)
    } else if let Some(source) = &metric.object {
        of_object(source, facts.namespace)
    } else if let Some(source) = &metric.external {
        of_external(source, facts.namespace)
    } else {
        let problem = format!("unknown metric source type {:?}", metric.type_);
        Failure {
            reason: "InvalidMetricSourceType",
            error: problem.clone(),
            problem,
        }
    })
}

fn of_object(source: &ObjectMetricSource, namespace: &str) -> Failure {
    let (name, object) = (&source.metric.name, &source.described_object);
    let problem = format!(
        "unable to get metric {name} on {} {namespace}/{}: {NO_CUSTOM_METRICS}",
        object.kind, object.name
    );
    let context = match source.target.average_value {
        Some(_) => format!("failed to get {name} object metric: "),
        None => String::new(),
    };
    Failure {
        reason: "FailedGetObjectMetric",
        error: format!("failed to get object metric value: {context}{problem}"),
        problem,
    }
}

fn of_external(source: &ExternalMetricSource, namespace: &str) -> Failure {
    let name = &source.metric.name;
    let selector = serde_json::to_value(&source.metric.selector).ok();
    let selector = selector.and_then(|selector| serde_json::from_value(selector).ok());
    let selector = selector.as_ref();
    let selector = selector.map_or_else(|| "nil".to_owned(), selector_text::printed);
    let problem = format!(
        "unable to get external metric {namespace}/{name}/{selector}: unable to fetch metrics from external metrics API: the server could not find the requested resource (get {name}.external.metrics.k8s.io)"
    );
    let context = match source.target.average_value {
        Some(_) => format!("failed to get {name} external metric"),
        None => format!("failed to get external metric {name}"),
    };
    Failure {
        reason: "FailedGetExternalMetric",
        error: format!("failed to get {name} external metric value: {context}: {problem}"),
        problem,
    }
}

struct OfResource {
    replicas: i32,
    name: String,
    status: MetricValueStatus,
}

fn resource(
    name: &str,
    container: Option<&str>,
    target: &MetricTarget,
    facts: &Facts<'_>,
) -> Result<OfResource, String> {
    let given = target.average_value.as_ref();
    let given = given.and_then(|text| text.0.parse::<Amount>().ok());
    let (wanted, what) = match (given, target.average_utilization) {
        (Some(amount), _) => (Target::Average(amount.thousandths()), "usage"),
        (None, Some(percent)) => (Target::Utilization(percent), "utilization"),
        (None, None) => {
            let text = "invalid resource metric source: neither an average utilization target nor an average value (usage) target was set";
            return Err(text.to_owned());
        }
    };
    let wanted = Wanted {
        resource: name,
        container,
        target: wanted,
        tolerances: facts.tolerances,
        replicas: facts.replicas,
    };
    let usage = facts.usage.as_ref().map_err(Clone::clone);
    let usage = usage.and_then(|list| list.usage(name, container));
    let usage =
        usage.map_err(|error| format!("unable to get metrics for resource {name}: {error}"));
    let found = usage.and_then(|usage| calculate::replicas(&wanted, &usage, facts.pods, facts.now));
    let found = found.map_err(|problem| format!("failed to get {name} {what}: {problem}"))?;
    let description = match (wanted.target, container) {
        (Target::Average(_), _) => format!("{name} resource"),
        (_, None) => format!("{name} resource utilization (percentage of request)"),
        (_, Some(_)) => format!("{name} container resource utilization (percentage of request)"),
    };
    let amount = Amount::of_thousandths(found.average);
    let amount = match name {
        "memory" => amount.with_binary_suffix(),
        _ => amount,
    };
    Ok(OfResource {
        replicas: found.replicas,
        name: description,
        status: MetricValueStatus {
            average_utilization: found.utilization,
            average_value: Some(Text(amount.to_string())),
            value: None,
        },
    })
}
