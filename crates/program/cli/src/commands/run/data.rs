//! The data of a run: found and delivered, with its progress.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use longshore::{
    client::Cluster,
    launcher::{
        LaunchError, PackedRun, RunSpec,
        data::{DataOptions, DataProgress, ScanOptions, Step},
        launch::{DeliveredData, PreparedData},
    },
};

use super::usage;
use crate::{
    env,
    error::{Error, Result},
    interrupt::Interrupt,
    progress::Spinner,
    show::head,
    ui,
};

/// The time that interrupted work has to stop. It takes milliseconds, unless a file system hangs.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// Finds the files of the data.
pub(super) async fn prepare(
    spec: &RunSpec,
    interrupt: &mut Interrupt,
) -> Result<Vec<PreparedData>> {
    if spec.data_sources().is_empty() {
        return Ok(Vec::new());
    }
    let spinner = Spinner::start("reading the data");
    let stop: Arc<AtomicBool> = Arc::default();
    let options = ScanOptions {
        cache: env::cache_dir().map(|cache| cache.join("data")),
        progress: listener(&spinner),
        stop: Arc::clone(&stop),
    };
    let mut work = Box::pin(spec.prepare_data(options, &[]));
    let prepared = match interrupt.unless(&mut work).await {
        Ok(prepared) => prepared,
        Err(interrupted) => {
            stop.store(true, Ordering::Relaxed);
            let _ = tokio::time::timeout(STOP_TIMEOUT, work).await;
            spinner.end();
            return Err(interrupted);
        }
    };
    spinner.end();
    let prepared = prepared.map_err(|error| refused(&error))?;
    for data in &prepared {
        ui::note(format!("{} {}", head("data"), summary(data)));
    }
    Ok(prepared)
}

/// Delivers the data to the cluster or the store.
pub(super) async fn deliver(
    packed: &mut PackedRun<'_>,
    cluster: &Cluster,
    interrupt: &mut Interrupt,
) -> Result<DeliveredData> {
    if packed.data.is_empty() {
        return Ok(DeliveredData::default());
    }
    let names: Vec<String> = packed.data.iter().map(|data| data.name.clone()).collect();
    let spinner = Spinner::start("copying the data");
    let stop: Arc<AtomicBool> = Arc::default();
    let options = DataOptions {
        settings: Vec::new(),
        validity: packed.spec.url_validity(),
        cache: env::cache_dir().map(|cache| cache.join("uploads")),
        progress: listener(&spinner),
    };
    let mut work = Box::pin(packed.deliver_data(cluster, &options, &stop));
    let delivered = match interrupt.unless(&mut work).await {
        Ok(delivered) => delivered,
        Err(interrupted) => {
            // Dropping an upload ends it. Complete files stay for the next run.
            stop.store(true, Ordering::Relaxed);
            let _ = tokio::time::timeout(Duration::from_secs(1), work).await;
            spinner.end();
            return Err(interrupted);
        }
    };
    spinner.end();
    let delivered = delivered.map_err(|error| refused(&error))?;
    for (name, added) in names.iter().zip(&delivered.added) {
        let news = match added {
            Some(0) => "already on the node".to_owned(),
            Some(bytes) => format!("{} copied to the node", ui::size(*bytes)),
            None => "in the store".to_owned(),
        };
        ui::note(format!("{} {name}: {news}", head("data")));
    }
    Ok(delivered)
}

fn listener(spinner: &Spinner) -> Arc<dyn Fn(DataProgress) + Send + Sync> {
    let tick = spinner.clone();
    Arc::new(move |done| {
        tick.say(|| {
            let what = match done.step {
                Step::Hashing => "reading the data",
                Step::Copying => "copying the data",
                Step::Uploading => "sending the data",
                _ => "fetching the data",
            };
            format!(
                "{what}: {} of {}, {}",
                ui::size(done.bytes),
                ui::size(done.total),
                ui::count(done.files, "file")
            )
        });
    })
}

fn refused(error: &LaunchError) -> Error {
    match error {
        LaunchError::Pinned { .. }
        | LaunchError::NoDataStore { .. }
        | LaunchError::InCode { .. } => usage(error),
        _ => Error::from_source(crate::error::Kind::NotStarted, error),
    }
}

fn summary(data: &PreparedData) -> String {
    let manifest = data.manifest();
    let mut text = format!(
        "{}: {}, {}",
        data.name,
        ui::count(manifest.files.len() as u64, "file"),
        ui::size(manifest.bytes())
    );
    let (read, excluded) = data.read_and_excluded();
    if read > 0 {
        text.push_str(&format!(", {read} read"));
    }
    if excluded > 0 {
        text.push_str(&format!(", {excluded} excluded by .longshoreignore"));
    }
    format!("{text}; sha256 {}", data.sha256())
}
