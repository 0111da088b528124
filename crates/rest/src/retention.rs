//! Enforces the owner's retention rules while the server runs.

use std::sync::Arc;
use std::time::Duration;

use store::Store;
use store::keeping::KeepRules;

/// How often expired data is dropped.
const INTERVAL: Duration = Duration::from_hours(1);

/// Drops what the rules no longer keep, now and every hour. It never returns.
pub async fn enforce_retention(rules: KeepRules, store: &Arc<dyn Store>) {
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
        tokio::time::sleep(INTERVAL).await;
    }
}
