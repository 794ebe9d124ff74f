//! Reads: of one object, and of lists page by page.

use std::sync::Arc;

use longshore_engine::{Error, ListRequest, Object, ReadVersion};

use super::{Execution, Outcome, rejected};
use crate::model::{
    body::request,
    kind::Key,
    model_object::ModelObject,
    operation::{At, Scope},
};

impl Execution<'_> {
    pub(super) fn read(&self, key: &Key) -> Option<Arc<Object>> {
        let target = key.target(self.api_version);
        let namespace = target.namespace.as_deref();
        self.engine
            .get(&target.kind, namespace, &target.name, ReadVersion::Latest)
            .ok()
    }

    pub(super) fn asked(&mut self, at: At) -> ReadVersion {
        match at {
            At::Latest => ReadVersion::Latest,
            At::Ago(ago) => {
                let asked = self.before.saturating_sub(u64::from(ago)).max(1);
                self.asked = Some(asked);
                ReadVersion::Exact(asked)
            }
        }
    }

    pub(super) async fn list(&mut self, scope: &Scope, at: At, limit: Option<usize>) -> Outcome {
        let mut list = ListRequest {
            limit,
            version: self.asked(at),
            ..request(scope, self.api_version)
        };
        let (mut found, mut revision, mut remaining) = (Vec::new(), None, None);
        loop {
            let page = match self.engine.list(&list) {
                Ok(page) => page,
                Err(Error::Expired {
                    cursor: Some(cursor),
                    ..
                }) => {
                    let first = (revision.unwrap_or_default(), found);
                    return self.rest(scope, cursor, first);
                }
                Err(error) => return rejected(&error),
            };
            assert_eq!(
                *revision.get_or_insert(page.revision),
                page.revision,
                "a page of another version"
            );
            if let Some(expected) = remaining {
                assert_eq!(
                    page.items.len() as u64 + page.remaining.unwrap_or_default(),
                    expected,
                    "items remained"
                );
            }
            remaining = page.remaining;
            found.extend(self.model_objects(scope.kind, &page.items));
            let Some(cursor) = page.cursor else {
                return Outcome::State(page.revision, found);
            };
            assert_eq!(
                Some(page.items.len()),
                limit,
                "a page that is not full has a continue token"
            );
            list.cursor = Some(cursor);
            list.version = ReadVersion::Latest;
            // Lets others write between the pages.
            tokio::task::yield_now().await;
        }
    }

    /// Continues an expired list in the newest state.
    fn rest(
        &self,
        scope: &Scope,
        cursor: String,
        first: (u64, Vec<(Key, ModelObject)>),
    ) -> Outcome {
        let list = ListRequest {
            cursor: Some(cursor),
            ..request(scope, self.api_version)
        };
        match self.engine.list(&list) {
            Ok(page) => Outcome::Inconsistent {
                first,
                rest: (page.revision, self.model_objects(scope.kind, &page.items)),
            },
            Err(error) => rejected(&error),
        }
    }
}
