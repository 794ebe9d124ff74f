//! The standards that the labels of a namespace select.

use std::{collections::BTreeMap, fmt};

use longshore_model::StatusCause;

use crate::cause::Cause;

const PREFIX: &str = "pod-security.kubernetes.io/";

/// The level of a standard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Permits everything.
    Privileged,
    /// Permits the usual settings of containers.
    Baseline,
    /// Permits only pods that follow best practices for security.
    Restricted,
}

impl Level {
    fn as_str(self) -> &'static str {
        match self {
            Self::Privileged => "privileged",
            Self::Baseline => "baseline",
            Self::Restricted => "restricted",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let mut all = [Self::Privileged, Self::Baseline, Self::Restricted].into_iter();
        all.find(|level| level.as_str() == text)
    }
}

/// The Kubernetes release whose standard applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// The standard of the server's release.
    Latest,
    /// The standard of release 1.x.
    Minor(u32),
}

impl Version {
    /// Returns true if the standard includes the rules that were added in release 1.`minor`.
    #[must_use]
    pub fn is_since(self, minor: u32) -> bool {
        match self {
            Self::Latest => true,
            Self::Minor(own) => own >= minor,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        if text == "latest" {
            return Some(Self::Latest);
        }
        let digits = text.strip_prefix("v1.")?;
        let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit())
            && (digits == "0" || !digits.starts_with('0'));
        is_plain.then(|| digits.parse().ok().map(Self::Minor))?
    }
}

/// A level at a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standard {
    /// The level.
    pub level: Level,
    /// The version.
    pub version: Version,
}

impl Standard {
    const PRIVILEGED: Self = Self {
        level: Level::Privileged,
        version: Version::Latest,
    };
}

impl fmt::Display for Standard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.version {
            Version::Latest => write!(f, "{}:latest", self.level.as_str()),
            Version::Minor(minor) => write!(f, "{}:v1.{minor}", self.level.as_str()),
        }
    }
}

/// The standards of a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// The standard for which violating pods are refused.
    pub enforce: Standard,
    /// The standard for which violating pods and workloads cause a warning.
    pub warn: Standard,
}

/// The parsed labels of a mode, for example `enforce`. An invalid level is an error; an invalid
/// version is read as `latest`.
struct Mode {
    level: Option<Result<Level, ()>>,
    version: Option<Version>,
}

impl Mode {
    fn of(labels: &BTreeMap<String, String>, mode: &str) -> Self {
        let level = labels.get(&format!("{PREFIX}{mode}"));
        let version = labels.get(&format!("{PREFIX}{mode}-version"));
        Self {
            level: level.map(|text| Level::parse(text).ok_or(())),
            version: version.map(|text| Version::parse(text).unwrap_or(Version::Latest)),
        }
    }
}

impl Policy {
    /// The policy of a namespace with these labels; `None` if it permits everything.
    ///
    /// ```
    /// use longshore_builtin::pod_security::Policy;
    /// let labels = |level: &str| {
    ///     [("pod-security.kubernetes.io/enforce".to_owned(), level.to_owned())].into()
    /// };
    /// let policy = Policy::of(&labels("baseline")).unwrap();
    /// assert_eq!(policy.enforce.to_string(), "baseline:latest");
    /// assert_eq!(Policy::of(&labels("privileged")), None);
    /// ```
    #[must_use]
    pub fn of(labels: &BTreeMap<String, String>) -> Option<Self> {
        if !labels.keys().any(|key| key.starts_with(PREFIX)) {
            return None;
        }
        let (enforce, warn) = (Mode::of(labels, "enforce"), Mode::of(labels, "warn"));
        let mut policy = Self {
            enforce: Standard::PRIVILEGED,
            warn: Standard::PRIVILEGED,
        };
        if let Some(level) = enforce.level {
            // Unknown levels count as the strictest level.
            policy.enforce.level = level.unwrap_or(Level::Restricted);
        }
        policy.enforce.version = enforce.version.unwrap_or(Version::Latest);
        match warn.level {
            Some(level) => policy.warn.level = level.unwrap_or(Level::Privileged),
            None if matches!(enforce.level, Some(Ok(_))) => {
                policy.warn.level = policy.enforce.level;
                policy.warn.version = policy.enforce.version;
            }
            None => {}
        }
        policy.warn.version = warn.version.unwrap_or(policy.warn.version);
        let is_privileged = |standard: Standard| standard.level == Level::Privileged;
        (!is_privileged(policy.enforce) || !is_privileged(policy.warn)).then_some(policy)
    }
}

/// The invalid labels of a namespace.
#[must_use]
pub fn label_problems(labels: &BTreeMap<String, String>) -> Vec<StatusCause> {
    let mut causes = Vec::new();
    for mode in ["enforce", "audit", "warn"] {
        for (suffix, is_valid, problem) in [
            (
                "",
                (|text| Level::parse(text).is_some()) as fn(&str) -> bool,
                "must be one of privileged, baseline, restricted",
            ),
            (
                "-version",
                |text| Version::parse(text).is_some(),
                "must be \"latest\" or \"v1.x\"",
            ),
        ] {
            let label = format!("{PREFIX}{mode}{suffix}");
            if let Some(text) = labels.get(&label).filter(|text| !is_valid(text)) {
                let field = format!("metadata.labels[{label}]");
                causes.push(Cause::invalid(&field, text.as_str(), problem));
            }
        }
    }
    causes
}
