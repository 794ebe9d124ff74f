//! The connections of clients to the supervisor.

use std::{
    fs, io,
    os::unix::{fs::PermissionsExt as _, net::UnixListener, net::UnixStream},
    path::{Path, PathBuf},
    thread,
};

use super::{
    SOCKET, STAGING,
    events::{ConnectionId, Event, Events},
    staged::{self, OrderError, Received},
};
use crate::bootstrap::messages::tell;

/// Listens for clients. Only processes of the same user can connect.
pub(super) fn listen(home: &Path, events: Events) -> io::Result<()> {
    remove_leftovers(home)?;
    // The path of a socket has at most 107 bytes, so bind it relative to an open folder. The
    // temporary name ensures that it has its permissions when it appears.
    let folder = fs::File::open(home)?;
    let through = PathBuf::from(format!(
        "/proc/self/fd/{}",
        std::os::fd::AsRawFd::as_raw_fd(&folder)
    ));
    let temporary = format!("{STAGING}socket");
    let listener = UnixListener::bind(through.join(&temporary))?;
    let path = home.join(temporary);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
    fs::rename(path, home.join(SOCKET))?;
    let home = home.to_owned();
    thread::spawn(move || {
        for (id, stream) in (1..).zip(listener.incoming()) {
            match stream {
                Ok(stream) => serve(id, stream, home.clone(), events.clone()),
                Err(error) => tell(&format!("a connection for changes failed: {error}")),
            }
        }
    });
    Ok(())
}

/// Connects to the supervisor.
pub(super) fn connect(home: &Path) -> io::Result<UnixStream> {
    let folder = fs::File::open(home)?;
    let descriptor = std::os::fd::AsRawFd::as_raw_fd(&folder);
    UnixStream::connect(format!("/proc/self/fd/{descriptor}/{SOCKET}"))
}

/// Removes the files of a killed supervisor.
fn remove_leftovers(home: &Path) -> io::Result<()> {
    for entry in fs::read_dir(home)? {
        let entry = entry?;
        if !entry.file_name().to_string_lossy().starts_with(STAGING) {
            continue;
        }
        longshore_files::remove_tree(&entry.path())?;
    }
    Ok(())
}

/// Reads the orders of a client in its own thread.
pub(super) fn serve(id: ConnectionId, stream: UnixStream, home: PathBuf, events: Events) {
    thread::spawn(move || {
        let Ok(reader) = stream.try_clone() else {
            return;
        };
        if !events.send(Event::Connected(id, stream)) {
            return;
        }
        let mut reader = io::BufReader::with_capacity(64 * 1024, reader);
        loop {
            let event = match staged::read(&mut reader, &home) {
                Ok(Some(Received::Begin(session))) => Event::Begun(id, session),
                Ok(Some(Received::Describe)) => Event::Described(id),
                Ok(Some(Received::Order(staged))) => Event::Order(id, staged),
                Err(OrderError::Refused(problem)) => Event::Refused(id, problem),
                Err(OrderError::Ended(error)) => {
                    if error.kind() != io::ErrorKind::UnexpectedEof {
                        tell(&format!("the connection for changes ended: {error}"));
                    }
                    events.send(Event::Disconnected(id));
                    return;
                }
                Ok(None) => {
                    events.send(Event::Disconnected(id));
                    return;
                }
            };
            if !events.send(event) {
                return;
            }
        }
    });
}
