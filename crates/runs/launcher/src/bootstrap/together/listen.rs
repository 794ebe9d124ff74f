//! The first task accepts the connections of all tasks, including its own, and sends them the
//! orders of the [`Leader`].

use std::{
    collections::BTreeMap,
    io::{self, BufReader},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    time::{Duration, Instant},
};

use super::{
    handshake,
    leader::{Connection, Leader, Orders},
    messages::{BEAT, Order, Report, SILENCE, receive, send},
};
use crate::restarts::RunKey;

/// The maximum time for the handshake of a connection.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// The maximum number of connections without a completed handshake.
const MOST_STRANGERS: usize = 64;

/// A report of a connection's thread.
enum Event {
    Joined(Connection, TcpStream, Report),
    Reported(Connection, Report),
    Lost(Connection),
}

/// Listens in the background until the process ends.
pub(super) fn listen(listener: TcpListener, leader: Leader, key: RunKey, run: String) {
    let (events, received) = channel();
    std::thread::spawn(move || accept(&listener, &events, &key, &run));
    std::thread::spawn(move || decide(leader, &received));
}

fn accept(listener: &TcpListener, events: &Sender<Event>, key: &RunKey, run: &str) {
    let next = AtomicU64::new(0);
    let strangers = Arc::new(AtomicUsize::new(0));
    loop {
        let Ok((stream, _)) = listener.accept() else {
            // For example, too many files are open.
            std::thread::sleep(Duration::from_millis(100));
            continue;
        };
        let connection = next.fetch_add(1, Ordering::Relaxed);
        if strangers.fetch_add(1, Ordering::Relaxed) >= MOST_STRANGERS {
            strangers.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (events, key, run) = (events.clone(), key.clone(), run.to_owned());
        let strangers = Arc::clone(&strangers);
        std::thread::spawn(move || {
            let joined = join(&stream, &key, &run);
            strangers.fetch_sub(1, Ordering::Relaxed);
            // Connections of other programs do not affect the run.
            if let Ok((reader, report, writer)) = joined {
                serve(reader, connection, report, writer, &events);
            }
            let _ = stream.shutdown(Shutdown::Both);
        });
    }
}

type Joined = (BufReader<TcpStream>, Report, TcpStream);

/// The handshake, and the first report.
fn join(stream: &TcpStream, key: &RunKey, run: &str) -> io::Result<Joined> {
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(BEAT))?;
    let begin = Instant::now();
    stream.set_read_timeout(Some(HANDSHAKE))?;
    let mut reader = BufReader::new(stream.try_clone()?);
    handshake::accept(&mut reader, &mut &*stream, key, run)?;
    if begin.elapsed() > HANDSHAKE {
        return Err(io::ErrorKind::TimedOut.into());
    }
    // A task may connect while it still ends its command.
    stream.set_read_timeout(Some(SILENCE))?;
    loop {
        let report: Report = receive(&mut reader)?;
        if report.joining().is_some() {
            return Ok((reader, report, stream.try_clone()?));
        }
    }
}

fn serve(
    mut reader: BufReader<TcpStream>,
    connection: Connection,
    report: Report,
    writer: TcpStream,
    events: &Sender<Event>,
) {
    let mut sent = events.send(Event::Joined(connection, writer, report));
    while sent.is_ok() {
        let Ok(report) = receive::<Report>(&mut reader) else {
            break;
        };
        sent = events.send(Event::Reported(connection, report));
    }
    let _ = events.send(Event::Lost(connection));
}

/// Sends the leader's orders, and regular messages that show that it is alive.
fn decide(mut leader: Leader, events: &Receiver<Event>) {
    let mut streams: BTreeMap<Connection, TcpStream> = BTreeMap::new();
    let mut beat = Instant::now() + BEAT;
    loop {
        let left = beat.saturating_duration_since(Instant::now());
        let orders = match events.recv_timeout(left) {
            Ok(Event::Joined(connection, stream, report)) => {
                match leader.joined(connection, &report) {
                    Some(orders) => {
                        streams.insert(connection, stream);
                        orders
                    }
                    None => {
                        let _ = stream.shutdown(Shutdown::Both);
                        continue;
                    }
                }
            }
            Ok(Event::Reported(connection, report)) => leader.reported(connection, &report),
            Ok(Event::Lost(connection)) => {
                streams.remove(&connection);
                leader.lost(connection)
            }
            Err(RecvTimeoutError::Timeout) => {
                beat = Instant::now() + BEAT;
                leader.to_all(&Order::Beat)
            }
            Err(RecvTimeoutError::Disconnected) => return,
        };
        deliver(orders, &streams);
    }
}

fn deliver(orders: Orders, streams: &BTreeMap<Connection, TcpStream>) {
    for (connection, order) in orders {
        let Some(mut stream) = streams.get(&connection) else {
            continue;
        };
        if send(&mut stream, &order).is_err() {
            // The connection's reader then reports the loss.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}
