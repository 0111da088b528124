//! Keeping to the owner's rules on what grows by itself, while the server runs.

use std::sync::Arc;
use std::time::Duration;

use store::Store;
use store::keeping::KeepRules;

/// How often what is not to be kept is dropped.
const BETWEEN: Duration = Duration::from_hours(1);

/// Drops what the rules do not keep, now and from time to time. It never ends.
pub async fn keep_to(rules: KeepRules, store: &Arc<dyn Store>) {
    if rules == KeepRules::default() {
        return std::future::pending().await;
    }
    loop {
        let store = Arc::clone(store);
        let dropped = tokio::task::spawn_blocking(move || store.drop_old(rules)).await;
        match dropped {
            Ok(Ok(dropped)) => tracing::info!(
                log_entries = dropped.log_entries,
                versions = dropped.versions,
                "what is not to be kept was dropped"
            ),
            Ok(Err(error)) => tracing::error!(cause = %error, "nothing could be dropped"),
            Err(error) => tracing::error!(cause = %error, "dropping did not come to its end"),
        }
        tokio::time::sleep(BETWEEN).await;
    }
}
