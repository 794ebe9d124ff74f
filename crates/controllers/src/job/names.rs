//! Labels, annotations, finalizers and condition types of Jobs.

/// Finalizer on pods that have not been counted yet.
pub(crate) const FINALIZER: &str = "batch.kubernetes.io/job-tracking";
/// Label and annotation with the completion index.
pub(crate) const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// Annotation: failures of the index before this pod.
pub(crate) const INDEX_FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
/// Annotation: ignored failures of the index before this pod.
pub(crate) const INDEX_IGNORED: &str = "batch.kubernetes.io/job-index-ignored-failure-count";
/// Labels with the Job's name: today's and the one before.
pub(crate) const JOB_NAME: [&str; 2] = ["batch.kubernetes.io/job-name", "job-name"];
/// Labels with the Job's uid: today's and the one before.
pub(crate) const CONTROLLER_UID: [&str; 2] =
    ["batch.kubernetes.io/controller-uid", "controller-uid"];
/// Environment variable with the completion index.
pub(crate) const INDEX_VARIABLE: &str = "JOB_COMPLETION_INDEX";
/// The value of `spec.managedBy` that means this controller.
pub(crate) const MANAGER: &str = "kubernetes.io/job-controller";

/// Condition: the Job succeeded.
pub(crate) const COMPLETE: &str = "Complete";
/// Condition: the Job failed.
pub(crate) const FAILED: &str = "Failed";
/// Condition: the Job is about to fail; its pods are being stopped.
pub(crate) const FAILURE_TARGET: &str = "FailureTarget";
/// Condition: the Job is about to succeed; its last pods are going.
pub(crate) const SUCCESS_CRITERIA_MET: &str = "SuccessCriteriaMet";
/// Condition: the Job is held back.
pub(crate) const SUSPENDED: &str = "Suspended";
