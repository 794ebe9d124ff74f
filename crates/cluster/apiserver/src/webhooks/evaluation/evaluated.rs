//! The inputs of the expressions of policies for a request.

use longshore_cel::AdmissionInputs;
use longshore_engine::{Error, ReadVersion};
use longshore_model::kind::builtin;
use serde_json::Value;

use crate::webhooks::{
    admission::Admission,
    attributes::{Operation, Resource},
    message::{self, Objects},
};

/// A request in the version that a policy matches.
pub(super) struct Evaluated {
    request: Value,
    objects: Objects,
    namespace: Option<Value>,
}

impl Evaluated {
    /// Describes a request.
    ///
    /// # Errors
    /// The namespace of the request does not exist.
    pub(super) fn new(
        admission: &Admission,
        operation: Operation,
        resource: &Resource,
        objects: Objects,
    ) -> Result<Self, Error> {
        let request = message::request(&admission.attributes, operation, resource);
        Ok(Self {
            request: Value::Object(request),
            objects,
            namespace: namespace(admission)?,
        })
    }

    /// The new object.
    pub(super) fn object(&self) -> Option<&Value> {
        self.objects.object.as_ref()
    }

    pub(super) fn set_object(&mut self, object: Value) {
        self.objects.object = Some(object);
    }

    pub(super) fn into_object(self) -> Option<Value> {
        self.objects.object
    }

    /// The values of the variables of expressions.
    pub(super) fn inputs<'a>(
        &'a self,
        admission: &Admission,
        params: Option<&'a Value>,
    ) -> AdmissionInputs<'a> {
        AdmissionInputs {
            request: Some(&self.request),
            object: self.objects.object.as_ref(),
            old_object: self.objects.old_object.as_ref(),
            namespace: self.namespace.as_ref(),
            params,
            authorizer: Some(admission.attributes.authorization()),
        }
    }
}

/// The Namespace of the object; `None` for cluster-scoped objects.
fn namespace(admission: &Admission) -> Result<Option<Value>, Error> {
    let attributes = &admission.attributes;
    if attributes.namespace.is_empty() || attributes.resource.is_namespaces() {
        return Ok(None);
    }
    let Some(info) = builtin("", "Namespace") else {
        return Ok(None);
    };
    let found = admission
        .engine
        .get(info, None, &attributes.namespace, ReadVersion::Latest)?;
    Ok(Some(found.value()))
}
