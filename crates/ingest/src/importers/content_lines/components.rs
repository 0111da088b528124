//! Components: what stands between `BEGIN:NAME` and `END:NAME`. A file is read one whole component at a time, and a
//! broken one costs nothing but itself.

use std::io::{self, BufRead};

use super::property::{Property, name_of};
use super::{ContentLines, Unfolded};
use crate::error::InputError;
use crate::rejection::{Rejection, RejectionCode, quoted};

/// What a kind of file consists of. All names in capitals.
pub(crate) struct Layout {
    /// What stands around the components, if anything does.
    pub(crate) container: Option<&'static str>,
    /// The components that are told one by one. They never stand inside each other, so that one which begins inside
    /// another shows that the other was not ended.
    pub(crate) components: &'static [&'static str],
    /// Properties that are not kept: pictures and the like.
    pub(crate) dropped: &'static [&'static str],
}

pub(crate) enum Found {
    Container,
    /// A property of the container, or one that stands outside of everything.
    Property {
        line: u64,
        bytes: usize,
        property: Property,
    },
    /// A whole component.
    Component(Component),
    /// Something that cannot be read.
    Broken {
        line: u64,
        bytes: usize,
        rejection: Rejection,
    },
}

/// A component: its properties, and those of the components right inside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Component {
    pub(crate) name: String,
    /// Where it begins in the file, from 1.
    pub(crate) line: u64,
    pub(crate) bytes: usize,
    pub(crate) properties: Vec<Property>,
    pub(crate) children: Vec<Component>,
}

impl Component {
    fn new(name: String, line: u64) -> Self {
        Self {
            name,
            line,
            bytes: 0,
            properties: Vec::new(),
            children: Vec::new(),
        }
    }

    pub(crate) fn property(&self, name: &str) -> Option<&Property> {
        self.all(name).next()
    }

    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &Property> {
        self.properties
            .iter()
            .filter(move |property| property.name == name)
    }
}

pub(crate) struct Components<R> {
    lines: ContentLines<R>,
    layout: &'static Layout,
    limit: usize,
    /// A component that has begun before the one before it ended.
    begun: Option<(String, u64)>,
    /// Whether a container has begun and not ended.
    contained: bool,
    /// Where the last line began.
    line: u64,
}

enum Step<'b> {
    Begin(String),
    End(String),
    Property(&'b [u8]),
    Dropped,
    TooLong,
}

struct Open {
    component: Component,
    /// How many components inside it are open.
    depth: usize,
    weight: usize,
    fault: Option<Rejection>,
    /// Old phones do not fold the lines of a picture, they only break them.
    after_dropped: bool,
}

impl<R: BufRead> Components<R> {
    pub(crate) fn new(reader: R, layout: &'static Layout, limit: usize) -> Self {
        Self {
            lines: ContentLines::new(reader, limit),
            layout,
            limit,
            begun: None,
            contained: false,
            line: 0,
        }
    }

    /// The next thing in the file, or nothing at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<Found>> {
        loop {
            let (name, line) = match self.begun.take() {
                Some(begun) => begun,
                None => match self.outside()? {
                    Some(Outside::Begin(name, line)) => (name, line),
                    Some(Outside::Found(found)) => return Ok(Some(found)),
                    Some(Outside::Nothing) => continue,
                    None => return Ok(None),
                },
            };
            if self.layout.container == Some(name.as_str()) {
                self.contained = true;
                return Ok(Some(Found::Container));
            }
            return self.component(name, line).map(Some);
        }
    }

    fn outside(&mut self) -> io::Result<Option<Outside>> {
        let Some(read) = self.lines.read()? else {
            if std::mem::take(&mut self.contained) {
                return Err(io::Error::other(InputError::Broken {
                    line: self.line,
                    message: "the file ends too early",
                }));
            }
            return Ok(None);
        };
        let (line, size) = (read.number, read.size);
        self.line = line;
        let broken = |rejection| {
            Outside::Found(Found::Broken {
                line,
                bytes: size,
                rejection,
            })
        };
        Ok(Some(match Step::from_line(&read, self.layout) {
            Step::Begin(name) => Outside::Begin(name, line),
            Step::End(name) if self.layout.container == Some(name.as_str()) => {
                self.contained = false;
                Outside::Nothing
            }
            Step::End(name) => {
                let message = format!("END:{} ends nothing", quoted(&name));
                broken(Rejection::new(RejectionCode::MalformedExport, message))
            }
            Step::Dropped => Outside::Nothing,
            Step::TooLong => broken(too_long("line", self.limit)),
            Step::Property(bytes) => match Property::parse(bytes) {
                Ok(property) => Outside::Found(Found::Property {
                    line,
                    bytes: size,
                    property,
                }),
                Err(rejection) => broken(rejection),
            },
        }))
    }

    fn component(&mut self, name: String, line: u64) -> io::Result<Found> {
        let mut open = Open::new(Component::new(name, line));
        self.lines.keeps_blank = false;
        loop {
            let Some(read) = self.lines.read()? else {
                open.refuse(open.unclosed("the file ends"));
                break;
            };
            let number = read.number;
            self.line = number;
            open.component.bytes += read.size;
            match Step::from_line(&read, self.layout) {
                Step::Begin(name) if self.layout.is_outermost(&name) => {
                    open.refuse(open.unclosed(&format!("line {number}")));
                    self.begun = Some((name, number));
                    break;
                }
                Step::End(name) if name == open.component.name => break,
                Step::End(name) if self.layout.is_outermost(&name) => {
                    self.contained &= self.layout.container != Some(name.as_str());
                    open.refuse(open.unclosed(&format!("line {number}")));
                    break;
                }
                Step::Begin(name) => open.begin(name, number),
                Step::End(_) => open.depth = open.depth.saturating_sub(1),
                Step::Dropped => open.after_dropped = true,
                Step::TooLong => open.refuse(too_long("line", self.limit).at(number)),
                Step::Property(bytes) => open.property(bytes, number),
            }
            if open.weight > self.limit {
                open.refuse(too_long("entry", self.limit));
            }
            // It stands at the beginning of a contact and says how the rest is folded.
            self.lines.keeps_blank |= open.is_of_version_two();
        }
        Ok(open.found())
    }
}

enum Outside {
    Begin(String, u64),
    Found(Found),
    Nothing,
}

impl Step<'_> {
    fn from_line<'b>(read: &Unfolded<'b>, layout: &Layout) -> Step<'b> {
        let line = read.bytes;
        let name = name_of(line).unwrap_or_default();
        let mut dropped = layout.dropped.iter();
        if dropped.any(|dropped| dropped.eq_ignore_ascii_case(name)) {
            return Step::Dropped;
        }
        if !read.is_whole {
            return Step::TooLong;
        }
        let bound = |line: &[u8]| {
            let value = line.splitn(2, |byte| *byte == b':').nth(1);
            String::from_utf8_lossy(value.unwrap_or_default())
                .trim()
                .to_ascii_uppercase()
        };
        if name.eq_ignore_ascii_case("BEGIN") {
            Step::Begin(bound(line))
        } else if name.eq_ignore_ascii_case("END") {
            Step::End(bound(line))
        } else {
            Step::Property(line)
        }
    }
}

impl Layout {
    fn is_outermost(&self, name: &str) -> bool {
        self.container == Some(name) || self.components.contains(&name)
    }
}

impl Open {
    fn new(component: Component) -> Self {
        Self {
            component,
            depth: 0,
            weight: 0,
            fault: None,
            after_dropped: false,
        }
    }

    fn begin(&mut self, name: String, line: u64) {
        self.depth += 1;
        if self.depth == 1 && self.fault.is_none() {
            self.weight += 256 + name.len();
            self.component.children.push(Component::new(name, line));
        }
    }

    fn property(&mut self, bytes: &[u8], line: u64) {
        let is_rest_of_dropped = self.after_dropped && name_of(bytes).is_none();
        if is_rest_of_dropped || self.fault.is_some() {
            return;
        }
        self.after_dropped = false;
        let property = match Property::parse(bytes) {
            Ok(property) => property,
            Err(rejection) => return self.refuse(rejection.at(line)),
        };
        let properties = match self.depth {
            0 => Some(&mut self.component.properties),
            1 => self
                .component
                .children
                .last_mut()
                .map(|child| &mut child.properties),
            _ => None,
        };
        if let Some(properties) = properties {
            self.weight += property.weight();
            properties.push(property);
        }
    }

    /// The first fault counts; what was read so far is of no use then.
    fn refuse(&mut self, rejection: Rejection) {
        self.fault.get_or_insert(rejection);
        self.component.properties = Vec::new();
        self.component.children = Vec::new();
        self.weight = 0;
    }

    fn unclosed(&self, before: &str) -> Rejection {
        let message = format!("{} is not ended before {before}", self.component.name);
        Rejection::new(RejectionCode::MalformedExport, message)
    }

    fn is_of_version_two(&self) -> bool {
        let last = self.component.properties.last();
        last.is_some_and(|last| last.name == "VERSION" && last.value.trim() == "2.1")
    }

    fn found(self) -> Found {
        match self.fault {
            None => Found::Component(self.component),
            Some(rejection) => Found::Broken {
                line: self.component.line,
                bytes: self.component.bytes,
                rejection,
            },
        }
    }
}

impl Rejection {
    /// Adds where inside of the component the fault is.
    fn at(mut self, line: u64) -> Self {
        self.message = format!("line {line}: {}", self.message);
        self
    }
}

fn too_long(what: &str, limit: usize) -> Rejection {
    let message = format!("the {what} is longer than {} MiB", limit >> 20);
    Rejection::new(RejectionCode::LineTooLong, message)
}
