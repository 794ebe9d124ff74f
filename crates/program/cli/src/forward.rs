//! Ports of a run's tasks, forwarded to this machine while a command runs. A new pod of a task
//! replaces the old one.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use longshore::{
    client::{Cluster, PortForward},
    launcher::{
        Run,
        config::Forward,
        names::Task,
        runs::{self, TaskPod, WatchedPods},
    },
};
use tokio::{
    io::AsyncReadExt as _,
    net::{TcpListener, TcpStream},
    sync::{mpsc, watch},
    task::JoinSet,
};

use crate::{
    error::{Error, Kind, Result},
    follow::Beside,
    show::head,
    ui,
};

/// The interval between attempts to connect to a port at which no process listens yet.
const PROBE_INTERVAL: Duration = Duration::from_millis(300);
/// The time to wait for the refusal of a connection.
const PROBE_TIMEOUT: Duration = Duration::from_millis(400);
/// The pause after an error of the cluster or of the listener.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// A forwarded port with its local listener.
#[derive(Debug)]
pub(crate) struct Bound {
    forward: Forward,
    listener: TcpListener,
    address: SocketAddr,
}

/// The pods of the running tasks.
type Pods = BTreeMap<Task, String>;

/// Listens on the local ports, so that a port that is in use is an error before the run starts.
pub(crate) async fn bind(forwards: &[Forward]) -> Result<Vec<Bound>> {
    let mut all = Vec::new();
    for forward in forwards {
        let failed = |error: std::io::Error| {
            let problem = format!(
                "cannot listen at port {} of this machine: {error}",
                forward.local
            );
            Error::new(Kind::Usage, problem).hint(format!(
                "choose another local port, as in {}, or {} for any free one",
                forward.with_local(format_args!("1{:04}", forward.port % 10_000)),
                forward.with_local(0)
            ))
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, forward.local)).await;
        let listener = listener.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        all.push(Bound {
            forward: forward.clone(),
            listener,
            address,
        });
    }
    Ok(all)
}

/// Prints the URLs before a task listens, for a command whose terminal belongs to the task.
pub(crate) fn list(ports: &[Bound]) {
    for bound in ports {
        let (address, forward) = (bound.address, &bound.forward);
        let head = head("forward");
        ui::note(format!(
            "{head} http://{address} is port {forward}, once it listens"
        ));
    }
}

/// Forwards the ports until the run ends or the future is dropped. Prints when a task listens.
pub(crate) async fn serve(
    cluster: Cluster,
    run: Run,
    ports: Vec<Bound>,
    notes: mpsc::Sender<Beside>,
) {
    if ports.is_empty() {
        return;
    }
    let (publish, pods) = watch::channel(Pods::new());
    let mut serving = JoinSet::new();
    for bound in ports {
        let role = bound.forward.role.clone();
        let role = role.or_else(|| run.roles.first().map(|role| role.name.clone()));
        let port = Port {
            cluster: cluster.clone(),
            namespace: run.namespace.clone(),
            task: Task {
                role: role.unwrap_or_default(),
                index: bound.forward.index,
            },
            port: bound.forward.port,
            pods: pods.clone(),
        };
        let port = Arc::new(port);
        serving.spawn(announce(Arc::clone(&port), bound.address, notes.clone()));
        serving.spawn(accept(port, bound.listener));
    }
    drop(pods);
    while publish_pods(&cluster, &run, &publish).await.is_err() {
        // The cluster does not respond.
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}

/// Publishes the running tasks until the run is over.
async fn publish_pods(cluster: &Cluster, run: &Run, publish: &watch::Sender<Pods>) -> Result<()> {
    let mut watched = WatchedPods::start(cluster, run).await?;
    loop {
        let running = watched.current().iter().filter_map(|pod| {
            let task_pod = pod.typed::<TaskPod>().ok()?;
            let runs = task_pod.has_started() && !task_pod.is_over();
            let task = task_pod.task().filter(|_| runs)?;
            Some((task, pod.name().to_owned()))
        });
        let running: Pods = running.collect();
        let is_empty = running.is_empty();
        publish.send_if_modified(|pods| {
            let is_new = *pods != running;
            *pods = running;
            is_new
        });
        if is_empty {
            let found = runs::find(cluster, &run.namespace, run.name.as_str()).await?;
            if found.state.is_over() {
                return Ok(());
            }
        }
        watched.changed().await?;
    }
}

/// A port of a task.
struct Port {
    cluster: Cluster,
    namespace: String,
    task: Task,
    port: u16,
    pods: watch::Receiver<Pods>,
}

impl Port {
    /// The port of the task's current pod, if it runs.
    fn now(&self) -> Option<(String, PortForward)> {
        let pod = self.pods.borrow().get(&self.task).cloned()?;
        let pods = self.cluster.pods().in_namespace(&self.namespace).ok()?;
        let forward = pods.port_forward(&pod, self.port).ok()?;
        Some((pod, forward))
    }
}

/// Accepts local connections.
async fn accept(port: Arc<Port>, listener: TcpListener) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((local, _)) => drop(connections.spawn(connect(Arc::clone(&port), local))),
                // For example, too many files are open.
                Err(_) => tokio::time::sleep(RETRY_INTERVAL).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// A connection to a port on which no process listens is closed, as without forwarding.
async fn connect(port: Arc<Port>, mut local: TcpStream) {
    let Some((_, forward)) = port.now() else {
        return;
    };
    if let Ok(mut remote) = forward.connect().await {
        let _ = tokio::io::copy_bidirectional(&mut local, &mut remote).await;
    }
}

/// Prints, once for each pod, that its task listens.
async fn announce(port: Arc<Port>, address: SocketAddr, notes: mpsc::Sender<Beside>) {
    let mut pods = port.pods.clone();
    let mut announced: Option<String> = None;
    loop {
        pods.borrow_and_update();
        match port.now() {
            Some((pod, forward)) if announced.as_ref() != Some(&pod) => {
                if !listens(&forward).await {
                    tokio::time::sleep(PROBE_INTERVAL).await;
                    continue;
                }
                announced = Some(pod);
                let line = format!(
                    "{} http://{address} is port {} of {}",
                    head("forward"),
                    port.port,
                    port.task
                );
                if notes.send(Beside::Note(line)).await.is_err() {
                    return;
                }
            }
            _ => {
                if pods.changed().await.is_err() {
                    return;
                }
            }
        }
    }
}

/// Returns true if a process listens on the port. The node refuses the connection otherwise.
async fn listens(forward: &PortForward) -> bool {
    let Ok(mut stream) = forward.connect().await else {
        return false;
    };
    let mut byte = [0];
    match tokio::time::timeout(PROBE_TIMEOUT, stream.read(&mut byte)).await {
        Ok(read) => read.is_ok_and(|count| count > 0),
        // The server waits for a request.
        Err(_) => true,
    }
}

/// Prints that a command that does not follow the run does not forward ports.
pub(crate) fn is_left_out(forwards: &[Forward], run: &str) {
    if forwards.is_empty() {
        return;
    }
    let ports: Vec<String> = forwards.iter().map(ToString::to_string).collect();
    let text = format!(
        "`longshore forward {run} {}` forwards the ports",
        ports.join(" ")
    );
    ui::note(format!(
        "{} {}",
        head("forward"),
        crate::hints::complete(&text)
    ));
}
