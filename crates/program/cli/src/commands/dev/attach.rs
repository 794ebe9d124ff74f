//! `longshore dev --run`: sends changes to a run that an earlier `longshore dev` has started.

use std::{path::Path, process::ExitCode, time::Duration};

use longshore::{
    client::Cluster,
    launcher::{
        FollowOptions, PackOptions, Run, RunSummary, Settings, config::Forward, dev::DevRecord,
        names::Task, runs,
    },
};
use tokio::sync::mpsc;

use super::super::run::{AbortOnDrop, NOTES, RunArgs, editor_files, report_cluster};
use crate::{
    config,
    dev::{self, Attached, DevOptions, Start},
    error::{Error, Kind, Result},
    forward,
    interrupt::Interrupt,
    owners::{self, OwnerArgs},
    show::head,
    target::{self, Target},
    ui,
};

/// Options for attaching.
#[derive(Debug, Clone, Copy)]
pub(super) struct How {
    /// True if the pods stay after Ctrl-C.
    pub(super) keep: bool,
    /// True if commands are restarted even if no file has changed.
    pub(super) restarts: bool,
    /// The number of lines of each log to begin with.
    pub(super) tail: u64,
    /// True if the run may belong to another user.
    pub(super) owners: OwnerArgs,
}

/// Sends the changes of the folder to the tasks of the run, until the run or the session ends.
pub(super) async fn attach(args: RunArgs, name: &str, how: How) -> Result<ExitCode> {
    let folder = args.folder();
    let settings = config::load(folder)?;
    let configured = config::cluster(&settings, folder);
    let settings = match &args.cluster.names(&configured)[..] {
        [context] => settings.in_context(context),
        _ => settings,
    };
    let interrupt = Interrupt::listen()?;
    let chosen = args.cluster.choice(&configured).await?;
    report_cluster(&chosen, false).await?;
    let target = chosen.open().await?;
    let result = attach_in(&target, &args, &settings, (name, how), interrupt).await;
    let closed = target.close().await;
    let code = result?;
    closed.map(|()| code)
}

async fn attach_in(
    target: &Target,
    args: &RunArgs,
    settings: &Settings,
    (name, how): (&str, How),
    mut interrupt: Interrupt,
) -> Result<ExitCode> {
    let cluster = target.cluster();
    let own = args.options().namespace.as_deref();
    let namespace = own.or(settings.run.namespace.as_deref());
    let namespace = target::namespace(namespace.map(String::as_str), cluster);
    let found = interrupt.unless(developed(cluster, namespace, name, how.owners));
    let (found, record) = found.await??;
    let run = found.run;
    check_folder(args, &run, &record)?;
    let pack = pack_options(args, settings, &record)?;
    let ports = forward::bind(&forwards(args, settings, &run)?).await?;
    // After this call, an earlier session has no more changes to send.
    let session = runs::next_dev_session(cluster, &run)
        .await
        .map_err(|error| {
            Error::from(error).hint("to attach to a run, you need the permission to patch its Jobs")
        })?;
    let roles: Vec<String> = run
        .roles
        .iter()
        .map(|role| format!("{}={}", role.name, role.count))
        .collect();
    ui::note(format!("{} {}: {}", head("run"), run.name, roles.join(" ")));
    let (notes, lines) = mpsc::channel(NOTES);
    let served = forward::serve(cluster.clone(), run.clone(), ports, notes.clone());
    // The task ends with this function.
    let _serving = AbortOnDrop(tokio::spawn(served));
    let options = DevOptions {
        folder: args.folder(),
        pack,
        start: Start::Attached(Attached {
            session,
            restarts: how.restarts,
        }),
        grace: Duration::from_millis(record.grace_milliseconds),
        keep: how.keep,
        format: args.output,
        notes: (notes, lines),
    };
    let follow = FollowOptions {
        tail: Some(how.tail),
        ..FollowOptions::default()
    };
    dev::develop(target, &run, follow, options, interrupt).await
}

/// Returns the active run with this name, and the record of the `longshore dev` that started it.
async fn developed(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
    allowed: OwnerArgs,
) -> Result<(RunSummary, DevRecord)> {
    let access = allowed.act("send changes to");
    let found = owners::find_made(cluster, namespace, name, access).await?;
    let name = &found.run.name;
    let record = runs::dev_record(cluster, &found.run).await?;
    let Some(record) = record else {
        let message = format!(
            "the run {name} was not started by `longshore dev`, so its tasks cannot receive changes"
        );
        return Err(Error::new(Kind::Failed, message).hint(format!(
            "`longshore attach {name}` follows it; `longshore dev` starts a run that receives changes"
        )));
    };
    if found.state.is_over() {
        let message = format!("the run {name} has ended ({})", found.state.as_str());
        return Err(Error::new(Kind::Failed, message).hint(
            "start another with `longshore dev`, and with the command after `--`: `longshore runs` lists commands",
        ));
    }
    Ok((found, record))
}

/// Without an explicit folder, refuses a folder other than the run's, because its files would
/// replace the files of the tasks.
fn check_folder(args: &RunArgs, run: &Run, record: &DevRecord) -> Result<()> {
    if args.dir.is_some() {
        return Ok(());
    }
    let here = Path::new(".").canonicalize();
    let here = here.map_err(|error| Error::from_source(Kind::Usage, &error))?;
    if here == Path::new(&record.folder) {
        return Ok(());
    }
    let message = format!(
        "the run {} was started from {:?}, and this folder is {:?}",
        run.name,
        record.folder,
        here.display().to_string()
    );
    let name = &run.name;
    Err(Error::usage(message).hint(format!(
        "name the folder whose files replace those of the tasks, as in `longshore dev --run {name} FOLDER`"
    )))
}

/// Selects the files to send with the patterns of the folder's settings, the arguments, and the
/// first session's exclusions. Data from the cluster never adds files.
fn pack_options(args: &RunArgs, settings: &Settings, record: &DevRecord) -> Result<PackOptions> {
    let given = args.options();
    let own = settings.run.ignore.iter().chain(&given.ignore).cloned();
    let mut ignore: Vec<String> = editor_files().chain(own).collect();
    let is_missing = |pattern: &&String| !ignore.contains(pattern);
    let missing: Vec<String> = record.ignore.iter().filter(is_missing).cloned().collect();
    if missing.iter().any(|pattern| pattern.starts_with('!')) {
        let repeated: Vec<String> = missing
            .iter()
            .map(|pattern| format!("--ignore {pattern:?}"))
            .collect();
        let message = "the run was started with patterns that include ignored files";
        return Err(Error::usage(message).hint(format!(
            "repeat the options, if you want to send these files: {}",
            repeated.join(" ")
        )));
    }
    ignore.extend(missing);
    let allowed = settings.run.allow_secrets.iter();
    Ok(PackOptions {
        ignore,
        allow_secrets: allowed.chain(&given.allow_secrets).cloned().collect(),
        ..PackOptions::default()
    })
}

fn forwards(args: &RunArgs, settings: &Settings, run: &Run) -> Result<Vec<Forward>> {
    let given = settings.run.forward.iter().chain(&args.options().forward);
    let mut all = Vec::new();
    for entry in given {
        let forward = Forward::parse(&entry.to_string())
            .map_err(|rule| Error::usage(format!("forward: {:?}: {rule}", entry.to_string())))?;
        if let Some(role) = &forward.role {
            let task = Task {
                role: role.clone(),
                index: forward.index,
            };
            run.check_task(Some(&task.role), Some(task.index))?;
        }
        all.push(forward);
    }
    Ok(all)
}
