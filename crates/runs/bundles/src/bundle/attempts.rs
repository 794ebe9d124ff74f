//! Packs a folder again if a file changed while it was read, for example the log of this program
//! after `longshore run 2>&1 | tee run.log`.

use std::{path::Path, sync::atomic::Ordering, thread, time::Duration};

use super::{Bundle, BundleError, PackOptions, Progress, Scan, scan};

/// The number of attempts, and the pause between them. Each attempt reads the whole folder.
const ATTEMPTS: u32 = 4;
const PAUSE: Duration = Duration::from_millis(100);

/// Packs a folder like [`pack`](super::pack()). Calls `scanned` for the first scan.
///
/// # Errors
/// The same as [`pack`](super::pack()).
pub fn pack_scanned(
    folder: &Path,
    options: &PackOptions,
    scanned: impl FnOnce(&Scan),
    mut progress: impl FnMut(Progress),
) -> Result<Bundle, BundleError> {
    let mut scanned = Some(scanned);
    let mut attempt = 1;
    loop {
        let scan = scan(folder, options)?;
        if let Some(scanned) = scanned.take() {
            scanned(&scan);
        }
        let packed = scan.pack(&mut progress);
        let has_changed = matches!(packed, Err(BundleError::Changed { .. }));
        if !has_changed || attempt == ATTEMPTS || options.stop.load(Ordering::Relaxed) {
            return packed;
        }
        attempt += 1;
        thread::sleep(PAUSE);
    }
}
