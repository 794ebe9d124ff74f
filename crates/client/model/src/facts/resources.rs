//! Amounts of resources.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

use crate::Quantity;

/// Quantities as the object has them, by resource name.
pub type Quantities = BTreeMap<String, String>;

/// The resource requests and limits of a container.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ResourceNeeds {
    /// Guaranteed amounts.
    #[serde(deserialize_with = "quantities")]
    pub requests: Quantities,
    /// Maximum amounts.
    #[serde(deserialize_with = "quantities")]
    pub limits: Quantities,
}

/// Reads quantities that are strings or numbers. `null` is an empty map.
///
/// # Errors
/// The value is not a map.
pub fn quantities<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Quantities, D::Error> {
    let read: Option<BTreeMap<String, serde_json::Value>> = Option::deserialize(deserializer)?;
    let text = |value: serde_json::Value| match value {
        serde_json::Value::String(text) => text,
        other => other.to_string(),
    };
    Ok(read
        .into_iter()
        .flatten()
        .map(|(name, value)| (name, text(value)))
        .collect())
}

/// The value of a quantity. Returns `None` if it is missing or invalid.
#[must_use]
pub fn quantity(quantities: &Quantities, name: &str) -> Option<f64> {
    let quantity: Option<Quantity> = quantities.get(name)?.parse().ok();
    quantity.map(|quantity| quantity.value())
}
