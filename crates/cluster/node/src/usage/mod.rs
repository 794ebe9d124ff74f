//! Resource usage of containers and of the machine. Measured on request from the kernel's files
//! about processes and about cgroups, if containers have their own.

mod processes;

use std::{
    collections::HashMap,
    fs,
    sync::Arc,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use longshore_node_api::{ContainerUsage, NodeUsage, Usage};
use tokio::sync::Mutex;

use crate::{cgroups::Group, pod_threads, streams::ContainerProcess};

/// Minimum length of a measured period. A tick of the CPU clock is 10 ms.
const MIN_WINDOW: Duration = Duration::from_millis(200);
/// Ticks per second of the clock in the kernel's files, on all architectures
/// that the node supports.
const TICKS_PER_SECOND: u64 = 100;
/// Maximum length of a measured period, as with the metrics server of
/// Kubernetes.
const MAX_WINDOW: Duration = Duration::from_secs(15);

/// Measures resource usage. CPU usage is the difference between two samples: the last one, or one
/// that is taken for this purpose, and the current one.
#[derive(Debug, Default)]
pub(crate) struct UsageMeter {
    last: Mutex<Option<Sample>>,
}

/// The process of a container, and its cgroup.
type MeasuredProcess = (i32, Option<Arc<Group>>);

/// The usage until a time.
#[derive(Debug, Clone)]
struct Sample {
    taken: Instant,
    machine: Total,
    /// The usage by the process of the container.
    containers: HashMap<i32, Total>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Total {
    /// The CPU time in nanoseconds.
    nanoseconds: u64,
    /// The memory in bytes.
    memory: u64,
}

impl UsageMeter {
    /// Measures the usage of these containers. Returns `None` if the kernel's files cannot be read.
    pub(crate) async fn measure(
        &self,
        nodes: Vec<String>,
        containers: Vec<ContainerProcess>,
    ) -> Option<NodeUsage> {
        let ids: Vec<MeasuredProcess> = containers
            .iter()
            .map(|container| (container.id, container.cgroup.clone()))
            .collect();
        // Simultaneous requests share samples.
        let mut last = self.last.lock().await;
        let is_usable = |sample: &Sample| {
            let age = sample.taken.elapsed();
            let is_complete = ids.iter().all(|(id, _)| sample.containers.contains_key(id));
            (MIN_WINDOW..=MAX_WINDOW).contains(&age) && is_complete
        };
        let before = match last.take().filter(is_usable) {
            Some(sample) => sample,
            None => {
                let sample = take(ids.clone()).await?;
                tokio::time::sleep(MIN_WINDOW).await;
                sample
            }
        };
        let after = take(ids).await?;
        *last = Some(after.clone());
        drop(last);
        let window = after.taken.duration_since(before.taken);
        let usage = |before: Option<&Total>, after: &Total| Usage {
            cpu_nanocores: nanocores(
                before.map_or(0, |total| total.nanoseconds),
                after.nanoseconds,
                window,
            ),
            cpu_nanoseconds: after.nanoseconds,
            memory: after.memory,
        };
        let containers = containers.into_iter().filter_map(|container| {
            // A container that has ended in the meantime is omitted.
            let total = after.containers.get(&container.id)?;
            Some(ContainerUsage {
                usage: usage(before.containers.get(&container.id), total),
                pod_uid: container.pod_uid,
                name: container.name,
            })
        });
        Some(NodeUsage {
            nodes,
            at: Timestamp::now(),
            window,
            machine: usage(Some(&before.machine), &after.machine),
            containers: containers.collect(),
        })
    }
}

/// Returns the average number of CPU cores in billionths.
fn nanocores(before: u64, after: u64, window: Duration) -> u64 {
    let used = u128::from(after.saturating_sub(before));
    let cores = used.saturating_mul(1_000_000_000) / window.as_nanos().max(1);
    u64::try_from(cores).unwrap_or(u64::MAX)
}

fn nanoseconds(ticks: u64) -> u64 {
    ticks.saturating_mul(1_000_000_000 / TICKS_PER_SECOND)
}

/// Takes a sample. Reading the files of all processes can take milliseconds.
async fn take(ids: Vec<MeasuredProcess>) -> Option<Sample> {
    pod_threads::run(move || read(&ids)).await.ok()?
}

fn read(ids: &[MeasuredProcess]) -> Option<Sample> {
    let taken = Instant::now();
    let text = |path: &str| fs::read_to_string(path).ok();
    let machine = Total {
        nanoseconds: nanoseconds(processes::machine_ticks(&text("/proc/stat")?)?),
        memory: processes::machine_memory(&text("/proc/meminfo")?)?,
    };
    let mut all = HashMap::new();
    for entry in fs::read_dir("/proc").ok()?.flatten() {
        let name = entry.file_name();
        let Some(id) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        // A process that has ended in the meantime has no files.
        let stat = text(&format!("/proc/{id}/stat"));
        if let Some(stat) = stat.and_then(|text| processes::stat(&text)) {
            all.insert(id, stat);
        }
    }
    let containers = ids.iter().filter_map(|(root, cgroup)| {
        let mut total = Total::default();
        let (mut private, mut shared) = (0_u64, 0_u64);
        let tree = processes::tree(*root, &all);
        if let Some(used) = cgroup.as_ref().and_then(|group| group.usage()) {
            let total = Total {
                nanoseconds: used.cpu_nanoseconds,
                memory: used.memory,
            };
            return (!tree.is_empty()).then_some((*root, total));
        }
        for id in &tree {
            let used = nanoseconds(all.get(id)?.ticks);
            total.nanoseconds = total.nanoseconds.saturating_add(used);
            let status = text(&format!("/proc/{id}/status"));
            if let Some((own, common)) = status.and_then(|text| processes::memory(&text)) {
                private = private.saturating_add(own);
                // Processes of a container mostly share the same pages.
                shared = shared.max(common);
            }
        }
        total.memory = private.saturating_add(shared);
        (!tree.is_empty()).then_some((*root, total))
    });
    Some(Sample {
        taken,
        machine,
        containers: containers.collect(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_average_of_a_period() {
        let second = Duration::from_secs(1);
        let before = nanoseconds(100);
        let after = nanoseconds(150);
        assert_eq!(nanocores(before, after, second), 500_000_000);
        assert_eq!(nanocores(before, after, second / 2), 1_000_000_000);
        assert_eq!(nanocores(150, 100, second), 0);
        assert_eq!(nanocores(0, u64::MAX, Duration::ZERO), u64::MAX);
    }

    #[tokio::test]
    async fn this_process_is_measured() {
        let meter = UsageMeter::default();
        let own = ContainerProcess {
            pod_uid: "u".to_owned(),
            name: "c".to_owned(),
            id: i32::try_from(std::process::id()).unwrap(),
            cgroup: None,
        };
        let gone = ContainerProcess {
            id: i32::MAX,
            ..own.clone()
        };
        let measured = meter
            .measure(vec!["here".to_owned()], vec![own, gone])
            .await
            .unwrap();
        assert_eq!(measured.containers.len(), 1);
        let usage = measured.containers[0].usage;
        assert!(usage.memory > 1 << 20, "{usage:?}");
        assert_eq!(nanoseconds(3), 30_000_000);
        assert!(measured.machine.memory >= usage.memory, "{measured:?}");
        assert!(measured.window >= MIN_WINDOW);
    }
}
