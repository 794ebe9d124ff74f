//! The fields of a PodDisruptionBudget that the controller reads.

use std::collections::BTreeMap;

use longshore_client::{Error, Item, LabelSelector, kinds::Any};
use longshore_model::selector::StructuredSelector;
use serde::Deserialize;

use super::status::Status;
use crate::{key::Key, selector_text};

/// A number of pods, or a percentage of the expected pods such as `50%`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(super) enum Amount {
    Number(i32),
    Percentage(String),
}

impl Amount {
    /// Returns the number of pods, rounded up.
    ///
    /// # Errors
    /// Returns Kubernetes' message if the text is not a percentage.
    pub(super) fn of(&self, total: i32) -> Result<i32, String> {
        match self {
            Self::Number(number) => Ok(*number),
            Self::Percentage(text) => {
                let invalid = || {
                    format!(
                        "invalid value for IntOrString: invalid type: string is not a percentage: {text:?}"
                    )
                };
                let digits = text.strip_suffix('%').ok_or_else(invalid)?;
                let percent: i64 = digits.parse().map_err(|_| invalid())?;
                let scaled = i64::from(total).saturating_mul(percent);
                let rounded = scaled.div_euclid(100) + i64::from(scaled.rem_euclid(100) > 0);
                Ok(i32::try_from(rounded).unwrap_or(i32::MAX))
            }
        }
    }
}

/// The fields of a PodDisruptionBudget that the controller reads.
#[derive(Debug, Clone)]
pub(super) struct Budget {
    pub(super) key: Key,
    pub(super) uid: String,
    pub(super) generation: i64,
    /// `None` selects no pods.
    pub(super) selector: Option<LabelSelector>,
    /// The selector in Kubernetes' format for events.
    pub(super) selector_text: String,
    pub(super) min_available: Option<Amount>,
    pub(super) max_unavailable: Option<Amount>,
    /// The stored status.
    pub(super) status: Status,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Raw {
    spec: RawSpec,
    status: Option<Status>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct RawSpec {
    selector: Option<StructuredSelector>,
    min_available: Option<Amount>,
    max_unavailable: Option<Amount>,
}

impl Budget {
    /// Reads the object.
    ///
    /// # Errors
    /// A field has an unexpected type.
    pub(super) fn of(item: &Item<Any>) -> Result<Self, Error> {
        let raw: Raw = item.typed()?;
        let selector_text = raw
            .spec
            .selector
            .as_ref()
            .map_or_else(|| "nil".to_owned(), selector_text::printed);
        let selector = raw.spec.selector.map(LabelSelector::try_from).transpose();
        Ok(Self {
            key: Key::of(item),
            uid: item.uid().to_owned(),
            generation: item.meta().generation.unwrap_or(0),
            selector: selector.map_err(|error| Error::Invalid(error.to_string()))?,
            selector_text,
            min_available: raw.spec.min_available,
            max_unavailable: raw.spec.max_unavailable,
            status: raw.status.unwrap_or_default(),
        })
    }

    /// Returns true if the budget selects a pod with these labels.
    pub(super) fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        let selector = self.selector.as_ref();
        selector.is_some_and(|selector| selector.matches(labels))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn percentages_are_rounded_up() {
        let amount = |value| serde_json::from_value::<Amount>(value).unwrap();
        for (value, total, expected) in [
            (json!(3), 10, Ok(3)),
            (json!("50%"), 10, Ok(5)),
            (json!("33%"), 10, Ok(4)),
            (json!("0%"), 10, Ok(0)),
            (json!("100%"), 7, Ok(7)),
            (json!("25%"), 0, Ok(0)),
        ] {
            assert_eq!(
                amount(value.clone()).of(total),
                expected,
                "{value} of {total}"
            );
        }
        assert!(amount(json!("3")).of(1).is_err());
        assert_eq!(amount(json!("99999999999%")).of(i32::MAX), Ok(i32::MAX));
    }
}
