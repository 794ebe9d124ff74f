//! Estimates what an expression can cost at most, from the size limits of the
//! schema. The estimate decides which rules a definition may have, so its
//! numbers are those of Kubernetes.

use crate::{
    ast::{Comprehension, Expr, Kind, Literal, Macro},
    decl::Decl,
    types::Type,
};

/// A range of sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Size {
    min: u64,
    max: u64,
}

impl Size {
    const UNKNOWN: Self = Self {
        min: 0,
        max: u64::MAX,
    };

    fn fixed(size: u64) -> Self {
        Self {
            min: size,
            max: size,
        }
    }

    fn union(self, other: Self) -> Self {
        Self {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            min: self.min.saturating_add(other.min),
            max: self.max.saturating_add(other.max),
        }
    }

    fn times(self, other: Self) -> Self {
        Self {
            min: self.min.saturating_mul(other.min),
            max: self.max.saturating_mul(other.max),
        }
    }
}

/// Where Kubernetes looks for the size of a value.
#[derive(Debug, Clone, Copy, Default)]
enum Path<'d> {
    /// The value is computed. Kubernetes looks for its parts at the root.
    #[default]
    Computed,
    /// The declaration is not known.
    Unknown,
    At(&'d Decl),
}

impl<'d> Path<'d> {
    fn of(decl: Option<&'d Decl>) -> Self {
        decl.map_or(Self::Unknown, Self::At)
    }
}

/// What is known about a node.
#[derive(Debug, Clone, Copy, Default)]
struct Node<'d> {
    cost: u64,
    size: Option<Size>,
    path: Path<'d>,
    /// Sizes of the keys and values of a computed list or map.
    entry: Option<(Size, Size)>,
}

impl Node<'_> {
    fn size(&self) -> Size {
        self.size.unwrap_or(Size::UNKNOWN)
    }

    fn max(&self) -> u64 {
        self.size().max
    }
}

/// Estimates the maximum cost of an expression with the declared variables.
pub(crate) fn max_cost(root: &Expr, types: &[Type], variables: &[(&str, &Decl)]) -> u64 {
    let mut estimator = Estimator {
        types,
        variables,
        locals: Vec::new(),
    };
    estimator.node(root).cost
}

struct Estimator<'e, 'd> {
    types: &'e [Type],
    variables: &'e [(&'e str, &'d Decl)],
    locals: Vec<(&'e str, Node<'d>)>,
}

/// Traversing a string costs a tenth of its length.
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
fn of_list(factor: f64, size: u64) -> u64 {
    multiplied(size, factor).saturating_add(11)
}

fn add(costs: impl IntoIterator<Item = u64>) -> u64 {
    costs.into_iter().fold(0, u64::saturating_add)
}

impl<'e, 'd> Estimator<'e, 'd> {
    fn type_of(&self, expr: &Expr) -> &'e Type {
        self.types.get(expr.id).unwrap_or(&Type::Dyn)
    }

    fn node(&mut self, expr: &'e Expr) -> Node<'d> {
        let mut node = match &expr.kind {
            Kind::Literal(literal) => Node {
                size: Some(Size::fixed(match literal {
                    Literal::String(text) => text.chars().count() as u64,
                    Literal::Bytes(bytes) => bytes.len() as u64,
                    _ => 1,
                })),
                ..Node::default()
            },
            Kind::Ident(name) => self.ident(name),
            Kind::Select {
                operand,
                field,
                test,
                optional,
            } => self.select(operand, field, *test, *optional),
            Kind::Call {
                function,
                target,
                args,
            } => self.call(function, target.as_deref(), args),
            Kind::List(items) => {
                let nodes: Vec<_> = items.iter().map(|(item, _)| self.node(item)).collect();
                Node {
                    cost: add(nodes.iter().map(|node| node.cost).chain([10])),
                    size: Some(Size::fixed(items.len() as u64)),
                    entry: Some((Size::fixed(1), union(&nodes))),
                    path: Path::Computed,
                }
            }
            Kind::Map(entries) => {
                let keys: Vec<_> = entries.iter().map(|(key, ..)| self.node(key)).collect();
                let values: Vec<_> = entries.iter().map(|(_, v, _)| self.node(v)).collect();
                Node {
                    cost: add(keys.iter().chain(&values).map(|node| node.cost).chain([30])),
                    size: Some(Size::fixed(entries.len() as u64)),
                    entry: Some((union(&keys), union(&values))),
                    path: Path::Computed,
                }
            }
            Kind::Comprehension(inner) => self.comprehension(inner),
            Kind::OptMap {
                target,
                var,
                body,
                flat,
            } => self.opt_map(target, var, body, *flat),
        };
        node = self.sized(node, self.type_of(expr));
        node
    }

    fn root(&self) -> Path<'d> {
        Path::of(self.variables.first().map(|(_, decl)| *decl))
    }

    fn ident(&self, name: &str) -> Node<'d> {
        let local = self.locals.iter().rev().find(|(known, _)| *known == name);
        if let Some((_, local)) = local {
            return Node { cost: 1, ..*local };
        }
        let known = self.variables.iter().find(|(known, _)| *known == name);
        Node {
            cost: 1,
            path: known.map_or(self.root(), |(_, decl)| Path::At(decl)),
            ..Node::default()
        }
    }

    fn select(&mut self, operand: &'e Expr, field: &str, test: bool, optional: bool) -> Node<'d> {
        let inner = self.node(operand);
        if optional {
            return Node {
                cost: inner.cost.saturating_add(1),
                ..Node::default()
            };
        }
        if test {
            return Node {
                cost: inner.cost,
                ..Node::default()
            };
        }
        let selects = matches!(self.type_of(operand), Type::Map(..) | Type::Object(_));
        Node {
            cost: inner.cost.saturating_add(u64::from(selects)),
            path: match inner.path {
                Path::Computed => self.root(),
                Path::Unknown => Path::Unknown,
                Path::At(decl) => Path::of(decl.field(field).map(|field| &*field.decl)),
            },
            ..Node::default()
        }
    }

    /// The items of a list or the values of a map.
    fn values(&self, node: &Node<'d>) -> Node<'d> {
        let path = match node.path {
            Path::Computed => self.root(),
            Path::Unknown => Path::Unknown,
            Path::At(decl) => Path::of(decl.element()),
        };
        Node {
            cost: 0,
            size: match path {
                Path::At(_) => None,
                _ => node.entry.map(|(_, value)| value),
            },
            path,
            entry: None,
        }
    }

    fn call(&mut self, name: &str, target: Option<&'e Expr>, args: &'e [Expr]) -> Node<'d> {
        let exprs: Vec<&'e Expr> = target.into_iter().chain(args).collect();
        let nodes: Vec<Node<'d>> = exprs.iter().map(|expr| self.node(expr)).collect();
        let below = add(nodes.iter().map(|node| node.cost));
        let types: Vec<&Type> = exprs.iter().map(|expr| self.type_of(expr)).collect();
        match (name, &*nodes) {
            ("dyn", [arg]) => {
                return Node {
                    cost: arg.cost.saturating_add(1),
                    ..*arg
                };
            }
            ("_&&_" | "_||_", _) => {
                return Node {
                    cost: below,
                    ..Node::default()
                };
            }
            ("_?_:_", [condition, right, wrong]) => {
                let entry = match (right.entry, wrong.entry) {
                    (Some(a), Some(b)) => Some((a.0.union(b.0), a.1.union(b.1))),
                    (a, b) => a.or(b),
                };
                return Node {
                    cost: condition.cost.saturating_add(right.cost.max(wrong.cost)),
                    size: Some(right.size().union(wrong.size())),
                    path: Path::Computed,
                    entry,
                };
            }
            ("_[_]", [list, _]) => {
                let mut node = self.values(list);
                node.cost = below.saturating_add(1);
                node.size = list.entry.map(|(_, value)| value);
                return node;
            }
            _ => {}
        }
        let (cost, size) = self.function(name, &exprs, &nodes, &types);
        Node {
            cost: below.saturating_add(cost),
            size,
            path: Path::Computed,
            entry: match (name, &*nodes) {
                ("_+_", [a, b]) => match (a.entry, b.entry) {
                    (Some(a), Some(b)) => Some((a.0.union(b.0), a.1.union(b.1))),
                    (a, b) => a.or(b),
                },
                _ => None,
            },
        }
    }

    /// The cost of a function without its arguments, and the size of its result.
    fn function(
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

    fn comprehension(&mut self, inner: &'e Comprehension) -> Node<'d> {
        let range = self.node(&inner.range);
        let range_type = self.type_of(&inner.range);
        let is_map = matches!(range_type, Type::Map(..));
        let value = self.sized(self.values(&range), element_type(range_type));
        let key = match range.path {
            Path::Computed => Node {
                path: self.root(),
                ..Node::default()
            },
            _ => Node {
                // The size of keys is not declared.
                size: Some(Size::fixed(u64::from(!is_map))),
                path: Path::Unknown,
                ..Node::default()
            },
        };
        let key = self.sized(key, &Type::Dyn);
        let depth = self.locals.len();
        match &inner.var2 {
            Some(var2) => {
                self.locals.push((&inner.var, key));
                self.locals.push((var2, value));
            }
            None => {
                let single = if is_map { key } else { value };
                self.locals.push((&inner.var, single));
            }
        }
        let filter = inner
            .filter
            .as_ref()
            .map_or(0, |filter| self.node(filter).cost);
        let body = self.node(&inner.body);
        self.locals.truncate(depth);
        // The costs of the loops that the macros stand for: to begin, of each
        // turn besides the body, and of the result.
        let (begin, turn, end) = match inner.name {
            Macro::All => (0, 3, 1),
            Macro::Exists => (0, 4, 1),
            Macro::ExistsOne => (0, 2, 2),
            Macro::Filter => (10, 13, 1),
            Macro::Map => (10, 12, 1),
            Macro::TransformMap => (30, 3, 1),
            Macro::TransformMapEntry => (30, 2, 1),
            Macro::SortBy => (10, 12, 1),
        };
        let turns = range.max();
        let each = add([turn, filter, body.cost]);
        let collects = !matches!(inner.name, Macro::All | Macro::Exists | Macro::ExistsOne);
        let item = match inner.name {
            Macro::Filter | Macro::SortBy => value.size(),
            _ => body.size(),
        };
        let sort = match inner.name {
            Macro::SortBy => {
                let of_text = matches!(self.type_of(&inner.body), Type::String | Type::Bytes);
                let factor = if of_text { 2.1 } else { 2.0 };
                // The macro expands to a call with the list and its keys.
                of_list(factor, turns.saturating_mul(turns)).saturating_add(12)
            }
            _ => 0,
        };
        Node {
            cost: add([range.cost, begin, turns.saturating_mul(each), end, sort]),
            size: Some(match collects {
                true => range.size(),
                false => Size::fixed(1),
            }),
            path: Path::Computed,
            entry: collects.then_some((Size::fixed(1), item)),
        }
    }

    /// The node with the size that its declaration or type gives it.
    fn sized(&self, mut node: Node<'d>, of: &Type) -> Node<'d> {
        if node.size.is_none() {
            node.size = match node.path {
                Path::At(decl) => Some(Size {
                    min: 0,
                    max: decl.max_elements,
                }),
                _ => is_scalar(of).then_some(Size::fixed(1)),
            };
        }
        node
    }

    /// The maximum size of the items of a list.
    fn longest_item(&self, list: &Node<'d>) -> u64 {
        match self.values(list).path {
            // Computed lists have no path, and so no known items.
            Path::At(_) if matches!(list.path, Path::Computed) => u64::MAX,
            Path::At(decl) => decl.max_elements,
            _ => u64::MAX,
        }
    }

    fn opt_map(&mut self, target: &'e Expr, var: &'e str, body: &'e Expr, flat: bool) -> Node<'d> {
        let inner = self.node(target);
        let inner_type = match self.type_of(target) {
            Type::Optional(of) => of,
            other => other,
        };
        let value = self.sized(
            Node {
                cost: 0,
                size: None,
                ..inner
            },
            inner_type,
        );
        self.locals.push((var, value));
        let body = self.node(body);
        self.locals.pop();
        Node {
            // The calls that the macro expands to: hasValue, value and of.
            cost: add([
                inner.cost.saturating_mul(2),
                body.cost,
                if flat { 12 } else { 13 },
            ]),
            ..Node::default()
        }
    }
}

fn element_type(of: &Type) -> &Type {
    match of {
        Type::List(inner) | Type::Map(_, inner) => inner,
        other => other,
    }
}

fn union(nodes: &[Node<'_>]) -> Size {
    let sizes = nodes.iter().map(Node::size);
    sizes.reduce(Size::union).unwrap_or(Size::fixed(0))
}

fn is_scalar(of: &Type) -> bool {
    match of {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => {
            true
        }
        Type::Optional(inner) => is_scalar(inner),
        _ => false,
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
