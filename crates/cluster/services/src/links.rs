//! The environment variables that name the Services of a pod's namespace
//! (`enableServiceLinks`), in the format of a kubelet.

use std::net::Ipv4Addr;

use crate::{objects::Service, table::Key};

/// Returns the variables of a Service. The Service of the API server has no variables.
pub(crate) fn of_service(key: &Key, address: Ipv4Addr, service: &Service) -> Vec<(String, String)> {
    match key.is_api_server() {
        true => Vec::new(),
        false => variables(&key.name, address, service),
    }
}

/// Returns the variables of a Service with this name.
fn variables(name: &str, address: Ipv4Addr, service: &Service) -> Vec<(String, String)> {
    let name = word(name);
    let Some(first) = service.ports.first() else {
        return Vec::new();
    };
    let mut all = vec![
        (format!("{name}_SERVICE_HOST"), address.to_string()),
        (format!("{name}_SERVICE_PORT"), first.port.to_string()),
    ];
    for port in service.ports.iter().filter(|port| !port.name.is_empty()) {
        let variable = format!("{name}_SERVICE_PORT_{}", word(&port.name));
        all.push((variable, port.port.to_string()));
    }
    for (index, port) in service.ports.iter().enumerate() {
        let number = port.port;
        let protocol = port.protocol.name().to_ascii_lowercase();
        let url = format!("{protocol}://{address}:{number}");
        if index == 0 {
            all.push((format!("{name}_PORT"), url.clone()));
        }
        let stem = format!("{name}_PORT_{number}_{}", port.protocol);
        all.push((stem.clone(), url));
        all.push((format!("{stem}_PROTO"), protocol));
        all.push((format!("{stem}_PORT"), number.to_string()));
        all.push((format!("{stem}_ADDR"), address.to_string()));
    }
    all
}

/// Returns a name as part of the name of a variable.
fn word(name: &str) -> String {
    name.to_ascii_uppercase().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::{Address, Protocol, ServicePort};

    #[test]
    fn variables_are_those_of_a_kubelet() {
        let address = Ipv4Addr::new(127, 8, 1, 2);
        let port = |name: &str, protocol, port| ServicePort {
            name: name.to_owned(),
            protocol,
            port,
            node_port: None,
        };
        let service = Service {
            uid: "u".to_owned(),
            address: Address::Cluster(address),
            ports: vec![
                port("http-web", Protocol::Tcp, 80),
                port("", Protocol::Udp, 53),
            ],
            affinity: None,
        };
        let text: Vec<String> = variables("my-web", address, &service)
            .into_iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        assert_eq!(
            text,
            [
                "MY_WEB_SERVICE_HOST=127.8.1.2",
                "MY_WEB_SERVICE_PORT=80",
                "MY_WEB_SERVICE_PORT_HTTP_WEB=80",
                "MY_WEB_PORT=tcp://127.8.1.2:80",
                "MY_WEB_PORT_80_TCP=tcp://127.8.1.2:80",
                "MY_WEB_PORT_80_TCP_PROTO=tcp",
                "MY_WEB_PORT_80_TCP_PORT=80",
                "MY_WEB_PORT_80_TCP_ADDR=127.8.1.2",
                "MY_WEB_PORT_53_UDP=udp://127.8.1.2:53",
                "MY_WEB_PORT_53_UDP_PROTO=udp",
                "MY_WEB_PORT_53_UDP_PORT=53",
                "MY_WEB_PORT_53_UDP_ADDR=127.8.1.2",
            ]
        );
    }
}
