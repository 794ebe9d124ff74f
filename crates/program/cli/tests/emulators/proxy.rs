//! A proxy in front of a server, which stalls a connection in the middle of an upload.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    thread,
    time::Duration,
};

/// The number of bytes that a connection sends before it stalls: half a part.
const HALF: usize = 4 << 20;

/// States of the proxy: the treatment of connections.
const PASS: u8 = 0;
const STALL_NEXT: u8 = 1;
const STALLED: u8 = 2;

pub(crate) struct Proxy {
    pub(crate) port: u16,
    state: Arc<AtomicU8>,
}

impl Proxy {
    /// Listens until the test program ends.
    pub(crate) fn start(server: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(AtomicU8::new(PASS));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                thread::spawn(move || {
                    // The server may have ended. In this case, the connection of the client ends,
                    // too.
                    let _ = forward(client, server, &state);
                });
            }
        });
        Self { port, state }
    }

    /// The next connection that has sent half a part stalls.
    pub(crate) fn stall(&self) {
        self.state.store(STALL_NEXT, Ordering::SeqCst);
    }

    /// Ends the connection that stalls.
    pub(crate) fn resume(&self) {
        self.state.store(PASS, Ordering::SeqCst);
    }
}

fn forward(client: TcpStream, server: u16, state: &AtomicU8) -> io::Result<()> {
    let server = TcpStream::connect(("127.0.0.1", server))?;
    let (mut answers, mut back) = (server.try_clone()?, client.try_clone()?);
    thread::spawn(move || {
        let _ = io::copy(&mut answers, &mut back);
        let _ = back.shutdown(Shutdown::Both);
    });
    let result = send(&client, &server, state);
    let _ = server.shutdown(Shutdown::Both);
    result
}

fn send(mut client: &TcpStream, mut server: &TcpStream, state: &AtomicU8) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 16];
    let mut sent = 0;
    loop {
        let count = client.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        sent += count;
        let (from, to) = (STALL_NEXT, STALLED);
        let stalls = sent > HALF
            && (state.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst)).is_ok();
        if stalls {
            while state.load(Ordering::SeqCst) == STALLED {
                thread::sleep(Duration::from_millis(10));
            }
            return Ok(());
        }
        server.write_all(&buffer[..count])?;
    }
}
