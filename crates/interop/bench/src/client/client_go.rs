//! Measures client-go with the Go program in `crates/interop/bench/go`, which `cargo xtask bench` builds.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::{
    contender::Contender,
    measured::{Job, Measured},
};
use crate::report::{Failure, Report};

/// The variable with the path of the program.
const PROGRAM: &str = "LONGSHORE_BENCH_CLIENT_GO";

fn program() -> Option<PathBuf> {
    let program = PathBuf::from(env::var_os(PROGRAM)?);
    program.is_file().then_some(program)
}

/// Adds the contenders `with` of client-go, or reports why they are missing.
pub(super) fn join(
    report: &mut Report,
    contenders: &[Contender],
    with: &[Contender],
) -> Vec<Contender> {
    if program().is_some() {
        return [contenders, with].concat();
    }
    report.figure("client-go", "not available: needs Go 1.26 or newer", "");
    contenders.to_vec()
}

/// The program's first arguments: the operation and the encoding of pods.
pub(super) fn arguments(job: Job, contender: Contender) -> Option<[&'static str; 2]> {
    let (list, encoding) = match contender {
        Contender::GoJson => ("list", "json"),
        Contender::GoJsonByPages => ("pages", "json"),
        Contender::GoProtobuf => ("list", "protobuf"),
        Contender::GoProtobufByPages => ("pages", "protobuf"),
        Contender::GoDefault => ("list", "default"),
        _ => return None,
    };
    match job {
        Job::Cache => Some(["cache", encoding]),
        _ => Some([list, encoding]),
    }
}

/// Measures client-go in a separate process.
pub(super) fn measure(
    arguments: [&str; 2],
    kubeconfig: &Path,
    count: usize,
) -> Result<Measured, Failure> {
    let output = Command::new(program().ok_or("client-go is not available")?)
        .args(arguments)
        .arg(kubeconfig)
        .arg(count.to_string())
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err(format!("client-go {arguments:?}: {}", output.status).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}
