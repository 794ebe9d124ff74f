//! Label selectors within objects: `matchLabels`, `matchExpressions`.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{LabelSelector, SelectorError, condition::Condition};

/// A label selector in the spec of an object.
///
/// ```
/// use longshore_model::{LabelSelector, selector::StructuredSelector};
/// let structured: StructuredSelector = serde_json::from_value(serde_json::json!({
///     "matchLabels": {"app": "web"},
///     "matchExpressions": [{"key": "tier", "operator": "In", "values": ["a", "b"]}],
/// }))?;
/// assert_eq!(LabelSelector::try_from(structured)?.to_string(), "app=web,tier in (a,b)");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StructuredSelector {
    /// Labels that must have exactly these values.
    pub match_labels: BTreeMap<String, String>,
    /// Additional requirements.
    pub match_expressions: Vec<Requirement>,
}

/// A requirement for a label.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Requirement {
    /// The label key.
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: String,
    /// The values for `In` and `NotIn`.
    pub values: Vec<String>,
}

impl TryFrom<StructuredSelector> for LabelSelector {
    type Error = SelectorError;

    fn try_from(structured: StructuredSelector) -> Result<Self, SelectorError> {
        let mut selector = Self::exactly(structured.match_labels)?;
        for Requirement {
            key,
            operator,
            values,
        } in structured.match_expressions
        {
            let condition = match operator.as_str() {
                "In" => Condition::In(values),
                "NotIn" => Condition::NotIn(values),
                "Exists" => Condition::Exists,
                "DoesNotExist" => Condition::Absent,
                other => {
                    return Err(SelectorError {
                        selector: format!("{key} {other}"),
                        opening: String::new(),
                        problem: format!(
                            "{other:?} is not an operator: there are In, NotIn, Exists, DoesNotExist"
                        ),
                    });
                }
            };
            selector = selector.and(Self::of(key, condition)?);
        }
        Ok(selector)
    }
}
