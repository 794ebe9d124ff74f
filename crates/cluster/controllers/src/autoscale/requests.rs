//! The controller's requests and events.

use std::sync::Arc;

use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscalerStatus;
use longshore_client::{Cluster, Error, Item, Scale, View, kinds::Any};
use longshore_model::kind::builtin;

use super::{autoscaler::Autoscaler, draft::Event, usage::PodMetricsList};
use crate::{
    caches::Caches,
    custom,
    events::{Recorder, Severity, Subject},
    refusal::message,
};

pub(super) struct Requests {
    pub(super) cluster: Cluster,
    pub(super) autoscalers: View<Any>,
    pub(super) caches: Arc<Caches>,
    pub(super) events: Recorder,
}

impl Requests {
    /// Returns the view of the target's kind in its namespace.
    ///
    /// # Errors
    /// Returns Kubernetes' message if the kind does not exist.
    fn view(&self, autoscaler: &Autoscaler) -> Result<View<Any>, String> {
        let target = &autoscaler.target;
        let api_version = target.api_version.as_deref().unwrap_or_default();
        if api_version.matches('/').count() > 1 {
            return Err(format!("unexpected GroupVersion string: {api_version}"));
        }
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let defined = || {
            let definitions = self.caches.definitions()?.items();
            let mut kinds = definitions
                .iter()
                .filter_map(|item| custom::kind(&item.raw().ok()?));
            kinds.find(|kind| kind.gvk.group == group && kind.gvk.kind == target.kind)
        };
        let kind = builtin(group, &target.kind).cloned().or_else(defined);
        let kind = kind
            .ok_or_else(|| format!("no matches for kind {:?} in group {group:?}", target.kind))?;
        let view = self.cluster.view_of::<Any>(Arc::new(kind));
        view.in_namespace(&autoscaler.key.namespace)
            .map_err(|error| error.to_string())
    }

    /// Reads the scale of the target.
    ///
    /// # Errors
    /// Returns the server's message if the request fails.
    pub(super) async fn scale(
        &self,
        autoscaler: &Autoscaler,
    ) -> Result<(View<Any>, Scale), String> {
        let view = self.view(autoscaler)?;
        let scale = view.scale(&autoscaler.target.name).await;
        let scale = scale.map_err(|error| message(&error))?;
        Ok((view, scale))
    }

    /// Sets the replicas of the target.
    ///
    /// # Errors
    /// Returns the server's message if the request fails.
    pub(super) async fn set_scale(
        &self,
        target: &View<Any>,
        name: &str,
        replicas: i32,
    ) -> Result<(), String> {
        let replicas = u32::try_from(replicas).unwrap_or(0);
        let done = target.set_scale(name, replicas).await;
        done.map(drop).map_err(|error| message(&error))
    }

    /// Reads the resource usage of the pods that a selector selects.
    ///
    /// # Errors
    /// Returns Kubernetes' message if the request fails.
    pub(super) async fn usage(
        &self,
        namespace: &str,
        selector: &str,
    ) -> Result<PodMetricsList, String> {
        let path = format!("/apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods");
        let query = [("labelSelector", selector)];
        let list = self.cluster.proxy().get(path, &query).await;
        let problem = match list.map(serde_json::from_value::<PodMetricsList>) {
            Ok(Ok(list)) => return Ok(list),
            Ok(Err(error)) => error.to_string(),
            Err(error) if error.is_not_found() => {
                "the server could not find the requested resource (get pods.metrics.k8s.io)"
                    .to_owned()
            }
            Err(error) => message(&error),
        };
        Err(format!(
            "unable to fetch metrics from resource metrics API: {problem}"
        ))
    }

    /// Replaces the status if the autoscaler has not changed since it was read.
    pub(super) async fn store_status(
        &self,
        item: &Item<Any>,
        status: &HorizontalPodAutoscalerStatus,
    ) -> Result<(), Error> {
        let mut object = item.raw()?;
        object["status"] =
            serde_json::to_value(status).map_err(|error| Error::Invalid(error.to_string()))?;
        let namespace = item.namespace().unwrap_or_default();
        let view = self.autoscalers.clone().in_namespace(namespace)?;
        match view.replace_status(item.name(), &object).await {
            Err(error) if error.is_not_found() => Ok(()),
            done => done.map(drop),
        }
    }

    pub(super) fn record(&self, autoscaler: &Autoscaler, event: &Event) {
        self.note(autoscaler, event.severity, event.reason, &event.message);
    }

    /// Records that the status could not be stored.
    pub(super) fn note_not_stored(&self, autoscaler: &Autoscaler, error: &Error) {
        let text = message(error);
        self.note(autoscaler, Severity::Warning, "FailedUpdateStatus", &text);
    }

    fn note(&self, autoscaler: &Autoscaler, severity: Severity, reason: &str, text: &str) {
        let subject = Subject {
            api_version: "autoscaling/v2".into(),
            kind: "HorizontalPodAutoscaler".into(),
            namespace: autoscaler.key.namespace.clone(),
            name: autoscaler.key.name.clone(),
            uid: autoscaler.uid.clone(),
        };
        self.events.record_event(subject, severity, reason, text);
    }
}
