//! Describes requests to admission webhooks.

use std::sync::Arc;

use longshore_cel::{AccessDecision, AccessRequest, Authorizer};
use longshore_engine::{DeleteOptions, scale_kind};
use longshore_model::{Gvk, KindInfo};
use serde_json::{Map, Value, json};

use super::{certificates::SignerRules, role_rules::RoleRules};
use crate::{
    authorization,
    call::{Call, Shared},
    query::Query,
    user::User,
    webhooks::{Admission, Attributes, Dependencies, Operation, Required, Resource, WriteRule},
};

/// The object of a request.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) kind: &'a KindInfo,
    pub(super) namespace: Option<&'a str>,
    /// Empty if it will be generated, or for a collection.
    pub(super) name: &'a str,
    /// Empty if the request has no subresource.
    pub(super) subresource: &'a str,
}

/// The options of a request, and the dry-run flag.
#[derive(Default)]
pub(super) struct RequestOptions {
    pub(super) dry_run: bool,
    /// `None` if the request has no options.
    pub(super) fields: Option<Map<String, Value>>,
}

/// Answers the questions of expressions about the permissions of the request's user.
struct Access {
    shared: Arc<Shared>,
    user: Arc<User>,
    dependencies: Dependencies,
}

impl Access {
    fn of(call: &Call, dependencies: &Dependencies) -> Self {
        Self {
            shared: call.shared.clone(),
            user: call.user.clone(),
            dependencies: dependencies.clone(),
        }
    }
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

impl Authorizer for Access {
    fn decide(&self, request: &AccessRequest) -> AccessDecision {
        let account = request.service_account.as_ref();
        let account = account.map(|(namespace, name)| User {
            name: format!("system:serviceaccount:{namespace}:{name}"),
            groups: vec![
                "system:serviceaccounts".to_owned(),
                format!("system:serviceaccounts:{namespace}"),
            ],
            ..User::default()
        });
        let attributes = authorization::Attributes {
            verb: request.verb.clone(),
            group: request.group.clone(),
            resource: request.resource.clone(),
            subresource: request.subresource.clone(),
            namespace: request.namespace.clone(),
            name: request.name.clone(),
            path: Some(request.path.clone()).filter(|path| !path.is_empty()),
        };
        let user = account.as_ref().unwrap_or(&self.user);
        self.dependencies.add(self.shared.authorizer.dependency());
        let decision = self.shared.authorizer.decide(user, &attributes);
        AccessDecision {
            allowed: decision.allowed,
            reason: decision.reason,
        }
    }
}

/// Returns the admission of a request that may become any of several operations; `None` if no
/// webhook or policy can match it.
pub(super) fn of(
    call: &Call,
    operations: &[Operation],
    place: Place<'_>,
    options: impl FnOnce() -> RequestOptions,
) -> Option<Admission> {
    let Shared {
        webhooks, engine, ..
    } = &*call.shared;
    // Users must be able to read the parameters of their policies.
    let group = &*place.kind.gvk.group;
    let dependencies = Dependencies::default();
    let required = Required {
        rules: rules(call, operations, place),
        dependencies: dependencies.clone(),
        converter: call.converter(),
        reads_parameters: group == "admissionregistration.k8s.io" && !call.user.is_master(),
    };
    webhooks.admission(engine, &call.warnings, operations, required, || {
        let own_kind = kind_of_subresource(place.kind, place.subresource);
        let resource = |info: &KindInfo| {
            let of = Resource::of(info);
            match &own_kind {
                Some(kind) => Resource {
                    kind: kind.clone(),
                    ..of
                },
                None => of,
            }
        };
        let versions = engine.versions_of(place.kind);
        let options = options();
        let resource_of_request = resource(place.kind);
        let namespace = match resource_of_request.is_namespaces() {
            true => place.name,
            false => place.namespace.unwrap_or_default(),
        };
        Attributes {
            equivalents: versions.iter().skip(1).map(|info| resource(info)).collect(),
            resource: resource_of_request,
            has_own_kind: own_kind.is_some(),
            subresource: place.subresource.to_owned(),
            namespace: namespace.to_owned(),
            name: place.name.to_owned(),
            user: call.user.clone(),
            audit: call.audit.clone(),
            authorizer: Arc::new(Access::of(call, &dependencies)),
            dry_run: options.dry_run,
            options: options.fields,
        }
    })
}

/// Returns the rules about the writes of the user.
fn rules(call: &Call, operations: &[Operation], place: Place<'_>) -> Vec<Box<dyn WriteRule>> {
    let mut rules: Vec<Box<dyn WriteRule>> = Vec::new();
    let is_write = |operation| matches!(operation, &(Operation::Create | Operation::Update));
    if !operations.iter().any(is_write) {
        return rules;
    }
    let (access, kind) = ((&call.shared, &call.user), place.kind);
    if let Some(guard) = RoleRules::of_write(access, kind, (place.namespace, place.name)) {
        rules.push(Box::new(guard));
    }
    if let Some(signer) = SignerRules::of_write(access, kind, place.subresource) {
        rules.push(Box::new(signer));
    }
    rules
}

/// Returns the admission of a POST to the collection `bindings`.
pub(super) fn of_bindings(
    call: &Call,
    (namespace, name): (&str, &str),
    options: impl FnOnce() -> RequestOptions,
) -> Option<Admission> {
    let Shared {
        webhooks, engine, ..
    } = &*call.shared;
    let dependencies = Dependencies::default();
    let required = Required {
        dependencies: dependencies.clone(),
        ..Required::default()
    };
    webhooks.admission(
        engine,
        &call.warnings,
        &[Operation::Create],
        required,
        || {
            let options = options();
            Attributes {
                resource: Resource {
                    group: String::new(),
                    version: "v1".into(),
                    plural: "bindings".into(),
                    kind: Gvk::from_api_version("v1", "Binding"),
                },
                equivalents: Vec::new(),
                has_own_kind: true,
                subresource: String::new(),
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                user: call.user.clone(),
                audit: call.audit.clone(),
                authorizer: Arc::new(Access::of(call, &dependencies)),
                dry_run: options.dry_run,
                options: options.fields,
            }
        },
    )
}

/// The kind of a subresource whose objects have another kind than the resource.
fn kind_of_subresource(of: &KindInfo, subresource: &str) -> Option<Gvk> {
    let kind_of_proxy = format!("{}ProxyOptions", of.gvk.kind);
    let of = |version: &str, kind: &str| Some(Gvk::from_api_version(version, kind));
    match subresource {
        "scale" => Some(scale_kind().gvk.clone()),
        "binding" => of("v1", "Binding"),
        "eviction" => of("policy/v1", "Eviction"),
        "token" => of("authentication.k8s.io/v1", "TokenRequest"),
        "exec" => of("v1", "PodExecOptions"),
        "attach" => of("v1", "PodAttachOptions"),
        "portforward" => of("v1", "PodPortForwardOptions"),
        "proxy" => of("v1", &kind_of_proxy),
        _ => None,
    }
}

/// Completes an object that is not stored.
pub(super) fn complete(
    object: &mut Value,
    (api_version, kind): (&str, &str),
    namespace: &str,
    name: &str,
) {
    object["apiVersion"] = api_version.into();
    object["kind"] = kind.into();
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    object["metadata"]["name"] = name.into();
    object["metadata"]["namespace"] = namespace.into();
}

/// The options of a create, an update or a patch.
pub(super) fn write_options(query: &Query, dry_run: bool) -> RequestOptions {
    let mut fields = Map::new();
    if dry_run {
        fields.insert("dryRun".into(), json!(["All"]));
    }
    for name in ["fieldManager", "fieldValidation"] {
        if let Some(value) = query.get(name) {
            fields.insert(name.into(), value.into());
        }
    }
    RequestOptions {
        dry_run,
        fields: Some(fields),
    }
}

/// The options of a delete.
pub(super) fn delete_options(options: &DeleteOptions) -> RequestOptions {
    let mut fields = Map::new();
    let mut put = |name: &str, value: Option<Value>| {
        fields.extend(value.map(|value| (name.to_owned(), value)));
    };
    let mut preconditions = Map::new();
    for (name, value) in [("uid", &options.uid), ("resourceVersion", &options.version)] {
        preconditions.extend(value.clone().map(|value| (name.to_owned(), value.into())));
    }
    put("gracePeriodSeconds", options.grace_seconds.map(Value::from));
    let preconditions = (!preconditions.is_empty()).then_some(preconditions);
    put("preconditions", preconditions.map(Value::Object));
    put(
        "orphanDependents",
        options.orphan_dependents.map(Value::from),
    );
    let propagation = options.propagation;
    put(
        "propagationPolicy",
        propagation.map(|policy| policy.as_str().into()),
    );
    put("dryRun", options.dry_run.then(|| json!(["All"])));
    RequestOptions {
        dry_run: options.dry_run,
        fields: Some(fields),
    }
}
