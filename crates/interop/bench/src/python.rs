//! The Python package compared with other Python clients on the same server: a list, a watch
//! and single objects. Each client runs in its own process.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde::Deserialize;

use crate::{
    report::{Failure, Report},
    server::{self, Peer},
};

/// The variable with the Python that has the compared clients.
const PYTHON: &str = "LONGSHORE_BENCH_PYTHON";

/// The variable with the folder of our package.
const PACKAGE: &str = "LONGSHORE_BENCH_PACKAGE";

/// The script that measures one client.
const SCRIPT: &str = "python/measure.py";

const OURS: [&str; 2] = ["longshore", "longshore.aio"];

const OTHERS: [&str; 5] = [
    "kubesdk",
    "lightkube",
    "kubernetes_asyncio",
    "kubernetes",
    "kr8s",
];

/// The figures of one client.
#[derive(Debug, Clone, Copy, Deserialize)]
struct Figures {
    /// Seconds for a list of all pods, reading each name.
    list: f64,
    /// Bytes of memory beyond the interpreter, after the lists.
    memory: f64,
    /// Changes per second of a watch that begins with all pods.
    watch: f64,
    /// Requests per second for one object, one after the other.
    get: f64,
    /// Like `get`, but with 64 requests in flight.
    get64: f64,
}

type Figure = fn(&Figures) -> f64;

/// Measures each client with `count` pods.
pub(crate) async fn run(report: &mut Report, runs: usize, count: usize) -> Result<(), Failure> {
    let (Some(python), Some(package)) = (path(PYTHON), path(PACKAGE)) else {
        report.figure(
            "Python clients",
            "not installed: use `cargo xtask bench`",
            "",
        );
        return Ok(());
    };
    let server = server::with_pods(Peer::ours(), count).await?;
    let kubeconfig = server.kubeconfig();
    let measure = |name: &str| measure(&python, &package, name, &kubeconfig, count, runs);
    let mut measured = Vec::new();
    for name in OURS.into_iter().chain(OTHERS) {
        // Only this task waits, and the server has its own threads.
        let figures = tokio::task::block_in_place(|| measure(name))?;
        show(report, name, figures);
        measured.push((name, figures));
    }
    server.stop().await;
    compare(report, &measured);
    Ok(())
}

fn path(variable: &str) -> Option<PathBuf> {
    let path = env::var_os(variable).map(PathBuf::from);
    path.filter(|path| path.exists())
}

fn measure(
    python: &Path,
    package: &Path,
    name: &str,
    kubeconfig: &Path,
    count: usize,
    runs: usize,
) -> Result<Figures, Failure> {
    let script = fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join(SCRIPT))?;
    let output = Command::new(python)
        .arg(script)
        .arg(name)
        .arg(kubeconfig)
        .args([count.to_string(), runs.to_string()])
        .env("PYTHONPATH", package)
        .stderr(Stdio::piped())
        .output()?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{name}: {}\n{why}", output.status).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn show(report: &mut Report, name: &str, figures: Figures) {
    let line = format!(
        "list {:.0} ms, {:.0} MB, watch {:.0}/s, get {:.0}/s and {:.0}/s",
        figures.list * 1e3,
        figures.memory / 1e6,
        figures.watch,
        figures.get,
        figures.get64
    );
    report.figure(name, line, "");
}

/// Compares our best result with the best result of the others.
fn compare(report: &mut Report, measured: &[(&str, Figures)]) {
    let (ours, others): (Vec<_>, Vec<_>) =
        (measured.iter()).partition(|(name, _)| OURS.contains(name));
    let best = |of: &[&(&str, Figures)], figure: Figure| {
        let values = of.iter().map(|(_, figures)| figure(figures));
        values.fold(0.0, f64::max)
    };
    let rates: [(&str, Figure, &str); 4] = [
        (
            "list: × the fastest other",
            |figures| 1.0 / figures.list,
            "5",
        ),
        ("watch: × the fastest other", |figures| figures.watch, "3"),
        ("get: × the fastest other", |figures| figures.get, "1"),
        (
            "get, 64 in flight: × the fastest other",
            |figures| figures.get64,
            "1",
        ),
    ];
    for (what, figure, goal) in rates {
        let ratio = best(&ours, figure) / best(&others, figure);
        report.figure(what, format!("{ratio:.1}"), goal);
    }
    let memory = |name: &str| {
        let found = measured.iter().find(|(other, _)| *other == name);
        found.map(|(_, figures)| figures.memory)
    };
    if let (Some(ours), Some(official)) = (memory("longshore"), memory("kubernetes")) {
        let share = ours / official * 100.0;
        report.figure(
            "memory: of the official client's",
            format!("{share:.0} %"),
            "10 %",
        );
    }
}
