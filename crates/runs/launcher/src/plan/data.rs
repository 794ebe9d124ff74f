//! The data of a role's tasks: volumes, mounts, variables, and the list of data for an init
//! container.

use std::collections::BTreeMap;

use longshore_client::k8s_openapi::api::core::v1::{
    Container, EmptyDirVolumeSource, EnvVar, HostPathVolumeSource,
    PersistentVolumeClaimVolumeSource, Volume, VolumeMount,
};
use longshore_diagnosis::names;

use super::{PlanError, Planner, resources};
use crate::{
    config::{CacheVolume, DataDelivery, DataInfo, DataSpec, RoleSpec},
    pod::PodData,
};

/// The volume into which an init container fetches data.
const CACHE_VOLUME: &str = "data";

impl Planner<'_> {
    fn info(&self, data: &DataSpec) -> Option<&DataInfo> {
        let mut infos = self.spec.data.iter();
        infos.find(|info| info.source == data.source)
    }

    /// The data of a role, with its delivery to the pods.
    fn of_role<'a>(
        &'a self,
        role: &'a RoleSpec,
    ) -> impl Iterator<Item = (usize, &'a DataSpec, &'a DataInfo)> {
        let all = role.data.iter().enumerate();
        all.filter_map(|(index, data)| Some((index, data, self.info(data)?)))
    }

    /// Checks that the data of all roles is prepared.
    pub(super) fn check_data(&self) -> Result<(), PlanError> {
        let mut all = self.spec.roles.iter().flat_map(|role| &role.data);
        match all.find(|data| self.info(data).is_none()) {
            Some(data) => Err(PlanError::Data {
                name: data.name.clone(),
            }),
            None => Ok(()),
        }
    }

    fn is_fetched(&self, role: &RoleSpec) -> bool {
        self.of_role(role)
            .any(|(_, _, info)| matches!(info.delivery, DataDelivery::Fetched(_)))
    }

    /// The volumes of a role's data.
    pub(super) fn data_volumes(&self, role: &RoleSpec) -> Vec<Volume> {
        let folders = self.of_role(role).filter_map(|(index, _, info)| {
            let DataDelivery::Folder(path) = &info.delivery else {
                return None;
            };
            Some(Volume {
                name: folder_volume(index),
                host_path: Some(HostPathVolumeSource {
                    path: path.display().to_string(),
                    type_: Some("Directory".to_owned()),
                }),
                ..Volume::default()
            })
        });
        let cache = self.is_fetched(role).then(|| self.cache_volume());
        folders.chain(cache).collect()
    }

    fn cache_volume(&self) -> Volume {
        let mut volume = Volume {
            name: CACHE_VOLUME.to_owned(),
            ..Volume::default()
        };
        match self.spec.data_cache.as_ref().map(|cache| &cache.volume) {
            None => volume.empty_dir = Some(EmptyDirVolumeSource::default()),
            Some(CacheVolume::Host(path)) => {
                volume.host_path = Some(HostPathVolumeSource {
                    path: path.clone(),
                    type_: Some("DirectoryOrCreate".to_owned()),
                });
            }
            Some(CacheVolume::Claim(name)) => {
                volume.persistent_volume_claim = Some(PersistentVolumeClaimVolumeSource {
                    claim_name: name.clone(),
                    ..PersistentVolumeClaimVolumeSource::default()
                });
            }
        }
        volume
    }

    /// The mounts of a role's data in its main container.
    pub(super) fn data_mounts(&self, role: &RoleSpec) -> Vec<VolumeMount> {
        let mounts = self.of_role(role).map(|(index, data, info)| {
            let (name, sub_path) = match &info.delivery {
                DataDelivery::Folder(_) => (folder_volume(index), None),
                DataDelivery::Fetched(_) => (
                    CACHE_VOLUME.to_owned(),
                    Some(format!("trees/{}", info.sha256)),
                ),
            };
            VolumeMount {
                name,
                mount_path: data.path.clone(),
                sub_path,
                // Read-only, because files of several tasks share the same content on the disk.
                read_only: Some(true),
                ..VolumeMount::default()
            }
        });
        mounts.collect()
    }

    /// The variables with the paths of a role's data.
    pub(super) fn data_variables(role: &RoleSpec) -> impl Iterator<Item = EnvVar> {
        role.data.iter().map(|data| EnvVar {
            name: data.variable(),
            value: Some(data.path.clone()),
            ..EnvVar::default()
        })
    }

    /// The container that fetches data.
    pub(super) fn data_container(&self, role: &RoleSpec) -> Option<Container> {
        self.is_fetched(role).then(|| {
            let mut container = Container {
                command: Some(self.bootstrap("data").into()),
                resources: resources::of_init_container(role),
                // `why` shows the error from the termination message.
                termination_message_policy: Some("FallbackToLogsOnError".to_owned()),
                ..self.container(names::FETCH_DATA, &role.image)
            };
            let mounts = container.volume_mounts.get_or_insert_default();
            mounts.push(VolumeMount {
                name: CACHE_VOLUME.to_owned(),
                mount_path: names::DATA_CACHE.to_owned(),
                ..VolumeMount::default()
            });
            container
        })
    }

    /// The sha256 of a role's data, by name.
    pub(super) fn data_annotation(&self, role: &RoleSpec) -> Option<(String, String)> {
        let data: BTreeMap<&str, &str> = self
            .of_role(role)
            .map(|(_, data, info)| (data.name.as_str(), info.sha256.as_str()))
            .collect();
        // Serialization of strings cannot fail.
        let text = serde_json::to_string(&data).unwrap_or_default();
        (!data.is_empty()).then(|| (names::DATA.to_owned(), text))
    }

    /// The data that init containers fetch.
    pub(super) fn pod_data(&self) -> Vec<PodData> {
        let fetched = self.spec.data.iter().filter_map(|info| {
            let DataDelivery::Fetched(list) = &info.delivery else {
                return None;
            };
            let mut paths: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for role in &self.spec.roles {
                for data in role.data.iter().filter(|data| data.source == info.source) {
                    let paths = paths.entry(role.name.clone()).or_default();
                    paths.push(data.path.clone());
                }
            }
            Some(PodData {
                sha256: info.sha256.clone(),
                paths,
                list: list.clone(),
            })
        });
        fetched.collect()
    }
}

fn folder_volume(index: usize) -> String {
    format!("data-{index}")
}
