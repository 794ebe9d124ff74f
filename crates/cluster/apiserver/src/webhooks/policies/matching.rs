//! Selects the requests that a policy or a binding matches.

use longshore_builtin::json;
use longshore_engine::Engine;
use longshore_model::LabelSelector;
use serde_json::{Map, Value};

use crate::webhooks::{
    attributes::{Attributes, Operation, Resource},
    labels::{self, selects_namespace, selects_object},
    message::Objects,
    rules::Rule,
};

/// The requests that match.
#[derive(Debug, Default)]
pub(in crate::webhooks) struct Resources {
    /// If the list is empty, all resources match.
    rules: Vec<NamedRule>,
    excluded: Vec<NamedRule>,
    /// True if only rules for the version of the request match.
    is_exact: bool,
    /// `None` if the selector cannot be read.
    namespaces: Option<LabelSelector>,
    /// `None` if the selector cannot be read.
    objects: Option<LabelSelector>,
}

/// A rule for objects with some names.
#[derive(Debug)]
struct NamedRule {
    rule: Rule,
    /// If the list is empty, all names match.
    names: Vec<String>,
}

impl NamedRule {
    fn read(rule: &Map<String, Value>) -> Self {
        let names = rule.get("resourceNames").and_then(Value::as_array);
        let names = names.into_iter().flatten().filter_map(Value::as_str);
        Self {
            names: names.map(str::to_owned).collect(),
            rule: Rule::read(rule),
        }
    }

    fn matches(&self, operation: Operation, resource: &Resource, attributes: &Attributes) -> bool {
        let Attributes {
            subresource,
            namespace,
            name,
            ..
        } = attributes;
        self.rule
            .matches(operation, resource, subresource, namespace)
            && (self.names.is_empty() || self.names.contains(name))
    }
}

impl Resources {
    pub(in crate::webhooks) fn read(resources: &Map<String, Value>) -> Self {
        let rules = |name: &str| json::items(resources, name).map(NamedRule::read).collect();
        Self {
            rules: rules("resourceRules"),
            excluded: rules("excludeResourceRules"),
            is_exact: json::text(resources, "matchPolicy") == "Exact",
            namespaces: labels::selector(resources.get("namespaceSelector")),
            objects: labels::selector(resources.get("objectSelector")),
        }
    }

    /// Returns true if a rule covers a request that may become any of several operations.
    pub(in crate::webhooks) fn cover(
        &self,
        operations: &[Operation],
        attributes: &Attributes,
    ) -> bool {
        let equivalents = attributes.equivalents.iter().filter(|_| !self.is_exact);
        let mut resources = std::iter::once(&attributes.resource).chain(equivalents);
        resources.any(|resource| {
            self.rules.iter().any(|named| {
                let mut operations = operations.iter();
                operations.any(|one| named.rule.covers(*one, resource, &attributes.subresource))
            })
        })
    }

    /// The version of the resource that matches; `None` if the request does not match.
    ///
    /// # Errors
    /// A rule matches, but a selector cannot be evaluated.
    pub(in crate::webhooks) fn matched<'a>(
        &self,
        engine: &Engine,
        operation: Operation,
        attributes: &'a Attributes,
        objects: &Objects,
    ) -> Result<Option<&'a Resource>, String> {
        let unreadable = |what: &str| format!("the {what} cannot be read");
        let in_namespace = match &self.namespaces {
            None => Err(unreadable("namespaceSelector")),
            Some(selector) => selects_namespace(engine, selector, operation, attributes, objects)
                .map_err(|error| error.to_string()),
        };
        if in_namespace == Ok(false) {
            return Ok(None);
        }
        let selected = match &self.objects {
            None => Err(unreadable("objectSelector")),
            Some(selector) => Ok(selects_object(selector, objects)),
        };
        if selected == Ok(false)
            || self
                .version(&self.excluded, operation, attributes)
                .is_some()
        {
            return Ok(None);
        }
        let found = match self.rules.is_empty() {
            true => Some(&attributes.resource),
            false => self.version(&self.rules, operation, attributes),
        };
        if found.is_some() {
            in_namespace?;
            selected?;
        }
        Ok(found)
    }

    /// The version of the resource that the first matching rule names. Rules for the
    /// version of the request precede rules for other versions.
    fn version<'a>(
        &self,
        rules: &[NamedRule],
        operation: Operation,
        attributes: &'a Attributes,
    ) -> Option<&'a Resource> {
        let own = &attributes.resource;
        if rules
            .iter()
            .any(|rule| rule.matches(operation, own, attributes))
        {
            return Some(own);
        }
        if self.is_exact {
            return None;
        }
        rules.iter().find_map(|rule| {
            let mut others = attributes.equivalents.iter();
            others.find(|other| rule.matches(operation, other, attributes))
        })
    }
}
