//! Estimates the maximum cost of an expression from the size limits of the schema. The estimate
//! decides which rules a definition may have, so its numbers equal Kubernetes'.

mod functions;
mod loops;
mod size;

use size::{Node, Path, Size};

use crate::{
    ast::{Expr, Kind, Literal},
    decl::Decl,
    types::Type,
};

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
            // Rules of definitions cannot construct objects.
            Kind::Struct { .. } => Node::default(),
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
