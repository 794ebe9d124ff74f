//! How fast the engine writes and reads: `throughput [FILE] [PODS]`. Without a
//! file it works in memory. Prints requests a second and the memory at the end.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::{sync::Arc, time::Instant};

use longshore_engine::{
    Create, Engine, ListRequest, Options, Patch, Storage, Subresource, Target, WriteOptions,
};
use longshore_model::PatchKind;
use serde_json::{Value, json};

/// Writers at a time.
const WRITERS: usize = 64;

fn pod(index: usize) -> Value {
    let env: Vec<Value> = (0..60)
        .map(|i| json!({"name": format!("VARIABLE_{i}"), "value": "x".repeat(40)}))
        .collect();
    json!({
        "metadata": {"name": format!("pod-{index:05}"), "labels": {"app": (index % 16).to_string()}},
        "spec": {"containers": [{"name": "main", "image": "example/image:1", "env": env,
            "command": ["sleep", "1"], "resources": {"requests": {"cpu": "100m"}}}]},
    })
}

fn memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS"))
        .unwrap_or_default();
    line.split_whitespace()
        .skip(1)
        .collect::<Vec<_>>()
        .join(" ")
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let storage = match arguments.first().filter(|path| !path.is_empty()) {
        Some(path) => Storage::File(path.into()),
        None => Storage::Memory,
    };
    let count: usize = arguments
        .get(1)
        .map_or(10_000, |text| text.parse().unwrap());
    let start = Instant::now();
    let engine = Engine::open(Options {
        storage,
        ..Options::default()
    })
    .unwrap();
    println!("open: {:?}, {}", start.elapsed(), memory());
    let kind = engine.find("", "v1", "pods").unwrap();

    let bodies: Arc<Vec<Vec<u8>>> = Arc::new(
        (0..count)
            .map(|index| serde_json::to_vec(&pod(index)).unwrap())
            .collect(),
    );
    let (made, with) = (engine.clone(), kind.clone());
    rate("create", count, move |index| {
        let (engine, kind, bodies) = (made.clone(), with.clone(), bodies.clone());
        async move {
            let object = serde_json::from_slice(&bodies[index]).unwrap();
            let namespace = Some("default".to_owned());
            let options = WriteOptions::default();
            engine
                .create(Create {
                    kind,
                    namespace,
                    object,
                    options,
                })
                .await
                .unwrap();
        }
    })
    .await;
    println!("memory: {}", memory());
    let (patched, with) = (engine.clone(), kind.clone());
    rate("merge-patch status", count, move |index| {
        let (engine, kind) = (patched.clone(), with.clone());
        async move {
            let target = Target {
                kind,
                namespace: Some("default".into()),
                name: format!("pod-{index:05}"),
            };
            let body = json!({"status": {"phase": "Running", "podIP": "127.16.0.1"}});
            let (subresource, options) = (Subresource::Status, WriteOptions::default());
            let patch = Patch {
                target,
                subresource,
                kind: PatchKind::Merge,
                body,
                options,
            };
            engine.patch(patch).await.unwrap();
        }
    })
    .await;
    let start = Instant::now();
    let page = engine.list(&ListRequest::of(kind)).unwrap();
    let bytes: usize = page.items.iter().map(|object| object.bytes().len()).sum();
    println!(
        "list: {} pods, {bytes} bytes, {:?}",
        page.items.len(),
        start.elapsed()
    );
    println!("memory: {}", memory());
}

/// Runs `work` for each number below `count`, some at a time.
async fn rate<F: Future<Output = ()> + Send>(
    what: &str,
    count: usize,
    work: impl Fn(usize) -> F + Clone + Send + 'static,
) {
    let start = Instant::now();
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let work = work.clone();
            tokio::spawn(async move {
                for index in (writer..count).step_by(WRITERS) {
                    work(index).await;
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{what}: {count} in {seconds:.2} s, {:.0}/s",
        count as f64 / seconds
    );
}
