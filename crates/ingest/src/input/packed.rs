//! Packed files: gzip and zstd, told by their first bytes, and unpacked with errors that say what they mean for the file.

use std::io::{self, BufRead, ErrorKind, Read};

use flate2::bufread::GzDecoder;

use crate::error::InputError;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// How bytes are compressed, as told by their first ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    Gzip,
    Zstd,
}

impl Compression {
    pub(crate) fn detect(head: &[u8]) -> Option<Self> {
        if head.starts_with(&GZIP) {
            return Some(Self::Gzip);
        }
        head.starts_with(&ZSTD).then_some(Self::Zstd)
    }

    pub(super) fn unpack<'r>(self, packed: impl BufRead + 'r) -> io::Result<Box<dyn Read + 'r>> {
        Ok(match self {
            Self::Gzip => Box::new(Gzip::new(packed)),
            Self::Zstd => Box::new(Zstd(zstd::Decoder::with_buffer(packed)?)),
        })
    }
}

/// Decompresses on any thread.
pub(crate) fn decompress(
    compression: Compression,
    packed: impl BufRead + Send + 'static,
) -> io::Result<Box<dyn Read + Send>> {
    Ok(match compression {
        Compression::Gzip => Box::new(Gzip::new(packed)),
        Compression::Zstd => Box::new(Zstd(zstd::Decoder::with_buffer(packed)?)),
    })
}

/// Decompression of zstd. Errors say what they mean for the file.
struct Zstd<R: BufRead>(zstd::Decoder<'static, R>);

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => io::Error::other(InputError::Truncated),
            ErrorKind::Other => io::Error::other(InputError::Damaged(error)),
            _ => error,
        })
    }
}

/// Decompression of one member after the other, with or without zeros after them, as tapes and some programs leave them.
/// Errors say what they mean for the file.
pub(super) struct Gzip<R> {
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> Gzip<R> {
    pub(super) fn new(reader: R) -> Self {
        Self {
            member: Some(GzDecoder::new(reader)),
        }
    }

    /// Goes on to the next member, if there is one.
    fn next_member(&mut self) -> io::Result<()> {
        let Some(member) = self.member.take() else {
            return Ok(());
        };
        let mut reader = member.into_inner();
        loop {
            let bytes = reader.fill_buf()?;
            let Some(first) = bytes.iter().position(|byte| *byte != 0) else {
                let zeros = bytes.len();
                if zeros == 0 {
                    return Ok(());
                }
                reader.consume(zeros);
                continue;
            };
            if bytes.get(first) != GZIP.first() {
                return Err(io::Error::other(InputError::Followed));
            }
            reader.consume(first);
            self.member = Some(GzDecoder::new(reader));
            return Ok(());
        }
    }
}

impl<R: BufRead> Read for Gzip<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let length = member.read(buffer).map_err(|error| match error.kind() {
                ErrorKind::UnexpectedEof => io::Error::other(InputError::Truncated),
                ErrorKind::InvalidInput | ErrorKind::InvalidData => {
                    io::Error::other(InputError::Damaged(error))
                }
                _ => error,
            })?;
            if length > 0 || buffer.is_empty() {
                return Ok(length);
            }
            self.next_member()?;
        }
        Ok(0)
    }
}
