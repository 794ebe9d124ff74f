//! A run whose code is packed: its plan before and after the upload.

use std::path::PathBuf;

use longshore_diagnosis::names::RunName;
use tokio::sync::oneshot;

use super::{LaunchError, PreparedData, data};
use crate::{
    bundle::Bundle,
    config::RunSpec,
    outputs::{DEFAULT_MAX_BYTES, DEFAULT_MAX_FILES, MOST_PATTERNS, OutputRequest, OutputsError},
    plan::{Plan, plan},
    store::{self, BundleInfo, DeliverOptions, Store, StoreError},
    sweep::METRICS_FILE,
};

/// A run with its packed code, from which its plan follows. [`RunSpec::submit`] combines these
/// steps; use them separately to show the plan or to report on each step.
#[derive(Debug)]
pub struct PackedRun<'a> {
    /// What to run.
    pub spec: &'a RunSpec,
    /// The run's name.
    pub name: RunName,
    /// The namespace of its objects.
    pub namespace: String,
    /// The packed folder; `None` if the image contains the code.
    pub bundle: Option<Bundle>,
    /// The store for the bundle; `None` for a Secret.
    pub store: Option<Store>,
    /// Whether the cluster keeps outputs of tasks, as the embedded one does.
    pub keeps_outputs: bool,
    /// The data of its tasks; see [`RunSpec::prepare_data`].
    pub data: Vec<PreparedData>,
    /// The folder of this machine in which the cluster's pods find data.
    pub data_root: Option<PathBuf>,
}

impl PackedRun<'_> {
    /// The plan before the upload, for a preview and for preflight. Sends no requests: instead
    /// of a signed URL, it contains the bundle's location in the store.
    ///
    /// # Errors
    /// [`LaunchError::Store`] if the bundle is too large for a Secret, [`LaunchError::Outputs`] if
    /// the cluster keeps no outputs, and [`LaunchError::Plan`].
    pub fn plan(&self) -> Result<Plan, LaunchError> {
        if self.spec.has_outputs() && !self.keeps_outputs {
            return Err(OutputsError::NotKept.into());
        }
        let bundle = self.bundle.as_ref();
        let info = bundle.map(|bundle| store::describe(bundle, self.store.as_ref()));
        self.plan_with(info.transpose()?.as_ref())
    }

    /// Uploads the bundle to the store, if there is one, and returns the plan to submit. Signed
    /// URLs are valid as long as a task may start; [`DeliverOptions::validity`] is ignored. If
    /// the future is dropped, the uploaded parts are removed in the background.
    ///
    /// # Errors
    /// [`LaunchError::Store`] and [`LaunchError::Plan`].
    pub async fn deliver(&self, options: DeliverOptions) -> Result<Plan, LaunchError> {
        let (Some(bundle), Some(store)) = (self.bundle.clone(), self.store.clone()) else {
            return self.plan();
        };
        let (_future, dropped) = oneshot::channel::<()>();
        let stop = futures::future::select(options.stop, dropped);
        let options = DeliverOptions {
            validity: self.spec.url_validity(),
            stop: Box::pin(async move { drop(stop.await) }),
            ..options
        };
        let delivery =
            tokio::spawn(async move { store::deliver(&bundle, Some(&store), options).await });
        // The task ends with a result, unless the runtime ends.
        let info = delivery.await.map_err(|_| StoreError::Stopped)??;
        self.plan_with(Some(&info))
    }

    fn plan_with(&self, info: Option<&BundleInfo>) -> Result<Plan, LaunchError> {
        let mut changed = self.with_metrics();
        if !self.data.is_empty() {
            let place = data::place(self.data_root.as_deref(), self.store.as_ref());
            let infos = data::infos(&self.data, &place, &self.spec.workload)?;
            changed.get_or_insert_with(|| self.spec.clone()).data = infos;
        }
        let spec = changed.as_ref().unwrap_or(self.spec);
        Ok(plan(spec, &self.name, &self.namespace, info)?)
    }

    /// The specification of a sweep whose metrics files the cluster keeps.
    fn with_metrics(&self) -> Option<RunSpec> {
        if !self.keeps_outputs || !self.spec.code || self.spec.sweep.is_none() {
            return None;
        }
        let mut spec = self.spec.clone();
        for role in &mut spec.roles {
            let outputs = role.outputs.get_or_insert_with(|| OutputRequest {
                patterns: Vec::new(),
                max_bytes: DEFAULT_MAX_BYTES,
                max_files: DEFAULT_MAX_FILES,
                scheduled: false,
            });
            if outputs.patterns.len() < MOST_PATTERNS {
                outputs.patterns.push(METRICS_FILE.to_owned());
            }
        }
        Some(spec)
    }
}
