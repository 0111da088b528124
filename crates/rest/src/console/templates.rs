//! Templates on the pages that grant: choosing one fills the form in, and a selection can be kept as one.

use contract::id::ConnectionId;
use grants::{ChosenStream, TemplateError};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::choice::{self, SourceRow};
use super::format::label;
use crate::form::Form;
use crate::problem::Problem;
use crate::service::Service;

pub(super) struct TemplateRow {
    pub(super) name: String,
    /// The name within an address.
    pub(super) param: String,
    pub(super) chosen: bool,
    /// The connections that came after it was saved, by their names; they are no part of it.
    pub(super) added: String,
}

pub(super) fn rows(service: &Service, form: &Form) -> Result<Vec<TemplateRow>, Problem> {
    let offered = grants::templates(&*service.store, service.now());
    let offered =
        offered.map_err(|error| Problem::internal("templates could not be read", &error))?;
    let name_of = |id: &ConnectionId| {
        let known = service.store.connection(id);
        known.map_or_else(|| id.to_string(), |one| label(&one.display_name))
    };
    let rows = offered.into_iter().map(|offered| TemplateRow {
        chosen: form.value("template") == offered.template.name,
        param: utf8_percent_encode(&offered.template.name, NON_ALPHANUMERIC).to_string(),
        name: label(&offered.template.name),
        added: offered
            .added_since
            .iter()
            .map(name_of)
            .collect::<Vec<_>>()
            .join(", "),
    });
    Ok(rows.collect())
}

/// The form filled in by the template it names, as far as what it selects is offered.
pub(super) fn applied(
    service: &Service,
    form: Form,
    offered: &[SourceRow],
) -> Result<Form, Problem> {
    let name = form.value("template");
    if name.is_empty() {
        return Ok(form);
    }
    let template = grants::template(&*service.store, name, service.now()).map_err(problem)?;
    let mut pairs: Vec<(String, String)> = form.pairs().to_vec();
    for chosen in template.streams {
        let value = format!("{}/{}", chosen.connection_id, chosen.stream);
        let mut streams = offered.iter().flat_map(|source| &source.streams);
        let Some(row) = streams.find(|row| row.value == value) else {
            continue;
        };
        let is_offered = |field: &String| {
            let value = format!("{value}/{field}");
            row.fields.iter().any(|one| one.value == value)
        };
        let fields = chosen.fields.map(|mut fields| {
            fields.retain(is_offered);
            fields
        });
        if fields.as_ref().is_some_and(Vec::is_empty) {
            continue;
        }
        let mut redact = chosen.redact;
        redact.retain(|field, _| is_offered(field));
        pairs.extend(choice::pairs_of(&ChosenStream {
            fields,
            redact,
            ..chosen
        })?);
    }
    Ok(Form::from_pairs(pairs))
}

/// Keeps what the form ticks, if it names a template to keep it as.
pub(super) fn save(service: &Service, form: &Form) -> Result<(), Problem> {
    let name = form.value("save_as").trim();
    if name.is_empty() {
        return Ok(());
    }
    let offered = choice::rows(service, None, form)?;
    let ticked = choice::ticked(form, &offered);
    grants::save_template(&*service.store, name, ticked, service.now()).map_err(problem)?;
    Ok(())
}

fn problem(error: TemplateError) -> Problem {
    match error {
        TemplateError::Store(error) => Problem::internal("templates could not be read", &error),
        other => Problem::new(
            contract::error::ErrorCode::InvalidRequest,
            other.to_string(),
        ),
    }
}
