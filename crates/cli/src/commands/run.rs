//! `longshore run`: a folder of code becomes a run; follow it to its end.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use clap::Args;
use longshore::{
    client::Cluster,
    launcher::{
        Bundle, BundleInfo, Flags, FollowOptions, PackOptions, Plan, PodFlags, Run, RunName,
        RunSpec, Settings, Store, Workload, bundle,
        bundle::BundleError,
        config, names, plan,
        preflight::{self, Finding, Purpose},
        runs, store, submit,
    },
};

use crate::{
    config as folder_config, env,
    error::{Error, Kind, Result},
    follow::{self, OnInterrupt},
    progress::Spinner,
    target::{Chosen, ClusterArgs},
    ui,
    upload::deliver,
};

/// How long a submission that nobody wants any more is waited for.
const SUBMISSION: Duration = Duration::from_secs(10);

/// Run a folder of code as a job, and follow it to its end
///
/// Packs the folder, sends it along, starts one process a task, shows the logs
/// of all of them, each line with its task in front, and ends with the
/// command's own exit code. What is typed every time may stand in the folder's
/// longshore.toml.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore run -- python train.py
  longshore run examples/digits --role worker=4
  longshore run --env EPOCHS=3 --timeout 2h --detach -- python train.py
  longshore run --dry-run -- python train.py
  longshore run --cron \"0 3 * * *\" --time-zone Europe/Berlin -- python train.py
  longshore run --context production --image registry.example/train -- python train.py")]
pub(crate) struct RunArgs {
    /// The folder of code
    #[arg(value_name = "DIR", default_value = ".")]
    folder: PathBuf,
    /// The command each task runs
    #[arg(last = true)]
    command: Vec<String>,
    /// How many tasks a role has; the roles are those of longshore.toml
    #[arg(long = "role", value_name = "NAME=N")]
    roles: Vec<String>,
    /// The run's name; the folder's without it
    #[arg(long)]
    name: Option<String>,
    /// The namespace
    #[arg(long, short)]
    namespace: Option<String>,
    /// The image of the containers
    #[arg(long, help_heading = "Pods")]
    image: Option<String>,
    /// A variable for the command
    #[arg(long, short, value_name = "KEY=VALUE", help_heading = "Pods")]
    env: Vec<String>,
    /// Processors a task needs, as in 2 or 500m
    #[arg(long, help_heading = "Pods")]
    cpu: Option<String>,
    /// Memory a task needs, as in 4Gi
    #[arg(long, help_heading = "Pods")]
    memory: Option<String>,
    /// GPUs a task needs
    #[arg(long, help_heading = "Pods")]
    gpu: Option<String>,
    /// How often a failed task is started again
    #[arg(long, value_name = "N")]
    retries: Option<u32>,
    /// How long the run may take, as in 90s or 2h
    #[arg(long, value_name = "TIME")]
    timeout: Option<String>,
    /// How long a task may wait for its start
    #[arg(long, value_name = "TIME")]
    start_timeout: Option<String>,
    /// How long the run's objects stay after its end, as in 7d
    #[arg(long, value_name = "TIME")]
    ttl: Option<String>,
    /// The first task's port
    #[arg(long, help_heading = "Pods")]
    port: Option<u16>,
    /// Where bundles go, as in s3://bucket/prefix or file:///srv/bundles
    #[arg(long, value_name = "URL", help_heading = "Code")]
    store: Option<String>,
    /// Leave these files out, in .gitignore's language
    #[arg(long, value_name = "PATTERN", help_heading = "Code")]
    ignore: Vec<String>,
    /// Send these files though they look like secrets, in .gitignore's language
    #[arg(long, value_name = "PATTERN", help_heading = "Code")]
    allow_secret: Vec<String>,
    /// Mount a volume: claim, secret, config-map, host or empty, as in
    /// claim:datasets:/data:ro
    #[arg(long, value_name = "KIND:NAME:PATH", help_heading = "Pods")]
    volume: Vec<String>,
    /// The size of /dev/shm, as in 8Gi
    #[arg(long, value_name = "SIZE", help_heading = "Pods")]
    shared_memory: Option<String>,
    /// Only nodes with this label
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Pods")]
    node_selector: Vec<String>,
    /// Nodes with this taint, too
    #[arg(long, value_name = "KEY[=VALUE][:EFFECT]", help_heading = "Pods")]
    toleration: Vec<String>,
    /// The name of a PriorityClass
    #[arg(long, value_name = "NAME", help_heading = "Pods")]
    priority_class: Option<String>,
    /// The service account of the pods; without one they get no token
    #[arg(long, value_name = "NAME", help_heading = "Pods")]
    service_account: Option<String>,
    /// A label for every object
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Pods")]
    label: Vec<String>,
    /// The queue that admits the run: Kueue's LocalQueue
    #[arg(long, value_name = "NAME", help_heading = "Pods")]
    queue: Option<String>,
    /// Make the run again and again, as cron writes it: "0 3 * * *"
    #[arg(long, value_name = "SCHEDULE", help_heading = "Schedule")]
    cron: Option<String>,
    /// Whose clock the schedule means, as in Europe/Berlin
    #[arg(long, value_name = "ZONE", help_heading = "Schedule")]
    time_zone: Option<String>,
    /// One JobSet for all roles, if the cluster has them
    #[arg(long, help_heading = "Pods")]
    jobset: bool,
    /// A pod template, as YAML, that is merged over ours
    #[arg(long, value_name = "FILE", help_heading = "Pods")]
    template: Option<PathBuf>,
    /// Send no code; the command is in the image
    #[arg(long, help_heading = "Code")]
    no_code: bool,
    /// Write what would be sent to the cluster, as YAML, and send nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not wait for the end
    #[arg(long, visible_alias = "no-follow")]
    detach: bool,
    /// What Ctrl-C does to the run; without a terminal there is nobody to ask,
    /// and `ask` cancels
    #[arg(long, value_enum, default_value_t, value_name = "WHAT", env = env::ON_INTERRUPT, hide_env_values = true)]
    on_interrupt: OnInterrupt,
    /// How to tell what happens
    #[arg(long, short, value_enum, default_value_t)]
    output: follow::Telling,
    #[command(flatten)]
    cluster: ClusterArgs,
}

impl RunArgs {
    fn flags(&self) -> Flags {
        Flags {
            name: self.name.clone(),
            namespace: self.namespace.clone(),
            image: self.image.clone(),
            env: self.env.clone(),
            roles: self.roles.clone(),
            cpu: self.cpu.clone(),
            memory: self.memory.clone(),
            gpu: self.gpu.clone(),
            store: self.store.clone(),
            retries: self.retries,
            timeout: self.timeout.clone(),
            start_timeout: self.start_timeout.clone(),
            ttl: self.ttl.clone(),
            port: self.port,
            ignore: self.ignore.clone(),
            allow_secrets: self.allow_secret.clone(),
            labels: self.label.clone(),
            service_account: self.service_account.clone(),
            queue: self.queue.clone(),
            cron: self.cron.clone(),
            time_zone: self.time_zone.clone(),
            jobset: self.jobset,
            pods: PodFlags {
                volumes: self.volume.clone(),
                node_selector: self.node_selector.clone(),
                tolerations: self.toleration.clone(),
                priority_class: self.priority_class.clone(),
                shared_memory: self.shared_memory.clone(),
                template: self.template.clone(),
            },
            no_code: self.no_code,
            command: self.command.clone(),
        }
    }
}

pub(crate) async fn run(args: RunArgs) -> Result<ExitCode> {
    // All that can be refused is refused before anything is started.
    check_folder(&args.folder)?;
    let settings = folder_config::load(&args.folder)?;
    let spec = resolve(&args, &settings)?;
    let store = spec.store.as_deref().map(Store::parse).transpose();
    let store = store.map_err(|error| usage(&error))?;
    let configured = folder_config::cluster(&settings, &args.folder);
    let chosen = args.cluster.choice(&configured).await?;

    ui::note(format!("{} {}", follow::head("cluster"), chosen.name()));
    let mut interrupt = follow::Interrupt::listen()?;
    let bundle = interrupt.unless(pack(&args.folder, &spec)).await??;
    let store = store.or_else(|| chosen.own_store(bundle.as_ref().map_or(0, |bundle| bundle.size)));

    let run = spec.run_name(&names::random_suffix());
    let namespace = spec
        .namespace
        .as_deref()
        .unwrap_or_else(|| chosen.default_namespace());
    let info = bundle
        .as_ref()
        .map(|bundle| store::describe(bundle, store.as_ref()))
        .transpose();
    let info = info.map_err(|error| Error::from_source(Kind::NotStarted, &error))?;
    let plan = make_plan(&spec, &run, namespace, info.as_ref())?;
    if args.dry_run {
        ui::bytes(plan.to_yaml().as_bytes());
        return Ok(ExitCode::SUCCESS);
    }
    let sending = bundle.as_ref().zip(store.as_ref());
    launch(&args, &spec, chosen, plan, sending, interrupt).await
}

async fn launch(
    args: &RunArgs,
    spec: &RunSpec,
    chosen: Chosen,
    plan: Plan,
    sending: Option<(&Bundle, &Store)>,
    mut interrupt: follow::Interrupt,
) -> Result<ExitCode> {
    let target = interrupt.unless(chosen.open()).await??;
    let cluster = target.cluster();
    let scheduled = matches!(spec.workload, Workload::Scheduled(_));
    // What a schedule makes, it makes later: nobody waits for it.
    let detach = args.detach || scheduled;
    let purpose = match detach {
        true => Purpose::Detach,
        false => Purpose::Follow,
    };
    let started = async {
        // Much may be sent: first it is clear that it is of use.
        let checked = check(cluster, &plan, purpose);
        interrupt.unless(checked).await??;
        let plan = match sending {
            None => plan,
            Some((bundle, store)) => {
                let info = deliver(bundle, Some(store), spec, &mut interrupt).await?;
                make_plan(spec, &plan.run, &plan.namespace, Some(&info))?
            }
        };
        start(cluster, &plan, &mut interrupt).await
    };
    let result = match started.await {
        Ok(run) => {
            if scheduled {
                ui::note(format!(
                    "{} {}",
                    follow::head("cron"),
                    due(cluster, &run).await
                ));
            } else {
                ui::note(format!("{} {}", follow::head("run"), news(&run, spec)));
            }
            if detach {
                ui::line(run.name.as_str());
                target.keep().map(|()| ExitCode::SUCCESS)
            } else {
                let options = FollowOptions {
                    start_timeout: spec.start_timeout,
                    ..FollowOptions::default()
                };
                let how = (args.output, args.on_interrupt);
                follow::to_the_end(&target, &run, options, how, interrupt).await
            }
        }
        Err(error) => Err(error),
    };
    let closed = target.close().await;
    let code = result?;
    closed.map(|()| code)
}

/// When a schedule makes its first run.
async fn due(cluster: &Cluster, run: &Run) -> String {
    let found = runs::find(cluster, &run.namespace, run.name.as_str()).await;
    let schedule = found.ok().and_then(|found| found.schedule);
    let next = schedule.and_then(|schedule| schedule.next);
    let next = next.map_or_else(|| "never".to_owned(), |next| format!("at {next}"));
    format!("{}, first due {next}", run.name)
}

/// Refuses a plan that something speaks against.
async fn check(cluster: &Cluster, plan: &Plan, purpose: Purpose) -> Result<()> {
    let report = preflight::check(cluster, plan, purpose).await?;
    for warning in &report.warnings {
        ui::warning(warning.to_string());
    }
    refuse(&report.refusals)
}

/// Submits the plan. After Ctrl-C nothing of it is left.
async fn start(cluster: &Cluster, plan: &Plan, interrupt: &mut follow::Interrupt) -> Result<Run> {
    let submission = async {
        let submitted = submit::submit(cluster, plan).await;
        submitted.map_err(|error| not_started(&error))
    };
    let mut submission = std::pin::pin!(submission);
    match interrupt.unless(&mut submission).await {
        Ok(result) => result,
        Err(error) => {
            // A request that is on its way cannot be called back: let it
            // arrive, and remove what it made.
            if let Ok(Ok(run)) = tokio::time::timeout(SUBMISSION, submission).await {
                runs::remove(cluster, &run).await?;
            }
            Err(error)
        }
    }
}

/// All that speaks against the run, told at once.
fn refuse(findings: &[Finding]) -> Result<()> {
    match findings {
        [] => Ok(()),
        [one] => Err(Error::new(Kind::NotStarted, &one.problem).hint(&one.remedy)),
        several => {
            let message = format!("{} things keep the run from starting", several.len());
            let lines = several.iter().map(Finding::to_string);
            Err(Error::new(Kind::NotStarted, message).details(lines))
        }
    }
}

fn not_started(error: &submit::SubmitError) -> Error {
    match error
        .cluster_error()
        .map(|cause| Error::from(cause.clone()))
    {
        // A cluster that cannot be reached has an exit code of its own.
        Some(cause) if cause.kind() == Kind::Cluster => cause,
        _ => Error::from_source(Kind::NotStarted, error),
    }
}

fn check_folder(folder: &Path) -> Result<()> {
    let problem = match folder.metadata() {
        Ok(found) if found.is_dir() => return Ok(()),
        Ok(_) => "is a file, not a folder".to_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => "does not exist".to_owned(),
        Err(error) => format!("cannot be opened: {error}"),
    };
    Err(Error::usage(format!("{} {problem}", folder.display())).hint(
        "the first argument is the folder of code; the command comes after `--`, as in `longshore run -- python train.py`",
    ))
}

fn resolve(args: &RunArgs, settings: &Settings) -> Result<RunSpec> {
    let folder = args
        .folder
        .canonicalize()
        .unwrap_or_else(|_| args.folder.clone());
    let name = folder
        .file_name()
        .map_or_else(|| "run".into(), |name| name.to_string_lossy());
    config::resolve(settings, &args.flags(), &name).map_err(|error| usage(&error))
}

/// Packs the folder, says what went in and what did not.
async fn pack(folder: &Path, spec: &RunSpec) -> Result<Option<Bundle>> {
    if !spec.code {
        return Ok(None);
    }
    let spinner = Spinner::start("packing");
    let tick = spinner.clone();
    let (folder, options) = (
        folder.to_owned(),
        PackOptions {
            ignore: spec.ignore.clone(),
            allow_secrets: spec.allow_secrets.clone(),
            cache: env::cache_dir().map(|cache| cache.join("bundles")),
        },
    );
    let packed = tokio::task::spawn_blocking(move || {
        bundle::pack(&folder, &options, |progress| {
            tick.say(|| {
                format!(
                    "packing: {} files, {}",
                    progress.files,
                    ui::size(progress.bytes)
                )
            });
        })
    })
    .await;
    spinner.end();
    let bundle = packed
        .map_err(|error| failed(&error))?
        .map_err(|error| match error {
            // Nothing is wrong with the folder.
            BundleError::Write(_) => Error::from_source(Kind::NotStarted, &error),
            _ => usage(&error),
        })?;
    let report = &bundle.report;
    let mut text = format!(
        "{}, {} ({} packed)",
        ui::count(report.files, "file"),
        ui::size(report.bytes),
        ui::size(bundle.size)
    );
    if report.left_out > 0 {
        let examples = report
            .left_out_examples
            .iter()
            .take(3)
            .cloned()
            .collect::<Vec<_>>();
        let more = if report.left_out > examples.len() as u64 {
            ", …"
        } else {
            ""
        };
        text = format!("{text}; left out {}{more}", examples.join(", "));
    }
    ui::note(format!("{} {text}", follow::head("code")));
    for role in &spec.roles {
        for warning in bundle.warnings(&role.command) {
            ui::warning(warning);
        }
    }
    Ok(Some(bundle))
}

fn make_plan(
    spec: &RunSpec,
    run: &RunName,
    namespace: &str,
    info: Option<&BundleInfo>,
) -> Result<Plan> {
    plan::plan(spec, run, namespace, info).map_err(|error| failed(&error))
}

/// The run in one line.
fn news(run: &Run, spec: &RunSpec) -> String {
    let roles: Vec<String> = spec
        .roles
        .iter()
        .map(|role| format!("{}={}", role.name, role.count))
        .collect();
    let place = match run.namespace.as_str() {
        "default" => String::new(),
        namespace => format!(" in {namespace}"),
    };
    format!("{}{place}: {}", run.name.as_str(), roles.join(" "))
}

fn usage(error: &(dyn std::error::Error + 'static)) -> Error {
    Error::from_source(Kind::Usage, error)
}

fn failed(error: &(dyn std::error::Error + 'static)) -> Error {
    Error::from_source(Kind::Failed, error)
}
