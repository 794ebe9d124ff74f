//! Tests of decoding with examples and with random input.
#![allow(clippy::unwrap_used)]
use bytes::Bytes;
use proptest::prelude::*;

use super::{
    index::{object, part},
    managed_fields::without_managed_fields,
    *,
};

#[test]
fn indexes_a_list() {
    let body = Bytes::from_static(
        br#"{"kind":"PodList","metadata":{"resourceVersion":"12","continue":"abc"},"items":[
          {"metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"3"},"spec":{},"status":{"phase":"Running"}},
          {"metadata":{"name":"b\u0026c"}} ]}"#,
    );
    let list = list(&body, "pods").unwrap();
    assert_eq!((list.version.as_str(), list.cursor.as_str()), ("12", "abc"));
    let item = &list.items[0];
    assert_eq!(
        (item.name(), item.namespace(), item.version()),
        ("a", Some("n"), "3")
    );
    let status = item.part(&["status"]).unwrap();
    assert_eq!(status, Some(&br#"{"phase":"Running"}"#[..]));
    let item = &list.items[1];
    assert_eq!((item.name(), item.namespace()), ("b&c", None));
    assert_eq!(item.part(&["status"]).unwrap(), None);
}

#[test]
fn rejects_bodies_that_are_not_lists() {
    for body in [
        "",
        "[]",
        "{}",
        r#"{"items":{}}"#,
        r#"{"items":[]}x"#,
        r#"{"items":[{"metadata":{"name":"a"}}"#,
        r#"{"items":[{"metadata":{"name":"a}}]}"#,
        r#"{"items":[{}{}]}"#,
        r#"{"items":[{}],"metadata":{"continue":1}}"#,
    ] {
        assert!(list(&Bytes::from(body), "pods").is_err(), "{body}");
    }
    assert!(
        list(&Bytes::from_static(br#"{"items":null}"#), "pods")
            .unwrap()
            .items
            .is_empty()
    );
}

#[test]
fn a_list_with_too_many_items_is_refused() {
    let of = |items: usize| Bytes::from(format!("{{\"items\":[{}{{}}]}}", "{},".repeat(items - 1)));
    assert_eq!(list(&of(1_000_000), "pods").unwrap().items.len(), 1_000_000);
    let error = list(&of(1_000_001), "pods").map(|list| list.items.len());
    let text = error.unwrap_err().to_string();
    assert!(text.contains("more than 1,000,000 items"), "{text}");
}

#[test]
fn an_invalid_item_does_not_affect_the_others() {
    for bad in [
        &b"1"[..],
        b"null",
        br#""a""#,
        br#"{"metadata":{"name":1}}"#,
        br#"{"metadata":[]}"#,
        br#"{"metadata":{"name":"a" "b"}}"#,
        br#"{"metadata":{"name":"\ud800"}}"#,
        b"{\"metadata\":{\"name\":\"\xff\"}}",
        b"{\"metadata\":{\"name\":\"\n\"}}",
        br#"{"metadata":{"name":"a","name":"b"}}"#,
        br#"{"spec":{},"spec":{}}"#,
        br#"{"kind":7}"#,
    ] {
        let good = br#"{"metadata":{"name":"a"}}"#;
        let body = [b"{\"items\":[", &good[..], b", ", bad, b" ,", good, b"]}"].concat();
        let list = list(&Bytes::from(body), "the response to GET /pods").unwrap();
        let shown = String::from_utf8_lossy(bad).into_owned();
        assert_eq!(list.items.len(), 3, "{shown}");
        assert_eq!(list.items[1].bytes().as_ref(), bad);
        assert_eq!((list.items[0].name(), list.items[2].name()), ("a", "a"));
        assert!(list.items[2].check_readable().is_ok());
        let error = list.items[1].check_readable().unwrap_err().to_string();
        assert!(
            error.starts_with("items[1] of the response to GET /pods cannot be read: "),
            "{error}"
        );
        assert!(list.items[1].check(String::new).is_err());
    }
}

#[test]
fn reads_watch_lines() {
    let line = |text: &'static str| Bytes::from_static(text.as_bytes());
    let added = line(r#"{"type":"ADDED","object":{"a":1}}"#);
    let (kind, object) = watch_line(&added, "event").unwrap();
    assert_eq!((kind, object.as_ref()), ("ADDED", &br#"{"a":1}"#[..]));
    for bad in [
        r#"{"type":"ADDED"}"#,
        r#"{"object":{}}"#,
        r#"{"type":"ADDED","object":{}"#,
        r#"{"type":1,"object":{}}"#,
    ] {
        assert!(watch_line(&line(bad), "event").is_err(), "{bad}");
    }
}

#[test]
fn managed_fields_are_removed() {
    for (text, expected) in [
        (
            r#"{"metadata":{"name":"a","managedFields":[{"x":1}]}}"#,
            r#"{"metadata":{"name":"a"}}"#,
        ),
        (
            r#"{"metadata":{"managedFields":[], "name":"a"}}"#,
            r#"{"metadata":{ "name":"a"}}"#,
        ),
        (r#"{"metadata":{"managedFields":[]}}"#, r#"{"metadata":{}}"#),
        (
            r#"{"metadata":{"a":1 , "managedFields" : [] , "b":2}}"#,
            r#"{"metadata":{"a":1 ,  "b":2}}"#,
        ),
        (
            r#"{"spec":{"managedFields":1}}"#,
            r#"{"spec":{"managedFields":1}}"#,
        ),
    ] {
        let (text, index) = object(&Bytes::from(text), "x").unwrap();
        assert_eq!(without_managed_fields(&text, &index), expected);
    }
}

proptest! {
    #[test]
    fn arbitrary_bodies_never_panic(body in prop::collection::vec(any::<u8>(), 0..200)) {
        let body = Bytes::from(body);
        let _ = object(&body, "x");
        let _ = part(&body, "x");
        let _ = list(&body, "x");
        let _ = watch_line(&body, "x");
    }

    #[test]
    fn almost_valid_lists_never_panic(at in 0_usize..150, byte in any::<u8>(), cut in 0_usize..150) {
        let mut body = br#"{"metadata":{"resourceVersion":"1","continue":"\n"},"items":[{"metadata":{"name":"a\u0041","namespace":"n"},"status":{"phase":"Running"}}],"x":[1.5e3,true]}"#.to_vec();
        let len = body.len();
        body[at % len] = byte;
        body.truncate(len - cut % len);
        if let Ok(list) = list(&Bytes::from(body), "x") {
            for item in &list.items {
                let _ = (item.name(), item.part(&["status", "phase"]), item.check(String::new));
            }
        }
    }
}
