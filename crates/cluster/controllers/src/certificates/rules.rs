//! The requirements of Kubernetes' own signers, with Kubernetes' messages.

use super::{facts::Request, signer::CertificateFacts};

/// The signer of client certificates.
pub(super) const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
/// The signer of client certificates for kubelets.
pub(super) const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
/// The signer of server certificates for kubelets.
pub(super) const KUBELET_SERVING: &str = "kubernetes.io/kubelet-serving";

/// The organization of kubelets.
const NODES: &str = "system:nodes";
/// The prefix of the common name of kubelets.
const NODE: &str = "system:node:";

/// Returns true if the controller signs requests for a signer.
pub(super) fn is_own(signer: &str) -> bool {
    matches!(signer, CLIENT | KUBELET_CLIENT | KUBELET_SERVING)
}

/// Checks a request by the rules of its signer.
///
/// # Errors
/// The message of the condition `Failed`.
pub(super) fn check(request: &Request, facts: &CertificateFacts) -> Result<(), String> {
    match request.signer.as_str() {
        CLIENT => client(&request.usages),
        KUBELET_CLIENT => kubelet_client(&request.usages, facts),
        KUBELET_SERVING => kubelet_serving(&request.usages, facts),
        _ => Ok(()),
    }
}

fn client(usages: &[String]) -> Result<(), String> {
    let optional = ["digital signature", "key encipherment", "client auth"];
    if let Some(other) = usages
        .iter()
        .find(|usage| !optional.contains(&usage.as_str()))
    {
        return Err(format!("invalid usage for client certificate: {other}"));
    }
    match usages.iter().any(|usage| usage == "client auth") {
        true => Ok(()),
        false => Err("missing required usage for client certificate: client auth".into()),
    }
}

fn kubelet_client(usages: &[String], facts: &CertificateFacts) -> Result<(), String> {
    let not_allowed = [
        (facts.has_dns_names, "DNS"),
        (facts.has_email_addresses, "Email"),
        (facts.has_ip_addresses, "IP"),
        (facts.has_uris, "URI"),
    ];
    if facts.organizations != [NODES] {
        return Err(format!("subject organization is not {NODES}"));
    }
    if let Some((_, kind)) = not_allowed.iter().find(|(is_there, _)| *is_there) {
        return Err(format!("{kind} subjectAltNames are not allowed"));
    }
    node_name(facts)?;
    exactly(usages, "client auth")
}

fn kubelet_serving(usages: &[String], facts: &CertificateFacts) -> Result<(), String> {
    if facts.organizations != [NODES] {
        return Err(format!("subject organization is not {NODES}"));
    }
    if !facts.has_dns_names && !facts.has_ip_addresses {
        return Err("DNS or IP subjectAltName is required".into());
    }
    if facts.has_email_addresses {
        return Err("Email subjectAltNames are not allowed".into());
    }
    if facts.has_uris {
        return Err("URI subjectAltNames are not allowed".into());
    }
    exactly(usages, "server auth")?;
    node_name(facts)
}

fn node_name(facts: &CertificateFacts) -> Result<(), String> {
    match facts.common_name.starts_with(NODE) {
        true => Ok(()),
        false => Err(format!("subject common name does not begin with {NODE}")),
    }
}

/// Checks that the usages are `purpose`, `digital signature` and, optionally, `key encipherment`.
fn exactly(usages: &[String], purpose: &str) -> Result<(), String> {
    let mut required = ["digital signature", "key encipherment", purpose];
    required.sort_unstable();
    let has = |usage: &str| usages.iter().any(|one| one == usage);
    let no_other = usages
        .iter()
        .all(|usage| required.contains(&usage.as_str()));
    match no_other && has("digital signature") && has(purpose) {
        true => Ok(()),
        false => Err(format!("usages did not match [{}]", required.join(" "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(
        signer: &str,
        usages: &[&str],
        change: impl FnOnce(&mut CertificateFacts),
    ) -> Option<String> {
        let mut facts = CertificateFacts {
            common_name: "system:node:a".into(),
            organizations: vec![NODES.into()],
            ..CertificateFacts::default()
        };
        change(&mut facts);
        let request = Request {
            signer: signer.into(),
            usages: usages.iter().map(|&usage| usage.to_owned()).collect(),
            ..Request::default()
        };
        check(&request, &facts).err()
    }

    const CLIENT_USAGES: &[&str] = &["client auth", "digital signature"];
    const SERVER_USAGES: &[&str] = &["server auth", "digital signature", "key encipherment"];

    #[test]
    fn client_certificates() {
        let of = |usages: &[&str]| problem(CLIENT, usages, |_| ());
        assert_eq!(of(CLIENT_USAGES), None);
        assert_eq!(
            of(&["client auth", "server auth"]).as_deref(),
            Some("invalid usage for client certificate: server auth")
        );
        assert_eq!(
            of(&["key encipherment"]).as_deref(),
            Some("missing required usage for client certificate: client auth")
        );
    }

    #[test]
    fn client_certificates_of_kubelets() {
        let of = |change: fn(&mut CertificateFacts)| {
            problem(KUBELET_CLIENT, CLIENT_USAGES, change).unwrap_or_default()
        };
        assert_eq!(of(|_| ()), "");
        assert_eq!(
            of(|facts| facts.organizations.push("x".into())),
            "subject organization is not system:nodes"
        );
        assert_eq!(
            of(|facts| facts.has_ip_addresses = true),
            "IP subjectAltNames are not allowed"
        );
        assert_eq!(
            of(|facts| facts.common_name = "a".into()),
            "subject common name does not begin with system:node:"
        );
        assert_eq!(
            problem(KUBELET_CLIENT, &["client auth"], |_| ()).as_deref(),
            Some("usages did not match [client auth digital signature key encipherment]")
        );
    }

    #[test]
    fn server_certificates_of_kubelets() {
        let of = |change: fn(&mut CertificateFacts)| {
            problem(KUBELET_SERVING, SERVER_USAGES, change).unwrap_or_default()
        };
        assert_eq!(of(|facts| facts.has_dns_names = true), "");
        assert_eq!(of(|_| ()), "DNS or IP subjectAltName is required");
        assert_eq!(
            of(|facts| {
                facts.has_ip_addresses = true;
                facts.has_uris = true;
            }),
            "URI subjectAltNames are not allowed"
        );
    }

    #[test]
    fn other_signers_are_not_signed() {
        assert!(is_own(CLIENT));
        assert!(!is_own("kubernetes.io/legacy-unknown"));
        assert!(!is_own("example.com/own"));
    }
}
