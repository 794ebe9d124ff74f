//! `longshore zenml run`: runs a pipeline from its config file, and follows it to its end.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use longshore::{
    launcher::{
        Caller, FollowOptions, RunSpec, Settings,
        caller::current_folder,
        config::{ClusterSettings, Text},
    },
    zenml::{BackendArgs, Launched, OrchestratorKubernetesBackend, PipelineConfig, ZenmlError},
};

use crate::{
    commands::run::{refuse, report_cluster, summary},
    config, env,
    error::{Error, Kind, Result},
    follow::{self, How, OnInterrupt},
    forward,
    interrupt::Interrupt,
    output::EventFormat,
    show::{self, head},
    target::{Chosen, ClusterArgs, Target},
    ui,
};

/// The folder of a repository of ZenML.
const REPOSITORY: &str = ".zenml";

/// Run a pipeline from its config file, and follow it to its end
///
/// CONFIG is a YAML file as `zenml pipeline run` of ZenML 0.3 reads it, for example from the folder
/// `pipelines` of the repository. This machine needs neither ZenML nor Python: a pod runs the
/// pipeline, with the repository's code and the ZenML of its image. The arguments of an
/// OrchestratorKubernetesBackend in the config are used; options override them. Without such a
/// backend, the pipeline runs on the cluster that `longshore run` uses.
///
/// Other options of the run, such as memory and variables, are read from a longshore.toml: of
/// --settings, of the backend's argument `settings`, or of the repository.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore zenml run pipelines/training_digits.yaml
  longshore zenml run training.yaml --image registry.example/team/zenml:1 --context production
  longshore zenml run training.yaml --detach
  longshore zenml run training.yaml --dry-run")]
pub(super) struct ZenmlRunArgs {
    /// Config of the pipeline
    #[arg(value_hint = clap::ValueHint::FilePath)]
    config: PathBuf,
    /// Image with Python and ZenML 0.3
    #[arg(long)]
    image: Option<String>,
    /// Folder of code [default: the nearest folder with .zenml, from the current one upwards, or the
    /// current one]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    code: Option<PathBuf>,
    /// Use the code in the image
    #[arg(long, conflicts_with = "code")]
    no_code: bool,
    /// longshore.toml with further options of the run
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    settings: Option<PathBuf>,
    /// Print the objects as YAML without creating them; list excluded files on standard error
    #[arg(long)]
    dry_run: bool,
    /// Print the name of the run and exit without following it
    #[arg(long, short = 'd', visible_alias = "no-follow")]
    detach: bool,
    /// Effect of Ctrl-C on the run; without a terminal, `ask` cancels it
    #[arg(long, value_enum, default_value_t, value_name = "ACTION", env = env::ON_INTERRUPT, hide_env_values = true)]
    on_interrupt: OnInterrupt,
    /// Output format
    #[arg(long, short, value_enum, default_value_t, value_name = "FORMAT")]
    output: EventFormat,
    /// Namespace [default: the config's, or `default`]
    #[arg(long, short)]
    namespace: Option<String>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// A pipeline that is ready to be launched.
struct Pipeline {
    config: PipelineConfig,
    backend: OrchestratorKubernetesBackend,
    spec: RunSpec,
    /// `None` for the code in the image.
    repository: Option<PathBuf>,
}

impl ZenmlRunArgs {
    pub(super) fn format(&self) -> EventFormat {
        self.output
    }

    /// Reads the config and the settings, and selects the cluster. Starts and contacts nothing.
    async fn load(&self) -> Result<(Pipeline, Chosen)> {
        let config = read(&self.config)?;
        let repository = self.repository()?;
        let args = BackendArgs::of(&config).map_err(|error| usage(&error))?;
        let (settings, folder) = self.settings(&args, &repository)?;
        let mut configured = config::cluster(&settings, &folder);
        if let Some(path) = &args.kubernetes_config_path {
            configured = ClusterSettings {
                context: None,
                kubeconfig: Some(with_home(path)),
                ..configured
            };
        }
        let settings = match self.cluster.names(&configured).as_slice() {
            [name] => settings.in_context(name),
            _ => settings,
        };
        let backend = self.backend(args, settings, &configured)?;
        let spec = backend.spec(&config).map_err(|error| usage(&error))?;
        let chosen = self.cluster.choice(&configured).await?;
        let pipeline = Pipeline {
            config,
            backend,
            spec,
            repository: (!self.no_code).then_some(repository),
        };
        Ok((pipeline, chosen))
    }

    /// The settings, and the folder that relative paths in them start from.
    fn settings(&self, args: &BackendArgs, repository: &Path) -> Result<(Settings, PathBuf)> {
        let Some(path) = self.settings.as_ref().or(args.settings.as_ref()) else {
            return Ok((config::load(repository)?, repository.to_owned()));
        };
        let settings = Settings::load_file(path, true);
        let settings = settings.map_err(|error| Error::from_source(Kind::Usage, &error))?;
        let folder = path.parent().unwrap_or(Path::new("."));
        Ok((settings, folder.to_owned()))
    }

    fn backend(
        &self,
        args: BackendArgs,
        mut settings: Settings,
        configured: &ClusterSettings,
    ) -> Result<OrchestratorKubernetesBackend> {
        let is_embedded = self.cluster.is_embedded(configured);
        let args = BackendArgs {
            image: self.image.clone().or(args.image),
            namespace: self.namespace.clone().or(args.namespace),
            ..args
        };
        if args.image.is_none() && settings.task.image.is_none() && !is_embedded {
            let message = "the config names no image, and the default image has no ZenML";
            return Err(Error::usage(message)
                .hint("use --image with an image that contains Python and ZenML 0.3"));
        }
        let launcher_image = env::text(longshore::launcher::config::LAUNCHER_IMAGE_ENV);
        if settings.run.launcher_image.is_none() {
            settings.run.launcher_image = launcher_image
                .filter(|image| !image.is_empty())
                .map(|image| Text::from(image.as_str()));
        }
        let mut backend = args.backend(settings).map_err(|error| usage(&error))?;
        if is_embedded {
            let here = current_folder().map_err(|error| Error::from_source(Kind::Usage, &error))?;
            backend.caller = Some(Caller::record(|name| std::env::var_os(name), &here).caller);
        }
        Ok(backend)
    }

    /// The folder of code.
    fn repository(&self) -> Result<PathBuf> {
        if let Some(folder) = &self.code {
            return Ok(folder.clone());
        }
        let here = current_folder().map_err(|error| Error::from_source(Kind::Usage, &error))?;
        let nearest = here.ancestors().find(|dir| dir.join(REPOSITORY).is_dir());
        Ok(nearest.unwrap_or(&here).to_owned())
    }
}

/// Runs the pipeline.
pub(super) async fn run(args: &ZenmlRunArgs) -> Result<ExitCode> {
    let mut interrupt = Interrupt::listen()?;
    let (pipeline, chosen) = args.load().await?;
    report_cluster(&chosen, args.dry_run).await?;
    if args.dry_run {
        interrupt.unless(pipeline.print()).await??;
        return Ok(ExitCode::SUCCESS);
    }
    let target = interrupt.unless(chosen.open()).await??;
    let result = pipeline.launch(&target, args, interrupt).await;
    let closed = target.close().await;
    let code = result?;
    closed.map(|()| code)
}

impl Pipeline {
    /// Prints the objects.
    async fn print(&self) -> Result<()> {
        let plan = match &self.repository {
            None => self
                .backend
                .plan(&self.config, None)
                .map_err(not_launched)?,
            Some(repository) => {
                let planned = self.backend.dry_run(repository, &self.config).await;
                let (plan, report) = planned.map_err(not_launched)?;
                ui::note(format!("{} {}", head("code"), summary(&report, None, true)));
                plan
            }
        };
        let yaml = plan.to_yaml();
        let yaml = yaml.map_err(|error| Error::from_source(Kind::Failed, &error))?;
        ui::bytes(yaml.as_bytes());
        Ok(())
    }

    async fn launch(
        self,
        target: &Target,
        args: &ZenmlRunArgs,
        mut interrupt: Interrupt,
    ) -> Result<ExitCode> {
        let cluster = target.cluster();
        let launch = async {
            match &self.repository {
                Some(repository) => self.backend.run(cluster, repository, &self.config).await,
                None => self.backend.launch_job(cluster, &self.config).await,
            }
        };
        let launched = interrupt.unless(launch).await?.map_err(not_launched)?;
        report(&launched);
        let run = &launched.run;
        if args.detach {
            forward::is_left_out(&self.spec.forward, run.name.as_str());
            show::left_alone(run, args.output, &target.facts());
            return Ok(ExitCode::SUCCESS);
        }
        let how = How {
            format: args.output,
            on_interrupt: args.on_interrupt,
            notify: self.spec.notify.clone(),
            ..How::default()
        };
        let options: FollowOptions = self.spec.follow_options();
        follow::to_the_end(target, run, options, how, interrupt).await
    }
}

/// Prints the packed files, and the name of the run.
fn report(launched: &Launched) {
    if let Some(packed) = &launched.packed {
        ui::note(format!("{} {}", head("code"), summary(packed, None, false)));
        packed.warnings.iter().for_each(ui::warning);
    }
    launched.warnings.iter().for_each(ui::warning);
    ui::note(format!("{} {}", head("run"), launched.run.name.as_str()));
}

/// Reads a config file.
fn read(path: &Path) -> Result<PipelineConfig> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| {
        Error::usage(format!("cannot read {shown}: {error}"))
            .hint("give the config of a pipeline, as in pipelines/training_digits.yaml")
    })?;
    PipelineConfig::from_yaml(&text).map_err(|error| Error::usage(format!("{shown}: {error}")))
}

fn usage(error: &ZenmlError) -> Error {
    Error::from_source(Kind::Usage, error)
}

fn not_launched(error: ZenmlError) -> Error {
    let kind = match &error {
        ZenmlError::Refused(findings) => {
            if let Err(error) = refuse(findings) {
                return error;
            }
            Kind::NotStarted
        }
        ZenmlError::Cluster(source) => return source.clone().into(),
        ZenmlError::Submit(_) | ZenmlError::Exists { .. } | ZenmlError::Store(_) => {
            Kind::NotStarted
        }
        _ => Kind::Usage,
    };
    Error::from_source(kind, &error)
}

/// Expands `~` in a path, as ZenML does for its default.
fn with_home(path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), env::home()) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_owned(),
    }
}
