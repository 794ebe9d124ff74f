//! The containers of a role's pods.

use longshore_client::k8s_openapi::api::core::v1::{
    Container, EnvVar, EnvVarSource, ObjectFieldSelector, VolumeMount,
};
use longshore_diagnosis::{escape::escape, names};

use super::{
    Planner,
    pod_spec::{BUNDLE_VOLUME, CONFIG_VOLUME, unless_empty},
    resources,
};
use crate::config::{Input, RoleSpec};

impl Planner<'_> {
    /// The container that runs the command.
    pub(super) fn main_container(&self, role: &RoleSpec) -> Container {
        let mut main = self.container(names::MAIN, &role.image);
        let own = role.command.iter().map(|word| escape(word));
        main.command = Some(
            self.run_command(role)
                .into_iter()
                .chain(["--".to_owned()])
                .chain(own)
                .collect(),
        );
        // The folder in which the command runs, so that exec and cp also start in it.
        main.working_dir = self.bundle.map(|_| names::WORK.to_owned());
        if self.fetches_itself(role) {
            add(&mut main.volume_mounts, self.bundle_mount());
        }
        input(self.spec.input, &mut main);
        if self.spec.caller.is_some() {
            // The embedded cluster has no /dev/termination-log.
            main.termination_message_path = Some(names::TERMINATION_FILE.to_owned());
        }
        main.resources = resources::of_command(role);
        add(&mut main.env, self.earlier_attempts());
        let pods = &role.pods;
        main.env_from = unless_empty(pods.env_from.clone());
        add(&mut main.env, pods.env.iter().cloned());
        add(&mut main.env, Self::data_variables(role));
        let mounts = pods.volumes.iter().map(|(_, mount)| mount.clone());
        add(&mut main.volume_mounts, mounts);
        add(&mut main.volume_mounts, self.data_mounts(role));
        main
    }

    /// Variables with the number of earlier attempts.
    fn earlier_attempts(&self) -> Vec<EnvVar> {
        let annotation = |key: &str| format!("metadata.annotations['{key}']");
        if self.is_restarted_by_set() {
            let label = format!("metadata.labels['{}']", names::SET_RESTARTS);
            return vec![field(names::SET_RESTARTS_VARIABLE, &label)];
        }
        let counts = [
            (names::FAILURES_VARIABLE, names::FAILURES),
            (names::DISRUPTIONS_VARIABLE, names::DISRUPTIONS),
        ];
        let counts = counts.iter().filter(|_| self.spec.retries > 0);
        counts
            .map(|(name, key)| field(name, &annotation(key)))
            .collect()
    }

    /// The containers that install the program and fetch the code, where needed.
    pub(super) fn init_containers(&self, role: &RoleSpec) -> Vec<Container> {
        let install = self.spec.launcher_image.as_ref().map(|image| Container {
            command: Some(
                ["longshore", "bootstrap", "install", names::BIN]
                    .map(str::to_owned)
                    .into(),
            ),
            resources: resources::of_init_container(role),
            ..self.container(names::INSTALL, image)
        });
        let fetch = self.bundle.filter(|_| !self.fetches_itself(role));
        let fetch = fetch.map(|_| {
            let mut fetch = Container {
                command: Some(self.bootstrap("fetch").into()),
                resources: resources::of_init_container(role),
                ..self.container(names::FETCH, &role.image)
            };
            add(&mut fetch.volume_mounts, self.bundle_mount());
            fetch
        });
        let data = self.data_container(role);
        install.into_iter().chain(fetch).chain(data).collect()
    }

    fn bundle_mount(&self) -> Option<VolumeMount> {
        self.bundle_volume().map(|_| VolumeMount {
            name: BUNDLE_VOLUME.to_owned(),
            mount_path: names::BUNDLE_DIR.to_owned(),
            read_only: Some(true),
            ..VolumeMount::default()
        })
    }

    /// Returns true if the main container fetches the code. On the embedded cluster, each container
    /// is a process of the same machine, so that fewer containers start faster. Containers of a
    /// template, and the supervisor of `dev`, expect the code when they start.
    fn fetches_itself(&self, role: &RoleSpec) -> bool {
        let is_embedded = self.spec.caller.is_some() && self.spec.launcher_image.is_none();
        let needs_none = role.pods.template.is_none() && self.data_container(role).is_none();
        self.bundle.is_some() && is_embedded && needs_none && self.spec.dev.is_none()
    }

    /// The command of the container, which runs the role's command.
    fn run_command(&self, role: &RoleSpec) -> Vec<String> {
        match &self.spec.dev {
            None if self.fetches_itself(role) => {
                let fetch = "--fetch".to_owned();
                self.bootstrap("exec").into_iter().chain([fetch]).collect()
            }
            None => self.bootstrap("exec").into(),
            Some(dev) => {
                let grace = ["--grace".to_owned(), dev.grace.as_millis().to_string()];
                self.bootstrap("dev").into_iter().chain(grace).collect()
            }
        }
    }

    /// The command that starts the program in a pod.
    pub(super) fn bootstrap(&self, verb: &str) -> [String; 3] {
        let program = match self.spec.launcher_image {
            Some(_) => format!("{}/longshore", names::BIN),
            None => "longshore".to_owned(),
        };
        [program, "bootstrap".to_owned(), verb.to_owned()]
    }

    /// The parts that all containers have.
    pub(super) fn container(&self, name: &str, image: &str) -> Container {
        let annotation = |key: &str| format!("metadata.annotations['{key}']");
        let label = |key: &str| format!("metadata.labels['{key}']");
        let mut env = vec![
            field("LONGSHORE_INDEX", &annotation(names::COMPLETION_INDEX)),
            field("LONGSHORE_ROLE", &label(names::ROLE)),
            // The identity of the pod, for programs that query the cluster.
            field("POD_NAME", "metadata.name"),
            field("POD_NAMESPACE", "metadata.namespace"),
            field("POD_IP", "status.podIP"),
        ];
        if self.is_scheduled() {
            env.push(field("LONGSHORE_JOB", &label(names::JOB_NAME)));
        }
        // Nested mounts come after their parents.
        let mounts = vec![
            VolumeMount {
                name: names::HOME_VOLUME.to_owned(),
                mount_path: names::HOME.to_owned(),
                ..VolumeMount::default()
            },
            VolumeMount {
                name: CONFIG_VOLUME.to_owned(),
                mount_path: names::CONFIG.to_owned(),
                read_only: Some(true),
                ..VolumeMount::default()
            },
        ];
        Container {
            name: name.to_owned(),
            image: Some(image.to_owned()),
            image_pull_policy: self.spec.image_pull_policy.clone(),
            env: Some(env),
            volume_mounts: Some(mounts),
            ..Container::default()
        }
    }
}

/// A variable with a field of the pod.
pub(super) fn field(name: &str, path: &str) -> EnvVar {
    EnvVar {
        name: name.to_owned(),
        value_from: Some(EnvVarSource {
            field_ref: Some(ObjectFieldSelector {
                field_path: path.to_owned(),
                ..ObjectFieldSelector::default()
            }),
            ..EnvVarSource::default()
        }),
        ..EnvVar::default()
    }
}

/// Adds items to a list of a container.
fn add<T>(list: &mut Option<Vec<T>>, items: impl IntoIterator<Item = T>) {
    list.get_or_insert_default().extend(items);
}

/// Configures standard input of the main container.
fn input(input: Input, main: &mut Container) {
    match input {
        Input::None => {}
        // The first client that attaches writes the whole input and closes it.
        Input::Piped => {
            main.stdin = Some(true);
            main.stdin_once = Some(true);
        }
        // The input stays open after a lost connection, for a second client.
        Input::Terminal => {
            main.stdin = Some(true);
            main.tty = Some(true);
        }
    }
}
