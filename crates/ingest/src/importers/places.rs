//! Places and ways: GPX, as watches, phones and hikers write it, and KML, as Google Earth and maps that were drawn oneself have it.

use contract::time::Instant;
use serde_json::json;

use super::html;
use super::json_members::{first_words, some_text};
use super::pieces::{Converter, Cut, Made, malformed};
use super::xml::{Node, XmlCut};
use crate::exports::{Candidate, Declared, Known, Verdict};
use crate::readable_key::{readable_key, short_hash};
use crate::rejection::Rejection;
use crate::shape::{self, Shape, Stream};

pub(crate) const EXPORT: Known = Known {
    name: "places",
    title: "places and tracks (gpx, kml)",
    declaration: Declared::Shape(SHAPE),
    origin: "watches, hiking and running apps: export as GPX; Google Earth and My Maps: export as KML",
    contents: "places, and tracks with their beginning, end and length; single points are not kept",
    recognise,
    importer: |input, acceptor, _| {
        let cut = Cut::Xml(XmlCut {
            pieces: &["wpt", "trk", "rte", "Placemark"],
            without: &[],
        });
        let converter = Places {
            file: input.stem().to_owned(),
        };
        cut.importer(input.into_reader(), acceptor, converter)
    },
};

const SHAPE: Shape = Shape {
    key: "places",
    name: "Places",
    streams: &[
        Stream {
            name: "places",
            label: "Places",
            about: "Places that were marked.",
            time: Some("noted_at"),
            fields: &[
                shape::text("id"),
                shape::text("title").role("title").searched(),
                shape::text("text").role("body").searched(),
                shape::time("noted_at"),
                shape::number("latitude"),
                shape::number("longitude"),
                shape::number("elevation_metres"),
                shape::text("file").searched().grouped(),
            ],
            children: &[],
        },
        Stream {
            name: "tracks",
            label: "Tracks",
            about: "Ways that were gone, or planned.",
            time: Some("started_at"),
            fields: &[
                shape::text("id"),
                shape::text("title").role("title").searched(),
                shape::text("text").role("body").searched(),
                shape::text("kind").searched().grouped(),
                shape::time("started_at"),
                shape::time("ended_at"),
                shape::integer("metres"),
                shape::integer("points"),
                shape::number("start_latitude"),
                shape::number("start_longitude"),
                shape::number("end_latitude"),
                shape::number("end_longitude"),
                shape::text("file").searched().grouped(),
            ],
            children: &[],
        },
    ],
};

fn recognise(file: &Candidate<'_>) -> Verdict {
    let head = String::from_utf8_lossy(file.head);
    let name = file.file_name();
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        _ if head.contains("<gpx") => Verdict::Takes,
        _ if head.contains("<kml") => Verdict::Takes,
        Some("gpx") => Verdict::Misses("it has no element gpx"),
        Some("kml") => Verdict::Misses("it has no element kml"),
        _ => Verdict::Unlike,
    }
}

struct Places {
    file: String,
}

/// Where something is, how high, and when it was there.
#[derive(Debug, Clone, Default)]
struct Point {
    latitude: f64,
    longitude: f64,
    elevation: Option<f64>,
    at: Option<String>,
}

impl Converter for Places {
    fn convert(&mut self, piece: &[u8], made: &mut Made) -> Result<(), Rejection> {
        let node = Node::parse(piece)?;
        match node.name.as_str() {
            "wpt" => {
                let Some(point) = gpx_point(&node) else {
                    return Err(malformed("the place has no latitude and longitude"));
                };
                self.place(&node, &point, made);
            }
            "trk" => {
                let points = node
                    .named("trkseg")
                    .flat_map(|segment| segment.named("trkpt"));
                self.track(
                    &node,
                    &points.filter_map(gpx_point).collect::<Vec<_>>(),
                    made,
                );
            }
            "rte" => {
                let points: Vec<Point> = node.named("rtept").filter_map(gpx_point).collect();
                self.track(&node, &points, made);
            }
            _ => self.placemark(&node, made)?,
        }
        Ok(())
    }
}

impl Places {
    fn placemark(&self, node: &Node, made: &mut Made) -> Result<(), Rejection> {
        let when = node.find("when").or(node.find("begin")).map(Node::text);
        let when = when.as_deref().and_then(moment);
        if let Some(track) = node.find("Track") {
            // Times and places come in two lists of the same length.
            let times = track.named("when").map(|when| moment(&when.text()));
            let places = track.named("coord").filter_map(|coord| {
                let text = coord.text();
                coordinates(&text.split_whitespace().collect::<Vec<_>>())
            });
            let points: Vec<Point> = places
                .zip(times)
                .map(|(point, at)| Point { at, ..point })
                .collect();
            self.track(node, &points, made);
            return Ok(());
        }
        let lists = ["LineString", "LinearRing", "Point"].map(|name| node.find(name));
        let Some(list) = lists.into_iter().flatten().next() else {
            return self.addressed(node, made);
        };
        let text = list.says("coordinates").unwrap_or_default();
        let points = text
            .split_whitespace()
            .filter_map(|one| coordinates(&one.split(',').collect::<Vec<_>>()));
        let mut points: Vec<Point> = points.collect();
        for point in &mut points {
            point.at.clone_from(&when);
        }
        match points.as_slice() {
            [] => Err(malformed("the placemark has no coordinates")),
            [point] => {
                self.place(node, point, made);
                Ok(())
            }
            points => {
                self.track(node, points, made);
                Ok(())
            }
        }
    }

    /// A place of which only the address is told, as in maps that find it anew each time.
    fn addressed(&self, node: &Node, made: &mut Made) -> Result<(), Rejection> {
        let Some(address) = node.says("address") else {
            return Err(malformed("the placemark has no coordinates and no address"));
        };
        let (title, text) = said(node);
        let texts: Vec<String> = [address.clone()].into_iter().chain(text).collect();
        made.add(
            "places",
            json!({
                "id": id(title.as_deref(), None, &address),
                "title": title,
                "text": texts.join("\n"),
                "file": some_text(self.file.clone()),
            }),
        );
        Ok(())
    }

    fn place(&self, node: &Node, point: &Point, made: &mut Made) {
        let (title, text) = said(node);
        let (latitude, longitude) = (point.latitude, point.longitude);
        made.add(
            "places",
            json!({
                "id": id(title.as_deref(), point.at.as_deref(), &format!("{latitude} {longitude}")),
                "title": title,
                "text": text,
                "noted_at": point.at,
                "latitude": latitude,
                "longitude": longitude,
                "elevation_metres": point.elevation,
                "file": some_text(self.file.clone()),
            }),
        );
    }

    fn track(&self, node: &Node, points: &[Point], made: &mut Made) {
        let (Some(first), Some(last)) = (points.first(), points.last()) else {
            made.reject("the track has no points");
            return;
        };
        let (title, text) = said(node);
        let title = title.or_else(|| some_text(self.file.clone()));
        let steps = points.iter().zip(points.iter().skip(1));
        let metres: f64 = steps.map(|(from, to)| distance(from, to)).sum();
        let started_at = points.iter().find_map(|point| point.at.clone());
        let ended_at = points.iter().rev().find_map(|point| point.at.clone());
        let begins = format!("{} {}", first.latitude, first.longitude);
        #[expect(clippy::cast_possible_truncation, reason = "no way is that long")]
        let metres = metres.round() as i64;
        made.add(
            "tracks",
            json!({
                "id": id(title.as_deref(), started_at.as_deref(), &begins),
                "title": title,
                "text": text,
                "kind": node.says("type"),
                "started_at": started_at,
                "ended_at": ended_at,
                "metres": metres,
                "points": points.len(),
                "start_latitude": first.latitude,
                "start_longitude": first.longitude,
                "end_latitude": last.latitude,
                "end_longitude": last.longitude,
                "file": some_text(self.file.clone()),
            }),
        );
    }
}

/// The name and the description, of which the latter may be HTML.
fn said(node: &Node) -> (Option<String>, Option<String>) {
    let texts = ["desc", "cmt", "description"].map(|name| node.says(name));
    let text = texts.into_iter().flatten().next();
    let text = text.map(|text| html::typed_to_text(&text).into_owned());
    (node.says("name").map(|name| first_words(&name)), text)
}

/// There are no ids: what it is called, when it was, and where it is or begins.
fn id(title: Option<&str>, at: Option<&str>, place: &str) -> String {
    let day: String = at.unwrap_or_default().chars().take(10).collect();
    let title = title.unwrap_or_default();
    let hash = short_hash(&format!("{title}\n{}\n{place}", at.unwrap_or_default()));
    readable_key(
        &format!("{day} {title} {hash}")
            .trim()
            .replace(['/', '\\'], "-"),
    )
}

fn gpx_point(node: &Node) -> Option<Point> {
    let degrees = |name: &str| node.attribute(name);
    let point = coordinates(&[degrees("lon")?, degrees("lat")?])?;
    Some(Point {
        elevation: node.says("ele").and_then(|metres| metres.parse().ok()),
        at: node.says("time").as_deref().and_then(moment),
        ..point
    })
}

/// Longitude, latitude, and how high, as KML has them.
fn coordinates(parts: &[&str]) -> Option<Point> {
    let number = |at: usize| -> Option<f64> {
        let number: f64 = parts.get(at)?.trim().parse().ok()?;
        number.is_finite().then_some(number)
    };
    let (longitude, latitude) = (number(0)?, number(1)?);
    let is_place = latitude.abs() <= 90.0 && longitude.abs() <= 180.0;
    is_place.then(|| Point {
        latitude,
        longitude,
        elevation: number(2),
        at: None,
    })
}

fn moment(text: &str) -> Option<String> {
    let text = text.trim();
    Instant::parse(text).map(|_| text.to_owned())
}

/// Metres between two points on a ball of the size of the Earth.
fn distance(from: &Point, to: &Point) -> f64 {
    let (a, b) = (from.latitude.to_radians(), to.latitude.to_radians());
    let across = (to.longitude - from.longitude).to_radians();
    let half = ((b - a) / 2.0).sin().powi(2) + a.cos() * b.cos() * (across / 2.0).sin().powi(2);
    2.0 * 6_371_008.8 * half.sqrt().min(1.0).asin()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_degree_of_latitude_is_a_hundred_and_eleven_kilometres() {
        let at = |latitude| Point {
            latitude,
            ..Point::default()
        };
        let metres = distance(&at(10.0), &at(11.0));
        assert!((metres - 111_195.0).abs() < 1.0, "{metres}");
    }
}
