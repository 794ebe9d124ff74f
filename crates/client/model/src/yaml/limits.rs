//! Limits that YAML text must meet before it is parsed. An alias (`*a`) stands
//! for a copy of the anchored value (`&a`), so a short text can expand to
//! gigabytes. The run time of YAML parsers grows with the square of the nesting
//! depth of brackets.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::text::nesting;

/// Maximum nesting depth of brackets.
pub const DEPTH: usize = 400;

/// The maximum expansion of a text by its aliases: the number of nodes plus the bytes of scalars.
pub const EXPANSION: usize = 128 << 10;

/// A limit that a YAML text exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// Brackets are nested too deeply.
    #[error("exceeded max depth: brackets may be nested {DEPTH} levels deep")]
    TooDeep,
    /// Aliases expand to too much data.
    #[error(
        "document contains excessive aliasing: aliases may add {EXPANSION} nodes and bytes: write out what is repeated, or split the document"
    )]
    Aliases,
}

/// Checks that a text is safe to parse. Call this before any YAML parser. A
/// text that is not YAML passes; the parser reports its errors.
///
/// # Errors
/// Returns the exceeded limit.
///
/// ```
/// use longshore_model::yaml;
/// assert_eq!(yaml::check(b"a: &a [1, 2]\nb: *a\n"), Ok(()));
/// let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
/// for i in 1..9 {
///     let again = format!("*a{}, ", i - 1).repeat(9);
///     bomb += &format!("a{i}: &a{i} [{again}]\n");
/// }
/// assert_eq!(yaml::check(bomb.as_bytes()), Err(yaml::LimitError::Aliases));
/// ```
pub fn check(text: &[u8]) -> Result<(), LimitError> {
    if nesting(text) > DEPTH {
        return Err(LimitError::TooDeep);
    }
    // Without aliases, a text cannot expand.
    if !(text.contains(&b'*') && text.contains(&b'&')) {
        return Ok(());
    }
    // Each node and each byte of a scalar takes at least one byte of the text.
    let mut left = (2 * text.len()).saturating_add(EXPANSION);
    for document in serde_yaml_ng::Deserializer::from_slice(text) {
        let walked = Count { left: &mut left }.deserialize(document);
        if left == 0 {
            return Err(LimitError::Aliases);
        }
        if walked.is_err() {
            break;
        }
    }
    Ok(())
}

/// Traverses a value and fails when the budget is used up.
struct Count<'a> {
    left: &'a mut usize,
}

impl Count<'_> {
    fn take<E: serde::de::Error>(&mut self, weight: usize) -> Result<(), E> {
        *self.left = self.left.saturating_sub(weight);
        if *self.left == 0 {
            return Err(E::custom("too large"));
        }
        Ok(())
    }

    fn reborrow(&mut self) -> Count<'_> {
        Count {
            left: &mut *self.left,
        }
    }
}

impl<'de> DeserializeSeed<'de> for Count<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(mut self, deserializer: D) -> Result<(), D::Error> {
        self.take(1)?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Count<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("YAML")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while map.next_key_seed(self.reborrow())?.is_some() {
            map.next_value_seed(self.reborrow())?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(self.reborrow())?.is_some() {}
        Ok(())
    }

    fn visit_enum<A: serde::de::EnumAccess<'de>>(mut self, data: A) -> Result<(), A::Error> {
        use serde::de::VariantAccess;
        let ((), variant) = data.variant_seed(self.reborrow())?;
        variant.newtype_variant_seed(self)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_str<E: serde::de::Error>(mut self, text: &str) -> Result<(), E> {
        self.take(text.len())
    }

    fn visit_bytes<E: serde::de::Error>(mut self, bytes: &[u8]) -> Result<(), E> {
        self.take(bytes.len())
    }

    fn visit_bool<E: serde::de::Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: serde::de::Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: serde::de::Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_i128<E: serde::de::Error>(self, _: i128) -> Result<(), E> {
        Ok(())
    }

    fn visit_u128<E: serde::de::Error>(self, _: u128) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// `levels` lists, each with `width` aliases of the previous one.
    fn bomb(width: usize, levels: usize) -> String {
        let mut text = format!("a0: &a0 [{}]\n", "x,".repeat(width));
        for i in 1..levels {
            let aliases = format!("*a{},", i - 1).repeat(width);
            text += &format!("a{i}: &a{i} [{aliases}]\n");
        }
        text
    }

    #[test]
    fn excessive_alias_expansion_is_rejected() {
        for (width, levels) in [(9, 9), (10, 12), (100, 4), (300, 3)] {
            let text = bomb(width, levels);
            assert_eq!(check(text.as_bytes()), Err(LimitError::Aliases), "{width}");
        }
        // A long string that is repeated many times, also as a key and in a
        // later document.
        let long = "x".repeat(10_000);
        let aliases = "*a,".repeat(1000);
        let later = format!("---\n1\n---\na: &a {long}\nb: [{aliases}]\n");
        assert_eq!(check(later.as_bytes()), Err(LimitError::Aliases));
        let keys: String = (0..1000).map(|i| format!("k{i}: {{*a : 1}}\n")).collect();
        let keys = format!("a: &a {long}\n{keys}");
        assert_eq!(check(keys.as_bytes()), Err(LimitError::Aliases));
    }

    #[test]
    fn ordinary_anchors_are_accepted() {
        assert_eq!(check(bomb(10, 3).as_bytes()), Ok(()));
        let pods: String = (0..2000).map(|i| format!("p{i}: *p\n")).collect();
        let text = format!("p: &p {{image: a, command: [b, c], env: []}}\n{pods}");
        assert_eq!(check(text.as_bytes()), Ok(()));
        assert_eq!(check("a: 'x && y *'\n".repeat(100_000).as_bytes()), Ok(()));
    }

    #[test]
    fn deeply_nested_brackets_are_rejected() {
        assert_eq!(check("[".repeat(500).as_bytes()), Err(LimitError::TooDeep));
    }

    proptest! {
        #[test]
        fn short_arbitrary_text_is_accepted(text in r#"[\[\]{}&*!|>:\-a-c "'\n#?,0-9]{0,60}"#) {
            prop_assert_eq!(check(text.as_bytes()), Ok(()));
        }

        /// Every text that passes is parsed to a value of bounded size.
        #[test]
        fn accepted_text_has_a_bounded_size(width in 1..40_usize, levels in 1..7_usize) {
            let text = bomb(width, levels);
            if check(text.as_bytes()).is_ok() {
                let value = serde_yaml_ng::from_str::<serde_json::Value>(&text);
                let size = value.map_or(0, |value| value.to_string().len());
                prop_assert!(size < 4 * (2 * text.len() + EXPANSION));
            }
        }
    }
}
