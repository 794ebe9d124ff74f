//! The tasks' program: this program, as a writer of lines.

use std::{
    fmt::Write as _,
    io::Write as _,
    path::Path,
    thread::sleep,
    time::{Duration, Instant},
};

use crate::report::Failure;

/// The first argument of the program in a task.
pub(crate) const TASK: &str = "write-lines";
/// The interval between a task's writes.
const INTERVAL: Duration = Duration::from_millis(100);

/// Waits for a file, and writes lines. The arguments are the path of the file, the number of
/// lines, and the number of lines per second; 0 for as many as possible, each line on its own.
pub(crate) fn write_lines(mut arguments: impl Iterator<Item = String>) -> Result<(), Failure> {
    let mut next = || arguments.next().ok_or("an argument is missing");
    let (start, count) = (next()?, next()?.parse::<usize>()?);
    let per_second = next()?.parse::<u128>()?;
    while !Path::new(&start).exists() {
        sleep(INTERVAL);
    }
    let mut stdout = std::io::stdout().lock();
    let begin = Instant::now();
    let mut written = 0;
    while written < count {
        let due = match per_second {
            0 => written + 1,
            per_second => {
                let due = begin.elapsed().as_millis() * per_second / 1_000;
                usize::try_from(due)?.min(count)
            }
        };
        let mut text = String::new();
        for index in written..due {
            writeln!(
                text,
                "step {index} of {count}: loss 0.4321, accuracy 0.9876, 123 samples/s"
            )?;
        }
        stdout.write_all(text.as_bytes())?;
        stdout.flush()?;
        written = due;
        if per_second > 0 && written < count {
            sleep(INTERVAL);
        }
    }
    Ok(())
}
