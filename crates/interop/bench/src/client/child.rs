//! Runs one measurement in a separate process.

use std::{
    env,
    path::Path,
    process::{Command, Stdio},
};

use super::{
    client_go,
    contender::Contender,
    curl, decode, list,
    measured::{Job, Measured},
    memory, store, watch,
};
use crate::report::Failure;

/// The first argument of a child process.
pub(crate) const CHILD: &str = "child";

/// Measures one contender in a child process.
pub(super) fn measure(
    job: Job,
    contender: Contender,
    source: &Path,
    count: usize,
) -> Result<Measured, Failure> {
    if contender == Contender::Curl {
        let seconds = curl::list(source)?;
        return Ok(Measured {
            seconds,
            ..Measured::default()
        });
    }
    if let Some(arguments) = client_go::arguments(job, contender) {
        return client_go::measure(arguments, source, count);
    }
    let output = Command::new(env::current_exe()?)
        .args([CHILD, &serde_json::to_string(&job)?, contender.name()])
        .arg(source)
        .arg(count.to_string())
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        let what = format!("{job:?} by {}: {}", contender.name(), output.status);
        return Err(what.into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The main function of the child. Its arguments are job, contender, source and count.
pub(crate) fn child(mut arguments: impl Iterator<Item = String>) -> Result<(), Failure> {
    let mut argument = || arguments.next().ok_or("an argument is missing");
    let job: Job = serde_json::from_str(&argument()?)?;
    let contender = Contender::named(&argument()?).ok_or("unknown contender")?;
    let (source, count) = (argument()?, argument()?.parse::<usize>()?);
    let source = Path::new(&source);
    // A watch is measured on one thread, because its figure is per core.
    let mut runtime = match job {
        Job::Watch => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = runtime.enable_all().build()?;
    let (before, seconds, seen) = runtime.block_on(async {
        // Excludes memory that the process allocates once for its first connection.
        if matches!(job, Job::List | Job::Cache) {
            list::connect(source).await?;
        }
        let before = memory::begin()?;
        let outcome = match job {
            Job::Decode => decode::run(contender, source).await,
            Job::Watch => watch::run(contender, source, count).await,
            Job::List => list::run(contender, source).await,
            Job::Cache => store::run(contender, source, count).await,
        };
        outcome.map(|(seconds, seen)| (before, seconds, seen))
    })?;
    let memory = memory::peak()? - before;
    if seen != count {
        return Err(format!("{seen} pods of {count}").into());
    }
    let measured = Measured {
        seconds,
        memory,
        heap: 0.0,
    };
    println!("{}", serde_json::to_string(&measured)?);
    Ok(())
}
