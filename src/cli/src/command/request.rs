//! What requests bear that set nodes in motion: a reason, and an idempotency key.

/// Who sits here, for reasons that nobody wrote.
fn user() -> String {
    ["USER", "LOGNAME"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok())
        .unwrap_or_else(|| "somebody".to_owned())
}

/// The reason that was given, or who asked.
pub fn reason(given: &Option<String>) -> String {
    given.clone().unwrap_or_else(|| format!("asked on the command line by {}", user()))
}

/// The key that was given, or a new one. With several nodes each uses it for itself: keys belong to a node.
pub fn key(given: &Option<String>) -> String {
    given.clone().unwrap_or_else(|| uuid::Uuid::now_v7().to_string())
}
