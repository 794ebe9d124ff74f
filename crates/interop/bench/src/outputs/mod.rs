//! Keeps and fetches the outputs of a run: in the embedded cluster, compared with tar, and in an
//! object store, compared with rclone.

mod files;
mod rclone;
#[allow(clippy::unwrap_used, reason = "the object store of the tests")]
#[path = "../../../../runs/launcher/tests/launcher/s3/mod.rs"]
mod s3;

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use self::{files::Files, rclone::Rclone, s3::S3};
use crate::{
    program::Instance,
    report::{Failure, Report, middle, millis, ratio},
};

/// The times of one run, or of another program with the same files.
#[derive(Default)]
struct Times {
    /// The time from the end of the command until the files are kept.
    kept: Vec<Duration>,
    /// The time until the kept files are in a folder.
    fetched: Vec<Duration>,
}

/// Measures the time from the end of the command to the end of the run, and the time of
/// `longshore outputs`. Fails unless all files arrive.
pub(crate) fn run(report: &mut Report, runs: usize, shrink: usize) -> Result<(), Failure> {
    let files = Files::of(shrink);
    let temporary = tempfile::tempdir()?;
    let source = temporary.path().join("source");
    files.write(&source)?;
    let (mut ours, mut theirs) = (Times::default(), Times::default());
    for _ in 0..runs.max(1) {
        kept_by_the_cluster(&source, &files, &mut ours)?;
        with_tar(temporary.path(), &files, &mut theirs)?;
    }
    figures(report, &files, "the embedded cluster", &ours);
    compared(report, &ours, "tar", &theirs);

    let store = S3::start();
    let rclone = Rclone::find(&store);
    let (mut ours, mut theirs) = (Times::default(), Times::default());
    for number in 0..runs.max(1) {
        kept_in_the_store(&store, &source, &files, &mut ours)?;
        if let Some(rclone) = &rclone {
            with_rclone(rclone, temporary.path(), number, &files, &mut theirs)?;
        }
        // The next objects are written to an empty bucket.
        for entry in fs::read_dir(store.file(""))? {
            fs::remove_dir_all(entry?.path())?;
        }
    }
    figures(report, &files, "a store", &ours);
    match rclone {
        Some(rclone) => compared(report, &ours, &rclone.name(), &theirs),
        None => report.figure("rclone", "not installed", ""),
    }
    Ok(())
}

/// A run on an embedded cluster, which keeps the files.
fn kept_by_the_cluster(source: &Path, files: &Files, times: &mut Times) -> Result<(), Failure> {
    let instance = Instance::new()?;
    instance.up(&[])?;
    of_a_run(&instance, &[], &[], source, files, times)
}

/// A run with a store: the embedded cluster is used like any other cluster.
fn kept_in_the_store(
    store: &S3,
    source: &Path,
    files: &Files,
    times: &mut Times,
) -> Result<(), Failure> {
    let instance = Instance::new()?;
    instance.up(&[])?;
    let mut variables = store.settings();
    let kubeconfig = instance.kubeconfig();
    let kubeconfig = kubeconfig.to_str().ok_or("the path is not UTF-8")?;
    variables.push(("LONGSHORE_KUBECONFIG".to_owned(), kubeconfig.to_owned()));
    let url = format!("s3://{}/longshore", s3::BUCKET);
    let options = ["--store", &url];
    of_a_run(&instance, &options, &variables, source, files, times)
}

/// Runs a task that copies the files, and fetches its outputs.
fn of_a_run(
    instance: &Instance,
    options: &[&str],
    variables: &[(String, String)],
    source: &Path,
    files: &Files,
    times: &mut Times,
) -> Result<(), Failure> {
    let folder = instance.path().join("code");
    fs::create_dir(&folder)?;
    fs::write(
        folder.join("longshore.toml"),
        format!(
            "outputs = [\"out/**\"]\noutput_file_limit = {}\n",
            files.count
        ),
    )?;
    let ended = instance.path().join("ended");
    let script = "cp -r \"$1\" out; date +%s%N > \"$2\"";
    let longshore = |arguments: &[&str]| -> Result<Duration, Failure> {
        let mut command = instance.command(arguments)?;
        let begin = Instant::now();
        let output = command.envs(variables.iter().cloned()).output()?;
        let took = begin.elapsed();
        match output.status.success() {
            true => Ok(took),
            false => {
                let why = String::from_utf8_lossy(&output.stderr);
                Err(format!("longshore {arguments:?}: {}\n{why}", output.status).into())
            }
        }
    };
    let (source, stamp) = (source.to_str(), ended.to_str());
    let (Some(source), Some(stamp)) = (source, stamp) else {
        return Err("the temporary folder's name is not UTF-8".into());
    };
    let command = ["--", "sh", "-c", script, "sh", source, stamp];
    longshore(&[&["run", "code"], options, &command].concat())?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let ended: u64 = fs::read_to_string(&ended)?.trim().parse()?;
    times
        .kept
        .push(now.saturating_sub(Duration::from_nanos(ended)));
    times
        .fetched
        .push(longshore(&["outputs", "last", "--to", "results"])?);
    files.check(&instance.path().join("results/out"))
}

/// The same with an archive that is not compressed. tar computes no checksums.
fn with_tar(folder: &Path, files: &Files, times: &mut Times) -> Result<(), Failure> {
    let (copy, archive, back) = (
        folder.join("copy"),
        folder.join("archive.tar"),
        folder.join("back"),
    );
    copied(&folder.join("source"), &copy)?;
    fs::create_dir(&back)?;
    let tar = |action: &str, of: &Path| {
        let mut command = Command::new("tar");
        command.arg(action).arg("--file").arg(&archive);
        command.arg("--directory").arg(of);
        if action == "--create" {
            command.arg(".");
        }
        timed(&mut command)
    };
    times.kept.push(tar("--create", &copy)?);
    times.fetched.push(tar("--extract", &back)?);
    files.check(&back)?;
    fs::remove_file(&archive)?;
    fs::remove_dir_all(&copy)?;
    Ok(fs::remove_dir_all(&back)?)
}

/// The same with one object per file.
fn with_rclone(
    rclone: &Rclone,
    folder: &Path,
    number: usize,
    files: &Files,
    times: &mut Times,
) -> Result<(), Failure> {
    let (copy, back) = (folder.join("copy"), folder.join("back"));
    copied(&folder.join("source"), &copy)?;
    let prefix = format!("{}/rclone/{number}", s3::BUCKET);
    times
        .kept
        .push(timed(&mut rclone.copy(copy.as_os_str(), &prefix, true))?);
    times
        .fetched
        .push(timed(&mut rclone.copy(back.as_os_str(), &prefix, false))?);
    files.check(&back)?;
    fs::remove_dir_all(&copy)?;
    Ok(fs::remove_dir_all(&back)?)
}

/// Copies a folder, as the command of the run does.
fn copied(from: &Path, to: &Path) -> Result<(), Failure> {
    timed(Command::new("cp").arg("-r").arg(from).arg(to)).map(drop)
}

fn timed(command: &mut Command) -> Result<Duration, Failure> {
    let begin = Instant::now();
    let status = command.stdin(Stdio::null()).status()?;
    match status.success() {
        true => Ok(begin.elapsed()),
        false => Err(format!("{:?}: {status}", command.get_program()).into()),
    }
}

fn figures(report: &mut Report, files: &Files, place: &str, times: &Times) {
    let what = format!("{files}, end of the command to {place}");
    report.figure(&what, millis(middle(&times.kept)), "");
    let what = format!("`longshore outputs`, from {place}");
    report.figure(&what, millis(middle(&times.fetched)), "");
}

fn compared(report: &mut Report, ours: &Times, program: &str, theirs: &Times) {
    for (what, ours, theirs) in [
        ("to", &ours.kept, &theirs.kept),
        ("from", &ours.fetched, &theirs.fetched),
    ] {
        let (ours, theirs) = (middle(ours), middle(theirs));
        let value = format!("{}, {}", millis(theirs), ratio(theirs, ours));
        report.figure(
            &format!("{program}, {what} it"),
            value,
            "1 or more times ours",
        );
    }
}
