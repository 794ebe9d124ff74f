//! Packs a folder, compared with tar piped to pigz.

use std::{
    fs,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, SystemTime},
};

use longshore::launcher::{
    Bundle, PackOptions, Store, bundle,
    store::{DeliverOptions, deliver},
};
use tokio::{runtime::Handle, task::block_in_place};

use crate::report::{Failure, Report, median, millis, ratio};

const FILES: usize = 20_000;
/// The average size of a file in bytes; all files are 1 GB.
const FILE_SIZE: usize = 50_000;
/// The number of files per folder.
const FILES_PER_FOLDER: usize = 200;
/// The cache ignores folders that changed more recently than this.
const SETTLED: Duration = Duration::from_secs(3);

/// Packs a folder of 20,000 files, 1 GB: text and incompressible data.
pub(crate) fn run(report: &mut Report, runs: usize) -> Result<(), Failure> {
    let temporary = tempfile::tempdir()?;
    let (folder, cache) = (
        temporary.path().join("code"),
        temporary.path().join("cache"),
    );
    fill(&folder)?;
    let plain = PackOptions::default();
    let mut size = 0;
    let ours = median(runs, || {
        size = pack(&folder, &plain)?.size;
        Ok(())
    })?;
    let figure = format!("{}, {} MB", millis(ours), size / 1_000_000);
    report.figure(
        "pack 20,000 files, 1 GB: ours",
        figure,
        "0.9 of pigz's time",
    );

    let archive = temporary.path().join("theirs.tar.gz");
    let has_pigz = Command::new("pigz")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if has_pigz.is_ok_and(|status| status.success()) {
        let theirs = median(runs, || with_pigz(&folder, &archive))?;
        let bytes = fs::metadata(&archive)?.len();
        let figure = format!("{}, {} MB", millis(theirs), bytes / 1_000_000);
        report.figure("pack 20,000 files, 1 GB: tar | pigz", figure, "");
        let share = ours.as_secs_f64() / theirs.as_secs_f64();
        #[allow(clippy::cast_precision_loss, reason = "a figure for display")]
        let sizes = size as f64 / bytes as f64;
        let figure = format!("{share:.2} of the time, {sizes:.3} of the size");
        report.figure("ours compared with pigz", figure, "0.9, equal");
    } else {
        report.figure(
            "pack 20,000 files, 1 GB: tar | pigz",
            "pigz is not installed",
            "",
        );
    }

    let cached = PackOptions {
        cache: Some(cache),
        ..plain
    };
    // The cache ignores files that were written just now.
    let newest = SystemTime::now() + SETTLED;
    std::thread::sleep(newest.duration_since(SystemTime::now()).unwrap_or_default());
    let store = Store::Folder(temporary.path().join("store"));
    send(&pack(&folder, &cached)?, &store)?;
    let again = median(runs, || match pack(&folder, &cached)?.is_packed() {
        true => Err("an unchanged folder was packed again".into()),
        false => Ok(()),
    })?;
    let figure = format!("{}, {} faster", millis(again), ratio(ours, again));
    report.figure("repack the unchanged folder", figure, "a tenth");
    let delivered = median(runs, || {
        let bundle = pack(&folder, &cached)?;
        send(&bundle, &store)?;
        match bundle.is_packed() {
            true => Err("an unchanged folder was packed again".into()),
            false => Ok(()),
        }
    })?;
    let figure = millis(delivered);
    report.figure("repack and deliver to a folder store", figure, "100 ms");
    Ok(())
}

fn pack(folder: &Path, options: &PackOptions) -> Result<Bundle, Failure> {
    Ok(bundle::pack(folder, options, |_| {})?)
}

fn send(bundle: &Bundle, store: &Store) -> Result<(), Failure> {
    let delivery = deliver(bundle, Some(store), DeliverOptions::default());
    block_in_place(|| Handle::current().block_on(delivery))?;
    Ok(())
}

fn with_pigz(folder: &Path, archive: &Path) -> Result<(), Failure> {
    let mut tar = Command::new("tar")
        .args(["--create", "--sort=name", "--file=-", "."])
        .current_dir(folder)
        .stdout(Stdio::piped())
        .spawn()?;
    let piped = tar.stdout.take().ok_or("tar has no output")?;
    let pigz = Command::new("pigz")
        .arg("--no-time")
        .stdin(piped)
        .stdout(fs::File::create(archive)?)
        .status()?;
    match tar.wait()?.success() && pigz.success() {
        true => Ok(()),
        false => Err("tar or pigz failed".into()),
    }
}

/// Fills a folder. Two of three files are text, like code and tables. The third is random
/// data, like images and model weights.
fn fill(folder: &Path) -> Result<(), Failure> {
    let mut seed = 1_u64;
    let mut random = move || {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        seed >> 33
    };
    for number in 0..FILES {
        let inner = folder.join(format!("part{:03}", number / FILES_PER_FOLDER));
        if number % FILES_PER_FOLDER == 0 {
            fs::create_dir_all(&inner)?;
        }
        let length = FILE_SIZE / 2 + usize::try_from(random())? % FILE_SIZE;
        let mut content = Vec::with_capacity(length + 100);
        while content.len() < length {
            if number % 3 == 0 {
                content.extend_from_slice(&random().to_le_bytes()[..3]);
            } else {
                let (name, value) = (random() % 5_000, random());
                writeln!(
                    content,
                    "    self.value_{name} = compute(row, {value}, scale=0.{})",
                    value % 977
                )?;
            }
        }
        fs::write(inner.join(format!("file{number}.py")), content)?;
    }
    Ok(())
}
