//! Decides whether a webhook is called for a request, and in which version.

use longshore_engine::{Engine, Error, Subject};

use super::{
    attributes::{Attributes, Operation, Resource},
    conditions,
    configuration::Webhook,
    labels::{selects_namespace, selects_object},
    message::Objects,
    refusal::Refusal,
};

/// Returns the version in which a webhook receives the objects of a request;
/// `None` if it is not called.
///
/// # Errors
/// The webhook's rules match, but its selectors or conditions cannot be evaluated.
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
