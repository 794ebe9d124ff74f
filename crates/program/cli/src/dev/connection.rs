//! The connection to the supervisor of a task: sends an order, and reads reports until the next
//! order.

use std::{io, sync::Arc, time::Duration};

use longshore::{
    client::{self, Cluster, ExecOptions, Input, Reader},
    launcher::{
        bundle::Listing,
        dev::{CommandState, MAX_LISTING_BYTES, Report, Request},
        names::Task,
    },
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    sync::{mpsc, watch},
};

use super::{
    folder::{Folder, Parcel},
    report::News,
    versions::Version,
};
use crate::error::{Error, Kind, Result};

/// The maximum length of a report in bytes.
const MAX_REPORT_BYTES: u64 = 1 << 20;
/// The timeout for a supervisor's first report: the supervisor waits for the task's peers.
const HELLO_TIMEOUT: Duration = Duration::from_secs(30);
/// The timeout for an order, in addition to the grace period of the command.
const ORDER_TIMEOUT: Duration = Duration::from_secs(120);
/// The pause before a new connection. It doubles up to the longest pause.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// After this many failed connections, the problem is reported.
const REPORTED_FAILURES: u32 = 4;

/// The container of a task.
#[derive(Debug, Clone)]
pub(super) struct Container {
    pub(super) task: Task,
    pub(super) namespace: String,
    pub(super) pod: String,
    pub(super) name: String,
    /// The path of the program in the container.
    pub(super) program: String,
}

/// The state that all connections share.
pub(super) struct Shared {
    pub(super) cluster: Cluster,
    pub(super) folder: Arc<Folder>,
    pub(super) news: mpsc::Sender<News>,
    pub(super) grace: Duration,
    pub(super) session: Session,
}

/// A session of `longshore dev`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Session {
    /// The number of the session, higher than the numbers of the run's earlier sessions.
    pub(super) number: u64,
    /// True if the session restarts the running commands when it attaches.
    pub(super) restarts: bool,
}

/// The end of a connection.
enum End {
    /// The connection was lost and is opened again.
    Lost(Error),
    /// A later session has taken over the run.
    Replaced,
}

impl From<Error> for End {
    fn from(error: Error) -> Self {
        Self::Lost(error)
    }
}

/// Keeps a container up to date until the receiver of reports is dropped or this future is dropped.
pub(super) async fn serve(
    shared: Arc<Shared>,
    container: Container,
    mut versions: watch::Receiver<Version>,
) {
    let mut executed = None;
    let mut failures = 0;
    let mut pause = SHORTEST_PAUSE;
    loop {
        let mut connection = Connection {
            shared: &shared,
            container: &container,
            versions: &mut versions,
            executed: &mut executed,
            failures: &mut failures,
        };
        let error = match connection.run().await {
            Err(End::Lost(error)) => error,
            Err(End::Replaced) => {
                let _ = shared.news.send(News::Replaced).await;
                return;
            }
        };
        failures += 1;
        let forbidden = error.kind() == Kind::Cluster && failures == 1;
        if failures == REPORTED_FAILURES || forbidden {
            let news = News::Lost {
                task: container.task.clone(),
                problem: error.message().to_owned(),
            };
            if shared.news.send(news).await.is_err() {
                return;
            }
        }
        tokio::time::sleep(pause).await;
        pause = match failures {
            0 | 1 => SHORTEST_PAUSE,
            _ => (pause * 2).min(LONGEST_PAUSE),
        };
    }
}

struct Connection<'a> {
    shared: &'a Shared,
    container: &'a Container,
    versions: &'a mut watch::Receiver<Version>,
    /// The number of the last version that the task has executed.
    executed: &'a mut Option<u64>,
    failures: &'a mut u32,
}

impl Connection<'_> {
    async fn run(&mut self) -> Result<std::convert::Infallible, End> {
        let container = self.container;
        let pods = self
            .shared
            .cluster
            .pods()
            .in_namespace(&container.namespace)
            .map_err(Error::from)?;
        let options = ExecOptions {
            container: Some(container.name.clone()),
            stdin: true,
            tty: false,
        };
        let command = [container.program.as_str(), "bootstrap", "receive"];
        let session = pods.exec(&container.pod, command, &options).await;
        let mut session = session.map_err(Error::from)?;
        let (Some(mut input), Some(output)) = (session.stdin(), session.stdout()) else {
            return Err(broken("it has no streams").into());
        };
        let mut reports = BufReader::new(output);
        match self.talk(&mut input, &mut reports).await {
            Err(End::Lost(error)) => Err(explained(session, error).await.into()),
            Err(End::Replaced) => Err(End::Replaced),
        }
    }

    async fn talk(
        &mut self,
        input: &mut Input,
        reports: &mut BufReader<Reader>,
    ) -> Result<std::convert::Infallible, End> {
        hello(reports).await?;
        let begin = Request::Begin(self.shared.session.number);
        send(input, &begin, &[]).await.map_err(lost)?;
        // The state of the task from now on, without orders of earlier sessions.
        let (mut state, command) = hello(reports).await?;
        *self.failures = 0;
        let version = self.versions.borrow_and_update().clone();
        if !self.shared.folder.knows(&state) {
            send(input, &Request::Describe, &[]).await.map_err(lost)?;
            let listing = tokio::time::timeout(ORDER_TIMEOUT, listing(reports)).await;
            let listing = listing.map_err(|_| broken("it does not answer"))??;
            self.learn(state.clone(), listing, &version).await?;
        }
        let executed = *self.executed;
        let is_waiting = command == CommandState::Waiting;
        let must_restart = self.shared.session.restarts && executed.is_none();
        let is_current = executed.is_none_or(|number| number == version.number)
            && self.shared.folder.is_in(&state, &version.state)
            && !must_restart;
        if is_current && !is_waiting && state == version.state.name {
            self.tell(News::Connected(container_task(self))).await?;
        } else {
            let restart = !is_waiting && !is_current;
            self.order(input, reports, &mut state, &version, restart)
                .await?;
        }
        loop {
            tokio::select! {
                report = read(reports, MAX_REPORT_BYTES) => match report? {
                    // The log of the task reports it.
                    Report::Ended { .. } => {}
                    _ => return Err(broken("it sent an unexpected answer").into()),
                },
                changed = self.versions.changed() => {
                    changed.map_err(|_| broken("the watch of the folder has ended"))?;
                    let version = self.versions.borrow_and_update().clone();
                    self.order(input, reports, &mut state, &version, true).await?;
                }
            }
        }
    }

    /// Compares the code of the task with the folder.
    async fn learn(&self, state: String, listing: Listing, version: &Version) -> Result<()> {
        let (folder, now) = (Arc::clone(&self.shared.folder), Arc::clone(&version.state));
        let learned = tokio::task::spawn_blocking(move || folder.learn(state, &listing, &now));
        learned
            .await
            .map_err(|_| broken("the comparison was interrupted"))
    }

    /// Sends the difference between the task's state and a version, and waits until it is
    /// executed.
    async fn order(
        &mut self,
        input: &mut Input,
        reports: &mut BufReader<Reader>,
        state: &mut String,
        version: &Version,
        restart: bool,
    ) -> Result<(), End> {
        // The first report includes the changes that an earlier session has not sent.
        let is_first = self.executed.is_none();
        // A refused order leaves an unknown state: then everything is sent, once.
        for attempt in 0..2 {
            let parcel = self.parcel(state.clone(), version, restart).await?;
            let report = self.executed(input, reports, &parcel).await?;
            let problem = match report {
                Report::Done {
                    state: now,
                    started,
                } => {
                    *state = now;
                    *self.executed = Some(version.number);
                    let task = self.container.task.clone();
                    let number = version.number;
                    let caught_up = is_first.then(|| parcel.changes.clone());
                    let news = News::Done {
                        task,
                        number,
                        started,
                        caught_up,
                    };
                    return Ok(self.tell(news).await?);
                }
                Report::Refused {
                    state: now,
                    problem,
                } => {
                    *state = now;
                    problem
                }
                _ => return Err(broken("it sent an unexpected answer").into()),
            };
            if attempt == 1 || !state.is_empty() {
                let task = self.container.task.clone();
                let number = version.number;
                let news = News::Refused {
                    task,
                    number,
                    problem,
                };
                return Ok(self.tell(news).await?);
            }
        }
        Ok(())
    }

    async fn parcel(&self, from: String, to: &Version, restart: bool) -> Result<Arc<Parcel>> {
        let (folder, state) = (Arc::clone(&self.shared.folder), Arc::clone(&to.state));
        let packed = tokio::task::spawn_blocking(move || folder.parcel(&from, &state, restart));
        match packed.await {
            Ok(Ok(parcel)) => Ok(parcel),
            // The folder has changed again: the next version follows.
            Ok(Err(error)) => Err(Error::from_source(Kind::Failed, &error)),
            Err(_) => Err(broken("packing was interrupted")),
        }
    }

    async fn executed(
        &mut self,
        input: &mut Input,
        reports: &mut BufReader<Reader>,
        parcel: &Parcel,
    ) -> Result<Report, End> {
        let order = Request::Order(parcel.order.clone());
        let limit = ORDER_TIMEOUT + self.shared.grace;
        let answer = async {
            send(input, &order, &parcel.archive).await.map_err(lost)?;
            loop {
                match read(reports, MAX_REPORT_BYTES).await? {
                    // The command ended by itself before it was restarted.
                    Report::Ended { .. } => {}
                    report => return Ok(report),
                }
            }
        };
        match tokio::time::timeout(limit, answer).await {
            Ok(answer) => answer,
            Err(_) => Err(broken("it does not answer").into()),
        }
    }

    async fn tell(&self, news: News) -> Result<()> {
        let sent = self.shared.news.send(news).await;
        sent.map_err(|_| broken("the session has ended"))
    }
}

fn container_task(connection: &Connection<'_>) -> Task {
    connection.container.task.clone()
}

/// Sends a request, followed by an archive.
async fn send(input: &mut Input, request: &Request, archive: &[u8]) -> io::Result<()> {
    let mut header = serde_json::to_vec(request)?;
    header.push(b'\n');
    input.write_all(&header).await?;
    input.write_all(archive).await?;
    input.flush().await
}

fn lost(error: io::Error) -> Error {
    broken(&error.to_string())
}

/// The state of the task's folder, and its command.
async fn hello(reports: &mut BufReader<Reader>) -> Result<(String, CommandState), End> {
    let report = tokio::time::timeout(HELLO_TIMEOUT, read(reports, MAX_REPORT_BYTES)).await;
    match report.map_err(|_| broken("it does not answer"))?? {
        Report::Hello { state, command } => Ok((state, command)),
        _ => Err(broken("it sent an unexpected answer").into()),
    }
}

/// The code of the task.
async fn listing(reports: &mut BufReader<Reader>) -> Result<Listing, End> {
    loop {
        match read(reports, MAX_LISTING_BYTES).await? {
            Report::Listing(listing) => return Ok(listing),
            // The command ended by itself.
            Report::Ended { .. } => {}
            _ => return Err(broken("it sent an unexpected answer").into()),
        }
    }
}

/// Reads a report. Pods are not trusted: the length of a report is limited.
async fn read(reports: &mut BufReader<Reader>, limit: u64) -> Result<Report, End> {
    let mut line = Vec::new();
    let mut limited = reports.take(limit);
    let read = limited.read_until(b'\n', &mut line).await;
    let count = read.map_err(lost)?;
    if count == 0 {
        return Err(broken("it was closed").into());
    }
    match serde_json::from_slice(&line) {
        Ok(Report::Replaced) => Err(End::Replaced),
        Ok(report) => Ok(report),
        Err(_) => Err(broken("it sent an unexpected answer").into()),
    }
}

fn broken(problem: &str) -> Error {
    Error::new(
        Kind::Failed,
        format!("the connection for changes is lost: {problem}"),
    )
}

/// Returns the error that the session reports, if any, for example that the image lacks the
/// program.
async fn explained(mut session: client::Session, error: Error) -> Error {
    let mut said = String::new();
    if let Some(errors) = session.stderr() {
        let mut limited = errors.take(4096);
        let reading = limited.read_to_string(&mut said);
        let _ = tokio::time::timeout(Duration::from_millis(200), reading).await;
    }
    let wait = tokio::time::timeout(Duration::from_millis(200), session.wait()).await;
    let said = said.trim().trim_start_matches("longshore: ");
    match wait {
        Ok(Err(cause)) => cause.into(),
        Ok(Ok(1..)) if !said.is_empty() => {
            let shown = longshore::launcher::terminal_text::escaped(said);
            Error::new(Kind::Failed, shown.into_owned())
        }
        _ => error,
    }
}
