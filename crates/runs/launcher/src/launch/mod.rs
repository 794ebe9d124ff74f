//! Launches a folder of code: packs, plans, checks, uploads and submits it.

mod data;
mod delivery;
mod error;
mod expectations;
mod packed;

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::future::BoxFuture;
use longshore_client::Cluster;
use longshore_diagnosis::explain::Cause;
use longshore_diagnosis::names;

use crate::{
    bundle::{self, Bundle, PackOptions, Report, pack_in_background},
    config::{self, ConfigError, Flags, RunSpec, Settings},
    data::{DataOptions, DataProgress, ScanOptions},
    follow::{self, Follow, FollowOptions},
    preflight::{self, Finding, Purpose},
    run::Run,
    store::{self, DeliverOptions, SECRET_LIMIT, Sent, Store},
    submit::submit,
};
pub use data::PreparedData;
pub use delivery::DeliveredData;
pub use error::LaunchError;
pub use packed::PackedRun;

/// The progress of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LaunchProgress {
    /// The folder is being packed. Not reported for an unchanged folder.
    Packing(bundle::Progress),
    /// The bundle is being uploaded to the store. Not reported if the store has it.
    Uploading(Sent),
    /// Data is being read, copied or uploaded.
    Data(DataProgress),
}

/// Options for launching a run.
#[derive(Clone)]
pub struct LaunchOptions {
    /// The use of the run. Following it requires more permissions.
    pub purpose: Purpose,
    /// A cache folder. With it, an unchanged folder is not packed again, and interrupted uploads
    /// are resumed.
    pub cache: Option<PathBuf>,
    /// The store for code that does not fit into a Secret, if the specification has no store.
    /// Intended for a cluster that shares a file system with this program, such as the embedded
    /// one.
    pub store_for_large_code: Option<Store>,
    /// True if the cluster keeps outputs of tasks, like the embedded one.
    pub keeps_outputs: bool,
    /// The folder of this machine in which the cluster's pods find data. Intended for the embedded
    /// cluster.
    pub data_root: Option<PathBuf>,
    /// Settings of the object store by variable name. They override the environment's settings.
    pub store_settings: Vec<(String, String)>,
    /// Called while the folder is packed and uploaded.
    pub progress: Arc<dyn Fn(LaunchProgress) + Send + Sync>,
}

impl Default for LaunchOptions {
    fn default() -> Self {
        Self {
            purpose: Purpose::Follow,
            cache: None,
            store_for_large_code: None,
            keeps_outputs: false,
            data_root: None,
            store_settings: Vec::new(),
            progress: Arc::new(|_| {}),
        }
    }
}

impl LaunchOptions {
    fn delivery(&self) -> DeliverOptions {
        let (packing, uploading) = (Arc::clone(&self.progress), Arc::clone(&self.progress));
        DeliverOptions {
            settings: self.store_settings.clone(),
            cache: self.cache.as_ref().map(|cache| cache.join("uploads")),
            packing: Arc::new(move |packed| packing(LaunchProgress::Packing(packed))),
            progress: Arc::new(move |sent| uploading(LaunchProgress::Uploading(sent))),
            ..DeliverOptions::default()
        }
    }
}

impl LaunchOptions {
    fn scan(&self, stop: &Arc<AtomicBool>) -> ScanOptions {
        let progress = Arc::clone(&self.progress);
        ScanOptions {
            cache: self.cache.as_ref().map(|cache| cache.join("data")),
            progress: Arc::new(move |done| progress(LaunchProgress::Data(done))),
            stop: Arc::clone(stop),
        }
    }

    fn data(&self, validity: Duration) -> DataOptions {
        let progress = Arc::clone(&self.progress);
        DataOptions {
            settings: self.store_settings.clone(),
            validity,
            cache: self.cache.as_ref().map(|cache| cache.join("uploads")),
            progress: Arc::new(move |done| progress(LaunchProgress::Data(done))),
        }
    }
}

/// Stops work on other threads when the launch is dropped.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl fmt::Debug for LaunchOptions {
    /// Omits the store's settings, which may be credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaunchOptions")
            .field("purpose", &self.purpose)
            .field("cache", &self.cache)
            .finish_non_exhaustive()
    }
}

/// A launched run.
#[derive(Debug, Clone, PartialEq)]
pub struct Launched {
    /// The run, which can be followed, explained and cancelled.
    pub run: Run,
    /// The packed files. `None` if the image contains the code.
    pub packed: Option<Report>,
    /// Problems with which the run may start late or not at all, and options without an effect.
    pub warnings: Vec<Finding>,
    start_timeout: Duration,
}

impl Launched {
    /// Follows the run, with the start timeout of its specification. The runs of a schedule are
    /// followed individually: [`runs::find_made`](crate::runs::find_made) finds the last one.
    ///
    /// # Errors
    /// The same as [`Follow::start`].
    pub async fn follow(&self, cluster: &Cluster) -> Result<Follow, follow::Error> {
        Follow::start(cluster, &self.run, follow_options(self.start_timeout)).await
    }
}

fn follow_options(start_timeout: Duration) -> FollowOptions {
    FollowOptions {
        start_timeout,
        ..FollowOptions::default()
    }
}

impl RunSpec {
    /// The specification of a run of a folder: its longshore.toml, if it has one, and options that
    /// override it. The default name is the folder's name.
    ///
    /// # Errors
    /// The error contains the key or the option, and the violated rule.
    ///
    /// ```
    /// use longshore_launcher::{Flags, RunOptions, RunSpec};
    ///
    /// # let parent = tempfile::tempdir()?;
    /// # let folder = parent.path().join("digits");
    /// # std::fs::create_dir(&folder)?;
    /// std::fs::write(folder.join("longshore.toml"), "command = ['python', 'train.py']")?;
    /// let run = RunOptions { timeout: Some("2h".into()), ..RunOptions::default() };
    /// let flags = Flags { run, ..Flags::default() };
    /// let spec = RunSpec::load(&folder, &flags)?;
    /// assert_eq!(spec.name, "digits");
    /// assert_eq!(spec.roles[0].command, ["python", "train.py"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn load(folder: &Path, flags: &Flags) -> Result<Self, ConfigError> {
        config::resolve(&Settings::load(folder)?, flags, &folder_name(folder))
    }

    /// Launches this run: packs the folder, checks the cluster, uploads the code, and creates
    /// the run's objects, all or none. If the future is dropped, the work stops, and the parts
    /// of an upload and the created objects are removed in the background.
    ///
    /// # Errors
    /// [`LaunchError`] contains the failed step, the cause and the remedy. Preflight reports every
    /// problem in one error, before anything is uploaded or created.
    ///
    /// ```no_run
    /// # async fn run(cluster: longshore_client::Cluster) -> Result<(), Box<dyn std::error::Error>> {
    /// use std::path::Path;
    ///
    /// use longshore_launcher::{Flags, LaunchError, LaunchOptions, RunSpec};
    ///
    /// let folder = Path::new("digits");
    /// let spec = RunSpec::load(folder, &Flags::default())?;
    /// match spec.submit(&cluster, folder, LaunchOptions::default()).await {
    ///     Ok(launched) => println!("submitted {}", launched.run.name),
    ///     Err(LaunchError::Refused(problems)) => {
    ///         for problem in problems {
    ///             eprintln!("{problem}");
    ///         }
    ///     }
    ///     Err(error) => return Err(error.into()),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn submit<'a>(
        &'a self,
        cluster: &'a Cluster,
        folder: &'a Path,
        options: LaunchOptions,
    ) -> BoxFuture<'a, Result<Launched, LaunchError>> {
        // Boxed, so that this crate compiles the future, not each crate that awaits it.
        Box::pin(self.launch(cluster, folder, options))
    }

    async fn launch(
        &self,
        cluster: &Cluster,
        folder: &Path,
        options: LaunchOptions,
    ) -> Result<Launched, LaunchError> {
        let store = self.store.as_deref().map(Store::parse).transpose()?;
        let bundle = match self.code {
            true => Some(self.pack(folder, &options).await?),
            false => None,
        };
        let is_large = |bundle: &Bundle| bundle.size > SECRET_LIMIT;
        let own = options.store_for_large_code.clone();
        let store = store.or_else(|| own.filter(|_| bundle.as_ref().is_some_and(is_large)));
        let namespace = self.namespace.as_deref();
        let stop = StopOnDrop(Arc::default());
        let data = self
            .prepare_data(options.scan(&stop.0), &options.store_settings)
            .await?;
        let mut packed = PackedRun {
            spec: self,
            name: self.run_name(&names::random_suffix()),
            namespace: namespace
                .unwrap_or_else(|| cluster.default_namespace())
                .to_owned(),
            bundle,
            store,
            keeps_outputs: options.keeps_outputs,
            data,
            data_root: options.data_root.clone(),
        };
        // The upload may be large, so run the checks first.
        let report = preflight::check(cluster, &packed.plan()?, options.purpose).await?;
        if !report.refusals.is_empty() {
            return Err(LaunchError::Refused(report.refusals));
        }
        let data = options.data(self.url_validity());
        let delivered = packed.deliver_data(cluster, &data, &stop.0).await?;
        let plan = packed.deliver(options.delivery()).await?;
        let run = submit(cluster, &plan).await?;
        delivered.submitted();
        let notes = plan.notes.iter().map(|note| {
            let (problem, remedy) = note.split_once("; ").unwrap_or((note, ""));
            Finding::new(Cause::Unknown, problem, remedy)
        });
        let mut warnings = report.warnings;
        warnings.extend(packed.code_warnings());
        warnings.extend(packed.warnings().into_iter().chain(notes));
        Ok(Launched {
            run,
            packed: packed.bundle.map(|bundle| bundle.report),
            warnings,
            start_timeout: self.start_timeout,
        })
    }

    /// Options to follow a run of this specification.
    #[must_use]
    pub fn follow_options(&self) -> FollowOptions {
        follow_options(self.start_timeout)
    }

    /// The required validity of signed URLs of the run's bundle.
    #[must_use]
    pub fn url_validity(&self) -> Duration {
        store::validity(self.start_timeout, self.retries, self.timeout)
    }

    async fn pack(&self, folder: &Path, options: &LaunchOptions) -> Result<Bundle, LaunchError> {
        let pack = PackOptions {
            ignore: [self.ignore.clone(), self.data_below(folder)].concat(),
            allow_secrets: self.allow_secrets.clone(),
            cache: options.cache.as_ref().map(|cache| cache.join("bundles")),
            ..PackOptions::default()
        };
        let progress = Arc::clone(&options.progress);
        let report = move |packed| progress(LaunchProgress::Packing(packed));
        Ok(pack_in_background(folder.to_owned(), pack, report).await?)
    }
}

/// The name of a folder, as the default name of its runs.
#[must_use]
pub fn folder_name(folder: &Path) -> String {
    let absolute = folder.canonicalize();
    let folder = absolute.as_deref().unwrap_or(folder);
    folder
        .file_name()
        .map_or_else(|| "run".into(), |name| name.to_string_lossy().into_owned())
}
