//! Label selectors: `app=web,tier in (a,b),!canary`.

use std::{collections::BTreeMap, fmt, str::FromStr};

use super::{
    SelectorError,
    condition::Condition,
    parse::{self, Problem},
};
use crate::name;

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
    requirements: Vec<(String, Condition)>,
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
            .map(|(key, value)| (key.into(), Condition::In(vec![value.into()])))
            .collect();
        let selector = Self { requirements };
        selector.check(&selector.to_string())?;
        Ok(selector)
    }

    /// One requirement.
    pub(super) fn of(key: String, condition: Condition) -> Result<Self, SelectorError> {
        let selector = Self {
            requirements: vec![(key, condition)],
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
            .filter_map(|(key, condition)| match condition {
                Condition::In(values) => Some((key.as_str(), values.as_slice())),
                _ => None,
            });
        one_of.min_by_key(|(_, values)| values.len())
    }

    /// Reads selectors that stand in one text, each of which matches: a label
    /// that is to have a value, and had one to have before, begins another, for
    /// no label has two.
    ///
    /// # Errors
    /// What cannot be read.
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

    /// One selector that matches whatever any of the `selectors` does, and as
    /// little else as can be said; `None` when that would be everything.
    ///
    /// A label to which each of them gives a few values may have any of those,
    /// and what all of them ask is asked.
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

    /// Whether labels meet every requirement.
    #[must_use]
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.matches_with(|key| labels.get(key).map(String::as_str))
    }

    /// As [`LabelSelector::matches`], over any way to look a label up.
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
