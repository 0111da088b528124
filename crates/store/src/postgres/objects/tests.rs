//! Object storage against a small server of its own on this machine.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Mutex, PoisonError};
use std::thread;

use object_store::aws::AmazonS3Builder;
use tempfile::TempDir;

use super::*;
use crate::StoreError;

const KEY: &str = "test-key";

/// What the server keeps, by path; parts of an upload by path and number.
#[derive(Default)]
struct Kept {
    objects: BTreeMap<String, Vec<u8>>,
    parts: BTreeMap<(String, usize), Vec<u8>>,
    /// Bytes of the next object are changed while they are kept.
    damages: bool,
    /// Answers with this status from now on.
    refuses: Option<&'static str>,
}

/// As much of S3 as is used: objects, uploads in parts, and lists.
struct Server {
    address: String,
    kept: Arc<Mutex<Kept>>,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let kept: Arc<Mutex<Kept>> = Arc::default();
        let shared = Arc::clone(&kept);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let kept = Arc::clone(&shared);
                thread::spawn(move || serve(&stream, &kept));
            }
        });
        Self { address, kept }
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn bucket(&self, key: &str, own: &TempDir) -> Result<Bucket> {
        let settings = AmazonS3Builder::new()
            .with_endpoint(&self.address)
            .with_allow_http(true)
            .with_region("test")
            .with_access_key_id(key)
            .with_secret_access_key("secret");
        let waiting = Arc::new(Waiting::start().unwrap());
        Bucket::with(settings, "s3://bucket/pdpp", "owner", own.path(), waiting)
    }
}

fn serve(stream: &TcpStream, kept: &Mutex<Kept>) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        let mut words = line.split(' ');
        let (method, target) = (words.next().unwrap(), words.next().unwrap().to_owned());
        let (mut length, mut is_known) = (0, false);
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).unwrap();
            let header = header.trim().to_ascii_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(value) = header.strip_prefix("content-length: ") {
                length = value.parse().unwrap();
            }
            is_known |= header.starts_with("authorization: aws4")
                && header.contains(&format!("credential={KEY}/"));
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (status, answer) = match kept.refuses {
            Some(status) => (status, Vec::new()),
            None if !is_known => ("403 Forbidden", Vec::new()),
            None => answer(method, &target, body, &mut kept),
        };
        drop(kept);
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Length: {}\r\nETag: \"x\"\r\nLast-Modified: Mon, 01 Jun 2026 12:00:00 GMT\r\n\r\n",
            answer.len()
        );
        let mut stream = stream;
        let body: &[u8] = if method == "HEAD" { &[] } else { &answer };
        if stream.write_all(&[head.as_bytes(), body].concat()).is_err() {
            return;
        }
    }
}

fn answer(
    method: &str,
    target: &str,
    mut body: Vec<u8>,
    kept: &mut Kept,
) -> (&'static str, Vec<u8>) {
    let ok = |answer: String| ("200 OK", answer.into_bytes());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let value = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    };
    let path = path.to_owned();
    match method {
        "PUT" if value("partNumber").is_some() => {
            let number = value("partNumber").unwrap().parse().unwrap();
            kept.parts.insert((path, number), body);
            ok(String::new())
        }
        "PUT" => {
            if kept.damages {
                body[0] ^= 1;
            }
            kept.objects.insert(path, body);
            ok(String::new())
        }
        "POST" if value("uploadId").is_some() => {
            let parts = std::mem::take(&mut kept.parts);
            kept.objects
                .insert(path, parts.into_values().flatten().collect());
            ok(
                "<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>"
                    .into(),
            )
        }
        "POST" => ok(
            "<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>"
                .into(),
        ),
        "DELETE" => {
            kept.objects.remove(&path);
            ("204 No Content", Vec::new())
        }
        _ if value("list-type").is_some() => {
            let prefix = value("prefix").unwrap_or_default().replace("%2F", "/");
            let names = kept.objects.iter().filter_map(|(name, bytes)| {
                let name = name.strip_prefix("/bucket/")?;
                name.starts_with(&prefix).then(|| {
                    format!(
                        "<Contents><Key>{name}</Key><LastModified>2026-06-01T12:00:00Z</LastModified><ETag>x</ETag><Size>{}</Size></Contents>",
                        bytes.len()
                    )
                })
            });
            let names: String = names.collect();
            ok(format!(
                "<ListBucketResult><KeyCount>1</KeyCount><IsTruncated>false</IsTruncated>{names}</ListBucketResult>"
            ))
        }
        _ => match kept.objects.get(&path) {
            Some(bytes) => ("200 OK", bytes.clone()),
            None => ("404 Not Found", Vec::new()),
        },
    }
}

fn read(objects: &dyn Objects, name: &str) -> Option<Vec<u8>> {
    let (size_bytes, mut bytes) = objects.open(name).unwrap()?;
    let mut read = Vec::new();
    bytes.read_to_end(&mut read).unwrap();
    assert_eq!(read.len() as u64, size_bytes);
    Some(read)
}

#[test]
fn bytes_in_a_folder_and_in_a_bucket_are_put_read_listed_and_removed_alike() {
    let (server, own, shared) = (
        Server::start(),
        tempfile::tempdir().unwrap(),
        tempfile::tempdir().unwrap(),
    );
    let folder = Folder {
        root: shared.path().join("owner"),
    };
    let bucket = server.bucket(KEY, &own).unwrap();
    // More than is sent in one part, and not alike all over.
    let large: Vec<u8> = (0..20_000_000_u32).map(|at| (at % 251) as u8).collect();
    for objects in [&folder as &dyn Objects, &bucket] {
        let put = |name: &str, mut bytes: &[u8]| {
            let received = objects.receive(&mut bytes).unwrap();
            objects.put(name, &received).unwrap();
            let size_bytes = objects.size_of(name).unwrap();
            assert_eq!(size_bytes, Some(received.size_bytes));
        };
        let names = |prefix: &str| {
            let listed = objects.list(prefix).unwrap().into_iter();
            let mut names: Vec<String> = listed.map(|listed| listed.name).collect();
            names.sort();
            names
        };
        assert!(names("").is_empty());
        assert_eq!(read(objects, "ab/cd"), None);
        assert_eq!(objects.size_of("ab/cd").unwrap(), None);
        put("ab/cd", b"small");
        put("ab/cd", b"again");
        put("snapshots/1/large", &large);
        put("snapshots/1/.hidden", b"");
        assert_eq!(read(objects, "ab/cd").unwrap(), b"again");
        assert_eq!(read(objects, "snapshots/1/large").unwrap(), large);
        assert_eq!(read(objects, "snapshots/1/.hidden").unwrap(), b"");
        assert_eq!(
            names(""),
            ["ab/cd", "snapshots/1/.hidden", "snapshots/1/large"]
        );
        assert_eq!(names("snapshots/").len(), 2);
        objects.remove_all("snapshots/1/").unwrap();
        objects.remove("ab/none").unwrap();
        assert_eq!(names(""), ["ab/cd"]);
        objects.sweep().unwrap();
    }
    // What the bucket took is not left on the disk of the node.
    let left = std::fs::read_dir(own.path().join("received")).unwrap();
    assert_eq!(left.count(), 0);
}

#[test]
fn a_bucket_that_refuses_or_does_not_answer_is_told_and_changed_bytes_are_not_taken() {
    let (server, own) = (Server::start(), tempfile::tempdir().unwrap());
    let refused = server.bucket("wrong-key", &own).err().unwrap();
    assert!(
        matches!(refused, StoreError::BlobsRefused { .. }),
        "{refused:?}"
    );
    assert!(
        refused.to_string().contains("AWS_ACCESS_KEY_ID"),
        "{refused}"
    );
    let bucket = server.bucket(KEY, &own).unwrap();
    server.kept().damages = true;
    let received = bucket.receive(&mut b"bytes".as_slice()).unwrap();
    let damaged = bucket.put("ab/cd", &received).unwrap_err();
    assert!(
        matches!(damaged, StoreError::BlobDamaged { .. }),
        "{damaged:?}"
    );
    server.kept().refuses = Some("404 Not Found");
    let missing = bucket.list("").err().unwrap();
    assert!(!missing.is_transient(), "{missing:?}");
    server.kept().refuses = Some("500 Internal Server Error");
    let away = bucket.list("").err().unwrap();
    assert!(away.is_transient(), "{away:?}");
    assert!(away.to_string().contains("s3://bucket/pdpp"), "{away}");
}
