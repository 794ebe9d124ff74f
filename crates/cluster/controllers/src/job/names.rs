//! Labels, annotations, finalizers and condition types of Jobs.

/// The finalizer of pods that have not been counted yet.
pub(crate) const FINALIZER: &str = "batch.kubernetes.io/job-tracking";
/// The annotation with the number of earlier failures of the index.
pub(crate) const INDEX_FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
/// The annotation with the number of earlier ignored failures of the index.
pub(crate) const INDEX_IGNORED: &str = "batch.kubernetes.io/job-index-ignored-failure-count";
/// The current and the legacy label with the Job's name.
pub(crate) const JOB_NAME: [&str; 2] = ["batch.kubernetes.io/job-name", "job-name"];
/// The current and the legacy label with the Job's UID.
pub(crate) const CONTROLLER_UID: [&str; 2] =
    ["batch.kubernetes.io/controller-uid", "controller-uid"];
/// The environment variable with the completion index.
pub(crate) const INDEX_VARIABLE: &str = "JOB_COMPLETION_INDEX";
/// The value of `spec.managedBy` for this controller.
pub(crate) const MANAGER: &str = "kubernetes.io/job-controller";

/// The condition type: the Job has succeeded.
pub(crate) const COMPLETE: &str = "Complete";
/// The condition type: the Job has failed.
pub(crate) const FAILED: &str = "Failed";
/// The condition type: the Job will fail, and its pods are being terminated.
pub(crate) const FAILURE_TARGET: &str = "FailureTarget";
/// The condition type: the Job will succeed, and its remaining pods are being
/// terminated.
pub(crate) const SUCCESS_CRITERIA_MET: &str = "SuccessCriteriaMet";
/// The condition type: the Job is suspended.
pub(crate) const SUSPENDED: &str = "Suspended";
