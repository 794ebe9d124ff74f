//! A terminal in which a program runs, as in a terminal window.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    os::fd::OwnedFd,
    process::{Child, Command, ExitStatus},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

use crate::machine::eventually;

/// A program that runs in its own terminal.
pub(crate) struct Terminal {
    child: Child,
    /// The window's side. Closing it hangs up the terminal.
    window: Option<File>,
    shown: Arc<Mutex<String>>,
    closing: Arc<AtomicBool>,
    reading: Option<JoinHandle<()>>,
}

impl Terminal {
    /// Starts the command as a session leader with this terminal.
    pub(crate) fn start(command: &Command) -> Self {
        let window =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&window).unwrap();
        unlockpt(&window).unwrap();
        let name = ptsname(&window, Vec::new()).unwrap();
        let side = File::options()
            .read(true)
            .write(true)
            .open(name.to_str().unwrap())
            .unwrap();
        // Default signal handling, as in a new terminal, although these tests may run under
        // nohup.
        let mut inside = Command::new("env");
        inside.args(["--default-signal=HUP", "setsid", "--ctty", "--wait"]);
        inside.arg(command.get_program());
        inside.args(command.get_args());
        inside.env_clear();
        for (name, value) in command.get_envs() {
            inside.env(name, value.unwrap());
        }
        inside.env("TERM", "xterm");
        inside.current_dir(command.get_current_dir().unwrap());
        let copy = || OwnedFd::from(side.try_clone().unwrap());
        inside.stdin(copy()).stdout(copy()).stderr(copy());
        let child = inside.spawn().unwrap();
        let window = File::from(window);
        let shown = Arc::<Mutex<String>>::default();
        let closing = Arc::<AtomicBool>::default();
        let reading = std::thread::spawn({
            let (mut reader, text) = (window.try_clone().unwrap(), shown.clone());
            let closing = closing.clone();
            move || {
                let mut buffer = [0; 4096];
                while !closing.load(Ordering::Relaxed) {
                    let mut ready = [PollFd::new(&reader, PollFlags::IN)];
                    let limit = Timespec {
                        tv_sec: 0,
                        tv_nsec: 20_000_000,
                    };
                    if poll(&mut ready, Some(&limit)).unwrap() == 0 {
                        continue;
                    }
                    // Reading fails when no process has the terminal open any more.
                    let Ok(count @ 1..) = reader.read(&mut buffer) else {
                        return;
                    };
                    let piece = String::from_utf8_lossy(&buffer[..count]);
                    text.lock().unwrap().push_str(&piece);
                }
            }
        });
        Self {
            child,
            window: Some(window),
            shown,
            closing,
            reading: Some(reading),
        }
    }

    /// Closes the window.
    pub(crate) fn close(&mut self) {
        self.closing.store(true, Ordering::Relaxed);
        if let Some(reading) = self.reading.take() {
            reading.join().unwrap();
        }
        self.window = None;
    }

    /// All text that was printed so far.
    pub(crate) fn text(&self) -> String {
        self.shown.lock().unwrap().clone()
    }

    /// Waits until a text is printed.
    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) {
        eventually(&format!("{text:?} is not printed: {}", self.text()), || {
            self.text().contains(text)
        });
    }

    /// Types text.
    pub(crate) fn write(&mut self, text: &str) {
        let window = self.window.as_mut().unwrap();
        window.write_all(text.as_bytes()).unwrap();
    }

    /// Changes the size of the window.
    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        let size = Winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(self.window.as_ref().unwrap(), size).unwrap();
    }

    /// The process ID of the program.
    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    /// Waits until the program ends.
    pub(crate) fn end(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().unwrap();
        if let Some(reading) = self.reading.take() {
            reading.join().unwrap();
        }
        (status, self.text())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.close();
    }
}
