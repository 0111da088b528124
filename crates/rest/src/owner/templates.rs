//! Templates: selections that the owner keeps by name.

use contract::error::ErrorCode;
use grants::TemplateError;

use super::wire::NewTemplate;
use super::{OwnerProblem, answer, invalid_request, json_body};
use crate::problem::Problem;
use crate::table::{HandlerResult, RequestContext};

pub(super) async fn list(context: RequestContext) -> HandlerResult {
    answer(context.service, |service| {
        Ok(grants::templates(&*service.store, service.now())?)
    })
    .await
}

pub(super) async fn save(mut context: RequestContext) -> HandlerResult {
    let new: NewTemplate = json_body(&mut context).await?;
    answer(context.service, move |service| {
        let (store, now) = (&*service.store, service.now());
        Ok(grants::save_template_from(
            store, &new.name, &new.from, now,
        )?)
    })
    .await
}

pub(super) async fn remove(context: RequestContext) -> HandlerResult {
    let name = context.params.text("name").unwrap_or_default().to_owned();
    answer(context.service, move |service| {
        Ok(grants::remove_template(
            &*service.store,
            &name,
            service.now(),
        )?)
    })
    .await
}

impl From<TemplateError> for OwnerProblem {
    fn from(error: TemplateError) -> Self {
        match error {
            TemplateError::Store(error) => error.into(),
            TemplateError::Show(error) => error.into(),
            TemplateError::Unknown(_) => {
                Problem::new(ErrorCode::NotFound, error.to_string()).into()
            }
            TemplateError::Name(_) | TemplateError::Empty => {
                invalid_request(error.to_string()).into()
            }
        }
    }
}
