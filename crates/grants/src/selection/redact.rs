//! Redactions in a request: read from authorization details or flags, checked against a stream.

use std::collections::BTreeMap;

use contract::document::{Mistakes, Node};
use contract::grant::Redaction;
use contract::id::FieldName;

use super::resolve::DeclaredStream;
use super::{RedactionRequest, known};

/// The member `redact`: an object with how much is shown of each field.
pub(super) fn read(node: &Node, mistakes: &mut Mistakes) -> Option<Vec<RedactionRequest>> {
    let members = node.object(mistakes)?.members();
    if members.is_empty() {
        mistakes.add(&node.path, "is empty; name a field or leave it out");
    }
    let mut requests = Vec::new();
    for (field, node) in members {
        let how = node.text(mistakes)?;
        requests.extend(request(&node.path, &field, &how, mistakes));
    }
    Some(requests)
}

/// Flags and forms: `field=how`.
pub(super) fn from_flags(
    flag: &str,
    texts: &[String],
    mistakes: &mut Mistakes,
) -> Option<Vec<RedactionRequest>> {
    let mut requests = Vec::new();
    for text in texts {
        if let Some((field, how)) = text.rsplit_once('=') {
            requests.extend(request(flag, field, how, mistakes));
        } else {
            let rule =
                format!("{text:?} does not say how; write 'field=domain' or 'field=first:20'");
            mistakes.add(flag, rule);
        }
    }
    (!texts.is_empty()).then_some(requests)
}

pub(super) fn request(
    path: &str,
    field: &str,
    how: &str,
    mistakes: &mut Mistakes,
) -> Option<RedactionRequest> {
    match how.parse() {
        Ok(how) => Some(RedactionRequest {
            path: path.to_owned(),
            field: field.to_owned(),
            how,
        }),
        Err(rule) => {
            mistakes.add(path, rule);
            None
        }
    }
}

/// The redactions as they are granted. Each must be of a granted field, and fit what the field holds.
pub(super) fn checked(
    asked: &[RedactionRequest],
    DeclaredStream { stream, .. }: DeclaredStream<'_>,
    granted: &[FieldName],
    mistakes: &mut Mistakes,
) -> BTreeMap<FieldName, Redaction> {
    let mut redactions = BTreeMap::new();
    for RedactionRequest { path, field, how } in asked {
        let Some(name) = granted.iter().find(|name| name.as_str() == field) else {
            let names = known(granted.iter().map(FieldName::as_str));
            mistakes.add(path, format!("the field {field:?} is not granted; {names}"));
            continue;
        };
        let problem = if !stream.selection.fields {
            Some("is part of a stream that is granted whole or not at all".to_owned())
        } else if stream.primary_key.contains(name) {
            Some("is part of the key, which stands in the id of every record".to_owned())
        } else {
            let kind = stream.field(field).map(|declared| declared.kind);
            let fits = kind.is_some_and(|kind| how.fits(kind));
            (!fits).then(|| format!("cannot be shown as {how}: it does not hold such values"))
        };
        if let Some(problem) = problem {
            mistakes.add(path, format!("the field {field:?} {problem}"));
        } else if redactions.insert(name.clone(), *how).is_some() {
            mistakes.add(
                path,
                format!("the field {field:?} is redacted a second time"),
            );
        }
    }
    redactions
}
