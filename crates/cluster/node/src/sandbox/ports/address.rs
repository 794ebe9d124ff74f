//! Socket addresses in the memory of a process, and the addresses that replace them. Pure.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The sizes of `sockaddr_in` and of `sockaddr_in6` without its last field, in bytes.
const V4_SIZE: usize = 8;
const V6_SIZE: usize = 24;

/// Reads a socket address. Returns `None` for families other than IPv4 and IPv6.
pub(super) fn read(bytes: &[u8]) -> Option<SocketAddr> {
    let family = i32::from(u16::from_ne_bytes(bytes.first_chunk().copied()?));
    let port = u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?);
    let ip = match family {
        libc::AF_INET => {
            let octets: [u8; 4] = bytes.get(4..V4_SIZE)?.try_into().ok()?;
            IpAddr::V4(octets.into())
        }
        libc::AF_INET6 => {
            let octets: [u8; 16] = bytes.get(8..V6_SIZE)?.try_into().ok()?;
            IpAddr::V6(octets.into())
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

/// Returns true if a server at this address would share it with other pods, because it is the
/// address of all interfaces or of the machine.
fn is_shared(ip: IpAddr) -> bool {
    let v4 = |ip: Ipv4Addr| ip.is_unspecified() || ip == Ipv4Addr::LOCALHOST;
    match ip {
        IpAddr::V4(ip) => v4(ip),
        IpAddr::V6(ip) => match ip.to_ipv4_mapped() {
            Some(ip) => v4(ip),
            None => ip.is_unspecified() || ip == Ipv6Addr::LOCALHOST,
        },
    }
}

/// Returns the pod's own address in place of an address that pods share, in the same family, or
/// `None` if the address does not change. A port that the kernel chooses has no conflicts.
pub(super) fn own(address: SocketAddr, pod: Ipv4Addr) -> Option<SocketAddr> {
    if address.port() == 0 || !is_shared(address.ip()) {
        return None;
    }
    let ip = match address.ip() {
        IpAddr::V4(_) => IpAddr::V4(pod),
        IpAddr::V6(_) => IpAddr::V6(pod.to_ipv6_mapped()),
    };
    Some(SocketAddr::new(ip, address.port()))
}

/// Returns `to`, in the family of `address`, if the address is `from`.
pub(super) fn replaced(
    address: SocketAddr,
    from: SocketAddr,
    to: SocketAddr,
) -> Option<SocketAddr> {
    let is_from = address.port() == from.port() && address.ip().to_canonical() == from.ip();
    let ip = match (address.ip(), to.ip()) {
        (IpAddr::V6(_), IpAddr::V4(ip)) => IpAddr::V6(ip.to_ipv6_mapped()),
        (_, ip) => ip,
    };
    is_from.then_some(SocketAddr::new(ip, to.port()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    const POD: Ipv4Addr = Ipv4Addr::new(127, 16, 0, 9);

    #[test]
    fn addresses_that_pods_share_become_the_pods_own() {
        for (text, expected) in [
            ("0.0.0.0:80", Some("127.16.0.9:80")),
            ("127.0.0.1:80", Some("127.16.0.9:80")),
            ("[::]:80", Some("[::ffff:127.16.0.9]:80")),
            ("[::1]:80", Some("[::ffff:127.16.0.9]:80")),
            ("[::ffff:0.0.0.0]:80", Some("[::ffff:127.16.0.9]:80")),
            ("[::ffff:127.0.0.1]:80", Some("[::ffff:127.16.0.9]:80")),
            ("0.0.0.0:0", None),
            ("127.16.0.9:80", None),
            ("10.0.0.1:80", None),
            ("[fd00::1]:80", None),
        ] {
            let expected: Option<SocketAddr> = expected.map(|text| text.parse().unwrap());
            assert_eq!(own(text.parse().unwrap(), POD), expected, "{text}");
        }
    }

    #[test]
    fn a_destination_is_replaced_in_its_family() {
        let of = |address: &str| {
            let (from, to) = ("127.8.0.10:53", "127.8.0.10:4053");
            let [address, from, to] = [address, from, to].map(|text| text.parse().unwrap());
            replaced(address, from, to).map(|address| address.to_string())
        };
        assert_eq!(of("127.8.0.10:53").as_deref(), Some("127.8.0.10:4053"));
        let mapped = of("[::ffff:127.8.0.10]:53");
        assert_eq!(mapped.as_deref(), Some("[::ffff:127.8.0.10]:4053"));
        assert_eq!(of("127.8.0.10:54"), None);
        assert_eq!(of("127.8.0.11:53"), None);
    }

    #[test]
    fn addresses_are_read_from_memory() {
        let mut v4 = [0; 16];
        v4[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
        v4[2..8].copy_from_slice(&[0x1f, 0x90, 127, 0, 0, 1]);
        assert_eq!(read(&v4), Some("127.0.0.1:8080".parse().unwrap()));
        let mut v6 = [0; 28];
        v6[..2].copy_from_slice(&(libc::AF_INET6 as u16).to_ne_bytes());
        v6[2..4].copy_from_slice(&[0, 80]);
        v6[23] = 1;
        assert_eq!(read(&v6), Some("[::1]:80".parse().unwrap()));
        let unix = (libc::AF_UNIX as u16).to_ne_bytes();
        assert_eq!(read(&unix), None);
    }

    proptest! {
        #[test]
        fn no_bytes_cause_a_panic(bytes: Vec<u8>) {
            let _ = read(&bytes);
        }
    }
}
