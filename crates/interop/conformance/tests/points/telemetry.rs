//! Point 50: metrics and tracing spans of requests.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use longshore::client::kinds::ConfigMap;
use metrics::{
    Counter, CounterFn, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};
use tracing::{
    Subscriber,
    field::{Field, Visit},
    span,
};

use crate::common::Fixture;

/// Counters by name and labels.
#[derive(Clone, Default)]
struct Counts(Arc<Mutex<BTreeMap<String, u64>>>);

struct CounterByName {
    counts: Counts,
    name: String,
}

impl CounterFn for CounterByName {
    fn increment(&self, value: u64) {
        *self
            .counts
            .0
            .lock()
            .unwrap()
            .entry(self.name.clone())
            .or_default() += value;
    }

    fn absolute(&self, _: u64) {}
}

impl HistogramFn for CounterByName {
    fn record(&self, seconds: f64) {
        assert!((0.0..60.0).contains(&seconds), "{seconds}");
        self.increment(1);
    }
}

impl Counts {
    fn counter(&self, key: &Key) -> Arc<CounterByName> {
        let labels: Vec<&str> = key.labels().map(metrics::Label::value).collect();
        let name = format!("{} {}", key.name(), labels.join(" "));
        Arc::new(CounterByName {
            counts: self.clone(),
            name,
        })
    }
}

impl Recorder for Counts {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.counter(key))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.counter(key))
    }
}

#[tokio::test]
async fn point_50_requests_are_counted() {
    let fixture = Fixture::start().await;
    let counts = Counts::default();
    let maps = fixture.view::<ConfigMap>();
    let guard = metrics::set_default_local_recorder(&counts);
    maps.list().await.unwrap();
    maps.find("none").await.unwrap();
    drop(guard);
    let counts = counts.0.lock().unwrap().clone();
    let expected = [
        ("longshore_request_seconds GET".to_owned(), 2),
        ("longshore_requests GET 200".to_owned(), 1),
        ("longshore_requests GET 404".to_owned(), 1),
    ];
    assert_eq!(counts, expected.into());
}

/// The fields of the spans named `request`.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Vec<String>>>);

impl Visit for &Spans {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.lock().unwrap().push(format!("{field}={value:?}"));
    }
}

impl Subscriber for Spans {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.name() == "request"
    }

    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        span.record(&mut &*self);
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, values: &span::Record<'_>) {
        values.record(&mut &*self);
    }

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, _: &tracing::Event<'_>) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

#[tokio::test]
async fn point_50_requests_are_spans_without_secrets() {
    let fixture = Fixture::start().await;
    let maps = fixture.view::<ConfigMap>().filter("key=hidden").unwrap();
    // `tracing` decides for the whole process whether a span is enabled when the span is
    // first used. Another test without a subscriber may be the first; the decision is made
    // again when a subscriber is set.
    maps.list().await.unwrap();
    let spans = Spans::default();
    let guard = tracing::subscriber::set_default(spans.clone());
    maps.list().await.unwrap();
    drop(guard);
    let path = fixture.test.path("v1", "configmaps");
    let recorded = spans.0.lock().unwrap().clone();
    assert_eq!(
        recorded,
        [
            "method=GET".to_owned(),
            format!("path={path:?}"),
            "code=200".to_owned()
        ]
    );
}
