//! The costs of macros.

use super::{Estimator, Node, Path, Size, add, element_type, functions::of_list};
use crate::{
    ast::{Comprehension, Expr, Macro},
    types::Type,
};

impl<'e, 'd> Estimator<'e, 'd> {
    pub(super) fn comprehension(&mut self, inner: &'e Comprehension) -> Node<'d> {
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
        // The costs of the loops that the macros expand to: the start, each iteration without the
        // body, and the result.
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

    pub(super) fn opt_map(
        &mut self,
        target: &'e Expr,
        var: &'e str,
        body: &'e Expr,
        flat: bool,
    ) -> Node<'d> {
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
