//! Sends a pipeline's code and launches its Job.

use std::path::{Path, PathBuf};

use longshore_client::Cluster;
use tokio::sync::oneshot;

use super::{
    OrchestratorKubernetesBackend, PipelineConfig, ZenmlError, described, labels::Labels,
    pipeline::tar_path, shape,
};
use crate::{
    bundle::{self, Bundle, BundleError, PackOptions, Report},
    plan::Plan,
    preflight::{self, Purpose},
    runs::{self, Run},
    store::{self, BundleInfo, DeliverOptions, Store, validity},
    submit::{SubmitError, submit},
};

/// Never sent, whatever ignore files say: ZenML's own state, and environments.
const LEFT_OUT: [&str; 2] = [".zenml/", "venv/"];

/// A pipeline that was launched.
#[derive(Debug, Clone, PartialEq)]
pub struct Launched {
    /// Its run: followed, explained and cancelled as any other.
    pub run: Run,
    /// A copy of the config, with the place of the code in `backend.args.tar_path`.
    pub config: PipelineConfig,
    /// The place of the code, if there is any.
    pub tar_path: Option<String>,
    /// What was packed, if anything was.
    pub packed: Option<Report>,
    /// What may keep the run from beginning soon.
    pub warnings: Vec<String>,
}

impl OrchestratorKubernetesBackend {
    /// Connects to the cluster of [`kubernetes_config_path`](Self::kubernetes_config_path).
    ///
    /// # Errors
    /// [`ZenmlError::Kubeconfig`].
    pub async fn connect(&self) -> Result<Cluster, ZenmlError> {
        let path = with_home(&self.kubernetes_config_path);
        let connected = Cluster::from_kubeconfig(Some(&path), None).await;
        connected.map_err(|source| ZenmlError::Kubeconfig { path, source })
    }

    /// Packs a repository, sends it to the artifact store, and launches the pipeline.
    /// What was sent before is not sent again.
    ///
    /// # Errors
    /// Says what is wrong and what to do; then nothing of the run is in the cluster.
    pub async fn run(
        &self,
        cluster: &Cluster,
        repository: &Path,
        config: &PipelineConfig,
    ) -> Result<Launched, ZenmlError> {
        let store = match &self.settings.store {
            Some(url) => Store::parse(url)?,
            None => config.staging()?,
        };
        let bundle = self.pack(repository).await?;
        let tar_path = tar_path(&store, &bundle.sha256);
        let sent = config.with_tar_path(&tar_path)?;
        // Much may be sent: first it is clear that it is of use.
        let described = store::describe(&bundle, Some(&store))?;
        let warnings = check(cluster, &self.plan(config, Some(&described))?).await?;
        let info = store::deliver(&bundle, Some(&store), self.delivery(config)?).await?;
        let run = start(cluster, &self.plan(config, Some(&info))?).await?;
        Ok(Launched {
            run,
            config: sent,
            tar_path: Some(tar_path),
            packed: Some(bundle.report),
            warnings,
        })
    }

    /// Launches the pipeline: with the code that [`run`](Self::run) has sent before
    /// when the config names it as `backend.args.tar_path`, else with the image's own.
    ///
    /// # Errors
    /// As [`run`](Self::run); [`ZenmlError::TarPath`].
    pub async fn launch_job(
        &self,
        cluster: &Cluster,
        config: &PipelineConfig,
    ) -> Result<Launched, ZenmlError> {
        let sent = config.sent()?;
        let shown = sent.clone();
        let shown = shown.map(|(store, sha256)| described(&store, sha256));
        let warnings = check(cluster, &self.plan(config, shown.as_ref())?).await?;
        let bundle: Option<BundleInfo> = match &sent {
            Some((store, sha256)) => {
                Some(store::again(sha256, store, self.delivery(config)?).await?)
            }
            None => None,
        };
        let run = start(cluster, &self.plan(config, bundle.as_ref())?).await?;
        Ok(Launched {
            run,
            config: config.clone(),
            tar_path: sent.map(|(store, sha256)| tar_path(&store, &sha256)),
            packed: None,
            warnings,
        })
    }

    async fn pack(&self, repository: &Path) -> Result<Bundle, ZenmlError> {
        let repository = repository.to_owned();
        let ignore = self.settings.ignore.iter().cloned();
        let options = PackOptions {
            ignore: ignore.chain(LEFT_OUT.map(str::to_owned)).collect(),
            allow_secrets: self.settings.allow_secrets.clone(),
            ..PackOptions::default()
        };
        let pack = move || bundle::pack(&repository, &options, |_| {});
        let packed = tokio::task::spawn_blocking(pack).await;
        let packed = packed.map_err(|error| BundleError::Write(std::io::Error::other(error)));
        Ok(packed??)
    }

    fn delivery(&self, config: &PipelineConfig) -> Result<DeliverOptions, ZenmlError> {
        let spec = shape::spec(self, config, &Labels::default())?;
        Ok(DeliverOptions {
            validity: validity(spec.start_timeout, spec.retries, spec.timeout),
            ..DeliverOptions::default()
        })
    }
}

/// What speaks against the plan: refusals are an error, warnings are given.
async fn check(cluster: &Cluster, plan: &Plan) -> Result<Vec<String>, ZenmlError> {
    let report = preflight::check(cluster, plan, Purpose::Detach).await?;
    match report.refusals.is_empty() {
        true => Ok(report.warnings.iter().map(ToString::to_string).collect()),
        false => Err(ZenmlError::Refused(report.refusals)),
    }
}

/// Creates the run's objects. Who does not wait for it any more leaves nothing behind:
/// a request that is on its way cannot be called back, so it is let arrive.
async fn start(cluster: &Cluster, plan: &Plan) -> Result<Run, ZenmlError> {
    let (tell, told) = oneshot::channel();
    let (cluster, submitted) = (cluster.clone(), plan.clone());
    tokio::spawn(async move {
        let result = submit(&cluster, &submitted).await;
        if let Err(Ok(run)) = tell.send(result)
            && let Err(error) = runs::remove(&cluster, &run).await
        {
            tracing::warn!(%error, run = %run.name, "a run that nobody wants is left");
        }
    });
    let result = told.await.map_err(|_| longshore_client::Error::Closed)?;
    result.map_err(|error| match &error {
        SubmitError::Create { source, .. } if source.is_already_exists() => ZenmlError::Exists {
            name: plan.run.to_string(),
            namespace: plan.namespace.clone(),
        },
        _ => ZenmlError::Submit(error),
    })
}

/// The path with the home folder for its `~`.
fn with_home(path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), std::env::var_os("HOME")) {
        (Ok(rest), Some(home)) => Path::new(&home).join(rest),
        _ => path.to_owned(),
    }
}
