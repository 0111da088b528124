//! The nodes that share the records, and one that is counted on no longer.

use super::answer;
use crate::table::{HandlerResult, RequestContext};

pub(super) async fn list(context: RequestContext) -> HandlerResult {
    answer(context.service, |service| Ok(service.store.nodes()?)).await
}

pub(super) async fn forget(context: RequestContext) -> HandlerResult {
    let name = context.part(0).to_owned();
    answer(context.service, move |service| {
        service.store.forget_node(&name)?;
        Ok(service.store.nodes()?)
    })
    .await
}
