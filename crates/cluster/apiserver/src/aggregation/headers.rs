//! The headers that name the user of a forwarded request.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::user::User;

const USER: &str = "x-remote-user";
const UID: &str = "x-remote-uid";
const GROUP: &str = "x-remote-group";
const EXTRA_PREFIX: &str = "x-remote-extra-";

/// Replaces the headers that name the user. Values that a header cannot contain are left out.
pub(super) fn set_user(headers: &mut HeaderMap, user: &User) {
    let sent: Vec<HeaderName> = headers.keys().cloned().collect();
    for name in sent {
        let text = name.as_str();
        if matches!(text, USER | UID | GROUP) || text.starts_with(EXTRA_PREFIX) {
            headers.remove(name);
        }
    }
    let mut add = |name: &str, value: &str| {
        let name = HeaderName::try_from(name);
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value)) {
            headers.append(name, value);
        }
    };
    add(USER, &user.name);
    if !user.uid.is_empty() {
        add(UID, &user.uid);
    }
    for group in &user.groups {
        add(GROUP, group);
    }
    for (key, values) in &user.extra {
        let name = format!("{EXTRA_PREFIX}{}", escaped(key));
        values.iter().for_each(|value| add(&name, value));
    }
}

/// A key of an extra field, as part of a header's name.
fn escaped(key: &str) -> String {
    let mut text = String::new();
    for byte in key.bytes() {
        let is_plain = byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte);
        match is_plain {
            true => text.push(char::from(byte)),
            false => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_headers_of_the_client_are_replaced() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("x-remote-user", "root"),
            ("x-remote-group", "system:masters"),
            ("x-remote-extra-a", "b"),
            ("accept", "x"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        let user = User {
            name: "me".into(),
            uid: "u".into(),
            groups: vec!["a".into(), "b".into()],
            extra: [("example.com/k".into(), vec!["v".to_owned()])].into(),
        };
        set_user(&mut headers, &user);
        let all = |name: &str| -> Vec<&HeaderValue> { headers.get_all(name).iter().collect() };
        assert_eq!(all("x-remote-user"), ["me"]);
        assert_eq!(all("x-remote-uid"), ["u"]);
        assert_eq!(all("x-remote-group"), ["a", "b"]);
        assert_eq!(all("x-remote-extra-example.com%2fk"), ["v"]);
        assert_eq!(all("x-remote-extra-a").len(), 0);
        assert_eq!(headers.len(), 6);
    }
}
