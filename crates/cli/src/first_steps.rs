//! The first steps: what is still missing before there is something to read, and the command for it.

use rest::owner::wire::Sources;

use crate::context::Context;

/// Commands named per step.
const NAMED: usize = 3;

/// The next steps while there is nothing to read; none once there is.
pub(crate) fn next_steps(sources: &Sources, context: &Context) -> Vec<String> {
    if sources.connectors.is_empty() {
        return vec![
            format!(
                "{} holds nothing yet; if your data is elsewhere, name its folder with --data-dir",
                context.settings.data_dir.display()
            ),
            format!(
                "register a source with `{}`; `pdpp help declarations` shows how to write one",
                context.command("declare").argument("FILE")
            ),
            format!(
                "or look around in a sample life with `{}`",
                context.command("serve").flag("demo")
            ),
        ];
    }
    if sources.connections.is_empty() {
        let keys = sources.connectors.iter().take(NAMED);
        return keys
            .map(|one| {
                let add = context.command("connections add");
                let add = add.argument(one.connector_key.as_str());
                format!(
                    "add a connection with `{}`",
                    add.option("name", Some("NAME"))
                )
            })
            .collect();
    }
    if sources.connections.iter().all(|one| one.records == 0) {
        let connections = sources.connections.iter().take(NAMED);
        return connections
            .map(|one| {
                let import = context.command("import").argument("FILE");
                let import = import.option("connection", Some(&one.connection_id));
                format!("bring in records with `{import}`")
            })
            .collect();
    }
    Vec::new()
}
