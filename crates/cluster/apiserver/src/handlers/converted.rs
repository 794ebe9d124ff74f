//! Lists and events of custom objects that a conversion webhook converts. Field
//! selectors are evaluated on the converted objects.

use std::sync::Arc;

use longshore_engine::{
    ConvertedFields, Error, ListRequest, Object, Page, ReadVersion, WatchEvent,
};
use longshore_model::KindInfo;

use crate::{
    call::Call, limits, offload::offload_for, status_error::StatusError, webhooks::Converter,
};

/// The largest number of objects that a list with a limit reads at once.
const MAX_READ: usize = 512;

/// Lists a page of objects, converted if their kind has a converter.
pub(super) async fn list(
    call: &Call,
    request: ListRequest,
    converter: Option<&Converter>,
) -> Result<Page, StatusError> {
    let engine = &call.shared.engine;
    let Some(converter) = converter else {
        return read(call, request).await;
    };
    let info = request.kind.clone();
    let Some(fields) = engine.converted_fields(&info, &request.fields)? else {
        let mut page = read(call, request).await?;
        converter.present(&info, &mut page.items).await?;
        return Ok(page);
    };
    let Some(limit) = request.limit.filter(|limit| *limit > 0) else {
        let mut page = read(call, request).await?;
        converter.present(&info, &mut page.items).await?;
        page.items.retain(|object| fields.matches(object));
        return Ok(page);
    };
    limited(call, request, limit, (converter, &fields)).await
}

/// Reads objects until enough objects match.
async fn limited(
    call: &Call,
    mut request: ListRequest,
    limit: usize,
    (converter, fields): (&Converter, &ConvertedFields),
) -> Result<Page, StatusError> {
    let engine = &call.shared.engine;
    let mut found = Vec::new();
    let mut size = limit.min(MAX_READ);
    loop {
        request.limit = Some(size);
        let mut page = read(call, request.clone()).await?;
        converter.present(&request.kind, &mut page.items).await?;
        let mut items = page.items.into_iter();
        for object in items.by_ref() {
            if fields.matches(&object) {
                found.push(object);
                if found.len() == limit {
                    break;
                }
            }
        }
        let is_full = found.len() == limit;
        let cursor = match (found.last(), items.len()) {
            (Some(last), 1..) if is_full => {
                Some(engine.cursor_after(&request, page.revision, last)?)
            }
            _ => page.cursor,
        };
        if is_full || cursor.is_none() {
            return Ok(Page {
                items: found,
                revision: page.revision,
                cursor,
                remaining: None,
            });
        }
        request.cursor = cursor;
        request.version = ReadVersion::Latest;
        size = size.saturating_mul(2).min(MAX_READ);
    }
}

async fn read(call: &Call, request: ListRequest) -> Result<Page, StatusError> {
    let engine = &call.shared.engine;
    if engine.count(&request.kind) < limits::LIST_OFFLOAD {
        return Ok(engine.list(&request)?);
    }
    let engine = engine.clone();
    Ok(offload_for(&call.user, move || engine.list(&request)).await??)
}

/// Converts the objects of a watch, and selects them by the converted fields.
pub(super) struct Conversion {
    converter: Converter,
    info: Arc<KindInfo>,
    fields: Option<ConvertedFields>,
}

impl Conversion {
    pub(super) fn new(
        converter: Converter,
        info: Arc<KindInfo>,
        fields: Option<ConvertedFields>,
    ) -> Self {
        Self {
            converter,
            info,
            fields,
        }
    }

    /// Converts the object of an event; `None` if the watch does not select it.
    pub(super) async fn present(&self, event: WatchEvent) -> Result<Option<WatchEvent>, Error> {
        let mut event = event;
        match &mut event {
            WatchEvent::Added(object)
            | WatchEvent::Modified(object)
            | WatchEvent::Deleted(object) => {
                self.converter.present_one(&self.info, object).await?;
            }
            WatchEvent::Unfiltered { before, after } => {
                return self.select(before.take(), after.take()).await;
            }
            WatchEvent::Bookmark(_) | WatchEvent::InitialEventsEnd(_) => {}
        }
        Ok(Some(event))
    }

    /// Converts both states of an object in one call.
    async fn select(
        &self,
        before: Option<Arc<Object>>,
        after: Option<Arc<Object>>,
    ) -> Result<Option<WatchEvent>, Error> {
        let (existed, exists) = (before.is_some(), after.is_some());
        let mut states: Vec<_> = before.into_iter().chain(after).collect();
        self.converter.present(&self.info, &mut states).await?;
        let mut states = states.into_iter();
        let is_selected = |object: &Arc<Object>| {
            let fields = self.fields.as_ref();
            fields.is_none_or(|fields| fields.matches(object))
        };
        let mut next = |is_present: bool| match is_present {
            true => states.next().filter(is_selected),
            false => None,
        };
        let (before, after) = (next(existed), next(exists));
        Ok(match (before, after) {
            (None, Some(after)) => Some(WatchEvent::Added(after)),
            (Some(_), Some(after)) => Some(WatchEvent::Modified(after)),
            (Some(before), None) => Some(WatchEvent::Deleted(before)),
            (None, None) => None,
        })
    }
}
