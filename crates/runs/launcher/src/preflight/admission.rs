//! Checks whether the API server admits the pods: webhooks, policies, and the namespace's Pod
//! Security level.

use longshore_client::{
    Cluster,
    k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::ObjectMeta},
};
use longshore_diagnosis::explain::{Cause, cut};

use super::{Finding, Report, rights::Right};
use crate::plan::{Plan, PlannedRole};

/// The maximum length of a server's message, in characters.
const MESSAGE: usize = 2000;

/// Rejections that may not occur again when the Job creates the pod: an exceeded quota, or a new
/// namespace without a service account.
const PASSING: [&str; 2] = ["exceeded quota", "error looking up service account"];

/// The text in a violation of the Pod Security level that concerns the network of the node.
const HOST_NETWORK: &str = "hostNetwork=true";

/// A pod that the API server would reject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RefusedPod {
    /// The role that the pod belongs to.
    pub(crate) role: String,
    /// The server's message.
    pub(crate) message: String,
}

/// A pod for each role, as its Job would create it.
pub(super) fn pods(plan: &Plan) -> Vec<(String, Pod)> {
    let pod = |planned: &PlannedRole| {
        let template = planned.job.spec.clone().unwrap_or_default().template;
        let pod = Pod {
            metadata: ObjectMeta {
                generate_name: Some("preflight-".to_owned()),
                ..template.metadata.unwrap_or_default()
            },
            spec: template.spec,
            status: None,
        };
        (planned.role.name.clone(), pod)
    };
    plan.roles.iter().map(pod).collect()
}

/// Sends the pods to the server as a dry run. A missing permission to create pods is not a
/// rejection, because the Job controller has the permission.
pub(super) async fn ask(
    cluster: &Cluster,
    namespace: &str,
    pods: &[(String, Pod)],
) -> Vec<RefusedPod> {
    let right = Right::new("create", "", "pods");
    if right.is_given(cluster, namespace).await != Some(true) {
        return Vec::new();
    }
    let asked = pods.iter().map(async |(role, pod)| {
        let view = cluster.pods().in_namespace(namespace).ok()?.dry_run();
        let answer = view.create(pod).await;
        let error = answer.err().filter(|error| error.is_forbidden())?;
        let message = &error.status()?.message;
        // The pod has no name yet.
        let message = message
            .split_once(" is forbidden: ")
            .map_or(message.as_str(), |(_, reason)| reason);
        let message = cut(message, MESSAGE);
        Some(RefusedPod {
            role: role.clone(),
            message,
        })
    });
    let refused = futures::future::join_all(asked).await;
    refused.into_iter().flatten().collect()
}

/// Reports rejected pods, unless a more specific problem was found.
pub(super) fn check(refused: &[RefusedPod], report: &mut Report) {
    if !report.refusals.is_empty() {
        return;
    }
    for RefusedPod { role, message } in refused {
        if PASSING.iter().any(|words| message.contains(words)) {
            continue;
        }
        let remedy = match message.contains("violates PodSecurity") {
            true if message.contains(HOST_NETWORK) => {
                "run it without --host-network (`host_network = true` in longshore.toml), or in a namespace with the Pod Security level `privileged`, which an administrator sets with `kubectl label namespace NAME pod-security.kubernetes.io/enforce=privileged --overwrite`"
            }
            true => {
                "run it with --restricted (`restricted = true` in longshore.toml), or set the fields that are named in a pod template (--template)"
            }
            false => {
                "change the named fields with a pod template (--template), or ask the administrator of the namespace"
            }
        };
        report.refusals.push(Finding::new(
            Cause::AdmissionRefused,
            format!("the cluster does not admit the pods of {role}: {message}"),
            remedy,
        ));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn refused(message: &str) -> Report {
        let mut report = Report::default();
        let pod = RefusedPod {
            role: "worker".into(),
            message: message.into(),
        };
        check(&[pod], &mut report);
        report
    }

    #[test]
    fn a_security_level_has_its_own_remedy() {
        let report = refused("violates PodSecurity \"restricted:latest\": runAsNonRoot != true");
        let found = &report.refusals[0];
        assert_eq!(found.kind, Cause::AdmissionRefused);
        assert!(found.problem.contains("worker: violates PodSecurity"));
        assert!(found.remedy.contains("--restricted"));
        let report =
            refused("violates PodSecurity \"baseline:latest\": host namespaces (hostNetwork=true)");
        let remedy = &report.refusals[0].remedy;
        assert!(remedy.contains("without --host-network"), "{remedy}");
        assert!(!remedy.contains("--restricted"), "{remedy}");
        let report = refused("admission webhook \"images.example.org\" denied the request: no");
        assert!(report.refusals[0].remedy.contains("--template"));
    }

    #[test]
    fn temporary_rejections_are_not_reported() {
        for message in [
            "exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1",
            "error looking up service account a/default: serviceaccount \"default\" not found",
        ] {
            assert_eq!(refused(message), Report::default());
        }
    }

    #[test]
    fn a_more_specific_finding_is_not_repeated() {
        let exact = Finding::new(Cause::LimitRange, "too much", "less");
        let mut report = Report {
            refusals: vec![exact.clone()],
            warnings: Vec::new(),
        };
        let pod = RefusedPod {
            role: "main".into(),
            message: "maximum memory usage per Container is 128Mi".into(),
        };
        check(&[pod], &mut report);
        assert_eq!(report.refusals, [exact]);
    }
}
