//! The priority admission plugin: sets the priority of new pods from their
//! PriorityClass, and allows only one default class.

use longshore_builtin::json;
use longshore_model::KindInfo;

use super::{JsonObject, Transaction};
use crate::{Error, Subject, state::State};

/// The JSON text of a default class contains this.
const DEFAULT_CLASS: &[u8] = br#""globalDefault":true"#;
/// The default preemption policy of pods.
const DEFAULT_PREEMPTION_POLICY: &str = "PreemptLowerPriority";

fn is_marked_as_default(json: &[u8]) -> bool {
    json.windows(DEFAULT_CLASS.len())
        .any(|window| window == DEFAULT_CLASS)
}

/// The values that a class sets in a pod.
#[derive(Debug)]
struct Class {
    name: String,
    value: i64,
    preemption: String,
}

impl Class {
    fn read(class: &JsonObject) -> Self {
        let preemption = match json::text(class, "preemptionPolicy") {
            "" => DEFAULT_PREEMPTION_POLICY,
            given => given,
        };
        Self {
            name: json::text(class, "metadata.name").to_owned(),
            value: json::number(class, "value").unwrap_or_default(),
            preemption: preemption.to_owned(),
        }
    }

    /// The class with this name.
    fn named(state: &State, name: &str) -> Option<Self> {
        let id = state
            .kinds
            .builtin_id("scheduling.k8s.io", "PriorityClass")?;
        let class = state.table(id).objects.get(name)?;
        Some(Self::read(&class.map()))
    }

    /// The class of pods that do not specify a class.
    fn default(state: &State) -> Option<Self> {
        let id = state
            .kinds
            .builtin_id("scheduling.k8s.io", "PriorityClass")?;
        let classes = state.table(id).objects.values();
        let classes = classes
            // Default classes are rare and most pods specify no class, so
            // searching the JSON text is faster than decoding it.
            .filter(|class| is_marked_as_default(class.bytes()))
            .map(|class| class.map())
            .filter(|class| class.get("globalDefault") == Some(&true.into()));
        classes
            .map(|class| Self::read(&class))
            .min_by_key(|class| class.value)
    }
}

/// Sets the priority of a new pod from its class.
///
/// # Errors
/// Fails if the class does not exist or the pod contradicts it (403).
pub(super) fn apply_to_pod(
    state: &State,
    info: &KindInfo,
    pod: &mut JsonObject,
) -> Result<(), Error> {
    let subject = Subject::new(info, json::text(pod, "metadata.name"));
    let forbidden = |reason: String| Error::Forbidden {
        subject: subject.clone(),
        reason,
        causes: Vec::new(),
    };
    let spec = json::child(pod, "spec");
    let named = json::text(spec, "priorityClassName").to_owned();
    let class = if named.is_empty() {
        Class::default(state)
    } else {
        let missing = || forbidden(format!("no PriorityClass with name {named} was found"));
        Some(Class::named(state, &named).ok_or_else(missing)?)
    };
    let class = class.unwrap_or_else(|| Class {
        name: String::new(),
        value: 0,
        preemption: DEFAULT_PREEMPTION_POLICY.to_owned(),
    });
    if let Some(given) = json::number(spec, "priority").filter(|given| *given != class.value) {
        return Err(forbidden(format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller computed {} from the given PriorityClass name",
            class.value
        )));
    }
    let given = json::text(spec, "preemptionPolicy");
    if !given.is_empty() && given != class.preemption {
        return Err(forbidden(format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission controller computed {} from the given PriorityClass name",
            class.preemption
        )));
    }
    if !class.name.is_empty() {
        spec.insert("priorityClassName".into(), class.name.into());
    }
    spec.insert("priority".into(), class.value.into());
    spec.insert("preemptionPolicy".into(), class.preemption.into());
    Ok(())
}

/// Rejects a second default class (403).
pub(super) fn check_single_default(
    tx: &Transaction<'_>,
    info: &KindInfo,
    class: &JsonObject,
) -> Result<(), Error> {
    if class.get("globalDefault") != Some(&true.into()) {
        return Ok(());
    }
    let name = json::text(class, "metadata.name");
    match Class::default(tx.state()) {
        Some(other) if other.name != name => Err(Error::Forbidden {
            subject: Subject::new(info, name),
            reason: format!(
                "PriorityClass {} is already marked as default. Only one default can exist",
                other.name
            ),
            causes: Vec::new(),
        }),
        _ => Ok(()),
    }
}
