//! Label selectors: `app=web,tier in (a,b),!canary`.

use std::{collections::BTreeMap, fmt, str::FromStr};

use super::{
    SelectorError,
    condition::Condition,
    parse::{self, Problem},
};
use crate::name;

/// A label selector: a set of requirements that must all be met. An empty
/// selector matches everything.
///
/// The syntax is `= == != in notin key !key < >`. As in Kubernetes, `!=` and
/// `notin` match objects without the label.
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
    requirements: Vec<(String, Condition)>,
}

impl LabelSelector {
    /// Creates a selector that matches everything.
    #[must_use]
    pub fn everything() -> Self {
        Self::default()
    }

    /// Creates a selector that requires all given labels with exactly these
    /// values.
    ///
    /// # Errors
    /// Fails if a key or value is invalid.
    pub fn exactly<K, V>(labels: impl IntoIterator<Item = (K, V)>) -> Result<Self, SelectorError>
    where
        K: Into<String>,
        V: Into<String>,
    {
        let requirements = labels
            .into_iter()
            .map(|(key, value)| (key.into(), Condition::In(vec![value.into()])))
            .collect();
        let selector = Self { requirements };
        selector.check(&selector.to_string())?;
        Ok(selector)
    }

    /// Creates a selector with one requirement.
    pub(super) fn of(key: String, condition: Condition) -> Result<Self, SelectorError> {
        let selector = Self {
            requirements: vec![(key, condition)],
        };
        selector.check(&selector.to_string())?;
        Ok(selector)
    }

    /// Returns true if the selector has no requirements.
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

    /// The label with the fewest permitted values, and these values. Useful for
    /// lookups in an index of labels.
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
            .filter_map(|(key, condition)| match condition {
                Condition::In(values) => Some((key.as_str(), values.as_slice())),
                _ => None,
            });
        one_of.min_by_key(|(_, values)| values.len())
    }

    /// Parses several alternative selectors from one text. A second required
    /// value for the same label starts a new selector because no label has two
    /// values.
    ///
    /// # Errors
    /// Fails if the text is not a selector.
    ///
    /// ```
    /// use longshore_model::LabelSelector;
    /// let read = |text| LabelSelector::alternatives(text).unwrap().iter().map(ToString::to_string).collect::<Vec<_>>();
    /// assert_eq!(read("job-name=a,job-name=b"), ["job-name=a", "job-name=b"]);
    /// assert_eq!(read("app=x,role in (a,b),app=y"), ["app=x,role in (a,b)", "app=y"]);
    /// assert_eq!(read("app!=x,app!=y"), ["app!=x,app!=y"]);
    /// ```
    pub fn alternatives(text: &str) -> Result<Vec<Self>, SelectorError> {
        let mut all = vec![Self::default()];
        for (key, condition) in text.parse::<Self>()?.requirements {
            let last = all.last().map_or(&[][..], |last| &last.requirements);
            let is_value = |condition: &Condition| matches!(condition, Condition::In(_));
            let stands = last
                .iter()
                .any(|(known, condition)| *known == key && is_value(condition));
            if stands && is_value(&condition) {
                all.push(Self::default());
            }
            if let Some(last) = all.last_mut() {
                last.requirements.push((key, condition));
            }
        }
        Ok(all)
    }

    /// Returns a selector that matches everything that any of the `selectors` matches, and as few
    /// other labels as possible; `None` if it would match everything.
    ///
    /// If each of them restricts the values of a label, the result permits the
    /// union of these values. Requirements common to all are kept.
    ///
    /// ```
    /// use longshore_model::LabelSelector;
    /// let selectors = ["app=train,role=ps,!old", "app=train,role in (worker,chief),!old"];
    /// let selectors = selectors.map(|text| text.parse::<LabelSelector>().unwrap());
    /// let one = LabelSelector::covering(&selectors).unwrap();
    /// assert_eq!(one.to_string(), "app=train,role in (ps,chief,worker),!old");
    /// let apart = ["a=1", "b=2"].map(|text| text.parse::<LabelSelector>().unwrap());
    /// assert_eq!(LabelSelector::covering(&apart), None);
    /// ```
    #[must_use]
    pub fn covering(selectors: &[Self]) -> Option<Self> {
        let (first, others) = selectors.split_first()?;
        let mut requirements: Vec<(String, Condition)> = Vec::new();
        for (key, condition) in &first.requirements {
            let shared = others.iter().try_fold(condition.clone(), |shared, other| {
                let of_key = other.requirements.iter().filter(|(own, _)| own == key);
                of_key
                    .map(|(_, condition)| condition)
                    .find_map(|condition| shared.or(condition))
            });
            let shared = shared.map(|condition| (key.clone(), condition));
            requirements.extend(shared.filter(|shared| !requirements.contains(shared)));
        }
        (!requirements.is_empty()).then_some(Self { requirements })
    }

    /// Returns true if the labels meet all requirements.
    #[must_use]
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.matches_with(|key| labels.get(key).map(String::as_str))
    }

    /// Like [`LabelSelector::matches`], but looks up labels with a function.
    pub fn matches_with<'a>(&self, get: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.iter().all(|(key, condition)| {
            let value = get(key);
            let number = || value.and_then(|value| value.parse::<i64>().ok());
            match condition {
                Condition::In(values) => value.is_some_and(|v| values.iter().any(|x| x == v)),
                Condition::NotIn(values) => !value.is_some_and(|v| values.iter().any(|x| x == v)),
                Condition::Exists => value.is_some(),
                Condition::Absent => value.is_none(),
                Condition::Greater(bound) => number().is_some_and(|n| n > *bound),
                Condition::Less(bound) => number().is_some_and(|n| n < *bound),
            }
        })
    }

    fn check(&self, selector: &str) -> Result<(), SelectorError> {
        let error = |problem: name::NameError| SelectorError {
            selector: selector.to_owned(),
            opening: String::new(),
            problem: problem.to_string(),
        };
        for (key, condition) in &self.requirements {
            name::label_key(key).map_err(error)?;
            if let Condition::In(values) | Condition::NotIn(values) = condition {
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
        for (i, (key, condition)) in self.requirements.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            match condition {
                Condition::In(values) if values.len() == 1 => write!(f, "{key}={}", values[0])?,
                Condition::NotIn(values) if values.len() == 1 => write!(f, "{key}!={}", values[0])?,
                Condition::In(values) => write!(f, "{key} in ({})", values.join(","))?,
                Condition::NotIn(values) => write!(f, "{key} notin ({})", values.join(","))?,
                Condition::Exists => write!(f, "{key}")?,
                Condition::Absent => write!(f, "!{key}")?,
                Condition::Greater(bound) => write!(f, "{key}>{bound}")?,
                Condition::Less(bound) => write!(f, "{key}<{bound}")?,
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
