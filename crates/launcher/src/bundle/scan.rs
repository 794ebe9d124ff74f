//! Looks through a folder before it is packed.

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
    secrets,
    sink::Data,
    walk::{self, Walked},
};

/// A folder that was looked through: what is to be packed is known, and whether
/// it must be.
#[derive(Debug)]
pub struct Scan {
    /// What is going to be packed.
    pub report: Report,
    folder: PathBuf,
    entries: Vec<Found>,
    cache: Option<Cache>,
    known: Option<Known>,
    begun: SystemTime,
    stop: Arc<AtomicBool>,
}

/// Looks through a folder, without packing it. Of a folder that is as it was when
/// it was packed last, no file is read but ignore files.
///
/// # Errors
/// As [`pack`](super::pack()).
pub fn scan(folder: &Path, options: &PackOptions) -> Result<Scan, BundleError> {
    check_folder(folder)?;
    let begun = SystemTime::now();
    let found = walk::walk(folder, options)?;
    let cache = options.cache.as_deref();
    let cache = cache.map(|cache| Cache::of(cache, folder, &found, &options.allow_secrets));
    // What is remembered has passed the checks.
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
    /// Whether the folder is as it was when it was packed last. Then
    /// [`Scan::pack`] reads none of it.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        self.known.is_some()
    }

    /// Packs the folder, unless it is unchanged. `progress` is called after each
    /// file, and within large ones.
    ///
    /// # Errors
    /// As [`pack`](super::pack()).
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

/// Refuses secrets, links that leave the folder, and files that may not be read: before
/// anything is packed, so that all of them are reported at once.
fn check(folder: &Path, entries: &[Found], options: &PackOptions) -> Result<(), BundleError> {
    let allowed = walk::rules(
        Path::new(""),
        "the `allow_secrets` setting",
        &options.allow_secrets,
    )?;
    let mut problems = Vec::new();
    let secrets = secrets::find(folder, entries, &allowed, &options.stop);
    if !secrets.is_empty() {
        problems.push(BundleError::Secrets(secrets));
    }
    problems.extend(refused(folder, entries, &options.stop).take(NAMED));
    if options.stop.load(Ordering::Relaxed) {
        return Err(BundleError::Stopped);
    }
    match problems.len() {
        0 => Ok(()),
        1 => Err(problems.remove(0)),
        _ => Err(BundleError::Several(problems)),
    }
}

/// Links that leave the folder, and files that may not be read.
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

/// What is going to be packed.
fn report(found: &Walked) -> Report {
    let (files, bytes) = totals(&found.entries);
    Report {
        files,
        bytes,
        left_out: found.left_out,
        left_out_examples: found.examples.clone(),
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
