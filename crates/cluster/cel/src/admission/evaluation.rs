//! Evaluates the expressions of a webhook or policy within a common budget.

use std::sync::Arc;

use serde_json::Value as Json;

use super::{Expression, MAX_COMPOSED_HEIGHT, Output, SHALLOW, VARIABLES, Variables};
use crate::{
    authorizer::{AccessRequest, Authorizer},
    decl::Decl,
    error::EvalError,
    eval::{self, Composition},
    meter::{COST_PER_CALL, Meter},
    names::AUTHORIZER,
    program::CompileError,
    stack,
    value::{Access, Opaque, Value, from_json},
};

/// The variable with the check of the request itself.
const CHECK_OF_REQUEST: &str = "authorizer.requestResource";

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// The values of the variables in an admission expression.
#[derive(Debug, Clone, Default)]
pub struct AdmissionInputs<'a> {
    /// `request`: an `AdmissionRequest` without the objects.
    pub request: Option<&'a Json>,
    /// `object`: the new object; null for deletes.
    pub object: Option<&'a Json>,
    /// `oldObject`: the existing object; null for creates.
    pub old_object: Option<&'a Json>,
    /// `namespaceObject`: the Namespace of the object; null for cluster-scoped ones.
    pub namespace: Option<&'a Json>,
    /// `params`: the parameters of the policy.
    pub params: Option<&'a Json>,
    /// `authorizer`, and the check of the request itself; `None` if expressions
    /// cannot use it.
    pub authorizer: Option<(Arc<dyn Authorizer>, AccessRequest)>,
}

/// The results of expressions, and the budget that is left. An expression without a
/// value has the error of Kubernetes instead.
pub(crate) type Results = (Vec<Result<Output, String>>, u64);

impl AdmissionInputs<'_> {
    /// Evaluates expressions. An expression is `None` if it is optional and absent;
    /// its result is null.
    ///
    /// # Errors
    /// The budget is used up; the results are discarded.
    pub fn evaluate(
        &self,
        variables: &Variables,
        expressions: &[Option<&Result<Expression, CompileError>>],
        budget: u64,
    ) -> Result<Results, String> {
        let compiled = expressions.iter().flatten();
        let height = compiled.filter_map(|one| one.as_ref().ok().map(|one| one.height));
        let height = height.max().unwrap_or_default().min(MAX_COMPOSED_HEIGHT);
        stack::run(height <= SHALLOW, || {
            self.evaluate_here(variables, expressions, budget)
        })
        .unwrap_or_else(|| {
            Err("no thread can be started for an expression of this depth".to_owned())
        })
    }

    fn evaluate_here(
        &self,
        variables: &Variables,
        expressions: &[Option<&Result<Expression, CompileError>>],
        mut budget: u64,
    ) -> Result<Results, String> {
        let namespace = super::declarations::namespace();
        let request = super::declarations::request();
        let inputs = self
            .values(&namespace, &request)
            .map_err(|error| error.to_string())?;
        let composition = Composition::new(&variables.definitions);
        let mut results = Vec::with_capacity(expressions.len());
        for expression in expressions {
            let expression = match expression {
                None => {
                    results.push(Ok(Output::Null));
                    continue;
                }
                Some(Err(error)) => {
                    results.push(Err(format!("compilation error: {error}")));
                    continue;
                }
                Some(Ok(expression)) => expression,
            };
            let mut meter = Meter::new(COST_PER_CALL.min(budget));
            let composed = composition.all(budget);
            let found = eval::evaluate(&expression.root, &inputs, Some(composed), &mut meter);
            let left = budget.checked_sub(composition.take_cost());
            let left = left.and_then(|left| left.checked_sub(meter.cost()));
            budget = left.ok_or_else(|| OUT_OF_BUDGET.to_owned())?;
            let found = found.and_then(|value| Output::of(&value));
            results.push(found.map_err(|error| {
                let source = &expression.source;
                format!("expression '{source}' resulted in error: {error}")
            }));
        }
        Ok((results, budget))
    }

    fn values<'v>(
        &'v self,
        namespace: &'v Decl,
        request: &'v Decl,
    ) -> Result<Vec<(&'v str, Value<'v>)>, EvalError> {
        let any = Decl::any_ref();
        let mut values = Vec::with_capacity(8);
        for (name, json, decl) in [
            ("object", self.object, any),
            ("oldObject", self.old_object, any),
            ("namespaceObject", self.namespace, namespace),
            ("request", self.request, request),
            ("params", self.params, any),
        ] {
            let value = json.map(|json| from_json(json, decl)).transpose()?;
            values.push((name, value.unwrap_or(Value::Null)));
        }
        if let Some((authorizer, request)) = &self.authorizer {
            let access = |request: AccessRequest| Access {
                authorizer: authorizer.clone(),
                request,
            };
            let any = Opaque::Authorizer(access(AccessRequest::default()));
            values.push((AUTHORIZER, Value::opaque(any)));
            let own = Opaque::ResourceCheck(access(request.clone()));
            values.push((CHECK_OF_REQUEST, Value::opaque(own)));
        }
        values.push((VARIABLES, Value::Variables));
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::REQUEST_RESOURCE;

    #[test]
    fn the_check_of_the_request_is_a_field_of_the_authorizer() {
        assert_eq!(CHECK_OF_REQUEST, format!("{AUTHORIZER}.{REQUEST_RESOURCE}"));
    }
}
