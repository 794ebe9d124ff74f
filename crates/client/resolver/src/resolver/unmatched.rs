//! Roles without tasks, and the namespaces in which pods match their selectors.

use std::{collections::BTreeMap, fmt};

use super::{Resolver, groups};
use crate::{error::Error, tasks::Tasks};

/// The number of namespaces that a message names.
const NAMED: usize = 5;

/// A role without tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unmatched {
    /// The role.
    pub role: String,
    /// The selectors of the role.
    pub selectors: Vec<String>,
    /// The namespace that was searched; `None` for all.
    pub namespace: Option<String>,
    /// The number of pods that match in each namespace, or `None` if they are not known because
    /// the token may not list the pods of all namespaces.
    pub pods: Option<BTreeMap<String, usize>>,
}

impl fmt::Display for Unmatched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let selectors = self.selectors.join(" or ");
        write!(f, "the job {} has no tasks: ", self.role)?;
        match &self.namespace {
            Some(namespace) => write!(f, "no running pod of the namespace {namespace}")?,
            None => write!(f, "no running pod of any namespace")?,
        }
        write!(f, " matches {selectors}")?;
        match &self.pods {
            Some(pods) if !pods.is_empty() => {
                let named = pods.iter().take(NAMED);
                let named: Vec<String> = named
                    .map(|(namespace, count)| format!("{namespace} ({count})"))
                    .collect();
                write!(f, "; pods match in {}", named.join(", "))?;
                match pods.len().saturating_sub(NAMED) {
                    0 => Ok(()),
                    more => write!(f, " and {more} more namespaces"),
                }
            }
            Some(_) => write!(f, "; no pod of another namespace does"),
            None => Ok(()),
        }
    }
}

impl Resolver {
    /// Explains each role without tasks: an empty role is not an error, but more often a wrong
    /// namespace or selector than a job without tasks. Sends requests only for such roles.
    ///
    /// # Errors
    /// [`Error::Cluster`]. A token that may not list the pods of all namespaces is not an error.
    ///
    /// ```
    /// # longshore_embedded::example_with_pods(async |cluster| {
    /// use longshore_resolver::Resolver;
    /// let resolver = Resolver::new(cluster);
    /// let unmatched = resolver.unmatched(&resolver.tasks().await?).await?;
    /// assert_eq!(
    ///     unmatched[0].to_string(),
    ///     "the job worker has no tasks: no running pod of the namespace default matches \
    ///      job-name=tensorflow; no pod of another namespace does"
    /// );
    /// # Ok(()) });
    /// ```
    pub async fn unmatched(&self, tasks: &Tasks) -> Result<Vec<Unmatched>, Error> {
        let mut mapping = self.mapping.clone();
        mapping.retain(|(role, _)| tasks.of_role(role).next().is_none());
        if mapping.is_empty() {
            return Ok(Vec::new());
        }
        let everywhere = self.clone().with_namespace(None).with_mapping(mapping);
        let pods = match everywhere.pods().await {
            Ok(pods) => Some(pods),
            Err(Error::Forbidden { .. }) => None,
            Err(error) => return Err(error),
        };
        let matches = pods.as_ref().map(|pods| {
            let pods: Vec<_> = pods.iter().collect();
            groups::select(&everywhere.mapping, &pods)
        });
        let unmatched = everywhere.mapping.iter().enumerate();
        let unmatched = unmatched.map(|(position, (role, selectors))| Unmatched {
            role: role.clone(),
            selectors: selectors.iter().map(ToString::to_string).collect(),
            namespace: self.namespace.clone(),
            pods: matches.as_ref().map(|matches| {
                let mut counts = BTreeMap::new();
                for pod in matches[position].pods.iter().flatten() {
                    *counts
                        .entry(pod.metadata.namespace().to_owned())
                        .or_default() += 1;
                }
                counts
            }),
        });
        Ok(unmatched.collect())
    }
}
