//! The variables that name the Services of a pod's namespace.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use super::Worker;

/// The time after the start of a pod during which its containers get the variables of the Services
/// that were listed then. After this time, the watch has reported all of them.
const USE_LIST: Duration = Duration::from_secs(5);

/// The source of a pod's variables.
#[derive(Debug, Default)]
pub(super) enum Links {
    /// The variables were not read yet.
    #[default]
    Unread,
    /// The list at the start of the pod.
    Listed {
        at: Instant,
        variables: Arc<[(String, String)]>,
    },
    /// The Services that the node's watch has reported.
    Watched,
}

impl Worker {
    /// Returns the variables that name the Services of the pod's namespace, unless the pod disables
    /// them. At the start of a pod, they include all existing Services.
    pub(super) async fn service_links(&mut self) -> Arc<[(String, String)]> {
        let spec = self.pod.spec.as_ref();
        if spec.is_some_and(|spec| spec.enable_service_links == Some(false)) {
            return Arc::default();
        }
        if let Links::Unread = self.links {
            self.links = match self.shared.services.listed_variables(&self.namespace).await {
                Ok(variables) => Links::Listed {
                    at: Instant::now(),
                    variables: variables.into(),
                },
                Err(error) => {
                    tracing::debug!(pod = self.name, %error, "cannot list Services");
                    Links::Watched
                }
            };
        }
        if let Links::Listed { at, variables } = &self.links
            && at.elapsed() < USE_LIST
        {
            return variables.clone();
        }
        self.links = Links::Watched;
        let variables = self.shared.services.variables(&self.namespace).await;
        variables.into()
    }
}
