//! Bindings of policies.

use serde_json::{Map, Value};

use super::{matching::Resources, params::ParamRef};

/// The action after a failed validation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::webhooks) enum Action {
    Deny,
    Warn,
    Audit,
}

impl Action {
    const ALL: [Self; 3] = [Self::Deny, Self::Warn, Self::Audit];

    /// The name of the action in objects.
    pub(in crate::webhooks) fn word(&self) -> &'static str {
        match self {
            Self::Deny => "Deny",
            Self::Warn => "Warn",
            Self::Audit => "Audit",
        }
    }
}

/// A binding.
#[derive(Debug)]
pub(in crate::webhooks) struct Binding {
    pub(in crate::webhooks) name: String,
    /// The requests that the binding matches; `None` for all requests of its policy.
    pub(in crate::webhooks) resources: Option<Resources>,
    pub(in crate::webhooks) params: Option<ParamRef>,
    pub(in crate::webhooks) actions: Vec<Action>,
}

impl Binding {
    pub(in crate::webhooks) fn read(name: &str, spec: &Map<String, Value>) -> Self {
        let object = |field: &str| spec.get(field).and_then(Value::as_object);
        let actions = spec.get("validationActions").and_then(Value::as_array);
        let actions = actions.into_iter().flatten().filter_map(Value::as_str);
        Self {
            name: name.to_owned(),
            resources: object("matchResources").map(Resources::read),
            params: object("paramRef").map(ParamRef::read),
            actions: actions
                .filter_map(|word| {
                    let mut all = Action::ALL.into_iter();
                    all.find(|action| action.word() == word)
                })
                .collect(),
        }
    }
}
