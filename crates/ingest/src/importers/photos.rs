//! Photos, one file each: what the camera wrote into them, and the pictures themselves where they are asked for.

use contract::id::BlobId;
use contract::time::Instant;
use exif::{Exif, In, Reader, Tag, Value as Entry};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use std::io::Cursor;

use super::pieces::{Converter, Cut, Made};
use crate::exports::{Candidate, Declared, Known, Verdict};
use crate::readable_key::readable_key;
use crate::rejection::Rejection;
use crate::shape::{self, Shape, Stream};

pub(crate) const EXPORT: Known = Known {
    name: "photos",
    title: "photos (jpg, heic, png, tif)",
    declaration: Declared::Shape(SHAPE),
    origin: "nothing to export; name a folder or an archive of photos",
    contents: "name, size, time, place and camera of each photo; the picture itself with --pictures",
    recognise,
    importer: |input, acceptor, companions| {
        let converter = Photos {
            path: input.inside().to_owned(),
            keeps_pictures: companions.keeps_pictures,
        };
        Cut::Whole.importer(input.into_reader(), acceptor, converter)
    },
};

const SHAPE: Shape = Shape {
    key: "photos",
    name: "Photos",
    streams: &[Stream {
        name: "photos",
        label: "Photos",
        about: "Photos, one record per file.",
        time: Some("taken_at"),
        fields: &[
            shape::text("id"),
            shape::text("name").role("title").searched(),
            shape::text("path").searched(),
            shape::text("folder").searched().grouped(),
            shape::text("kind")
                .grouped()
                .about("jpeg, heic, png or tiff."),
            shape::time("taken_at")
                .about("As the camera says; without an offset it counts as UTC."),
            shape::text("camera").searched().grouped(),
            shape::text("text")
                .role("body")
                .searched()
                .about("What was written about it, if anything."),
            shape::number("latitude"),
            shape::number("longitude"),
            shape::integer("width"),
            shape::integer("height"),
            shape::integer("size_bytes"),
            shape::blob("blob_ref").about("Where the picture is, if it is kept."),
        ],
        children: &[],
    }],
};

fn kind_of(head: &[u8]) -> Option<&'static str> {
    match head {
        [0xff, 0xd8, 0xff, ..] => Some("jpeg"),
        [0x89, b'P', b'N', b'G', b'\r', b'\n', ..] => Some("png"),
        [b'I', b'I', b'*', 0, ..] | [b'M', b'M', 0, b'*', ..] => Some("tiff"),
        [_, _, _, _, b'f', b't', b'y', b'p', brand @ ..] => {
            let brands: [&[u8]; 4] = [b"heic", b"heix", b"mif1", b"avif"];
            let is_picture = brands.iter().any(|one| brand.starts_with(one));
            is_picture.then_some("heic")
        }
        _ => None,
    }
}

fn recognise(file: &Candidate<'_>) -> Verdict {
    let ending = file.file_name().rsplit_once('.').map(|(_, ending)| ending);
    let ending = ending.unwrap_or_default().to_ascii_lowercase();
    match (kind_of(file.head), ending.as_str()) {
        (Some(_), _) => Verdict::Otherwise,
        (None, "jpg" | "jpeg" | "heic" | "png" | "tif" | "tiff") => {
            Verdict::Misses("it does not begin as such pictures do")
        }
        _ => Verdict::Unlike,
    }
}

struct Photos {
    path: String,
    keeps_pictures: bool,
}

impl Converter for Photos {
    fn convert(&mut self, piece: &[u8], made: &mut Made) -> Result<(), Rejection> {
        let path = self.path.as_str();
        let (folder, name) = match path.rsplit_once('/') {
            Some((folder, name)) => (Some(folder), name),
            None => (None, path),
        };
        // A picture that says nothing of itself is one all the same.
        let said = described(piece);
        let said = said.as_ref();
        let maker = said.and_then(|said| words(said, Tag::Make));
        let model = said.and_then(|said| words(said, Tag::Model));
        let camera = match (maker, model) {
            (Some(maker), Some(model)) if !model.starts_with(&maker) => {
                Some(format!("{maker} {model}"))
            }
            (maker, model) => model.or(maker),
        };
        let degrees = |value, sign| said.and_then(|said| degrees(said, value, sign));
        let latitude = degrees(Tag::GPSLatitude, Tag::GPSLatitudeRef);
        let longitude = degrees(Tag::GPSLongitude, Tag::GPSLongitudeRef);
        let number = |tag| said?.get_field(tag, In::PRIMARY)?.value.get_uint(0);
        let kind = kind_of(piece);
        let media_type = format!("image/{}", kind.unwrap_or("jpeg"));
        let blob = self
            .keeps_pictures
            .then(|| BlobId::from_sha256(Sha256::digest(piece).into()));
        made.add(
            "photos",
            json!({
                "id": readable_key(path),
                "name": name,
                "path": path,
                "folder": folder,
                "kind": kind,
                "taken_at": said.and_then(taken_at),
                "camera": camera,
                "text": said.and_then(|said| words(said, Tag::ImageDescription)),
                "latitude": latitude.filter(|_| longitude.is_some()),
                "longitude": longitude.filter(|_| latitude.is_some()),
                "width": number(Tag::PixelXDimension),
                "height": number(Tag::PixelYDimension),
                "size_bytes": piece.len(),
                "blob_ref": blob.as_ref().map(|blob| json!({
                    "blob_id": blob.as_str(), "mime_type": media_type, "size_bytes": piece.len(),
                })),
            }),
        );
        if let Some(blob) = blob {
            made.keep_file(blob, &media_type, piece);
        }
        Ok(())
    }
}

/// What the camera wrote. Many programs leave parts of it out, such as the end of a list; the rest is there all the same.
fn described(picture: &[u8]) -> Option<Exif> {
    Reader::new()
        .continue_on_error(true)
        .read_from_container(&mut Cursor::new(picture))
        .or_else(|error| error.distill_partial_result(|_| ()))
        .ok()
}

fn words(said: &Exif, tag: Tag) -> Option<String> {
    let Entry::Ascii(texts) = &said.get_field(tag, In::PRIMARY)?.value else {
        return None;
    };
    let text = String::from_utf8_lossy(texts.first()?);
    let text = text.trim_matches(['\0', ' ']);
    (!text.is_empty()).then(|| text.to_owned())
}

/// `2024:03:05 10:00:00`, with the offset where the camera knew it.
fn taken_at(said: &Exif) -> Option<String> {
    let times = [
        (Tag::DateTimeOriginal, Tag::OffsetTimeOriginal),
        (Tag::DateTimeDigitized, Tag::OffsetTimeDigitized),
    ];
    times.iter().find_map(|(time, offset)| {
        let time = words(said, *time)?;
        let (day, time) = time.split_once(' ')?;
        let offset = words(said, *offset).unwrap_or_default();
        let texts =
            [offset.trim(), ""].map(|offset| format!("{}T{time}{offset}", day.replace(':', "-")));
        texts
            .into_iter()
            .find(|text| Instant::parse(text).is_some())
    })
}

/// Degrees, minutes and seconds as one number.
fn degrees(said: &Exif, value: Tag, sign: Tag) -> Option<f64> {
    let Entry::Rational(parts) = &said.get_field(value, In::PRIMARY)?.value else {
        return None;
    };
    let mut parts = parts.iter().map(exif::Rational::to_f64);
    let degrees =
        parts.next()? + parts.next().unwrap_or(0.0) / 60.0 + parts.next().unwrap_or(0.0) / 3600.0;
    let degrees = (degrees * 1e6).round() / 1e6;
    let is_negative = words(said, sign).is_some_and(|sign| matches!(sign.as_str(), "S" | "W"));
    let most = if value == Tag::GPSLatitude {
        90.0
    } else {
        180.0
    };
    // Nothing was measured where a part is divided by nothing.
    (degrees.is_finite() && degrees <= most).then_some(if is_negative { -degrees } else { degrees })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_whose_lists_are_not_ended_tells_what_it_can() {
        // As programs write it that rotate or shrink pictures: a time, and no word on where the next list is.
        let list = b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x87\x69\0\x04\0\0\0\x01\0\0\0\x1a\0\0\0\0\
            \0\x01\x90\x03\0\x02\0\0\0\x14\0\0\0\x282024:03:06 10:13:20\0";
        let length = u16::try_from(list.len() + 2).unwrap().to_be_bytes();
        let picture = [b"\xff\xd8\xff\xe1".as_slice(), &length, list, b"\xff\xd9"].concat();
        let said = described(&picture).unwrap();
        assert_eq!(taken_at(&said).as_deref(), Some("2024-03-06T10:13:20"));
    }
}
