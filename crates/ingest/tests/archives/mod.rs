//! Archives made for tests, also such as no honest program writes.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::allow_attributes,
    reason = "each test program uses a part of it"
)]

use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};
use rawzip::path::EntryPath;
use rawzip::{CompressionMethod, ZipArchiveWriter};

/// How a member of a zip is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Packed {
    Stored,
    Deflated,
    Zstd,
    Encrypted,
    /// By a method that nobody reads.
    Unknown,
}

pub fn zip(members: &[(&str, &[u8])]) -> Vec<u8> {
    let members: Vec<_> = members
        .iter()
        .map(|(name, bytes)| (*name, *bytes, Packed::Deflated))
        .collect();
    zip_of(&members)
}

pub fn zip_of(members: &[(&str, &[u8], Packed)]) -> Vec<u8> {
    let mut archive = ZipArchiveWriter::new(Vec::new());
    for (name, bytes, packed) in members {
        let method = match packed {
            Packed::Stored | Packed::Encrypted => CompressionMethod::STORE,
            Packed::Deflated => CompressionMethod::DEFLATE,
            Packed::Zstd => CompressionMethod::ZSTD,
            Packed::Unknown => CompressionMethod::from(14),
        };
        let file = archive
            .new_file(EntryPath::verbatim(name.as_bytes().to_vec()))
            .compression_method(method)
            .encrypted(*packed == Packed::Encrypted);
        let (mut entry, config) = file.start().unwrap();
        let output = match packed {
            Packed::Deflated => {
                let encoder = DeflateEncoder::new(&mut entry, Compression::best());
                let mut writer = config.wrap(encoder);
                writer.write_all(bytes).unwrap();
                let (encoder, output) = writer.finish().unwrap();
                encoder.finish().unwrap();
                output
            }
            Packed::Zstd => {
                let encoder = zstd::Encoder::new(&mut entry, 1).unwrap();
                let mut writer = config.wrap(encoder);
                writer.write_all(bytes).unwrap();
                let (encoder, output) = writer.finish().unwrap();
                encoder.finish().unwrap();
                output
            }
            _ => {
                let mut writer = config.wrap(&mut entry);
                writer.write_all(bytes).unwrap();
                writer.finish().unwrap().1
            }
        };
        entry.finish(output).unwrap();
    }
    archive.finish().unwrap()
}

/// A member of a tape: its name, its content, and the sign for what it is.
pub fn tar(members: &[(&str, &[u8], u8)]) -> Vec<u8> {
    let mut tape = Vec::new();
    for (name, bytes, kind) in members {
        let mut header = [0_u8; 512];
        let name = name.as_bytes();
        header[..name.len().min(100)].copy_from_slice(&name[..name.len().min(100)]);
        header[100..108].copy_from_slice(b"0000644\0");
        header[124..136].copy_from_slice(format!("{:011o}\0", bytes.len()).as_bytes());
        header[156] = *kind;
        header[257..265].copy_from_slice(b"ustar\x0000");
        seal(&mut header);
        tape.extend(header);
        tape.extend(*bytes);
        tape.resize(tape.len().next_multiple_of(512), 0);
    }
    tape.extend([0; 1024]);
    tape
}

pub fn plain_tar(members: &[(&str, &[u8])]) -> Vec<u8> {
    let members: Vec<_> = members
        .iter()
        .map(|(name, bytes)| (*name, *bytes, b'0'))
        .collect();
    tar(&members)
}

fn seal(header: &mut [u8; 512]) {
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
