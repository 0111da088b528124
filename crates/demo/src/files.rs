//! Files that come with letters: texts, and small drawn pictures.

use std::io::{self, Write};

use contract::id::BlobId;
use flate2::{Compression, Crc, write::ZlibEncoder};
use sha2::{Digest, Sha256};

use crate::dice::Dice;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachedFile {
    pub stream: &'static str,
    pub key: String,
    pub mime_type: String,
    pub bytes: Vec<u8>,
}

impl AttachedFile {
    /// What the store will call the bytes.
    pub fn blob_id(&self) -> BlobId {
        BlobId::from_sha256(Sha256::digest(&self.bytes).into())
    }
}

const WIDTH: u32 = 96;
const HEIGHT: u32 = 48;

/// A picture of a measurement: a curve of a random walk, dark on light.
pub(crate) fn picture(dice: &mut Dice) -> io::Result<Vec<u8>> {
    let mut level = i64::from(HEIGHT / 2);
    let curve: Vec<i64> = (0..WIDTH)
        .map(|_| {
            level = (level + dice.between(-3, 3)).clamp(2, i64::from(HEIGHT) - 3);
            level
        })
        .collect();
    let mut rows = Vec::new();
    for row in 0..i64::from(HEIGHT) {
        // Every row begins with its filter: none.
        rows.push(0);
        rows.extend(curve.iter().map(|level| match (row - level).abs() {
            0 => 20,
            1 => 150,
            _ => 250,
        }));
    }
    // Stored, not compressed: the bytes, and so the id of the blob, do not depend on the version of a compressor.
    let mut deflated = ZlibEncoder::new(Vec::new(), Compression::none());
    deflated.write_all(&rows)?;
    let mut header = Vec::new();
    header.extend(WIDTH.to_be_bytes());
    header.extend(HEIGHT.to_be_bytes());
    // Eight bits of grey, and the only methods there are.
    header.extend([8, 0, 0, 0, 0]);
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    chunk(&mut png, *b"IHDR", &header);
    chunk(&mut png, *b"IDAT", &deflated.finish()?);
    chunk(&mut png, *b"IEND", &[]);
    Ok(png)
}

fn chunk(png: &mut Vec<u8>, kind: [u8; 4], content: &[u8]) {
    let length = u32::try_from(content.len()).unwrap_or(u32::MAX);
    png.extend(length.to_be_bytes());
    png.extend(kind);
    png.extend(content);
    let mut sum = Crc::new();
    sum.update(&kind);
    sum.update(content);
    png.extend(sum.sum().to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_a_png_of_the_same_bytes_each_time() {
        let drawn = picture(&mut Dice::new("plot")).unwrap();
        assert!(drawn.starts_with(b"\x89PNG"));
        assert_eq!(drawn, picture(&mut Dice::new("plot")).unwrap());
        assert_ne!(drawn, picture(&mut Dice::new("other")).unwrap());
    }
}
