//! Compares Longshore's client with kube-rs, client-go and curl: lists in memory, lists
//! and caches of a server, watches. Each measurement runs in a separate process, so that
//! its peak memory does not include others. The contenders run in turns.

mod child;
mod client_go;
mod contender;
mod curl;
mod decode;
mod list;
mod measured;
mod memory;
mod store;
mod watch;

use std::{fs, path::Path};

use serde_json::Value;

use crate::{
    pods,
    report::{Failure, Report},
    server::{self, Peer},
};
use child::measure;
pub(crate) use child::{CHILD, child};
use contender::Contender::{
    self, Bytes, Curl, Dynamic, GoDefault, GoJson, GoJsonByPages, GoProtobuf, GoProtobufByPages,
    Metadata, Ours, OursByPages, Typed,
};
use measured::{Job, Measured};

const MB: f64 = 1e6;

/// Runs all measurements with `count` pods.
pub(crate) async fn run(report: &mut Report, runs: usize, count: usize) -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    in_memory(report, runs, count, folder.path())?;
    served(report, runs, count, Peer::ours()).await?;
    match Peer::real() {
        Some(peer) => served(report, runs, count, peer).await?,
        None => report.figure("kube-apiserver", "not available", ""),
    }
    Ok(())
}

fn in_memory(report: &mut Report, runs: usize, count: usize, folder: &Path) -> Result<(), Failure> {
    let body = pods::list_body(count);
    let size = body.len() as f64;
    report.figure(
        "pods, size of the list",
        format!("{count}, {:.1} MB", size / MB),
        "",
    );
    let list = folder.join("list");
    fs::write(&list, &body)?;
    let contenders = [Ours, Typed, Dynamic, Metadata];
    let found = rounds(runs, Job::Decode, &contenders, &list, count)?;
    table(
        report,
        "decode a list in memory to names and phases",
        &found,
        size,
        "10 times; 1.2 of the body",
    );

    let events = folder.join("events");
    fs::write(&events, event_lines(&body)?)?;
    drop(body);
    let contenders = [Ours, Typed, Dynamic];
    let found = rounds(runs, Job::Watch, &contenders, &events, count)?;
    for (who, measured) in &found {
        let rate = count as f64 / measured.seconds;
        let what = format!("watch, events per second per core: {}", who.name());
        report.figure(
            &what,
            format!("{rate:.0}/s{}", against(&found, measured)),
            goal(*who, "5 times"),
        );
    }
    Ok(())
}

async fn served(report: &mut Report, runs: usize, count: usize, peer: Peer) -> Result<(), Failure> {
    let (name, is_real) = (peer.name(), matches!(peer, Peer::Real(_)));
    println!("  from {name}");
    let server = server::with_pods(peer, count).await?;
    let kubeconfig = server.kubeconfig();
    let (all, bare) = list::sizes(&kubeconfig).await?;
    let contenders = client_go::join(
        report,
        &[Ours, Curl, OursByPages, Bytes, Typed, Dynamic, Metadata],
        &[
            GoJson,
            GoJsonByPages,
            GoProtobuf,
            GoProtobufByPages,
            GoDefault,
        ],
    );
    let mut found = rounds(runs, Job::List, &contenders, &kubeconfig, count)?;
    let floor = found.remove(1).1.seconds;
    let what = "list end to end: curl, discarded";
    report.figure(what, format!("{:.0} ms", floor * 1e3), "");
    for (who, measured) in &found[..3] {
        let what = format!("list end to end, times curl: {}", who.name());
        let ratio = format!("{:.2}", measured.seconds / floor);
        report.figure(&what, ratio, goal(*who, "1.1 or less"));
    }
    table(
        report,
        "list end to end to names and phases",
        &found,
        all,
        "",
    );
    let raw = format!(
        "{:.1} MB, {:.1} MB without managedFields",
        all / MB,
        bare / MB
    );
    report.figure("pods as they are listed", raw, "");
    let contenders = client_go::join(report, &[Ours, Typed, Metadata], &[GoJson, GoProtobuf]);
    found = rounds(runs, Job::Cache, &contenders, &kubeconfig, count)?;
    table(
        report,
        "cache filled",
        &found,
        bare,
        "1.2 of the bytes without managedFields",
    );
    if is_real {
        watch_lists(report, runs, &kubeconfig)?;
    }
    server.stop().await;
    Ok(())
}

/// The part of the server and the connection in the time to fill a cache. The embedded
/// server has no protobuf.
fn watch_lists(report: &mut Report, runs: usize, kubeconfig: &Path) -> Result<(), Failure> {
    let mut found = [Vec::new(), Vec::new()];
    for _ in 0..runs {
        for (seconds, all) in curl::watch_lists(kubeconfig)?.into_iter().zip(&mut found) {
            all.push(Measured {
                seconds,
                ..Measured::default()
            });
        }
    }
    for (all, encoding) in found.iter().zip(["JSON", "protobuf"]) {
        let what = format!("watch list: curl, discarded, {encoding}");
        let time = format!("{:.0} ms", Measured::median(all).seconds * 1e3);
        report.figure(&what, time, "");
    }
    Ok(())
}

/// The medians for each contender. The contenders run in turns.
fn rounds(
    runs: usize,
    job: Job,
    contenders: &[Contender],
    source: &Path,
    count: usize,
) -> Result<Vec<(Contender, Measured)>, Failure> {
    let mut all = vec![Vec::new(); contenders.len()];
    for _ in 0..runs {
        for (contender, found) in contenders.iter().zip(&mut all) {
            found.push(measure(job, *contender, source, count)?);
        }
    }
    let medians = all.into_iter().map(|found| Measured::median(&found));
    Ok(contenders.iter().copied().zip(medians).collect())
}

fn goal(who: Contender, goal: &str) -> &str {
    if who == Ours { goal } else { "" }
}

/// Compares Longshore's speed with this contender's.
fn against(found: &[(Contender, Measured)], this: &Measured) -> String {
    match found.first() {
        Some((Ours, ours)) if ours.seconds < this.seconds => {
            format!(", ours {:.1} times faster", this.seconds / ours.seconds)
        }
        Some((Ours, ours)) if ours.seconds > this.seconds => {
            format!(", {:.2} of our time", this.seconds / ours.seconds)
        }
        _ => String::new(),
    }
}

fn table(report: &mut Report, what: &str, found: &[(Contender, Measured)], size: f64, aim: &str) {
    for (who, measured) in found {
        let heap = match measured.heap {
            0.0 => String::new(),
            heap => format!(" (heap in use {:.2})", heap / size),
        };
        let figures = format!(
            "{:.1} ms, {:.0} MB = {:.2} of the bytes{heap}{}",
            measured.seconds * 1e3,
            measured.memory / MB,
            measured.memory / size,
            against(found, measured),
        );
        report.figure(&format!("{what}: {}", who.name()), figures, goal(*who, aim));
    }
}

/// The events of a watch with the same pods.
fn event_lines(list: &[u8]) -> Result<Vec<u8>, Failure> {
    let list: Value = serde_json::from_slice(list)?;
    let mut lines = Vec::new();
    for pod in list["items"].as_array().into_iter().flatten() {
        let mut pod = pod.clone();
        pod["kind"] = "Pod".into();
        pod["apiVersion"] = "v1".into();
        let event = serde_json::json!({"type": "MODIFIED", "object": pod});
        serde_json::to_writer(&mut lines, &event)?;
        lines.push(b'\n');
    }
    Ok(lines)
}
