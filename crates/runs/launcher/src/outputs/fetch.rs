//! Writes the outputs of a task to a folder, and verifies them. Nothing is written outside the
//! folder, because each folder of a path is opened by its name in the parent folder, without
//! following links.

use std::{
    fs::{self, File},
    io::{self, Read, Seek as _},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, FileType, Mode, OFlags, fstat, mkdirat, openat, statat},
    io::Errno,
};

use super::{
    Manifest, OutputFile, Outputs, OutputsError,
    content::{Side, copy},
    part::PartFile,
};

/// The maximum number of files to name in an error.
const NAMED: usize = 5;

/// The destination of outputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchOptions {
    /// The folder, which is created if it does not exist.
    pub to: PathBuf,
    /// True to overwrite files with another content.
    pub force: bool,
}

/// The result of a fetch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fetched {
    /// The number of written files.
    pub files: u64,
    /// The size of the written files in bytes.
    pub bytes: u64,
    /// The number of files that the folder already had.
    pub present: u64,
}

impl Fetched {
    /// The number of written files and of files that the folder already had.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            files: self.files.saturating_add(other.files),
            bytes: self.bytes.saturating_add(other.bytes),
            present: self.present.saturating_add(other.present),
        }
    }
}

/// The entry at the path of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
enum At {
    Nothing,
    /// A file with the same content.
    Same,
    /// A file with another content, or a link.
    Other,
    /// An entry that is never replaced.
    Blocked(&'static str),
}

/// The source of the contents of a task's files.
pub(crate) trait Contents {
    /// Opens the content of a file. Files are opened in the order of the list.
    fn open<'a>(&'a mut self, file: &OutputFile) -> Result<Box<dyn Read + 'a>, OutputsError>;

    /// The location of the content, for errors.
    fn name(&self, file: &OutputFile) -> String;
}

impl Contents for &Outputs {
    fn open<'a>(&'a mut self, file: &OutputFile) -> Result<Box<dyn Read + 'a>, OutputsError> {
        Ok(Box::new(self.kept_content(file)?))
    }

    fn name(&self, file: &OutputFile) -> String {
        self.content(&file.sha256).display().to_string()
    }
}

/// Writes the files of a task. Files that the folder already has are skipped. Nothing is written if
/// the folder has files with another content, unless `force` is set.
pub(crate) fn fetch_from(
    contents: &mut dyn Contents,
    manifest: &Manifest,
    options: &FetchOptions,
) -> Result<Fetched, OutputsError> {
    let to = &options.to;
    fs::create_dir_all(to).map_err(|error| OutputsError::not_written(to, error))?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = openat(CWD, to, flags, Mode::empty());
    let root = root.map_err(OutputsError::system("open", to))?;
    let mut fetched = Fetched::default();
    let (mut wanted, mut examples, mut others) = (Vec::new(), Vec::new(), 0_u64);
    for file in &manifest.files {
        let at = look(&root, file).map_err(OutputsError::system("read", &to.join(&file.path)));
        match at? {
            At::Nothing => wanted.push(file),
            At::Same => fetched.present = fetched.present.saturating_add(1),
            At::Other => {
                others = others.saturating_add(1);
                if examples.len() < NAMED {
                    examples.push(file.path.clone());
                }
                wanted.push(file);
            }
            At::Blocked(problem) => {
                return Err(OutputsError::Blocked {
                    folder: to.clone(),
                    path: file.path.clone(),
                    problem: problem.to_owned(),
                });
            }
        }
    }
    if others > 0 && !options.force {
        return Err(OutputsError::Exists {
            folder: to.clone(),
            examples,
            count: others,
        });
    }
    for file in wanted {
        if !write(contents, &root, file, options)? {
            fetched.present = fetched.present.saturating_add(1);
            continue;
        }
        fetched.files = fetched.files.saturating_add(1);
        fetched.bytes = fetched.bytes.saturating_add(file.size);
    }
    Ok(fetched)
}

impl Outputs {
    /// Writes the files of a task. Files that the folder already has are skipped. Nothing is
    /// written if the folder has files with another content, unless `force` is set.
    ///
    /// # Errors
    /// [`OutputsError::Exists`], [`OutputsError::Blocked`], [`OutputsError::Damaged`], and if a
    /// file cannot be read or written.
    pub fn fetch(
        &self,
        manifest: &Manifest,
        options: &FetchOptions,
    ) -> Result<Fetched, OutputsError> {
        let lock = self.lock()?;
        lock.lock_shared()
            .map_err(OutputsError::system("lock", self.root()))?;
        let mut contents = self;
        fetch_from(&mut contents, manifest, options)
    }

    /// Opens a kept file of a task, and verifies its content.
    ///
    /// # Errors
    /// [`OutputsError::Damaged`], and if the file cannot be read.
    pub fn open(&self, file: &OutputFile) -> Result<File, OutputsError> {
        let system = || OutputsError::system::<io::Error>("read", &self.content(&file.sha256));
        let mut content = self.kept_content(file)?;
        match copy(&mut content, &mut io::sink(), file.size) {
            Ok(Some(stored)) if stored.sha256 == file.sha256 => {}
            Ok(Some(stored)) => {
                return Err(damaged(file, format!("its sha256 is {}", stored.sha256)));
            }
            Ok(None) => {
                let problem = format!("it is larger than {} bytes", file.size);
                return Err(damaged(file, problem));
            }
            Err((error, _)) => return Err(system()(error)),
        }
        content.rewind().map_err(system())?;
        Ok(content)
    }

    /// Opens the content of a file.
    fn kept_content(&self, file: &OutputFile) -> Result<File, OutputsError> {
        match self.open_content(&file.sha256) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(damaged(file, "it was removed".to_owned()))
            }
            content => content.map_err(OutputsError::system("read", &self.content(&file.sha256))),
        }
    }
}

/// Writes a file under a temporary name, verifies it, and gives it its name. Returns true if it was
/// written. Otherwise, another process has fetched it meanwhile.
fn write(
    contents: &mut dyn Contents,
    root: &OwnedFd,
    file: &OutputFile,
    options: &FetchOptions,
) -> Result<bool, OutputsError> {
    let path = options.to.join(&file.path);
    let damaged = |problem| damaged(file, problem);
    let place = contents.name(file);
    let mut content = contents.open(file)?;
    let (above, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
    let folder = make_folders(root, above);
    let folder = folder.map_err(|error| OutputsError::not_written(&path, error))?;
    let part = PartFile::create(&folder, file);
    let mut part = part.map_err(|error| OutputsError::not_written(&path, error))?;
    match copy(&mut content, &mut part.file, file.size) {
        Ok(Some(stored)) if stored.sha256 == file.sha256 => {}
        Ok(Some(stored)) => return Err(damaged(format!("its sha256 is {}", stored.sha256))),
        Ok(None) => return Err(damaged(format!("it is larger than {} bytes", file.size))),
        Err((error, Side::Read)) => {
            return Err(OutputsError::system("read", Path::new(&place))(error));
        }
        Err((error, Side::Write)) => return Err(OutputsError::not_written(&path, error)),
    }
    match part.rename(name, options.force) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) if look(root, file).ok() == Some(At::Same) => Ok(false),
        Err(error) => Err(OutputsError::not_written(&path, error)),
    }
}

fn damaged(file: &OutputFile, problem: String) -> OutputsError {
    OutputsError::Damaged {
        path: file.path.clone(),
        problem,
    }
}

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Opens the folder at a path below another one, and creates missing folders.
fn make_folders(root: &OwnedFd, path: &str) -> Result<OwnedFd, Errno> {
    let mut folder = openat(root, ".", FOLDER, Mode::empty())?;
    for name in path.split('/').filter(|name| !name.is_empty()) {
        match mkdirat(&folder, name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
        folder = openat(&folder, name, FOLDER, Mode::empty())?;
    }
    Ok(folder)
}

/// Looks up the entry at the path of a file.
fn look(root: &OwnedFd, file: &OutputFile) -> io::Result<At> {
    let (above, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
    let mut folder = openat(root, ".", FOLDER, Mode::empty())?;
    for name in above.split('/').filter(|name| !name.is_empty()) {
        folder = match openat(&folder, name, FOLDER, Mode::empty()) {
            Ok(folder) => folder,
            Err(Errno::NOENT) => return Ok(At::Nothing),
            Err(Errno::LOOP | Errno::NOTDIR) => {
                return Ok(At::Blocked(
                    "a folder on its path is a file or a symbolic link",
                ));
            }
            Err(error) => return Err(error.into()),
        };
    }
    let found = match statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => found,
        Err(Errno::NOENT) => return Ok(At::Nothing),
        Err(error) => return Err(error.into()),
    };
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => {}
        FileType::Directory => return Ok(At::Blocked("a folder has its name")),
        FileType::Symlink => return Ok(At::Other),
        _ => return Ok(At::Blocked("a pipe, socket or device has its name")),
    }
    if u64::try_from(found.st_size).ok() != Some(file.size) {
        return Ok(At::Other);
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = openat(&folder, name, flags, Mode::empty())?;
    if FileType::from_raw_mode(fstat(&opened)?.st_mode) != FileType::RegularFile {
        return Ok(At::Other);
    }
    let mut existing = File::from(opened).take(file.size.saturating_add(1));
    match copy(&mut existing, &mut io::sink(), file.size) {
        Ok(Some(stored)) if stored.sha256 == file.sha256 => Ok(At::Same),
        Ok(_) => Ok(At::Other),
        Err((error, _)) => Err(error),
    }
}

/// The folder of a task's files in the folder of a run's outputs. Empty for a run with one task.
#[must_use]
pub fn task_folder(to: &Path, manifest: &Manifest, is_alone: bool) -> PathBuf {
    match is_alone {
        true => to.to_owned(),
        false => to.join(format!("{}-{}", manifest.role, manifest.index)),
    }
}
