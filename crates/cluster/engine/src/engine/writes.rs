//! The writes that clients request.

use std::sync::Arc;

use super::Engine;
use crate::{
    Bind, Create, Delete, DeleteCollection, Deleted, Error, Evict, Object, Page, Patch,
    Subresource, Update, Written, list, machine,
    machine::MAX_BYTES_PER_TURN,
    machine::MAX_OBJECTS_PER_TURN,
    offload::{ListedObjects, WriteCost as _},
};

/// Splits objects into slices that the writer deletes in one turn each.
fn slices(objects: &[Arc<Object>]) -> impl Iterator<Item = &[Arc<Object>]> {
    let mut rest = objects;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |object: &&Arc<Object>| {
            let first = bytes == 0;
            bytes += object.bytes().len();
            first || bytes <= MAX_BYTES_PER_TURN
        };
        let count = rest
            .iter()
            .take(MAX_OBJECTS_PER_TURN)
            .take_while(fits)
            .count();
        let (slice, left) = rest.split_at(count);
        rest = left;
        (count > 0).then_some(slice)
    })
}

impl Engine {
    /// Creates an object.
    ///
    /// # Errors
    /// Returns the error of admission or validation.
    pub async fn create(&self, request: Create) -> Result<Written, Error> {
        let dry_run = request.options.dry_run;
        let view = self.view(&request.kind)?;
        let written = if request.is_large_request(self.inner.inline_limit) {
            self.prepare_and_commit(dry_run, request, |tx, request| {
                let draft = machine::admit(tx.state(), tx.ids(), request)?;
                machine::create(tx, draft)
            })
            .await?
        } else {
            // Work that does not need the writer runs here, before the write is queued.
            let draft = machine::admit(&self.state(), &*self.inner.ids, request)?;
            self.submit(dry_run, move |tx| machine::create(tx, draft))
                .await?
        };
        Ok(self.presented(&view, written))
    }

    /// Creates a few small objects in one transaction, except for objects that already exist.
    ///
    /// # Errors
    /// Returns the error of admission or validation; in this case, no object is created.
    pub async fn create_missing(&self, requests: Vec<Create>) -> Result<(), Error> {
        if requests.is_empty() {
            return Ok(());
        }
        let state = self.state();
        let drafts = requests
            .into_iter()
            .map(|request| machine::admit(&state, &*self.inner.ids, request));
        let drafts = drafts.collect::<Result<Vec<_>, _>>()?;
        self.submit(false, move |tx| {
            for draft in drafts {
                match machine::create(tx, draft) {
                    Ok(_) | Err(Error::AlreadyExists(_)) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        })
        .await
    }

    /// Replaces an object or its status.
    ///
    /// # Errors
    /// Returns the error of the update rules or of validation.
    pub async fn update(&self, mut request: Update) -> Result<Written, Error> {
        let view = self.view(&request.target.kind)?;
        let scale = request.subresource == Subresource::Scale;
        let dry_run = request.options.dry_run;
        let written = if request.is_large_request(self.inner.inline_limit) {
            self.prepare_and_commit(dry_run, request, |tx, mut request| {
                let decoded = machine::decode_update(tx, &mut request)?;
                machine::update(tx, request, decoded)
            })
            .await?
        } else {
            let object = std::mem::take(&mut request.object);
            let validation = request.options.field_validation;
            let decoded = if scale {
                machine::scale_view().decode(object, validation)?
            } else {
                view.decode(object, validation)?
            };
            let read = machine::DecodedUpdate {
                request,
                decoded,
                view: view.clone(),
            };
            self.write(dry_run, read, machine::update_decoded).await?
        };
        Ok(if scale {
            written
        } else {
            self.presented(&view, written)
        })
    }

    /// Patches an object, its status or its scale.
    ///
    /// # Errors
    /// Returns an error if the patch cannot be applied, or any error of an update.
    pub async fn patch(&self, request: Patch) -> Result<Written, Error> {
        let view = self.view(&request.target.kind)?;
        let scale = request.subresource == Subresource::Scale;
        let dry_run = request.options.dry_run;
        let written = self.write(dry_run, request, machine::patch).await?;
        Ok(if scale {
            written
        } else {
            self.presented(&view, written)
        })
    }

    /// Deletes an object or marks it for deletion.
    ///
    /// # Errors
    /// [`Error::NotFound`], failed preconditions, protected namespaces.
    pub async fn delete(&self, request: Delete) -> Result<Deleted, Error> {
        let view = self.view(&request.target.kind)?;
        let dry_run = request.options.dry_run;
        let deleted = self
            .write(dry_run, request, |tx, request: Delete| {
                machine::delete(tx, &request.target, &request.options)
            })
            .await?;
        Ok(match deleted {
            Deleted::Gone(object) => Deleted::Gone(view.present(&object)),
            Deleted::Pending(object) => Deleted::Pending(view.present(&object)),
        })
    }

    /// Deletes all matching objects and returns their previous states. As in
    /// Kubernetes, other writes may be interleaved if there are many objects.
    ///
    /// # Errors
    /// Same as [`Engine::delete`]; some of the objects may already be deleted.
    pub async fn delete_collection(&self, request: DeleteCollection) -> Result<Page, Error> {
        let view = self.view(&request.list.kind)?;
        machine::check_options(&request.options)?;
        let dry_run = request.options.dry_run;
        let whole = request.clone();
        let few = self.submit(dry_run, move |tx| machine::delete_collection(tx, &whole));
        if let Some(mut page) = few.await? {
            for object in &mut page.items {
                *object = view.present(object);
            }
            return Ok(page);
        }
        let mut page = list::list(&self.state(), &request.list)?;
        for objects in slices(&page.items) {
            let listed = ListedObjects {
                kind: request.list.kind.clone(),
                objects: objects.to_vec(),
                options: request.options.clone(),
            };
            self.write(dry_run, listed, |tx, listed: ListedObjects| {
                machine::delete_listed(tx, &listed.kind, &listed.objects, &listed.options)
            })
            .await?;
        }
        for object in &mut page.items {
            *object = view.present(object);
        }
        Ok(page)
    }

    /// Assigns a pod to a node.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the pod is already assigned or is being deleted.
    pub async fn bind(&self, request: Bind) -> Result<(), Error> {
        self.write(request.dry_run, request, |tx, request: Bind| {
            machine::bind(tx, &request)
        })
        .await
    }

    /// Deletes a pod if its PodDisruptionBudget allows it.
    ///
    /// # Errors
    /// [`Error::TooManyDisruptions`] if the budget does not allow it;
    /// [`Error::SeveralBudgets`]; otherwise the errors of [`Engine::delete`].
    pub async fn evict(&self, request: Evict) -> Result<(), Error> {
        self.write(request.options.dry_run, request, |tx, request: Evict| {
            machine::evict(tx, &request)
        })
        .await
    }
}
