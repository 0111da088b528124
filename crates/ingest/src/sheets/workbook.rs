//! Workbooks in the form xlsx: a zip of XML files, of which a sheet is read row by row. Everything that is held is bounded, whatever
//! the file says of itself.

mod styles;

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::rc::Rc;

use self::styles::Styles;
use super::{Cell, MOST_COLUMNS, MOST_SHEETS, Sheet, SheetRow, SheetRows, counted};
use crate::container::{Limits, Member, parts_of_file};
use crate::error::InputError;
use crate::importers::xml::{Cutter, Node, XmlCut};

/// The largest workbook, and the largest sheet in it, unpacked.
const LARGEST_FILE: u64 = 1 << 30;
const LARGEST_SHEET: u64 = 4 << 30;
/// What of it is held: its plan, its formats, and the texts that its cells share.
const LARGEST_PLAN: u64 = 16 << 20;
const SHARED_BYTES: usize = 128 << 20;
/// The longest row and the longest text of a cell, as they are written.
const LONGEST_ROW: usize = 16 << 20;
const LONGEST_TEXT: usize = 1 << 20;
/// As many as a sheet can have.
const MOST_ROWS: u64 = 1 << 20;

type Parts = HashMap<String, Member>;
type Part = BufReader<Box<dyn Read + Send>>;

pub(crate) struct Workbook {
    parts: Parts,
    /// The name of each sheet, and the part that holds it.
    sheets: Vec<(String, String)>,
    shared: Rc<SharedTexts>,
    styles: Rc<Styles>,
}

fn refused(why: impl Into<String>) -> InputError {
    InputError::UnknownFormat(why.into())
}

impl Workbook {
    pub(super) fn open(mut reader: Box<dyn BufRead>) -> Result<Self, InputError> {
        let mut copy = tempfile::NamedTempFile::new()?;
        let size = io::copy(&mut (&mut reader).take(LARGEST_FILE + 1), &mut copy)?;
        if size > LARGEST_FILE {
            return Err(refused("it is a workbook of more than 1 GiB"));
        }
        let limits = Limits {
            members: 20_000,
            member_bytes: LARGEST_SHEET,
            ..Limits::default()
        };
        // The file stays open without its name.
        let parts = parts_of_file(File::open(copy.path())?, &limits);
        let parts = parts.map_err(|error| refused(format!("it is a damaged workbook: {error}")))?;
        let parts: Parts = parts
            .into_iter()
            .map(|part| (part.inside().to_owned(), part))
            .collect();
        let main = main_part(&parts);
        let plan = plan(&parts, &main)?;
        let sheets = sheets(&parts, &main, &plan)?;
        let counts_from_1904 = plan
            .child("workbookPr")
            .and_then(|it| it.attribute("date1904"))
            .is_some_and(|it| it == "1" || it == "true");
        let folder = folder_of(&main);
        let styles = match held(&parts, &format!("{folder}styles.xml"))? {
            Some(xml) => Styles::parse(&xml, counts_from_1904),
            None => Styles::default(),
        };
        let shared = SharedTexts::of_part(parts.get(&format!("{folder}sharedStrings.xml")))?;
        Ok(Self {
            parts,
            sheets,
            shared: Rc::new(shared),
            styles: Rc::new(styles),
        })
    }

    pub(super) fn sheets(&self) -> Vec<Sheet> {
        let names = self.sheets.iter().map(|(name, _)| name.clone());
        names
            .map(|name| Sheet {
                name,
                ..Sheet::default()
            })
            .collect()
    }

    pub(super) fn rows(&self, at: usize) -> Result<WorkbookRows, InputError> {
        let part = self
            .sheets
            .get(at)
            .and_then(|(_, part)| self.parts.get(part));
        let part = part.ok_or_else(|| refused("a sheet of the workbook is missing"))?;
        Ok(WorkbookRows {
            cutter: cutter(part, &["row"])?,
            shared: Rc::clone(&self.shared),
            styles: Rc::clone(&self.styles),
            number: 0,
            errors: 0,
            missing: 0,
        })
    }
}

fn cutter(part: &Member, pieces: &'static [&'static str]) -> Result<Cutter<Part>, InputError> {
    let cut = XmlCut {
        pieces,
        without: &[],
    };
    let reader = BufReader::with_capacity(64 * 1024, part.open()?);
    Ok(Cutter::new(reader, cut))
}

/// A part that is held whole, if it is there.
fn held(parts: &Parts, name: &str) -> Result<Option<Vec<u8>>, InputError> {
    let Some(part) = parts.get(name) else {
        return Ok(None);
    };
    let mut bytes = Vec::new();
    part.open()?
        .take(LARGEST_PLAN + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST_PLAN {
        return Err(refused(format!("its part {name} is larger than 16 MiB")));
    }
    Ok(Some(bytes))
}

fn folder_of(part: &str) -> &str {
    part.rfind('/')
        .and_then(|at| part.get(..=at))
        .unwrap_or_default()
}

/// Where the plan of the workbook stands.
fn main_part(parts: &Parts) -> String {
    let relations = held(parts, "_rels/.rels").ok().flatten();
    let relations = relations.and_then(|xml| Node::parse(&xml).ok());
    let main = relations.and_then(|relations| {
        let found = relations.named("Relationship").find_map(|one| {
            let is_main = one.attribute("Type")?.ends_with("/officeDocument");
            one.attribute("Target").filter(|_| is_main)
        });
        found.map(|target| target.trim_start_matches('/').to_owned())
    });
    main.unwrap_or_else(|| "xl/workbook.xml".to_owned())
}

fn plan(parts: &Parts, main: &str) -> Result<Node, InputError> {
    let xml = held(parts, main)?;
    let xml = xml.ok_or_else(|| refused("it is a workbook without a list of its sheets"))?;
    let broken = |_| refused("the list of its sheets is damaged");
    Node::parse(&xml).map_err(broken)
}

fn sheets(parts: &Parts, main: &str, plan: &Node) -> Result<Vec<(String, String)>, InputError> {
    let (folder, file) = main.split_at(folder_of(main).len());
    let relations = held(parts, &format!("{folder}_rels/{file}.rels"))?;
    let relations = relations.and_then(|xml| Node::parse(&xml).ok());
    let relations = relations.unwrap_or_default();
    let targets: HashMap<&str, &str> = relations
        .named("Relationship")
        .filter(|one| {
            let kind = one.attribute("Type").unwrap_or_default();
            kind.ends_with("/worksheet")
        })
        .filter_map(|one| Some((one.attribute("Id")?, one.attribute("Target")?)))
        .collect();
    let listed = plan.child("sheets").into_iter().flat_map(Node::children);
    let sheets = listed.filter_map(|sheet| {
        let target = *targets.get(sheet.attribute("id")?)?;
        let part = match target.strip_prefix('/') {
            Some(whole) => whole.to_owned(),
            None => format!("{folder}{target}"),
        };
        let name = sheet.attribute("name")?.chars().take(100).collect();
        parts.contains_key(&part).then_some((name, part))
    });
    let sheets: Vec<(String, String)> = sheets.take(MOST_SHEETS).collect();
    if sheets.is_empty() {
        return Err(refused("it is a workbook without a sheet that can be read"));
    }
    Ok(sheets)
}

/// The texts that cells refer to by their number, one behind the other.
#[derive(Debug, Default)]
struct SharedTexts {
    all: String,
    ends: Vec<usize>,
}

impl SharedTexts {
    fn of_part(part: Option<&Member>) -> Result<Self, InputError> {
        match part {
            Some(part) => Self::read(cutter(part, &["si"])?, SHARED_BYTES),
            None => Ok(Self::default()),
        }
    }

    fn read(mut cutter: Cutter<impl BufRead>, most: usize) -> Result<Self, InputError> {
        let mut texts = Self::default();
        while let Some(fits) = cutter.take(LONGEST_TEXT)? {
            if fits && let Ok(node) = Node::parse(cutter.taken()) {
                texts.all.push_str(&text_of(&node));
            }
            texts.ends.push(texts.all.len());
            // Each of them takes room, also if it is empty.
            if texts.all.len() + 8 * texts.ends.len() > most {
                let why = "the texts of its cells are more than 128 MiB; save its sheets as csv";
                return Err(refused(why));
            }
        }
        Ok(texts)
    }

    fn get(&self, at: usize) -> Option<&str> {
        let to = *self.ends.get(at)?;
        let from = at.checked_sub(1).and_then(|at| self.ends.get(at));
        self.all.get(from.copied().unwrap_or_default()..to)
    }
}

/// A text with or without formatted parts, and without what tells how to speak it.
fn text_of(node: &Node) -> String {
    let mut text = String::new();
    for child in node.children() {
        match child.name.as_str() {
            "t" => text.push_str(&child.text()),
            "r" => child
                .named("t")
                .for_each(|part| text.push_str(&part.text())),
            _ => {}
        }
    }
    unescaped(&text)
}

/// Characters that XML cannot hold are written `_x000D_`.
fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("_x") {
        plain.push_str(before);
        let code = after.get(..5).and_then(|code| code.strip_suffix('_'));
        let code = code.and_then(|code| u32::from_str_radix(code, 16).ok());
        if let Some(character) = code.and_then(char::from_u32) {
            plain.push(character);
            rest = after.get(5..).unwrap_or_default();
        } else {
            plain.push_str("_x");
            rest = after;
        }
    }
    plain.push_str(rest);
    plain
}

pub(crate) struct WorkbookRows {
    cutter: Cutter<Part>,
    shared: Rc<SharedTexts>,
    styles: Rc<Styles>,
    number: u64,
    /// Cells that hold an error instead of a value.
    errors: u64,
    /// Cells whose text is not there.
    missing: u64,
}

impl WorkbookRows {
    fn cell(&mut self, node: &Node) -> Cell {
        let value = node.child("v").map(Node::text).unwrap_or_default();
        let text = match node.attribute("t").unwrap_or("n") {
            "s" => {
                let at = value.trim().parse().ok();
                let text = at.and_then(|at| self.shared.get(at));
                self.missing += u64::from(text.is_none());
                text.unwrap_or_default().to_owned()
            }
            "inlineStr" => node.child("is").map(text_of).unwrap_or_default(),
            "str" => unescaped(&value),
            "b" if value.trim() == "1" => "true".to_owned(),
            "b" if !value.trim().is_empty() => "false".to_owned(),
            "e" => {
                self.errors += u64::from(!value.is_empty());
                String::new()
            }
            "d" => value,
            _ => {
                let style = node.attribute("s").and_then(|style| style.parse().ok());
                return self.styles.cell(value.trim(), style.unwrap_or_default());
            }
        };
        Cell {
            text,
            is_number: false,
        }
    }

    fn row(&mut self, node: &Node) -> SheetRow {
        let number = node.attribute("r").and_then(|number| number.parse().ok());
        self.number = number.unwrap_or(self.number + 1);
        let mut row = SheetRow {
            number: self.number,
            ..SheetRow::default()
        };
        for child in node.named("c") {
            let at = child.attribute("r").and_then(column_number);
            let at = at.unwrap_or(row.cells.len());
            let cell = self.cell(child);
            if cell.text.is_empty() {
                continue;
            }
            if at >= MOST_COLUMNS {
                row.fault = Some("the row has more than 2,000 columns");
                break;
            }
            if at >= row.cells.len() {
                row.cells.resize(at + 1, Cell::default());
            }
            if let Some(place) = row.cells.get_mut(at) {
                *place = cell;
            }
        }
        row
    }
}

/// The column of a cell such as `AB12`, from 0.
fn column_number(reference: &str) -> Option<usize> {
    let letters = reference.bytes().take_while(u8::is_ascii_alphabetic);
    let mut number = 0_usize;
    for letter in letters.take(4) {
        number = number * 26 + usize::from(letter.to_ascii_uppercase() - b'A' + 1);
    }
    number.checked_sub(1)
}

impl SheetRows for WorkbookRows {
    fn next_row(&mut self) -> Result<Option<SheetRow>, InputError> {
        let Some(fits) = self.cutter.take(LONGEST_ROW)? else {
            return Ok(None);
        };
        if self.number >= MOST_ROWS {
            return Err(refused("a sheet has more rows than one can have"));
        }
        let node = fits.then(|| Node::parse(self.cutter.taken()));
        match node {
            Some(Ok(node)) => Ok(Some(self.row(&node))),
            broken => {
                self.number += 1;
                let fault = match broken {
                    None => "the row is longer than 16 MiB",
                    Some(_) => "the row is no XML that can be read",
                };
                Ok(Some(SheetRow {
                    number: self.number,
                    cells: Vec::new(),
                    fault: Some(fault),
                }))
            }
        }
    }

    fn left_out(&self) -> Vec<String> {
        let errors = counted(
            self.errors,
            "holds an error such as #N/A and counts as empty",
            "hold errors such as #N/A and count as empty",
        );
        let missing = counted(
            self.missing,
            "refers to a text that is not there and counts as empty",
            "refer to texts that are not there and count as empty",
        );
        errors.into_iter().chain(missing).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_cells_share_are_held_up_to_a_limit() {
        let read = |xml: &str, most| {
            let pieces = &["si"];
            let cut = XmlCut {
                pieces,
                without: &[],
            };
            let reader = io::Cursor::new(xml.as_bytes().to_vec());
            SharedTexts::read(Cutter::new(reader, cut), most)
        };
        let texts = read("<sst><si><t>a</t></si><si/><si><t>bc</t></si></sst>", 1_000).unwrap();
        let all: Vec<_> = (0..4).map(|at| texts.get(at)).collect();
        assert_eq!(all, [Some("a"), Some(""), Some("bc"), None]);
        let many = format!("<sst>{}</sst>", "<si/>".repeat(1_000));
        let error = read(&many, 1_000).unwrap_err().to_string();
        assert!(error.contains("save its sheets as csv"), "{error}");
    }

    #[test]
    fn columns_and_escapes_are_read() {
        for (reference, column) in [
            ("A1", Some(0)),
            ("Z9", Some(25)),
            ("AA1", Some(26)),
            ("xfd1", Some(16383)),
            ("1", None),
            ("", None),
        ] {
            assert_eq!(column_number(reference), column, "{reference}");
        }
        assert_eq!(
            unescaped("a_x000D_b_x_c_xZZZZ_d_x0041_"),
            "a\rb_x_c_xZZZZ_dA"
        );
    }
}
