//! Validation of ClusterTrustBundles: certificates of authorities, in PEM.

use std::collections::BTreeMap;

use longshore_model::CauseList;
use yasna::{ASN1Result, Tag, models::ObjectIdentifier};

use super::{
    certificate::signer_name,
    field_value::{Causes, FieldValue},
    pem,
};
use crate::{cause::Cause, json::Object};

/// The maximum size of `spec.trustBundle` in bytes.
const MAX_SIZE: usize = 1 << 20;
/// The extension that shows whether the certificate belongs to a certificate authority.
const BASIC_CONSTRAINTS: &[u64] = &[2, 5, 29, 19];

pub(crate) fn object(object: &Object, causes: &mut CauseList) {
    let spec = FieldValue::field(object, "spec");
    let signer = spec.get("signerName");
    if !signer.text().is_empty() {
        signer_name(&signer, &mut Causes(causes));
    }
    let bundle = spec.get("trustBundle");
    for problem in problems(bundle.text()) {
        let value = "<value omitted>";
        causes.push(match problem {
            Problem::TooLong => Cause::too_long(&bundle.path, MAX_SIZE),
            Problem::Invalid(detail) => Cause::invalid(&bundle.path, value, &detail),
        });
    }
}

pub(crate) fn update(before: &Object, after: &Object, causes: &mut CauseList) {
    let signer = |object| FieldValue::field(object, "spec").get("signerName");
    Causes(causes).immutable(&signer(before), &signer(after));
}

enum Problem {
    TooLong,
    Invalid(String),
}

fn problems(mut text: &str) -> Vec<Problem> {
    if text.len() > MAX_SIZE {
        return vec![Problem::TooLong];
    }
    let mut problems = Vec::new();
    let mut places: BTreeMap<Vec<u8>, Vec<usize>> = BTreeMap::new();
    let mut number = 0;
    while let Some((kind, der, rest)) = pem::block(text) {
        let problem = if kind != "CERTIFICATE" {
            Some(format!("has bad block type: {kind}"))
        } else {
            match is_authority(&der) {
                Ok(true) => None,
                Ok(false) => Some("does not have the CA bit set".to_owned()),
                Err(_) => Some("does not parse as X.509".to_owned()),
            }
        };
        match problem {
            Some(problem) => problems.push(format!("entry {number} {problem}")),
            None => places.entry(der).or_default().push(number),
        }
        (text, number) = (rest, number + 1);
    }
    if problems.is_empty() && places.is_empty() {
        problems.push("at least one trust anchor must be provided".to_owned());
    }
    if problems.is_empty() {
        for places in places.values().filter(|places| places.len() > 1) {
            let places: Vec<String> = places.iter().map(ToString::to_string).collect();
            let places = places.join(" ");
            problems.push(format!("duplicate trust anchor (indices [{places}])"));
        }
    }
    problems.into_iter().map(Problem::Invalid).collect()
}

/// Returns the elements of a sequence, encoded.
pub(super) fn elements(der: &[u8]) -> ASN1Result<Vec<Vec<u8>>> {
    yasna::parse_der(der, |reader| {
        reader.collect_sequence_of(|reader| reader.read_der())
    })
}

/// Returns true if the certificate belongs to a certificate authority.
fn is_authority(certificate: &[u8]) -> ASN1Result<bool> {
    let parts = elements(certificate)?;
    let [content, _, _] = parts.as_slice() else {
        return Err(yasna::ASN1Error::new(yasna::ASN1ErrorKind::Invalid));
    };
    // The tag of the extensions is [3], constructed.
    let content = elements(content)?;
    let extensions = content.iter().find(|part| part.first() == Some(&0xa3));
    let Some(extensions) = extensions else {
        return Ok(false);
    };
    let extensions = yasna::parse_der(extensions, |reader| {
        reader.read_tagged(Tag::context(3), |reader| {
            reader.collect_sequence_of(|reader| reader.read_der())
        })
    })?;
    for extension in extensions {
        let parts = elements(&extension)?;
        // Between both is the flag for critical extensions.
        let (Some(id), Some(value)) = (parts.first(), parts.last()) else {
            continue;
        };
        let id = yasna::parse_der(id, |reader| reader.read_oid())?;
        if id == ObjectIdentifier::from_slice(BASIC_CONSTRAINTS) {
            let value = yasna::parse_der(value, |reader| reader.read_bytes())?;
            // `cA BOOLEAN DEFAULT FALSE`: DER contains the field only if it is true.
            let parts = elements(&value)?;
            let first = parts.first().map(|part| {
                yasna::parse_der(part, |reader| reader.read_bool()).unwrap_or_default()
            });
            return Ok(first == Some(true));
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
    use serde_json::{Value, json};

    use super::*;

    fn certificate(is_ca: IsCa) -> String {
        let mut params = CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
        params.is_ca = is_ca;
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().pem()
    }

    fn authority() -> String {
        certificate(IsCa::Ca(BasicConstraints::Unconstrained))
    }

    fn messages(spec: &Value) -> Vec<String> {
        let bundle = json!({"spec": spec});
        let mut causes = CauseList::new();
        object(bundle.as_object().unwrap(), &mut causes);
        causes.into_iter().map(|cause| cause.message).collect()
    }

    #[test]
    fn bundles_have_certificates_of_authorities() {
        let (one, two) = (authority(), authority());
        let of = |text: &str| messages(&json!({"trustBundle": text}));
        assert_eq!(of(&format!("text\n{one}{two}")), [""; 0]);
        let invalid = |detail: &str| format!("Invalid value: \"<value omitted>\": {detail}");
        for (text, detail) in [
            (String::new(), "at least one trust anchor must be provided"),
            (
                certificate(IsCa::NoCa),
                "entry 0 does not have the CA bit set",
            ),
            (
                certificate(IsCa::ExplicitNoCa),
                "entry 0 does not have the CA bit set",
            ),
            (
                format!("{one}{}", KeyPair::generate().unwrap().serialize_pem()),
                "entry 1 has bad block type: PRIVATE KEY",
            ),
            (
                "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_owned(),
                "entry 0 does not parse as X.509",
            ),
            (
                format!("{one}{two}{one}"),
                "duplicate trust anchor (indices [0 2])",
            ),
        ] {
            assert_eq!(of(&text), [invalid(detail)]);
        }
    }

    proptest! {
        #[test]
        fn no_bytes_cause_a_panic(bytes: Vec<u8>) {
            let _ = is_authority(&bytes);
        }
    }
}
