//! A run whose code is packed: its plan before and after the upload.

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
};

use longshore_client::k8s_openapi::api::core::v1::{
    PersistentVolumeClaimVolumeSource, Volume, VolumeMount,
};
use longshore_diagnosis::{
    explain::Cause,
    names::{METRICS_FILE, RunName},
};
use tokio::sync::oneshot;

use super::{LaunchError, PreparedData, data};
use crate::{
    bundle::Bundle,
    config::{RoleSpec, RunSpec, Workload},
    outputs::{
        DEFAULT_MAX_BYTES, DEFAULT_MAX_FILES, OutputRequest, OutputsError,
        uploads::{CLAIM_DIR, CLAIM_VOLUME},
    },
    plan::{Plan, plan},
    preflight::Finding,
    run_outputs::{add_claims, add_uploads},
    store::{self, BundleInfo, DeliverOptions, LONGEST_VALIDITY, Remote, Store, StoreError},
};

/// The maximum size of the metrics file of a task that has no other outputs.
const LARGEST_METRICS_FILE: u64 = 1 << 30;

/// A run with its packed code, which determines its plan. [`RunSpec::submit`] combines these steps;
/// use them separately to show the plan or to report on each step.
#[derive(Debug)]
pub struct PackedRun<'a> {
    /// The specification.
    pub spec: &'a RunSpec,
    /// The run's name.
    pub name: RunName,
    /// The namespace of its objects.
    pub namespace: String,
    /// The packed folder. `None` if the image contains the code.
    pub bundle: Option<Bundle>,
    /// The store for the bundle. `None` for a Secret.
    pub store: Option<Store>,
    /// True if the cluster keeps outputs of tasks, like the embedded one.
    pub keeps_outputs: bool,
    /// The data of its tasks. See [`RunSpec::prepare_data`].
    pub data: Vec<PreparedData>,
    /// The folder of this machine in which the cluster's pods find data.
    pub data_root: Option<PathBuf>,
}

/// The number of excluded paths that a run records, and their maximum length.
const EXCLUDED: usize = 10;
const MAX_EXCLUDED_PATH: usize = 200;

impl PackedRun<'_> {
    /// The plan before the upload, for a preview and for preflight. Sends no requests: instead
    /// of a signed URL, it contains the bundle's location in the store.
    ///
    /// # Errors
    /// [`LaunchError::Store`] if the bundle is too large for a Secret, [`LaunchError::Outputs`] if
    /// neither the cluster nor a store keeps outputs, and [`LaunchError::Plan`].
    pub fn plan(&self) -> Result<Plan, LaunchError> {
        self.check_outputs()?;
        self.check_links()?;
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
        let settings = options.settings.clone();
        let mut plan = match (self.bundle.clone(), self.store.clone()) {
            (Some(bundle), Some(store)) => self.upload(bundle, store, options).await?,
            _ => self.plan()?,
        };
        add_uploads(&mut plan, &settings).await?;
        Ok(plan)
    }

    /// Uploads the bundle, and plans the run with its URL.
    async fn upload(
        &self,
        bundle: Bundle,
        store: Store,
        options: DeliverOptions,
    ) -> Result<Plan, LaunchError> {
        let (_future, dropped) = oneshot::channel::<()>();
        let stop = futures::future::select(options.stop, dropped);
        let options = DeliverOptions {
            validity: self.spec.url_validity(),
            stop: Box::pin(async move { drop(stop.await) }),
            ..options
        };
        let delivery =
            tokio::spawn(async move { store::deliver(&bundle, Some(&store), options).await });
        // The task ends with a result, unless the runtime shuts down.
        let info = delivery.await.map_err(|_| StoreError::Stopped)??;
        self.plan_with(Some(&info))
    }

    /// An option of outputs that has no effect on a cluster that keeps them.
    #[must_use]
    pub fn unused_option(&self) -> Option<&'static str> {
        let requests = self
            .spec
            .roles
            .iter()
            .filter_map(|role| role.outputs.as_ref());
        let mut options = requests.filter_map(|own| match (&own.claim, own.every) {
            (Some(_), _) => Some("outputs_claim"),
            (None, Some(_)) => Some("outputs_every"),
            (None, None) => None,
        });
        options.next()
    }

    /// The options of outputs that have no effect, or not the expected one.
    #[must_use]
    pub fn warnings(&self) -> Vec<Finding> {
        let unused = self.unused_option().filter(|_| self.keeps_outputs);
        let unused = unused.map(|option| {
            Finding::new(
                Cause::Unknown,
                format!("outputs: {option} has no effect: the embedded cluster keeps them itself"),
                format!("remove {option}, unless the run is also for other clusters"),
            )
        });
        let late = self.may_outlive_uploads().then(|| {
            Finding::new(
                Cause::Unknown,
                "outputs: the timeout is longer than 7 days, when the URLs for uploads expire: tasks that end later lose their outputs",
                "use a shorter timeout, or outputs_claim",
            )
        });
        unused.into_iter().chain(late).collect()
    }

    /// Returns true if tasks may still run when the URLs for the upload of their outputs have
    /// expired.
    #[must_use]
    pub fn may_outlive_uploads(&self) -> bool {
        let has_uploads = self.uploads_to().is_some() && self.spec.has_outputs();
        has_uploads && self.spec.timeout > Some(LONGEST_VALIDITY)
    }

    /// Checks that the code has no files at the paths of data and volumes.
    fn check_links(&self) -> Result<(), LaunchError> {
        let links = self.spec.roles.iter().flat_map(RoleSpec::links);
        for (path, _) in links {
            let problem = match &self.bundle {
                None => "the run has no code; use an absolute path",
                Some(bundle) if bundle.has_files_at(Path::new(&path)) => {
                    "the code has files there; exclude them with .longshoreignore, or use another path"
                }
                Some(_) => continue,
            };
            return Err(LaunchError::InCode { path, problem });
        }
        Ok(())
    }

    /// Checks that outputs can be kept.
    fn check_outputs(&self) -> Result<(), OutputsError> {
        if self.keeps_outputs || !self.spec.has_outputs() {
            return Ok(());
        }
        let mut requests = self
            .spec
            .roles
            .iter()
            .filter_map(|role| role.outputs.as_ref());
        if self.uploads_to().is_some() || requests.all(|own| own.claim.is_some()) {
            return Ok(());
        }
        Err(match self.spec.workload {
            Workload::Scheduled(_) => OutputsError::Scheduled,
            _ => OutputsError::NotKept,
        })
    }

    /// The store to which tasks upload their outputs, if the cluster does not keep them.
    fn uploads_to(&self) -> Option<&Remote> {
        let is_scheduled = matches!(self.spec.workload, Workload::Scheduled(_));
        match &self.store {
            Some(Store::Remote(remote)) if !self.keeps_outputs && !is_scheduled => Some(remote),
            _ => None,
        }
    }

    fn plan_with(&self, info: Option<&BundleInfo>) -> Result<Plan, LaunchError> {
        let mut spec = self.with_outputs();
        if let Some(bundle) = &self.bundle
            && bundle.report.left_out > 0
        {
            let examples = bundle.report.left_out_examples.iter();
            let short = examples.filter(|path| path.len() <= MAX_EXCLUDED_PATH);
            spec.to_mut().excluded = short.take(EXCLUDED).cloned().collect();
        }
        if !self.data.is_empty() {
            let place = data::place(self.data_root.as_deref(), self.store.as_ref());
            spec.to_mut().data = data::infos(&self.data, &place, &self.spec.workload)?;
        }
        let mut plan = plan(&spec, &self.name, &self.namespace, info)?;
        add_claims(&mut plan)?;
        Ok(plan)
    }

    /// The specification with the consequences of the cluster and the store: the metrics files of
    /// tasks are outputs, and the outputs' request contains the store, for clients that fetch them.
    fn with_outputs(&self) -> Cow<'_, RunSpec> {
        let store = self.uploads_to();
        if !self.keeps_outputs && store.is_none() && !self.spec.has_outputs() {
            return Cow::Borrowed(self.spec);
        }
        let mut spec = self.spec.clone();
        for role in &mut spec.roles {
            let claim = role.outputs.as_ref().and_then(|own| own.claim.clone());
            let claim = claim.filter(|_| !self.keeps_outputs);
            let has_place = self.keeps_outputs || store.is_some() || claim.is_some();
            if has_place {
                let outputs = role.outputs.get_or_insert_with(|| OutputRequest {
                    patterns: Vec::new(),
                    max_bytes: match store {
                        // Each task then has only one object.
                        Some(_) => LARGEST_METRICS_FILE,
                        None => DEFAULT_MAX_BYTES,
                    },
                    max_files: DEFAULT_MAX_FILES,
                    scheduled: false,
                    store: None,
                    claim: None,
                    every: None,
                });
                outputs.patterns.push(METRICS_FILE.to_owned());
            }
            if let Some(outputs) = &mut role.outputs {
                outputs.store = store.filter(|_| claim.is_none()).map(ToString::to_string);
                outputs.claim.clone_from(&claim);
            }
            role.pods.volumes.extend(claim.map(claim_volume));
        }
        Cow::Owned(spec)
    }
}

/// The volume of the claim for outputs, and its mount in the command's container.
fn claim_volume(claim: String) -> (Volume, VolumeMount) {
    let volume = Volume {
        name: CLAIM_VOLUME.to_owned(),
        persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
            claim_name: claim,
            ..PersistentVolumeClaimVolumeSource::default()
        }),
        ..Volume::default()
    };
    let mount = VolumeMount {
        name: CLAIM_VOLUME.to_owned(),
        mount_path: CLAIM_DIR.to_owned(),
        ..VolumeMount::default()
    };
    (volume, mount)
}
