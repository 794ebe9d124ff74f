//! Launches a planned run, and follows it to its end.

use std::{path::Path, process::ExitCode};

use longshore::{
    client::Cluster,
    launcher::{
        Bundle, PackedRun, Plan, Run, RunSpec, Workload, bundle::Manifest, config::Input,
        follow::Watched, preflight::Purpose, run_outputs::TaskChoice, runs,
    },
};

use tokio::{sync::mpsc, task::JoinHandle};

use super::{Develop, RunArgs, data, input, packing, submission};
use crate::{
    dev::{self, DevOptions, Start},
    error::Result,
    fetch_outputs::{self, Destination},
    follow::{self, Beside, How},
    forward, hints,
    interrupt::Interrupt,
    show::{self, head},
    stdin::IgnoredInput,
    target::{Chosen, Target},
    ui,
    upload::deliver,
};

/// Lines of parts that work while the run is followed.
type Notes = (mpsc::Sender<Beside>, mpsc::Receiver<Beside>);

/// A task that ends when this is dropped.
pub(in super::super) struct AbortOnDrop(pub(in super::super) JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The number of lines that other parts may have ready while the terminal is stopped.
pub(in super::super) const NOTES: usize = 64;

/// A plan that is ready to be launched.
pub(super) struct Launch<'a> {
    pub(super) args: &'a RunArgs,
    pub(super) packed: &'a mut PackedRun<'a>,
    /// The plan before the upload.
    pub(super) plan: &'a Plan,
    /// The options of `longshore dev`.
    pub(super) develop: Option<Develop>,
}

impl Launch<'_> {
    /// Checks, uploads and submits the run, and follows it unless it is detached.
    pub(super) async fn launch(self, chosen: Chosen, mut interrupt: Interrupt) -> Result<ExitCode> {
        let args = self.args;
        let spec = self.packed.spec;
        let develop = self.develop;
        let packed = self.packed.bundle.as_ref().map(Bundle::manifest);
        // A schedule creates its runs later, so do not follow.
        let scheduled = matches!(spec.workload, Workload::Scheduled(_));
        let detach = args.detach || scheduled;
        let ports = match detach {
            true => Vec::new(),
            false => forward::bind(&spec.forward).await?,
        };
        let target = interrupt.unless(chosen.open()).await??;
        let cluster = target.cluster();
        let purpose = match detach {
            true => Purpose::Detach,
            false => Purpose::Follow,
        };
        let result = match self.start(cluster, purpose, &mut interrupt).await {
            Ok((run, watched)) => {
                if scheduled {
                    ui::note(format!("{} {}", head("cron"), due(cluster, &run).await));
                } else {
                    ui::note(format!("{} {}", head("run"), news(&run, spec)));
                }
                if detach {
                    forward::is_left_out(&spec.forward, run.name.as_str());
                    // The cluster keeps running for the run or schedule.
                    show::left_alone(&run, args.output, &target.facts());
                    Ok(ExitCode::SUCCESS)
                } else {
                    if spec.input == Input::Terminal {
                        forward::list(&ports);
                    }
                    let (notes, lines) = mpsc::channel(NOTES);
                    let served = forward::serve(cluster.clone(), run.clone(), ports, notes.clone());
                    // The task ends with this function.
                    let _serving = AbortOnDrop(tokio::spawn(served));
                    let notes = (notes, lines);
                    let code = match develop.zip(packed) {
                        Some((how, packed)) => {
                            develop_run(&target, &run, args, spec, (how, packed, notes), interrupt)
                                .await
                        }
                        None => {
                            let how = How {
                                beside: Some(notes.1),
                                watched,
                                ..How::default()
                            };
                            follow_run(&target, &run, args, spec, how, interrupt).await
                        }
                    };
                    if spec.sweep.is_some() && code.is_ok() {
                        follow::shows_sweep(run.name.as_str());
                    }
                    outputs(code, &target, &run, args, spec).await
                }
            }
            Err(error) => Err(error),
        };
        let closed = target.close().await;
        let code = result?;
        closed.map(|()| code)
    }

    async fn start(
        self,
        cluster: &Cluster,
        purpose: Purpose,
        interrupt: &mut Interrupt,
    ) -> Result<(Run, Option<Watched>)> {
        // The upload may be large: run the checks first.
        let checked = submission::check(cluster, self.plan, purpose);
        interrupt.unless(checked).await??;
        let delivered = data::deliver(self.packed, cluster, interrupt).await?;
        let plan = deliver(self.packed, interrupt).await?;
        for note in &plan.notes {
            ui::warning(note);
        }
        // Tasks may end, and even be deleted, before the response to the creation of the run.
        // `longshore dev` follows its run later.
        let watched = match purpose {
            Purpose::Follow if self.develop.is_none() => {
                let run = plan.as_run();
                Some(interrupt.unless(Watched::open(cluster, &run)).await??)
            }
            _ => None,
        };
        let run = submission::start(cluster, &plan, interrupt).await?;
        delivered.submitted();
        Ok((run, watched))
    }
}

/// Follows the run, and sends changes of the folder to its tasks.
async fn develop_run(
    target: &Target,
    run: &Run,
    args: &RunArgs,
    spec: &RunSpec,
    (how, packed, notes): (Develop, Manifest, Notes),
    interrupt: Interrupt,
) -> Result<ExitCode> {
    let options = DevOptions {
        folder: args.folder(),
        pack: packing::options(args.folder(), spec),
        start: Start::Launched(packed),
        grace: how.grace,
        keep: how.keep,
        format: args.output,
        notes,
    };
    dev::develop(target, run, spec.follow_options(), options, interrupt).await
}

/// Follows the run to its end, and passes standard input to its task if requested.
async fn follow_run(
    target: &Target,
    run: &Run,
    args: &RunArgs,
    spec: &RunSpec,
    how: How,
    interrupt: Interrupt,
) -> Result<ExitCode> {
    let options = spec.follow_options();
    let mut how = How {
        format: args.output,
        on_interrupt: args.on_interrupt,
        notify: spec.notify.clone(),
        ..how
    };
    let sending = match spec.input {
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

/// Fetches the outputs of a run that has ended, or prints where they are. The run's own exit code
/// has precedence over the exit code of a failed fetch.
async fn outputs(
    ended: Result<ExitCode>,
    target: &Target,
    run: &Run,
    args: &RunArgs,
    spec: &RunSpec,
) -> Result<ExitCode> {
    let code = ended?;
    if !spec.has_outputs() {
        return Ok(code);
    }
    let fetched = match &args.fetch {
        Some(folder) => fetch(target, run, Path::new(folder)).await,
        None => {
            let kept = match code == ExitCode::SUCCESS {
                true => kept(target, run).await,
                // Other tasks may still be terminating.
                false => Kept::Unknown,
            };
            ui::note(format!("{} {}", head("outputs"), kept.sentence(run)));
            Ok(())
        }
    };
    match fetched {
        Ok(()) => Ok(code),
        Err(error) if code == ExitCode::SUCCESS => Err(error),
        Err(error) => {
            ui::error(&error);
            Ok(code)
        }
    }
}

/// The outputs of a run that are not fetched.
enum Kept {
    /// The number of files on this machine.
    Files(usize),
    /// The files are elsewhere, or may not be complete.
    Unknown,
}

/// The outputs that the embedded cluster has kept. Elsewhere, reading their list may take as long
/// as fetching them.
async fn kept(target: &Target, run: &Run) -> Kept {
    if target.outputs().is_none() {
        return Kept::Unknown;
    }
    let files = fetch_outputs::find(target, run, &TaskChoice::default(), None).await;
    match files {
        Ok(files) => Kept::Files(files.manifests().map(|task| task.files.len()).sum()),
        // `longshore outputs` reports the error.
        Err(_) => Kept::Unknown,
    }
}

impl Kept {
    fn sentence(&self, run: &Run) -> String {
        let command = hints::complete(&format!("`longshore outputs {}`", run.name));
        match *self {
            Self::Files(0) => "no file matched".to_owned(),
            Self::Files(count) => {
                format!(
                    "{}; {command} fetches them",
                    ui::count(count as u64, "file")
                )
            }
            Self::Unknown => format!("{command} fetches the files that matched"),
        }
    }
}

async fn fetch(target: &Target, run: &Run, folder: &Path) -> Result<()> {
    let cluster = target.cluster();
    let found = runs::find(cluster, &run.namespace, run.name.as_str()).await?;
    if !found.state.is_over() {
        ui::note(format!(
            "{} the run has not ended; {}",
            head("outputs"),
            Kept::Unknown.sentence(run)
        ));
        return Ok(());
    }
    // After a failure, other tasks may still be terminating.
    follow::wait_until_still(cluster, run).await?;
    let folder = Some(folder).filter(|folder| !folder.as_os_str().is_empty());
    let files = fetch_outputs::of_run(target, run, &TaskChoice::default(), None).await;
    let files = files.map_err(fetch_outputs::not_found)?;
    let to = Destination::of(folder, run, false);
    fetch_outputs::fetch(run, files, to, false).await
}

/// Returns the time at which a schedule creates its first run.
async fn due(cluster: &Cluster, run: &Run) -> String {
    let found = runs::find(cluster, &run.namespace, run.name.as_str()).await;
    let schedule = found.ok().and_then(|found| found.schedule);
    let next = schedule.and_then(|schedule| schedule.next);
    let next = next.map_or_else(|| "never".to_owned(), |next| format!("at {next}"));
    format!("{}, first due {next}", run.name)
}

/// The run in one line.
fn news(run: &Run, spec: &RunSpec) -> String {
    let roles: Vec<String> = spec
        .roles
        .iter()
        .map(|role| format!("{}={}", role.name, role.count))
        .collect();
    let tasks = match &spec.sweep {
        Some(sweep) => format!(
            "{}, {} at a time",
            ui::count(sweep.sweep.combinations.len() as u64, "combination"),
            sweep.parallel
        ),
        None => roles.join(" "),
    };
    let place = match run.namespace.as_str() {
        "default" => String::new(),
        namespace => format!(" in {namespace}"),
    };
    format!("{}{place}: {tasks}", run.name.as_str())
}
