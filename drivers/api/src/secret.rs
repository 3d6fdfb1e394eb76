//! Secrets that cannot be printed (S18).

use std::fmt;
use std::sync::Arc;

use zeroize::Zeroizing;

/// A password or key. Has no `Display`; its debug print says nothing; its memory is wiped on drop.
/// Two are compared to see whether settings changed, and never to check what somebody says.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<Zeroizing<Vec<u8>>>);

impl Secret {
    /// Takes the bytes over.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(Arc::new(Zeroizing::new(bytes.into())))
    }

    /// The bytes, for the wire alone.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}
