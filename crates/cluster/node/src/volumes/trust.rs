//! Certificates of ClusterTrustBundles in projected volumes.

use std::collections::BTreeSet;

use k8s_openapi::{
    api::core::v1::ClusterTrustBundleProjection, apimachinery::pkg::apis::meta::v1 as meta,
};
use longshore_model::{
    LabelSelector, SelectorError,
    selector::{Requirement, StructuredSelector},
};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};

use crate::{lookup::TrustBundle, pem};

/// The reason why a projection has no certificates.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum TrustError {
    #[error("clustertrustbundle {0:?} not found")]
    Missing(String),
    #[error("combination of signerName and labelSelector matched zero ClusterTrustBundles")]
    NoMatch,
    #[error("its labelSelector is invalid: {0}")]
    Selector(#[from] SelectorError),
    #[error("ClusterTrustBundle projection requires either name or signerName to be set")]
    NoName,
}

/// Returns each certificate that a projection selects once, in PEM.
pub(super) fn anchors(
    bundles: &[TrustBundle],
    projection: &ClusterTrustBundleProjection,
) -> Result<String, TrustError> {
    let found: Vec<&TrustBundle> = if let Some(name) = &projection.name {
        bundles
            .iter()
            .filter(|bundle| bundle.name == *name)
            .collect()
    } else if let Some(signer) = &projection.signer_name {
        // A missing selector matches nothing; an empty one matches everything.
        let selector = projection.label_selector.as_ref().map(selector);
        let selector = selector.transpose()?;
        let is_selected = |bundle: &&TrustBundle| {
            let matches = |selector: &LabelSelector| selector.matches(&bundle.labels);
            bundle.signer == *signer && selector.as_ref().is_some_and(matches)
        };
        bundles.iter().filter(is_selected).collect()
    } else {
        return Err(TrustError::NoName);
    };
    if found.is_empty() && projection.optional != Some(true) {
        return Err(match &projection.name {
            Some(name) => TrustError::Missing(name.clone()),
            None => TrustError::NoMatch,
        });
    }
    let certificates: BTreeSet<Vec<u8>> = found
        .iter()
        .flat_map(|bundle| CertificateDer::pem_slice_iter(bundle.pem.as_bytes()).flatten())
        .map(|certificate| certificate.to_vec())
        .collect();
    let block = |der: &Vec<u8>| pem::block("CERTIFICATE", der);
    Ok(certificates.iter().map(block).collect())
}

fn selector(written: &meta::LabelSelector) -> Result<LabelSelector, SelectorError> {
    let requirements = written.match_expressions.iter().flatten();
    LabelSelector::try_from(StructuredSelector {
        match_labels: written.match_labels.clone().unwrap_or_default(),
        match_expressions: requirements
            .map(|requirement| Requirement {
                key: requirement.key.clone(),
                operator: requirement.operator.clone(),
                values: requirement.values.clone().unwrap_or_default(),
            })
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use rcgen::{CertificateParams, KeyPair};
    use serde_json::{Value, json};

    use super::*;

    fn certificate() -> String {
        let params = CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        params
            .self_signed(&key)
            .unwrap()
            .pem()
            .replace("\r\n", "\n")
    }

    fn bundle(name: &str, signer: &str, label: &str, pem: &str) -> TrustBundle {
        TrustBundle {
            name: name.to_owned(),
            signer: signer.to_owned(),
            labels: [("app".to_owned(), label.to_owned())].into(),
            pem: pem.to_owned(),
        }
    }

    #[test]
    fn bundles_are_selected_by_name_or_by_signer_and_labels() {
        let (one, two) = (certificate(), certificate());
        let both = format!("{one}\ntext\n{two}");
        let bundles = [
            bundle("plain", "", "x", &one),
            bundle("s:1", "s.example/s", "x", &one),
            bundle("s:2", "s.example/s", "y", &both),
        ];
        let of = |projection: Value| {
            let mut projection = projection;
            projection["path"] = json!("p");
            anchors(&bundles, &serde_json::from_value(projection).unwrap())
        };
        assert_eq!(of(json!({"name": "plain"})).unwrap(), one);
        let signed =
            |selector: Value| of(json!({"signerName": "s.example/s", "labelSelector": selector}));
        assert_eq!(signed(json!({"matchLabels": {"app": "x"}})).unwrap(), one);
        // Each certificate occurs once.
        let all = signed(json!({})).unwrap();
        assert_eq!(all.len(), one.len() + two.len());
        assert!(all.contains(&one) && all.contains(&two));

        let missing = of(json!({"name": "no"})).unwrap_err();
        assert_eq!(missing, TrustError::Missing("no".to_owned()));
        let none = of(json!({"signerName": "s.example/s"})).unwrap_err();
        assert_eq!(none, TrustError::NoMatch);
        assert_eq!(of(json!({})).unwrap_err(), TrustError::NoName);
        let optional = json!({"name": "no", "optional": true});
        assert_eq!(of(optional).unwrap(), "");
        let bad = json!([{"key": "a", "operator": "Like"}]);
        let bad = signed(json!({"matchExpressions": bad})).unwrap_err();
        assert!(
            bad.to_string()
                .starts_with("its labelSelector is invalid: ")
        );
    }
}
