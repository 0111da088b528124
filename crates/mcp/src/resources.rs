//! Resources: handles as inputs, for hosts that read resources. Everything they give is reachable by a tool as well.

use rmcp::model::{ErrorData, ReadResourceResponse, ResourceTemplate};

use crate::call::Call;

pub(crate) fn templates() -> Vec<ResourceTemplate> {
    Vec::new()
}

pub(crate) async fn read(_: Call<'_>, uri: &str) -> Result<ReadResourceResponse, ErrorData> {
    Err(ErrorData::resource_not_found(uri.to_owned(), None))
}
