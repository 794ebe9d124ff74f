//! The costs of functions, and the sizes of their results.

use super::{Estimator, Node, Path, Size, element_type};
use crate::{
    ast::{Expr, Kind, Literal},
    types::Type,
};

/// Returns the cost of traversing a string: a tenth of its length.
fn tenth(size: u64) -> u64 {
    multiplied(size, 0.1)
}

/// Kubernetes computes with doubles, whose rounding is part of the cost.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss
)]
fn multiplied(size: u64, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}

/// The cost of a call that creates a list.
pub(super) fn of_list(factor: f64, size: u64) -> u64 {
    multiplied(size, factor).saturating_add(11)
}

impl<'e, 'd> Estimator<'e, 'd> {
    /// Returns the cost of a function, excluding its arguments, and the size of its result.
    pub(super) fn function(
        &self,
        name: &str,
        exprs: &[&'e Expr],
        nodes: &[Node<'d>],
        types: &[&Type],
    ) -> (u64, Option<Size>) {
        let constant = |index: usize| match exprs.get(index).map(|expr| &expr.kind) {
            Some(Kind::Literal(Literal::Int(number))) => u64::try_from(*number).ok(),
            _ => None,
        };
        let is_text_or_bytes = |of: &Type| matches!(of, Type::String | Type::Bytes);
        let size = |index: usize| nodes.get(index).map_or(Size::fixed(0), Node::size);
        let max = |index: usize| nodes.get(index).map_or(0, Node::max);
        let has_text = |index: usize| {
            matches!(
                types.get(index),
                Some(Type::String | Type::Bytes | Type::Dyn | Type::Error)
            )
        };
        let is_list = |index: usize| matches!(types.get(index), Some(Type::List(_) | Type::Dyn));
        match name {
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => {
                match (types.first(), nodes.first()) {
                    (Some(Type::List(of)), Some(list)) => {
                        let each = match &**of {
                            Type::String | Type::Bytes => {
                                tenth(self.longest_item(list)).saturating_add(1)
                            }
                            _ => 1,
                        };
                        (list.max().saturating_mul(each), None)
                    }
                    _ => (tenth(max(0)), None),
                }
            }
            "url" | "lowerAscii" | "upperAscii" | "substring" | "trim" => {
                (tenth(max(0)), Some(size(0)))
            }
            "isIP" | "isCIDR" | "cidr" | "quantity" | "isQuantity" | "semver" | "isSemver" => {
                (tenth(max(0)), None)
            }
            "ip" if has_text(0) => (tenth(max(0)), None),
            "ip.isCanonical" => (multiplied(max(0), 0.2), None),
            "replace" => {
                let cost = multiplied(max(0), 0.2);
                (cost, Some(replaced(size(0), size(1), size(2))))
            }
            "split" => {
                let result = Size {
                    min: 0,
                    max: max(0),
                };
                (multiplied(max(0), 0.2), Some(result))
            }
            "join" => {
                let item = Size {
                    min: 0,
                    max: nodes.first().map_or(0, |list| self.longest_item(list)),
                };
                let list = size(0);
                let gaps = Size {
                    min: list.min.saturating_sub(1),
                    max: list.max.saturating_sub(1),
                };
                let mut result = list.times(item);
                if nodes.len() > 1 {
                    result = result.plus(size(1).times(gaps));
                }
                (tenth(result.max), Some(result))
            }
            "matches" | "find" | "findAll" => {
                let text = tenth(max(0).saturating_add(1));
                let result = Size {
                    min: 0,
                    max: max(0),
                };
                let cost = text.saturating_mul(max(1).div_ceil(4));
                (cost, (name != "matches").then_some(result))
            }
            "validate" => (tenth(max(1)).saturating_mul(32), None),
            "slice" => {
                let (from, to) = (constant(1).unwrap_or(0), constant(2).unwrap_or(max(0)));
                let result = Size::fixed(to.saturating_sub(from));
                (of_list(1.0, result.max), Some(result))
            }
            "lists.range" => {
                let result = Size::fixed(constant(0).unwrap_or(u64::MAX));
                (of_list(1.0, result.max), Some(result))
            }
            "reverse" => (of_list(1.0, max(0)), Some(size(0))),
            "flatten" => {
                let depth = match exprs.len() {
                    1 => 1,
                    _ => constant(1).unwrap_or(u64::MAX),
                };
                let cost = max(0).saturating_mul(depth).saturating_add(11);
                (cost, Some(size(0)))
            }
            "distinct" => {
                let square = size(0).times(size(0));
                (of_list(2.0, square.max), Some(square))
            }
            "sort" => {
                let of_text = types
                    .first()
                    .is_some_and(|of| is_text_or_bytes(element_type(of)));
                let square = size(0).times(size(0));
                let factor = if of_text { 2.1 } else { 2.0 };
                (of_list(factor, square.max), Some(square))
            }
            "containsIP" | "containsCIDR" => {
                let is_cidr = name == "containsCIDR";
                let own = if is_cidr { 4 + 2 + 1 } else { 4 };
                let parse = if has_text(1) { tenth(max(1)) } else { 0 };
                (parse.saturating_add(own), None)
            }
            "startsWith" | "endsWith" => (tenth(max(1)), None),
            "bytes" if has_text(0) => {
                let result = Size {
                    min: size(0).min,
                    max: max(0).saturating_mul(4),
                };
                (tenth(max(0)), Some(result))
            }
            "string" if matches!(types.first(), Some(Type::Bytes)) => {
                (tenth(max(0)), Some(size(0)))
            }
            "strings.quote" => {
                let result = Size {
                    min: size(0).min.saturating_add(2),
                    max: max(0).saturating_mul(2).saturating_add(2),
                };
                (tenth(max(0)), Some(result))
            }
            "format" => (tenth(max(0)), None),
            "@in" if is_list(1) => (max(1), None),
            "contains" => (tenth(max(0)).saturating_mul(tenth(max(1))), None),
            "_==_" | "_!=_" => match types.first() {
                Some(Type::Opaque(_)) => (1, None),
                _ => (tenth(max(0).min(max(1))), None),
            },
            "_<_" | "_<=_" | "_>_" | "_>=_" if has_text(0) && has_text(1) => {
                (tenth(max(0).min(max(1))), None)
            }
            "_+_" if is_list(0) && !has_text(0) => (1, Some(size(0).plus(size(1)))),
            "_+_" if has_text(0) && has_text(1) => {
                let result = size(0).plus(size(1));
                (tenth(result.max), Some(result))
            }
            "sets.contains" | "sets.intersects" => {
                (max(0).saturating_mul(max(1)).saturating_add(1), None)
            }
            "sets.equivalent" => {
                let product = max(0).saturating_mul(max(1));
                (product.saturating_mul(2).saturating_add(1), None)
            }
            _ => (1, None),
        }
    }

    /// The maximum size of the items of a list.
    fn longest_item(&self, list: &Node<'d>) -> u64 {
        match self.values(list).path {
            // Computed lists have no path, so the sizes of their items are not known.
            Path::At(_) if matches!(list.path, Path::Computed) => u64::MAX,
            Path::At(decl) => decl.max_elements,
            _ => u64::MAX,
        }
    }
}

/// The size of a string with parts replaced.
fn replaced(text: Size, from: Size, to: Size) -> Size {
    let (count, kept) = if from.min == 0 {
        (text.max.saturating_add(1), text.max)
    } else if to.max <= from.min {
        (0, text.max)
    } else {
        (text.max.div_ceil(from.min), 0)
    };
    Size {
        min: 0,
        max: count.saturating_mul(to.max).saturating_add(kept),
    }
}
