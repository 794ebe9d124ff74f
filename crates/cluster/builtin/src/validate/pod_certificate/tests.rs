//! Tests with requests and certificates made by OpenSSL and rcgen.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use rcgen::{
    CertificateParams, DistinguishedName, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384,
    PKCS_ED25519, SanType, string::Ia5String,
};
use serde_json::{Value, json};

use super::*;

// Empty requests that OpenSSL signed.
const RSA2048: &str = "\
    MIICRTCCAS0CAQAwADCCASIwDQYJKoZIhvcNAQEBBQADggEPADCCAQoCggEBAKYFS++LNI6G8A324Trayt7G6T6R\
    SPifC27/qTV1EViBUxu3ZTACb/NBzE2/bkH0TmreDt0PHDEvFCzMSvyFlWbPGmuaDxLBs1OPP2rro53AnVMW1Zka\
    dBzKQjRN8LJ1pSECRK8DLwHubU/Qglxry8RbtmGmh25pupiGCJKQflqHpuqsD3U0BtRPgYT1/xmYOL+O8OJgr3TJ\
    LPGn/GQwO6dAxlqrdEPomiS/cApd9iNsj8/RN7VCsSEUnAZKBs0NrgAmO9MhUFMybj2zpqrsNkQQhRMt329kQHKG\
    MGPZ6Cs07WmcLd4kgfgroyWj9jFUX4BQ4j9lvt84P/VIL83pvzMCAwEAAaAAMA0GCSqGSIb3DQEBCwUAA4IBAQAI\
    WfVkqEvBdUCEdqy9FUdqJP4o18SPO9rYSveEL/oNj/+1cboprarmLDgBU7PmayQLR5nAiqBi9eXuJtqYJF4Kuvsu\
    X4DYvmKyL5Ae6lYkeoDd+xs7XGxiy4rO0JpJIh/qUjE2FG81NzVwZjqN9fr6qeYk6IyIRG4k2Q/TzQ3wPu2xniMT\
    RcrlPx3bc3iLe1URxE6kJbGcIFVO6Bel1N0uBBAiNVXZBqpVWSL5By5LrHJiYwRboBFjGkmMRNcEv+GPX95vL+HP\
    /EFxsIr4F2LqUIwKz0/Q2hJ6XSgFwK3LVZC2QTJUf9La/rqQE3jgUyMlCL3p+ffBKpovhr5khrub";
const RSA3072: &str = "\
    MIIDRTCCAa0CAQAwADCCAaIwDQYJKoZIhvcNAQEBBQADggGPADCCAYoCggGBALOEy8nNAwkCkGEujf9S+RAu6Yh+\
    4bsNiZ21KMLRaN+pGopXH9RnChGGNWvenIwp6pPQFFS+/9GOho5Ay5WrIyduhbP+UYQwddclzrlnHixjts/pwkr/\
    +PsQmox0+VOTTqMLnfijffG6As8MZLKIN++YjS5JhbuXn3RzAGQSKIhPFdiEWTw98hKUhsTTjdOpC8lmWq8DFKeE\
    8oiaZnWCt7OBl2exJksGmajlteGd8JnS+0vlTssAcOUu2D4fzc/NFgLYHO/9XarhUnBDzvgp44VGvmKAkLyxaDdd\
    0MIw9u+YMCvqkTliyNSIlJjqmJwLdBOnmppRGzqbt6xGrFKlpFjcPTgidybhw4r0ZDclIogqq20BjrobiIH+QSjS\
    D0eBQ790nR0rG/Q3eSSfT7dVubDFx0vxR2aOfKkj+Yps+xcaYTQTsKXRL+nlI1GApNu/xxhPgA8Kz6sWnniBC6kp\
    XQRUc+UHjPkTEpN0A4kslwsgr6HUhvO9/sGnN1LnE+3HhQIDAQABoAAwDQYJKoZIhvcNAQELBQADggGBAFyF9lmm\
    HbggQLIVIJz9GEE7rx/H5xA9hZn/+kwtWsnZHD3XqUPXM6eOg+tEbM+wKKwoEgb++NfOz74KhXZePPgHTk0axLTH\
    dowxvezrKCNZWfw13CJAFuREY1LlXt2tYjI6MY42va70LZGApGD3n0Anwp9LLZHdalW6iDhsaNAiNI6sD2axnVOW\
    DUI4IrIPDI14tpimu/IZ2A+W+6OPxybWxYJ5bfHQa5yIAlnB3jU/tcxdiohC9HMUCfu+XX9u1oBnH4lKYlG+rEWo\
    kcP8SSVXxAaZFEJM5N+kEyiNCzxm2FQ06ja3YsX5Ar69qQK9vxTayCq1fTJiX59tO2JlxoI1goK6O3pUDs9M8XDC\
    bS4pN8Um+xJ2n1roqyvaNcQ4j+/mnwF1p7Hrs9wCHqBqJKfEnFe2B6KmRuZnSqiDSPvU3jldOmsBtYZXDw5S10Nz\
    Bl6/+TpwmvQnCDkIDt+CPfmTi6Gumcanz6jxVmbS4CufWOLh7usdeSI9X+/qZGpDaA==";
const P224: &str = "\
    MIGnMFcCAQAwADBOMBAGByqGSM49AgEGBSuBBAAhAzoABOhqZ58mqCVzgZCz+yGZj/+T+FxZLfIC8ilxZ36pPufB\
    TX33A4cXHWGlmoBjGYp3fBeQtgHTA/isoAAwCgYIKoZIzj0EAwIDQAAwPQIdAIaJtYHpgsoBSAGkdSjwAcmIFq4i\
    WP7ofhX5w0UCHBdvRWY0feeaH4B3qQ7vtbeWtwXI+AXq0LeUhFw=";
const P521: &str = "\
    MIIBQzCBpQIBADAAMIGbMBAGByqGSM49AgEGBSuBBAAjA4GGAAQBa3r9zwUiEWEvMVGAyACDd5pxSpKWCwvHMBJx\
    CCSAhIyn5cvjsGndCYXfXrg5waDJi3wiKWGZGm/5nWEWfPZcqDQAuAxOsjrw5YI27ITRiyITs5x6bhDWPu0rKX2k\
    T+INjgnO05e5LxylaCJ8Kt2m4ddKxdfEcj+BQAkZbYCLj1RastygADAKBggqhkjOPQQDBAOBjAAwgYgCQgCMO91v\
    IUeI/a7DxbvKE4rEuXPvlWYBSTbhAnBIzIGE7tE4l1bMau0WipExkpbgPF+dK8mu/Hvx6xzCZM/UUTWOpAJCAXuT\
    5zlVwIoMP3iyI+GOf3yFIZMx0NyOY6vtKiLM32j2CC+4ZShQtMgGWkkh86H3aDwPO1Do2qJNYYKqNDkYMIgq";
const ED448: &str = "\
    MIHKMEwCAQAwADBDMAUGAytlcQM6AETqC46p5Pb5PcdWTIYnINTtKjnQtxlr9TVUYxVXR4+wH+rOe21aVenZhOvN\
    3qTRR+bngB+fgPXzgKAAMAUGAytlcQNzABVQyiD6J8re7Afq6S/NEShO37QID1QeJoO+KdkgozsyMG4kUWt8QoBT\
    1mnnRzG8KmDX+tvsvCvjgPUdpOn339YvQbuFAgdSWcwCASgdLH6CUmHDKwwRDDcIIs8A9zYLoNqLiX5E7pffMzNb\
    q5dUSWMsAA==";

fn key() -> KeyPair {
    KeyPair::generate().unwrap()
}

/// An empty request for a key, as a kubelet makes it.
fn empty(key: &KeyPair) -> String {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    STANDARD.encode(params.serialize_request(key).unwrap().der())
}

fn request(pkcs10: &str) -> Value {
    json!({"spec": {
        "signerName": "a.example/signer",
        "podName": "p", "podUID": "1",
        "serviceAccountName": "default", "serviceAccountUID": "2",
        "nodeName": "n", "nodeUID": "3",
        "maxExpirationSeconds": 86_400,
        "stubPKCS10Request": pkcs10,
    }})
}

fn shown(causes: CauseList) -> Vec<String> {
    let shown = |cause: StatusCause| format!("{}: {}", cause.field, cause.message);
    causes.into_iter().map(shown).collect()
}

fn problems(request: &Value) -> Vec<String> {
    let mut causes = CauseList::new();
    new_request(request.as_object().unwrap(), &mut causes);
    shown(causes)
}

#[test]
fn a_request_proves_the_possession_of_a_supported_key() {
    for algorithm in [
        &PKCS_ECDSA_P256_SHA256,
        &PKCS_ECDSA_P384_SHA384,
        &PKCS_ED25519,
    ] {
        let key = KeyPair::generate_for(algorithm).unwrap();
        assert_eq!(problems(&request(&empty(&key))), [""; 0]);
    }
    for good in [RSA3072, P521] {
        assert_eq!(problems(&request(good)), [""; 0]);
    }
    let path = "spec.stubPKCS10Request: Invalid value: ";
    for (bad, problem) in [
        (
            RSA2048,
            "\"2048-bit modulus\": RSA keys must have modulus size 3072 or 4096",
        ),
        (
            P224,
            "\"curve P-224\": elliptic public keys must use curve P256, P384, or P521",
        ),
        (
            ED448,
            "unknown public key type; supported types are Ed25519, ECDSA, and RSA",
        ),
        ("AAAA", "must be a valid PKCS#10 CSR"),
    ] {
        assert_eq!(problems(&request(bad)), [format!("{path}{problem}")]);
    }
    let missing = "spec: Invalid value: exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set";
    assert_eq!(problems(&request("")), [missing]);
    let long = STANDARD.encode(vec![0; MAX_REQUEST + 1]);
    let too_long = "spec.stubPKCS10Request: Too long: may not be more than 10240 bytes";
    assert_eq!(problems(&request(&long)), [too_long]);
}

#[test]
fn a_changed_request_has_no_valid_signature() {
    for pkcs10 in [RSA3072, P521, &empty(&key())] {
        let mut der = STANDARD.decode(pkcs10).unwrap();
        *der.last_mut().unwrap() ^= 1;
        assert_eq!(
            problems(&request(&STANDARD.encode(der))),
            ["spec.stubPKCS10Request: Invalid value: invalid signature"]
        );
    }
}

#[test]
fn fields_of_a_request_are_validated() {
    let pkcs10 = empty(&key());
    let of = |field: &str, value: Value| {
        let mut request = request(&pkcs10);
        request["spec"][field] = value;
        problems(&request)
    };
    let range = |max: i64| {
        format!(
            "spec.maxExpirationSeconds: Invalid value: 3599: must be in the range [3600, {max}]"
        )
    };
    assert_eq!(of("maxExpirationSeconds", json!(3599)), [range(7_862_400)]);
    assert_eq!(of("maxExpirationSeconds", json!(7_862_400)), [""; 0]);
    let mut kubernetes = request(&pkcs10);
    kubernetes["spec"]["signerName"] = json!("kubernetes.io/kube-apiserver-client-pod");
    assert_eq!(problems(&kubernetes), [""; 0]);
    kubernetes["spec"]["maxExpirationSeconds"] = json!(3599);
    assert_eq!(problems(&kubernetes), [range(86_400)]);

    assert_eq!(
        of("podUID", json!("")),
        ["spec.podUID: Invalid value: \"\": must not be empty"]
    );
    assert_eq!(
        of("nodeUID", json!("1".repeat(129))),
        ["spec.nodeUID: Too long: may not be more than 128 bytes"]
    );
    let name = of("nodeName", json!("A")).pop().unwrap();
    assert!(name.starts_with("spec.nodeName: Invalid value: \"A\": a lowercase RFC 1123"));

    let annotations = |value| of("unverifiedUserAnnotations", value);
    assert_eq!(annotations(json!({"A.example/b": "any\ntext"})), [""; 0]);
    assert_eq!(
        annotations(json!({"Plain": ""})),
        [
            "spec.unverifiedUserAnnotations: Invalid value: \"plain\": must be a domain-prefixed key (such as \"acme.io/foo\")"
        ]
    );
    assert_eq!(
        annotations(json!({"": ""})),
        ["spec.unverifiedUserAnnotations: Required value"]
    );
    assert_eq!(
        annotations(json!({"a.example/b": "x".repeat(MAX_ANNOTATIONS)})),
        ["spec.unverifiedUserAnnotations: Too long: may not be more than 262144 bytes"]
    );
}

/// An issued request.
struct Issued {
    request: Value,
    status: Value,
    now: Timestamp,
}

fn now() -> Timestamp {
    "2026-01-01T00:01:00Z".parse().unwrap()
}

/// A certificate that is valid from the start of 2026.
fn certificate(key: &KeyPair, hours: u64, names: Vec<SanType>) -> String {
    let mut params = CertificateParams::default();
    params.subject_alt_names = names;
    params.not_before = rcgen::date_time_ymd(2026, 1, 1);
    params.not_after = params.not_before + Duration::from_secs(hours * 3600);
    params.self_signed(key).unwrap().pem()
}

fn issued() -> Issued {
    let key = key();
    Issued {
        request: request(&empty(&key)),
        status: json!({
            "conditions": [condition("Issued")],
            "certificateChain": certificate(&key, 24, Vec::new()),
            "notBefore": "2026-01-01T00:00:00Z",
            "beginRefreshAt": "2026-01-01T12:00:00Z",
            "notAfter": "2026-01-02T00:00:00Z",
        }),
        now: now(),
    }
}

fn condition(kind: &str) -> Value {
    json!({"type": kind, "status": "True", "reason": "Why", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"})
}

impl Issued {
    fn problems(&self) -> Vec<String> {
        self.problems_after(&json!({}))
    }

    fn problems_after(&self, status: &Value) -> Vec<String> {
        let with = |status: &Value| {
            let mut request = self.request.clone();
            request["status"] = status.clone();
            request
        };
        let (before, after) = (with(status), with(&self.status));
        let mut causes = CauseList::new();
        let objects = [&before, &after].map(|object| object.as_object().unwrap());
        super::status(objects[0], objects[1], self.now, &mut causes);
        shown(causes)
    }

    /// Changes a field of the status.
    fn with(mut self, field: &str, value: Value) -> Self {
        self.status[field] = value;
        self
    }
}

#[test]
fn a_certificate_is_issued_once() {
    let first = issued();
    assert_eq!(first.problems(), [""; 0]);
    assert_eq!(first.problems_after(&first.status), [""; 0]);
    let later = "2026-01-01T13:00:00Z";
    let changed = first.status.clone();
    let changed = Issued {
        status: changed,
        ..first
    }
    .with("beginRefreshAt", json!(later));
    assert_eq!(
        changed.problems_after(&json!({"conditions": [condition("Denied")]})),
        [
            "status: Invalid value: immutable after PodCertificateRequest is issued, denied, or failed"
        ]
    );
    // Several certificates, and text between them.
    let more = issued();
    let chain = more.status["certificateChain"].as_str().unwrap();
    let chain = format!("text\n{chain}text\n{}", certificate(&key(), 1, Vec::new()));
    assert_eq!(
        more.with("certificateChain", json!(chain)).problems(),
        [""; 0]
    );
}

#[test]
fn conditions_decide_about_a_request() {
    let immutable = "status: Invalid value: status is immutable unless transitioning to \"Issued\", \"Denied\", or \"Failed\"";
    assert_eq!(
        issued().with("conditions", json!([])).problems(),
        [immutable]
    );
    let with_certificate = "status: Invalid value: non-condition status fields must be empty when denying or failing the PodCertificateRequest";
    let denied = || issued().with("conditions", json!([condition("Denied")]));
    assert_eq!(denied().problems(), [with_certificate]);
    let mut only_denied = denied();
    only_denied.status = json!({"conditions": [condition("Failed")]});
    assert_eq!(only_denied.problems(), [""; 0]);

    let two = json!([condition("Issued"), condition("Denied")]);
    assert_eq!(
        issued().with("conditions", two).problems(),
        [
            "status.conditions.[1].type: Invalid value: \"Denied\": There may be at most one condition with type \"Issued\", \"Denied\", or \"Failed\""
        ]
    );
    let mut unknown = condition("Ready");
    unknown["status"] = json!("Maybe");
    unknown["reason"] = json!("a b");
    unknown["lastTransitionTime"] = Value::Null;
    let problems = issued().with("conditions", json!([unknown])).problems();
    let starts = [
        "status.conditions.[0].type: Unsupported value: \"Ready\": supported values: \"Issued\", \"Denied\", \"Failed\"",
        "status.conditions[0].status: Unsupported value: \"Maybe\": supported values: \"False\", \"True\", \"Unknown\"",
        "status.conditions[0].lastTransitionTime: Required value",
        "status.conditions[0].reason: Invalid value: \"a b\": a condition reason must start",
    ];
    assert_eq!(problems.len(), starts.len(), "{problems:#?}");
    for (problem, start) in problems.iter().zip(starts) {
        assert!(problem.starts_with(start), "{problem}");
    }
    let mut negative = condition("Issued");
    negative["status"] = json!("False");
    assert_eq!(
        issued().with("conditions", json!([negative])).problems(),
        ["status.conditions.[0].status: Unsupported value: \"False\": supported values: \"True\""]
    );
}

#[test]
fn the_times_are_those_of_the_certificate() {
    let of = |field: &str, value: &str| issued().with(field, json!(value)).problems();
    let path = |field: &str, value: &str| format!("status.{field}: Invalid value: {value:?}: ");
    for (field, value, detail) in [
        (
            "notBefore",
            "2026-01-01T00:00:01Z",
            "must be set to the NotBefore time encoded in the leaf certificate",
        ),
        (
            "notAfter",
            "2026-01-01T00:00:01Z",
            "must be set to the NotAfter time encoded in the leaf certificate",
        ),
        (
            "beginRefreshAt",
            "2026-01-01T00:09:59Z",
            "must be at least 10 minutes after status.notBefore",
        ),
        (
            "beginRefreshAt",
            "2026-01-01T23:50:01Z",
            "must be at least 10 minutes before status.notAfter",
        ),
    ] {
        assert_eq!(of(field, value), [path(field, value) + detail]);
    }
    let mut late = issued();
    late.now += SignedDuration::from_mins(4);
    assert_eq!(
        late.problems(),
        [path("notBefore", "2026-01-01T00:00:00Z")
            + "must be set to within 5 minutes of kube-apiserver's current time"]
    );
    let missing = issued().with("notAfter", Value::Null).problems();
    assert_eq!(
        missing,
        [
            "status.notAfter: Required value: must be present and consistent with the issued certificate"
        ]
    );
}

#[test]
fn the_lifetime_is_as_requested() {
    let with_max = |seconds: i64| {
        let mut issued = issued();
        issued.request["spec"]["maxExpirationSeconds"] = json!(seconds);
        issued.problems()
    };
    assert_eq!(
        with_max(3600),
        [
            "status.certificateChain: Invalid value: 86400000000000: leaf certificate lifetime must be <= spec.maxExpirationSeconds (3600)"
        ]
    );
    let key = key();
    let mut short = issued()
        .with("certificateChain", json!(certificate(&key, 0, Vec::new())))
        .with("notAfter", json!("2026-01-01T00:00:00Z"));
    short.request = request(&empty(&key));
    assert_eq!(
        short.problems(),
        ["status.certificateChain: Invalid value: 0: leaf certificate lifetime must be >= 1 hour"]
    );
}

#[test]
fn a_chain_has_certificates_of_the_key() {
    let of = |chain: &str| issued().with("certificateChain", json!(chain)).problems();
    let ends = |chain: &str, end: &str| {
        let problems = of(chain);
        assert_eq!(problems.len(), 1, "{problems:#?}");
        let problem = &problems[0];
        assert!(problem.starts_with("status.certificateChain: Invalid value: \""));
        assert!(problem.ends_with(end), "{problem}");
    };
    ends(
        "",
        "issued certificate chain must contain at least one certificate",
    );
    ends(
        &key().serialize_pem(),
        "issued certificate chain must consist entirely of CERTIFICATE PEM blocks",
    );
    ends(
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        "leaf certificate does not parse as valid X.509",
    );
    ends(
        &certificate(&key(), 24, Vec::new()),
        "leaf certificate was not issued to the requested public key",
    );
    assert_eq!(
        of(&"x".repeat(100 * 1024 + 1)),
        ["status.certificateChain: Too long: may not be more than 102400 bytes"]
    );
    let good = issued();
    let leaf = good.status["certificateChain"].as_str().unwrap().to_owned();
    let with = |more: &str| {
        let problems = Issued {
            request: good.request.clone(),
            status: good.status.clone(),
            now: good.now,
        }
        .with("certificateChain", json!(format!("{leaf}{more}")))
        .problems();
        problems.join("")
    };
    let bad = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert!(with(bad).ends_with("intermediate certificate does not parse as valid X.509"));
    let other = with(&key().serialize_pem());
    assert!(
        other.ends_with("must consist entirely of CERTFICATE PEM blocks"),
        "{other}"
    );
}

#[test]
fn names_of_a_certificate_are_valid() {
    let key = key();
    let text = |text: &str| Ia5String::try_from(text).unwrap();
    let names = vec![
        SanType::DnsName(text("a..example.")),
        SanType::Rfc822Name(text("ana")),
        SanType::URI(text("spiffe://a/b")),
    ];
    let mut named = issued().with("certificateChain", json!(certificate(&key, 24, names)));
    named.request = request(&empty(&key));
    assert_eq!(
        named.problems(),
        [
            "status.certificateChain: Invalid value: \"a..example.\": leaf certificate's DNSName should not contain '..'",
            "status.certificateChain: Invalid value: \"a..example.\": leaf certificate's DNSName should not start or end with '.'",
            "status.certificateChain: Invalid value: \"ana\": leaf certificate should not contain invalid EmailAddress",
        ]
    );
}

#[test]
fn the_spec_is_fixed() {
    let before = request("AAAA");
    let mut after = before.clone();
    after["spec"]["podName"] = json!("other");
    let mut causes = CauseList::new();
    let objects = [&before, &after].map(|object| object.as_object().unwrap());
    update(objects[0], objects[1], &mut causes);
    let problems = shown(causes);
    assert!(problems[0].starts_with("spec: Invalid value: "));
    assert!(problems[0].ends_with(": field is immutable"));
}

proptest! {
    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = leaf::Leaf::read(&bytes);
        let _ = problems(&request(&STANDARD.encode(bytes)));
    }

    #[test]
    fn changed_requests_do_not_panic(at in 0..200_usize, byte: u8) {
        let mut der = STANDARD.decode(P521).unwrap();
        der[at] = byte;
        let _ = problems(&request(&STANDARD.encode(der)));
    }
}
