//! `aggregate`: to be written.

use contract::error::ErrorCode;
use serde_json::json;

use super::{Definition, Running};
use crate::args::{Arg, Args, Kind};
use crate::call::Call;
use crate::fault::Fault;
use crate::reply::Outcome;

pub(super) static TOOL: Definition = Definition {
    name: "aggregate",
    title: "aggregate",
    description: include_str!("aggregate.md"),
    args: &[Arg::new("connection_id", Kind::Text, "")],
    output: || json!({"data": {}}),
    run: |call, args| -> Running<'_> { Box::pin(run(call, args)) },
};

async fn run(_: Call<'_>, _: Args) -> Outcome {
    Err(Fault::refused(
        ErrorCode::InvalidArguments,
        "name",
        "not written",
    ))
}
