//! The objects that a run creates, as plain values. Pure: the same arguments result in the
//! same plan, and `--dry-run` prints exactly the objects to be created.

mod extras;
mod restricted;
mod workload;

use std::{borrow::Cow, collections::BTreeMap};

use base64::{Engine, engine::general_purpose::STANDARD};
use longshore_model::{Quantity, yaml};
use longshore_resolver::accelerators::device;
use serde_json::{Map, Value, json};

use crate::{
    config::{RoleSpec, RunSpec, Workload},
    escape::escape,
    names::{self, RunName},
    pod::{self, Download, PodBundle, PodConfig, PodRole},
    store::{self, BundleInfo, Delivery},
};

/// The file of the bundle within its Secret.
const BUNDLE_FILE: &str = "bundle.tar.gz";
/// The name of the `gpu` shorthand.
const GPU: &str = "nvidia.com/gpu";

/// Why a plan cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The pods' configuration file cannot be serialized.
    #[error("cannot write the run's configuration: {0}")]
    Config(#[source] serde_json::Error),
    /// The pod template of a role is invalid.
    #[error(
        "invalid pod template for role \"{role}\": {problem}; correct `template` or `affinity`"
    )]
    Pod {
        /// The role.
        role: String,
        /// What is wrong.
        problem: String,
    },
}

/// The objects of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The run's name.
    pub run: RunName,
    /// The namespace of all objects.
    pub namespace: String,
    /// The Secret that the run's pods read when they start.
    pub config: Value,
    /// The Secret with the bundle, shared by runs with the same bundle.
    pub bundle: Option<Value>,
    /// The headless Service, if there is more than one task.
    pub service: Option<Value>,
    /// The Jobs, one per role.
    pub jobs: Vec<Value>,
    /// The workload that the Jobs become.
    pub workload: Workload,
}

impl Plan {
    /// All objects, in creation order.
    #[must_use]
    pub fn objects(&self) -> Vec<Value> {
        let before = self.bundle.iter().chain([&self.config]);
        let mut objects: Vec<Value> = before.chain(&self.service).cloned().collect();
        objects.extend(self.workloads().into_owned());
        objects
    }

    /// The workload objects: Jobs, a JobSet, or CronJobs.
    #[must_use]
    pub fn workloads(&self) -> Cow<'_, [Value]> {
        self.workload.objects(&self.run, &self.jobs)
    }

    /// The objects as one multi-document YAML text.
    #[must_use]
    pub fn to_yaml(&self) -> String {
        let mut text = String::new();
        for object in self.objects() {
            text.push_str("---\n");
            text.push_str(&yaml::write(&object));
        }
        text
    }
}

/// Plans a run: one Indexed Job per role, a headless Service for host names, a Secret with the
/// configuration of the pods, and a Secret with the bundle if there is no store.
///
/// Each task has its own port (`port` of the spec, counted up), because tasks may share a
/// network, and many programs listen on all addresses.
///
/// # Errors
/// [`PlanError::Config`] and [`PlanError::Pod`].
pub fn plan(
    spec: &RunSpec,
    run: &RunName,
    namespace: &str,
    bundle: Option<&BundleInfo>,
) -> Result<Plan, PlanError> {
    let planner = Planner {
        spec,
        run,
        namespace,
        bundle,
    };
    let jobs = spec.roles.iter().map(|role| {
        let job = planner.job(role);
        let mut job = extras::check(role, extras::merge(role, job)?)?;
        if spec.restricted {
            restricted::complete(&mut job["spec"]["template"]["spec"]);
        }
        if let Some(caller) = &spec.caller {
            extras::add_caller(caller, role, &mut job)?;
        }
        Ok(job)
    });
    let jobs = jobs.collect::<Result<_, _>>()?;
    Ok(Plan {
        run: run.clone(),
        namespace: namespace.to_owned(),
        config: planner.config()?,
        bundle: planner.bundle_secret(),
        // A JobSet creates its own Service.
        service: (spec.tasks() > 1 && spec.workload != Workload::JobSet).then(|| planner.service()),
        jobs,
        workload: spec.workload.clone(),
    })
}

/// The name of the Secret that carries a bundle.
#[must_use]
pub fn bundle_secret_name(sha256: &str) -> String {
    format!("longshore-bundle-{}", sha256.get(..20).unwrap_or(sha256))
}

struct Planner<'a> {
    spec: &'a RunSpec,
    run: &'a RunName,
    namespace: &'a str,
    bundle: Option<&'a BundleInfo>,
}

fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

impl Planner<'_> {
    fn labels(&self, role: Option<&str>) -> BTreeMap<String, String> {
        // Longshore's labels override the user's, because they identify the run.
        let mut labels = self.spec.labels.clone();
        labels.extend(texts(&[
            (names::MANAGED_BY, names::LONGSHORE),
            (names::RUN, self.run.as_str()),
        ]));
        labels.extend(role.map(|role| (names::ROLE.to_owned(), role.to_owned())));
        labels
    }

    fn annotations(&self, command: &[String]) -> BTreeMap<String, String> {
        let mut annotations = self.spec.annotations.clone();
        let roles: Vec<Value> = self
            .spec
            .roles
            .iter()
            .map(|role| json!({"name": role.name, "count": role.count, "service": role.service}))
            .collect();
        annotations.extend(texts(&[
            (names::FULL_NAME, &self.spec.name),
            (names::COMMAND, &json!(command).to_string()),
            (names::ROLES, &Value::from(roles).to_string()),
        ]));
        let sha256 = self
            .bundle
            .map(|bundle| (names::BUNDLE.to_owned(), bundle.sha256.clone()));
        annotations.extend(sha256);
        annotations
    }

    fn config(&self) -> Result<Value, PlanError> {
        // A name that resolves without a Service.
        let is_alone = self.spec.tasks() == 1;
        let mut port = self.spec.port;
        let mut roles = Vec::new();
        for role in &self.spec.roles {
            let job = self.spec.workload.job(self.run, &role.name);
            let mut tasks = Vec::new();
            for index in 0..role.count {
                let host = if is_alone {
                    "localhost".to_owned()
                } else {
                    self.run.host(&job, index)
                };
                tasks.push(format!("{host}:{port}"));
                port = port.saturating_add(1);
            }
            roles.push(PodRole {
                name: role.name.clone(),
                tasks,
                env: role.env.clone(),
                accelerators: accelerators(role),
            });
        }
        let bundle = self.bundle.map(|bundle| PodBundle {
            sha256: bundle.sha256.clone(),
            file: match bundle.delivery {
                Delivery::Secret(_) | Delivery::Url(_) => BUNDLE_FILE.to_owned(),
                Delivery::Folder { .. } => store::address(&bundle.sha256),
            },
            download: match &bundle.delivery {
                Delivery::Url(url) => Some(Download {
                    url: url.clone(),
                    size: bundle.size,
                }),
                Delivery::Secret(_) | Delivery::Folder { .. } => None,
            },
        });
        let config = PodConfig {
            run: self.run.as_str().to_owned(),
            roles,
            peer_timeout: self.spec.peer_timeout.as_secs(),
            bundle,
            scheduled: self.is_scheduled(),
        };
        let text = serde_json::to_string(&config).map_err(PlanError::Config)?;
        Ok(json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": self.run.as_str(),
                "namespace": self.namespace,
                "labels": self.labels(None),
            },
            "type": "Opaque",
            "immutable": true,
            "data": {pod::FILE: STANDARD.encode(text)},
        }))
    }

    fn bundle_secret(&self) -> Option<Value> {
        let bundle = self.bundle?;
        let Delivery::Secret(bytes) = &bundle.delivery else {
            return None;
        };
        Some(json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": bundle_secret_name(&bundle.sha256),
                "namespace": self.namespace,
                "labels": {names::MANAGED_BY: names::LONGSHORE},
                "annotations": {names::BUNDLE: bundle.sha256},
            },
            "type": "Opaque",
            "immutable": true,
            "data": {BUNDLE_FILE: STANDARD.encode(bytes)},
        }))
    }

    fn is_scheduled(&self) -> bool {
        matches!(self.spec.workload, Workload::Scheduled(_))
    }

    fn service(&self) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {
                "name": self.run.as_str(),
                "namespace": self.namespace,
                "labels": self.labels(None),
            },
            "spec": {
                "clusterIP": "None",
                // Peers look for each other before they are ready.
                "publishNotReadyAddresses": true,
                "selector": {names::RUN: self.run.as_str()},
                "ports": [{"name": "first", "port": self.spec.port, "protocol": "TCP"}],
            },
        })
    }

    fn job(&self, role: &RoleSpec) -> Value {
        let labels = self.labels(Some(&role.name));
        let annotations = self.annotations(&role.command);
        let mut spec = json!({
            "completions": role.count,
            "parallelism": role.count,
            "completionMode": "Indexed",
            "backoffLimit": self.spec.retries,
            "template": {
                "metadata": {"labels": labels, "annotations": annotations},
                "spec": self.pod(role),
            },
        });
        if let Some(timeout) = self.spec.timeout {
            spec["activeDeadlineSeconds"] = json!(timeout.as_secs());
        }
        if let Some(ttl) = self.spec.ttl {
            spec["ttlSecondsAfterFinished"] = json!(ttl.as_secs());
        }
        let mut own = labels.clone();
        if let Some(queue) = &self.spec.queue {
            // Kueue resumes it when it admits the run.
            own.insert(names::QUEUE.to_owned(), queue.clone());
            spec["suspend"] = json!(true);
        }
        json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {
                "name": self.run.job(&role.name),
                "namespace": self.namespace,
                "labels": own,
                "annotations": annotations,
            },
            "spec": spec,
        })
    }

    fn pod(&self, role: &RoleSpec) -> Value {
        let mut pod = Map::new();
        pod.insert("restartPolicy".into(), json!("Never"));
        if self.spec.tasks() > 1 {
            // With it, the Service resolves the host names of an Indexed Job's pods:
            // <job>-<index>.<service>.
            pod.insert("subdomain".into(), json!(self.run.as_str()));
        }
        pod.insert("enableServiceLinks".into(), json!(false));
        match &self.spec.service_account {
            Some(account) => pod.insert("serviceAccountName".into(), json!(account)),
            None => pod.insert("automountServiceAccountToken".into(), json!(false)),
        };
        if !self.spec.image_pull_secrets.is_empty() {
            let secrets: Vec<_> = self
                .spec
                .image_pull_secrets
                .iter()
                .map(|name| json!({"name": name}))
                .collect();
            pod.insert("imagePullSecrets".into(), json!(secrets));
        }
        extras::of_pod(&role.pods, &mut pod);
        let init = self.init_containers(role);
        if !init.is_empty() {
            pod.insert("initContainers".into(), json!(init));
        }
        let mut main = self.container(names::MAIN, &role.image, "exec");
        if let Some(command) = main["command"].as_array_mut() {
            command.push(json!("--"));
            command.extend(role.command.iter().map(|word| json!(escape(word))));
        }
        if self.bundle.is_some() {
            // The folder in which the command runs, so that exec and cp also start there.
            main["workingDir"] = json!(names::WORK);
        }
        extras::input(self.spec.input, &mut main);
        let resources = resources(role);
        if !resources.is_empty() {
            main["resources"] = Value::Object(resources);
        }
        let mut volumes = self.volumes();
        extras::of_container(&role.pods, &mut main, &mut volumes);
        pod.insert("containers".into(), json!([main]));
        pod.insert("volumes".into(), json!(volumes));
        Value::Object(pod)
    }

    fn init_containers(&self, role: &RoleSpec) -> Vec<Value> {
        let mut init = Vec::new();
        if let Some(image) = &self.spec.launcher_image {
            let mut install = self.container(names::INSTALL, image, "install");
            install["command"] = json!(["longshore", "bootstrap", "install", names::BIN]);
            init.push(Self::light(role, install));
        }
        if self.bundle.is_some() {
            let mut fetch = self.container(names::FETCH, &role.image, "fetch");
            if let (Some(_), Some(mounts)) =
                (self.bundle_volume(), fetch["volumeMounts"].as_array_mut())
            {
                let path = names::BUNDLE_DIR;
                mounts.push(json!({"name": "bundle", "mountPath": path, "readOnly": true}));
            }
            init.push(Self::light(role, fetch));
        }
        init
    }

    /// Sets small resource requests and limits of an init container if the role sets resources,
    /// because a quota requires them of each container. They never exceed those of the
    /// command, so that they meet a LimitRange.
    fn light(role: &RoleSpec, mut container: Value) -> Value {
        if !role.resources.is_empty() {
            let at_most = |name: &str, enough: &str| {
                let number =
                    |text: &str| text.parse::<Quantity>().ok().map(|number| number.value());
                let own = role.resources.get(name).map(String::as_str);
                let less = own.filter(|own| number(own) < number(enough));
                less.unwrap_or(enough).to_owned()
            };
            container["resources"] = json!({
                "requests": {"cpu": at_most("cpu", "100m"), "memory": at_most("memory", "64Mi")},
                "limits": {"memory": at_most("memory", "256Mi")},
            });
        }
        container
    }

    fn container(&self, name: &str, image: &str, verb: &str) -> Value {
        let program = match self.spec.launcher_image {
            Some(_) => format!("{}/longshore", names::BIN),
            None => "longshore".to_owned(),
        };
        let mut container = json!({
            "name": name,
            "image": image,
            "command": [program, "bootstrap", verb],
            "env": [
                field("LONGSHORE_INDEX", &format!("metadata.annotations['{}']", names::COMPLETION_INDEX)),
                field("LONGSHORE_ROLE", &format!("metadata.labels['{}']", names::ROLE)),
                // The pod's identity, for programs that query the cluster.
                field("POD_NAME", "metadata.name"),
                field("POD_NAMESPACE", "metadata.namespace"),
                field("POD_IP", "status.podIP"),
            ],
            // Nested mounts come after their parents.
            "volumeMounts": [
                {"name": names::HOME_VOLUME, "mountPath": names::HOME},
                {"name": "config", "mountPath": names::CONFIG, "readOnly": true},
            ],
        });
        if let (true, Some(env)) = (self.is_scheduled(), container["env"].as_array_mut()) {
            let label = format!("metadata.labels['{}']", names::JOB_NAME);
            env.push(field("LONGSHORE_JOB", &label));
        }
        if let Some(policy) = &self.spec.image_pull_policy {
            container["imagePullPolicy"] = json!(policy);
        }
        container
    }

    fn volumes(&self) -> Vec<Value> {
        let mut volumes = vec![
            json!({"name": names::HOME_VOLUME, "emptyDir": {}}),
            json!({"name": "config", "secret": {"secretName": self.run.as_str()}}),
        ];
        volumes.extend(self.bundle_volume());
        volumes
    }

    /// The volume of the bundle, unless the pod downloads it.
    fn bundle_volume(&self) -> Option<Value> {
        let bundle = self.bundle?;
        match &bundle.delivery {
            Delivery::Secret(_) => Some(json!({
                "name": "bundle",
                "secret": {"secretName": bundle_secret_name(&bundle.sha256)},
            })),
            Delivery::Folder { root } => Some(json!({
                "name": "bundle",
                "hostPath": {"path": root.display().to_string(), "type": "Directory"},
            })),
            Delivery::Url(_) => None,
        }
    }
}

/// A variable with a field of the pod.
fn field(name: &str, path: &str) -> Value {
    json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}})
}

/// The number of accelerators of each task of a role, of the most frequent kind.
fn accelerators(role: &RoleSpec) -> u64 {
    let numbers = role.resources.iter().filter_map(|(name, quantity)| {
        let name = if name == "gpu" { GPU } else { name };
        device(name).and_then(|_| quantity.parse().ok())
    });
    numbers.max().unwrap_or(0)
}

/// Requests, and equal limits except for CPU: memory must not be exceeded, and Kubernetes
/// requires limits for accelerators.
fn resources(role: &RoleSpec) -> Map<String, Value> {
    let (mut requests, mut limits) = (Map::new(), Map::new());
    for (name, quantity) in &role.resources {
        let name = if name == "gpu" { GPU } else { name };
        if name != "cpu" {
            limits.insert(name.to_owned(), json!(quantity));
        }
        if !name.contains('/') {
            requests.insert(name.to_owned(), json!(quantity));
        }
    }
    let mut resources = Map::new();
    for (key, map) in [("requests", requests), ("limits", limits)] {
        if !map.is_empty() {
            resources.insert(key.to_owned(), Value::Object(map));
        }
    }
    resources
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
