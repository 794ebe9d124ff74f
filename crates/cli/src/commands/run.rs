//! `longshore run`: runs a folder of code and follows the run to its end.

mod input;
mod misplaced;
mod packing;
mod shell;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use clap::Args;
use longshore::{
    client::Cluster,
    launcher::{
        Bundle, Flags, FollowOptions, PackedRun, Plan, PodFlags, Run, RunSpec, Settings, Store,
        Workload,
        config::{self, Input},
        launch::folder_name,
        names,
        preflight::{self, Finding, Purpose},
        runs, submit,
    },
};

pub(crate) use misplaced::misplaced_command;

use crate::{
    config as folder_config, env,
    error::{Error, Kind, Result},
    follow::{self, How, OnInterrupt},
    hints,
    interrupt::Interrupt,
    show::{EventFormat, head},
    stdin::IgnoredInput,
    target::{Chosen, ClusterArgs, Target},
    terminal::Terminal,
    ui,
    upload::deliver,
};

/// How long to wait for a pending submission after an interrupt.
const SUBMISSION_TIMEOUT: Duration = Duration::from_secs(10);

/// Run a folder of code as a job, and follow it to its end
///
/// Packs and uploads the folder, starts one process per task, prints the logs of all
/// tasks, each line prefixed with its task, and exits with the exit code of the command.
/// Put recurring options in the folder's longshore.toml.
///
/// Files that .gitignore or .longshoreignore match are not packed; --dry-run lists them.
/// An unchanged folder is not packed or uploaded again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore run -- python train.py
  longshore run examples/digits --role worker=4
  longshore run --env EPOCHS=3 --timeout 2h --detach -- python train.py
  longshore run -it -- python -m pdb train.py
  gunzip < data.gz | longshore run -i -- python count.py
  longshore run --dry-run -- python train.py
  longshore run --cron \"0 3 * * *\" --time-zone Europe/Berlin -- python train.py
  longshore run --context production --image registry.example/train -- python train.py")]
pub(crate) struct RunArgs {
    /// Folder of code
    #[arg(value_name = "DIR", default_value = ".")]
    folder: PathBuf,
    /// Command that each task runs
    #[arg(last = true)]
    command: Vec<String>,
    /// Number of tasks of a role that longshore.toml defines; can be repeated
    #[arg(long = "role", value_name = "NAME=N")]
    roles: Vec<String>,
    /// Name of the run [default: the name of the folder]
    #[arg(long)]
    name: Option<String>,
    /// Namespace [default: that of the context]
    #[arg(long, short)]
    namespace: Option<String>,
    /// Container image
    #[arg(long, help_heading = "Pods")]
    image: Option<String>,
    /// Image that contains the program longshore, for images without it; an init
    /// container copies the program into the pod
    #[arg(long, value_name = "IMAGE", help_heading = "Pods")]
    launcher_image: Option<String>,
    /// Set an environment variable; NAME alone takes its value from this shell
    #[arg(long, short, value_name = "NAME[=VALUE]", help_heading = "Pods")]
    env: Vec<String>,
    /// Read environment variables from a file, in the format of `docker run --env-file`;
    /// --env overrides them
    #[arg(long, value_name = "FILE", help_heading = "Pods")]
    env_file: Vec<PathBuf>,
    /// Pass stdin to the task; requires a run with a single task
    #[arg(long, short = 'i', conflicts_with_all = ["detach", "cron"])]
    stdin: bool,
    /// Allocate a terminal for the task, as for a shell or a debugger: -it
    #[arg(long, short = 't', requires = "stdin", conflicts_with = "output")]
    tty: bool,
    /// CPU request of each task, as in 2 or 500m
    #[arg(long, help_heading = "Pods")]
    cpu: Option<String>,
    /// Memory request and limit of each task, as in 4Gi (powers of 1024) or 4G (powers of
    /// 1000)
    #[arg(long, help_heading = "Pods")]
    memory: Option<String>,
    /// Number of GPUs of each task
    #[arg(long, help_heading = "Pods")]
    gpu: Option<String>,
    /// Number of times to restart failed tasks
    #[arg(long, value_name = "N")]
    retries: Option<u32>,
    /// Maximum duration of the run, as in 90s or 2h
    #[arg(long, value_name = "TIME")]
    timeout: Option<String>,
    /// Maximum time until a task starts
    #[arg(long, value_name = "TIME")]
    start_timeout: Option<String>,
    /// Time to keep the run's objects after it ends, as in 7d
    #[arg(long, value_name = "TIME")]
    ttl: Option<String>,
    /// Port of the first task; each further task uses the next port
    #[arg(long, help_heading = "Pods")]
    port: Option<u16>,
    /// Store for code bundles, as in s3://bucket/prefix or file:///srv/bundles
    #[arg(long, value_name = "URL", help_heading = "Code")]
    store: Option<String>,
    /// Exclude files that match a .gitignore pattern
    #[arg(long, value_name = "PATTERN", help_heading = "Code")]
    ignore: Vec<String>,
    /// Include files that look like secrets and match a .gitignore pattern
    #[arg(long, value_name = "PATTERN", help_heading = "Code")]
    allow_secret: Vec<String>,
    /// Mount a volume of kind claim, secret, config-map, host or empty, as in
    /// claim:datasets:/data:ro; on the embedded cluster, a host folder can be relative,
    /// as in host:outputs:/outputs
    #[arg(long, value_name = "KIND:NAME:PATH", help_heading = "Pods")]
    volume: Vec<String>,
    /// Size of /dev/shm, as in 8Gi
    #[arg(long, value_name = "SIZE", help_heading = "Pods")]
    shared_memory: Option<String>,
    /// Run only on nodes with this label
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Pods")]
    node_selector: Vec<String>,
    /// Tolerate this taint
    #[arg(long, value_name = "KEY[=VALUE][:EFFECT]", help_heading = "Pods")]
    toleration: Vec<String>,
    /// Name of a PriorityClass
    #[arg(long, value_name = "NAME", help_heading = "Pods")]
    priority_class: Option<String>,
    /// Service account of the pods; without one they get no token
    #[arg(long, value_name = "NAME", help_heading = "Pods")]
    service_account: Option<String>,
    /// Add a label to every object of the run
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Pods")]
    label: Vec<String>,
    /// Kueue LocalQueue that admits the run
    #[arg(long, value_name = "NAME", help_heading = "Pods")]
    queue: Option<String>,
    /// Run on a schedule, in cron syntax: "0 3 * * *"
    #[arg(long, value_name = "SCHEDULE", help_heading = "Schedule")]
    cron: Option<String>,
    /// Time zone of the schedule, as in Europe/Berlin
    #[arg(long, value_name = "ZONE", help_heading = "Schedule")]
    time_zone: Option<String>,
    /// Create pods that meet the Pod Security Standard `restricted`: no root, no
    /// privileges
    #[arg(long, help_heading = "Pods")]
    restricted: bool,
    /// Create one JobSet for all roles; requires JobSet in the cluster
    #[arg(long, help_heading = "Pods")]
    jobset: bool,
    /// YAML pod template to merge over the generated one
    #[arg(long, value_name = "FILE", help_heading = "Pods")]
    template: Option<PathBuf>,
    /// Do not upload code; the image contains the command
    #[arg(long, help_heading = "Code")]
    no_code: bool,
    /// Print the objects as YAML without creating them; list excluded files on standard
    /// error
    #[arg(long)]
    dry_run: bool,
    /// Print the name of the run and exit without following it
    #[arg(long, short = 'd', visible_alias = "no-follow")]
    detach: bool,
    /// Effect of Ctrl-C on the run; without a terminal, `ask` cancels it
    ///
    /// SIGTERM leaves the run alone, except with `cancel`. SIGKILL, SIGHUP and closing the
    /// terminal always leave it alone.
    #[arg(long, value_enum, default_value_t, value_name = "ACTION", env = env::ON_INTERRUPT, hide_env_values = true)]
    on_interrupt: OnInterrupt,
    /// Output format
    #[arg(long, short, value_enum, default_value_t, value_name = "FORMAT")]
    output: EventFormat,
    #[command(flatten)]
    cluster: ClusterArgs,
}

impl RunArgs {
    /// `here` is the current folder, if pods share this machine's files.
    fn flags(&self, here: Option<PathBuf>) -> Result<Flags> {
        Ok(Flags {
            name: self.name.clone(),
            namespace: self.namespace.clone(),
            image: self.image.clone(),
            launcher_image: self.launcher_image.clone(),
            env_file: shell::of_files(&self.env_file)?,
            env: shell::passed_through(&self.env)?,
            input: self.input(),
            here,
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
            restricted: self.restricted,
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
        })
    }

    fn input(&self) -> Input {
        match (self.stdin, self.tty) {
            (_, true) => Input::Terminal,
            (true, false) => Input::Piped,
            (false, false) => Input::None,
        }
    }
}

pub(crate) async fn run(args: RunArgs) -> Result<ExitCode> {
    // Validate everything before starting anything.
    check_folder(&args.folder)?;
    if args.tty && !args.dry_run && Terminal::find().is_none() {
        return Err(Error::usage(input::NO_TERMINAL));
    }
    let settings = folder_config::load(&args.folder)?;
    let configured = folder_config::cluster(&settings, &args.folder);
    let here = match args.cluster.is_embedded(&configured) {
        true => Some(std::env::current_dir().map_err(|error| usage(&error))?),
        false => None,
    };
    let mut spec = resolve(&args, &settings, here.clone())?;
    let store = spec.store.as_deref().map(Store::parse).transpose();
    let store = store.map_err(|error| usage(&error))?;
    let chosen = args.cluster.choice(&configured).await?;

    let cluster = match args.dry_run {
        // Do not start a cluster.
        true => chosen.name().to_owned(),
        false => chosen.describe().await?,
    };
    let cluster = hints::complete(&cluster);
    ui::note(format!("{} {cluster}", head("cluster")));
    let mut interrupt = Interrupt::listen()?;
    let bundle = packing::pack(&args.folder, &spec, args.dry_run, &mut interrupt).await?;
    if let Some(here) = &here {
        shell::record(&mut spec, here, &args.folder, bundle.as_ref());
    }
    warn_of_files_left_out(&spec, bundle.as_ref());
    let store = store.or_else(|| chosen.own_store(bundle.as_ref().map_or(0, |bundle| bundle.size)));

    let run = spec.run_name(&names::random_suffix());
    let namespace = spec
        .namespace
        .as_deref()
        .unwrap_or_else(|| chosen.default_namespace());
    if namespace != chosen.default_namespace() {
        hints::remember_namespace(namespace);
    }
    let packed = PackedRun {
        spec: &spec,
        name: run,
        namespace: namespace.to_owned(),
        bundle,
        store,
    };
    let plan = packed.plan()?;
    if args.dry_run {
        ui::bytes(plan.to_yaml().as_bytes());
        return Ok(ExitCode::SUCCESS);
    }
    launch(&args, chosen, &packed, &plan, interrupt).await
}

async fn launch(
    args: &RunArgs,
    chosen: Chosen,
    packed: &PackedRun<'_>,
    plan: &Plan,
    mut interrupt: Interrupt,
) -> Result<ExitCode> {
    let target = interrupt.unless(chosen.open()).await??;
    let (cluster, spec) = (target.cluster(), packed.spec);
    let scheduled = matches!(spec.workload, Workload::Scheduled(_));
    // A schedule creates its runs later, so do not follow.
    let detach = args.detach || scheduled;
    let purpose = match detach {
        true => Purpose::Detach,
        false => Purpose::Follow,
    };
    let started = async {
        // The upload may be large: run the checks first.
        let checked = check(cluster, plan, purpose);
        interrupt.unless(checked).await??;
        let plan = deliver(packed, &mut interrupt).await?;
        start(cluster, &plan, &mut interrupt).await
    };
    let result = match started.await {
        Ok(run) => {
            if scheduled {
                ui::note(format!("{} {}", head("cron"), due(cluster, &run).await));
            } else {
                ui::note(format!("{} {}", head("run"), news(&run, spec)));
            }
            if detach {
                // The cluster keeps running for the run or schedule.
                ui::line(run.name.as_str());
                Ok(ExitCode::SUCCESS)
            } else {
                let options = spec.follow_options();
                let how = How {
                    format: args.output,
                    on_interrupt: args.on_interrupt,
                    ..How::default()
                };
                follow_run(&target, &run, spec.input, options, how, interrupt).await
            }
        }
        Err(error) => {
            follow::report_not_started(&error, args.output);
            Err(error)
        }
    };
    let closed = target.close().await;
    let code = result?;
    closed.map(|()| code)
}

/// Follows the run to its end, and passes standard input to its task if requested.
async fn follow_run(
    target: &Target,
    run: &Run,
    input: Input,
    options: FollowOptions,
    mut how: How,
    interrupt: Interrupt,
) -> Result<ExitCode> {
    let sending = match input {
        Input::Terminal => {
            return input::interactive(target, run, options, how, interrupt).await;
        }
        Input::Piped => Some(input::send(target.cluster(), run)),
        Input::None => {
            how.ignored = IgnoredInput::watch();
            None
        }
    };
    let result = follow::to_the_end(target, run, options, how, interrupt).await;
    if let Some(sending) = sending {
        sending.abort();
    }
    result
}

/// When a schedule creates its first run.
async fn due(cluster: &Cluster, run: &Run) -> String {
    let found = runs::find(cluster, &run.namespace, run.name.as_str()).await;
    let schedule = found.ok().and_then(|found| found.schedule);
    let next = schedule.and_then(|schedule| schedule.next);
    let next = next.map_or_else(|| "never".to_owned(), |next| format!("at {next}"));
    format!("{}, first due {next}", run.name)
}

/// Runs preflight and rejects a plan with problems.
async fn check(cluster: &Cluster, plan: &Plan, purpose: Purpose) -> Result<()> {
    let report = preflight::check(cluster, plan, purpose).await?;
    for warning in &report.warnings {
        ui::warning(hints::complete(&warning.to_string()));
    }
    refuse(&report.refusals)
}

/// Submits the plan. After Ctrl-C, none of its objects is left.
async fn start(cluster: &Cluster, plan: &Plan, interrupt: &mut Interrupt) -> Result<Run> {
    let submission = async {
        let submitted = submit::submit(cluster, plan).await;
        submitted.map_err(|error| not_started(&error, plan))
    };
    let mut submission = std::pin::pin!(submission);
    match interrupt.unless(&mut submission).await {
        Ok(result) => result,
        Err(error) => {
            // A pending request cannot be cancelled: let it complete, and remove the created
            // objects.
            if let Ok(Ok(run)) = tokio::time::timeout(SUBMISSION_TIMEOUT, submission).await {
                runs::remove(cluster, &run).await?;
            }
            Err(error)
        }
    }
}

/// Reports all problems in one error.
fn refuse(findings: &[Finding]) -> Result<()> {
    match findings {
        [] => Ok(()),
        [one] => Err(Error::new(Kind::NotStarted, &one.problem).hint(&one.remedy)),
        several => {
            let message = format!("{} problems block the run", several.len());
            let lines = several.iter().map(Finding::to_string);
            Err(Error::new(Kind::NotStarted, message).details(lines))
        }
    }
}

fn not_started(error: &submit::SubmitError, plan: &Plan) -> Error {
    match error
        .cluster_error()
        .map(|cause| Error::from(cause.clone()))
    {
        // An unreachable cluster has its own exit code.
        Some(cause) if cause.kind() == Kind::Cluster => cause.hint(format!(
            "a part of the run {run} may have been created: if `longshore runs` lists it when the cluster answers again, `longshore rm {run}` removes it",
            run = plan.run
        )),
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

fn resolve(args: &RunArgs, settings: &Settings, here: Option<PathBuf>) -> Result<RunSpec> {
    let flags = args.flags(here)?;
    let spec = config::resolve(settings, &flags, &folder_name(&args.folder));
    let mut spec = spec.map_err(|error| usage(&error))?;
    spec.ignore
        .extend(shell::left_out(&args.env_file, &args.folder));
    Ok(spec)
}

/// Warns about files that the command names but that the tasks do not have.
fn warn_of_files_left_out(spec: &RunSpec, bundle: Option<&Bundle>) {
    let Some(bundle) = bundle else { return };
    let caller = spec.caller.as_ref();
    let is_linked = |path: &Path| caller.is_some_and(|caller| caller.has(path));
    for role in &spec.roles {
        for warning in bundle.warnings(&role.command, is_linked) {
            ui::warning(warning);
        }
    }
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
