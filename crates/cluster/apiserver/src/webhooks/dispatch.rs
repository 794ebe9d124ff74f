//! Calls the webhooks that a request matches: mutating webhooks one after the other, validating
//! webhooks at the same time.

use std::{cell::OnceCell, collections::HashSet};

use futures::future::join_all;
use longshore_engine::{Engine, Error, Ids as _, RandomIds};
use serde_json::Value;

use super::{
    admission::Admission,
    answer::{self, Answer},
    attributes::{Operation, Resource},
    client::Room,
    configuration::Webhook,
    evaluation::Reinvocation,
    message::{self, Objects, ReviewVersion},
    refusal::{CallError, Refusal},
    selection,
};

/// The calls of mutating webhooks for a request.
#[derive(Default)]
struct Calls<'w> {
    called_before: HashSet<&'w str>,
    repeated: HashSet<&'w str>,
    /// The object after the calls.
    last_object: Option<Value>,
}

impl Admission {
    /// Applies the mutating policies and calls the mutating webhooks. Both are repeated once if an
    /// object was changed and they request it. Returns the object, if the request has one.
    pub(super) async fn mutate(
        &self,
        operation: Operation,
        mut objects: Objects,
    ) -> Result<Option<Value>, Error> {
        let mut policies = Reinvocation::default();
        let mut webhooks = Calls::default();
        for round in 0..2 {
            if round > 0 {
                policies.repeat(objects.object.as_ref());
            }
            let applied = self
                .apply_policies(operation, &mut objects, &mut policies)
                .await?;
            let has_policies = !self.index.policies.is_empty();
            if round > 0 && has_policies && webhooks.last_object != objects.object {
                webhooks.repeated.extend(webhooks.called_before.drain());
            }
            let called = self
                .call_mutating(round, operation, &mut objects, &mut webhooks)
                .await?;
            if !applied && !called {
                break;
            }
        }
        Ok(objects.object)
    }

    /// Calls the mutating webhooks. Returns true if a webhook has changed the object.
    async fn call_mutating<'w>(
        &'w self,
        round: usize,
        operation: Operation,
        objects: &mut Objects,
        calls: &mut Calls<'w>,
    ) -> Result<bool, Error> {
        let mut is_changed = false;
        if self.attributes.configures_admission() {
            return Ok(false);
        }
        for webhook in &self.index.mutating {
            if round > 0 && !calls.repeated.contains(webhook.id.as_str()) {
                continue;
            }
            let changed = self.mutate_with(webhook, operation, objects).await?;
            let Some(changed) = changed else { continue };
            if let Some(object) = changed {
                objects.object = Some(object);
                is_changed = true;
                calls.repeated.extend(calls.called_before.drain());
            }
            if webhook.is_reinvoked {
                calls.called_before.insert(webhook.id.as_str());
            }
        }
        if !self.index.policies.is_empty() {
            calls.last_object.clone_from(&objects.object);
        }
        Ok(is_changed)
    }

    /// Calls a mutating webhook if the request matches it. Returns `None` if it does not match,
    /// otherwise the object if the webhook has changed it.
    async fn mutate_with(
        &self,
        webhook: &Webhook,
        operation: Operation,
        objects: &Objects,
    ) -> Result<Option<Option<Value>>, Error> {
        let attributes = &self.attributes;
        let selected = selection::select(&self.engine, webhook, operation, attributes, objects)?;
        let Some(resource) = selected else {
            return Ok(None);
        };
        let changed = async {
            let room = room(webhook, objects.size()).await?;
            let shown = self.converted(objects, resource).await?;
            let answer = self
                .call((webhook, true), (operation, resource), shown.clone(), room)
                .await?;
            self.patched(webhook, &answer, resource, shown.object).await
        };
        match changed.await {
            Ok(changed) => Ok(Some(changed)),
            Err(refusal) => ignored(webhook, refusal).map(|()| Some(None)),
        }
    }

    /// Applies the patch of a webhook. Returns `None` if the object does not change.
    async fn patched(
        &self,
        webhook: &Webhook,
        answer: &Answer,
        resource: &Resource,
        object: Option<Value>,
    ) -> Result<Option<Value>, Refusal> {
        if answer.patch.is_empty() {
            return Ok(None);
        }
        let patch: Value = serde_json::from_slice(&answer.patch).map_err(|error| {
            CallError(format!(
                "received undecodable patch in webhook response: {error}"
            ))
        })?;
        let Some(operations) = patch.as_array() else {
            let problem = "received undecodable patch in webhook response: it is no list";
            return Err(CallError(problem.into()).into());
        };
        if operations.is_empty() {
            return Ok(None);
        }
        let Some(object) = object else {
            return Err(Refusal::internal(format!(
                "admission webhook {:?} attempted to modify the object, which is not supported for this operation",
                webhook.name
            )));
        };
        if answer.patch_type != "JSONPatch" {
            let problem = format!("unsupported patch type {:?}", answer.patch_type);
            return Err(CallError(problem).into());
        }
        let text = String::from_utf8_lossy(&answer.patch);
        let patched = Engine::apply_json_patch(object.clone(), &patch, &text).map_err(|error| {
            Refusal::internal(match error {
                Error::PatchFailed(problem) => problem,
                error => error.to_string(),
            })
        })?;
        let patched = self.with_defaults(patched, resource)?;
        if patched == object {
            return Ok(None);
        }
        self.restored(patched, resource).await.map(Some)
    }

    /// Calls the validating webhooks that the request matches.
    pub(super) async fn validate(
        &self,
        operation: Operation,
        objects: &Objects,
    ) -> Result<(), Error> {
        self.check_param_permission(objects)?;
        self.check_policies(operation, objects).await?;
        if self.attributes.configures_admission() {
            return Ok(());
        }
        let bytes = OnceCell::new();
        let mut calls = Vec::new();
        for webhook in &self.index.validating {
            let attributes = &self.attributes;
            let found = selection::select(&self.engine, webhook, operation, attributes, objects)?;
            calls.extend(found.map(|resource| {
                let bytes = *bytes.get_or_init(|| objects.size());
                async move {
                    let called = async {
                        let room = room(webhook, bytes).await?;
                        let shown = self.converted(objects, resource).await?;
                        self.call((webhook, false), (operation, resource), shown, room)
                            .await
                    };
                    match called.await {
                        Ok(_) => Ok(()),
                        Err(refusal) => ignored(webhook, refusal),
                    }
                }
            }));
        }
        join_all(calls).await.into_iter().collect()
    }

    /// Calls a webhook and reads the answer, which admits the request.
    async fn call(
        &self,
        (webhook, is_mutating): (&Webhook, bool),
        (operation, resource): (Operation, &Resource),
        objects: Objects,
        room: Room,
    ) -> Result<Answer, Refusal> {
        if self.attributes.dry_run && !webhook.supports_dry_run {
            return Err(Refusal::bad_request(format!(
                "admission webhook {:?} does not support dry run",
                webhook.name
            )));
        }
        let version = webhook.version.ok_or_else(|| {
            let problem = "webhook does not accept known AdmissionReview versions (v1, v1beta1)";
            CallError(format!("could not create admission objects: {problem}"))
        })?;
        let uid = RandomIds.uid();
        let attributes = &self.attributes;
        // Only the text is kept during the call.
        let review = message::review((version, &uid), attributes, operation, resource, objects);
        let text = review.to_string();
        drop(review);
        let body = webhook
            .client
            .post(&self.engine, (text.into(), room), webhook.timeout)
            .await
            .map_err(CallError::call)?;
        self.read(&body, (version, &uid, is_mutating), webhook)
    }

    fn read(
        &self,
        body: &[u8],
        expected: (ReviewVersion, &str, bool),
        webhook: &Webhook,
    ) -> Result<Answer, Refusal> {
        let mut answer = answer::read(body, expected, &webhook.name)?;
        self.warnings.add(std::mem::take(&mut answer.warnings));
        if let Some(record) = &self.attributes.audit {
            for (key, value) in std::mem::take(&mut answer.annotations) {
                record.annotate(format!("{}/{key}", webhook.name), &value);
            }
        }
        match answer.refusal.take() {
            Some(status) => Err(Refusal::Refused(status)),
            None => Ok(answer),
        }
    }
}

/// Waits for memory for the review of objects of a size.
async fn room(webhook: &Webhook, bytes: usize) -> Result<Room, CallError> {
    let room = webhook.client.room(bytes, webhook.timeout).await;
    room.map_err(CallError::call)
}

/// Ignores a failed call if the failure policy of the webhook is `Ignore`.
fn ignored(webhook: &Webhook, refusal: Refusal) -> Result<(), Error> {
    match refusal {
        Refusal::Failed(CallError(problem)) if webhook.ignores_failures => {
            tracing::warn!(
                webhook = webhook.name,
                problem,
                "a failed webhook is ignored"
            );
            Ok(())
        }
        refusal => Err(refusal.into_error(&webhook.name)),
    }
}
