//! The settings of a durable instance that persist across restarts: the port and
//! the token. They keep copies of the kubeconfig valid.

use std::fmt::Write as _;

use rand::TryRng;
use serde::{Deserialize, Serialize};

use crate::{
    Error,
    files::{self, Durability},
    layout::Layout,
};

/// Port and token. It does not implement `Debug`, because the token is a secret.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Settings {
    /// The last port; 0 before the first start.
    pub(crate) port: u16,
    /// The bearer token.
    pub(crate) token: String,
}

impl Settings {
    /// Loads the instance's settings, or creates new ones. An unreadable file is
    /// replaced; the only consequence is that old copies of the kubeconfig become
    /// invalid.
    pub(crate) fn load_or_new(layout: &Layout) -> Result<Self, Error> {
        let old = files::read_optional(&layout.settings())?
            .and_then(|bytes| serde_json::from_slice::<Self>(&bytes).ok())
            .filter(|settings| settings.token.len() >= 32);
        match old {
            Some(settings) => Ok(settings),
            None => Ok(Self {
                port: 0,
                token: random_token()?,
            }),
        }
    }

    pub(crate) fn save(&self, layout: &Layout, durability: Durability) -> Result<(), Error> {
        let text = serde_json::to_vec(self).map_err(Error::part("settings"))?;
        longshore_files::replace_if_changed(&layout.settings(), &text, durability)?;
        Ok(())
    }
}

/// Returns 256 random bits from the operating system, in hexadecimal.
pub(crate) fn random_token() -> Result<String, Error> {
    let mut bytes = [0_u8; 32];
    rand::rngs::SysRng
        .try_fill_bytes(&mut bytes)
        .map_err(Error::part("token"))?;
    Ok(bytes
        .iter()
        .fold(String::with_capacity(64), |mut text, byte| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn settings_persist_and_unreadable_ones_are_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path());
        let mut settings = Settings::load_or_new(&layout).unwrap();
        assert_eq!((settings.port, settings.token.len()), (0, 64));
        settings.port = 4711;
        settings.save(&layout, Durability::Durable).unwrap();
        let again = Settings::load_or_new(&layout).unwrap();
        assert_eq!((again.port, &again.token), (4711, &settings.token));

        std::fs::write(layout.settings(), "{").unwrap();
        let fresh = Settings::load_or_new(&layout).unwrap();
        assert_eq!(fresh.port, 0);
        assert_ne!(fresh.token, settings.token);
    }
}
