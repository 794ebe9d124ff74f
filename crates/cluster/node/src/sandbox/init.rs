//! The containers' init (`init/`) as an executable, immutable file, and its
//! arguments.

use std::{
    ffi::{CString, OsStr, OsString},
    fs::File,
    io::{self, Write},
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{MemfdFlags, Mode, OFlags, SealFlags},
    io::Errno,
};

use super::{child::c_string, command::Command, privileges::Privileges};

/// The program, compiled by `build.rs`.
const PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/longshore-init"));

/// The flags of `init/arguments.rs`.
const OWN_PROCESSES: u64 = 1 << 0;
const KILLS_LEFTOVERS: u64 = 1 << 1;
const SESSION: u64 = 1 << 2;
const TERMINAL: u64 = 1 << 3;
const USER: u64 = 1 << 4;
const GROUP: u64 = 1 << 5;
const CAPABILITIES: u64 = 1 << 6;
const MAKES_FOLDER: u64 = 1 << 7;

/// Creates the file. It is in memory and sealed, so that a container cannot
/// modify it through `/proc/1/exe`. If the system does not allow executing such
/// a file, it is an unnamed file in `folder`.
pub(super) fn file(folder: &Path) -> io::Result<OwnedFd> {
    match in_memory() {
        Ok(file) => Ok(file),
        Err(error) => {
            tracing::debug!(%error, "cannot create the init in memory; creating it in the data folder");
            on_disk(folder)
        }
    }
}

fn in_memory() -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let create = |flags| rustix::fs::memfd_create("longshore-init", flags);
    // Kernels before 6.3 do not support the flag and do not need it.
    let file = match create(flags | MemfdFlags::EXEC) {
        Err(Errno::INVAL) => create(flags),
        created => created,
    }?;
    let mut file = File::from(file);
    file.write_all(PROGRAM)?;
    let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    rustix::fs::fcntl_add_seals(&file, seals)?;
    Ok(file.into())
}

fn on_disk(folder: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let mut written = File::from(rustix::fs::open(folder, flags, Mode::RWXU)?);
    written.write_all(PROGRAM)?;
    // A file that is open for writing cannot be executed.
    let path = format!("/proc/self/fd/{}", written.as_fd().as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// The tasks of the init, in addition to starting the command.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Duties {
    pub(super) own_processes: bool,
    pub(super) kills_leftovers: bool,
    pub(super) session: bool,
    pub(super) terminal: bool,
    /// True if the init changes the user and drops capabilities itself. Otherwise the user
    /// namespace has done so.
    pub(super) privileges: bool,
}

/// Encodes the arguments in the format of `init/arguments.rs`.
pub(super) fn arguments(command: &Command, duties: Duties) -> io::Result<Vec<CString>> {
    let Privileges {
        user,
        group,
        capabilities,
        ..
    } = command.privileges;
    let [user, group] = [user, group].map(|id| id.filter(|_| duties.privileges));
    let capabilities = capabilities.filter(|_| duties.privileges);
    let flags = [
        (duties.own_processes, OWN_PROCESSES),
        (duties.kills_leftovers, KILLS_LEFTOVERS),
        (duties.session || duties.terminal, SESSION),
        (duties.terminal, TERMINAL),
        (user.is_some(), USER),
        (group.is_some(), GROUP),
        (capabilities.is_some(), CAPABILITIES),
        (command.makes_working_folder, MAKES_FOLDER),
    ];
    let flags = flags.into_iter().filter(|(set, _)| *set);
    let numbers = [
        flags.fold(0, |all, (_, flag)| all | flag),
        u64::from(user.unwrap_or(0)),
        u64::from(group.unwrap_or(0)),
        capabilities.unwrap_or(0),
    ];
    let numbers = numbers.map(|number| number.to_string()).join(",");
    let mut arguments = vec![
        CString::from(c"longshore-init"),
        CString::new(numbers)?,
        c_string(command.working_folder.as_os_str())?,
    ];
    for file in files(command) {
        arguments.push(c_string(file.as_os_str())?);
    }
    arguments.push(CString::default());
    for argument in &command.arguments {
        arguments.push(c_string(argument)?);
    }
    Ok(arguments)
}

/// Encodes the command's environment.
pub(super) fn environment(command: &Command) -> io::Result<Vec<CString>> {
    let text = |(name, value): &(OsString, OsString)| {
        let mut text = name.clone();
        text.push("=");
        text.push(value);
        c_string(&text)
    };
    command.environment.iter().map(text).collect()
}

/// Returns the candidate files for a command's name, from the PATH in its environment.
fn files(command: &Command) -> Vec<PathBuf> {
    let Some(program) = command.arguments.first() else {
        return Vec::new();
    };
    if program.as_bytes().contains(&b'/') {
        return vec![PathBuf::from(program)];
    }
    let path = command
        .environment
        .iter()
        .rev()
        .find(|(name, _)| name == "PATH");
    let path = path.map_or(OsStr::new("/usr/local/bin:/usr/bin:/bin"), |(_, value)| {
        value
    });
    // A name without candidates must still fail with "not found".
    let found: Vec<_> = std::env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(program))
        .collect();
    if found.is_empty() {
        vec![Path::new("/usr/bin").join(program)]
    } else {
        found
    }
}
