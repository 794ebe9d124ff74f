//! Audit policies: any text is read or refused with a message, and a policy in YAML is the
//! same in JSON.

use longshore_apiserver::AuditPolicy;

pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let policy = match text.parse::<AuditPolicy>() {
        Ok(policy) => policy,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let Ok(value) = serde_yaml_ng::from_str::<serde_json::Value>(text) else {
        return;
    };
    let again = value.to_string().parse::<AuditPolicy>();
    assert_eq!(again, Ok(policy));
}
