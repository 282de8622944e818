//! The engine's event stream: the last 256 events, and those to come.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
};

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::{broadcast, watch};

/// dockerd keeps this many.
const KEPT: usize = 256;

/// One container event.
#[derive(Debug, Clone)]
pub(crate) struct ContainerEvent {
    pub(crate) time: Timestamp,
    pub(crate) action: String,
    pub(crate) id: String,
    /// Labels, image and name, as the daemon sends them.
    pub(crate) attributes: BTreeMap<String, String>,
}

impl ContainerEvent {
    pub(crate) fn json(&self) -> Value {
        json!({
            "status": self.action,
            "id": self.id,
            "from": self.attributes.get("image"),
            "Type": "container",
            "Action": self.action,
            "Actor": { "ID": self.id, "Attributes": self.attributes },
            "scope": "local",
            "time": self.time.as_second(),
            "timeNano": i64::try_from(self.time.as_nanosecond()).unwrap_or(i64::MAX),
        })
    }

    fn passes(&self, filters: &Filters) -> bool {
        let name = self.attributes.get("name").map(String::as_str).unwrap_or_default();
        let container = |wanted: &str| self.id.starts_with(wanted) || name == wanted;
        let label = |wanted: &str| has_label(&self.attributes, wanted);
        // `health_status` also selects `health_status: unhealthy`.
        let action = |wanted: &str| {
            self.action == wanted || self.action.split(':').next().is_some_and(|kind| kind == wanted)
        };
        filters.pass("type", |wanted| wanted == "container")
            && filters.pass("container", container)
            && filters.pass("event", action)
            && filters.pass("label", label)
    }
}

/// Whether a set of labels satisfies `key` or `key=value`.
pub(crate) fn has_label(labels: &BTreeMap<String, String>, wanted: &str) -> bool {
    match wanted.split_once('=') {
        Some((key, value)) => labels.get(key).is_some_and(|found| found == value),
        None => labels.contains_key(wanted),
    }
}

/// The `filters` parameter: values by key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Filters(BTreeMap<String, Vec<String>>);

impl Filters {
    /// Reads both forms that clients send: `{"label":["a=b"]}` and `{"label":{"a=b":true}}`.
    pub(crate) fn parse(text: Option<&str>) -> Option<Self> {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return Some(Self::default()) };
        let Value::Object(keys) = serde_json::from_str(text).ok()? else { return None };
        let mut filters = BTreeMap::new();
        for (key, values) in keys {
            let values = match values {
                Value::Array(values) => {
                    values.iter().map(|value| value.as_str().map(str::to_owned)).collect::<Option<_>>()?
                }
                Value::Object(values) => {
                    values.into_iter().filter(|(_, on)| on == true).map(|(key, _)| key).collect()
                }
                _ => return None,
            };
            filters.insert(key, values);
        }
        Some(Self(filters))
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// Whether any value of `key` is satisfied, or there is none.
    pub(crate) fn pass(&self, key: &str, satisfied: impl Fn(&str) -> bool) -> bool {
        self.0.get(key).is_none_or(|values| values.iter().any(|value| satisfied(value)))
    }

    /// Whether all values of `key` are satisfied: how labels are read in lists.
    pub(crate) fn pass_all(&self, key: &str, satisfied: impl Fn(&str) -> bool) -> bool {
        self.0.get(key).is_none_or(|values| values.iter().all(|value| satisfied(value)))
    }
}

/// All events of the engine.
#[derive(Debug)]
pub(crate) struct Bus {
    kept: Mutex<VecDeque<Arc<ContainerEvent>>>,
    live: broadcast::Sender<Arc<ContainerEvent>>,
    cuts: watch::Sender<u64>,
}

impl Default for Bus {
    fn default() -> Self {
        Self { kept: Mutex::default(), live: broadcast::Sender::new(1024), cuts: watch::Sender::new(0) }
    }
}

impl Bus {
    pub(crate) fn emit(&self, event: ContainerEvent) {
        let event = Arc::new(event);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back(event.clone());
        // Nobody listening is no fault. Sent under the lock, so that a new subscriber misses nothing.
        let _ = self.live.send(event);
    }

    /// Ends every stream that is open now.
    pub(crate) fn cut_streams(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Kept events from `since` on (none without it), then live ones until `until`.
    pub(crate) fn subscribe(
        &self,
        filters: Filters,
        since: Option<Timestamp>,
        until: Option<Timestamp>,
    ) -> Subscription {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let old = |event: &&Arc<ContainerEvent>| since.is_some_and(|since| event.time >= since);
        Subscription {
            filters,
            until,
            old: kept.iter().filter(old).cloned().collect(),
            live: self.live.subscribe(),
            cuts: self.cuts.subscribe(),
        }
    }
}

/// One client's view of the events.
#[derive(Debug)]
pub(crate) struct Subscription {
    filters: Filters,
    until: Option<Timestamp>,
    old: VecDeque<Arc<ContainerEvent>>,
    live: broadcast::Receiver<Arc<ContainerEvent>>,
    cuts: watch::Receiver<u64>,
}

impl Subscription {
    /// The next event; `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            let event = match self.old.pop_front() {
                Some(event) => event,
                None => self.next_live().await?,
            };
            if self.until.is_some_and(|until| event.time > until) {
                return None;
            }
            if event.passes(&self.filters) {
                return Some(event.json());
            }
        }
    }

    async fn next_live(&mut self) -> Option<Arc<ContainerEvent>> {
        let left = self.until.map(|until| {
            let left = until.as_nanosecond() - Timestamp::now().as_nanosecond();
            std::time::Duration::from_nanos(u64::try_from(left).unwrap_or(0))
        });
        let over = async {
            match left {
                Some(left) => tokio::time::sleep(left).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            // A slow client loses its stream, as it does with dockerd.
            event = self.live.recv() => event.ok(),
            _ = self.cuts.changed() => None,
            () = over => None,
        }
    }
}

/// Reads `since` and `until`: seconds with an optional fraction, or RFC 3339.
pub(crate) fn parse_time(text: &str) -> Option<Timestamp> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) || fraction.len() > 9 {
        return text.parse().ok();
    }
    let nanos: i128 = format!("{fraction:0<9}").parse().ok()?;
    Timestamp::from_nanosecond(whole.parse::<i128>().ok()?.checked_mul(1_000_000_000)? + nanos).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_filters_are_read() {
        let list = Filters::parse(Some(r#"{"label":["a=b"],"event":["die"]}"#)).expect("the new form");
        let map =
            Filters::parse(Some(r#"{"label":{"a=b":true},"event":{"die":true}}"#)).expect("the old form");
        assert_eq!(list, map);
        assert!(Filters::parse(Some("[]")).is_none());
    }

    #[test]
    fn times_are_seconds_or_rfc3339() {
        let seconds = parse_time("1700000000.5").expect("seconds");
        assert_eq!(Some(seconds), parse_time("2023-11-14T22:13:20.5Z"));
        assert!(parse_time("yesterday").is_none());
    }
}
