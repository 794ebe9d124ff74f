//! Packs the folder of code and prints a summary.

use std::{
    path::Path,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use longshore::launcher::{
    Bundle, PackOptions, RunSpec,
    bundle::{self, BundleError, Report, Scan},
    terminal_text::escaped,
};

use super::{failed, usage};
use crate::{
    env,
    error::{Error, Kind, Result},
    interrupt::Interrupt,
    progress::{Spinner, packing},
    show::head,
    ui,
};

/// The minimum size of a folder that is announced before packing.
const LARGE_FOLDER: u64 = 32 * 1024 * 1024;
/// The minimum size of a file that the announcement names, up to `NAMED` files.
const LARGE_FILE: u64 = 10 * 1024 * 1024;
const NAMED: usize = 5;
/// The time that interrupted packing has to stop. It takes milliseconds, unless a file system
/// hangs.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// The options that decide which files are packed.
pub(super) fn options(folder: &Path, spec: &RunSpec) -> PackOptions {
    PackOptions {
        ignore: [spec.ignore.clone(), spec.data_below(folder)].concat(),
        allow_secrets: spec.allow_secrets.clone(),
        ..PackOptions::default()
    }
}

/// Packs the folder. After Ctrl-C, no temporary file is left. If `lists` is true, prints all
/// excluded files, one per line.
pub(super) async fn pack(
    folder: &Path,
    spec: &RunSpec,
    lists: bool,
    interrupt: &mut Interrupt,
) -> Result<Option<Bundle>> {
    if !spec.code {
        return Ok(None);
    }
    let spinner = Spinner::start("packing");
    let tick = spinner.clone();
    let packed_folder = folder.to_owned();
    let (folder, options) = (
        folder.to_owned(),
        PackOptions {
            cache: env::cache_dir().map(|cache| cache.join("bundles")),
            names_all: lists,
            ..options(folder, spec)
        },
    );
    let stop = Arc::clone(&options.stop);
    let mut work = tokio::task::spawn_blocking(move || {
        let announce = |scan: &Scan| {
            if !scan.is_unchanged()
                && let Some(text) = announcement(&scan.report)
            {
                tick.aside(|| ui::note(format!("{} {text}", head("code"))));
            }
        };
        bundle::pack_scanned(&folder, &options, announce, |progress| {
            tick.say(|| packing(progress));
        })
    });
    let packed = match interrupt.unless(&mut work).await {
        Ok(packed) => packed,
        Err(interrupted) => {
            stop.store(true, Ordering::Relaxed);
            let _ = tokio::time::timeout(STOP_TIMEOUT, work).await;
            spinner.end();
            return Err(interrupted);
        }
    };
    spinner.end();
    let bundle = packed
        .map_err(|error| failed(&error))?
        .map_err(|error| not_packed(&error).hint_if(home_folder(&packed_folder)))?;
    ui::note(format!(
        "{} {}",
        head("code"),
        summary(&bundle.report, Some(bundle.size), lists)
    ));
    Ok(Some(bundle))
}

/// A hint if a folder is the user's home folder, which is rarely meant.
fn home_folder(folder: &Path) -> Option<String> {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty())?;
    let is_home = folder.canonicalize().ok()? == Path::new(&home).canonicalize().ok()?;
    is_home.then(|| {
        "this is your home folder: run in the folder of the code, or give it as the first argument, as in `longshore run FOLDER -- COMMAND`".to_owned()
    })
}

fn not_packed(error: &BundleError) -> Error {
    match error {
        // A write error is not a problem with the folder.
        BundleError::Write(_) => Error::from_source(Kind::NotStarted, error),
        BundleError::Several { problems, more } => {
            let count = problems.len() + more;
            let message = format!("{count} problems prevent packing the folder");
            let more = (*more > 0).then(|| format!("and {more} more"));
            let details = problems.iter().map(ToString::to_string);
            Error::usage(message).details(details.chain(more))
        }
        _ => usage(error),
    }
}

/// The announcement of a large folder before it is packed.
fn announcement(report: &Report) -> Option<String> {
    if report.bytes < LARGE_FOLDER {
        return None;
    }
    let mut text = format!(
        "packing {}, {}",
        ui::count(report.files, "file"),
        ui::size(report.bytes)
    );
    let large = report
        .largest
        .iter()
        .take_while(|(_, size)| *size >= LARGE_FILE);
    let large: Vec<String> = large
        .take(NAMED)
        .map(|(path, size)| format!("{} ({})", path.display(), ui::size(*size)))
        .collect();
    if !large.is_empty() {
        text = format!(
            "{text}; largest: {}; exclude files that the tasks do not need with .longshoreignore",
            large.join(", ")
        );
    }
    Some(text)
}

/// A summary of the packed and excluded files. `packed` is the size of the archive.
pub(in super::super) fn summary(report: &Report, packed: Option<u64>, lists: bool) -> String {
    let packed = packed.map(|size| format!(" ({} packed)", ui::size(size)));
    let text = format!(
        "{}, {}{}",
        ui::count(report.files, "file"),
        ui::size(report.bytes),
        packed.unwrap_or_default()
    );
    if report.left_out == 0 {
        return text;
    }
    let mut paths: Vec<String> = report.left_out_examples.iter().map(shown(report)).collect();
    if lists {
        return format!("{text}; excluded:\n  {}", paths.join("\n  "));
    }
    // These are always printed, because programs could refer to them.
    let examples = &report.left_out_examples;
    let environments = report.environments.iter();
    let environments = environments.filter(|path| !examples.contains(path));
    paths.extend(environments.map(shown(report)));
    let more = match report.left_out.saturating_sub(paths.len() as u64) {
        0 => String::new(),
        more => format!(" and {more} more (--dry-run lists them)"),
    };
    format!("{text}; excluded {}{more}", paths.join(", "))
}

/// An excluded path for the terminal.
fn shown(report: &Report) -> impl Fn(&String) -> String {
    |path| {
        let text = escaped(path).replace('\n', "\\n");
        match report.environments.contains(path) {
            true => format!("{text} (a virtual environment)"),
            false => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_folder_is_announced_with_its_large_files() {
        let mut report = Report {
            files: 7,
            bytes: 31 << 20,
            largest: vec![("data/a".into(), 31 << 20)],
            ..Report::default()
        };
        assert_eq!(announcement(&report), None);
        report.bytes = 200 << 20;
        report.largest = (0..7_u8)
            .map(|n| (format!("data/{n}").into(), u64::from(50 - 7 * n) << 20))
            .collect();
        assert_eq!(
            announcement(&report).as_deref(),
            Some(
                "packing 7 files, 200 MiB; largest: data/0 (50 MiB), data/1 (43 MiB), data/2 (36 MiB), \
                 data/3 (29 MiB), data/4 (22 MiB); exclude files that the tasks do not need with .longshoreignore"
            )
        );
        report.largest.drain(..6);
        assert_eq!(
            announcement(&report).as_deref(),
            Some("packing 7 files, 200 MiB")
        );
    }
}
