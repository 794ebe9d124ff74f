//! The user of a request: name, groups, and extra fields from a token.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use serde_json::{Map, Value};

/// The group of all authenticated users.
pub(crate) const AUTHENTICATED: &str = "system:authenticated";
/// The group of all requests without credentials.
pub(crate) const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The user name of requests without credentials.
pub(crate) const ANONYMOUS: &str = "system:anonymous";
/// The administrator's user name.
pub(crate) const ADMINISTRATOR: &str = "longshore-admin";
/// The administrators' group, whose members may send all requests.
pub(crate) const MASTERS: &str = "system:masters";

/// An authenticated user, or the anonymous user.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct User {
    pub(crate) name: String,
    /// Empty if the user has no uid.
    pub(crate) uid: String,
    pub(crate) groups: Vec<String>,
    pub(crate) extra: BTreeMap<Cow<'static, str>, Vec<String>>,
}

impl User {
    /// Returns the user of the cluster's own token and of in-process calls.
    pub(crate) fn administrator() -> Arc<Self> {
        static USER: LazyLock<Arc<User>> = LazyLock::new(|| {
            Arc::new(User {
                name: ADMINISTRATOR.into(),
                groups: vec![MASTERS.into(), AUTHENTICATED.into()],
                ..User::default()
            })
        });
        USER.clone()
    }

    /// Returns the user of requests without credentials.
    pub(crate) fn anonymous() -> Arc<Self> {
        static USER: LazyLock<Arc<User>> = LazyLock::new(|| {
            Arc::new(User {
                name: ANONYMOUS.into(),
                groups: vec![UNAUTHENTICATED.into()],
                ..User::default()
            })
        });
        USER.clone()
    }

    /// Returns true if the user may send all requests.
    pub(crate) fn is_master(&self) -> bool {
        self.groups.iter().any(|group| group == MASTERS)
    }

    /// Returns a `UserInfo` of authentication.k8s.io.
    pub(crate) fn info(&self) -> Value {
        let mut info = Map::new();
        let mut put = |name: &str, value: Value| {
            let is_empty = value.as_str() == Some("")
                || value.as_array().is_some_and(Vec::is_empty)
                || value.as_object().is_some_and(Map::is_empty);
            if !is_empty {
                info.insert(name.to_owned(), value);
            }
        };
        put("username", self.name.clone().into());
        put("uid", self.uid.clone().into());
        put("groups", self.groups.clone().into());
        let extra = self.extra.iter();
        let extra: Map<String, Value> = extra
            .map(|(name, values)| (name.to_string(), values.clone().into()))
            .collect();
        put("extra", extra.into());
        info.into()
    }
}
