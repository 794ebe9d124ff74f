//! The declarations of objects by the schemas of their kinds.

use std::sync::Arc;

use longshore_cel::Decl;
use longshore_engine::Engine;
use longshore_model::Gvk;
use longshore_schema::{Shape, TypeRef, registry};

/// The declaration of the objects of a kind; `None` if it is not served.
pub(super) fn declared(engine: &Engine, kind: &Gvk) -> Option<Arc<Decl>> {
    if let Some(root) = registry().root(kind) {
        return Some(of_type(root, &mut Vec::new()));
    }
    let served = engine
        .served()
        .into_iter()
        .find(|served| served.info.gvk == *kind)?;
    let schema = served.custom.as_ref()?.openapi();
    let decl = Decl::of_schema(schema, false)?;
    let metadata = registry().root(&Gvk::from_api_version("v1", "ConfigMap"))?;
    let metadata = of_type(metadata.field("metadata")?, &mut Vec::new());
    Some(decl.with_fields(vec![
        ("apiVersion", Decl::string()),
        ("kind", Decl::string()),
        ("metadata", metadata),
    ]))
}

/// The declaration of a built-in type. A type that is nested in itself can be anything; `around`
/// are the enclosing definitions.
fn of_type(found: TypeRef, around: &mut Vec<&'static str>) -> Arc<Decl> {
    match found.shape() {
        Shape::Object => {
            if let Some(name) = found.definition() {
                if around.contains(&name) {
                    return Decl::any();
                }
                around.push(name);
            }
            let fields: Vec<(&str, Arc<Decl>)> = found
                .fields()
                .map(|(name, field)| (name, of_type(field, around)))
                .collect();
            if found.definition().is_some() {
                around.pop();
            }
            Decl::object(&fields)
        }
        Shape::Map => Decl::map(of_items(found, around)),
        Shape::List => Decl::list(of_items(found, around)),
        Shape::String | Shape::Quantity => Decl::string(),
        Shape::Integer => Decl::int(),
        Shape::Number => Decl::double(),
        Shape::Boolean => Decl::bool(),
        Shape::IntOrString => Decl::int_or_string(),
        Shape::Time | Shape::MicroTime => Decl::time(),
        Shape::Bytes => Decl::bytes(),
        Shape::Any => Decl::any(),
    }
}

fn of_items(found: TypeRef, around: &mut Vec<&'static str>) -> Arc<Decl> {
    found
        .items()
        .map_or_else(Decl::any, |items| of_type(items, around))
}
