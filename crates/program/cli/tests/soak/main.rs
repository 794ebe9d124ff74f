//! A randomized soak test of the embedded cluster.
//!
//! Two clusters run side by side. The first one runs for the whole test: runs, followers,
//! hostile manifests and injected faults act on it, and its memory, descriptors, processes,
//! mounts and files must not grow. The second one is killed with SIGKILL and restarted
//! while runs are active.
//!
//! `LONGSHORE_SOAK_SECONDS` sets the duration (default 20; manual tests take an hour).
//! `LONGSHORE_SOAK_SEED` repeats the choices of an earlier test.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test that reports what it did"
)]

mod chaos;
mod generator;
#[allow(
    dead_code,
    reason = "the other test program uses more of the workspace"
)]
#[path = "../program/machine.rs"]
mod machine;
mod manifests;
mod resources;
mod runs;
mod tally;

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use machine::Machine;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use tally::Tally;

/// Duration of the test without the variable.
const DEFAULT_SECONDS: u64 = 20;
/// Interval between records of the memory.
const MEMORY_INTERVAL: Duration = Duration::from_secs(300);
/// Longest warm-up before the first measurement.
const WARM_UP: Duration = Duration::from_secs(300);

/// State that all actors of the test share.
pub(crate) struct Stage {
    /// The working folder and the cluster.
    pub(crate) machine: Machine,
    /// True if the cluster is killed while runs are active.
    pub(crate) killed: bool,
    /// The time at which the actors stop.
    pub(crate) end: Instant,
    /// Counts of events and failures.
    pub(crate) tally: Arc<Tally>,
    /// A word that is among the arguments of every task, and of no other process on the
    /// machine.
    pub(crate) marker: String,
}

impl Stage {
    pub(crate) fn is_over(&self) -> bool {
        Instant::now() >= self.end
    }
}

#[test]
fn nothing_is_lost_or_leaked() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seconds = number("LONGSHORE_SOAK_SECONDS").unwrap_or(DEFAULT_SECONDS);
    let seed = number("LONGSHORE_SOAK_SEED").unwrap_or_else(|| rand::rng().random());
    println!("soak: LONGSHORE_SOAK_SECONDS={seconds} LONGSHORE_SOAK_SEED={seed}");
    let length = Duration::from_secs(seconds);
    let tally = Arc::new(Tally::default());
    thread::scope(|scope| {
        let mut seeds = StdRng::seed_from_u64(seed);
        let (lasting, killed) = (seeds.random(), seeds.random());
        let (first, second) = (Arc::clone(&tally), Arc::clone(&tally));
        scope.spawn(move || soak_lasting(length, lasting, &first));
        scope.spawn(move || soak_killed(length, killed, &second));
    });
    println!("{tally}");
    tally.assert_clean();
    tally.assert_active();
}

/// The cluster that runs for the whole test. Usage is measured twice, both times with
/// everything deleted: after a warm-up and at the end.
fn soak_lasting(length: Duration, seed: u64, tally: &Arc<Tally>) {
    let mut machine = Machine::new();
    let up = ["up", "--faults"];
    machine.longshore(&up).expect(0);
    let pid = machine.pid().unwrap();
    let warm_up = WARM_UP.min(length / 3);
    let mut before = None;
    for (phase, length) in [warm_up, length.saturating_sub(warm_up)]
        .into_iter()
        .enumerate()
    {
        let stage = Arc::new(Stage {
            machine,
            killed: false,
            end: Instant::now() + length,
            tally: Arc::clone(tally),
            marker: machine::unique_word(),
        });
        thread::scope(|scope| {
            scope.spawn(|| watch_memory(pid, &stage));
            for actor in 0..5 {
                let stage = Arc::clone(&stage);
                let seed = seed.wrapping_add(phase as u64 * 100 + actor);
                let rng = StdRng::seed_from_u64(seed);
                scope.spawn(move || match actor {
                    0 | 1 => runs::act(&stage, rng),
                    2 => manifests::act(&stage, rng),
                    3 => chaos::inject_faults(&stage, rng),
                    _ => chaos::watch_and_leave(&stage, rng),
                });
            }
        });
        manifests::delete_everything(&stage);
        resources::assert_no_task(&stage);
        let now = resources::Usage::settled(pid, &stage.machine.data(), before.as_ref(), warm_up);
        tally.note(&format!("resources after phase {phase}: {now:?}"));
        if let Some(before) = &before {
            now.compare(before, tally);
        }
        before = Some(now);
        machine = Arc::into_inner(stage).unwrap().machine;
    }
    if machine.pid() != Some(pid) {
        tally.fail("the lasting cluster is not the process that was started".into());
    }
    resources::assert_clean_end(&machine, tally);
}

/// Records the memory of the cluster while the actors act.
fn watch_memory(pid: i32, stage: &Stage) {
    let mut next = Instant::now() + MEMORY_INTERVAL;
    while !stage.is_over() {
        if Instant::now() >= next {
            next += MEMORY_INTERVAL;
            if let Some(memory) = resources::memory_kb(pid) {
                stage.tally.note(&format!("memory: {memory} kB"));
            }
        }
        thread::sleep(Duration::from_millis(200));
    }
}

/// The cluster that is killed repeatedly.
fn soak_killed(length: Duration, seed: u64, tally: &Arc<Tally>) {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let stage = Stage {
        machine,
        killed: true,
        end: Instant::now() + length,
        tally: Arc::clone(tally),
        marker: machine::unique_word(),
    };
    thread::scope(|scope| {
        for actor in 0..3 {
            let stage = &stage;
            let rng = StdRng::seed_from_u64(seed.wrapping_add(actor));
            scope.spawn(move || match actor {
                0 | 1 => runs::act(stage, rng),
                _ => chaos::kill_cluster(stage, rng),
            });
        }
    });
    stage.machine.longshore(&["rm", "--finished"]).expect(0);
    resources::assert_no_task(&stage);
    resources::assert_clean_end(&stage.machine, tally);
}
