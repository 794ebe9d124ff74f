//! Measures the resource usage of a task's container, in a thread alongside the supervisor, and
//! records it in the container's termination message. A pod without credentials can leave data that
//! outlasts its containers only there.
//!
//! The message is written after each measurement, so that it also exists if the container is
//! killed.

mod container;
mod file;
mod gpu;
mod recorder;

use std::{
    ffi::OsString,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use jiff::Timestamp;

use file::RecordFile;
pub use file::{current, print};
use gpu::Gpus;
use recorder::{Measured, Recorder};

use super::{idle, messages::tell};
use crate::pod::IdleLimit;

/// The minimum time between two measurements of GPUs, which take up to half a second.
const GPU_INTERVAL: Duration = Duration::from_secs(4);
/// Up to this utilisation in percent, a GPU counts as idle, unless the run has a limit.
const IDLE_PERCENT: u32 = 5;

/// The settings for the measurements of a task.
pub(super) struct Subject {
    /// The number of accelerators that the task requested.
    pub(super) accelerators: u64,
    /// The limit for idle GPUs after which the task is ended.
    pub(super) idle: Option<IdleLimit>,
    /// The values of `CUDA_VISIBLE_DEVICES` and `PATH` of the task.
    pub(super) visible_devices: Option<OsString>,
    pub(super) path: Option<OsString>,
    /// The time that the task may take to end after SIGTERM.
    pub(super) grace: Duration,
}

/// The thread that measures. Dropping it ends the measurements.
pub(super) struct Monitor {
    stop: mpsc::Sender<()>,
    thread: JoinHandle<()>,
    /// True if the task is ended because its GPUs are idle.
    ends_idle: Arc<AtomicBool>,
}

impl Monitor {
    /// Starts to measure this container. `None` if there is nowhere to record the measurements and
    /// no limit for idle GPUs.
    pub(super) fn start(subject: Subject) -> Option<Self> {
        let file = RecordFile::find();
        if file.is_none() && subject.idle.is_none() {
            return None;
        }
        let (stop, stopped) = mpsc::channel();
        let ends_idle = Arc::new(AtomicBool::new(false));
        let mut worker = Worker {
            gpus: Gpus::of_task(subject.accelerators, |name| match name {
                "PATH" => subject.path.clone(),
                _ => subject.visible_devices.clone(),
            }),
            idle: subject.idle,
            grace: subject.grace,
            file,
            ends_idle: Arc::clone(&ends_idle),
            began: Instant::now(),
            gpu_measured: None,
            ended: None,
        };
        let thread = thread::Builder::new()
            .name("usage".to_owned())
            .spawn(move || worker.run(&stopped))
            .ok()?;
        Some(Self {
            stop,
            thread,
            ends_idle,
        })
    }

    /// Records the last measurement. Returns true if the task was ended because its GPUs were idle.
    pub(super) fn finish(self) -> bool {
        let _ = self.stop.send(());
        let _ = self.thread.join();
        self.ends_idle.load(Ordering::Acquire)
    }
}

/// The state of the thread.
struct Worker {
    gpus: Option<Gpus>,
    idle: Option<IdleLimit>,
    grace: Duration,
    file: Option<RecordFile>,
    ends_idle: Arc<AtomicBool>,
    began: Instant,
    /// The time when GPUs were measured last.
    gpu_measured: Option<Instant>,
    /// The time when the task received SIGTERM.
    ended: Option<Instant>,
}

impl Worker {
    fn run(&mut self, stopped: &mpsc::Receiver<()>) {
        let percent = self.idle.map_or(IDLE_PERCENT, |idle| idle.percent);
        let start = Timestamp::now().as_second();
        let mut recorder = Recorder::new(start, f64::from(percent));
        let mut is_first = true;
        loop {
            let stop = stopped.recv_timeout(recorder.pause());
            let is_over = !matches!(stop, Err(mpsc::RecvTimeoutError::Timeout));
            if is_over && is_first {
                // The task was too short for a measurement.
                return;
            }
            self.measure(&mut recorder, is_over);
            if is_first && self.idle.is_some() && recorder.record().gpu.is_none() {
                tell("idle_timeout has no effect: no GPU of this task can be measured");
            }
            is_first = false;
            if !is_over {
                self.check_idle(&mut recorder);
            }
            if let Some(file) = &mut self.file {
                file.write(recorder.record());
            }
            if is_over {
                return;
            }
        }
    }

    fn measure(&mut self, recorder: &mut Recorder, is_over: bool) {
        let at = self.began.elapsed();
        let Some(usage) = container::measure() else {
            return;
        };
        let is_due = |last: Instant| last.elapsed() >= GPU_INTERVAL;
        let gpus = self.gpus.as_mut();
        let gpus = gpus.filter(|_| !is_over && self.gpu_measured.is_none_or(is_due));
        let gpu = gpus.and_then(|gpus| {
            self.gpu_measured = Some(Instant::now());
            gpus.measure()
        });
        recorder.add(Measured {
            at,
            cpu: usage.cpu,
            memory: usage.memory,
            gpu,
        });
    }

    /// Ends the task if its GPUs have been idle for too long.
    fn check_idle(&mut self, recorder: &mut Recorder) {
        if let Some(ended) = self.ended {
            if ended.elapsed() >= self.grace {
                idle::kill();
            }
            return;
        }
        let (Some(limit), Some(idle)) = (self.idle, recorder.idle()) else {
            return;
        };
        if idle.as_secs() < limit.seconds {
            return;
        }
        let seconds = idle.as_secs();
        tell(&format!(
            "the GPUs were idle for {seconds} s: ending the task (idle_timeout)"
        ));
        recorder.ends_idle(idle);
        self.ended = Some(Instant::now());
        self.ends_idle.store(true, Ordering::Release);
        idle::terminate();
    }
}
