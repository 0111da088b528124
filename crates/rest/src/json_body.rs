//! Serializes JSON answers in chunks. Large record content is sent from where it is in memory, without a copy.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::{self, Write};
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{StatusCode, header};
use axum::response::Response;
use contract::aggregate::Aggregation;
use contract::citation::CitationCheck;
use contract::page::Page;
use contract::record::{Expanded, FieldWindow, Record};
use contract::schema::{SchemaAnswer, StreamMetadata, StreamSummary};
use contract::search::SearchHit;
use hyper::body::{Frame, SizeHint};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::problem::{JSON, Problem};
use crate::table::HandlerResult;

/// Record content from this size on is not copied.
const LARGE_BYTES: usize = 16 * 1024;
const CHUNK_BYTES: usize = 64 * 1024;

type Content = Option<Box<RawValue>>;

pub(crate) trait HasContent: Serialize {
    /// Visits every record content, always in the same order.
    fn contents(&mut self, _each: &mut dyn FnMut(&mut Content)) {}
}

impl HasContent for Aggregation {}
impl HasContent for CitationCheck {}
impl HasContent for FieldWindow {}
impl HasContent for SchemaAnswer {}
impl HasContent for SearchHit {}
impl HasContent for StreamMetadata {}
impl HasContent for StreamSummary {}

impl HasContent for Record {
    fn contents(&mut self, each: &mut dyn FnMut(&mut Content)) {
        each(&mut self.data);
        let expanded = self.expanded.as_mut();
        for (_, related) in expanded.into_iter().flat_map(|map| &mut map.0) {
            match related {
                Expanded::Many(list) => list.data.iter_mut().for_each(|one| one.contents(each)),
                Expanded::One(record) => record.contents(each),
                Expanded::None => {}
            }
        }
    }
}

impl<T: HasContent> HasContent for Page<T> {
    fn contents(&mut self, each: &mut dyn FnMut(&mut Content)) {
        self.data.iter_mut().for_each(|entry| entry.contents(each));
    }
}

pub(crate) fn json_response(mut answer: impl HasContent) -> HandlerResult {
    let mut writer = SplitWriter::default();
    answer.contents(&mut |content| {
        let large = content
            .as_deref()
            .filter(|content| content.get().len() >= LARGE_BYTES);
        writer
            .large
            .extend(large.map(|content| address_of(content.get().as_bytes())));
    });
    serde_json::to_writer(&mut writer, &answer)
        .map_err(|error| Problem::internal("the answer cannot be written as JSON", &error))?;
    let mut contents = Vec::with_capacity(writer.large.len());
    answer.contents(&mut |content| {
        let large = content.take_if(|content| content.get().len() >= LARGE_BYTES);
        contents.extend(large.map(|content| Bytes::from(Box::<str>::from(content).into_string())));
    });
    drop(answer);
    let mut response = Response::new(Body::new(writer.into_body(&contents)));
    *response.status_mut() = StatusCode::OK;
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    Ok(response)
}

type SliceAddress = (usize, usize);

fn address_of(bytes: &[u8]) -> SliceAddress {
    (bytes.as_ptr().addr(), bytes.len())
}

/// Collects JSON as it is written. Large content is not copied but noted; it is recognised by its address, so content
/// that the serializer splits is copied.
#[derive(Default)]
struct SplitWriter {
    large: Vec<SliceAddress>,
    text: Vec<u8>,
    /// The text before each large content, and the content's index.
    met: Vec<(Vec<u8>, usize)>,
}

impl Write for SplitWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let found = if bytes.len() < LARGE_BYTES {
            None
        } else {
            let written = address_of(bytes);
            self.large.iter().position(|large| *large == written)
        };
        match found {
            Some(found) => self.met.push((mem::take(&mut self.text), found)),
            None => self.text.extend_from_slice(bytes),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl SplitWriter {
    fn into_body(self, contents: &[Bytes]) -> ChunkedBody {
        let mut chunks = VecDeque::with_capacity(2 * self.met.len() + 1);
        for (text, met) in self.met {
            chunks.push_back(Bytes::from(text));
            chunks.extend(contents.get(met).cloned());
        }
        chunks.push_back(Bytes::from(self.text));
        chunks.retain(|chunk| !chunk.is_empty());
        ChunkedBody(chunks)
    }
}

struct ChunkedBody(VecDeque<Bytes>);

impl HttpBody for ChunkedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(first) = self.0.front_mut() else {
            return Poll::Ready(None);
        };
        let chunk = if first.len() > CHUNK_BYTES {
            Some(first.split_to(CHUNK_BYTES))
        } else {
            self.0.pop_front()
        };
        Poll::Ready(chunk.map(|chunk| Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        let bytes: usize = self.0.iter().map(Bytes::len).sum();
        SizeHint::with_exact(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::record::ExpandedList;
    use contract::wire::{ObjectTag, OrderedMap};

    fn record(id: &str, bytes: usize) -> Record {
        let mut record = Record::new("messages", id, "2026-01-01");
        let text = format!("{{\"id\":\"{id}\",\"text\":\"{}\"}}", "ä".repeat(bytes / 2));
        record.data = Some(RawValue::from_string(text).unwrap());
        record
    }

    fn page() -> Page<Record> {
        let mut parent = record("b", 3 * CHUNK_BYTES);
        let children = ExpandedList {
            object: ObjectTag::LIST,
            data: vec![record("c", LARGE_BYTES), record("d", 10)],
            has_more: false,
        };
        parent.expanded = Some(OrderedMap(vec![
            ("many".to_owned(), Expanded::Many(children)),
            (
                "one".to_owned(),
                Expanded::One(Box::new(record("e", 99_999))),
            ),
            ("none".to_owned(), Expanded::None),
        ]));
        Page::new(vec![record("a", 10), parent, record("f", 1_000_000)])
    }

    #[tokio::test]
    async fn an_answer_in_pieces_is_the_answer_and_holds_large_content_once() {
        // TR-38: what is large is sent from where it is.
        let whole = serde_json::to_vec(&page()).unwrap();
        let mut page = page();
        let mut contents = Vec::new();
        page.contents(&mut |content| {
            let content = content.as_deref().unwrap().get();
            contents.extend((content.len() >= LARGE_BYTES).then(|| content.as_ptr().addr()));
        });
        assert_eq!(contents.len(), 4);

        let mut body = json_response(page).unwrap().into_body();
        let length = body.size_hint().exact();
        assert_eq!(length, u64::try_from(whole.len()).ok());
        let (mut sent, mut begun) = (Vec::new(), Vec::new());
        while let Some(frame) = poll(&mut body).await {
            let chunk = frame.into_data().unwrap();
            assert!(chunk.len() <= CHUNK_BYTES);
            begun.push(chunk.as_ptr().addr());
            sent.extend_from_slice(&chunk);
        }
        assert_eq!(sent, whole);
        assert!(contents.iter().all(|content| begun.contains(content)));
    }

    async fn poll(body: &mut Body) -> Option<Frame<Bytes>> {
        let frame = std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context));
        frame.await.map(Result::unwrap)
    }
}
