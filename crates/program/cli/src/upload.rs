//! Uploads a run's bundle and shows the progress.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use longshore::launcher::{
    PackedRun, Plan,
    bundle::Progress,
    store::{DeliverOptions, Sent},
};

use crate::{
    env,
    error::Result,
    interrupt::Interrupt,
    progress::{Spinner, packing},
    show::head,
    ui,
};

/// The timeout for removing the parts of an interrupted upload.
const ABORT_TIMEOUT: Duration = Duration::from_secs(10);

/// Delivers the bundle, if there is a store, and returns the plan to submit. After Ctrl-C, no
/// part of the bundle is left in the store.
pub(crate) async fn deliver(packed: &PackedRun<'_>, interrupt: &mut Interrupt) -> Result<Plan> {
    let (Some(bundle), Some(_)) = (&packed.bundle, &packed.store) else {
        return Ok(packed.plan()?);
    };
    let spinner = Spinner::start("sending the code");
    let (tick, pack_tick) = (spinner.clone(), spinner.clone());
    let is_sent = Arc::new(AtomicBool::new(false));
    let sends = Arc::clone(&is_sent);
    let earlier = Arc::new(AtomicU64::new(0));
    let sent_earlier = Arc::clone(&earlier);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let options = DeliverOptions {
        cache: env::cache_dir().map(|cache| cache.join("uploads")),
        packing: Arc::new(move |done: Progress| pack_tick.say(|| packing(done))),
        progress: Arc::new(move |sent: Sent| {
            sends.store(true, Ordering::Relaxed);
            sent_earlier.store(sent.earlier, Ordering::Relaxed);
            tick.say(|| {
                format!(
                    "sending the code: {} of {}",
                    ui::size(sent.bytes),
                    ui::size(sent.total)
                )
            });
        }),
        stop: Box::pin(async move { drop(stopped.await) }),
        ..DeliverOptions::default()
    };
    let mut delivery = std::pin::pin!(packed.deliver(options));
    let delivered = match interrupt.unless(&mut delivery).await {
        Ok(delivered) => delivered,
        Err(interrupted) => {
            drop(stop);
            let aborted = tokio::time::timeout(ABORT_TIMEOUT, delivery).await;
            spinner.end();
            if aborted.is_err() {
                ui::warning(
                    "parts of the bundle may remain in the store; the next run resumes the upload",
                );
            }
            return Err(interrupted);
        }
    };
    spinner.end();
    let plan = delivered?;
    // Without an explicit store, there is nothing to report.
    if let Some(store) = &packed.spec.store {
        let earlier = earlier.load(Ordering::Relaxed);
        let news = match is_sent.load(Ordering::Relaxed) {
            false => "already uploaded".to_owned(),
            true if earlier == 0 => format!("{} sent", ui::size(bundle.size)),
            true => format!(
                "{} sent ({} by an earlier attempt)",
                ui::size(bundle.size),
                ui::size(earlier)
            ),
        };
        ui::note(format!("{} {store}: {news}", head("store")));
    }
    Ok(plan)
}
