//! Scans a folder before packing.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::SystemTime,
};

use longshore_archive::is_confined;

use super::{
    Bundle, BundleError, Contents, EXAMPLES, PackOptions, Progress, Report,
    archive::archive,
    cache::{Cache, Known},
    entry::{Found, Kind, totals},
    error::NAMED,
    rules, secrets,
    sink::Data,
    walk::{self, Walked},
};

/// A scanned folder: the files to pack, and the cached result if the folder is unchanged.
#[derive(Debug)]
pub struct Scan {
    /// The files to pack.
    pub report: Report,
    folder: PathBuf,
    entries: Vec<Found>,
    cache: Option<Cache>,
    known: Option<Known>,
    begun: SystemTime,
    stop: Arc<AtomicBool>,
}

/// Scans a folder without packing it. For a folder that is unchanged since it was last
/// packed, it reads only the ignore files.
///
/// # Errors
/// The same as [`pack`](super::pack()).
pub fn scan(folder: &Path, options: &PackOptions) -> Result<Scan, BundleError> {
    check_folder(folder)?;
    let begun = SystemTime::now();
    let found = walk::walk(folder, options)?;
    let cache = options.cache.as_deref();
    let cache = cache.map(|cache| Cache::of(cache, folder, &found, &options.allow_secrets));
    // Cached folders have passed the checks.
    let known = cache.as_ref().and_then(Cache::find);
    if known.is_none() {
        check(folder, &found.entries, options)?;
    }
    Ok(Scan {
        report: report(&found),
        folder: folder.to_owned(),
        entries: found.entries,
        cache,
        known,
        begun,
        stop: Arc::clone(&options.stop),
    })
}

impl Scan {
    /// Returns true if the folder is unchanged since it was last packed. Then [`Scan::pack`] reads
    /// no files.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        self.known.is_some()
    }

    /// Packs the folder unless it is unchanged. Calls `progress` after each file, and within
    /// large files.
    ///
    /// # Errors
    /// The same as [`pack`](super::pack()).
    pub fn pack(self, progress: impl FnMut(Progress)) -> Result<Bundle, BundleError> {
        let (data, size, sha256) = match self.known {
            Some(known) => (known.data.map(Data::Memory), known.size, known.sha256),
            None => {
                let (data, size, sha256) =
                    archive(&self.folder, &self.entries, &self.stop, progress)?;
                if let Some(cache) = &self.cache {
                    cache.remember(&data, &sha256, size, self.begun);
                }
                (Some(data), size, sha256)
            }
        };
        let contents = Contents::new(self.folder, self.entries, self.cache, data);
        Ok(Bundle {
            sha256,
            size,
            report: self.report,
            contents: Arc::new(contents),
        })
    }
}

fn check_folder(folder: &Path) -> Result<(), BundleError> {
    let no_folder = |problem: String| BundleError::NoFolder {
        path: folder.to_owned(),
        problem,
    };
    match folder.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(no_folder("it does not exist; give a folder of code".into()))
        }
        Err(error) => Err(no_folder(error.to_string())),
        Ok(found) if !found.is_dir() => Err(no_folder(
            "it is a file, not a folder; give the folder it is in".into(),
        )),
        Ok(_) => Ok(()),
    }
}

/// Rejects secrets, links that point outside the folder, and unreadable files before
/// packing, so that all of them are reported together.
pub(super) fn check(
    folder: &Path,
    entries: &[Found],
    options: &PackOptions,
) -> Result<(), BundleError> {
    let allowed = rules::rules(
        Path::new(""),
        "the `allow_secrets` setting",
        &options.allow_secrets,
    )?;
    let mut problems = Vec::new();
    let secrets = secrets::find(folder, entries, &allowed, &options.stop);
    if !secrets.is_empty() {
        problems.push(BundleError::Secrets(secrets));
    }
    let mut others = refused(folder, entries, &options.stop);
    problems.extend(others.by_ref().take(NAMED));
    let more = others.count();
    if options.stop.load(Ordering::Relaxed) {
        return Err(BundleError::Stopped);
    }
    match problems.len() {
        0 => Ok(()),
        1 => Err(problems.remove(0)),
        _ => Err(BundleError::Several { problems, more }),
    }
}

/// Links that point outside the folder, and unreadable files.
fn refused<'a>(
    folder: &'a Path,
    entries: &'a [Found],
    stop: &'a AtomicBool,
) -> impl Iterator<Item = BundleError> + 'a {
    let entries = entries.iter().take_while(|_| !stop.load(Ordering::Relaxed));
    entries.filter_map(move |entry| {
        let full = folder.join(&entry.path);
        match entry.kind {
            Kind::Folder => None,
            Kind::Link => {
                let target = full.read_link().ok()?;
                (!is_confined(&entry.path, &target)).then(|| BundleError::Link {
                    path: entry.path.clone(),
                    target,
                })
            }
            Kind::File => {
                let error = rustix::fs::access(&full, rustix::fs::Access::READ_OK).err()?;
                Some(BundleError::Read {
                    path: full,
                    source: error.into(),
                })
            }
        }
    })
}

/// The files to pack.
fn report(found: &Walked) -> Report {
    let (files, bytes) = totals(&found.entries);
    Report {
        files,
        bytes,
        left_out: found.left_out,
        left_out_examples: found.examples.clone(),
        environments: found.environments.clone(),
        warnings: found.warnings.clone(),
        largest: largest(&found.entries),
    }
}

fn largest(entries: &[Found]) -> Vec<(PathBuf, u64)> {
    let mut files: Vec<_> = entries
        .iter()
        .filter(|entry| entry.kind == Kind::File)
        .collect();
    files.sort_by(|a, b| b.size.cmp(&a.size).then_with(|| a.path.cmp(&b.path)));
    files
        .into_iter()
        .take(EXAMPLES)
        .map(|entry| (entry.path.clone(), entry.size))
        .collect()
}
