//! The addresses that a request comes from.

use std::net::IpAddr;

use http::HeaderMap;

/// Returns the addresses in the order of Kubernetes: the addresses in `X-Forwarded-For`, the
/// address in `X-Real-Ip`, and the address of the connection, without consecutive duplicates. The
/// headers are untrusted: clients can send any address.
pub(super) fn addresses(headers: &HeaderMap, remote: Option<IpAddr>) -> Vec<String> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let forwarded = text("x-forwarded-for").unwrap_or_default().split(',');
    let mut found: Vec<IpAddr> = forwarded
        .filter_map(|one| one.trim().parse().ok())
        .collect();
    let real = text("x-real-ip").and_then(|one| one.trim().parse().ok());
    if let Some(real) = real.filter(|real| !found.contains(real)) {
        found.push(real);
    }
    if let Some(remote) = remote.filter(|remote| found.last() != Some(remote)) {
        found.push(remote);
    }
    found.iter().map(IpAddr::to_string).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn proxies_come_first() {
        let local: IpAddr = "127.0.0.1".parse().unwrap();
        let mut headers = HeaderMap::new();
        assert_eq!(addresses(&headers, None), [""; 0]);
        assert_eq!(addresses(&headers, Some(local)), ["127.0.0.1"]);
        headers.insert(
            "x-forwarded-for",
            "10.0.0.1, nonsense, 10.0.0.2".parse().unwrap(),
        );
        headers.insert("x-real-ip", "10.0.0.1".parse().unwrap());
        assert_eq!(
            addresses(&headers, Some(local)),
            ["10.0.0.1", "10.0.0.2", "127.0.0.1"]
        );
        headers.insert("x-real-ip", "127.0.0.1".parse().unwrap());
        assert_eq!(
            addresses(&headers, Some(local)),
            ["10.0.0.1", "10.0.0.2", "127.0.0.1"]
        );
    }
}
