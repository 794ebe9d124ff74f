//! Finds the cause of a failed start of a command, because the system's errors have several causes
//! each.

use std::{
    ffi::{OsStr, OsString},
    fs, io,
    io::Read as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use longshore_diagnosis::start_problem::StartProblem;

use super::BootstrapError;

/// The maximum size of an argument or a variable, with its final NUL.
const WORD: usize = 128 << 10;
/// The number of bytes of a file to read.
const BEGIN: u64 = 4096;
const ELF: &[u8] = b"\x7fELF";
/// The type of the program header that names the dynamic loader.
const PT_INTERP: u32 = 3;

/// A command that is about to start.
pub(super) struct Attempt {
    name: String,
    work: PathBuf,
    path: Option<OsString>,
    /// The name and the size of the largest variable.
    variable: (String, usize),
    /// The number and the size of the largest argument.
    argument: (usize, usize),
}

impl Attempt {
    pub(super) fn new(command: &Command, work: &Path) -> Self {
        let set = |name: &OsStr| {
            let mut changes = command.get_envs();
            let own = changes.find(|(key, _)| *key == name);
            own.map_or_else(
                || std::env::var_os(name),
                |(_, value)| Some(value?.to_owned()),
            )
        };
        let changed = command
            .get_envs()
            .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
        let inherited = std::env::vars_os().filter(|(name, _)| set(name).is_some());
        let variables = inherited.chain(changed);
        let sizes = variables.map(|(name, value)| (name.len() + value.len() + 2, name));
        let (size, variable) = sizes.max().unwrap_or_default();
        let arguments = command.get_args().enumerate();
        let argument = arguments
            .map(|(index, word)| (word.len() + 1, index + 1))
            .max();
        let (length, index) = argument.unwrap_or_default();
        Self {
            name: command.get_program().to_string_lossy().into_owned(),
            work: work.to_owned(),
            path: set(OsStr::new("PATH")),
            variable: (variable.to_string_lossy().into_owned(), size),
            argument: (index, length),
        }
    }

    /// The error for a command that the system did not start.
    pub(super) fn error(&self, source: io::Error) -> BootstrapError {
        let problem = self.problem(&source);
        match (source.kind(), &problem) {
            (_, Some((StartProblem::OneWord | StartProblem::NotOnPath, _)))
            | (io::ErrorKind::NotFound, None) => BootstrapError::NotFound {
                command: self.name.clone(),
                problem: problem.map(|(problem, _)| problem),
            },
            _ => BootstrapError::CannotRun {
                command: self.name.clone(),
                problem,
                source,
            },
        }
    }

    /// The cause, if it is known, and details.
    fn problem(&self, source: &io::Error) -> Option<(StartProblem, String)> {
        use io::ErrorKind as Kind;
        let plain = |problem| Some((problem, String::new()));
        match source.kind() {
            Kind::ArgumentListTooLong => return Some(self.too_large()),
            Kind::OutOfMemory | Kind::WouldBlock => {
                return Some((StartProblem::NoProcess, source.to_string()));
            }
            _ => {}
        }
        let Some(file) = self.file() else {
            let is_missing = source.kind() == Kind::NotFound;
            return match is_missing {
                true if self.work.join(&self.name).exists() => plain(StartProblem::NotOnPath),
                true if self.name.contains(char::is_whitespace) => plain(StartProblem::OneWord),
                _ => None,
            };
        };
        let metadata = fs::metadata(&file).ok()?;
        if metadata.is_dir() {
            return plain(StartProblem::Folder);
        }
        if source.kind() == Kind::PermissionDenied && metadata.permissions().mode() & 0o111 == 0 {
            return plain(StartProblem::NotExecutable);
        }
        of_content(&begin(&file).ok()?, source)
    }

    fn too_large(&self) -> (StartProblem, String) {
        let (name, size) = &self.variable;
        let (index, length) = &self.argument;
        match () {
            () if *size > WORD => (
                StartProblem::LargeVariable,
                format!("{name} has {size} bytes, and the system permits {WORD}"),
            ),
            () if *length > WORD => (
                StartProblem::LargeArgument,
                format!("number {index} has {length} bytes, and the system permits {WORD}"),
            ),
            () => (
                StartProblem::LargeTogether,
                format!("the largest variable is {name} with {size} bytes"),
            ),
        }
    }

    /// The file with the command's program.
    fn file(&self) -> Option<PathBuf> {
        if self.name.contains('/') {
            let file = self.work.join(&self.name);
            return file.exists().then_some(file);
        }
        let folders = self.path.as_deref().map(std::env::split_paths);
        let mut files = folders?.map(|folder| folder.join(&self.name));
        files.find(|file| file.is_file())
    }
}

fn begin(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(file)?.take(BEGIN).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The cause that the content of the file shows.
fn of_content(bytes: &[u8], source: &io::Error) -> Option<(StartProblem, String)> {
    let plain = |problem| Some((problem, String::new()));
    if bytes.is_empty() {
        return plain(StartProblem::Empty);
    }
    if let Some(rest) = bytes.strip_prefix(b"#!") {
        let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line).into_owned();
        let interpreter = line.split_ascii_whitespace().next().unwrap_or_default();
        return match () {
            () if line.ends_with('\r') => plain(StartProblem::WindowsLines),
            () if interpreter.is_empty() => plain(StartProblem::NoInterpreter),
            () if !Path::new(interpreter).exists() => {
                Some((StartProblem::MissingInterpreter, interpreter.to_owned()))
            }
            () => None,
        };
    }
    if bytes.starts_with(ELF) {
        return match source.kind() {
            io::ErrorKind::NotFound => {
                let loader = loader(bytes).unwrap_or_default();
                Some((StartProblem::MissingLoader, loader))
            }
            _ if is_exec_format(source) => plain(StartProblem::WrongArchitecture),
            _ => None,
        };
    }
    is_exec_format(source).then_some((StartProblem::NoInterpreter, String::new()))
}

fn is_exec_format(source: &io::Error) -> bool {
    let number = source
        .raw_os_error()
        .map(rustix::io::Errno::from_raw_os_error);
    number == Some(rustix::io::Errno::NOEXEC)
}

/// The dynamic loader in the header of a 64-bit program.
fn loader(bytes: &[u8]) -> Option<String> {
    let number = |at: usize, size: usize| {
        let mut all = [0; 8];
        all.get_mut(..size)?
            .copy_from_slice(bytes.get(at..at + size)?);
        usize::try_from(u64::from_le_bytes(all)).ok()
    };
    let (table, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    let headers = (0..count).map(|index| table + index * size);
    let mut headers = headers.filter(|at| number(*at, 4) == Some(PT_INTERP as usize));
    let at = headers.next()?;
    let (offset, length) = (number(at + 8, 8)?, number(at + 32, 8)?);
    let name = bytes.get(offset..offset.checked_add(length)?)?;
    let name = String::from_utf8_lossy(name);
    Some(name.trim_end_matches('\0').to_owned())
}
