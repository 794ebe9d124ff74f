//! The form of the tables of default roles. Lists are separated by spaces; `core`
//! stands for the core group.

use crate::authorization::rule::Rule;

/// A default role.
#[derive(Debug, Clone, Copy)]
pub(super) struct DefaultRole {
    pub(super) name: &'static str,
    pub(super) rules: &'static [DefaultRule],
    /// The aggregated role to which the rules of this role are added.
    pub(super) added_to: Option<&'static str>,
    /// The rules that this role aggregates, if it is aggregated.
    pub(super) gathers: Option<&'static str>,
}

/// A rule of a default role.
#[derive(Debug, Clone, Copy)]
pub(super) struct DefaultRule {
    groups: &'static str,
    resources: &'static str,
    names: &'static str,
    urls: &'static str,
    verbs: &'static str,
}

pub(super) const fn role(name: &'static str, rules: &'static [DefaultRule]) -> DefaultRole {
    DefaultRole {
        name,
        rules,
        added_to: None,
        gathers: None,
    }
}

/// A rule for resources.
pub(super) const fn on(
    groups: &'static str,
    resources: &'static str,
    verbs: &'static str,
) -> DefaultRule {
    named(groups, resources, "", verbs)
}

/// A rule for objects with these names.
pub(super) const fn named(
    groups: &'static str,
    resources: &'static str,
    names: &'static str,
    verbs: &'static str,
) -> DefaultRule {
    DefaultRule {
        groups,
        resources,
        names,
        urls: "",
        verbs,
    }
}

/// A rule for paths.
pub(super) const fn urls(urls: &'static str, verbs: &'static str) -> DefaultRule {
    DefaultRule {
        groups: "",
        resources: "",
        names: "",
        urls,
        verbs,
    }
}

impl DefaultRule {
    pub(super) fn rule(&self) -> Rule {
        let list = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        let group = |text: &str| match text {
            "core" => String::new(),
            group => group.to_owned(),
        };
        Rule {
            verbs: list(self.verbs),
            api_groups: self.groups.split_whitespace().map(group).collect(),
            resources: list(self.resources),
            resource_names: list(self.names),
            non_resource_urls: list(self.urls),
        }
    }
}
