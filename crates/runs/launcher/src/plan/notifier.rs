//! The pod that calls the webhook of a run, and its permissions: it may only read Jobs, pods and
//! events of the namespace. A Role of Kubernetes cannot be limited to the objects of a run.

use std::collections::BTreeMap;

use longshore_client::k8s_openapi::{
    ByteString,
    api::{
        batch::v1::{
            Job, JobSpec, PodFailurePolicy, PodFailurePolicyOnExitCodesRequirement,
            PodFailurePolicyOnPodConditionsPattern, PodFailurePolicyRule,
        },
        core::v1::{
            Container, EnvVar, KeyToPath, LocalObjectReference, PodSpec, PodTemplateSpec,
            ResourceRequirements, Secret, SecretVolumeSource, ServiceAccount, Volume, VolumeMount,
        },
        rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject},
    },
    apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::ObjectMeta},
};
use longshore_diagnosis::names;

use super::{
    PlannedObject, Planner, container::field, pod_spec::unless_empty, restricted, workload,
};
use crate::{
    config::{Schedule, WebhookSpec, WebhookUrl, Workload},
    store::check_url,
    webhook::looks_secret,
};

/// The maximum number of restarts of the pod after failures.
const RESTARTS: i32 = 6;
/// The volume with the URL.
const VOLUME: &str = "webhook";

impl Planner<'_> {
    /// The objects of the notifier, in the order of their creation.
    pub(super) fn notifier(&self) -> Vec<PlannedObject> {
        let Some(webhook) = &self.spec.webhook else {
            return Vec::new();
        };
        let mut objects = Vec::new();
        let (secret, key) = match &webhook.url {
            WebhookUrl::Secret { name, key } => (name.clone(), key.clone()),
            WebhookUrl::Plain(url) => {
                let key = names::WEBHOOK_FILE.to_owned();
                objects.push(self.url_secret(&key, url).into());
                (self.notifier_name(), key)
            }
        };
        let account = webhook.account.clone().unwrap_or_else(|| {
            objects.extend(self.access());
            self.notifier_name()
        });
        let job = self.notifier_job(webhook, account, secret, key);
        objects.push(match &self.spec.workload {
            Workload::Scheduled(schedule) => {
                // Executions may overlap if the webhook does not answer.
                let schedule = Schedule {
                    concurrency_policy: "Allow".to_owned(),
                    ..schedule.clone()
                };
                workload::cron_job(&schedule, &job).into()
            }
            Workload::Jobs | Workload::JobSet => job.into(),
        });
        objects
    }

    /// The note for the user about the webhook.
    pub(super) fn webhook_note(&self) -> Option<String> {
        let Some(WebhookUrl::Plain(url)) = self.spec.webhook.as_ref().map(|webhook| &webhook.url)
        else {
            return None;
        };
        let host = check_url(url).unwrap_or_default();
        looks_secret(url, &host).then(|| {
            format!("the URL of the webhook at {host} looks like a secret, and is in longshore.toml or the history of a shell; put it into a Secret (`kubectl create secret generic NAME --from-literal=url=…`) and use `webhook = \"secret:NAME/url\"`")
        })
    }

    /// The name of the notifier's objects. It does not begin with the run's name, unlike the names
    /// of the run's other objects.
    fn notifier_name(&self) -> String {
        format!("notify-{}", self.run)
    }

    fn notifier_metadata(&self) -> ObjectMeta {
        // Without the run's label, the pod is not treated as a task of the run.
        let mut labels = self.spec.labels.clone();
        labels.insert(names::NOTIFIES.to_owned(), self.run.to_string());
        ObjectMeta {
            name: Some(self.notifier_name()),
            namespace: Some(self.namespace.to_owned()),
            labels: Some(labels),
            ..ObjectMeta::default()
        }
    }

    fn url_secret(&self, key: &str, url: &str) -> Secret {
        Secret {
            metadata: self.notifier_metadata(),
            type_: Some("Opaque".to_owned()),
            immutable: Some(true),
            data: Some([(key.to_owned(), ByteString(url.as_bytes().to_vec()))].into()),
            ..Secret::default()
        }
    }

    /// The service account with its permissions.
    fn access(&self) -> [PlannedObject; 3] {
        let texts = |texts: &[&str]| {
            texts
                .iter()
                .map(|text| (*text).to_owned())
                .collect::<Vec<_>>()
        };
        let rule = |group: &str, resources: &[&str], verbs: &[&str]| PolicyRule {
            api_groups: Some(texts(&[group])),
            resources: Some(texts(resources)),
            verbs: texts(verbs),
            ..PolicyRule::default()
        };
        let role = Role {
            metadata: self.notifier_metadata(),
            rules: Some(vec![
                rule("batch", &["jobs"], &["get", "list", "watch"]),
                rule("", &["pods"], &["get", "list", "watch"]),
                rule("", &["events"], &["list"]),
            ]),
        };
        let account = ServiceAccount {
            metadata: self.notifier_metadata(),
            ..ServiceAccount::default()
        };
        let binding = RoleBinding {
            metadata: self.notifier_metadata(),
            role_ref: RoleRef {
                api_group: Some("rbac.authorization.k8s.io".to_owned()),
                kind: "Role".to_owned(),
                name: self.notifier_name(),
            },
            subjects: Some(vec![Subject {
                kind: "ServiceAccount".to_owned(),
                name: self.notifier_name(),
                namespace: Some(self.namespace.to_owned()),
                ..Subject::default()
            }]),
        };
        [account.into(), role.into(), binding.into()]
    }

    fn notifier_job(
        &self,
        webhook: &WebhookSpec,
        account: String,
        secret: String,
        key: String,
    ) -> Job {
        let on: Vec<&str> = webhook.on.iter().map(|state| state.as_str()).collect();
        let first = self.spec.roles.first();
        let own = self.spec.launcher_image.clone();
        let image = own.or_else(|| first.map(|role| role.image.clone()));
        let mut command = [
            "longshore",
            "bootstrap",
            "notify",
            "--run",
            self.run.as_str(),
        ]
        .map(str::to_owned)
        .to_vec();
        command.extend(["--on".to_owned(), on.join(",")]);
        command.extend(["--format".to_owned(), webhook.format.to_string()]);
        let seconds = webhook.stuck_after.as_secs().to_string();
        command.extend(["--stuck-after".to_owned(), seconds]);
        let mut env = vec![
            field("POD_NAMESPACE", "metadata.namespace"),
            // The cluster of the pod, regardless of the image's settings.
            EnvVar {
                name: "KUBECONFIG".to_owned(),
                value: Some("/longshore/none".to_owned()),
                ..EnvVar::default()
            },
        ];
        if self.is_scheduled() {
            let label = format!("metadata.labels['{}']", names::JOB_NAME);
            env.push(field("LONGSHORE_JOB", &label));
        }
        let amounts = |amounts: &[(&str, &str)]| -> BTreeMap<String, Quantity> {
            let amounts = amounts.iter();
            amounts
                .map(|(name, amount)| ((*name).to_owned(), Quantity((*amount).to_owned())))
                .collect()
        };
        let container = Container {
            name: "notify".to_owned(),
            image,
            image_pull_policy: self.spec.image_pull_policy.clone(),
            command: Some(command),
            env: Some(env),
            resources: Some(ResourceRequirements {
                // The notifier is created before the tasks, and must not use capacity that they
                // need.
                requests: Some(amounts(&[("cpu", "0"), ("memory", "0")])),
                limits: Some(amounts(&[("cpu", "500m"), ("memory", "256Mi")])),
                ..ResourceRequirements::default()
            }),
            // `why` and `runs` read the reason of a failed call from the termination message.
            termination_message_policy: Some("FallbackToLogsOnError".to_owned()),
            volume_mounts: Some(vec![VolumeMount {
                name: VOLUME.to_owned(),
                mount_path: names::WEBHOOK_DIR.to_owned(),
                read_only: Some(true),
                ..VolumeMount::default()
            }]),
            ..Container::default()
        };
        let pull_secrets = self.spec.image_pull_secrets.iter();
        let pull_secrets = pull_secrets.map(|name| LocalObjectReference { name: name.clone() });
        let tolerations = first.map(|role| role.pods.tolerations.clone());
        let mut pod = PodSpec {
            restart_policy: Some("Never".to_owned()),
            enable_service_links: Some(false),
            automount_service_account_token: Some(true),
            service_account_name: Some(account),
            termination_grace_period_seconds: Some(5),
            image_pull_secrets: unless_empty(pull_secrets.collect()),
            tolerations: tolerations.and_then(unless_empty),
            containers: vec![container],
            volumes: Some(vec![Volume {
                name: VOLUME.to_owned(),
                secret: Some(SecretVolumeSource {
                    secret_name: Some(secret),
                    items: Some(vec![KeyToPath {
                        key,
                        path: names::WEBHOOK_FILE.to_owned(),
                        ..KeyToPath::default()
                    }]),
                    ..SecretVolumeSource::default()
                }),
                ..Volume::default()
            }]),
            ..PodSpec::default()
        };
        if self.spec.restricted {
            restricted::complete(&mut pod);
        }
        let metadata = self.notifier_metadata();
        let rule = |action: &str| PodFailurePolicyRule {
            action: action.to_owned(),
            ..PodFailurePolicyRule::default()
        };
        let disrupted = PodFailurePolicyOnPodConditionsPattern {
            type_: names::DISRUPTION_TARGET.to_owned(),
            status: Some("True".to_owned()),
        };
        let refused = PodFailurePolicyOnExitCodesRequirement {
            operator: "In".to_owned(),
            values: vec![names::UNDELIVERED],
            ..PodFailurePolicyOnExitCodesRequirement::default()
        };
        Job {
            spec: Some(JobSpec {
                backoff_limit: Some(RESTARTS),
                pod_failure_policy: Some(PodFailurePolicy {
                    rules: vec![
                        PodFailurePolicyRule {
                            on_pod_conditions: Some(vec![disrupted]),
                            ..rule("Ignore")
                        },
                        // A service that refuses the message would refuse it again.
                        PodFailurePolicyRule {
                            on_exit_codes: Some(refused),
                            ..rule("FailJob")
                        },
                    ],
                }),
                template: PodTemplateSpec {
                    metadata: Some(ObjectMeta {
                        labels: metadata.labels.clone(),
                        ..ObjectMeta::default()
                    }),
                    spec: Some(pod),
                },
                ..JobSpec::default()
            }),
            metadata,
            ..Job::default()
        }
    }
}
