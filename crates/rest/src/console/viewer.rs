//! Who looks at a page that shows records: the owner, or the owner as a grant sees them (`?as=GRANT`). Both read through
//! the same contract as every client.

use std::sync::Arc;

use contract::grant::Authority;
use grants::Overview;
use read::{Disclosures, GrantReader};

use super::address::Address;
use super::format::label;
use super::frame::{Frame, Section, SeenAs};
use super::session;
use crate::owner::blocking;
use crate::params::Params;
use crate::problem::Problem;
use crate::service::Service;
use crate::table::RequestContext;

pub(super) struct Viewer {
    pub(super) service: Arc<Service>,
    pub(super) reader: GrantReader,
    pub(super) frame: Frame,
    pub(super) params: Params,
    /// The address of this page as it was asked for.
    pub(super) here: Address,
}

impl Viewer {
    /// The signed-in owner, or the redirect to sign in. The future borrows nothing of the request, whose body is not
    /// `Sync`.
    pub(super) fn enter(
        context: &RequestContext,
        section: Section,
    ) -> impl Future<Output = Result<Self, Problem>> + Send + use<> {
        let session = session::signed_in(context);
        let service = Arc::clone(&context.service);
        let here = Address::parse(&context.target);
        let params = here.params();
        let told = Arc::clone(&context.seen_as);
        async move {
            let session = session.await?;
            let params = params?;
            let mut frame = Frame::new(&session, section);
            let mut settings = service.reader_settings.clone();
            let authority = match params.text("as") {
                None => Authority::Owner,
                Some(id) => {
                    // Nothing reaches the client, so nothing is logged as disclosed to it, nor counted.
                    let budgets = settings.disclosures.take();
                    let seen_as = seen_as(&service, id.to_owned(), &here, budgets);
                    let (authority, seen_as) = seen_as.await?;
                    frame.seen_as = Some(told.get_or_init(|| seen_as).clone());
                    authority
                }
            };
            Ok(Self {
                reader: GrantReader::new(service.store.clone(), authority, settings),
                service,
                frame,
                params,
                here,
            })
        }
    }

    pub(super) fn is_owner(&self) -> bool {
        self.frame.seen_as.is_none()
    }

    /// A page of ours, seen in the same way as this one.
    pub(super) fn address(&self, path: &str) -> Address {
        self.seen(Address::new(path))
    }

    pub(super) fn record(&self, connection: &str, stream: &str, key: &str) -> String {
        self.seen(Address::record(connection, stream, key))
            .to_string()
    }

    pub(super) fn seen(&self, address: Address) -> Address {
        match &self.frame.seen_as {
            None => address,
            Some(seen_as) => address.with("as", &seen_as.id),
        }
    }
}

async fn seen_as(
    service: &Arc<Service>,
    id: String,
    here: &Address,
    budgets: Option<Arc<dyn Disclosures>>,
) -> Result<(Authority, SeenAs), Problem> {
    let leave = here.clone().without(&["as"]).to_string();
    blocking(Arc::clone(service), move |service| {
        let authority = grants::authority_of(&*service.store, &id, service.now());
        let authority = authority.map_err(|error| Problem::from(error.to_read_error()))?;
        let shown = grants::show(&*service.store, &id, service.now(), 0);
        let shown = shown.map_err(|error| super::grant::problem(&error))?;
        let granted = shown.overview.grant_ids.iter().cloned().collect();
        let spent = budgets.and_then(|budgets| budgets.admit(&granted).err());
        let refused = spent.map(|refusal| refusal.message);
        let seen_as = SeenAs {
            refused: label(&refused.unwrap_or_default()),
            client: client(&shown.overview),
            id,
            leave,
        };
        Ok((authority, seen_as))
    })
    .await
}

/// What a client is called.
pub(super) fn client(overview: &Overview) -> String {
    let name = overview.client_name.as_deref();
    label(name.unwrap_or(overview.client_id.as_str()))
}
