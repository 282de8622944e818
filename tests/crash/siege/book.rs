//! What clients asked, and what they were told.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use relatch::rpc::v1;

use super::CONTAINERS;

/// What clients asked, and what they were told.
#[derive(Default)]
pub struct Book {
    /// The part of the requests that have an id.
    with_ids: f64,
    next: AtomicUsize,
    asked: Mutex<HashMap<String, Entry>>,
}

#[derive(Clone)]
pub struct Entry {
    pub container: usize,
    /// Without an id, the name that it has here is not the node's to know.
    pub has_id: bool,
    /// Decision and run.
    pub answer: Option<(i32, String)>,
}

impl Book {
    pub fn new(with_ids: f64) -> Self {
        Self { with_ids, ..Self::default() }
    }

    /// A name for the request, and the request.
    pub fn new_request(&self) -> (String, v1::RequestRecoveryRequest) {
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        let (id, container) = (format!("q{n}"), n % CONTAINERS);
        let has_id = (n as f64 * self.with_ids).fract() < self.with_ids;
        self.asked.lock().unwrap().insert(id.clone(), Entry { container, has_id, answer: None });
        let request = request(has_id.then_some(id.as_str()), container);
        (id, request)
    }

    /// An answer is the same whenever it is given.
    pub fn told(&self, request: &str, answer: &v1::RequestRecoveryResponse) {
        let run = answer.run.as_ref().expect("an answer has its run").run_id.clone();
        let mut asked = self.asked.lock().unwrap();
        let entry = asked.get_mut(request).expect("it was asked");
        let told = (answer.decision, run);
        if let Some(before) = entry.answer.replace(told.clone()) {
            assert_eq!(before, told, "{request} was answered otherwise before");
        }
    }

    pub fn all(&self) -> Vec<(String, Entry)> {
        self.asked.lock().unwrap().iter().map(|(id, entry)| (id.clone(), entry.clone())).collect()
    }
}

pub fn name(container: usize) -> String {
    format!("c{container:03}")
}

pub fn target(container: usize) -> String {
    format!("local/{}", name(container))
}

pub fn request(id: Option<&str>, container: usize) -> v1::RequestRecoveryRequest {
    v1::RequestRecoveryRequest {
        target: target(container),
        reason: "siege".to_owned(),
        request_id: id.unwrap_or_default().to_owned(),
        grace: Some(prost_types::Duration { seconds: 0, nanos: 0 }),
        ..Default::default()
    }
}
