//! The sockets of the server.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
};

use tokio::net::{TcpListener, TcpSocket, UdpSocket};

/// The port of name servers.
const PORT: u16 = 53;
/// The length of the queue of connections that are not accepted yet.
const BACKLOG: u32 = 128;
/// The maximum number of attempts to find a port that is free for UDP and TCP.
const ATTEMPTS: usize = 16;

/// Open sockets of a DNS server: UDP and TCP, at the same port.
#[derive(Debug)]
pub struct DnsSockets {
    pub(super) udp: UdpSocket,
    pub(super) tcp: TcpListener,
    address: SocketAddr,
}

impl DnsSockets {
    /// Listens at port 53 of an address, or at another port if this process may not use it or
    /// another program does.
    ///
    /// # Errors
    /// The address cannot be used, or no port is free.
    pub fn open(address: Ipv4Addr) -> io::Result<Self> {
        match Self::at(address, PORT) {
            Ok(sockets) => return Ok(sockets),
            Err(error) => tracing::debug!(%address, %error, "port 53 cannot be used"),
        }
        let mut attempt = Self::at(address, 0);
        for _ in 1..ATTEMPTS {
            if attempt.is_ok() {
                break;
            }
            attempt = Self::at(address, 0);
        }
        attempt
    }

    fn at(address: Ipv4Addr, port: u16) -> io::Result<Self> {
        let tcp = TcpSocket::new_v4()?;
        tcp.set_reuseaddr(true)?;
        tcp.bind(SocketAddr::from((address, port)))?;
        let tcp = tcp.listen(BACKLOG)?;
        let address = tcp.local_addr()?;
        let udp = std::net::UdpSocket::bind(address)?;
        udp.set_nonblocking(true)?;
        Ok(Self {
            udp: UdpSocket::from_std(udp)?,
            tcp,
            address,
        })
    }

    /// Returns the address at which the server listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}
