//! Reads files whose path is untrusted input, in bounded memory and with a timeout.

use std::{
    fs::File,
    io::{self, Read as _},
    os::unix::fs::FileTypeExt as _,
    path::Path,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Mode, OFlags},
};

/// The timeout for the next bytes from a pipe or a terminal.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);

/// Reads a whole file. The file may be a pipe, such as a shell's `<(command)`.
///
/// # Errors
/// The errors of [`std::fs::read`]; kind `FileTooLarge` for a file of more than `max_bytes` bytes,
/// and `TimedOut` for a pipe that receives no data for ten seconds.
pub fn read_limited(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    read_for(path, max_bytes, IDLE_TIMEOUT)
}

fn read_for(path: &Path, max_bytes: u64, idle_timeout: Duration) -> io::Result<Vec<u8>> {
    // Without NONBLOCK, opening a pipe would block until another process opens it for writing.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let metadata = file.metadata()?;
    let kind = metadata.file_type();
    let too_large = || {
        let text = format!("it is larger than {max_bytes} bytes");
        io::Error::new(io::ErrorKind::FileTooLarge, text)
    };
    if kind.is_file() && metadata.len() > max_bytes {
        return Err(too_large());
    }
    if kind.is_socket() || kind.is_block_device() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is not a regular file",
        ));
    }
    let waits = kind.is_fifo() || kind.is_char_device();
    let mut content = Vec::new();
    let mut chunk = [0; 16 << 10];
    loop {
        if waits {
            wait(&file, idle_timeout)?;
        }
        let count = match (&file).read(&mut chunk) {
            Ok(0) => return Ok(content),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // Another process read the bytes first.
            Err(error) if waits && error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error),
        };
        content.extend_from_slice(&chunk[..count]);
        if content.len() as u64 > max_bytes {
            return Err(too_large());
        }
    }
}

/// Waits until the file has bytes to read, or the writer has closed it.
fn wait(file: &File, idle_timeout: Duration) -> io::Result<()> {
    let until = Instant::now() + idle_timeout;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        let mut ready = [PollFd::new(file, PollFlags::IN)];
        match poll(&mut ready, Some(&left)) {
            Ok(0) => {
                let seconds = idle_timeout.as_secs();
                let text = format!("it is a pipe, and nothing was written to it for {seconds} s");
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Write as _;

    use rustix::fs::{CWD, FileType, mknodat};

    use super::*;

    const SHORT: Duration = Duration::from_millis(200);

    fn pipe(path: &Path) {
        mknodat(CWD, path, FileType::Fifo, Mode::from(0o600), 0).unwrap();
    }

    #[test]
    fn files_and_pipes_are_read_to_their_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "text").unwrap();
        assert_eq!(read_limited(&path, 4).unwrap(), b"text");
        assert!(read_limited(Path::new("/dev/null"), 4).unwrap().is_empty());
        let path = folder.path().join("pipe");
        pipe(&path);
        let writing = std::thread::spawn({
            let path = path.clone();
            move || {
                let mut file = File::options().write(true).open(path).unwrap();
                file.write_all(b"a").unwrap();
                std::thread::sleep(SHORT / 4);
                file.write_all(b"b").unwrap();
            }
        });
        assert_eq!(read_limited(&path, 4).unwrap(), b"ab");
        writing.join().unwrap();
    }

    #[test]
    fn large_and_endless_files_are_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        let error = read_limited(&path, 4).unwrap_err();
        assert_eq!(error.to_string(), "it is larger than 4 bytes");
        let error = read_limited(Path::new("/dev/zero"), 1 << 20).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        let error = read_limited(folder.path(), 4).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::IsADirectory);
        let path = folder.path().join("pipe");
        pipe(&path);
        let error = read_for(&path, 4, SHORT).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        // The timeout also applies if a writer has opened the pipe.
        let _writer = File::options().read(true).write(true).open(&path).unwrap();
        let error = read_for(&path, 4, SHORT).unwrap_err();
        assert!(error.to_string().contains("nothing was written"), "{error}");
    }
}
