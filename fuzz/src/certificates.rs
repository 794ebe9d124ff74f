//! Certificate requests: any bytes are read or refused, as PEM and as the content of PEM.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use longshore_apiserver::CertificateRequest;

pub fn check(data: &[u8]) {
    let _ = CertificateRequest::read(data);
    let pem = format!(
        "-----BEGIN CERTIFICATE REQUEST-----\n{}\n-----END CERTIFICATE REQUEST-----\n",
        STANDARD.encode(data)
    );
    if let Ok(request) = CertificateRequest::read(pem.as_bytes()) {
        let read = CertificateRequest::read(pem.as_bytes());
        assert_eq!(read, Ok(request));
    }
}
