//! Impersonation: a user with the verb `impersonate` sends requests as another user, whom the
//! headers `Impersonate-*` name.

use http::HeaderMap;
use percent_encoding::percent_decode_str;

use super::{Attributes, Authorizer};
use crate::{
    status_error::StatusError,
    user::{ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED, User},
};

const USER: &str = "impersonate-user";
const GROUPS: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA: &str = "impersonate-extra-";
const AUTHENTICATION: &str = "authentication.k8s.io";

/// Returns the user whom a request impersonates, or `None` if it does not impersonate anyone.
///
/// # Errors
/// 400 if the headers do not name a user; 403 if `user` may not impersonate the user, groups or
/// extra fields in the headers.
pub(crate) fn impersonated(
    authorizer: &Authorizer,
    user: &User,
    headers: &HeaderMap,
) -> Result<Option<User>, StatusError> {
    if !headers
        .keys()
        .any(|name| name.as_str().starts_with("impersonate-"))
    {
        return Ok(None);
    }
    let Some(wanted) = Wanted::read(headers)? else {
        return Ok(None);
    };
    for request in wanted.requests() {
        authorizer.check(user, &request)?;
    }
    Ok(Some(wanted.into_user()))
}

/// The user whom the headers name.
#[derive(Debug, Default)]
struct Wanted {
    user: String,
    groups: Vec<String>,
    uid: String,
    /// By key, in the order of the headers.
    extra: Vec<(String, String)>,
}

impl Wanted {
    fn read(headers: &HeaderMap) -> Result<Option<Self>, StatusError> {
        let mut wanted = Self::default();
        for (name, value) in headers {
            let value = || {
                let text = std::str::from_utf8(value.as_bytes());
                text.map(str::to_owned).map_err(|_| {
                    StatusError::bad_request(format!("header {name}: the value is not UTF-8"))
                })
            };
            match name.as_str() {
                USER if wanted.user.is_empty() => wanted.user = value()?,
                GROUPS => wanted.groups.push(value()?),
                UID if wanted.uid.is_empty() => wanted.uid = value()?,
                name => {
                    if let Some(key) = name.strip_prefix(EXTRA) {
                        let key = percent_decode_str(key).decode_utf8_lossy().into_owned();
                        wanted.extra.push((key, value()?));
                    }
                }
            }
        }
        let others =
            !wanted.groups.is_empty() || !wanted.extra.is_empty() || !wanted.uid.is_empty();
        match (wanted.user.is_empty(), others) {
            (true, false) => Ok(None),
            (true, true) => {
                let requested: Vec<String> = wanted
                    .requests()
                    .map(|request| format!("{} {:?}", request.combined_resource(), request.name))
                    .collect();
                Err(StatusError::bad_request(format!(
                    "requested [{}] without impersonating a user",
                    requested.join(", ")
                )))
            }
            (false, _) => Ok(Some(wanted)),
        }
    }

    /// The permissions that the impersonating user must have.
    fn requests(&self) -> impl Iterator<Item = Attributes> {
        let request = |group: &str, resource: &str, name: &str| Attributes {
            verb: "impersonate".to_owned(),
            group: group.to_owned(),
            resource: resource.to_owned(),
            name: name.to_owned(),
            ..Attributes::default()
        };
        let user = (!self.user.is_empty()).then(|| match service_account(&self.user) {
            Some((namespace, name)) => Attributes {
                namespace: namespace.to_owned(),
                ..request("", "serviceaccounts", name)
            },
            None => request("", "users", &self.user),
        });
        let groups = self
            .groups
            .iter()
            .map(move |group| request("", "groups", group));
        let extra = self.extra.iter().map(move |(key, value)| Attributes {
            subresource: key.clone(),
            ..request(AUTHENTICATION, "userextras", value)
        });
        let uid = (!self.uid.is_empty()).then(|| request(AUTHENTICATION, "uids", &self.uid));
        user.into_iter().chain(groups).chain(extra).chain(uid)
    }

    fn into_user(self) -> User {
        let mut groups = self.groups;
        if groups.is_empty()
            && let Some((namespace, _)) = service_account(&self.user)
        {
            groups.push("system:serviceaccounts".to_owned());
            groups.push(format!("system:serviceaccounts:{namespace}"));
        }
        let has = |group: &str| groups.iter().any(|one| one == group);
        if self.user == ANONYMOUS {
            if !has(UNAUTHENTICATED) {
                groups.push(UNAUTHENTICATED.to_owned());
            }
        } else if !has(AUTHENTICATED) && !has(UNAUTHENTICATED) {
            groups.push(AUTHENTICATED.to_owned());
        }
        let mut user = User {
            name: self.user,
            uid: self.uid,
            groups,
            ..User::default()
        };
        for (key, value) in self.extra {
            user.extra.entry(key.into()).or_default().push(value);
        }
        user
    }
}

/// The namespace and name of a service account's user name.
fn service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user
        .strip_prefix("system:serviceaccount:")?
        .split_once(':')?;
    let is_valid = !namespace.is_empty() && !name.is_empty() && !name.contains(':');
    is_valid.then_some((namespace, name))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn wanted(headers: &[(&'static str, &'static str)]) -> Wanted {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        Wanted::read(&map).unwrap().unwrap()
    }

    #[test]
    fn groups_of_impersonated_users() {
        for (headers, groups) in [
            (vec![(USER, "u")], vec![AUTHENTICATED]),
            (vec![(USER, "u"), (GROUPS, "g")], vec!["g", AUTHENTICATED]),
            (
                vec![(USER, "u"), (GROUPS, UNAUTHENTICATED)],
                vec![UNAUTHENTICATED],
            ),
            (vec![(USER, ANONYMOUS)], vec![UNAUTHENTICATED]),
            (
                vec![(USER, "system:serviceaccount:a:s")],
                vec![
                    "system:serviceaccounts",
                    "system:serviceaccounts:a",
                    AUTHENTICATED,
                ],
            ),
            (
                vec![(USER, "system:serviceaccount:a:s"), (GROUPS, "g")],
                vec!["g", AUTHENTICATED],
            ),
        ] {
            assert_eq!(wanted(&headers).into_user().groups, groups, "{headers:?}");
        }
    }

    #[test]
    fn each_part_is_checked() {
        let wanted = wanted(&[
            (USER, "system:serviceaccount:a:s"),
            (GROUPS, "g"),
            ("impersonate-extra-example.com%2fscope", "v"),
            (UID, "1"),
        ]);
        let seen: Vec<String> = wanted
            .requests()
            .map(|r| {
                format!(
                    "{}/{} {} {}",
                    r.group,
                    r.combined_resource(),
                    r.namespace,
                    r.name
                )
            })
            .collect();
        let expected = [
            "/serviceaccounts a s",
            "/groups  g",
            "authentication.k8s.io/userextras/example.com/scope  v",
            "authentication.k8s.io/uids  1",
        ];
        assert_eq!(seen, expected);
        let extra = wanted.into_user().extra;
        assert_eq!(extra["example.com/scope"], ["v"]);
    }

    #[test]
    fn a_user_is_required() {
        let mut map = HeaderMap::new();
        assert!(Wanted::read(&map).unwrap().is_none());
        map.append(GROUPS, "g".parse().unwrap());
        let error = Wanted::read(&map).unwrap_err();
        let message = &error.status().message;
        assert!(
            message.ends_with("without impersonating a user"),
            "{message}"
        );
    }
}
