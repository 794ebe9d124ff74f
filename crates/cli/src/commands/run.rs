//! `longshore run`: runs a folder of code and follows the run to its end.

mod args;
mod input;
mod misplaced;
mod packing;
mod shell;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use longshore::{
    client::Cluster,
    launcher::{
        Bundle, BundleInfo, FollowOptions, Plan, Run, RunName, RunSpec, Settings, Store, Workload,
        config::{self, Input},
        names, plan,
        preflight::{self, Finding, Purpose},
        runs, store, submit,
    },
};

pub(crate) use args::RunArgs;
pub(crate) use misplaced::misplaced_command;

use crate::{
    config as folder_config,
    error::{Error, Kind, Result},
    follow::{self, How},
    hints,
    interrupt::Interrupt,
    show::head,
    stdin::IgnoredInput,
    target::{Chosen, Target},
    terminal::Terminal,
    ui,
    upload::deliver,
};

/// How long to wait for a pending submission after an interrupt.
const SUBMISSION_TIMEOUT: Duration = Duration::from_secs(10);

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
    mut interrupt: Interrupt,
) -> Result<ExitCode> {
    let target = interrupt.unless(chosen.open()).await??;
    let cluster = target.cluster();
    let scheduled = matches!(spec.workload, Workload::Scheduled(_));
    // A schedule creates its runs later, so do not follow.
    let detach = args.detach || scheduled;
    let purpose = match detach {
        true => Purpose::Detach,
        false => Purpose::Follow,
    };
    let started = async {
        // The upload may be large: run the checks first.
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
                ui::note(format!("{} {}", head("cron"), due(cluster, &run).await));
            } else {
                ui::note(format!("{} {}", head("run"), news(&run, spec)));
            }
            if detach {
                // The cluster keeps running for the run or schedule.
                ui::line(run.name.as_str());
                Ok(ExitCode::SUCCESS)
            } else {
                let options = FollowOptions {
                    start_timeout: spec.start_timeout,
                    ..FollowOptions::default()
                };
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
    let folder = args
        .folder
        .canonicalize()
        .unwrap_or_else(|_| args.folder.clone());
    let name = folder
        .file_name()
        .map_or_else(|| "run".into(), |name| name.to_string_lossy());
    let flags = args.flags(here)?;
    let spec = config::resolve(settings, &flags, &name);
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
