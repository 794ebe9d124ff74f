//! Lists: a consistent page of objects at one revision, and the `continue`
//! token that pins the next page to the same revision.

use std::{ops::Bound, sync::Arc};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};

use crate::{
    Error, ListRequest, Object, Page, ReadVersion,
    decode::illegal_base64,
    kinds::KindId,
    object::Objects,
    select::Selection,
    state::{State, too_large},
};

const TOKEN_VERSION: &str = "meta.k8s.io/v1";
/// The revision in a token that continues at the newest revision.
const NEWEST: i64 = -1;

/// The contents of a `continue` token.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Token {
    v: String,
    rv: i64,
    /// The key after which to continue, without the namespace of the list,
    /// terminated by a NUL.
    start: String,
}

impl Token {
    fn encode(revision: i64, start: &str) -> String {
        let token = Self {
            v: TOKEN_VERSION.into(),
            rv: revision,
            start: format!("{start}\0"),
        };
        // Serializing three plain fields cannot fail.
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(&token).unwrap_or_default())
    }

    fn decode(text: &str) -> Result<Self, Error> {
        let wrong = |problem: String| {
            Error::BadRequest(format!(
                "invalid continue token: continue key is not valid: {problem}"
            ))
        };
        let json = URL_SAFE_NO_PAD
            .decode(text.trim_end_matches('='))
            .map_err(|error| wrong(illegal_base64(text, &error)))?;
        let token: Self =
            serde_json::from_slice(&json).map_err(|error| wrong(error.to_string()))?;
        if token.v != TOKEN_VERSION {
            return Err(wrong(format!(
                "server does not recognize this encoded version {:?}",
                token.v
            )));
        }
        if token.rv == 0 || token.rv < NEWEST {
            return Err(wrong(
                "incorrect encoded start resourceVersion (version meta.k8s.io/v1)".into(),
            ));
        }
        if token.start.trim_end_matches('\0').is_empty() {
            return Err(wrong(
                "encoded start key empty (version meta.k8s.io/v1)".into(),
            ));
        }
        // Such a key could refer to objects outside the collection.
        let odd = |part: &str| matches!(part, "" | "." | "..");
        if token.start.trim_end_matches('\0').split('/').any(odd) {
            return Err(wrong(token.start));
        }
        Ok(token)
    }
}

const LIST_EXPIRED: &str = "The resourceVersion for the provided list is too old.";
const TOKEN_EXPIRED: &str = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

/// Executes a list against a state.
pub(crate) fn list(state: &State, request: &ListRequest) -> Result<Page, Error> {
    let (id, view) = state.kinds.resolve(&request.kind)?;
    let selection = Selection::new(
        view,
        request.namespace.as_deref(),
        &request.labels,
        &request.fields,
    )?;
    let (objects, revision, after) = match &request.cursor {
        Some(cursor) => resume(state, id, cursor, &request.version, &selection)?,
        None => {
            let (objects, revision) = at_version(state, id, request.version)?;
            (objects, revision, None)
        }
    };
    let limit = request
        .limit
        .filter(|limit| *limit > 0)
        .unwrap_or(usize::MAX);
    Ok(page(&objects, revision, after, limit, &selection))
}

/// The `continue` token after an object of a list.
pub(crate) fn cursor_after(prefix: &str, revision: u64, last: &Object) -> String {
    let start = last.key().strip_prefix(prefix).unwrap_or(last.key());
    Token::encode(i64::try_from(revision).unwrap_or(i64::MAX), start)
}

fn at_version(state: &State, kind: KindId, version: ReadVersion) -> Result<(Objects, u64), Error> {
    match version {
        ReadVersion::AtLeast(asked) if asked > state.revision => {
            Err(too_large(asked, state.revision))
        }
        ReadVersion::Exact(asked) if asked > state.revision => {
            Err(too_large(asked, state.revision))
        }
        ReadVersion::Exact(asked) => state
            .at(kind, asked)
            .map(|objects| (objects, asked))
            .ok_or_else(|| Error::Expired {
                message: LIST_EXPIRED.into(),
                cursor: None,
            }),
        _ => Ok((state.table(kind).objects.clone(), state.revision)),
    }
}

type Resumed = (Objects, u64, Option<String>);

fn resume(
    state: &State,
    kind: KindId,
    cursor: &str,
    version: &ReadVersion,
    selection: &Selection,
) -> Result<Resumed, Error> {
    if !matches!(version, ReadVersion::Latest | ReadVersion::Any) {
        return Err(Error::BadRequest(
            "specifying resource version is not allowed when using continue".into(),
        ));
    }
    let token = Token::decode(cursor)?;
    let start = token.start.trim_end_matches('\0');
    let after = Some(format!("{}{start}", selection.prefix));
    let Ok(revision) = u64::try_from(token.rv) else {
        return Ok((state.table(kind).objects.clone(), state.revision, after));
    };
    if revision > state.revision {
        return Err(too_large(revision, state.revision));
    }
    match state.at(kind, revision) {
        Some(objects) => Ok((objects, revision, after)),
        None => Err(Error::Expired {
            message: TOKEN_EXPIRED.into(),
            cursor: Some(Token::encode(NEWEST, start)),
        }),
    }
}

fn page(
    objects: &Objects,
    revision: u64,
    after: Option<String>,
    limit: usize,
    selection: &Selection,
) -> Page {
    let start: Bound<&str> = match &after {
        Some(after) => Bound::Excluded(after),
        None => Bound::Included(&selection.prefix),
    };
    let mut candidates = objects
        .range::<_, str>((start, Bound::Unbounded))
        .map(|(_, object)| object)
        .take_while(|object| object.key().starts_with(&selection.prefix));
    let mut items = Vec::with_capacity(if limit == usize::MAX {
        0
    } else {
        limit.min(1024)
    });
    let mut more = false;
    for object in candidates
        .by_ref()
        .filter(|object| selection.matches(object))
    {
        if items.len() == limit {
            more = true;
            break;
        }
        items.push(Arc::clone(object));
    }
    let last = items.last().filter(|_| more);
    let cursor = last.map(|last| cursor_after(&selection.prefix, revision, last));
    let remaining = (more && selection.is_everything()).then(|| candidates.count() as u64 + 1);
    Page {
        items,
        revision,
        cursor,
        remaining,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn tokens_round_trip() {
        let token = Token::decode(&Token::encode(7, "a/b")).unwrap();
        assert_eq!((token.rv, token.start.as_str()), (7, "a/b\0"));
    }

    #[test]
    fn invalid_tokens_are_bad_requests() {
        let foreign = URL_SAFE_NO_PAD.encode(r#"{"v":"x","rv":1,"start":"a"}"#);
        let zero = URL_SAFE_NO_PAD.encode(r#"{"v":"meta.k8s.io/v1","rv":0,"start":"a"}"#);
        let empty = URL_SAFE_NO_PAD.encode(r#"{"v":"meta.k8s.io/v1","rv":1,"start":""}"#);
        for text in ["!", "", "e30", &foreign, &zero, &empty] {
            assert!(
                matches!(Token::decode(text), Err(Error::BadRequest(_))),
                "{text:?}"
            );
        }
    }
}
