//! The entry of a kind in the table: all rules by which the API server treats the kind differently
//! from others.

use jiff::Timestamp;
use longshore_model::CauseList;
use serde_json::Value;

use crate::{
    behaviour::Behaviour,
    json::{self, Object},
    table::{self, Cells, Column},
};

/// The rule for the names of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameRule {
    /// A DNS subdomain.
    Subdomain,
    /// A DNS label.
    Label,
    /// Any valid path segment: roles and their bindings.
    PathSegment,
    /// An IP address in canonical form.
    Address,
    /// A DNS subdomain, prefixed with the object's signer if it has one.
    OfSigner,
}

/// The treatment of a status in a create request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SentStatus {
    /// The status is kept: nodes register with a status.
    Kept,
    /// The status is dropped.
    Dropped,
}

/// Changes that increment `metadata.generation`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    /// The kind has no generation.
    Absent,
    /// The generation is always 1.
    Fixed,
    /// Changes of the spec.
    Spec,
    /// Changes of the spec; a new object has no generation.
    SpecFromNone,
    /// Changes of the spec or the annotations.
    SpecAndAnnotations,
    /// Changes of anything except the metadata.
    Content,
}

impl Generation {
    /// Returns true if a change increments the generation.
    #[must_use]
    pub fn counts(self, before: &Object, after: &Object) -> bool {
        let differ = |field: &str| before.get(field) != after.get(field);
        let annotations = |object| json::at(object, "metadata.annotations");
        match self {
            Self::Absent | Self::Fixed => false,
            Self::Spec | Self::SpecFromNone => differ("spec"),
            Self::SpecAndAnnotations => differ("spec") || annotations(before) != annotations(after),
            Self::Content => {
                let mut fields = before.keys().chain(after.keys());
                // The storage version of a custom object may change without an effect on the
                // generation.
                let counts = |field: &str| !matches!(field, "metadata" | "apiVersion");
                fields.any(|field| counts(field) && differ(field))
            }
        }
    }
}

/// A second API version or group in which the objects of a kind are served. The
/// engine converts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtherVersion {
    /// Events of events.k8s.io.
    EventsV1,
    /// HorizontalPodAutoscalers of autoscaling/v1.
    AutoscalingV1,
}

impl OtherVersion {
    /// The API version.
    #[must_use]
    pub fn api_version(self) -> &'static str {
        match self {
            Self::EventsV1 => "events.k8s.io/v1",
            Self::AutoscalingV1 => "autoscaling/v1",
        }
    }
}

/// Checks and defaults of a write that depend on other objects of the cluster, like Kubernetes'
/// admission plugins and allocators. The engine implements them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// The kind has no such rules.
    None,
    /// Services get an unused cluster IP and unused node ports.
    ServiceAddresses,
    /// At most one PriorityClass is the default.
    SingleDefault,
    /// New pods get the values of their PriorityClass and RuntimeClass.
    PodClasses,
    /// New claims get the default StorageClass. The class decides whether a claim can be expanded.
    ClaimClass,
}

/// How `spec.selector` of a kind with the subresource `scale` selects pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodSelector {
    /// The selector is a label selector.
    Labels,
    /// The selector is a map of labels.
    Map,
}

/// The rules for deleting objects of a kind. The engine implements them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifecycle {
    /// An object is removed when it has no finalizers.
    Plain,
    /// Like `Plain`, after a grace period: pods.
    GracePeriod,
    /// Like `Plain`, and one hour after its last write: Events.
    Expiring,
    /// A namespace gets initial contents and is removed after its contents. Namespaces are deleted
    /// only by name, not as a collection.
    Namespace,
    /// A definition of a custom kind is removed after the objects of the kind.
    Definition,
}

/// The rules for the objects of a kind. Entries override the fields of [`PLAIN`].
#[derive(Debug, Clone, Copy)]
pub struct KindRules {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// The actions of the embedded cluster on the objects.
    pub behaviour: Behaviour,
    /// A second version in which the objects are served.
    pub other_version: Option<OtherVersion>,

    /// Selectable fields besides `metadata.name` and `metadata.namespace`.
    pub fields: &'static [&'static str],
    /// The rule for names.
    pub name: NameRule,
    /// Changes that increment the generation.
    pub generation: Generation,
    /// The treatment of a status in a create request.
    pub sent_status: SentStatus,
    /// True if an update may omit the resource version.
    pub unconditional_update: bool,
    /// True if an update creates a missing object.
    pub create_on_update: bool,
    /// True if only the server may change the spec after creation.
    pub has_fixed_spec: bool,
    /// Metadata fields that a status update also changes.
    pub status_metadata: &'static [&'static str],

    /// Sets missing fields to their defaults; idempotent.
    pub fill: fn(&mut Object),
    /// Prepares a new object, before validation.
    pub on_create: fn(&mut Object),
    /// Sets fields of a new object to its creation time.
    pub on_insert: fn(&mut Object, &str),
    /// Resets the fields of an object that an update cannot change; receives the
    /// previous state first.
    pub on_update: fn(&Object, &mut Object),
    /// Makes redundant status fields consistent; receives the previous state
    /// first.
    pub on_status: fn(&Object, &mut Object, Timestamp),
    /// Derives fields from the difference to the previous state, after all
    /// defaults are set.
    pub derive_fields: fn(Option<&Object>, &mut Object),

    /// Validates an object without regard to other objects or its previous state.
    pub validate: fn(&Object, &mut CauseList),
    /// Rules that apply only to new objects.
    pub validate_new: fn(&Object, &mut CauseList),
    /// Validates a change: the object before and after it.
    pub validate_update: fn(&Object, &Object, &mut CauseList),
    /// Validates a change of the status: the object before and after it.
    pub validate_status: fn(&Object, &Object, &mut CauseList),
    /// Like `validate_status`, for rules that depend on the time.
    pub validate_status_now: fn(&Object, &Object, Timestamp, &mut CauseList),

    /// Checks and defaults that depend on other objects of the cluster.
    pub admission: Admission,
    /// Groups and kinds for which a write may read all objects. The write is repeated if one of
    /// these objects has changed.
    pub reads_all_of: &'static [(&'static str, &'static str)],

    /// How `spec.selector` selects pods, for the subresource `scale`.
    pub pod_selector: PodSelector,

    /// The rules for deleting objects.
    pub lifecycle: Lifecycle,
    /// True if a delete without a propagation policy orphans dependents.
    pub orphan_by_default: bool,
    /// True if a delete returns the deleted object instead of a `Status`.
    pub returns_deleted: bool,

    /// The columns of tables.
    pub columns: &'static [Column],
    /// Fills the cells of a row, one per column.
    pub cells: Cells,
    /// The conditions of a row.
    pub row_conditions: fn(&Value) -> Option<Value>,
}

/// The rules for kinds without an entry, and the defaults of entries.
pub static PLAIN: KindRules = KindRules {
    group: "",
    kind: "",
    behaviour: Behaviour::Data,
    other_version: None,
    fields: &[],
    name: NameRule::Subdomain,
    generation: Generation::Absent,
    sent_status: SentStatus::Dropped,
    unconditional_update: true,
    create_on_update: false,
    has_fixed_spec: false,
    status_metadata: &["labels", "annotations", "finalizers", "ownerReferences"],
    fill: |_| {},
    on_create: |_| {},
    on_insert: |_, _| {},
    on_update: |_, _| {},
    on_status: |_, _, _| {},
    derive_fields: |_, _| {},
    validate: |_, _| {},
    validate_new: |_, _| {},
    validate_update: |_, _, _| {},
    validate_status: |_, _, _| {},
    validate_status_now: |_, _, _, _| {},
    admission: Admission::None,
    reads_all_of: &[],
    pod_selector: PodSelector::Labels,
    lifecycle: Lifecycle::Plain,
    orphan_by_default: false,
    returns_deleted: false,
    columns: table::columns::ANY,
    cells: table::plain::any,
    row_conditions: |_| None,
};

/// The rules for custom kinds. Their definitions add validation and columns.
pub static CUSTOM: KindRules = KindRules {
    generation: Generation::Content,
    unconditional_update: false,
    status_metadata: &[],
    ..PLAIN
};

impl KindRules {
    /// Returns true if objects can be deleted as a collection. Namespaces cannot, because each
    /// deletion includes all objects in the namespace.
    #[must_use]
    pub fn supports_delete_collection(&self) -> bool {
        self.lifecycle != Lifecycle::Namespace
    }
}
