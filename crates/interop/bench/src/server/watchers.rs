//! Measures the delay of events for many watchers while objects change. Each watcher
//! selects one of a hundred labels. One further watcher selects all objects and never reads.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::BytesMut;
use futures::{StreamExt as _, stream};
use http::{Method, Request};
use http_body_util::BodyExt as _;
use kube_client::{Client, client::Body};
use serde_json::json;
use tokio::{sync::mpsc, task::JoinSet};

use super::load::{JSON, MERGE, send};
use crate::report::Failure;

const WATCHERS: usize = 1000;
const LABELS: usize = 100;
/// Events per second.
const RATE: u64 = 1000;
/// The time for which objects change.
const SPAN: Duration = Duration::from_secs(10);
const PATH: &str = "/api/v1/namespaces/default/configmaps";
/// The text before the time in a body. The time is in microseconds since the start.
const MARK: &[u8] = b"\"t\":\"";

/// The rate and delay of events.
#[derive(Debug, Default, Clone)]
pub(super) struct Delivery {
    /// Changes per second.
    pub(super) rate: f64,
    /// Events per second that the watchers received.
    pub(super) deliveries: f64,
    /// The median of the milliseconds from sending a request to receiving its event.
    pub(super) median: f64,
    /// The 99th percentile of the same.
    pub(super) percentile_99: f64,
}

pub(super) async fn run(client: &Client) -> Result<Delivery, Failure> {
    for label in 0..LABELS {
        let body = json!({"metadata": {"name": format!("c{label}"), "labels": {"shard": label.to_string()}}, "data": {"t": ""}});
        send(client, Method::POST, PATH, JSON, body.to_string()).await?;
    }
    let started = Instant::now();
    let (times, mut delay_receiver) = mpsc::unbounded_channel();
    let mut watchers = JoinSet::new();
    let mut opened = stream::iter(0..WATCHERS)
        .map(|index| {
            open(
                client,
                format!(
                    "?watch=1&resourceVersion=0&labelSelector=shard%3D{}",
                    index % LABELS
                ),
            )
        })
        .buffer_unordered(16);
    while let Some(body) = opened.next().await {
        watchers.spawn(listen(body?, started, times.clone()));
    }
    drop((opened, times));
    let unread = open(client, "?watch=1&resourceVersion=0".to_owned()).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let start = Instant::now();
    let made = make(client, started).await?;
    let span = start.elapsed().as_secs_f64();
    tokio::time::sleep(Duration::from_secs(2)).await;
    drop(unread);
    watchers.shutdown().await;
    let mut delays = Vec::new();
    while let Ok(time) = delay_receiver.try_recv() {
        delays.push(time);
    }
    let expected = made * (WATCHERS / LABELS) as u64;
    if (delays.len() as u64) < expected {
        eprintln!("  {} of {expected} events were delivered", delays.len());
    }
    delays.sort_unstable();
    let at = |share: f64| {
        delays
            .get((delays.len() as f64 * share) as usize)
            .copied()
            .unwrap_or_default() as f64
            / 1e3
    };
    Ok(Delivery {
        rate: made as f64 / span,
        deliveries: delays.len() as f64 / span,
        median: at(0.5),
        percentile_99: at(0.99),
    })
}

async fn open(client: &Client, query: String) -> Result<Body, Failure> {
    let request = Request::get(format!("{PATH}{query}")).body(Body::empty())?;
    let response = client.send(request).await?;
    if !response.status().is_success() {
        return Err(format!("a watch failed: {}", response.status()).into());
    }
    Ok(response.into_body())
}

/// Sends the delay of each event in microseconds to `heard`.
async fn listen(mut body: Body, started: Instant, delay_sender: mpsc::UnboundedSender<u64>) {
    let mut text = BytesMut::new();
    while let Some(Ok(frame)) = body.frame().await {
        let now = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
        let Ok(data) = frame.into_data() else {
            continue;
        };
        text.extend_from_slice(&data);
        while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
            let line = text.split_to(end + 1);
            let at = line.windows(MARK.len()).position(|part| part == MARK);
            let digits = at.map(|at| {
                line[at + MARK.len()..]
                    .split(|byte| *byte == b'"')
                    .next()
                    .unwrap_or_default()
            });
            let sent =
                digits.and_then(|digits| std::str::from_utf8(digits).ok()?.parse::<u64>().ok());
            // The initial events have no time.
            if let Some(sent) = sent {
                let _ = delay_sender.send(now.saturating_sub(sent));
            }
        }
    }
}

/// Changes objects at `RATE`, or as fast as the server allows. Returns the number of changes.
async fn make(client: &Client, started: Instant) -> Result<u64, Failure> {
    let made = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    let mut ticks = tokio::time::interval(Duration::from_millis(10));
    let start = Instant::now();
    let mut index = 0;
    while start.elapsed() < SPAN {
        ticks.tick().await;
        for _ in 0..RATE / 100 {
            // Limits the concurrent requests to a slow server.
            if tasks.len() >= 256 {
                tasks.join_next().await;
            }
            index += 1;
            let (client, made) = (client.clone(), made.clone());
            let path = format!("{PATH}/c{}", index % LABELS);
            tasks.spawn(async move {
                let now = started.elapsed().as_micros();
                let body = json!({"data": {"t": now.to_string()}}).to_string();
                if send(&client, Method::PATCH, &path, MERGE, body)
                    .await
                    .is_ok()
                {
                    made.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    }
    while tasks.join_next().await.is_some() {}
    Ok(made.load(Ordering::Relaxed))
}
