//! Uploads a pipeline's code and launches its Job.

use std::path::{Path, PathBuf};

use longshore_client::Cluster;

use super::{
    OrchestratorKubernetesBackend, PipelineConfig, ZenmlError, described, pipeline::tar_path,
};
use longshore_launcher::{
    Run,
    bundle::{Bundle, PackOptions, Report, pack_in_background},
    plan::Plan,
    preflight::{self, Purpose},
    store::{self, BundleInfo, DeliverOptions, Store},
    submit::{SubmitError, submit},
};

/// Always excluded, regardless of ignore files: ZenML's own state, and environments.
const LEFT_OUT: [&str; 2] = [".zenml/", "venv/"];

/// A launched pipeline.
#[derive(Debug, Clone, PartialEq)]
pub struct Launched {
    /// The run, for [`Follow`](longshore_launcher::Follow) and the other functions for runs.
    pub run: Run,
    /// A copy of the config, with the location of the code in `backend.args.tar_path`.
    pub config: PipelineConfig,
    /// The location of the code, if there is any.
    pub tar_path: Option<String>,
    /// The packed files, if code was packed.
    pub packed: Option<Report>,
    /// Warnings about problems that may delay the run.
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

    /// Packs a repository, uploads it to the artifact store, and launches the pipeline. Unchanged
    /// code is not uploaded again.
    ///
    /// # Errors
    /// Contains the cause and the remedy. No object of the run is left in the cluster.
    pub async fn run(
        &self,
        cluster: &Cluster,
        repository: &Path,
        config: &PipelineConfig,
    ) -> Result<Launched, ZenmlError> {
        let (bundle, store) = self.packed(repository, config, false).await?;
        let tar_path = tar_path(&store, &bundle.sha256);
        let sent = config.with_tar_path(&tar_path)?;
        // The upload may be large: run the checks first.
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

    /// Launches the pipeline with the code that [`run`](Self::run) has uploaded, if the config
    /// contains `backend.args.tar_path`, and otherwise with the image's code.
    ///
    /// # Errors
    /// The same as [`run`](Self::run); [`ZenmlError::TarPath`].
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

    /// The plan of [`run`](Self::run), and the files that it would send. Uploads nothing and sends
    /// no requests.
    ///
    /// # Errors
    /// The same as [`run`](Self::run).
    pub async fn dry_run(
        &self,
        repository: &Path,
        config: &PipelineConfig,
    ) -> Result<(Plan, Report), ZenmlError> {
        let (bundle, store) = self.packed(repository, config, true).await?;
        let described = store::describe(&bundle, Some(&store))?;
        Ok((self.plan(config, Some(&described))?, bundle.report))
    }

    /// Packs the repository and selects its store. With `names_all`, the report lists all excluded
    /// files.
    async fn packed(
        &self,
        repository: &Path,
        config: &PipelineConfig,
        names_all: bool,
    ) -> Result<(Bundle, Store), ZenmlError> {
        let store = match &self.settings.run.store {
            Some(url) => Store::parse(url)?,
            None => config.staging()?,
        };
        Ok((self.pack(repository, names_all).await?, store))
    }

    async fn pack(&self, repository: &Path, names_all: bool) -> Result<Bundle, ZenmlError> {
        let repository = repository.to_owned();
        let ignore = self.settings.run.ignore.iter().cloned();
        let options = PackOptions {
            ignore: ignore.chain(LEFT_OUT.map(str::to_owned)).collect(),
            allow_secrets: self.settings.run.allow_secrets.clone(),
            names_all,
            ..PackOptions::default()
        };
        Ok(pack_in_background(repository, options, |_| {}).await?)
    }

    fn delivery(&self, config: &PipelineConfig) -> Result<DeliverOptions, ZenmlError> {
        let spec = self.spec(config)?;
        Ok(DeliverOptions {
            validity: spec.url_validity(),
            ..DeliverOptions::default()
        })
    }
}

/// Runs preflight: refusals are an error, and warnings are returned.
async fn check(cluster: &Cluster, plan: &Plan) -> Result<Vec<String>, ZenmlError> {
    let report = preflight::check(cluster, plan, Purpose::Detach).await?;
    match report.refusals.is_empty() {
        true => Ok(report.warnings.iter().map(ToString::to_string).collect()),
        false => Err(ZenmlError::Refused(report.refusals)),
    }
}

/// Creates the run's objects.
async fn start(cluster: &Cluster, plan: &Plan) -> Result<Run, ZenmlError> {
    let result = submit(cluster, plan).await;
    result.map_err(|error| match &error {
        SubmitError::Create { source, .. } if source.is_already_exists() => ZenmlError::Exists {
            name: plan.run.to_string(),
            namespace: plan.namespace.clone(),
        },
        _ => ZenmlError::Submit(error),
    })
}

/// Expands `~` in a path.
fn with_home(path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), std::env::var_os("HOME")) {
        (Ok(rest), Some(home)) => Path::new(&home).join(rest),
        _ => path.to_owned(),
    }
}
