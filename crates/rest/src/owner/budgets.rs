//! How much may be read under a grant in a day, and grants that are paused.

use contract::id::GrantId;
use grants::budget;

use super::wire::{BudgetChange, PauseChange};
use super::{OwnerResult, answer, json_body};
use crate::service::Service;
use crate::table::{HandlerResult, RequestContext};

/// The grants of a grant or package.
fn grants_of(service: &Service, id: &str) -> OwnerResult<Vec<GrantId>> {
    Ok(grants::show(&*service.store, id, service.now(), 0)?
        .overview
        .grant_ids)
}

pub(super) async fn change(mut context: RequestContext) -> HandlerResult {
    let change: BudgetChange = json_body(&mut context).await?;
    answer(context.service, move |service| {
        for grant in grants_of(service, &change.id)? {
            budget::set_budget(&*service.store, &grant, change.budget, service.now())?;
        }
        Ok(())
    })
    .await
}

pub(super) async fn pause(mut context: RequestContext) -> HandlerResult {
    let change: PauseChange = json_body(&mut context).await?;
    answer(context.service, move |service| {
        let (store, now) = (&*service.store, service.now());
        for grant in grants_of(service, &change.id)? {
            if change.is_paused {
                budget::pause(store, &grant, "the owner paused it", now)?;
            } else {
                budget::resume(store, &grant, now)?;
            }
        }
        Ok(())
    })
    .await
}
