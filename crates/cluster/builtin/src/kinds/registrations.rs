//! The kinds that extend or configure the API server: admission webhooks and policies,
//! definitions, APIServices, certificate requests and leases.

use crate::{
    Behaviour, Generation, KindRules, Lifecycle, NameRule, PLAIN, defaults, json,
    table::{self, columns, registrations},
    validate::{self, admission_policy, webhook},
};
use Behaviour::Acts;

const ADMISSION: KindRules = KindRules {
    group: "admissionregistration.k8s.io",
    behaviour: Acts("its webhooks are called"),
    generation: Generation::Content,
    unconditional_update: false,
    validate: webhook::configuration,
    validate_new: webhook::new_object,
    columns: registrations::WEBHOOKS,
    cells: registrations::webhooks,
    ..PLAIN
};

/// The policies and their bindings.
const POLICY: KindRules = KindRules {
    behaviour: Acts("requests are checked and changed by its expressions"),
    generation: Generation::Spec,
    status_metadata: &[],
    ..ADMISSION
};

pub(super) static KINDS: &[KindRules] = &[
    KindRules {
        kind: "MutatingAdmissionPolicy",
        fill: defaults::admission_policy::fill,
        validate: admission_policy::mutating,
        columns: registrations::MUTATING_POLICY,
        cells: registrations::mutating_policy,
        ..POLICY
    },
    KindRules {
        kind: "MutatingAdmissionPolicyBinding",
        behaviour: Acts("puts its policy into effect"),
        fill: defaults::admission_policy::fill_binding,
        validate: admission_policy::mutating_binding,
        columns: registrations::POLICY_BINDING,
        cells: registrations::policy_binding,
        ..POLICY
    },
    KindRules {
        kind: "MutatingWebhookConfiguration",
        fill: defaults::webhook::fill_mutating,
        ..ADMISSION
    },
    KindRules {
        kind: "ValidatingAdmissionPolicy",
        behaviour: Acts("requests are checked by its expressions, whose types are checked"),
        fill: defaults::admission_policy::fill,
        validate: admission_policy::validating,
        columns: registrations::VALIDATING_POLICY,
        cells: registrations::validating_policy,
        ..POLICY
    },
    KindRules {
        kind: "ValidatingAdmissionPolicyBinding",
        behaviour: Acts("puts its policy into effect"),
        fill: defaults::admission_policy::fill_binding,
        validate: admission_policy::validating_binding,
        columns: registrations::POLICY_BINDING,
        cells: registrations::policy_binding,
        ..POLICY
    },
    KindRules {
        kind: "ValidatingWebhookConfiguration",
        fill: defaults::webhook::fill_validating,
        ..ADMISSION
    },
    KindRules {
        group: "apiextensions.k8s.io",
        kind: "CustomResourceDefinition",
        behaviour: Acts("defines a kind that is served"),
        generation: Generation::Spec,
        unconditional_update: false,
        fill: defaults::definition::fill,
        on_create: defaults::definition::on_create,
        on_update: |_, definition| defaults::definition::on_update(definition),
        validate: validate::definition::object,
        validate_update: validate::definition::change,
        lifecycle: Lifecycle::Definition,
        columns: columns::DEFINITION,
        cells: table::plain::definition,
        ..PLAIN
    },
    KindRules {
        group: "apiregistration.k8s.io",
        kind: "APIService",
        behaviour: Acts("requests for its version are forwarded to its Service"),
        name: NameRule::PathSegment,
        unconditional_update: false,
        status_metadata: &[],
        fill: |object| defaults::webhook::service(json::child(object, "spec")),
        on_create: defaults::webhook::on_create,
        on_insert: defaults::webhook::on_insert,
        validate: validate::registration::api_service,
        validate_status: |_, after, causes| {
            validate::registration::api_service_status(after, causes);
        },
        columns: registrations::SERVICE,
        cells: registrations::service,
        ..PLAIN
    },
    KindRules {
        group: "certificates.k8s.io",
        kind: "CertificateSigningRequest",
        behaviour: Acts("a controller signs approved requests for the signers of Kubernetes"),
        fields: &["spec.signerName"],
        name: NameRule::PathSegment,
        has_fixed_spec: true,
        on_update: |before, object| json::copy(before, object, "spec"),
        on_status: defaults::certificate::on_status,
        validate: validate::certificate::request,
        validate_status: |before, after, causes| {
            validate::certificate::status(before, after, false, causes);
        },
        columns: registrations::REQUEST,
        cells: registrations::request,
        ..PLAIN
    },
    KindRules {
        group: "certificates.k8s.io",
        kind: "ClusterTrustBundle",
        behaviour: Acts("projected volumes contain its certificates"),
        fields: &["spec.signerName"],
        name: NameRule::OfSigner,
        unconditional_update: false,
        validate: validate::trust_bundle::object,
        validate_update: validate::trust_bundle::update,
        columns: registrations::BUNDLE,
        cells: registrations::bundle,
        ..PLAIN
    },
    KindRules {
        group: "certificates.k8s.io",
        kind: "PodCertificateRequest",
        behaviour: Acts("the node requests certificates for projected volumes with it"),
        fields: &["spec.nodeName", "spec.podName", "spec.signerName"],
        unconditional_update: false,
        status_metadata: &[],
        fill: validate::pod_certificate::fill,
        validate_new: validate::pod_certificate::new_request,
        validate_update: validate::pod_certificate::update,
        validate_status_now: validate::pod_certificate::status,
        columns: registrations::POD_REQUEST,
        cells: registrations::pod_request,
        ..PLAIN
    },
    KindRules {
        group: "coordination.k8s.io",
        kind: "Lease",
        behaviour: Acts("the node agent renews its own"),
        unconditional_update: false,
        create_on_update: true,
        fill: defaults::lease::fill,
        validate: validate::lease::object,
        columns: columns::LEASE,
        cells: table::plain::lease,
        ..PLAIN
    },
];
