//! Checks the types of the expressions of ValidatingAdmissionPolicies against the schemas of the
//! kinds that they match, after a policy was written. The warnings become a part of the policy's
//! status.

mod declaration;
mod kinds;

use std::sync::Arc;

use longshore_builtin::json;
use longshore_cel::{Compiler, Decl, Variables};
use longshore_engine::{Engine, Object, Patch, ReadVersion, Subresource, Target, WriteOptions};
use longshore_model::{Gvk, KindInfo, PatchKind, kind::builtin};
use serde_json::{Map, Value, json};

use self::{declaration::declared, kinds::matched_kinds};

/// The field manager of the status, as in Kubernetes.
const MANAGER: &str = "validatingadmissionpolicy-status";
const KIND: &str = "ValidatingAdmissionPolicy";
const API_VERSION: &str = "admissionregistration.k8s.io/v1";

/// Checks the expressions of a policy that was written, in a separate task.
pub(crate) fn check_later(engine: &Engine, kind: &KindInfo, written: &Arc<Object>) {
    if *kind.gvk.kind != *KIND || kind.gvk.api_version() != API_VERSION {
        return;
    }
    let (engine, name) = (engine.clone(), written.name().to_owned());
    tokio::spawn(async move {
        if let Err(error) = check(&engine, &name).await {
            tracing::warn!(policy = name, %error, "cannot check the types of a policy");
        }
    });
}

async fn check(engine: &Engine, name: &str) -> Result<(), longshore_engine::Error> {
    let Some(info) = builtin("admissionregistration.k8s.io", KIND) else {
        return Ok(());
    };
    let policy = engine.get(info, None, name, ReadVersion::Latest)?.value();
    let generation = policy["metadata"]["generation"].as_i64();
    if generation <= policy["status"]["observedGeneration"].as_i64() {
        return Ok(());
    }
    let empty = Map::new();
    let spec = policy["spec"].as_object().unwrap_or(&empty);
    let mut checking = json!({});
    let warnings = warnings(engine, spec);
    if !warnings.is_empty() {
        checking["expressionWarnings"] = warnings.into();
    }
    let body = json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": name},
        "status": {"observedGeneration": generation, "typeChecking": checking},
    });
    let patch = Patch {
        target: Target {
            kind: Arc::new(info.clone()),
            namespace: None,
            name: name.to_owned(),
        },
        subresource: Subresource::Status,
        kind: PatchKind::Apply,
        body,
        options: WriteOptions {
            field_manager: Some(MANAGER.to_owned()),
            force: true,
            ..WriteOptions::default()
        },
    };
    engine.patch(patch).await.map(drop)
}

/// The warnings about the validations of a policy.
fn warnings(engine: &Engine, spec: &Map<String, Value>) -> Vec<Value> {
    let kinds = matched_kinds(engine, spec);
    let kinds: Vec<_> = kinds
        .into_iter()
        .filter_map(|kind| Some((declared(engine, &kind)?, kind)))
        .collect();
    let params = spec.get("paramKind").and_then(Value::as_object);
    let params = params.map(|kind| {
        let (version, kind) = (json::text(kind, "apiVersion"), json::text(kind, "kind"));
        declared(engine, &Gvk::from_api_version(version, kind)).unwrap_or_else(Decl::any)
    });
    let compilers: Vec<_> = kinds
        .iter()
        .map(|(decl, kind)| (compiler(spec, decl, params.as_ref()), kind))
        .collect();
    let mut warnings = Vec::new();
    for (index, validation) in json::items(spec, "validations").enumerate() {
        for field in ["expression", "messageExpression"] {
            let source = json::text(validation, field);
            if source.is_empty() {
                continue;
            }
            let problems = compilers.iter().filter_map(|(compiler, kind)| {
                let problem = compiler.check_types(source).err()?;
                Some(format!("{}: {problem}\n", described(kind)))
            });
            let problems: Vec<String> = problems.collect();
            if !problems.is_empty() {
                warnings.push(json!({
                    "fieldRef": format!("spec.validations[{index}].{field}"),
                    "warning": problems.join("\n"),
                }));
            }
        }
    }
    warnings
}

/// The compiler of the expressions of a policy for objects of a kind.
fn compiler(spec: &Map<String, Value>, object: &Arc<Decl>, params: Option<&Arc<Decl>>) -> Compiler {
    let mut compiler = Compiler::with_objects(object)
        .with_authorizer()
        .with_variables();
    if let Some(params) = params {
        compiler = compiler.with_params(params);
    }
    let mut variables = Variables::default();
    for variable in json::items(spec, "variables") {
        let text = |field: &str| json::text(variable, field);
        // As in Kubernetes, only expressions that read the variable are reported.
        let _ = compiler.add(&mut variables, text("name"), text("expression"));
    }
    compiler
}

/// A kind in the form in which Kubernetes prints it.
fn described(kind: &Gvk) -> String {
    format!("{}/{}, Kind={}", kind.group, kind.version, kind.kind)
}
