//! What clients ask for beyond their grants, and what the owner decides.

use contract::error::ErrorCode;
use grants::step_up::{self, Ask, AskError};

use super::wire::{AskDecision, AskingChange};
use super::{OwnerProblem, answer, json_body};
use crate::problem::Problem;
use crate::table::{HandlerResult, RequestContext};

pub(super) async fn list(context: RequestContext) -> HandlerResult {
    answer(context.service, |service| {
        let (store, now) = (&*service.store, service.now());
        let asks = step_up::open_asks(store, now)?.into_iter();
        let proposals = asks.map(|Ask { id, .. }| step_up::proposal(store, &id, now));
        let proposals: Result<Vec<_>, AskError> = proposals.collect();
        Ok(proposals?)
    })
    .await
}

pub(super) async fn decide(mut context: RequestContext) -> HandlerResult {
    let decision: AskDecision = json_body(&mut context).await?;
    answer(context.service, move |service| {
        let (store, now) = (&*service.store, service.now());
        if let (Some(allowance), Some(digest)) = (decision.allowance, decision.digest) {
            let allowed = step_up::allow(store, &decision.id, &digest, allowance, now)?;
            return Ok(Some(allowed));
        }
        step_up::deny(store, &decision.id, now)?;
        Ok(None)
    })
    .await
}

pub(super) async fn change(mut context: RequestContext) -> HandlerResult {
    let change: AskingChange = json_body(&mut context).await?;
    answer(context.service, move |service| {
        let (store, now) = (&*service.store, service.now());
        let shown = grants::show(store, &change.id, now, 0)?;
        for grant in &shown.overview.grant_ids {
            step_up::set_asking(store, grant, change.may_ask, now)?;
        }
        Ok(())
    })
    .await
}

impl From<AskError> for OwnerProblem {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Store(error) => error.into(),
            AskError::Unknown => Problem::new(ErrorCode::NotFound, error.to_string()).into(),
            AskError::Nothing | AskError::Changed => {
                super::invalid_request(error.to_string()).into()
            }
        }
    }
}
