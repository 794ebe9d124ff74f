//! Go names of types for error messages: `int32`, `[]v1.Container`.

use crate::graph::{Shape, TypeRef};

/// `Container` for `io.k8s.api.core.v1.Container`.
pub(crate) fn short(definition: &str) -> &str {
    definition.rsplit('.').next().unwrap_or(definition)
}

impl TypeRef {
    /// The name of an object's type within its package: `Container`. `None` for
    /// a type without a name.
    #[must_use]
    pub fn type_name(self) -> Option<&'static str> {
        self.definition().map(short)
    }

    /// The type as Go prints it in messages. String types with a name in Go
    /// (`v1.DNSPolicy`) are plain strings in the schema, and here.
    ///
    /// ```
    /// use longshore_model::Gvk;
    /// let pod = longshore_schema::registry().root(&Gvk::from_api_version("v1", "Pod")).unwrap();
    /// let spec = pod.field("spec").unwrap();
    /// assert_eq!(spec.go_type(), "v1.PodSpec");
    /// assert_eq!(spec.field("containers").unwrap().go_type(), "[]v1.Container");
    /// assert_eq!(spec.field("nodeSelector").unwrap().go_type(), "map[string]string");
    /// assert_eq!(spec.field("priority").unwrap().go_type(), "int32");
    /// ```
    #[must_use]
    pub fn go_type(self) -> String {
        if let Some(definition) = self.definition() {
            let mut words = definition.rsplit('.');
            let (name, package) = (words.next(), words.next());
            return format!(
                "{}.{}",
                package.unwrap_or_default(),
                name.unwrap_or_default()
            );
        }
        let inner = || {
            self.items()
                .map_or_else(|| "interface {}".into(), Self::go_type)
        };
        match self.shape() {
            Shape::List => format!("[]{}", inner()),
            Shape::Map if self.items().map(Self::shape) == Some(Shape::Quantity) => {
                "v1.ResourceList".to_owned()
            }
            Shape::Map => format!("map[string]{}", inner()),
            Shape::Integer if self.is_narrow() => "int32".to_owned(),
            Shape::Integer => "int64".to_owned(),
            Shape::Number => "float64".to_owned(),
            Shape::Boolean => "bool".to_owned(),
            Shape::Bytes => "[]uint8".to_owned(),
            _ => "string".to_owned(),
        }
    }
}
