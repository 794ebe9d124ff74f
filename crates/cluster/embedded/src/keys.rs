//! The keys of a cluster.

use std::{path::Path, sync::Arc};

use longshore_apiserver::{Authority, TokenKey};

use crate::Error;

/// The keys of a cluster.
pub(crate) struct Keys {
    /// Signs the tokens of service accounts.
    pub(crate) tokens: TokenKey,
    /// Signs certificates, if the cluster has an endpoint.
    pub(crate) authority: Option<Arc<Authority>>,
}

impl Keys {
    /// Loads the keys. A durable cluster keeps them, so that its tokens and certificates stay
    /// valid.
    pub(crate) fn load_or_create(
        folder: &Path,
        ephemeral: bool,
        serves: bool,
    ) -> Result<Self, Error> {
        let tokens = match ephemeral && !serves {
            true => TokenKey::ephemeral(),
            false => TokenKey::load_or_create(folder),
        };
        let authority = serves
            .then(|| Authority::load_or_create(folder))
            .transpose();
        Ok(Self {
            tokens: tokens.map_err(Error::part("service account key"))?,
            authority: authority
                .map_err(Error::part("certificates"))?
                .map(Arc::new),
        })
    }
}
