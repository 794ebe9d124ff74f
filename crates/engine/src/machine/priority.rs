//! What PriorityClasses mean to new pods, and that one class alone is the
//! default: admission's part, done by the server itself.

use longshore_model::KindInfo;

use super::{Draftable, Transaction};
use crate::{Error, Subject, json, state::State};

/// Where a class says that it is the default, in the text of one that is.
const DEFAULT: &[u8] = br#""globalDefault":true"#;
/// What pods do to lesser ones, if nobody says otherwise.
const PREEMPT: &str = "PreemptLowerPriority";

/// What a class gives to a pod.
#[derive(Debug)]
struct Class {
    name: String,
    value: i64,
    preemption: String,
}

impl Class {
    fn read(class: &Draftable) -> Self {
        let preemption = match json::text(class, "preemptionPolicy") {
            "" => PREEMPT,
            given => given,
        };
        Self {
            name: json::text(class, "metadata.name").to_owned(),
            value: json::number(class, "value").unwrap_or_default(),
            preemption: preemption.to_owned(),
        }
    }

    /// The class of this name.
    fn named(state: &State, name: &str) -> Option<Self> {
        let id = state
            .kinds
            .builtin_id("scheduling.k8s.io", "PriorityClass")?;
        let class = state.table(id).objects.get(name)?;
        Some(Self::read(&class.map()))
    }

    /// The class of pods that name none.
    fn default(state: &State) -> Option<Self> {
        let id = state
            .kinds
            .builtin_id("scheduling.k8s.io", "PriorityClass")?;
        let classes = state.table(id).objects.values();
        let classes = classes
            // Few are, and most pods name no class: a look at the text will do.
            .filter(|class| class.bytes().windows(DEFAULT.len()).any(|at| at == DEFAULT))
            .map(|class| class.map())
            .filter(|class| class.get("globalDefault") == Some(&true.into()));
        classes
            .map(|class| Self::read(&class))
            .min_by_key(|class| class.value)
    }
}

/// Gives a new pod the priority of its class.
///
/// # Errors
/// When there is no such class, or the pod says otherwise than the class (403).
pub(super) fn of_pod(state: &State, info: &KindInfo, pod: &mut Draftable) -> Result<(), Error> {
    let subject = Subject::new(info, json::text(pod, "metadata.name"));
    let refused = |reason: String| Error::Forbidden {
        subject: subject.clone(),
        reason,
        causes: Vec::new(),
    };
    let spec = json::child(pod, "spec");
    let named = json::text(spec, "priorityClassName").to_owned();
    let class = if named.is_empty() {
        Class::default(state)
    } else {
        let missing = || refused(format!("no PriorityClass with name {named} was found"));
        Some(Class::named(state, &named).ok_or_else(missing)?)
    };
    let class = class.unwrap_or_else(|| Class {
        name: String::new(),
        value: 0,
        preemption: PREEMPT.to_owned(),
    });
    if let Some(given) = json::number(spec, "priority").filter(|given| *given != class.value) {
        return Err(refused(format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller computed {} from the given PriorityClass name",
            class.value
        )));
    }
    let given = json::text(spec, "preemptionPolicy");
    if !given.is_empty() && given != class.preemption {
        return Err(refused(format!(
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

/// Refuses a second default among the classes (403).
pub(super) fn one_default(
    tx: &Transaction<'_>,
    info: &KindInfo,
    class: &Draftable,
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
