//! The page of `longshore ui` in a browser: a run of 200 tasks with a million lines is followed
//! and scrolled.

#[allow(
    clippy::unwrap_used,
    dead_code,
    reason = "the driver of the page's tests, which uses more of it"
)]
#[path = "../../../../runs/ui/tests/browser/driver.rs"]
mod driver;
mod processes;
mod task;

use std::{
    fs,
    io::{BufRead as _, BufReader},
    process::{Child, Stdio},
    time::{Duration, Instant},
};

pub(crate) use self::task::{TASK, write_lines};

use self::driver::Driver;
use crate::{
    program::Instance,
    report::{Failure, Report},
};

const TASKS: usize = 200;
/// The lines of all tasks, about 60 bytes each. The page keeps all of these lines.
const LINES: usize = 1_000_000;
/// The rate at which users must be able to follow.
const PER_SECOND: usize = 50_000;
const POLL_INTERVAL: Duration = Duration::from_millis(100);
const TIMEOUT: Duration = Duration::from_secs(900);
/// The number of frames in which the lines are scrolled from the first to the last.
const SCROLLED_FRAMES: usize = 300;

/// Records the time between frames.
const RECORD: &str = "
    window.frames = [];
    let last = performance.now();
    const step = (now) => {
      window.frames.push(now - last);
      last = now;
      window.recording = requestAnimationFrame(step);
    };
    requestAnimationFrame(step);";
const STOP: &str = "cancelAnimationFrame(window.recording); return window.frames";

/// A server of the page that is killed when this is dropped.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The speed at which tasks write.
#[derive(Clone, Copy)]
enum Pace {
    /// Each task writes as fast as it can: together they use the whole machine.
    Unlimited,
    /// The number of lines per second of all tasks together.
    Lines(usize),
}

/// Measures lines per second, times between frames, and memory. Fails unless the page has each
/// line.
pub(crate) fn run(report: &mut Report, shrink: usize) -> Result<(), Failure> {
    if !Driver::is_installed() {
        report.figure("chromium and chromedriver", "not installed", "");
        return Ok(());
    }
    follow(report, shrink, Pace::Lines(PER_SECOND))?;
    follow(report, shrink, Pace::Unlimited)
}

fn follow(report: &mut Report, shrink: usize, pace: Pace) -> Result<(), Failure> {
    let per_task = (LINES / TASKS / shrink).max(1);
    let lines = per_task * TASKS;
    let per_second = match pace {
        Pace::Unlimited => 0,
        Pace::Lines(all) => all / TASKS,
    };
    let instance = Instance::new()?;
    instance.up(&[])?;
    let start = instance.path().join("start");
    let folder = instance.path().join("code");
    fs::create_dir(&folder)?;
    let task = [
        std::env::current_exe()?.display().to_string(),
        TASK.to_owned(),
        start.display().to_string(),
        per_task.to_string(),
        per_second.to_string(),
    ];
    let toml = format!("command = {task:?}\n[roles.worker]\ncount = {TASKS}\n");
    fs::write(folder.join("longshore.toml"), toml)?;
    instance.longshore(&["run", "code", "--detach", "--start-timeout", "30m"])?;

    let mut server = instance
        .command(&["ui"])?
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let stdout = server.stdout.take().ok_or("the program has no output")?;
    let served = Served(server);
    let mut link = String::new();
    BufReader::new(stdout).read_line(&mut link)?;

    let browser = Driver::start(1280, 800);
    browser.open(link.trim());
    browser.wait_text("table.runs", "code-");
    browser.click("table.runs a");
    let running = format!(
        "return (document.querySelector('#tasks .counts')?.textContent ?? '').includes('{TASKS} running')"
    );
    until(&browser, &running)?;
    browser.script(RECORD);
    fs::write(&start, "")?;
    until(
        &browser,
        "return document.getElementById('count').textContent !== 'no lines'",
    )?;
    let begin = Instant::now();
    until(
        &browser,
        "return document.getElementById('log-state').textContent === 'complete'",
    )?;
    let took = begin.elapsed();
    let followed = frames(&browser)?;
    let shown = browser.text("#count").replace(',', "");
    if shown != format!("{lines} lines") {
        let dropped = browser.text("#dropped");
        return Err(format!("the page has {shown} of {lines}; {dropped}").into());
    }
    #[allow(clippy::cast_precision_loss, reason = "a figure for display")]
    let rate = lines as f64 / took.as_secs_f64();
    let (written, goal) = match pace {
        Pace::Unlimited => ("as fast as the tasks write".to_owned(), "17 ms"),
        Pace::Lines(all) => (format!("written at {all} lines/s"), "17, 50 ms"),
    };
    let what = format!("{TASKS} tasks, {lines} lines, {written}");
    report.figure(&what, format!("{rate:.0} lines/s"), "no line lost");
    report.figure("frames while it follows: p50, p99", followed, goal);
    if matches!(pace, Pace::Lines(_)) {
        return Ok(());
    }

    browser.script(RECORD);
    browser.script(&format!(
        "const box = document.getElementById('lines');
         const range = box.scrollHeight - box.clientHeight;
         let frame = 0;
         const scroll = () => {{
           box.scrollTop = range * frame / {SCROLLED_FRAMES};
           frame += 1;
           if (frame <= {SCROLLED_FRAMES}) requestAnimationFrame(scroll);
           else window.isScrolled = true;
         }};
         scroll();"
    ));
    until(&browser, "return window.isScrolled === true")?;
    let scrolled = frames(&browser)?;
    report.figure("frames while it scrolls: p50, p99", scrolled, "17, 50 ms");

    let (now, peak) = processes::memory(served.0.id())?;
    report.figure(
        "memory of `longshore ui`: current, peak",
        format!("{now:.0}, {peak:.0} MB"),
        "bounded",
    );
    browser.collect_garbage();
    let tab = processes::tab(browser.pid())?;
    report.figure("memory of the tab", format!("{tab:.0} MB"), "bounded");
    Ok(())
}

/// Waits until a script returns true, longer than a test would.
fn until(browser: &Driver, script: &str) -> Result<(), Failure> {
    let begin = Instant::now();
    while browser.try_script(script) != Some(true.into()) {
        if begin.elapsed() > TIMEOUT {
            return Err(format!("not reached: {script}").into());
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

/// Ends the recording. Returns the median and the 99th percentile.
fn frames(browser: &Driver) -> Result<String, Failure> {
    let times: Vec<f64> = serde_json::from_value(browser.script(STOP))?;
    let mut times = times;
    times.sort_by(f64::total_cmp);
    let at = |percent: usize| {
        let position = (times.len() * percent / 100).min(times.len().saturating_sub(1));
        times.get(position).copied().ok_or("no frame was shown")
    };
    Ok(format!("{:.1}, {:.1} ms", at(50)?, at(99)?))
}
