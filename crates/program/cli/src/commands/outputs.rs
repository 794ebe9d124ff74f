//! `longshore outputs`: fetches and lists the files that tasks leave.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use longshore::launcher::{
    Run,
    outputs::Manifest,
    run_outputs::{RunFiles, RunOutputsError, TaskChoice},
    runs,
    terminal_text::escaped,
};
use serde_json::{Value, json};

use crate::{
    complete, config,
    error::{Error, Result},
    fetch_outputs::{self, Destination},
    output::{self, Format, TableFormat},
    owners::Access,
    place::Word,
    several_runs::{self, Failures},
    target::{self, ClusterArgs, Target},
    ui,
};

/// Fetch the files that the tasks of runs leave
///
/// The files are those that match `outputs` of longshore.toml or --output-files, in the
/// folder of a task's code. They are kept when a task ends, also if it fails or is
/// cancelled, until the run is removed; of a running task, they are collected now. Files
/// that DIR already has are skipped, and their sha256 is verified. The embedded cluster
/// keeps them itself; on other clusters, tasks upload them to the run's object store, or write
/// them to its claim, which a short-lived pod then reads.
///
/// RUN is the name of a run, a prefix of it that no other of your runs has, `last` for your newest
/// run, a quoted pattern with * and ?, or several of these, separated by commas. The files of a
/// run with several tasks are written to one folder per task, ROLE-INDEX; those of several runs to
/// one folder per run, RUN. With several names or a pattern, each list begins with the name of its
/// run, and JSON and YAML are a list.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore outputs last
  longshore outputs last --list
  longshore outputs digits-x7k2p worker/0 --to results
  longshore outputs 'sweep-*' --to results
  longshore outputs digits-x7k2p --output json")]
pub(crate) struct OutputsArgs {
    /// Runs: a name, a prefix, `last`, a pattern such as 'sweep-*', or several of these, as in A,B
    #[arg(add = ArgValueCompleter::new(complete::runs))]
    run: String,
    /// Only the files of this task or role: ROLE/INDEX or ROLE
    task: Option<String>,
    /// Folder for the files [default: outputs/RUN]; of several runs, for the folders RUN
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    to: Option<PathBuf>,
    /// Overwrite files with another content
    #[arg(long, short = 'f')]
    force: bool,
    /// List the files without fetching them
    #[arg(long, short = 'l', conflicts_with_all = ["to", "force"])]
    list: bool,
    /// Output format of the list; JSON and YAML imply --list
    #[arg(long, short, value_enum, default_value_t, value_name = "FORMAT")]
    output: TableFormat,
    /// Image of the pod that reads a claim [default: that of the run]; it needs a shell
    #[arg(long, value_name = "IMAGE")]
    reader_image: Option<String>,
    /// Namespace [default: the namespace of the context]
    #[arg(long, short)]
    namespace: Option<String>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

impl OutputsArgs {
    fn prints_tables(&self) -> bool {
        self.list && self.output == TableFormat::Table
    }
}

pub(crate) async fn outputs(args: OutputsArgs) -> Result<ExitCode> {
    let (run, choice) = chosen(&args)?;
    let target = args.cluster.open(&config::here()?).await?;
    let result = tokio::select! {
        result = show(&target, &args, run, &choice) => result,
        _ = tokio::signal::ctrl_c() => Err(Error::interrupted()),
    };
    target.close().await?;
    result.map(|()| ExitCode::SUCCESS)
}

/// The run and the tasks. `RUN/ROLE/INDEX` names a task, as in other commands.
fn chosen(args: &OutputsArgs) -> Result<(&str, TaskChoice)> {
    let wrong = || {
        Error::usage(format!(
            "{:?} is neither a task nor a role",
            args.task.as_deref().unwrap_or(&args.run)
        ))
        .hint(
            "write RUN ROLE/INDEX, as in `longshore outputs last worker/0`, or several runs with \
             commas, as in `longshore outputs A,B`",
        )
    };
    match (Word::parse(&args.run)?, &args.task) {
        (Word::Name(run), None) => Ok((run, TaskChoice::default())),
        (Word::Name(run), Some(task)) => Ok((run, TaskChoice::parse(task).ok_or_else(wrong)?)),
        (Word::Task { run, role, index }, None) => {
            let role = Some(role.to_owned());
            Ok((run, TaskChoice { role, index }))
        }
        _ => Err(wrong()),
    }
}

async fn show(target: &Target, args: &OutputsArgs, runs: &str, choice: &TaskChoice) -> Result<()> {
    let cluster = target.cluster();
    let namespace = target::namespace(args.namespace.as_deref(), cluster);
    let all = runs::list(cluster, Some(namespace)).await?;
    let words = [runs.to_owned()];
    let chosen = several_runs::choose_made(cluster, &all, namespace, &words, Access::Read).await?;
    let are_several = several_runs::are_several(&words);
    let (mut shown, mut failures) = (Vec::new(), Failures::of(chosen.len()));
    for (n, found) in chosen.into_iter().enumerate() {
        let run = &found.run;
        if are_several && args.prints_tables() {
            if n > 0 {
                ui::line("");
            }
            ui::line(run.name.as_str());
        }
        let to = Destination::of(args.to.as_deref(), run, are_several);
        failures.take(
            &run.name,
            show_run(target, args, run, choice, to, &mut shown).await,
        );
    }
    let format = match args.output {
        TableFormat::Table => return failures.result(),
        TableFormat::Json => Format::Json,
        TableFormat::Yaml => Format::Yaml,
    };
    match (&shown[..], are_several) {
        ([only], false) => output::value(format, only)?,
        ([], false) => {}
        _ => output::value(format, &shown)?,
    }
    failures.result()
}

/// Fetches or lists the files of a run. For JSON and YAML, adds their list to those to be shown.
/// Patterns skip runs that request no outputs.
async fn show_run(
    target: &Target,
    args: &OutputsArgs,
    run: &Run,
    choice: &TaskChoice,
    to: Destination,
    shown: &mut Vec<Value>,
) -> Result<()> {
    let choice = choice.in_run(run);
    let image = args.reader_image.as_deref();
    let files = match fetch_outputs::of_run(target, run, &choice, image).await {
        Err(error @ RunOutputsError::NotRequested { .. }) if runs::is_pattern(&args.run) => {
            ui::note(error.to_string());
            return Ok(());
        }
        files => files.map_err(fetch_outputs::not_found)?,
    };
    match args.output {
        TableFormat::Json | TableFormat::Yaml => shown.push(value(run, &files)),
        TableFormat::Table if args.list => list(&files),
        TableFormat::Table => return fetch_outputs::fetch(run, files, to, args.force).await,
    }
    fetch_outputs::check_complete(&files)
}

fn value(run: &Run, files: &RunFiles) -> Value {
    let task = |task: &Manifest| {
        let left_out = task.left_out.iter();
        let left_out: Vec<Value> = left_out
            .map(|file| {
                json!({
                    "path": file.path,
                    "reason": file.reason,
                    "message": file.reason.to_string(),
                })
            })
            .collect();
        json!({
            "task": task.task(),
            "pod": task.pod,
            "collected": task.collected,
            "ended": task.ended,
            "files": task.files,
            "leftOut": left_out,
            "leftOutMore": task.left_out_more,
            "problem": task.problem,
        })
    };
    json!({
        "run": run.name.as_str(),
        "namespace": run.namespace,
        "tasks": files.manifests().map(task).collect::<Vec<_>>(),
        "problems": files.problems(),
    })
}

fn list(files: &RunFiles) {
    let rows = files.manifests().flat_map(|task| {
        task.files.iter().map(|file| {
            vec![
                task.task(),
                escaped(&file.path).into_owned(),
                ui::size(file.size),
                file.sha256.get(..12).unwrap_or_default().to_owned(),
            ]
        })
    });
    let rows = rows.collect();
    output::table(
        &["TASK", "PATH", "SIZE", "SHA256"],
        rows,
        "No file matched.",
    );
    fetch_outputs::report_left_out(files);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: OutputsArgs,
    }

    fn choice(words: &[&str]) -> Result<(String, Option<String>, Option<u32>)> {
        let line = Line::try_parse_from(["outputs"].iter().chain(words)).unwrap();
        let (run, choice) = chosen(&line.args)?;
        Ok((run.to_owned(), choice.role, choice.index))
    }

    #[test]
    fn a_task_is_a_second_argument_or_a_part_of_the_first() {
        let worker = Some("worker".to_owned());
        let last = || "last".to_owned();
        assert_eq!(choice(&["last"]).unwrap(), (last(), None, None));
        for words in [&["last", "worker/3"][..], &["last/worker/3"]] {
            assert_eq!(choice(words).unwrap(), (last(), worker.clone(), Some(3)));
        }
        assert_eq!(choice(&["last", "worker"]).unwrap(), (last(), worker, None));
        for runs in ["a,b", "a-*", "{a,b}-?"] {
            assert_eq!(choice(&[runs]).unwrap(), (runs.to_owned(), None, None));
        }
        for words in [
            &["last", "worker/x"][..],
            &["last/worker/3", "worker/3"],
            &["pod/web"],
        ] {
            assert!(choice(words).is_err(), "{words:?}");
        }
    }
}
