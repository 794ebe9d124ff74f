//! Many chatty pods, followed concurrently while their logs are rotated, their connections
//! break, and some of the pods are replaced.

use std::{
    collections::{BTreeMap, HashMap},
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use super::fake::{
    Answer, Fake, ReceivedRequest, list,
    run::{event, job, run},
    status,
};
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use jiff::Timestamp;
use longshore_launcher::{Event, Follow, FollowOptions, follow::Ending};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use serde_json::{Value, json};
use tokio::sync::watch;

const TASKS: usize = 200;
/// The number of pods that are deleted and replaced.
const REPLACED: usize = 40;
const LINES: usize = 400;

/// A container's log on its node.
struct Log {
    lines: Vec<(Timestamp, String)>,
    /// The first line of the current file, where a new reader starts.
    first: usize,
    /// The number of lines that were delivered completely, on any connection.
    sent: usize,
    rotations: usize,
    over: bool,
    gone: bool,
}

/// A simulated cluster with one node.
struct Simulation {
    logs: Mutex<HashMap<String, Log>>,
    events: Mutex<Vec<String>>,
    news: watch::Sender<u64>,
    random: Mutex<StdRng>,
    /// Connections that broke or ended early.
    broken: Mutex<usize>,
}

fn name(task: usize, attempt: usize) -> String {
    format!("demo-ab2cd-main-{task}-{attempt}")
}

fn pod(task: usize, attempt: usize, state: &Value, phase: &str, version: usize) -> Value {
    let name = name(task, attempt);
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "default", "uid": name, "resourceVersion": version.to_string(),
            "labels": {
                "longshore.dev/run": "demo-ab2cd", "longshore.dev/role": "main",
                "batch.kubernetes.io/job-completion-index": task.to_string(),
            },
            "creationTimestamp": format!("2026-01-01T00:00:0{attempt}Z"),
        },
        "status": {"phase": phase, "containerStatuses": [{"name": "main", "state": state}]},
    })
}

fn job_with_retries() -> Value {
    let mut job = job("main");
    job["spec"]["backoffLimit"] = json!(1000);
    job
}

impl Simulation {
    fn new() -> Arc<Self> {
        let simulation = Self {
            logs: Mutex::default(),
            events: Mutex::default(),
            news: watch::channel(0).0,
            random: Mutex::new(StdRng::seed_from_u64(7)),
            broken: Mutex::default(),
        };
        for task in 0..TASKS {
            simulation.begin(task, 0);
        }
        Arc::new(simulation)
    }

    fn chance(&self, of: f64) -> bool {
        self.random.lock().unwrap().random_bool(of)
    }

    fn begin(&self, task: usize, attempt: usize) {
        let log = Log {
            lines: Vec::new(),
            first: 0,
            sent: 0,
            rotations: 0,
            over: false,
            gone: false,
        };
        self.logs.lock().unwrap().insert(name(task, attempt), log);
    }

    /// Notifies the watch and all waiting readers.
    fn notify(&self, kind: &str, pod: impl FnOnce(usize) -> Value) {
        let mut events = self.events.lock().unwrap();
        let version = 11 + events.len();
        events.push(event(kind, pod(version)));
        drop(events);
        self.news.send_modify(|count| *count += 1);
    }

    fn watch(self: &Arc<Self>, asked: &ReceivedRequest) -> BoxStream<'static, io::Result<String>> {
        let parts = asked.query.split('&');
        let mut version = parts.filter_map(|part| part.strip_prefix("resourceVersion="));
        let version: usize = version.next().unwrap().parse().unwrap();
        let state = (
            self.clone(),
            version.saturating_sub(10),
            self.news.subscribe(),
        );
        let next = |(simulation, at, mut news): (Arc<Self>, usize, watch::Receiver<u64>)| async move {
            loop {
                news.borrow_and_update();
                let next = simulation.events.lock().unwrap().get(at).cloned();
                match next {
                    Some(event) => return Some((Ok(event), (simulation, at + 1, news))),
                    None => news.changed().await.ok()?,
                }
            }
        };
        stream::unfold(state, next).boxed()
    }

    /// The log as a kubelet sends it, from a whole second on. A connected reader continues
    /// across rotations, a later one starts with the current file.
    fn log(self: &Arc<Self>, asked: &ReceivedRequest) -> Answer {
        let pod = asked.path.rsplit('/').nth(1).unwrap().to_owned();
        let follow = asked.query.contains("follow=true");
        let since = asked.query.split('&').find_map(|part| {
            let text = part.strip_prefix("sinceTime=")?.replace("%3A", ":");
            Some(text.parse::<Timestamp>().unwrap().as_second())
        });
        let logs = self.logs.lock().unwrap();
        let Some(log) = logs.get(&pod).filter(|log| !log.gone) else {
            return status(404, "NotFound", "no such pod");
        };
        let sending = Sending {
            simulation: self.clone(),
            pod,
            follow,
            is_probe: asked.query.contains("limitBytes"),
            since,
            at: log.first,
            rest: String::new(),
            rotations: log.rotations,
            news: self.news.subscribe(),
            broken: false,
        };
        Answer::Live(stream::unfold(sending, Sending::next).boxed())
    }
}

/// A log that is being sent.
struct Sending {
    simulation: Arc<Simulation>,
    pod: String,
    follow: bool,
    /// True for a query for the first lines of the current file, which are not delivered.
    is_probe: bool,
    since: Option<i64>,
    at: usize,
    /// The remainder of a line that was sent in part.
    rest: String,
    rotations: usize,
    news: watch::Receiver<u64>,
    broken: bool,
}

impl Sending {
    async fn next(mut self) -> Option<(io::Result<String>, Self)> {
        loop {
            if self.broken {
                return None;
            }
            self.news.borrow_and_update();
            if self.follow && self.simulation.chance(0.1) {
                *self.simulation.broken.lock().unwrap() += 1;
                self.broken = true;
                // The connection breaks, or ends as if the log were complete.
                match self.simulation.chance(0.5) {
                    true => return Some((Err(io::Error::other("cut")), self)),
                    false => return None,
                }
            }
            let piece = self.piece();
            if !piece.is_empty() {
                return Some((Ok(piece), self));
            }
            let (ended, rotated) = {
                let logs = self.simulation.logs.lock().unwrap();
                let log = &logs[&self.pod];
                let read = self.at == log.lines.len();
                (
                    read && (log.over || log.gone),
                    log.rotations > self.rotations,
                )
            };
            // Some runtimes end a followed log when it is rotated.
            if ended || !self.follow || (rotated && self.simulation.chance(0.1)) {
                return None;
            }
            self.news.changed().await.ok()?;
        }
    }

    /// Some lines, the last of which may be cut off.
    fn piece(&mut self) -> String {
        let mut piece = std::mem::take(&mut self.rest);
        let mut logs = self.simulation.logs.lock().unwrap();
        let log = logs.get_mut(&self.pod).unwrap();
        while piece.len() < 2000 && self.at < log.lines.len() {
            let (time, text) = &log.lines[self.at];
            self.at += 1;
            if self.since.is_none_or(|since| time.as_second() >= since) {
                piece += &format!("{time} {text}\n");
            }
        }
        let mut random = self.simulation.random.lock().unwrap();
        if piece.len() > 40 && random.random_bool(0.3) {
            let cut = piece.len() - random.random_range(1..30);
            self.rest = piece.split_off(cut);
        }
        // A line that was cut off was not delivered, and remains on the node.
        let whole = self.at - usize::from(!self.rest.is_empty());
        if !self.is_probe {
            log.sent = log.sent.max(whole);
        }
        piece
    }
}

impl Simulation {
    /// Writes the lines of a container in bursts with equal timestamps, and rotates the
    /// log.
    async fn write(&self, task: usize, attempt: usize, lines: usize) {
        let name = name(task, attempt);
        let mut time = Timestamp::from_second(1_770_000_000 + task as i64).unwrap();
        let mut written = 0;
        while written < lines {
            let (burst, rotate, wait) = {
                let mut random = self.random.lock().unwrap();
                time += Duration::from_millis(random.random_range(0..700));
                let burst = random.random_range(1..30).min(lines - written);
                (burst, random.random_bool(0.2), random.random_range(1..60))
            };
            {
                let mut logs = self.logs.lock().unwrap();
                let log = logs.get_mut(&name).unwrap();
                for _ in 0..burst {
                    log.lines.push((time, format!("{name} {written}")));
                    written += 1;
                }
                if rotate {
                    log.first = log.sent;
                    log.rotations += 1;
                }
            }
            self.news.send_modify(|count| *count += 1);
            tokio::time::sleep(Duration::from_millis(wait)).await;
        }
    }

    /// The life of a task: possibly a pod that is deleted while it runs, then one that
    /// completes.
    async fn live(self: Arc<Self>, task: usize) {
        let mut attempt = 0;
        if task < REPLACED {
            self.write(task, 0, LINES / 2).await;
            self.logs
                .lock()
                .unwrap()
                .get_mut(&name(task, 0))
                .unwrap()
                .over = true;
            self.news.send_modify(|count| *count += 1);
            // Connected readers get the rest of its log from the node.
            let read = |log: &Log| log.sent == log.lines.len();
            while !read(&self.logs.lock().unwrap()[&name(task, 0)]) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            self.logs
                .lock()
                .unwrap()
                .get_mut(&name(task, 0))
                .unwrap()
                .gone = true;
            let running = json!({"running": {}});
            self.notify("DELETED", |version| {
                pod(task, 0, &running, "Running", version)
            });
            attempt = 1;
            self.begin(task, attempt);
            self.notify("ADDED", |version| {
                pod(task, attempt, &running, "Running", version)
            });
        }
        self.write(task, attempt, LINES).await;
        let ended = json!({"terminated": {"exitCode": 0, "finishedAt": "2026-01-01T00:00:09Z"}});
        self.logs
            .lock()
            .unwrap()
            .get_mut(&name(task, attempt))
            .unwrap()
            .over = true;
        self.notify("MODIFIED", |version| {
            pod(task, attempt, &ended, "Succeeded", version)
        });
    }
}

fn cluster(simulation: &Arc<Simulation>) -> Fake {
    let simulation = simulation.clone();
    Fake::new(move |asked| {
        let is_watch = asked.query.contains("watch=");
        match asked.path.as_str() {
            path if path.ends_with("/log") => simulation.log(asked),
            path if path.ends_with("/jobs") && is_watch => Answer::Live(stream::pending().boxed()),
            path if path.ends_with("/jobs") => list("Job", "batch/v1", vec![job_with_retries()]),
            path if path.ends_with("/pods") && is_watch => Answer::Live(simulation.watch(asked)),
            path if path.ends_with("/pods") => {
                let running = json!({"running": {}});
                let pods = (0..TASKS).map(|task| pod(task, 0, &running, "Running", 9));
                list("Pod", "v1", pods.collect())
            }
            _ => status(403, "Forbidden", "no"),
        }
    })
}

#[tokio::test]
async fn many_chatty_pods_lose_and_double_no_line() {
    let simulation = Simulation::new();
    let fake = cluster(&simulation);
    let tasks = u32::try_from(TASKS).unwrap();
    let run = run(&[("main", tasks, false)]);
    let mut follow = Follow::start(&fake.cluster(), &run, FollowOptions::default())
        .await
        .unwrap();
    for task in 0..TASKS {
        tokio::spawn(simulation.clone().live(task));
    }
    let mut got: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut most = 0;
    let mut taken = 0;
    let outcome = loop {
        match follow.next().await.unwrap().unwrap() {
            Event::Log(line) => {
                let (pod, number) = line.line.split_once(' ').unwrap();
                assert!(pod.starts_with(&format!("demo-ab2cd-main-{}-", line.task.index)));
                got.entry(pod.to_owned())
                    .or_default()
                    .push(number.parse().unwrap());
                taken += 1;
                // A reader that pauses blocks the others.
                if taken % 10_000 == 0 {
                    tokio::time::sleep(Duration::from_millis(300)).await;
                    let logs = simulation.logs.lock().unwrap();
                    let sent: usize = logs.values().map(|log| log.sent).sum();
                    most = most.max(sent - taken.min(sent));
                }
            }
            Event::Finished(outcome) => break outcome,
            _ => {}
        }
    };
    assert_eq!((outcome.ending, outcome.exit_code), (Ending::Succeeded, 0));
    assert_eq!(got.len(), TASKS + REPLACED);
    for (pod, numbers) in &got {
        let lines =
            match pod.ends_with("-0") && got.contains_key(&format!("{}1", &pod[..pod.len() - 1])) {
                true => LINES / 2,
                false => LINES,
            };
        assert!(numbers.iter().copied().eq(0..lines), "{pod}: {numbers:?}");
    }
    let logs = simulation.logs.lock().unwrap();
    let rotations: usize = logs.values().map(|log| log.rotations).sum();
    let broken = *simulation.broken.lock().unwrap();
    assert!(rotations > 500 && broken > 100, "{rotations}, {broken}");
    // The number of buffered lines is bounded by the queue and a few pieces for each log,
    // regardless of the total.
    assert!(
        most < 1024 + (TASKS + REPLACED) * 100,
        "{most} of {taken} lines were buffered"
    );
}
