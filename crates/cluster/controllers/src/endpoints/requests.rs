//! The requests of the controllers.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::{
    core::v1::{EndpointSubset, Endpoints},
    discovery::v1::EndpointSlice,
};
use longshore_client::{DeleteOptions, Error, Item, View, kinds::Any};
use longshore_model::time;
use serde_json::Value;

use super::{
    service::Service,
    slices::Plan,
    subsets::{self, OVER_CAPACITY},
    trigger,
};
use crate::{
    events::{Recorder, Severity, Subject},
    key::Key,
    refusal::{is_terminating, message},
};

pub(super) struct Requests {
    pub(super) endpoints: View<Any>,
    pub(super) slices: View<Any>,
    pub(super) endpoint_events: Recorder,
    pub(super) slice_events: Recorder,
}

fn json_of(object: &impl serde::Serialize) -> Result<Value, Error> {
    serde_json::to_value(object).map_err(|error| Error::Invalid(error.to_string()))
}

/// Sets or removes an annotation.
fn annotate(object: &mut Value, name: &str, value: Option<String>) {
    match value {
        Some(value) => object["metadata"]["annotations"][name] = value.into(),
        None => {
            let annotations = object.pointer_mut("/metadata/annotations");
            if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
                annotations.remove(name);
            }
        }
    }
}

impl Requests {
    /// Executes the changes of a Service's slices. Returns the versions written.
    pub(super) async fn change_slices(
        &self,
        service: &Service,
        plan: Plan,
        trigger: Option<Timestamp>,
    ) -> (Vec<String>, Result<(), Error>) {
        let mut versions = Vec::new();
        let trigger = trigger.map(time::seconds);
        let namespace = &service.key.namespace;
        let done = self
            .write_slices(namespace, plan, |_| trigger.clone(), &mut versions)
            .await;
        if let Err(error) = &done {
            let Key { namespace, name } = &service.key;
            let message = format!(
                "Error updating Endpoint Slices for Service {namespace}/{name}: {}",
                message(error)
            );
            let subject = Subject {
                api_version: "v1".into(),
                kind: "Service".into(),
                namespace: namespace.clone(),
                name: name.clone(),
                uid: service.uid.clone(),
            };
            self.slice_events.record_event(
                subject,
                Severity::Warning,
                "FailedToUpdateEndpointSlices",
                &message,
            );
        }
        (versions, done)
    }

    /// Executes a plan. Stores the versions written. `trigger` returns the time of the change that
    /// led to a slice.
    pub(super) async fn write_slices(
        &self,
        namespace: &str,
        plan: Plan,
        trigger: impl Fn(&EndpointSlice) -> Option<String>,
        versions: &mut Vec<String>,
    ) -> Result<(), Error> {
        let view = self.slices.clone().in_namespace(namespace)?;
        let prepared = |slice: &EndpointSlice| {
            let mut json = json_of(slice)?;
            annotate(&mut json, trigger::ANNOTATION, trigger(slice));
            Ok::<_, Error>(json)
        };
        for slice in &plan.create {
            match view.create(&prepared(slice)?).await {
                Ok(item) => versions.push(item.version().to_owned()),
                Err(error) if is_terminating(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        for slice in &plan.update {
            let name = slice.metadata.name.as_deref().unwrap_or_default();
            let item = view.replace(name, &prepared(slice)?).await?;
            versions.push(item.version().to_owned());
        }
        for slice in &plan.delete {
            let name = slice.metadata.name.as_deref().unwrap_or_default();
            let options = DeleteOptions {
                uid: slice.metadata.uid.clone(),
                ..DeleteOptions::default()
            };
            match view.delete(name, &options).await {
                // The slice was deleted, or another slice has its name.
                Err(error) if error.is_not_found() || error.is_conflict() => {}
                done => done?,
            }
        }
        Ok(())
    }

    /// Creates or updates the Endpoints of a Service if they differ. Returns the version
    /// written.
    pub(super) async fn change_endpoints(
        &self,
        service: &Service,
        known: Option<&Item<Any>>,
        desired: &[EndpointSubset],
        trigger: Option<Timestamp>,
    ) -> Result<Option<String>, Error> {
        let current: Option<Endpoints> = known.map(Item::typed).transpose()?;
        let labels = subsets::labels(service);
        if let Some(current) = &current
            && is_up_to_date(current, desired, &labels)
        {
            return Ok(None);
        }
        let mut subsets = desired.to_vec();
        let truncated = subsets::truncate(&mut subsets);
        let mut new = current.unwrap_or_default();
        new.metadata.labels = Some(labels);
        new.subsets = Some(subsets);
        let Key { namespace, name } = &service.key;
        new.metadata.name = Some(name.clone());
        new.metadata.namespace = Some(namespace.clone());
        let mut new = json_of(&new)?;
        annotate(&mut new, trigger::ANNOTATION, trigger.map(time::seconds));
        annotate(
            &mut new,
            OVER_CAPACITY,
            truncated.then(|| "truncated".to_owned()),
        );
        let view = self.endpoints.clone().in_namespace(namespace)?;
        let (reason, what, done) = match known {
            None => (
                "FailedToCreateEndpoint",
                "create endpoint for service",
                view.create(&new).await,
            ),
            Some(_) => (
                "FailedToUpdateEndpoint",
                "update endpoint",
                view.replace(name, &new).await,
            ),
        };
        match done {
            Ok(item) => Ok(Some(item.version().to_owned())),
            Err(error) if known.is_none() && is_terminating(&error) => Ok(None),
            Err(error) => {
                let message = format!("Failed to {what} {namespace}/{name}: {}", message(&error));
                let subject = Subject {
                    api_version: "v1".into(),
                    kind: "Endpoints".into(),
                    namespace: namespace.clone(),
                    name: name.clone(),
                    uid: known.map(Item::uid).unwrap_or_default().to_owned(),
                };
                self.endpoint_events
                    .record_event(subject, Severity::Warning, reason, &message);
                Err(error)
            }
        }
    }

    /// Deletes the Endpoints of a deleted Service.
    pub(super) async fn delete_endpoints(&self, key: &Key, known: &Item<Any>) -> Result<(), Error> {
        let view = self.endpoints.clone().in_namespace(&key.namespace)?;
        let options = DeleteOptions {
            uid: Some(known.uid().to_owned()),
            ..DeleteOptions::default()
        };
        match view.delete(&key.name, &options).await {
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
            done => done,
        }
    }
}

/// Returns true if the stored Endpoints need no change. The label of headless Services alone does
/// not require a change.
fn is_up_to_date(
    current: &Endpoints,
    desired: &[EndpointSubset],
    labels: &BTreeMap<String, String>,
) -> bool {
    let without = |labels: &BTreeMap<String, String>| {
        let mut labels = labels.clone();
        labels.remove(super::desired::HEADLESS);
        labels
    };
    let stored = current.subsets.as_deref().unwrap_or_default();
    let annotations = current.metadata.annotations.as_ref();
    let is_marked = annotations.is_some_and(|all| all.contains_key(OVER_CAPACITY));
    let own = current.metadata.labels.clone().unwrap_or_default();
    !is_marked
        && !subsets::is_over_capacity(stored)
        && without(&own) == without(labels)
        && subsets::repacked(stored) == desired
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn annotations_are_set_and_removed() {
        let mut object = json!({"metadata": {"name": "a"}});
        annotate(&mut object, "x", None);
        assert_eq!(object, json!({"metadata": {"name": "a"}}));
        annotate(&mut object, "x", Some("1".to_owned()));
        assert_eq!(object["metadata"]["annotations"], json!({"x": "1"}));
        annotate(&mut object, "x", None);
        assert_eq!(object["metadata"]["annotations"], json!({}));
    }
}
