//! Sizes of values, and the locations of their declarations.

use crate::decl::Decl;

/// A minimum and a maximum size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) min: u64,
    pub(super) max: u64,
}

impl Size {
    pub(super) const UNKNOWN: Self = Self {
        min: 0,
        max: u64::MAX,
    };

    pub(super) fn fixed(size: u64) -> Self {
        Self {
            min: size,
            max: size,
        }
    }

    pub(super) fn union(self, other: Self) -> Self {
        Self {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            min: self.min.saturating_add(other.min),
            max: self.max.saturating_add(other.max),
        }
    }

    pub(super) fn times(self, other: Self) -> Self {
        Self {
            min: self.min.saturating_mul(other.min),
            max: self.max.saturating_mul(other.max),
        }
    }
}

/// The location where Kubernetes looks up the size of a value.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum Path<'d> {
    /// The value is computed. Kubernetes looks for its parts at the root.
    #[default]
    Computed,
    /// The declaration is not known.
    Unknown,
    At(&'d Decl),
}

impl<'d> Path<'d> {
    pub(super) fn of(decl: Option<&'d Decl>) -> Self {
        decl.map_or(Self::Unknown, Self::At)
    }
}

/// The estimate of a node.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Node<'d> {
    pub(super) cost: u64,
    pub(super) size: Option<Size>,
    pub(super) path: Path<'d>,
    /// Sizes of the keys and values of a computed list or map.
    pub(super) entry: Option<(Size, Size)>,
}

impl Node<'_> {
    pub(super) fn size(&self) -> Size {
        self.size.unwrap_or(Size::UNKNOWN)
    }

    pub(super) fn max(&self) -> u64 {
        self.size().max
    }
}
