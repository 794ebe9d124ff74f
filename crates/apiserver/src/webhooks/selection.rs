//! Decides whether a webhook is called for a request, and in which version.

use std::collections::BTreeMap;

use longshore_engine::{Engine, Error, ReadVersion, Subject};
use longshore_model::{LabelSelector, kind::builtin};
use serde_json::Value;

use super::{
    attributes::{Attributes, Operation, Resource},
    conditions,
    configuration::Webhook,
    message::Objects,
    refusal::Refusal,
};

type Labels = BTreeMap<String, String>;

/// Returns the version in which a webhook receives the objects of a request;
/// `None` if it is not called.
///
/// # Errors
/// The webhook's rules match, but its selectors or conditions cannot be
/// evaluated.
pub(super) fn select<'a>(
    engine: &Engine,
    webhook: &Webhook,
    operation: Operation,
    attributes: &'a Attributes,
    objects: &Objects,
) -> Result<Option<&'a Resource>, Error> {
    let Some(resource) = matching_version(webhook, operation, attributes) else {
        return Ok(None);
    };
    let unreadable = |what: &str| {
        Refusal::internal(format!(
            "the {what} of webhook {:?} cannot be read",
            webhook.name
        ))
        .into_error(&webhook.name)
    };
    let namespaces = webhook.namespaces.as_ref();
    let namespaces = namespaces.ok_or_else(|| unreadable("namespaceSelector"))?;
    let selector = webhook.objects.as_ref();
    let selector = selector.ok_or_else(|| unreadable("objectSelector"))?;
    if !selects_object(selector, objects)
        || !selects_namespace(engine, namespaces, operation, attributes, objects)?
    {
        return Ok(None);
    }
    match conditions::matches(webhook, operation, attributes, resource, objects) {
        Ok(true) => Ok(Some(resource)),
        Ok(false) => Ok(None),
        Err(problem) if webhook.ignores_failures => {
            tracing::warn!(webhook = webhook.name, problem, "a webhook is not called");
            Ok(None)
        }
        Err(problem) => {
            let resource = &attributes.resource;
            Err(Error::Forbidden {
                subject: Subject {
                    group: resource.group.as_str().into(),
                    resource: resource.plural.as_str().into(),
                    kind: resource.kind.kind.as_ref().into(),
                    name: attributes.name.as_str().into(),
                },
                reason: problem,
                causes: Vec::new(),
            })
        }
    }
}

/// The version of the resource that the first matching rule names. Rules for
/// the version of the request precede rules for other versions.
fn matching_version<'a>(
    webhook: &Webhook,
    operation: Operation,
    attributes: &'a Attributes,
) -> Option<&'a Resource> {
    let Attributes {
        subresource,
        namespace,
        ..
    } = attributes;
    let matches = |resource: &Resource| {
        let mut rules = webhook.rules.iter();
        rules.any(|rule| rule.matches(operation, resource, subresource, namespace))
    };
    if matches(&attributes.resource) {
        return Some(&attributes.resource);
    }
    if webhook.is_exact {
        return None;
    }
    webhook.rules.iter().find_map(|rule| {
        let mut others = attributes.equivalents.iter();
        others.find(|other| rule.matches(operation, other, subresource, namespace))
    })
}

fn labels(object: Option<&Value>) -> Labels {
    let labels = object.and_then(|object| object.pointer("/metadata/labels")?.as_object());
    let labels = labels.into_iter().flatten();
    labels
        .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()))
        .collect()
}

/// Whether the selector matches the object before or after the request. The
/// options of a connection have no metadata and are never selected.
fn selects_object(selector: &LabelSelector, objects: &Objects) -> bool {
    let matches = |object: &Option<Value>| {
        let object = object
            .as_ref()
            .filter(|object| object["metadata"].is_object());
        object.is_some() && selector.matches(&labels(object))
    };
    selector.is_everything() || matches(&objects.object) || matches(&objects.old_object)
}

fn selects_namespace(
    engine: &Engine,
    selector: &LabelSelector,
    operation: Operation,
    attributes: &Attributes,
    objects: &Objects,
) -> Result<bool, Error> {
    let is_namespace = attributes.resource.plural == "namespaces";
    // Requests for other cluster-scoped objects are always selected.
    if selector.is_everything() || (attributes.namespace.is_empty() && !is_namespace) {
        return Ok(true);
    }
    let is_written = matches!(operation, Operation::Create | Operation::Update);
    if is_namespace && is_written && attributes.subresource.is_empty() {
        return Ok(selector.matches(&labels(objects.object.as_ref())));
    }
    let Some(info) = builtin("", "Namespace") else {
        return Ok(true);
    };
    let namespace = engine.get(info, None, &attributes.namespace, ReadVersion::Latest)?;
    Ok(selector.matches(namespace.labels()))
}
