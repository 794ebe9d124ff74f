//! Reads the webhooks of the stored configurations, in the order of calls: by
//! the name of the configuration, then by position.

use std::{collections::HashMap, sync::Arc, time::Duration};

use longshore_builtin::json;
use longshore_cel::Conditions;
use longshore_engine::{Engine, ListRequest};
use longshore_model::{LabelSelector, kind::builtin};
use serde_json::{Map, Value};

use super::{
    attributes::{Attributes, Operation},
    client::{Address, Client},
    labels,
    message::ReviewVersion,
    policies::Policies,
    rules::Rule,
};

const GROUP: &str = "admissionregistration.k8s.io";
/// The default of `timeoutSeconds`.
const DEFAULT_SECONDS: u64 = 10;

/// A webhook of a configuration.
#[derive(Debug)]
pub(super) struct Webhook {
    pub(super) name: String,
    /// Distinguishes the webhooks of all configurations.
    pub(super) id: String,
    pub(super) rules: Vec<Rule>,
    /// True if only rules for the version of the request match.
    pub(super) is_exact: bool,
    /// `None` if the selector cannot be read.
    pub(super) namespaces: Option<LabelSelector>,
    /// `None` if the selector cannot be read.
    pub(super) objects: Option<LabelSelector>,
    /// The match conditions, if the webhook has any.
    pub(super) conditions: Option<Conditions>,
    /// True if a failed call is ignored.
    pub(super) ignores_failures: bool,
    pub(super) timeout: Duration,
    /// True if a dry run may call the webhook.
    pub(super) supports_dry_run: bool,
    /// True if the webhook is called again after later webhooks have changed the object.
    pub(super) is_reinvoked: bool,
    /// The first supported version that the webhook lists.
    pub(super) version: Option<ReviewVersion>,
    pub(super) client: Arc<Client>,
}

/// The webhooks of all configurations.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(super) mutating: Vec<Webhook>,
    pub(super) validating: Vec<Webhook>,
    pub(super) policies: Policies,
}

impl Index {
    /// Reads the configurations. Clients of the previous index are reused with
    /// their connections.
    pub(super) fn read(engine: &Engine, previous: &Self) -> Self {
        let known = previous.mutating.iter().chain(&previous.validating);
        let mut clients: HashMap<Address, Arc<Client>> = known
            .map(|webhook| (webhook.client.address().clone(), webhook.client.clone()))
            .collect();
        let mut read = |kind: &str| {
            let list = builtin(GROUP, kind).map(|info| ListRequest::of(Arc::new(info.clone())));
            let page = list.and_then(|list| engine.list(&list).ok());
            let objects = page.map(|page| page.items).unwrap_or_default();
            let mut webhooks = Vec::new();
            for object in objects {
                webhooks.extend(of_configuration(
                    object.name(),
                    &object.value(),
                    &mut clients,
                ));
            }
            webhooks
        };
        Self {
            mutating: read("MutatingWebhookConfiguration"),
            validating: read("ValidatingWebhookConfiguration"),
            policies: Policies::read(engine, &previous.policies),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.mutating.is_empty() && self.validating.is_empty() && self.policies.is_empty()
    }

    /// Returns true if a rule of any webhook or policy covers a request that may become any of
    /// several operations.
    pub(super) fn covers(&self, operations: &[Operation], attributes: &Attributes) -> bool {
        self.policies.cover(operations, attributes) || self.has_hook(operations, attributes)
    }

    fn has_hook(&self, operations: &[Operation], attributes: &Attributes) -> bool {
        if attributes.configures_admission() {
            return false;
        }
        let mut webhooks = self.mutating.iter().chain(&self.validating);
        webhooks.any(|webhook| {
            let equivalents = attributes.equivalents.iter();
            let equivalents = equivalents.filter(|_| !webhook.is_exact);
            let mut resources = std::iter::once(&attributes.resource).chain(equivalents);
            resources.any(|resource| {
                webhook.rules.iter().any(|rule| {
                    let mut operations = operations.iter();
                    operations.any(|one| rule.covers(*one, resource, &attributes.subresource))
                })
            })
        })
    }
}

fn of_configuration(
    configuration: &str,
    value: &Value,
    clients: &mut HashMap<Address, Arc<Client>>,
) -> Vec<Webhook> {
    let webhooks = value["webhooks"].as_array().into_iter().flatten();
    let webhooks = webhooks.filter_map(Value::as_object).enumerate();
    webhooks
        .map(|(index, webhook)| {
            let address = Address::read(webhook.get("clientConfig"));
            let client = clients
                .entry(address)
                .or_insert_with_key(|address| Arc::new(Client::new(address.clone())));
            read(format!("{configuration}/{index}"), webhook, client.clone())
        })
        .collect()
}

fn read(id: String, webhook: &Map<String, Value>, client: Arc<Client>) -> Webhook {
    let selector = |field: &str| labels::selector(webhook.get(field));
    let items = |field: &str| {
        let items = webhook.get(field).and_then(Value::as_array);
        items.into_iter().flatten()
    };
    let conditions: Vec<(&str, &str)> = items("matchConditions")
        .filter_map(|one| Some((one["name"].as_str()?, one["expression"].as_str()?)))
        .collect();
    let versions = items("admissionReviewVersions").filter_map(Value::as_str);
    let version = versions
        .filter_map(|version| match version {
            "v1" => Some(ReviewVersion::V1),
            "v1beta1" => Some(ReviewVersion::V1Beta1),
            _ => None,
        })
        .next();
    let seconds = json::number(webhook, "timeoutSeconds");
    let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
    Webhook {
        name: json::text(webhook, "name").to_owned(),
        id,
        rules: items("rules")
            .filter_map(Value::as_object)
            .map(Rule::read)
            .collect(),
        is_exact: json::text(webhook, "matchPolicy") == "Exact",
        namespaces: selector("namespaceSelector"),
        objects: selector("objectSelector"),
        conditions: (!conditions.is_empty()).then(|| Conditions::compile(conditions)),
        ignores_failures: json::text(webhook, "failurePolicy") == "Ignore",
        timeout: Duration::from_secs(seconds.unwrap_or(DEFAULT_SECONDS)),
        supports_dry_run: matches!(json::text(webhook, "sideEffects"), "None" | "NoneOnDryRun"),
        is_reinvoked: json::text(webhook, "reinvocationPolicy") == "IfNeeded",
        version,
        client,
    }
}
