//! Fetches outputs of runs to a folder, for `longshore outputs` and `longshore run --fetch`.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use futures::StreamExt as _;
use jiff::Timestamp;
use longshore::{
    client::Cluster,
    launcher::{
        Run, names,
        outputs::{FetchOptions, Fetched, OutputsError, task_folder},
        run_outputs::{self, RunFiles, RunOutputsError, TaskChoice, Uploader},
        terminal_text::escaped,
    },
};
use tokio::runtime::Handle;

use crate::{
    claim_reader::{self, PodTemplate},
    error::{Error, Kind, Result},
    progress::Spinner,
    show::head,
    target::Target,
    ui,
};

/// The maximum number of skipped files to name.
const NAMED: usize = 10;
/// The number of running tasks that upload their files at the same time.
const PARALLEL_UPLOADS: usize = 16;
/// The folder of the default destinations, in the current folder.
const DEFAULT_FOLDER: &str = "outputs";

/// The folder for the files of a run.
pub(crate) struct Destination {
    folder: PathBuf,
    /// True if the user named the folder.
    is_given: bool,
}

impl Destination {
    /// The given folder, if it is for this run alone; its subfolder `RUN`, if it is for several
    /// runs; or else `outputs/RUN`.
    pub(crate) fn of(given: Option<&Path>, run: &Run, are_several: bool) -> Self {
        let folder = match given {
            Some(folder) if !are_several => folder.to_owned(),
            other => other
                .unwrap_or(Path::new(DEFAULT_FOLDER))
                .join(run.name.as_str()),
        };
        Self {
            folder,
            is_given: given.is_some(),
        }
    }

    /// Creates the default folder so that its files are not packed into the next run's code.
    fn prepare(&self) -> io::Result<()> {
        let folder = Path::new(DEFAULT_FOLDER);
        if self.is_given || folder.exists() {
            return Ok(());
        }
        fs::create_dir_all(folder)?;
        fs::write(folder.join(".gitignore"), "*\n")
    }
}

/// The outputs of a run's tasks. Running tasks on other clusters upload their current files first.
/// `image` is the image of the pod that reads a claim; `None` for the run's image.
pub(crate) async fn of_run(
    target: &Target,
    run: &Run,
    choice: &TaskChoice,
    image: Option<&str>,
) -> Result<RunFiles, RunOutputsError> {
    let cluster = target.cluster();
    if target.outputs().is_none() {
        let uploaders = run_outputs::uploaders(cluster, run, choice).await?;
        upload(cluster, run, uploaders).await?;
    }
    find(target, run, choice, image).await
}

/// The outputs of a run's tasks as they were last kept. On the embedded cluster, their current
/// state.
pub(crate) async fn find(
    target: &Target,
    run: &Run,
    choice: &TaskChoice,
    image: Option<&str>,
) -> Result<RunFiles, RunOutputsError> {
    let cluster = target.cluster();
    let open = async |claim: String| {
        let template = PodTemplate::of(cluster, run).await;
        let template = template.map_err(|error| OutputsError::Claim {
            claim: claim.clone(),
            problem: error.to_string(),
        })?;
        let template = match image {
            Some(image) => template.with_image(image),
            None => template,
        };
        claim_reader::open(cluster, run, &template, claim).await
    };
    RunFiles::find(
        target.outputs(),
        cluster,
        run,
        choice,
        Timestamp::now(),
        open,
    )
    .await
}

/// The error of a command that requires outputs.
pub(crate) fn not_found(error: RunOutputsError) -> Error {
    match error {
        RunOutputsError::Cluster(error) => error.into(),
        RunOutputsError::Task(error) => Error::from_source(Kind::Usage, &error)
            .hint("the second word is a task or role; name several runs with commas, as in A,B"),
        other => failed(&other),
    }
}

/// Lets running tasks upload their current files. A failure is only reported, because the task may
/// just be ending.
async fn upload(
    cluster: &Cluster,
    run: &Run,
    uploaders: Vec<Uploader>,
) -> Result<(), RunOutputsError> {
    if uploaders.is_empty() {
        return Ok(());
    }
    let pods = cluster.pods().in_namespace(&run.namespace)?;
    let spinner = Spinner::start("waiting for the uploads of running tasks");
    let uploads = uploaders.into_iter().map(|uploader| {
        let pods = &pods;
        async move {
            let output = pods
                .output(&uploader.pod, uploader.command, Some(names::MAIN))
                .await;
            let problem = match output {
                Ok(output) if output.code == 0 => return None,
                Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
                Err(error) => error.to_string(),
            };
            Some((uploader.task, problem))
        }
    });
    let uploads = futures::stream::iter(uploads).buffer_unordered(PARALLEL_UPLOADS);
    let problems: Vec<_> = uploads.collect().await;
    spinner.end();
    for (task, problem) in problems.into_iter().flatten() {
        let problem = escaped(problem.trim_start_matches("longshore: "));
        ui::warning(format!(
            "the current files of {task} were not uploaded: {problem}"
        ));
    }
    Ok(())
}

fn failed(error: &(dyn std::error::Error + 'static)) -> Error {
    Error::from_source(Kind::Failed, error)
}

/// Fetches files of tasks, and reports them.
pub(crate) async fn fetch(run: &Run, files: RunFiles, to: Destination, force: bool) -> Result<()> {
    let is_alone = run.roles.iter().map(|role| role.count).sum::<u32>() == 1;
    let spinner = Spinner::start("fetching");
    let folder = to.folder.clone();
    let runtime = Handle::current();
    let work = tokio::task::spawn_blocking(move || {
        to.prepare().map_err(|source| OutputsError::System {
            action: "create",
            path: DEFAULT_FOLDER.into(),
            source,
        })?;
        let mut sum = Fetched::default();
        for task in &files.tasks {
            let to = task_folder(&to.folder, task.manifest(), is_alone);
            sum = sum.plus(files.fetch(&runtime, task, &FetchOptions { to, force })?);
        }
        Ok::<_, OutputsError>((sum, files))
    });
    let fetched = work.await;
    spinner.end();
    let fetched = fetched.map_err(|error| failed(&error))?;
    let (fetched, files) = fetched.map_err(|error| failed(&error))?;
    report(run, fetched, &folder);
    report_left_out(&files);
    check_complete(&files)
}

/// An error if the outputs of a task that has ended are missing or damaged.
pub(crate) fn check_complete(files: &RunFiles) -> Result<()> {
    match files.is_incomplete() {
        true => Err(Error::new(
            Kind::Failed,
            "the outputs are not complete: see the warnings above",
        )),
        false => Ok(()),
    }
}

fn report(run: &Run, fetched: Fetched, folder: &Path) {
    let present = match fetched.present {
        0 => String::new(),
        present => format!("; {} already there", ui::count(present, "file")),
    };
    let text = match (fetched.files, fetched.present) {
        (0, 0) => format!("no file matched in {}", run.name),
        (files, _) => format!(
            "{}, {}, to {}{present}",
            ui::count(files, "file"),
            ui::size(fetched.bytes),
            folder.display()
        ),
    };
    ui::note(format!("{} {text}", head("outputs")));
}

/// Warns about matching files that are not among the outputs, and about files that may be
/// incomplete.
pub(crate) fn report_left_out(files: &RunFiles) {
    for problem in files.problems() {
        ui::warning(escaped(&problem));
    }
    for task in files.manifests() {
        let name = task.task();
        if files.is_running(task) {
            ui::note(format!(
                "{name} is still running: its files are those of now"
            ));
        }
        if let Some(problem) = &task.problem {
            ui::warning(format!(
                "not all files of {name} were kept: {}",
                escaped(problem)
            ));
        }
        for file in task.left_out.iter().take(NAMED) {
            let path = escaped(&file.path);
            ui::warning(format!("not kept: {name} {path} {}", file.reason));
        }
        let more = task.left_out_count().saturating_sub(NAMED as u64);
        if more > 0 {
            ui::warning(format!(
                "not kept: {more} more of {name}; --output json lists them"
            ));
        }
    }
}
