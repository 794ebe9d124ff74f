//! Label selectors: `app=web,tier in (a,b),!canary`.

use std::{collections::BTreeMap, fmt, str::FromStr};

use super::{
    SelectorError,
    parse::{self, Problem},
};
use crate::name;

/// What one requirement asks of a label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Test {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Absent,
    Greater(i64),
    Less(i64),
}

/// A label selector: requirements that must all hold; empty matches everything.
///
/// Reads `= == != in notin key !key < >`. As in Kubernetes, `!=` and `notin`
/// match objects without the label.
///
/// ```
/// use longshore_model::LabelSelector;
/// let selector: LabelSelector = "app=web,tier in (a, b),!canary".parse().unwrap();
/// let labels = [("app", "web"), ("tier", "b")].map(|(k, v)| (k.to_string(), v.to_string())).into();
/// assert!(selector.matches(&labels));
/// assert_eq!(selector.to_string(), "app=web,tier in (a,b),!canary");
/// assert!("app in web".parse::<LabelSelector>().is_err());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Vec<(String, Test)>,
}

impl LabelSelector {
    /// Matches everything.
    #[must_use]
    pub fn everything() -> Self {
        Self::default()
    }

    /// All the labels given, with exactly these values.
    ///
    /// # Errors
    /// An invalid key or value.
    pub fn exactly<K, V>(labels: impl IntoIterator<Item = (K, V)>) -> Result<Self, SelectorError>
    where
        K: Into<String>,
        V: Into<String>,
    {
        let requirements = labels
            .into_iter()
            .map(|(key, value)| (key.into(), Test::In(vec![value.into()])))
            .collect();
        let selector = Self { requirements };
        selector.check(&selector.to_string())?;
        Ok(selector)
    }

    /// One requirement.
    pub(super) fn of(key: String, test: Test) -> Result<Self, SelectorError> {
        let selector = Self {
            requirements: vec![(key, test)],
        };
        selector.check(&selector.to_string())?;
        Ok(selector)
    }

    /// Whether it has no requirement.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Adds the requirements of `other`.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.requirements.extend(other.requirements);
        self
    }

    /// A label that must have one of a few values, and these; of several such
    /// the one with the fewest. For those who keep an index by labels.
    ///
    /// ```
    /// use longshore_model::LabelSelector;
    /// let selector: LabelSelector = "tier in (a,b),app=web,!canary".parse().unwrap();
    /// assert_eq!(selector.narrowest(), Some(("app", &["web".to_owned()][..])));
    /// assert_eq!("!canary".parse::<LabelSelector>().unwrap().narrowest(), None);
    /// ```
    #[must_use]
    pub fn narrowest(&self) -> Option<(&str, &[String])> {
        let one_of = self
            .requirements
            .iter()
            .filter_map(|(key, test)| match test {
                Test::In(values) => Some((key.as_str(), values.as_slice())),
                _ => None,
            });
        one_of.min_by_key(|(_, values)| values.len())
    }

    /// Whether labels meet every requirement.
    #[must_use]
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.matches_with(|key| labels.get(key).map(String::as_str))
    }

    /// As [`LabelSelector::matches`], over any way to look a label up.
    pub fn matches_with<'a>(&self, get: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.iter().all(|(key, test)| {
            let value = get(key);
            let number = || value.and_then(|value| value.parse::<i64>().ok());
            match test {
                Test::In(values) => value.is_some_and(|v| values.iter().any(|x| x == v)),
                Test::NotIn(values) => !value.is_some_and(|v| values.iter().any(|x| x == v)),
                Test::Exists => value.is_some(),
                Test::Absent => value.is_none(),
                Test::Greater(bound) => number().is_some_and(|n| n > *bound),
                Test::Less(bound) => number().is_some_and(|n| n < *bound),
            }
        })
    }

    fn check(&self, selector: &str) -> Result<(), SelectorError> {
        let error = |problem: name::NameError| SelectorError {
            selector: selector.to_owned(),
            opening: String::new(),
            problem: problem.to_string(),
        };
        for (key, test) in &self.requirements {
            name::label_key(key).map_err(error)?;
            if let Test::In(values) | Test::NotIn(values) = test {
                values
                    .iter()
                    .try_for_each(|value| name::label_value(value))
                    .map_err(error)?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (key, test)) in self.requirements.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            match test {
                Test::In(values) if values.len() == 1 => write!(f, "{key}={}", values[0])?,
                Test::NotIn(values) if values.len() == 1 => write!(f, "{key}!={}", values[0])?,
                Test::In(values) => write!(f, "{key} in ({})", values.join(","))?,
                Test::NotIn(values) => write!(f, "{key} notin ({})", values.join(","))?,
                Test::Exists => write!(f, "{key}")?,
                Test::Absent => write!(f, "!{key}")?,
                Test::Greater(bound) => write!(f, "{key}>{bound}")?,
                Test::Less(bound) => write!(f, "{key}<{bound}")?,
            }
        }
        Ok(())
    }
}

impl FromStr for LabelSelector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let requirements = parse::requirements(text).map_err(|problem| {
            let (opening, problem) = match problem {
                Problem::Within(problem) => ("unable to parse requirement: ", problem),
                Problem::Around(problem) => ("", problem),
            };
            SelectorError {
                selector: text.to_owned(),
                opening: opening.to_owned(),
                problem,
            }
        })?;
        Ok(Self { requirements })
    }
}
