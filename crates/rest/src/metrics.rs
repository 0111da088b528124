//! Metrics in the text format of Prometheus. They count operations, never the content of requests.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use ingest::Receipt;

use crate::console::PAGES;
use crate::endpoints::ENDPOINTS;
use crate::owner::OWNER_ENDPOINTS;
use crate::table::Endpoint;

/// Upper bounds of the histogram buckets, in microseconds.
const BUCKETS: [u64; 12] = [
    500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000, 5_000_000,
    30_000_000,
];
/// The operation of requests that match no route.
pub(crate) const NO_ROUTE: &str = "no_route";
/// The operation of all owner routes together.
const OWNER: &str = "owner";
pub(crate) const TOOLS: &str = "mcp";

pub(crate) struct Metrics {
    /// One per route and page, then one each for unmatched requests, owner routes and tools.
    operations: Vec<Operation>,
    in_flight: AtomicU64,
    accepted: AtomicU64,
    rejected: AtomicU64,
}

#[derive(Default)]
struct Operation {
    by_class: [AtomicU64; 6],
    /// By duration; the last bucket is unbounded.
    by_time: [AtomicU64; BUCKETS.len() + 1],
    total_micros: AtomicU64,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            operations: (0..ENDPOINTS.len() + PAGES.len() + 3)
                .map(|_| Operation::default())
                .collect(),
            in_flight: AtomicU64::new(0),
            accepted: AtomicU64::new(0),
            rejected: AtomicU64::new(0),
        }
    }
}

/// Counts a request as in flight until dropped.
pub(crate) struct InFlight<'a>(&'a Metrics);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Relaxed);
    }
}

impl Metrics {
    pub(crate) fn begin(&self) -> InFlight<'_> {
        self.in_flight.fetch_add(1, Relaxed);
        InFlight(self)
    }

    pub(crate) fn record(&self, operation: &str, status: u16, took: Duration) {
        let place = |all: &[Endpoint]| all.iter().position(|one| one.operation == operation);
        let named = ENDPOINTS.len() + PAGES.len();
        let page = || place(PAGES).map(|at| ENDPOINTS.len() + at);
        let at = match place(ENDPOINTS).or_else(page) {
            Some(at) => at,
            None if place(OWNER_ENDPOINTS).is_some() => named + 1,
            None if operation == TOOLS => named + 2,
            None => named,
        };
        let Some(figures) = self.operations.get(at) else {
            return;
        };
        if let Some(count) = figures.by_class.get(usize::from(status / 100)) {
            count.fetch_add(1, Relaxed);
        }
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = BUCKETS.iter().position(|end| micros <= *end);
        if let Some(count) = figures.by_time.get(bucket.unwrap_or(BUCKETS.len())) {
            count.fetch_add(1, Relaxed);
        }
        figures.total_micros.fetch_add(micros, Relaxed);
    }

    pub(crate) fn ingested(&self, receipt: &Receipt) {
        self.accepted.fetch_add(receipt.records_accepted, Relaxed);
        self.rejected.fetch_add(receipt.records_rejected, Relaxed);
    }

    pub(crate) fn text(&self, log_trouble: bool) -> String {
        let mut text = String::new();
        let in_flight = self.in_flight.load(Relaxed);
        gauge(
            &mut text,
            "pdpp_requests_in_flight",
            "Requests being answered.",
            in_flight,
        );
        let trouble = u64::from(log_trouble);
        gauge(
            &mut text,
            "pdpp_disclosure_log_trouble",
            "1 while disclosures cannot be written.",
            trouble,
        );
        head(
            &mut text,
            "pdpp_ingested_lines_total",
            "counter",
            "Lines of ingest requests.",
        );
        for (result, count) in [("accepted", &self.accepted), ("rejected", &self.rejected)] {
            line(
                &mut text,
                "pdpp_ingested_lines_total",
                &format!("result=\"{result}\""),
                count,
            );
        }
        head(
            &mut text,
            "pdpp_requests_total",
            "counter",
            "Requests answered.",
        );
        for (name, operation) in self.named() {
            for (class, count) in operation.by_class.iter().enumerate() {
                if count.load(Relaxed) > 0 {
                    let labels = format!("operation=\"{name}\",status=\"{class}xx\"");
                    line(&mut text, "pdpp_requests_total", &labels, count);
                }
            }
        }
        self.write_times(&mut text);
        text
    }

    fn write_times(&self, text: &mut String) {
        const NAME: &str = "pdpp_request_duration_seconds";
        head(text, NAME, "histogram", "Time from request to answer.");
        for (name, operation) in self.named() {
            let mut sum = 0;
            for (at, count) in operation.by_time.iter().enumerate() {
                sum += count.load(Relaxed);
                let end = BUCKETS
                    .get(at)
                    .map_or("+Inf".to_owned(), |end| seconds(*end));
                let labels = format!("operation=\"{name}\",le=\"{end}\"");
                line(
                    text,
                    &format!("{NAME}_bucket"),
                    &labels,
                    &AtomicU64::new(sum),
                );
            }
            let total = seconds(operation.total_micros.load(Relaxed));
            let _ = writeln!(text, "{NAME}_sum{{operation=\"{name}\"}} {total}");
            let _ = writeln!(text, "{NAME}_count{{operation=\"{name}\"}} {sum}");
        }
    }

    fn named(&self) -> impl Iterator<Item = (&'static str, &Operation)> {
        let routes = ENDPOINTS.iter().chain(PAGES);
        let names = routes.map(|endpoint| endpoint.operation);
        let names = names.chain([NO_ROUTE, OWNER, TOOLS]);
        names.zip(&self.operations).filter(|(_, operation)| {
            let asked = operation.by_class.iter();
            asked.map(|count| count.load(Relaxed)).sum::<u64>() > 0
        })
    }
}

fn seconds(micros: u64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

fn head(text: &mut String, name: &str, kind: &str, about: &str) {
    let _ = writeln!(text, "# HELP {name} {about}\n# TYPE {name} {kind}");
}

fn gauge(text: &mut String, name: &str, about: &str, value: u64) {
    head(text, name, "gauge", about);
    let _ = writeln!(text, "{name} {value}");
}

fn line(text: &mut String, name: &str, labels: &str, count: &AtomicU64) {
    let _ = writeln!(text, "{name}{{{labels}}} {}", count.load(Relaxed));
}
