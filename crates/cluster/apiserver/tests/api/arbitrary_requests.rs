//! Arbitrary requests never cause a panic or a hang: each gets a valid response or a
//! `Status` with its code.

use std::time::Duration;

use crate::common::Server;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use proptest::prelude::*;
use serde_json::Value;

fn method() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "SHOE",
    ])
}

fn path() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "api",
        "apis",
        "v1",
        "v2",
        "apps",
        "batch",
        "namespaces",
        "default",
        "pods",
        "configmaps",
        "deployments",
        "nodes",
        "watch",
        "status",
        "log",
        "binding",
        "bindings",
        "scale",
        "finalize",
        "openapi",
        "v3",
        "healthz",
        "readyz",
        "ping",
        "version",
        "a",
        "b",
        "%2e%2e",
        "%zz",
        "%00",
        "..",
        "",
        "longshore.dev",
        "faults",
        "selfsubjectreviews",
        "authentication.k8s.io",
        "apiextensions.k8s.io",
        "customresourcedefinitions",
    ]);
    let likely = prop::sample::select(vec![
        "/api/v1/namespaces/default/configmaps",
        "/api/v1/namespaces/default/configmaps/a",
        "/api/v1/namespaces/default/pods/a",
        "/api/v1/namespaces/default/pods/a/status",
        "/apis/apps/v1/namespaces/default/deployments",
        "/apis/batch/v1/jobs",
        "/api/v1/namespaces",
        "/api/v1/nodes",
    ]);
    prop_oneof![
        3 => likely.prop_map(str::to_owned),
        2 => prop::collection::vec(known, 0..8).prop_map(|parts| format!("/{}", parts.join("/"))),
    ]
}

fn query() -> impl Strategy<Value = String> {
    let key = prop::sample::select(vec![
        "limit",
        "continue",
        "labelSelector",
        "fieldSelector",
        "resourceVersion",
        "resourceVersionMatch",
        "timeoutSeconds",
        "timeout",
        "dryRun",
        "fieldManager",
        "force",
        "fieldValidation",
        "pretty",
        "includeObject",
        "gracePeriodSeconds",
        "propagationPolicy",
        "orphanDependents",
        "sendInitialEvents",
        "verbose",
        "exclude",
        "tailLines",
        "sinceTime",
    ]);
    let value = prop_oneof![
        "[a-zA-Z0-9=!,()<>.%+-]{0,12}",
        prop::sample::select(vec![
            "0",
            "1",
            "-1",
            "true",
            "All",
            "Strict",
            "Exact",
            "NotOlderThan",
            "a=b",
            "a in (b)",
            "metadata.name=a",
            "%ff",
            "%",
            "Orphan",
            "99999999999999999999",
        ])
        .prop_map(|text| text.replace(' ', "+")),
    ];
    prop::collection::vec((key, value), 0..4).prop_map(|pairs| {
        let pairs = pairs.iter().map(|(key, value)| format!("{key}={value}"));
        pairs.collect::<Vec<_>>().join("&")
    })
}

fn header() -> impl Strategy<Value = (&'static str, String)> {
    let media = prop::sample::select(vec![
        "application/json",
        "application/yaml",
        "application/vnd.kubernetes.protobuf",
        "application/json;as=Table;g=meta.k8s.io;v=v1",
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        "application/merge-patch+json",
        "application/json-patch+json",
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
        "text/html",
    ])
    .prop_map(str::to_owned);
    let media = prop_oneof![4 => media, 1 => "[ -~]{0,20}"];
    let name = prop::sample::select(vec!["accept", "content-type", "accept-encoding"]);
    (name, media)
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop::sample::select(vec![
            "a",
            "b",
            "v1",
            "ConfigMap",
            "Pod",
            "default",
            "$patch",
            "1Gi"
        ])
        .prop_map(Value::from),
    ];
    let key = prop::sample::select(vec![
        "metadata",
        "name",
        "namespace",
        "spec",
        "data",
        "kind",
        "apiVersion",
        "labels",
        "status",
        "containers",
        "finalizers",
        "generateName",
        "op",
        "path",
        "value",
        "resourceVersion",
        "template",
        "selector",
        "matchLabels",
        "ownerReferences",
        "image",
    ]);
    let json = leaf.prop_recursive(5, 24, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key.clone(), inner, 0..6).prop_map(|map| {
                Value::Object(map.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
            }),
        ]
    });
    prop_oneof![
        4 => json.prop_map(|value| value.to_string().into_bytes()),
        1 => prop::collection::vec(any::<u8>(), 0..64),
        1 => prop::collection::vec(any::<u8>(), 0..64)
            .prop_map(|bytes| [b"k8s\0".to_vec(), bytes].concat()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_request_gets_a_valid_response(
        method in method(),
        path in path(),
        query in query(),
        headers in prop::collection::vec(header(), 0..3),
        body in body(),
    ) {
        let mut request = Request::builder().method(method).uri(format!("{path}?{query}"));
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let Ok(request) = request.body(Full::new(Bytes::from(body))) else {
            return Ok(());
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let server = Server::with_faults();
            server.config_map("a").await;
            let answered = tokio::time::timeout(Duration::from_secs(20), server.send(request));
            let (parts, mut body) = answered.await.expect("no hang").into_parts();
            let code = parts.status.as_u16();
            // Watches do not end: read each one for a moment.
            let mut bytes = Vec::new();
            while let Ok(Some(frame)) =
                tokio::time::timeout(Duration::from_millis(50), body.frame()).await
            {
                bytes.extend(frame.unwrap().into_data().unwrap_or_default());
            }
            // Requests for unknown OpenAPI documents get no `Status`.
            if code >= 400 && method != "HEAD" && !(code == 404 && bytes.is_empty()) {
                let status: Value = serde_json::from_slice(&bytes).unwrap();
                // Some errors have code 500, but not this reason.
                assert_ne!(status["reason"], "InternalError", "{status}");
                assert_eq!(status["kind"], "Status");
                assert_eq!(status["code"], code);
            }
        });
    }
}
