//! Files of volumes from ConfigMaps, Secrets, the downward API and projections.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    DownwardAPIVolumeFile, KeyToPath, PodCertificateProjection, Volume, VolumeProjection,
};

use super::{
    Inputs, VolumeError,
    path::relative,
    publish::{Files, VolumeFile},
    trust::anchors,
};
use crate::{
    access::{AccountFiles, is_account_volume},
    certificates::{CertificateError, Credentials},
    downward,
    security::Owner,
    tokens::TokenSpec,
};

impl Inputs<'_> {
    pub(super) fn files(&self, volume: &Volume) -> Result<Files, VolumeError> {
        let name = &volume.name;
        let mut files = Files::new();
        if let Some(source) = &volume.config_map {
            let mode = mode(source.default_mode, 0o644);
            let what = Reference {
                volume: name,
                kind: Kind::ConfigMap,
                name: &source.name,
                optional: source.optional == Some(true),
            };
            self.values(&what, source.items.as_deref(), mode, &mut files)?;
        } else if let Some(source) = &volume.secret {
            let mode = mode(source.default_mode, 0o644);
            let what = Reference {
                volume: name,
                kind: Kind::Secret,
                name: source.secret_name.as_deref().unwrap_or_default(),
                optional: source.optional == Some(true),
            };
            self.values(&what, source.items.as_deref(), mode, &mut files)?;
        } else if let Some(source) = &volume.downward_api {
            let mode = mode(source.default_mode, 0o644);
            self.downward(name, source.items.as_deref(), mode, &mut files)?;
        } else if let Some(projected) = &volume.projected {
            let mode = mode(projected.default_mode, 0o644);
            for (index, source) in projected.sources.iter().flatten().enumerate() {
                if let Some(source) = &source.pod_certificate {
                    self.certificate((name, index), source, mode, &mut files)?;
                } else {
                    self.projection(volume, source, mode, &mut files)?;
                }
            }
        } else {
            return Err(VolumeError::Unsupported {
                volume: name.clone(),
            });
        }
        Ok(files)
    }

    /// Returns the values of a ConfigMap or Secret.
    fn values(
        &self,
        what: &Reference<'_>,
        items: Option<&[KeyToPath]>,
        mode: u32,
        files: &mut Files,
    ) -> Result<(), VolumeError> {
        let found = match what.kind {
            Kind::ConfigMap => self.lookup.config_map(what.name),
            Kind::Secret => self.lookup.secret(what.name),
        };
        add_values(what, found, items, mode, files)
    }

    fn downward(
        &self,
        volume: &str,
        items: Option<&[DownwardAPIVolumeFile]>,
        mode: u32,
        files: &mut Files,
    ) -> Result<(), VolumeError> {
        for item in items.unwrap_or_default() {
            let field = |source| VolumeError::Field {
                volume: volume.to_owned(),
                source,
            };
            let text = if let Some(reference) = &item.field_ref {
                downward::field(self.pod, self.pod_values, &reference.field_path).map_err(field)?
            } else if let Some(reference) = &item.resource_field_ref {
                downward::resource(self.pod, self.pod_values, "", reference).map_err(field)?
            } else {
                continue;
            };
            let path = relative(volume, &item.path)?;
            let mode = self::mode(item.mode, mode);
            files.insert(
                path,
                VolumeFile {
                    bytes: text.into_bytes(),
                    mode,
                    ..VolumeFile::default()
                },
            );
        }
        Ok(())
    }

    /// Returns the files of a source with a certificate of the pod.
    fn certificate(
        &self,
        (volume, index): (&str, usize),
        source: &PodCertificateProjection,
        mode: u32,
        files: &mut Files,
    ) -> Result<(), VolumeError> {
        let issued = self.certificates.get(&(volume.to_owned(), index));
        let issued = issued.cloned().unwrap_or(Err(CertificateError::NotIssued));
        let Credentials { key, chain } = issued.map_err(|source| VolumeError::Certificate {
            volume: volume.to_owned(),
            source,
        })?;
        for (path, text) in [
            (&source.credential_bundle_path, [key.pem(), &chain].concat()),
            (&source.key_path, key.pem().to_owned()),
            (&source.certificate_chain_path, chain.clone()),
        ] {
            if let Some(path) = path.as_ref().filter(|path| !path.is_empty()) {
                let file = token_file(&text, self.owner, mode);
                files.insert(relative(volume, path)?, file);
            }
        }
        Ok(())
    }

    fn projection(
        &self,
        whole: &Volume,
        source: &VolumeProjection,
        mode: u32,
        files: &mut Files,
    ) -> Result<(), VolumeError> {
        let volume = whole.name.as_str();
        let what = |kind, name, optional: Option<bool>| Reference {
            volume,
            kind,
            name,
            optional: optional == Some(true),
        };
        if let Some(source) = &source.config_map {
            let what = what(Kind::ConfigMap, &source.name, source.optional);
            self.values(&what, source.items.as_deref(), mode, files)
        } else if let Some(source) = &source.secret {
            let what = what(Kind::Secret, &source.name, source.optional);
            self.values(&what, source.items.as_deref(), mode, files)
        } else if let Some(source) = &source.downward_api {
            self.downward(volume, source.items.as_deref(), mode, files)
        } else if let Some(source) = &source.cluster_trust_bundle {
            let failed = |source| VolumeError::Trust {
                volume: volume.to_owned(),
                source,
            };
            let pem = anchors(self.lookup.trust_bundles(), source).map_err(failed)?;
            let file = VolumeFile {
                bytes: pem.into_bytes(),
                mode,
                ..VolumeFile::default()
            };
            files.insert(relative(volume, &source.path)?, file);
            Ok(())
        } else if let Some(source) = &source.service_account_token {
            let wanted = TokenSpec::of(source);
            let Some(token) = self.tokens.get(&wanted) else {
                if self.account == AccountFiles::WithoutToken && is_account_volume(whole) {
                    return Ok(());
                }
                return Err(VolumeError::NoToken {
                    volume: volume.to_owned(),
                });
            };
            let file = token_file(token, self.owner, mode);
            files.insert(relative(volume, &source.path)?, file);
            Ok(())
        } else {
            Err(VolumeError::Unsupported {
                volume: volume.to_owned(),
            })
        }
    }
}

/// Creates the file of a token or of a certificate. As with the kubelet, it belongs to the user
/// that all containers share. With an `fsGroup`, the group may also read it. Without a user and a
/// group, everyone in the pod can read it.
pub(crate) fn token_file(text: &str, owner: Owner, mode: u32) -> VolumeFile {
    let is_private = owner.user.is_some() || owner.group.is_some();
    VolumeFile {
        bytes: text.as_bytes().to_vec(),
        mode: if is_private { 0o600 } else { mode },
        user: owner.user,
    }
}

/// The kind of object that provides values for files.
#[derive(Clone, Copy)]
enum Kind {
    ConfigMap,
    Secret,
}

impl Kind {
    /// Returns the name for messages.
    fn word(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmap",
            Self::Secret => "secret",
        }
    }
}

struct Reference<'a> {
    volume: &'a str,
    kind: Kind,
    name: &'a str,
    optional: bool,
}

fn add_values(
    what: &Reference<'_>,
    found: Option<&BTreeMap<String, Vec<u8>>>,
    items: Option<&[KeyToPath]>,
    mode: u32,
    files: &mut Files,
) -> Result<(), VolumeError> {
    let volume = || what.volume.to_owned();
    let Some(values) = found else {
        if what.optional {
            return Ok(());
        }
        let name = what.name.to_owned();
        return Err(VolumeError::Missing {
            volume: volume(),
            kind: what.kind.word(),
            name,
        });
    };
    let Some(items) = items.filter(|items| !items.is_empty()) else {
        for (key, bytes) in values {
            let path = relative(what.volume, key)?;
            files.insert(
                path,
                VolumeFile {
                    bytes: bytes.clone(),
                    mode,
                    ..VolumeFile::default()
                },
            );
        }
        return Ok(());
    };
    for item in items {
        match values.get(&item.key) {
            Some(bytes) => {
                let path = relative(what.volume, &item.path)?;
                let mode = self::mode(item.mode, mode);
                files.insert(
                    path,
                    VolumeFile {
                        bytes: bytes.clone(),
                        mode,
                        ..VolumeFile::default()
                    },
                );
            }
            None if what.optional => {}
            None => {
                return Err(VolumeError::NoKey {
                    volume: volume(),
                    key: item.key.clone(),
                });
            }
        }
    }
    Ok(())
}

fn mode(asked: Option<i32>, otherwise: u32) -> u32 {
    asked
        .and_then(|mode| u32::try_from(mode).ok())
        .unwrap_or(otherwise)
        & 0o777
}
