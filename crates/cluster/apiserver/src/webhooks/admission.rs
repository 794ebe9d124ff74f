//! The admission of a request by webhooks.

use std::sync::{Arc, Mutex, PoisonError};

use longshore_engine::{Dependency, Engine, Error, Review, ReviewStage, Reviewer};
use longshore_model::{KindInfo, MessageList};
use serde_json::Value;

use super::{
    attributes::{Attributes, Operation, Resource},
    configuration::Index,
    conversion::Converter,
    message::Objects,
    refusal::Refusal,
    write_rules::{Dependencies, WriteRule},
};

/// The warnings of webhooks, which are added to the response of the request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Warnings(Arc<Mutex<MessageList>>);

impl Warnings {
    pub(super) fn add(&self, warnings: Vec<String>) {
        if warnings.is_empty() {
            return;
        }
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for warning in warnings {
            if !warning.is_empty() && !all.contains(&warning) {
                all.push(warning);
            }
        }
    }

    /// Returns the warnings.
    pub(crate) fn take(&self) -> Vec<String> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *all).into_vec()
    }
}

/// The admission of a request that webhooks may match.
#[derive(Debug)]
pub(crate) struct Admission {
    pub(super) engine: Engine,
    pub(super) index: Arc<Index>,
    pub(super) attributes: Attributes,
    pub(super) warnings: Warnings,
    /// Converts the objects, if their definition has a conversion webhook.
    pub(super) converter: Option<Converter>,
    /// The rules about the writes of the user.
    pub(super) rules: Vec<Box<dyn WriteRule>>,
    /// The objects that were read.
    pub(super) dependencies: Dependencies,
}

impl Admission {
    /// Admits the object of a request that is not stored, such as the options
    /// of a connection. Returns the object.
    pub(crate) async fn admit(&self, operation: Operation, object: Value) -> Result<Value, Error> {
        let objects = Objects {
            object: Some(object),
            old_object: None,
        };
        let object = self.mutate(operation, objects).await?;
        let objects = Objects {
            object,
            old_object: None,
        };
        self.validate(operation, &objects).await?;
        Ok(objects.object.unwrap_or_default())
    }

    /// Checks the rules of a stage. `after` is the object of the write.
    fn check_rules(
        &self,
        stage: ReviewStage,
        before: Option<&Value>,
        after: Option<&Value>,
    ) -> Result<(), Error> {
        for rule in self.rules.iter().filter(|rule| rule.stage() == stage) {
            // Recorded before the rule reads the objects.
            self.dependencies.add(rule.dependency());
            rule.check(before, after.unwrap_or(&Value::Null))?;
        }
        Ok(())
    }

    /// Returns the objects in another version of their kind.
    pub(super) async fn converted(
        &self,
        objects: &Objects,
        resource: &Resource,
    ) -> Result<Objects, Refusal> {
        let from = &self.attributes.resource;
        let mut converted = objects.clone();
        for object in [&mut converted.object, &mut converted.old_object] {
            if let Some(known) = object.take() {
                *object = Some(self.convert(known, from, resource).await?);
            }
        }
        Ok(converted)
    }

    /// Returns an object in the version of the request.
    pub(super) async fn restored(&self, object: Value, from: &Resource) -> Result<Value, Refusal> {
        self.convert(object, from, &self.attributes.resource).await
    }

    async fn convert(
        &self,
        object: Value,
        from: &Resource,
        to: &Resource,
    ) -> Result<Value, Refusal> {
        if from == to || self.attributes.has_own_kind {
            return Ok(object);
        }
        if let Some(converter) = &self.converter {
            let version = self.info(to)?.api_version();
            let converted = converter.convert_one(object, &version).await;
            return converted.map_err(Refusal::internal);
        }
        let managed = object.pointer("/metadata/managedFields").cloned();
        let (from, to) = (self.info(from)?, self.info(to)?);
        let converted = self.engine.convert(object, &from, &to);
        let mut converted = converted.map_err(Refusal::internal)?;
        if let (Some(managed), Some(Value::Object(metadata))) =
            (managed, converted.get_mut("metadata"))
        {
            metadata.insert("managedFields".into(), managed);
        }
        Ok(converted)
    }

    fn info(&self, resource: &Resource) -> Result<Arc<KindInfo>, Refusal> {
        let Resource {
            group,
            version,
            plural,
            ..
        } = resource;
        let found = self.engine.find(group, version, plural);
        found.ok_or_else(|| Refusal::internal(format!("{plural} are no longer served")))
    }

    /// Sets the defaults of an object that a webhook has changed.
    pub(super) fn with_defaults(
        &self,
        object: Value,
        resource: &Resource,
    ) -> Result<Value, Refusal> {
        if self.attributes.has_own_kind {
            return Ok(object);
        }
        let info = self.info(resource)?;
        let defaulted = self.engine.with_defaults(object, &info);
        defaulted.map_err(Refusal::internal)
    }
}

impl Reviewer for Admission {
    async fn review(&self, review: &Review) -> Result<Option<Value>, Error> {
        let objects = Objects {
            object: review.object.clone(),
            old_object: review.old_object.clone(),
        };
        let operation = match (review.stage, &review.old_object) {
            (ReviewStage::Deleting, _) => Operation::Delete,
            (_, None) => Operation::Create,
            (_, Some(_)) => Operation::Update,
        };
        match review.stage {
            ReviewStage::Mutating => {
                let object = self.mutate(operation, objects).await?;
                let before = review.old_object.as_ref();
                self.check_rules(review.stage, before, object.as_ref())?;
                Ok(object)
            }
            ReviewStage::Validating => {
                let (before, after) = (&objects.old_object, &objects.object);
                self.check_rules(review.stage, before.as_ref(), after.as_ref())?;
                self.validate(operation, &objects).await.map(|()| None)
            }
            ReviewStage::Deleting => {
                self.mutate(operation, objects.clone()).await?;
                self.validate(operation, &objects).await.map(|()| None)
            }
        }
    }

    fn dependencies(&self) -> Vec<Dependency> {
        self.dependencies.all()
    }

    fn forget_dependencies(&self) {
        self.dependencies.clear();
    }

    async fn convert(&self, object: Value, version: &str) -> Result<Value, Error> {
        match &self.converter {
            Some(converter) => converter.convert_one(object, version).await,
            None => Err(Error::Internal(
                "the definition has no conversion webhook".into(),
            )),
        }
    }
}
