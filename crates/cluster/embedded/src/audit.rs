//! The files of the audit log.

use std::path::PathBuf;

use longshore_apiserver::{AuditLog, AuditPolicy};
use longshore_files::OpenMode;

use crate::Error;

/// The largest policy file, in bytes.
const POLICY_SIZE: u64 = 1 << 20;

/// An audit log of the API server: one line of JSON for each recorded request, as in Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditOptions {
    /// The file, to which lines are appended. Only its owner can read it.
    pub log: PathBuf,
    /// A file with a policy of `audit.k8s.io/v1`. Without it, the log contains the
    /// metadata of all requests when they are answered.
    pub policy: Option<PathBuf>,
}

impl AuditOptions {
    /// Opens the file and starts to write the log.
    pub(crate) fn start(&self) -> Result<AuditLog, Error> {
        let policy = self.policy()?;
        let file = longshore_files::open(&self.log, OpenMode::Append).map_err(|source| {
            Error::AuditLog {
                path: self.log.clone(),
                source: source.into(),
            }
        })?;
        AuditLog::start(policy, file).map_err(Error::part("audit log"))
    }

    /// Reads the policy.
    pub(crate) fn policy(&self) -> Result<AuditPolicy, Error> {
        let Some(path) = &self.policy else {
            return Ok(AuditPolicy::default());
        };
        let read = longshore_files::read_limited(path, POLICY_SIZE);
        let text = read.map_err(Error::file("read", path))?;
        String::from_utf8_lossy(&text)
            .parse()
            .map_err(|source| Error::AuditPolicy {
                path: path.clone(),
                source,
            })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use crate::{EmbeddedCluster, Options};

    use super::*;

    fn options(dir: &std::path::Path) -> AuditOptions {
        AuditOptions {
            log: dir.join("audit.log"),
            policy: None,
        }
    }

    #[tokio::test]
    async fn requests_of_all_starts_are_appended_to_a_private_file() {
        let dir = tempfile::tempdir().unwrap();
        let audit = options(dir.path());
        let mut lines = 0;
        for _ in 0..2 {
            let start = EmbeddedCluster::start(Options {
                audit: Some(audit.clone()),
                ..Options::server()
            });
            let cluster = start.await.unwrap();
            let namespaces = cluster.cluster().kind("namespaces").await.unwrap();
            namespaces.list().await.unwrap();
            cluster.stop().await;
            let text = fs::read_to_string(&audit.log).unwrap();
            assert!(text.lines().count() > lines, "{text}");
            assert!(
                text.ends_with('\n') && text.contains("/api/v1/namespaces"),
                "{text}"
            );
            lines = text.lines().count();
        }
        let mode = fs::metadata(&audit.log).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn mistakes_name_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let policy = dir.path().join("policy.yaml");
        fs::write(
            &policy,
            "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: []",
        )
        .unwrap();
        let mut audit = options(dir.path());
        audit.policy = Some(policy.clone());
        let error = audit.start().unwrap_err();
        assert!(error.to_string().contains("policy.yaml"), "{error}");
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert!(source.contains("no rules"), "{source}");
        assert!(!audit.log.exists());
        audit = options(&dir.path().join("missing"));
        let error = audit.start().unwrap_err().to_string();
        assert!(error.contains("missing/audit.log"), "{error}");
        // The remedy for the cluster's own files would be to remove the file.
        audit.log = "/dev/null".into();
        let error = audit.start().unwrap_err();
        assert!(matches!(error, Error::AuditLog { .. }), "{error}");
    }
}
