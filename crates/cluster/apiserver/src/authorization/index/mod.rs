//! The roles and bindings of the cluster, indexed by the users and groups that they name.

mod objects;
#[cfg(test)]
mod tests;

use std::{collections::HashMap, sync::Arc};

pub(crate) use objects::{RoleRef, binding_of, role_of};

use self::objects::{Binding, Role};
use super::{attributes::Attributes, rule::Rule};
use crate::user::User;

/// The roles and bindings at one revision.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// Changes with each change of a role or binding.
    pub(super) version: u64,
    /// By namespace (empty for ClusterRoles) and name.
    roles: HashMap<Key, Arc<Role>>,
    /// By namespace (empty for ClusterRoleBindings).
    bindings: HashMap<Box<str>, Bindings>,
}

type Key = (Box<str>, Box<str>);

/// The bindings of a namespace.
#[derive(Debug, Default)]
struct Bindings {
    /// Sorted by name.
    all: Vec<Arc<Binding>>,
    /// Positions in `all` by user name.
    of_user: HashMap<String, Vec<usize>>,
    /// Positions in `all` by group.
    of_group: HashMap<String, Vec<usize>>,
}

/// An object of the four kinds: namespace, name, revision, JSON.
pub(super) struct Stored<'a> {
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
    pub(super) revision: u64,
    pub(super) json: &'a [u8],
}

impl Index {
    /// Builds the index. Objects that are unchanged since `last` are not parsed
    /// again. `bindings` must be sorted by namespace and name.
    pub(super) fn build<'a>(
        version: u64,
        last: &Index,
        roles: impl Iterator<Item = Stored<'a>>,
        bindings: impl Iterator<Item = Stored<'a>>,
    ) -> Self {
        let roles = roles.map(|stored| {
            let key: Key = (stored.namespace.into(), stored.name.into());
            let known = last.roles.get(&key);
            let known = known.filter(|role| role.revision == stored.revision);
            let role = known
                .cloned()
                .unwrap_or_else(|| Arc::new(Role::parse(stored.revision, stored.json)));
            (key, role)
        });
        let mut index = Self {
            version,
            roles: roles.collect(),
            bindings: HashMap::new(),
        };
        for stored in bindings {
            let known = last.bindings.get(stored.namespace).and_then(|list| {
                let place = list
                    .all
                    .binary_search_by(|binding| (*binding.name).cmp(stored.name));
                list.all.get(place.ok()?)
            });
            let known = known.filter(|binding| binding.revision == stored.revision);
            let binding = known
                .cloned()
                .unwrap_or_else(|| Arc::new(Binding::parse(&stored)));
            let place = index.bindings.entry(stored.namespace.into());
            place.or_default().add(binding);
        }
        index
    }

    /// Calls `visit` with each rule that applies to a user in a namespace (empty for requests
    /// outside namespaces) and the binding that it comes from, or with the reference to a role that
    /// does not exist. Ends when `visit` returns false.
    fn visit<'a>(
        &'a self,
        user: &User,
        namespace: &str,
        visit: &mut dyn FnMut(&'a Binding, Result<&'a Rule, &'a RoleRef>) -> bool,
    ) {
        let scopes = ["", namespace];
        let scopes = &scopes[..if namespace.is_empty() { 1 } else { 2 }];
        for bindings in scopes.iter().filter_map(|scope| self.bindings.get(*scope)) {
            for binding in bindings.of(user) {
                let Some(rules) = self.rules_of(&binding.role, &binding.namespace) else {
                    if !visit(binding, Err(&binding.role)) {
                        return;
                    }
                    continue;
                };
                for rule in rules {
                    if !visit(binding, Ok(rule)) {
                        return;
                    }
                }
            }
        }
    }

    /// The rules of the role that a binding in a namespace (empty for ClusterRoleBindings) refers
    /// to; `None` if the role does not exist.
    pub(super) fn rules_of(&self, role: &RoleRef, namespace: &str) -> Option<&[Rule]> {
        let namespace = match &*role.kind {
            "ClusterRole" => "",
            "Role" if !namespace.is_empty() => namespace,
            _ => return None,
        };
        let key = (namespace.into(), role.name.as_str().into());
        self.roles.get(&key).map(|role| role.rules.as_slice())
    }

    /// The rules that apply to a user in a namespace, and the errors of bindings
    /// whose role does not exist.
    pub(crate) fn rules_for(&self, user: &User, namespace: &str) -> (Vec<&Rule>, Vec<String>) {
        let (mut rules, mut errors) = (Vec::new(), Vec::new());
        self.visit(user, namespace, &mut |_, found| {
            match found {
                Ok(rule) => rules.push(rule),
                Err(role) => errors.push(role.not_found()),
            }
            true
        });
        (rules, errors)
    }

    /// Decides whether a user may send a request.
    pub(crate) fn decide(&self, user: &User, request: &Attributes) -> super::Decision {
        if user.is_master() {
            return super::Decision::allowed(String::new());
        }
        let (mut allowed_by, mut errors) = (None, Vec::new());
        self.visit(
            user,
            &request.namespace,
            &mut |binding, found| match found {
                Ok(rule) if rule.allows(request) => {
                    allowed_by = Some(binding);
                    false
                }
                Ok(_) => true,
                Err(role) => {
                    errors.push(role.not_found());
                    true
                }
            },
        );
        match allowed_by {
            Some(binding) => {
                let source = binding.describe(user);
                super::Decision::allowed(format!("RBAC: allowed by {source}"))
            }
            None => super::Decision {
                allowed: false,
                reason: match joined(&errors) {
                    None => String::new(),
                    Some(errors) => format!("RBAC: {errors}"),
                },
            },
        }
    }
}

/// Joins different errors in the form of Kubernetes; `None` if the list is empty.
pub(crate) fn joined(errors: &[String]) -> Option<String> {
    let mut different: Vec<&str> = Vec::new();
    for error in errors {
        if !different.contains(&error.as_str()) {
            different.push(error);
        }
    }
    match different.as_slice() {
        [] => None,
        [one] => Some((*one).to_owned()),
        many => Some(format!("[{}]", many.join(", "))),
    }
}

impl Bindings {
    fn add(&mut self, binding: Arc<Binding>) {
        let place = self.all.len();
        for subject in &binding.subjects {
            let (map, name) = match subject.user_or_group(&binding.namespace) {
                Some((false, name)) => (&mut self.of_user, name),
                Some((true, name)) => (&mut self.of_group, name),
                None => continue,
            };
            let places = map.entry(name).or_default();
            if places.last() != Some(&place) {
                places.push(place);
            }
        }
        self.all.push(binding);
    }

    /// The bindings that name a user or a group of the user, in order.
    fn of(&self, user: &User) -> impl Iterator<Item = &Binding> {
        let mut places: Vec<usize> = Vec::new();
        places.extend(self.of_user.get(&user.name).into_iter().flatten());
        for group in &user.groups {
            places.extend(self.of_group.get(group).into_iter().flatten());
        }
        places.sort_unstable();
        places.dedup();
        places.into_iter().map(|place| &*self.all[place])
    }
}
