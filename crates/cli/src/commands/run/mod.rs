//! `longshore run`: runs a folder of code and follows the run to its end.

mod args;
mod configuration;
mod input;
mod launch;
mod misplaced;
mod packing;
mod shell;
mod submission;

use std::{path::Path, process::ExitCode};

use longshore::launcher::{
    Bundle, LaunchError, PackedRun, RunSpec, Workload,
    dev::{DevSpec, EDITOR_FILES},
    names,
};

pub(crate) use args::RunArgs;
pub(crate) use misplaced::misplaced_command;
pub(super) use submission::{check, start};

use self::{configuration::Configuration, launch::Launch};
use crate::{
    error::{Error, Kind, Result},
    hints,
    interrupt::Interrupt,
    show::head,
    target::Chosen,
    ui,
};

pub(crate) async fn run(args: RunArgs) -> Result<ExitCode> {
    run_or_develop(args, None).await
}

/// How `longshore dev` differs from `longshore run`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Develop {
    pub(super) spec: DevSpec,
    /// Whether the pods stay after Ctrl-C.
    pub(super) keep: bool,
}

/// The number of pods of a task that may be lost before the run fails: its command does not end
/// the task.
const DEV_RETRIES: u32 = 100;

/// Runs the folder; with `develop`, its tasks receive changes.
pub(super) async fn run_or_develop(args: RunArgs, develop: Option<Develop>) -> Result<ExitCode> {
    // Validate everything before starting anything.
    let Configuration {
        mut spec,
        store,
        chosen,
        here,
    } = Configuration::load(&args).await?;
    if let Some(develop) = &develop {
        can_develop(&spec)?;
        spec.dev = Some(develop.spec);
        spec.retries = spec.retries.max(DEV_RETRIES);
        let editors = EDITOR_FILES.iter().map(ToString::to_string);
        // The user's own patterns override these.
        spec.ignore.splice(..0, editors);
    }
    if args.fetch.is_some() && !spec.has_outputs() {
        return Err(Error::usage("--fetch: the run has no outputs").hint(
            "set `outputs` in longshore.toml, or use --output-files, as in --output-files '*.json'",
        ));
    }
    report_cluster(&chosen, args.dry_run).await?;
    let mut interrupt = Interrupt::listen()?;
    let bundle = packing::pack(&args.folder, &spec, args.dry_run, &mut interrupt).await?;
    if let Some(here) = &here {
        shell::record(&mut spec, here, &args.folder, bundle.as_ref());
    }
    warn_of_files_left_out(&spec, bundle.as_ref());
    let size = bundle.as_ref().map_or(0, |bundle| bundle.size);
    let packed = PackedRun {
        spec: &spec,
        name: spec.run_name(&names::random_suffix()),
        namespace: namespace(&spec, &chosen),
        bundle,
        keeps_outputs: chosen.keeps_outputs(),
        store: store.or_else(|| chosen.own_store(size)),
    };
    let plan = packed.plan()?;
    if args.dry_run {
        let yaml = plan.to_yaml().map_err(LaunchError::from)?;
        ui::bytes(yaml.as_bytes());
        return Ok(ExitCode::SUCCESS);
    }
    let launch = Launch {
        args: &args,
        packed: &packed,
        plan: &plan,
        develop,
    };
    launch.launch(chosen, interrupt).await
}

/// Refuses runs whose tasks cannot receive changes.
fn can_develop(spec: &RunSpec) -> Result<()> {
    let problem = match () {
        () if !spec.code => "the run has no code: leave out --no-code (`code = false`)",
        () if matches!(spec.workload, Workload::Scheduled(_)) => {
            "a scheduled run has no client that sends changes: leave out --cron"
        }
        () if spec.sweep.is_some() => {
            "the tasks of a sweep end by themselves: leave out --sweep, or use `longshore run`"
        }
        () => return Ok(()),
    };
    Err(Error::usage(problem))
}

/// Prints the cluster of the run. A dry run does not contact it.
async fn report_cluster(chosen: &Chosen, dry_run: bool) -> Result<()> {
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
