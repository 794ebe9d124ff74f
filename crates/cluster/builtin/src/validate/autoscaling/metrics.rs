//! Validation of the metrics of HorizontalPodAutoscalers.

use super::{reference, version};
use crate::{
    cause::Cause,
    validate::{
        field_value::{Causes, FieldValue},
        limit_range, meta,
    },
};

/// The metric types and their fields.
const SOURCES: [(&str, &str); 5] = [
    ("ContainerResource", "containerResource"),
    ("External", "external"),
    ("Object", "object"),
    ("Pods", "pods"),
    ("Resource", "resource"),
];
/// The order in which Kubernetes checks the fields.
const ORDER: [&str; 5] = [
    "object",
    "external",
    "pods",
    "resource",
    "containerResource",
];

pub(super) fn metric(metric: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let kind = metric.get("type");
    let own = SOURCES.iter().find(|(word, _)| *word == kind.text());
    if kind.text().is_empty() {
        causes.required(&kind, "must specify a metric source type");
    }
    if own.is_none() {
        // Kubernetes reports this error twice.
        for _ in 0..2 {
            causes.one_of(&kind, &SOURCES.map(|(word, _)| word));
        }
    }
    let is_set = |field: &&&str| metric.get(field).is_set();
    let mut present: Vec<&str> = ORDER.iter().filter(is_set).copied().collect();
    if let Some(first) = present.first() {
        source(first, &metric.get(first), causes);
    }
    if let Some((_, own)) = own
        && !metric.get(own).is_set()
    {
        let detail = "must populate information for the given metric source";
        causes.required(&metric.get(own), detail);
    }
    if present.len() != 1 {
        present.retain(|field| own.is_none_or(|(_, own)| field != own));
        for field in present {
            let detail = "must populate the given metric source only";
            causes.forbidden(&metric.get(field), detail);
        }
    }
}

fn source(field: &str, source: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let target = source.get("target");
    let is_set = |field: &str| target.get(field).is_set();
    let mut exclusive = None;
    let needed = match field {
        "object" => {
            reference(&source.get("describedObject"), causes);
            version(
                &source.get("describedObject").get("apiVersion"),
                true,
                causes,
            );
            (
                ["value", "averageValue"],
                "averageValue",
                "must set either a target value or averageValue",
            )
        }
        "external" => {
            exclusive = Some((
                "value",
                "may not set both a target value for metric and a per-pod target",
            ));
            (
                ["value", "averageValue"],
                "averageValue",
                "must set either a target value for metric or a per-pod target",
            )
        }
        "pods" => (
            ["averageValue"; 2],
            "averageValue",
            "must specify a positive target averageValue",
        ),
        _ => {
            exclusive = Some((
                "averageValue",
                "may not set both a target raw value and a target utilization",
            ));
            (
                ["averageUtilization", "averageValue"],
                "averageUtilization",
                "must set either a target raw value or a target utilization",
            )
        }
    };
    if field.ends_with("esource") {
        resource(field, source, causes);
    } else {
        let name = source.get("metric").get("name");
        if name.text().is_empty() {
            causes.required(&name, "must specify a metric name");
        } else {
            meta::path_segment(&name.path, name.text(), causes.0);
        }
    }
    amounts(&target, causes);
    let (fields, shown, detail) = needed;
    if !fields.iter().any(|field| is_set(field)) {
        causes.required(&target.get(shown), detail);
    }
    if let Some((shown, detail)) = exclusive.filter(|_| fields.iter().all(|field| is_set(field))) {
        causes.forbidden(&target.get(shown), detail);
    }
}

fn resource(field: &str, source: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let (name, container) = (source.get("name"), source.get("container"));
    if name.text().is_empty() {
        causes.required(&name, "must specify a resource name");
    } else if field == "containerResource" {
        limit_range::container_resource(&name.path, name.text(), causes.0);
    }
    if field == "containerResource" {
        if container.text().is_empty() {
            causes.required(&container, "must specify a container");
        } else {
            causes.label(&container);
        }
    }
}

fn amounts(target: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let kind = target.get("type");
    if kind.text().is_empty() {
        causes.required(&kind, "must specify a metric target type");
    }
    if !matches!(kind.text(), "Utilization" | "Value" | "AverageValue") {
        let detail = "must be either Utilization, Value, or AverageValue";
        causes
            .0
            .push(Cause::invalid(&kind.path, kind.text(), detail));
    }
    for field in ["value", "averageValue"] {
        let quantity = target.get(field);
        if quantity.quantity().is_some_and(|quantity| quantity <= 0.0) {
            causes.invalid(&quantity, "must be positive");
        }
    }
    let utilization = target.get("averageUtilization");
    if utilization.number().is_some_and(|percent| percent < 1) {
        causes.invalid(&utilization, "must be greater than 0");
    }
}
