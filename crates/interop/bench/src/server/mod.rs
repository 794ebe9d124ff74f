//! Compares the embedded server with the real kube-apiserver and etcd, from start to stop.
//! The same client sends the requests over TLS.

mod account;
mod load;
mod peer;
mod watch;
mod watchers;
mod wire;

use std::time::Duration;

use crate::report::{Failure, Report, middle};
pub(crate) use load::{JSON, MERGE, send};
pub(crate) use peer::{Peer, Server};
pub(crate) use watch::Watch;
use wire::Wire;

/// The figures of one server.
#[derive(Debug, Default, Clone)]
struct Figures {
    ready: Duration,
    /// Memory in megabytes: idle, and after each part.
    idle: f64,
    loaded: f64,
    watched: f64,
    /// Requests per second.
    create: f64,
    /// Requests per second by a service account that a role permits.
    create_as_account: f64,
    patch: f64,
    /// Processor seconds of the server per request.
    create_cost: f64,
    patch_cost: f64,
    list: Duration,
    watchers: watchers::Delivery,
}

/// Measures both servers and compares them.
pub(crate) async fn run(report: &mut Report, runs: usize, pods: usize) -> Result<(), Failure> {
    let ours = one(Peer::ours(), runs, pods).await?;
    let theirs = match Peer::real() {
        Some(peer) => Some(one(peer, runs, pods).await?),
        None => {
            report.figure("kube-apiserver", "not available", "");
            println!("  `cargo xtask real-apiserver` builds one");
            None
        }
    };
    print(report, &ours, theirs.as_ref());
    Ok(())
}

/// Starts a server and creates pods in it.
pub(crate) async fn with_pods(peer: Peer, pods: usize) -> Result<Server, Failure> {
    let (server, _) = peer.start().await?;
    let mut wire = Wire::open(&server.kubeconfig(), load::CONCURRENCY).await?;
    load::create(&mut wire, "default", pods, 1).await?;
    Ok(server)
}

async fn one(peer: Peer, runs: usize, pods: usize) -> Result<Figures, Failure> {
    eprintln!("  {} …", peer.name());
    let mut starts = Vec::new();
    for _ in 1..runs {
        let (server, ready) = peer.clone().start().await?;
        starts.push(ready);
        server.stop().await;
    }
    let (server, ready) = peer.start().await?;
    starts.push(ready);
    tokio::time::sleep(Duration::from_secs(3)).await;
    let mut figures = Figures {
        ready: middle(&starts),
        idle: server.memory()?,
        ..Figures::default()
    };
    let client = server.client().await?;
    let mut wire = Wire::open(&server.kubeconfig(), load::CONCURRENCY).await?;
    let before = server.processor_time()?;
    figures.create = load::create(&mut wire, "default", pods, runs).await?;
    let between = server.processor_time()?;
    figures.patch = load::patch_status(&mut wire, pods, runs).await?;
    let after = server.processor_time()?;
    figures.list = load::list(&client, runs).await?;
    figures.loaded = server.memory()?;
    wire.set_token(&account::token(&client).await?)?;
    let namespace = account::NAMESPACE;
    figures.create_as_account = load::create(&mut wire, namespace, pods, runs).await?;
    drop(wire);
    figures.create_cost = (between - before) / pods as f64;
    figures.patch_cost = (after - between) / pods as f64;
    figures.watchers = watchers::run(&client).await?;
    figures.watched = server.memory()?;
    server.stop().await;
    Ok(figures)
}

fn print(report: &mut Report, ours: &Figures, theirs: Option<&Figures>) {
    type Row = (
        &'static str,
        fn(&Figures) -> f64,
        &'static str,
        bool,
        &'static str,
    );
    // Description, figure, unit, whether more is better, goal.
    let rows: &[Row] = &[
        (
            "start until /readyz is ok",
            |f| f.ready.as_secs_f64() * 1e3,
            "ms",
            false,
            "50 ms",
        ),
        ("memory, idle", |f| f.idle, "MB", false, "40 MB"),
        (
            "create pods, 64 concurrent requests, durable",
            |f| f.create,
            "/s",
            true,
            "5 times",
        ),
        (
            "create pods as a service account with a role",
            |f| f.create_as_account,
            "/s",
            true,
            "at most 10 % slower",
        ),
        (
            "the server's processor time per create",
            |f| f.create_cost * 1e6,
            "µs",
            false,
            "",
        ),
        (
            "merge-patch status, 64 concurrent requests, durable",
            |f| f.patch,
            "/s",
            true,
            "5 times",
        ),
        (
            "the server's processor time per patch",
            |f| f.patch_cost * 1e6,
            "µs",
            false,
            "",
        ),
        (
            "list all pods",
            |f| f.list.as_secs_f64() * 1e3,
            "ms",
            false,
            "",
        ),
        (
            "memory after these requests",
            |f| f.loaded,
            "MB",
            false,
            "a tenth",
        ),
        (
            "watchers: events",
            |f| f.watchers.rate,
            "/s",
            true,
            "1,000/s",
        ),
        (
            "watchers: deliveries",
            |f| f.watchers.deliveries,
            "/s",
            true,
            "",
        ),
        (
            "watchers: median, request to delivery",
            |f| f.watchers.median,
            "ms",
            false,
            "",
        ),
        (
            "watchers: 99th percentile",
            |f| f.watchers.percentile_99,
            "ms",
            false,
            "100 ms",
        ),
        (
            "memory after that, one watcher not reading",
            |f| f.watched,
            "MB",
            false,
            "",
        ),
    ];
    for (what, figure, unit, more_is_better, goal) in rows {
        let mine = figure(ours);
        let Some(theirs) = theirs.map(figure) else {
            report.figure(what, format!("{mine:.0} {unit}"), goal);
            continue;
        };
        let ratio = if *more_is_better {
            mine / theirs
        } else {
            theirs / mine
        };
        report.figure(
            what,
            format!("{mine:.0} {unit}, real {theirs:.0} {unit}, {ratio:.1} times better"),
            goal,
        );
    }
}
