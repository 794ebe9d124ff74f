//! Functions that check permissions, and that escape the keys of JSON patches.

use std::rc::Rc;

use crate::{
    authorizer::AccessDecision,
    error::EvalError,
    meter::Meter,
    value::{Access, Opaque, Value},
};

pub(super) fn call<'a>(
    name: &str,
    args: &[Value<'a>],
    meter: &mut Meter,
) -> Option<Result<Value<'a>, EvalError>> {
    if let ("jsonpatch.escapeKey", [Value::String(text)]) = (name, args) {
        if let Err(error) = meter.work(text.len()) {
            return Some(Err(error));
        }
        let escaped = text.replace('~', "~0").replace('/', "~1");
        return Some(Ok(Value::text(escaped)));
    }
    let (Value::Opaque(receiver), args) = args.split_first()? else {
        return None;
    };
    let mut texts = Vec::with_capacity(args.len());
    for arg in args {
        let Value::String(text) = arg else {
            return None;
        };
        texts.push(text.to_string());
    }
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    found(receiver, name, &texts)
        .map(|result| result.map(|made| Value::Opaque(Rc::new(made))))
        .or_else(|| of_decision(receiver, name, &texts).map(Ok))
}

/// Returns the results that are checks or decisions.
fn found(receiver: &Opaque, name: &str, args: &[&str]) -> Option<Result<Opaque, EvalError>> {
    let with = |access: &Access, change: &dyn Fn(&mut Access)| {
        let mut access = access.clone();
        change(&mut access);
        access
    };
    Some(Ok(match (receiver, name, args) {
        (Opaque::Authorizer(access), "path", [path]) => {
            if path.trim().is_empty() {
                return Some(Err(EvalError::new("path must not be empty")));
            }
            Opaque::PathCheck(with(access, &|new| new.request.path = (*path).to_owned()))
        }
        (Opaque::Authorizer(access), "group", [group]) => {
            Opaque::GroupCheck(with(access, &|new| new.request.group = (*group).to_owned()))
        }
        (Opaque::Authorizer(access), "serviceAccount", [namespace, name]) => {
            if let Some(problem) = account_problem(namespace, name) {
                return Some(Err(EvalError::new(problem)));
            }
            let account = ((*namespace).to_owned(), (*name).to_owned());
            Opaque::Authorizer(with(access, &|new| {
                new.request.service_account = Some(account.clone());
            }))
        }
        (Opaque::GroupCheck(access), "resource", [resource]) => {
            if resource.trim().is_empty() {
                return Some(Err(EvalError::new("resource must not be empty")));
            }
            Opaque::ResourceCheck(with(access, &|new| {
                new.request.resource = (*resource).to_owned();
            }))
        }
        (Opaque::ResourceCheck(access), "subresource", [part]) => {
            Opaque::ResourceCheck(with(access, &|new| {
                new.request.subresource = (*part).to_owned();
            }))
        }
        (Opaque::ResourceCheck(access), "namespace", [namespace]) => {
            Opaque::ResourceCheck(with(access, &|new| {
                new.request.namespace = (*namespace).to_owned();
            }))
        }
        (Opaque::ResourceCheck(access), "name", [name]) => {
            Opaque::ResourceCheck(with(access, &|new| new.request.name = (*name).to_owned()))
        }
        // Decisions do not depend on selectors.
        (Opaque::ResourceCheck(access), "fieldSelector" | "labelSelector", [_]) => {
            Opaque::ResourceCheck(access.clone())
        }
        (Opaque::PathCheck(access) | Opaque::ResourceCheck(access), "check", [verb]) => {
            let access = with(access, &|new| new.request.verb = (*verb).to_owned());
            Opaque::Decision(access.authorizer.decide(&access.request))
        }
        _ => return None,
    }))
}

fn of_decision<'a>(receiver: &Opaque, name: &str, args: &[&str]) -> Option<Value<'a>> {
    let (Opaque::Decision(AccessDecision { allowed, reason }), []) = (receiver, args) else {
        return None;
    };
    Some(match name {
        "allowed" => Value::Bool(*allowed),
        "reason" => Value::text(reason.as_str()),
        // Authorization by roles never fails.
        "errored" => Value::Bool(false),
        "error" => Value::text(""),
        _ => return None,
    })
}

fn account_problem(namespace: &str, name: &str) -> Option<String> {
    if longshore_model::name::dns_subdomain("name", name).is_err() {
        return Some("Invalid service account name".to_owned());
    }
    if longshore_model::name::dns_label("namespace", namespace).is_err() {
        return Some("Invalid service account namespace".to_owned());
    }
    None
}
