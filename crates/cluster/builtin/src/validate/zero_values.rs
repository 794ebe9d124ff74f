//! Missing values in error messages: Go cannot distinguish a missing string or
//! number from an empty string or zero.

use longshore_model::{KindInfo, StatusCause};
use longshore_schema::{Shape, TypeRef, registry};

const NOTHING: &str = "Invalid value: null: ";

/// Replaces missing values in messages with the zero value of their type.
pub(super) fn show_as_zero(kind: &KindInfo, causes: &mut [StatusCause]) {
    let missing = |cause: &&mut StatusCause| cause.message.starts_with(NOTHING);
    for cause in causes.iter_mut().filter(missing) {
        let Some(root) = registry().root(&kind.gvk) else {
            return;
        };
        let zero = match find(root, &cause.field).map(TypeRef::shape) {
            Some(Shape::String) => "\"\"",
            Some(Shape::Integer) => "0",
            Some(Shape::Boolean) => "false",
            _ => continue,
        };
        let rest = &cause.message[NOTHING.len()..];
        cause.message = format!("Invalid value: {zero}: {rest}");
    }
}

/// The type at the path of a cause. Paths of some rules lack indices.
fn find(root: TypeRef, path: &str) -> Option<TypeRef> {
    path.split('.').try_fold(root, |at, part| {
        let (name, index) = part.split_once('[').unwrap_or((part, ""));
        let at = match at.shape() {
            Shape::List => at.items()?,
            _ => at,
        };
        let field = at.field(name)?;
        if index.is_empty() {
            Some(field)
        } else {
            field.items()
        }
    })
}
