//! Tests of matching, serialization and validation of rules.

#![allow(clippy::unwrap_used)]
use super::*;

fn applies(rule: &FaultRule, requests: u64) -> Vec<u64> {
    let mut fired = 0;
    (0..requests)
        .filter(|n| {
            let hit = rule.applies(*n, fired);
            fired += u64::from(hit);
            hit
        })
        .collect()
}

#[test]
fn counts_and_shares() {
    assert_eq!(applies(&FaultRule::answer(500).skip(2).times(2), 9), [2, 3]);
    assert_eq!(applies(&FaultRule::answer(500).share(0.0, 1), 99).len(), 0);
    assert_eq!(applies(&FaultRule::answer(500).share(1.0, 1), 99).len(), 99);
    let half = FaultRule::answer(500).share(0.5, 7);
    let once = applies(&half, 1000);
    assert_eq!(once, applies(&half, 1000), "the same every time");
    assert_ne!(once, applies(&half.share(0.5, 8), 1000));
    assert!((450..550).contains(&once.len()), "{}", once.len());
}

#[test]
fn rules_are_json() {
    for (text, rule) in [
        (
            r#"{"effect":"drop","afterHandling":true}"#,
            FaultRule::drop_connection().after_handling(),
        ),
        (
            r#"{"match":{"userAgent":"kubectl"},"effect":{"delay":{"milliseconds":5}},"share":0.5}"#,
            FaultRule::delay(Duration::from_millis(5))
                .user_agent("kubectl")
                .share(0.5, 0),
        ),
        (
            r#"{"effect":{"watch":{"end":"stall","afterEvents":3,"afterMilliseconds":0}}}"#,
            FaultRule::watches(WatchEnd::Stall).after_events(3),
        ),
        (
            r#"{"effect":{"answer":{"code":429,"retryAfterSeconds":2}},"times":1}"#,
            FaultRule::answer(429).retry_after(2).times(1),
        ),
    ] {
        assert_eq!(serde_json::from_str::<FaultRule>(text).unwrap(), rule);
        assert_eq!(serde_json::to_string(&rule).unwrap(), text);
    }
    for wrong in [
        r#"{}"#,
        r#"{"effect":"explode"}"#,
        r#"{"effect":"drop","tims":1}"#,
    ] {
        assert!(serde_json::from_str::<FaultRule>(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn invalid_rules_are_rejected() {
    for (rule, field) in [
        (FaultRule::answer(200), "effect.answer.code"),
        (FaultRule::garble().share(1.5, 0), "share"),
        (FaultRule::garble().share(f64::NAN, 0), "share"),
        (
            FaultRule::delay(Duration::from_secs(3601)),
            "effect.delay.milliseconds",
        ),
        (
            FaultRule::watches(WatchEnd::Close).after_handling(),
            "afterHandling",
        ),
    ] {
        let error = rule.check().unwrap_err();
        assert!(error.to_string().starts_with(field), "{error}");
    }
}
