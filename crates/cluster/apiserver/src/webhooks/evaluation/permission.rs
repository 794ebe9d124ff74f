//! Checks that the author of a policy or binding may read its parameters, because expressions could
//! disclose them.

use longshore_builtin::{cause::Cause, json};
use longshore_cel::AccessRequest;
use longshore_engine::{Error, ReadVersion, Subject};
use longshore_model::kind::builtin;
use serde_json::{Map, Value};

use crate::webhooks::{
    admission::Admission,
    message::Objects,
    policies::{
        GROUP,
        params::{self, ParamKind},
    },
};

impl Admission {
    /// Checks the author of a policy or binding, after its other rules.
    ///
    /// # Errors
    /// The object refers to parameters that the user may not read.
    pub(in crate::webhooks) fn check_param_permission(
        &self,
        objects: &Objects,
    ) -> Result<(), Error> {
        let attributes = &self.attributes;
        if !attributes.is_about_policies()
            || !attributes.subresource.is_empty()
            || attributes.user.is_master()
        {
            return Ok(());
        }
        let (Some(object), old) = (&objects.object, &objects.old_object) else {
            return Ok(());
        };
        let empty = Map::new();
        let spec = object["spec"].as_object().unwrap_or(&empty);
        let before = old.as_ref().and_then(|old| old["spec"].as_object());
        let is_same = |field: &str| before.is_some_and(|old| old.get(field) == spec.get(field));
        let is_binding = attributes.resource.plural.ends_with("bindings");
        let refused = match is_binding {
            true if is_same("paramRef") && is_same("policyName") => None,
            true => child(spec, "paramRef")
                .and_then(|reference| self.refused_reference(spec, reference))
                .map(|problem| ("spec.paramRef", problem)),
            false if is_same("paramKind") => None,
            false => child(spec, "paramKind")
                .and_then(|kind| self.refused_kind(kind))
                .map(|problem| ("spec.paramKind", problem)),
        };
        let Some((field, problem)) = refused else {
            return Ok(());
        };
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let resource = &attributes.resource;
        Err(Error::Invalid {
            subject: Subject {
                group: resource.group.as_str().into(),
                resource: resource.plural.as_str().into(),
                kind: resource.kind.kind.as_ref().into(),
                name: name.into(),
            },
            causes: vec![Cause::forbidden(field, &problem)],
        })
    }

    fn refused_kind(&self, kind: &Map<String, Value>) -> Option<String> {
        let found = ParamKind::read(kind);
        let request = AccessRequest {
            verb: "get".to_owned(),
            name: "*".to_owned(),
            namespace: "*".to_owned(),
            ..self.readable(Some(&found))
        };
        if self.attributes.authorizer.decide(&request).allowed {
            return None;
        }
        let text = |field: &str| json::text(kind, field);
        Some(format!(
            "user {} must have \"get\" permission on all objects of the referenced paramKind (kind={}, apiVersion={})",
            self.shown_user(),
            text("kind"),
            text("apiVersion")
        ))
    }

    fn refused_reference(
        &self,
        spec: &Map<String, Value>,
        reference: &Map<String, Value>,
    ) -> Option<String> {
        let text = |field: &str| json::text(reference, field).to_owned();
        let name = text("name");
        let verb = if name.is_empty() { "list" } else { "get" };
        let kind = match self.attributes.resource.plural.starts_with("mutating") {
            true => "MutatingAdmissionPolicy",
            false => "ValidatingAdmissionPolicy",
        };
        let policy_name = json::text(spec, "policyName");
        let policy = builtin(GROUP, kind).and_then(|info| {
            let found = self
                .engine
                .get(info, None, policy_name, ReadVersion::Latest);
            let object = found.as_deref().ok();
            let info = std::sync::Arc::new(info.clone());
            self.dependencies
                .add_object(&info, (None, policy_name), object);
            found.ok().map(|policy| policy.value())
        });
        let kind = policy.as_ref().and_then(|policy| {
            let kind = policy["spec"]["paramKind"].as_object()?;
            Some(ParamKind::read(kind))
        });
        let request = AccessRequest {
            verb: verb.to_owned(),
            name,
            namespace: text("namespace"),
            ..self.readable(kind.as_ref())
        };
        if self.attributes.authorizer.decide(&request).allowed {
            return None;
        }
        let user = self.shown_user();
        Some(match policy {
            None => format!(
                "unable to get policy {policy_name} to determine minimum required permissions and user {user} does not have \"{verb}\" permission for all groups, versions and resources"
            ),
            Some(_) => format!(
                "user {user} does not have \"{verb}\" permission on the object referenced by paramRef"
            ),
        })
    }

    /// The resource that must be readable. It matches all resources if the kind is not known.
    fn readable(&self, kind: Option<&ParamKind>) -> AccessRequest {
        let any = || "*".to_owned();
        let resource = kind.and_then(|kind| params::kind(&self.engine, kind).ok());
        AccessRequest {
            group: kind.map_or_else(any, |kind| kind.group.clone()),
            version: kind.map_or_else(any, |kind| kind.version.clone()),
            resource: resource.map_or_else(any, |info| info.plural.to_string()),
            ..AccessRequest::default()
        }
    }

    /// The user in the form in which Kubernetes prints it.
    fn shown_user(&self) -> String {
        let user = &self.attributes.user;
        format!(
            "&{{{} {} [{}] map[]}}",
            user.name,
            user.uid,
            user.groups.join(" ")
        )
    }
}

fn child<'a>(spec: &'a Map<String, Value>, field: &str) -> Option<&'a Map<String, Value>> {
    spec.get(field).and_then(Value::as_object)
}
