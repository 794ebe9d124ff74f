//! `longshore run`: runs a folder of code and follows the run to its end.

mod args;
mod configuration;
mod contexts;
mod data;
mod input;
mod launch;
mod misplaced;
mod packing;
mod shell;
mod submission;

use std::{path::Path, process::ExitCode, time::Duration};

use longshore::launcher::{
    Bundle, LaunchError, PackedRun, RunSpec, Workload,
    config::Restarts,
    dev::{DevRecord, DevSpec, EDITOR_FILES},
    launch::PreparedData,
    names,
    preflight::Purpose,
};

pub(crate) use args::RunArgs;
pub(super) use launch::{AbortOnDrop, NOTES};
pub(crate) use misplaced::misplaced_command;
pub(super) use packing::summary;
pub(super) use submission::{check, refuse, start};

use self::{
    configuration::{Configuration, Loaded},
    launch::Launch,
};
use crate::{
    error::{Error, Kind, Result},
    hints,
    interrupt::Interrupt,
    last_event,
    show::head,
    target::Chosen,
    ui,
};

pub(crate) async fn run(args: RunArgs) -> Result<ExitCode> {
    let format = args.output;
    let result = run_or_develop(args, None).await;
    last_event::after_launch(format, result.as_ref().err());
    result
}

/// The differences between `longshore dev` and `longshore run`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Develop {
    /// The time that the command has to end after SIGTERM before it is killed.
    pub(super) grace: Duration,
    /// True if the pods stay after Ctrl-C.
    pub(super) keep: bool,
}

/// The number of pods of a task that may be lost before the run fails. The end of a command does
/// not end the task.
const DEV_RETRIES: u32 = 100;

/// Runs the folder; with `develop`, its tasks receive changes.
pub(super) async fn run_or_develop(args: RunArgs, develop: Option<Develop>) -> Result<ExitCode> {
    // Validate everything before starting anything.
    let mut loaded = Loaded::load(&args).await?;
    if let Some(develop) = &develop {
        loaded
            .specs()
            .try_for_each(|spec| develop.prepare(spec, args.folder()))?;
    }
    let mut interrupt = Interrupt::listen()?;
    let (configuration, inputs) = match loaded {
        Loaded::One(one) => {
            check_fetch(&args, &one.spec)?;
            report_cluster(&one.chosen, args.dry_run).await?;
            let inputs = Inputs::prepare(&args, &one.spec, &mut interrupt).await?;
            (*one, inputs)
        }
        several => in_one_of(several, &args, &mut interrupt).await?,
    };
    let Configuration {
        mut spec,
        store,
        chosen,
        here,
    } = configuration;
    let Inputs { bundle, data } = inputs;
    if let Some(here) = &here {
        shell::record(&mut spec, here, args.folder(), bundle.as_ref());
    }
    warn_of_files_left_out(&spec, bundle.as_ref());
    let size = bundle.as_ref().map_or(0, |bundle| bundle.size);
    let mut packed = PackedRun {
        spec: &spec,
        name: spec.run_name(&names::random_suffix()),
        namespace: namespace(&spec, &chosen),
        bundle,
        keeps_outputs: chosen.keeps_outputs(),
        data,
        data_root: chosen.data_root(),
        store: store.or_else(|| chosen.own_store(size)),
    };
    let plan = packed.plan()?;
    if packed.keeps_outputs
        && let Some(option) = packed.unused_option()
    {
        ui::note(format!(
            "{} {option} has no effect: the embedded cluster keeps them itself",
            head("outputs")
        ));
    }
    for warning in packed.code_warnings() {
        ui::warning(warning.to_string());
    }
    if packed.may_outlive_uploads() {
        ui::warning(
            "the timeout is longer than 7 days, when the URLs for uploads of outputs expire: tasks that end later lose their outputs",
        );
    }
    if args.dry_run {
        let yaml = plan.to_yaml().map_err(LaunchError::from)?;
        ui::bytes(yaml.as_bytes());
        return Ok(ExitCode::SUCCESS);
    }
    let launch = Launch {
        args: &args,
        packed: &mut packed,
        plan: &plan,
        develop,
    };
    launch.launch(chosen, interrupt).await
}

fn check_fetch(args: &RunArgs, spec: &RunSpec) -> Result<()> {
    match args.fetch.is_some() && !spec.has_outputs() {
        true => Err(Error::usage("--fetch: the run has no outputs").hint(
            "set `outputs` in longshore.toml, or use --output-files, as in --output-files '*.json'",
        )),
        false => Ok(()),
    }
}

/// The code and the data of a run.
struct Inputs {
    bundle: Option<Bundle>,
    data: Vec<PreparedData>,
}

impl Inputs {
    /// Reads the data, and packs the code.
    async fn prepare(args: &RunArgs, spec: &RunSpec, interrupt: &mut Interrupt) -> Result<Self> {
        Ok(Self {
            data: data::prepare(spec, interrupt).await?,
            bundle: packing::pack(args.folder(), spec, args.dry_run, interrupt).await?,
        })
    }
}

/// Packs the code, and chooses one of several contexts. A dry run takes the first, because it
/// contacts no cluster.
async fn in_one_of(
    loaded: Loaded,
    args: &RunArgs,
    interrupt: &mut Interrupt,
) -> Result<(Configuration, Inputs)> {
    let no_context = || Error::usage("no context was given");
    let spec = loaded.spec().ok_or_else(no_context)?;
    check_fetch(args, spec)?;
    let inputs = Inputs::prepare(args, spec, interrupt).await?;
    let candidates = match loaded {
        Loaded::One(one) => return Ok((*one, inputs)),
        Loaded::Several(candidates) => candidates,
    };
    let configuration = match args.dry_run {
        true => {
            let first = candidates.into_iter().next().ok_or_else(no_context)?;
            let chosen = first.choice().await?;
            first.with(chosen)
        }
        false => {
            let purpose = match args.detach {
                true => Purpose::Detach,
                false => Purpose::Follow,
            };
            let picking = contexts::pick(candidates, &inputs, purpose);
            interrupt.unless(picking).await??
        }
    };
    report_cluster(&configuration.chosen, args.dry_run).await?;
    Ok((configuration, inputs))
}

impl Develop {
    /// Prepares the tasks for receiving changes. Refuses runs whose tasks cannot receive changes.
    fn prepare(&self, spec: &mut RunSpec, folder: &Path) -> Result<()> {
        let problem = match () {
            () if !spec.code => "the run has no code: leave out --no-code (`code = false`)",
            () if matches!(spec.workload, Workload::Scheduled(_)) => {
                "a scheduled run has no client that sends changes: leave out --cron"
            }
            () if spec.sweep.is_some() => {
                "the tasks of a sweep end by themselves: leave out --sweep, or use `longshore run`"
            }
            () => {
                spec.retries = spec.retries.max(DEV_RETRIES);
                // The settings for a command's end: in `longshore dev`, it does not end the task.
                spec.restarts = Restarts {
                    checkpoint_dir: spec.restarts.checkpoint_dir.take(),
                    ..Restarts::default()
                };
                spec.idle = None;
                // The user's own patterns override these.
                spec.ignore.splice(..0, editor_files());
                let folder_here = folder.canonicalize().map_err(|error| usage(&error))?;
                spec.dev = Some(DevSpec {
                    grace: self.grace,
                    record: DevRecord {
                        folder: folder_here.to_string_lossy().into_owned(),
                        ignore: packing::options(folder, spec).ignore,
                        grace_milliseconds: u64::try_from(self.grace.as_millis())
                            .unwrap_or(u64::MAX),
                    },
                });
                return Ok(());
            }
        };
        Err(Error::usage(problem))
    }
}

/// The patterns of temporary files of editors.
pub(super) fn editor_files() -> impl Iterator<Item = String> {
    EDITOR_FILES.iter().map(ToString::to_string)
}

/// Prints the cluster of the run. A dry run does not contact it.
pub(super) async fn report_cluster(chosen: &Chosen, dry_run: bool) -> Result<()> {
    let cluster = match dry_run {
        true => chosen.name().to_owned(),
        false => chosen.describe().await?,
    };
    let cluster = hints::complete(&cluster);
    ui::note(format!("{} {cluster}", head("cluster")));
    Ok(())
}

/// The namespace of the run: the configured one, or the cluster's default.
fn namespace(spec: &RunSpec, chosen: &Chosen) -> String {
    let default = chosen.default_namespace();
    let namespace = spec.namespace.as_deref().unwrap_or(default);
    if namespace != default {
        hints::remember_namespace(namespace);
    }
    namespace.to_owned()
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

fn usage(error: &(dyn std::error::Error + 'static)) -> Error {
    Error::from_source(Kind::Usage, error)
}

fn failed(error: &(dyn std::error::Error + 'static)) -> Error {
    Error::from_source(Kind::Failed, error)
}
