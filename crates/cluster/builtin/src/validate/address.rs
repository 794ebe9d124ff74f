//! IP addresses and CIDR blocks.

use std::net::IpAddr;

/// An address in canonical form.
pub(super) fn canonical(text: &str) -> Option<String> {
    text.parse::<IpAddr>()
        .ok()
        .map(|address| address.to_string())
}

/// Returns true if the text is an IPv4 address apart from leading zeros in its numbers.
fn has_leading_zeros(text: &str) -> bool {
    let plain: Vec<String> = text
        .split('.')
        .map(|part| {
            part.parse::<u8>()
                .map_or_else(|_| part.into(), |n| n.to_string())
        })
        .collect();
    text.parse::<IpAddr>().is_err() && plain.join(".").parse::<IpAddr>().is_ok()
}

/// Returns the reason why an address is invalid, in the words of the Kubernetes API server.
pub(super) fn problem(text: &str) -> Option<&'static str> {
    match text.parse() {
        Ok(IpAddr::V6(mapped)) if mapped.to_ipv4_mapped().is_some() => {
            Some("must not be an IPv4-mapped IPv6 address")
        }
        Ok(_) => None,
        Err(_) if has_leading_zeros(text) => Some("must not have leading 0s"),
        Err(_) => Some("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"),
    }
}

/// Parses a CIDR block: its first address and prefix length.
pub(super) fn network(text: &str) -> Option<(IpAddr, u32)> {
    let (address, bits) = text.split_once('/')?;
    let (address, bits): (IpAddr, u32) = (address.parse().ok()?, bits.parse().ok()?);
    let width = if address.is_ipv4() { 32 } else { 128 };
    (bits <= width).then(|| (masked(address, bits), bits))
}

/// Clears all bits of an address after the first `bits`.
fn masked(address: IpAddr, bits: u32) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or_default();
            IpAddr::V4((u32::from(address) & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - bits).unwrap_or_default();
            IpAddr::V6((u128::from(address) & mask).into())
        }
    }
}

/// Returns true if `inner` is a proper subset of `outer`.
pub(super) fn is_inside(inner: (IpAddr, u32), outer: (IpAddr, u32)) -> bool {
    inner.1 > outer.1
        && inner.0.is_ipv4() == outer.0.is_ipv4()
        && masked(inner.0, outer.1) == outer.0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_network_can_contain_another() {
        let net = |text| network(text).unwrap();
        assert!(is_inside(net("10.1.0.0/16"), net("10.0.0.0/8")));
        assert!(!is_inside(net("11.0.0.0/16"), net("10.0.0.0/8")));
        assert!(!is_inside(net("10.0.0.0/8"), net("10.0.0.0/8")));
        assert!(is_inside(net("::1/128"), net("::/0")));
        assert!(!is_inside(net("::1/128"), net("0.0.0.0/0")));
        assert!(
            ["10.0.0.0", "10.0.0.0/33", "x/8", "10.0.0/8"]
                .iter()
                .all(|t| network(t).is_none())
        );
    }
}
