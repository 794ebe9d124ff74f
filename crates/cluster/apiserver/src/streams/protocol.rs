//! Negotiates the subprotocol of an upgraded connection.

use http::{HeaderMap, HeaderName, header};

/// The encoding of channels in WebSocket messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Framing {
    /// Text messages: a digit for the channel, then base64.
    pub(crate) base64: bool,
    /// Message 255 closes a channel.
    pub(crate) closes: bool,
    /// The form in which the exit of a command is reported.
    pub(crate) report: Report,
}

/// The form in which the exit of a command is reported on the error channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Report {
    /// As a `Status`.
    Status,
    /// As text. Success is not reported.
    Text,
}

/// A protocol's name and its framing.
type Named = (&'static str, Framing);

const fn framing(base64: bool, closes: bool, report: Report) -> Framing {
    Framing {
        base64,
        closes,
        report,
    }
}

/// WebSocket protocols of exec and attach.
const COMMANDS: [Named; 6] = [
    ("v5.channel.k8s.io", framing(false, true, Report::Status)),
    ("v4.channel.k8s.io", framing(false, false, Report::Status)),
    (
        "v4.base64.channel.k8s.io",
        framing(true, false, Report::Status),
    ),
    ("channel.k8s.io", framing(false, false, Report::Text)),
    ("base64.channel.k8s.io", framing(true, false, Report::Text)),
    ("", framing(false, false, Report::Text)),
];

/// WebSocket protocols of port-forward with channels.
const PORTS: [Named; 3] = [
    ("v4.channel.k8s.io", framing(false, false, Report::Text)),
    (
        "v4.base64.channel.k8s.io",
        framing(true, false, Report::Text),
    ),
    ("", framing(false, false, Report::Text)),
];

/// WebSocket protocols of responses that are only read.
const READINGS: [Named; 3] = [
    ("binary.k8s.io", framing(false, false, Report::Text)),
    ("base64.binary.k8s.io", framing(true, false, Report::Text)),
    ("", framing(false, false, Report::Text)),
];

/// WebSocket protocol of port-forward that tunnels SPDY.
pub(crate) const TUNNEL: &str = "SPDY/3.1+portforward.k8s.io";

/// SPDY protocols of exec and attach, the newest first. The first version has
/// no name.
const SPDY_COMMANDS: [(&str, Report); 4] = [
    ("v4.channel.k8s.io", Report::Status),
    ("v3.channel.k8s.io", Report::Text),
    ("v2.channel.k8s.io", Report::Text),
    ("channel.k8s.io", Report::Text),
];

/// SPDY protocol of port-forward.
pub(crate) const SPDY_PORTS: &str = "portforward.k8s.io";

/// The header in which SPDY clients list protocols.
pub(crate) const SPDY_HEADER: HeaderName = HeaderName::from_static("x-stream-protocol-version");

/// Returns the protocols that a client offers, in the client's order.
pub(crate) fn offered(headers: &HeaderMap, name: &HeaderName) -> Vec<String> {
    let values = headers.get_all(name).iter();
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|value| value.trim().to_owned())
        .filter(|value| !value.is_empty())
        .collect()
}

/// Returns true if a header's comma-separated list contains this word.
pub(crate) fn names(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    let offered = offered(headers, name);
    offered.iter().any(|other| other.eq_ignore_ascii_case(word))
}

fn choose(known: &[Named], offered: &[String]) -> Option<Named> {
    let find = |name: &str| known.iter().find(|(other, _)| *other == name).copied();
    if offered.is_empty() {
        return find("");
    }
    offered.iter().find_map(|name| find(name))
}

/// Selects the WebSocket protocol for exec and attach; `None` if no offered
/// protocol is supported.
pub(crate) fn of_command(headers: &HeaderMap) -> Option<Named> {
    choose(
        &COMMANDS,
        &offered(headers, &header::SEC_WEBSOCKET_PROTOCOL),
    )
}

/// Selects the WebSocket protocol for port-forward with channels.
pub(crate) fn of_ports(headers: &HeaderMap) -> Option<Named> {
    choose(&PORTS, &offered(headers, &header::SEC_WEBSOCKET_PROTOCOL))
}

/// Selects the WebSocket protocol of a response that is only read.
pub(crate) fn of_reading(headers: &HeaderMap) -> Option<Named> {
    choose(
        &READINGS,
        &offered(headers, &header::SEC_WEBSOCKET_PROTOCOL),
    )
}

/// Selects the SPDY protocol for exec and attach.
pub(crate) fn of_spdy(headers: &HeaderMap) -> Result<(&'static str, Report), String> {
    let offered = offered(headers, &SPDY_HEADER);
    if offered.is_empty() {
        return Ok(("", Report::Text));
    }
    let known = offered
        .iter()
        .find_map(|name| SPDY_COMMANDS.into_iter().find(|(known, _)| known == name));
    known.ok_or_else(|| {
        let accepted: Vec<&str> = SPDY_COMMANDS.iter().map(|(name, _)| *name).collect();
        no_common_protocol(&offered, &accepted)
    })
}

/// The message that client and server have no protocol in common.
pub(crate) fn no_common_protocol(offered: &[String], accepted: &[&str]) -> String {
    format!(
        "unable to upgrade: unable to negotiate protocol: client supports [{}], server accepts [{}]",
        offered.join(" "),
        accepted.join(" ")
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_clients_order_of_protocols_wins() {
        let with = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::SEC_WEBSOCKET_PROTOCOL, value.parse().unwrap());
                headers.append(SPDY_HEADER, value.parse().unwrap());
            }
            headers
        };
        let both = with(&["v5.channel.k8s.io, v4.channel.k8s.io"]);
        let (name, framing) = of_command(&both).unwrap();
        assert_eq!((name, framing.closes), ("v5.channel.k8s.io", true));
        assert_eq!(of_ports(&both).unwrap().0, "v4.channel.k8s.io");
        assert_eq!(of_spdy(&both).unwrap().0, "v4.channel.k8s.io");
        let old = with(&["other", "base64.channel.k8s.io", "v4.channel.k8s.io"]);
        assert!(of_command(&old).unwrap().1.base64);
        assert_eq!(of_command(&with(&[])).unwrap().1.report, Report::Text);
        assert_eq!(of_command(&with(&["other"])), None);
        assert!(
            of_spdy(&with(&["other"]))
                .unwrap_err()
                .contains("client supports [other], server accepts [v4.channel.k8s.io")
        );
    }
}
