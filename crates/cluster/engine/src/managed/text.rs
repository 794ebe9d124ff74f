//! `FieldsV1`: the text encoding of field sets. Queries are answered while the text is parsed,
//! without building the set, which is sufficient for most writes.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, Visitor},
    ser::SerializeMap,
};

use super::{
    element::{self, Element},
    set::FieldSet,
};

/// Marks that the path itself is in the set, in addition to fields below it.
const SELF_MARKER: &str = ".";

impl FieldSet {
    /// Decodes a set that [`FieldSet::to_text`] encoded.
    pub(crate) fn from_text(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Encodes the set.
    pub(crate) fn to_text(&self) -> String {
        // Writing to memory cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Normalizes all elements and drops elements of unknown types.
    pub(super) fn normalized(self) -> Self {
        let mut usual = Self {
            owned: self.owned,
            inside: Vec::with_capacity(self.inside.len()),
        };
        for (element, set) in self.inside {
            if let Some(element) = element::normalize(&element) {
                usual.push(element, set.normalized());
            }
        }
        usual.sort();
        usual
    }
}

impl Serialize for FieldSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let itself = self.owned && !self.inside.is_empty();
        let mut map = serializer.serialize_map(Some(usize::from(itself) + self.inside.len()))?;
        if itself {
            map.serialize_entry(SELF_MARKER, &Nothing)?;
        }
        for (element, set) in &self.inside {
            map.serialize_entry(element, set)?;
        }
        map.end()
    }
}

struct Nothing;

impl Serialize for Nothing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_map(Some(0))?.end()
    }
}

impl<'de> Deserialize<'de> for FieldSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = FieldSet;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a set of fields")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<FieldSet, A::Error> {
        let mut set = FieldSet::default();
        while let Some(element) = map.next_key::<Element>()? {
            if &*element == SELF_MARKER {
                map.next_value::<IgnoredAny>()?;
                set.owned = true;
                continue;
            }
            if !element.contains(':') {
                return Err(A::Error::custom("missing colon in a path element"));
            }
            let mut inner: FieldSet = map.next_value()?;
            // An empty value means the path itself.
            inner.owned |= inner.inside.is_empty();
            set.inside.push((element, inner));
        }
        set.sort();
        Ok(set)
    }
}

/// Counts the fields of a set that occur in a text.
pub(super) fn count_common(text: &str, set: &FieldSet) -> usize {
    let mut reader = serde_json::Deserializer::from_str(text);
    // An invalid text has no fields in common.
    CommonCounter(set)
        .deserialize(&mut reader)
        .unwrap_or_default()
}

struct CommonCounter<'a>(&'a FieldSet);

impl<'de> DeserializeSeed<'de> for CommonCounter<'_> {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<usize, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for CommonCounter<'_> {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a set of fields")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<usize, A::Error> {
        let (mut count, mut itself, mut below) = (0, false, false);
        while let Some(found) = map.next_key_seed(Key(self.0))? {
            match found {
                Found::Itself => {
                    map.next_value::<IgnoredAny>()?;
                    itself = true;
                }
                Found::Set(set) => {
                    below = true;
                    count += map.next_value_seed(CommonCounter(set))?;
                }
                Found::Nothing => {
                    below = true;
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(count + usize::from(self.0.owned && (itself || !below)))
    }
}

enum Found<'a> {
    Itself,
    Set(&'a FieldSet),
    Nothing,
}

struct Key<'a>(&'a FieldSet);

impl<'de, 'a> DeserializeSeed<'de> for Key<'a> {
    type Value = Found<'a>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Found<'a>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'a> Visitor<'_> for Key<'a> {
    type Value = Found<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a path element")
    }

    fn visit_str<E>(self, element: &str) -> Result<Found<'a>, E> {
        Ok(match self.0.get(element) {
            _ if element == SELF_MARKER => Found::Itself,
            Some(set) => Found::Set(set),
            None => Found::Nothing,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::{super::set::tests::any_set, *};

    #[test]
    fn rule_18_sets_are_encoded_as_fields_v1() {
        let set = FieldSet::default()
            .with(&["f:spec", "f:containers", r#"k:{"name":"a"}"#])
            .with(&["f:spec", "f:containers", r#"k:{"name":"a"}"#, "f:image"])
            .with(&["f:metadata", "f:finalizers", r#"v:"x""#]);
        let text = r#"{"f:metadata":{"f:finalizers":{"v:\"x\"":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{".":{},"f:image":{}}}}}"#;
        assert_eq!(set.to_text(), text);
        assert_eq!(FieldSet::from_text(text).unwrap(), set);
    }

    #[test]
    fn invalid_sets_are_rejected() {
        for text in ["", "[]", r#"{"f:a":1}"#, r#"{"f:a":{}"#, r#"{"a":{}}"#] {
            assert!(FieldSet::from_text(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sets_from_clients_are_normalized() {
        let text = r#"{"f:b":{},"f:a":{"k:{ \"n\": 1 }":{},"z:1":{}},"f:a":{"f:c":{}}}"#;
        let set = FieldSet::from_text(text).unwrap().normalized();
        assert_eq!(
            set.to_text(),
            r#"{"f:a":{"f:c":{},"k:{\"n\":1}":{}},"f:b":{}}"#
        );
    }

    proptest! {
        #[test]
        fn encoding_and_decoding_round_trips(set in any_set()) {
            prop_assert_eq!(FieldSet::from_text(&set.to_text()).unwrap(), set);
        }

        #[test]
        fn queries_on_text_and_set_agree(a in any_set(), b in any_set()) {
            prop_assert_eq!(count_common(&a.to_text(), &b), a.intersection(&b).len());
        }

        #[test]
        fn arbitrary_text_does_not_panic(text in "\\PC{0,60}") {
            let _ = FieldSet::from_text(&text).map(FieldSet::normalized);
        }
    }
}
