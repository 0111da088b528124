//! Citations: made for every text that is cut out of a field, and checked later against the record as the row sees it then.

use std::borrow::Cow;
use std::ops::Range;

use contract::citation::{Citation, CitationCheck, CitationStatus, CitedField, VerifyQuery};
use contract::declaration::FieldDeclaration;
use contract::grant::{Grant, GrantedAuthority, Redaction};
use contract::id::GrantId;
use contract::json::{self, RecordBody};
use contract::key::RecordKey;
use contract::seal::HashKey;
use contract::search::{EvidenceExcerpt, Passage};
use contract::window::{self, Window, WindowSelector};
use contract::wire::OrderedMap;
use store::records::Revision;

use crate::conditions::Conditions;
use crate::disclosure::Shown;
use crate::enforce::Row;
use crate::failure::Result;
use crate::project::{Shape, admitted, key_of};
use crate::reader::{Answer, Session};
use crate::visible_history::last_change;

/// Revisions of a record that are read at a time.
const REVISIONS: usize = 64;

/// A record as its reader sees it, whose texts can be cited.
pub(crate) struct Citable<'a> {
    pub(crate) session: &'a Session,
    pub(crate) row: &'a Row,
    pub(crate) key: &'a RecordKey,
}

impl Citable<'_> {
    fn field<'f>(&'f self, field: &'f str, grant: Option<&'f str>) -> CitedField<'f> {
        CitedField {
            grant,
            connection: self.row.connection().id.as_str(),
            stream: self.row.stream().name.as_str(),
            record: self.key.as_str(),
            field,
        }
    }

    /// Cites characters of a text that stands in a field.
    pub(crate) fn cite(&self, field: &str, text: &str, chars: Range<u64>) -> String {
        let field = self.field(field, self.row.grant_id().map(GrantId::as_str));
        let key = &self.session.settings.sealing_key;
        field.cite(key, text, chars).to_string()
    }

    pub(crate) fn cite_excerpt(&self, body: &RecordBody, excerpt: &mut EvidenceExcerpt) {
        let range = excerpt.text_start_chars.zip(excerpt.text_end_chars);
        if let (Some(text), Some((start, end))) = (body.text(&excerpt.field_path), range) {
            excerpt.cite = Some(self.cite(&excerpt.field_path, &text, start..end));
        }
    }

    pub(crate) fn cite_passage(&self, body: &RecordBody, passage: &mut Passage) {
        if let Some(text) = body.text(&passage.field_path) {
            let start = passage.text_start_chars.unwrap_or(0);
            let count = u64::try_from(passage.text.chars().count()).unwrap_or(u64::MAX);
            let chars = start..start.saturating_add(count);
            passage.cite = Some(self.cite(&passage.field_path, &text, chars));
        }
    }

    /// Cites the texts of a record that is shown whole: those that are searched, and its body.
    pub(crate) fn cite_texts(
        &self,
        shape: &Shape,
        body: &RecordBody,
    ) -> Option<OrderedMap<String>> {
        let shown = shape.names(self.row);
        let searched = self.row.lexical_fields();
        let is_text = |field: &&FieldDeclaration| {
            field.role.as_deref() == Some("body") || searched.contains(&field.name)
        };
        let fields = self.row.fields().filter(is_text);
        let names = fields.map(|field| field.name.as_str());
        let names = names.filter(|name| shown.iter().any(|one| one == name));
        let cited = names.filter_map(|name| {
            let text = body.text(name).filter(|text| !text.is_empty())?;
            let count = u64::try_from(text.chars().count()).ok()?;
            Some((name.to_owned(), self.cite(name, &text, 0..count)))
        });
        let cited: OrderedMap<String> = cited.collect();
        (!cited.is_empty()).then_some(cited)
    }
}

/// What a citation was found to be of.
struct Found {
    row: Row,
    key: RecordKey,
    field: String,
    grant: Option<GrantId>,
    /// What the grant shows of the field, where the reader sees more.
    part: Option<(Redaction, HashKey)>,
    citation: Citation,
}

pub(crate) fn verify(session: &Session, query: &VerifyQuery) -> Answer<CitationCheck> {
    let Some(found) = find(session, query)? else {
        let check = CitationCheck::new(CitationStatus::NotYoursToKnow);
        return Ok((check, Shown::default()));
    };
    let (row, key) = (&found.row, &found.key);
    let mut shown = Shown::for_row(row);
    let stored = session.store.get(&row.stream_ref(), key)?;
    let now = stored.map(|stored| admitted(row, key, stored.body));
    let Some(now) = now.transpose()?.flatten() else {
        shown.record(row, key);
        return Ok((CitationCheck::new(CitationStatus::Gone), shown));
    };
    let mut check = CitationCheck::new(CitationStatus::Current);
    check.window = found.quoted(session, &now);
    if check.window.is_none() {
        check.status = CitationStatus::Changed;
        if let Some((window, emitted_at)) = found.quoted_before(session)? {
            check.window = Some(window);
            check.emitted_at = Some(emitted_at);
        }
    }
    check.field_path = Some(found.field.clone());
    shown.record(row, key);
    shown.fields([&found.field]);
    Ok((check, shown))
}

/// The field and grant that a citation was made for, among those the reader has. Nothing is looked up of the record.
fn find(session: &Session, query: &VerifyQuery) -> Result<Option<Found>> {
    let Some(citation) = Citation::parse(&query.citation) else {
        return Ok(None);
    };
    let named = query.connection_id.as_deref();
    let rows = session.reach().rows_of(query.stream.as_str());
    let rows = rows.into_iter();
    for row in rows.filter(|row| named.is_none_or(|id| row.connection().id.as_str() == id)) {
        let Ok(key) = key_of(&row, &query.record_id) else {
            continue;
        };
        let fields: Vec<&str> = match &query.field {
            Some(field) if row.is_owner() || row.sees_member(field.as_str()) => {
                vec![field.as_str()]
            }
            Some(_) => Vec::new(),
            None => row.fields().map(|field| field.name.as_str()).collect(),
        };
        let citable = Citable {
            session,
            row: &row,
            key: &key,
        };
        let made_for = |grant: Option<&str>| {
            let key = &session.settings.sealing_key;
            let mut fields = fields.iter();
            fields.find(|field| citable.field(field, grant).made(key, &citation))
        };
        for grant in grants_of(session, &row)? {
            if let Some(field) = made_for(grant.as_ref().map(GrantId::as_str)) {
                let field = (*field).to_owned();
                return Ok(Some(Found {
                    part: part_shown(session, &row, grant.as_ref(), &field)?,
                    row,
                    key,
                    field,
                    grant,
                    citation,
                }));
            }
        }
    }
    Ok(None)
}

/// The grants whose citations a row may check: its own, and for the owner every one there was, and none.
fn grants_of(session: &Session, row: &Row) -> Result<Vec<Option<GrantId>>> {
    if !row.is_owner() {
        return Ok(vec![row.grant_id().cloned()]);
    }
    let grants = session.store.grants()?.into_iter();
    Ok([None]
        .into_iter()
        .chain(grants.map(|grant| Some(grant.id)))
        .collect())
}

/// The part of a field that a grant shows, for the owner, who sees all of it.
fn part_shown(
    session: &Session,
    row: &Row,
    grant: Option<&GrantId>,
    field: &str,
) -> Result<Option<(Redaction, HashKey)>> {
    let Some(grant) = grant.filter(|_| row.is_owner()) else {
        return Ok(None);
    };
    let part = session.store.grant(grant)?.and_then(|stored| {
        let granted: Grant = serde_json::from_str(&stored.document).ok()?;
        let granted = GrantedAuthority::from_grant(&granted).ok()?;
        let row = granted.row(row.connection().id.as_str(), row.stream().name.as_str())?;
        let mut parts = row.redact.iter();
        let (_, part) = parts.find(|(name, _)| name.as_str() == field)?;
        Some(*part)
    });
    let key = &session.settings.sealing_key;
    Ok(part.map(|part| (part, key.hash_key(grant.as_str()))))
}

impl Found {
    /// The texts of the field that may have been cited: all of it, and the part that the grant shows. A field that is granted in part
    /// may be allowed whole for a while.
    fn texts(&self, body: &RecordBody) -> impl Iterator<Item = String> {
        let part = self.part.as_ref().and_then(|(part, key)| {
            let shown = part.apply(body.get(&self.field), key)?;
            json::decode_string(&shown).map(Cow::into_owned)
        });
        let whole = body.text(&self.field).map(Cow::into_owned);
        whole.into_iter().chain(part)
    }

    /// The cited characters, if the field has the text that was cited.
    fn quoted(&self, session: &Session, body: &RecordBody) -> Option<Window> {
        let citable = Citable {
            session,
            row: &self.row,
            key: &self.key,
        };
        let field = citable.field(&self.field, self.grant.as_ref().map(GrantId::as_str));
        let key = &session.settings.sealing_key;
        let mut texts = self.texts(body);
        let text = texts.find(|text| field.says(key, &self.citation, text))?;
        let chars = self.citation.chars();
        let number = |number: u64| usize::try_from(number).ok();
        let selector = WindowSelector {
            offset_chars: number(chars.start),
            limit_chars: number((chars.end - chars.start).max(1)),
            ..WindowSelector::default()
        };
        window::cut(&text, &selector.request().ok()?).ok()
    }

    /// The same in an earlier version that the row would show, and when the record became what the row sees of that version.
    fn quoted_before(&self, session: &Session) -> Result<Option<(Window, String)>> {
        let stream = self.row.stream_ref();
        let mut upto = i64::MAX.cast_unsigned();
        loop {
            let revisions = session.store.history(&stream, &self.key, upto, REVISIONS)?;
            let Some(oldest) = revisions.last().map(|revision| revision.version) else {
                return Ok(None);
            };
            for Revision {
                version,
                emitted_at,
                body,
                ..
            } in revisions
            {
                let body = body.map(|body| admitted(&self.row, &self.key, body));
                let body = body.transpose()?.flatten();
                if let Some(window) = body.and_then(|body| self.quoted(session, &body)) {
                    let since = self.seen_since(session, version, emitted_at)?;
                    return Ok(Some((window, since)));
                }
            }
            upto = oldest.saturating_sub(1);
        }
    }

    /// When the record became what the row sees of a version: later ones may differ from it in hidden fields alone.
    fn seen_since(&self, session: &Session, version: u64, emitted_at: String) -> Result<String> {
        if self.row.is_owner() {
            return Ok(emitted_at);
        }
        let all = Conditions::default();
        let change = last_change(session, &self.row, &all, &self.key, version)?;
        Ok(change.map_or(emitted_at, |change| change.emitted_at))
    }
}
