//! The Secret with the bundle, which runs with the same bundle share.

use longshore_diagnosis::names;

use crate::queries;

use super::{
    SubmitError,
    submission::{Submission, name_of},
};

impl Submission<'_> {
    /// Creates the bundle's Secret unless it exists.
    pub(super) async fn put_bundle(&self) -> Result<(), SubmitError> {
        let Some(bundle) = &self.plan.bundle else {
            return Ok(());
        };
        let secrets = self.cluster.secrets().in_namespace(&self.plan.namespace)?;
        let failed = |source| SubmitError::Create {
            what: format!("Secret {}", name_of(bundle)),
            source,
        };
        // The bundle was deleted between the two requests, so create it again.
        for _ in 0..3 {
            match secrets.create(bundle).await {
                Ok(_) => return Ok(()),
                Err(error) if error.is_already_exists() => {}
                Err(error) => return Err(failed(error)),
            }
            let Some(found) =
                queries::secret(self.cluster, &self.plan.namespace, name_of(bundle)).await?
            else {
                continue;
            };
            let meta = found.meta();
            if meta.deletion_timestamp.is_some() {
                continue;
            }
            let wanted = bundle.metadata.annotations.as_ref();
            let wanted = wanted.and_then(|annotations| annotations.get(names::BUNDLE));
            let says = meta.annotations.get(names::BUNDLE);
            return match says == wanted {
                true => Ok(()),
                false => Err(SubmitError::OtherBundle {
                    name: name_of(bundle).to_owned(),
                }),
            };
        }
        Err(SubmitError::OtherBundle {
            name: name_of(bundle).to_owned(),
        })
    }
}
