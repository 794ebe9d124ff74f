//! The order in which pods become tasks.

use std::cmp::Ordering;

use longshore_model::facts::PodFacts;

/// The order in which the pods of a selector become tasks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// By completion index if a role has a single selector and all its pods have an
    /// index. Otherwise by name, with numbers in numeric order: `worker-2` before
    /// `worker-10`.
    #[default]
    Natural,
    /// By name, byte by byte, as in TensorFlow's `KubernetesClusterResolver`.
    Lexical,
    /// By completion index. Every pod must have one.
    CompletionIndex,
}

impl Order {
    pub(crate) fn compare(self, a: &PodFacts, b: &PodFacts) -> Ordering {
        let index = |pod: &PodFacts| pod.completion_index();
        let (x, y) = (&a.metadata, &b.metadata);
        let names = match self {
            Self::Lexical => x.name.cmp(&y.name),
            Self::Natural | Self::CompletionIndex => natural_order(&x.name, &y.name),
        };
        let indices = match self {
            Self::CompletionIndex => index(a).cmp(&index(b)),
            Self::Natural | Self::Lexical => Ordering::Equal,
        };
        // With several namespaces, pods can have the same name.
        indices
            .then(names)
            .then_with(|| (&x.namespace, &x.uid).cmp(&(&y.namespace, &y.uid)))
    }
}

/// Compares texts with the numbers in them in numeric order: `a2` before `a10`.
///
/// ```
/// use longshore_resolver::natural_order;
/// let mut names = ["worker-10", "worker-9", "worker-100"];
/// names.sort_by(|a, b| natural_order(a, b));
/// assert_eq!(names, ["worker-9", "worker-10", "worker-100"]);
/// ```
#[must_use]
pub fn natural_order(left: &str, right: &str) -> Ordering {
    let (mut a, mut b) = (left.as_bytes(), right.as_bytes());
    loop {
        match (a.first(), b.first()) {
            (None, None) => return left.cmp(right),
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(x), Some(y)) if x.is_ascii_digit() && y.is_ascii_digit() => {
                let (x, rest_a) = number(a);
                let (y, rest_b) = number(b);
                let order = x.len().cmp(&y.len()).then_with(|| x.cmp(y));
                if order != Ordering::Equal {
                    return order;
                }
                (a, b) = (rest_a, rest_b);
            }
            (Some(x), Some(y)) if x != y => return x.cmp(y),
            _ => (a, b) = (&a[1..], &b[1..]),
        }
    }
}

/// Splits off the leading digits. Returns them without leading zeros, and the rest
/// of the text.
fn number(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text
        .iter()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let zeros = digits
        .iter()
        .position(|byte| *byte != b'0')
        .unwrap_or(digits.len());
    (&digits[zeros..], rest)
}
