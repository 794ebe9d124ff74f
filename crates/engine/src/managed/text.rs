//! `FieldsV1`: the text of a set of fields. Questions about a text are
//! answered as it is read, without making the set: most writes need no more.

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

/// Says of a place that it is in the set, where something below it is too.
const ITSELF: &str = ".";

impl FieldSet {
    /// Reads a set that [`FieldSet::to_text`] wrote.
    pub(crate) fn from_text(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The text of the set.
    pub(crate) fn to_text(&self) -> String {
        // Writing strings to memory cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The set with all elements in their usual form; those of unknown sorts
    /// are left out.
    pub(super) fn in_usual_form(self) -> Self {
        let mut usual = Self {
            owned: self.owned,
            inside: Vec::with_capacity(self.inside.len()),
        };
        for (element, set) in self.inside {
            if let Some(element) = element::usual(&element) {
                usual.push(element, set.in_usual_form());
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
            map.serialize_entry(ITSELF, &Nothing)?;
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
            if &*element == ITSELF {
                map.next_value::<IgnoredAny>()?;
                set.owned = true;
                continue;
            }
            if !element.contains(':') {
                return Err(A::Error::custom("missing colon in a path element"));
            }
            let mut inner: FieldSet = map.next_value()?;
            // Nothing below says that the place itself is meant.
            inner.owned |= inner.inside.is_empty();
            set.inside.push((element, inner));
        }
        set.sort();
        Ok(set)
    }
}

/// How many fields of a set are in a text.
pub(super) fn common(text: &str, set: &FieldSet) -> usize {
    let mut reader = serde_json::Deserializer::from_str(text);
    // What cannot be read has nothing in common.
    Common(set).deserialize(&mut reader).unwrap_or_default()
}

struct Common<'a>(&'a FieldSet);

impl<'de> DeserializeSeed<'de> for Common<'_> {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<usize, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Common<'_> {
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
                    count += map.next_value_seed(Common(set))?;
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
            _ if element == ITSELF => Found::Itself,
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
    fn rule_18_the_text_is_fields_v1() {
        let set = FieldSet::default()
            .with(&["f:spec", "f:containers", r#"k:{"name":"a"}"#])
            .with(&["f:spec", "f:containers", r#"k:{"name":"a"}"#, "f:image"])
            .with(&["f:metadata", "f:finalizers", r#"v:"x""#]);
        let text = r#"{"f:metadata":{"f:finalizers":{"v:\"x\"":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{".":{},"f:image":{}}}}}"#;
        assert_eq!(set.to_text(), text);
        assert_eq!(FieldSet::from_text(text).unwrap(), set);
    }

    #[test]
    fn what_is_no_set_is_refused() {
        for text in ["", "[]", r#"{"f:a":1}"#, r#"{"f:a":{}"#, r#"{"a":{}}"#] {
            assert!(FieldSet::from_text(text).is_err(), "{text}");
        }
    }

    #[test]
    fn others_texts_get_the_usual_form() {
        let text = r#"{"f:b":{},"f:a":{"k:{ \"n\": 1 }":{},"z:1":{}},"f:a":{"f:c":{}}}"#;
        let set = FieldSet::from_text(text).unwrap().in_usual_form();
        assert_eq!(
            set.to_text(),
            r#"{"f:a":{"f:c":{},"k:{\"n\":1}":{}},"f:b":{}}"#
        );
    }

    proptest! {
        #[test]
        fn what_was_written_reads_back(set in any_set()) {
            prop_assert_eq!(FieldSet::from_text(&set.to_text()).unwrap(), set);
        }

        #[test]
        fn questions_to_the_text_are_answered_as_by_the_set(a in any_set(), b in any_set()) {
            prop_assert_eq!(common(&a.to_text(), &b), a.intersection(&b).len());
        }

        #[test]
        fn no_text_is_too_strange(text in "\\PC{0,60}") {
            let _ = FieldSet::from_text(&text).map(FieldSet::in_usual_form);
        }
    }
}
