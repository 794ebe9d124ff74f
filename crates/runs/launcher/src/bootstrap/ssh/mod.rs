//! The part of an SSH session in the container of a task: it reads the request from its standard
//! input, and becomes the requested program.

mod modes;
mod signal;

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Write as _},
    os::{
        fd::AsFd,
        unix::{ffi::OsStrExt as _, process::CommandExt as _},
    },
    process::Command,
};

use longshore_ssh::{Program, Request, Terminal, hello, sftp};
use rustix::termios::{OptionalActions, Winsize, tcgetattr, tcsetattr, tcsetwinsize};

use super::{BootstrapError, Places, shell::prepared_shell, start::Attempt, terminal};
pub use signal::signal;

/// Executes the request of a session, which the client sends to the standard input. Returns only
/// after a session of SFTP; other programs replace this process.
///
/// # Errors
/// See [`BootstrapError`].
pub fn ssh() -> Result<(), BootstrapError> {
    let request = receive().map_err(|source| BootstrapError::Ssh { source })?;
    let places = Places::default();
    let (path, mut command) = prepared_shell(&places)?;
    if request.program == Program::Sftp {
        return serve_files(&command).map_err(|source| BootstrapError::Ssh { source });
    }
    if let Program::Command(line) = &request.program {
        command.arg("-c").arg(OsStr::from_bytes(line));
    }
    if let Some(path) = path
        && std::env::var_os("SHELL").is_none()
    {
        command.env("SHELL", path);
    }
    if let Some(terminal) = &request.terminal
        && !terminal.name.is_empty()
    {
        command.env("TERM", OsStr::from_bytes(&terminal.name));
    }
    for (name, value) in &request.variables {
        command.env(OsStr::from_bytes(name), OsStr::from_bytes(value));
    }
    let attempt = Attempt::new(&command, &places.work());
    Err(attempt.error(command.exec()))
}

/// Reads the request. Meanwhile, a terminal passes its bytes through unchanged. Afterwards, it gets
/// the modes and the size of the client's terminal.
fn receive() -> io::Result<Request> {
    // Unbuffered, because the bytes after the request are the input of the program.
    let stdin = unbuffered(io::stdin())?;
    let before = match terminal::is_there() {
        true => Some(tcgetattr(&stdin)?),
        false => {
            // Signals must reach only the processes of this session.
            let _ = rustix::process::setsid();
            None
        }
    };
    if let Some(before) = &before {
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(&stdin, OptionalActions::Now, &raw)?;
    }
    let mut stdout = unbuffered(io::stdout())?;
    stdout.write_all(hello(std::process::id()).as_bytes())?;
    let request = Request::read(&stdin)?;
    if let Some(mut settings) = before {
        let terminal = request.terminal.clone().unwrap_or_default();
        modes::apply(&mut settings, &terminal.modes);
        tcsetattr(&stdin, OptionalActions::Now, &settings)?;
        resize(&stdin, &terminal)?;
    }
    Ok(request)
}

fn resize(stdin: &File, terminal: &Terminal) -> io::Result<()> {
    let (columns, rows) = terminal.size;
    let (width, height) = terminal.pixels;
    if columns > 0 && rows > 0 {
        let size = Winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: width,
            ws_ypixel: height,
        };
        tcsetwinsize(stdin, size)?;
    }
    Ok(())
}

fn unbuffered(stream: impl AsFd) -> io::Result<File> {
    stream.as_fd().try_clone_to_owned().map(File::from)
}

/// Serves files, from the folder of the task's command.
fn serve_files(command: &Command) -> io::Result<()> {
    if let Some(folder) = command.get_current_dir() {
        std::env::set_current_dir(folder)?;
    }
    sftp::serve(unbuffered(io::stdin())?, unbuffered(io::stdout())?)
}
