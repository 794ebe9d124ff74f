//! A TCP proxy that breaks connections.

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

/// Forwards connections to a server on this machine and breaks them on demand.
pub(crate) struct FlakyProxy {
    /// The port to connect to instead of the server's.
    pub(crate) port: u16,
    connections: Arc<Mutex<Vec<TcpStream>>>,
    refuses: Arc<AtomicBool>,
    ended: Arc<AtomicBool>,
}

impl FlakyProxy {
    /// Forwards to the server on this port.
    pub(crate) fn new(server: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let proxy = Self {
            port: listener.local_addr().unwrap().port(),
            connections: Arc::default(),
            refuses: Arc::default(),
            ended: Arc::default(),
        };
        let (connections, refuses) = (proxy.connections.clone(), proxy.refuses.clone());
        let ended = proxy.ended.clone();
        thread::spawn(move || {
            for client in listener.incoming() {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                let client = client.unwrap();
                if refuses.load(Ordering::Relaxed) {
                    continue;
                }
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else {
                    continue;
                };
                let mut connections = connections.lock().unwrap();
                for (mut from, mut to) in [(&client, &server), (&server, &client)]
                    .map(|(a, b)| (a.try_clone().unwrap(), b.try_clone().unwrap()))
                {
                    connections.push(from.try_clone().unwrap());
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
        proxy
    }

    /// Forwards to the server of a kubeconfig in the code folder; writes another kubeconfig
    /// of that name that leads through the proxy.
    pub(crate) fn around(machine: &Machine, direct: &str, around: &str) -> Self {
        let direct = std::fs::read_to_string(machine.code().join(direct)).unwrap();
        let (before, rest) = direct.split_once("https://127.0.0.1:").unwrap();
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap();
        let proxy = Self::new(rest[..digits].parse().unwrap());
        let (port, rest) = (proxy.port, &rest[digits..]);
        machine.write(around, &format!("{before}https://127.0.0.1:{port}{rest}"));
        proxy
    }

    /// Breaks all connections; returns their number.
    pub(crate) fn cut(&self) -> usize {
        let connections: Vec<_> = self.connections.lock().unwrap().drain(..).collect();
        for connection in &connections {
            let _ = connection.shutdown(Shutdown::Both);
        }
        connections.len() / 2
    }

    /// Sets whether new connections are refused.
    pub(crate) fn close(&self, refuses: bool) {
        self.refuses.store(refuses, Ordering::Relaxed);
        if refuses {
            self.cut();
        }
    }
}

impl Drop for FlakyProxy {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        // Wakes the thread that waits for the next connection.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        self.cut();
    }
}
