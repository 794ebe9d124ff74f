//! A way to a server on which connections do not last.

use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use crate::machine::Machine;

/// Hands bytes on to a server on this machine, until it cuts.
pub(crate) struct Cutter {
    /// The port to connect to instead of the server's.
    pub(crate) port: u16,
    ways: Arc<Mutex<Vec<TcpStream>>>,
    away: Arc<AtomicBool>,
    ended: Arc<AtomicBool>,
}

impl Cutter {
    /// In front of the server on this port.
    pub(crate) fn new(server: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let cutter = Self {
            port: listener.local_addr().unwrap().port(),
            ways: Arc::default(),
            away: Arc::default(),
            ended: Arc::default(),
        };
        let (ways, away) = (cutter.ways.clone(), cutter.away.clone());
        let ended = cutter.ended.clone();
        thread::spawn(move || {
            for client in listener.incoming() {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                let client = client.unwrap();
                if away.load(Ordering::Relaxed) {
                    continue;
                }
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else {
                    continue;
                };
                let mut ways = ways.lock().unwrap();
                for (mut from, mut to) in [(&client, &server), (&server, &client)]
                    .map(|(a, b)| (a.try_clone().unwrap(), b.try_clone().unwrap()))
                {
                    ways.push(from.try_clone().unwrap());
                    thread::spawn(move || {
                        let mut buffer = [0; 16 * 1024];
                        while let Ok(count) = from.read(&mut buffer) {
                            if count == 0 || to.write_all(&buffer[..count]).is_err() {
                                break;
                            }
                        }
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
            }
        });
        cutter
    }

    /// In front of the server of a kubeconfig in the folder of code; another one, by its
    /// name, leads through the cutter.
    pub(crate) fn around(machine: &Machine, direct: &str, around: &str) -> Self {
        let direct = std::fs::read_to_string(machine.code().join(direct)).unwrap();
        let (before, rest) = direct.split_once("https://127.0.0.1:").unwrap();
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap();
        let cutter = Self::new(rest[..digits].parse().unwrap());
        let (port, rest) = (cutter.port, &rest[digits..]);
        machine.write(around, &format!("{before}https://127.0.0.1:{port}{rest}"));
        cutter
    }

    /// Cuts all connections; gives how many there were.
    pub(crate) fn cut(&self) -> usize {
        let ways: Vec<_> = self.ways.lock().unwrap().drain(..).collect();
        for way in &ways {
            let _ = way.shutdown(Shutdown::Both);
        }
        ways.len() / 2
    }

    /// Whether nobody is let through.
    pub(crate) fn close(&self, away: bool) {
        self.away.store(away, Ordering::Relaxed);
        if away {
            self.cut();
        }
    }
}

impl Drop for Cutter {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        // Wakes the thread that waits for the next connection.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        self.cut();
    }
}
