//! Oddities of services that the driver bears: nothing weaker is believed for them. Each is told once, and by each check.

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Oddity {
    /// Bodies come packed, although they are asked for as they are (RFC 9110 §12.5.3).
    Packed,
    /// A version of a resource is not taken as it is said (RFC 9110 §13.1.1).
    Version,
}

impl Oddity {
    const ALL: [Oddity; 2] = [Oddity::Packed, Oddity::Version];

    fn words(self) -> &'static str {
        match self {
            Oddity::Packed => {
                "it, or what stands in front of it, packs answers by gzip, which was not asked for: each is unpacked, and counts where its \
                 length and checksum do"
            }
            Oddity::Version => {
                "it does not take the version (ETag) of what is to be changed as it says it itself: the change is made with another form \
                 of it, or without"
            }
        }
    }
}

/// Those of one service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Oddities([bool; Oddity::ALL.len()]);

impl Oddities {
    /// It was seen at that service.
    pub(crate) fn see(&mut self, oddity: Oddity, endpoint: impl FnOnce() -> String) {
        if !std::mem::replace(&mut self.0[oddity as usize], true) {
            tracing::warn!(endpoint = %endpoint(), "{}", oddity.words());
        }
    }

    /// All that were seen, each a sentence.
    pub(crate) fn remarks(self) -> impl Iterator<Item = String> {
        Oddity::ALL
            .into_iter()
            .filter(move |oddity| self.0[*oddity as usize])
            .map(|oddity| oddity.words().to_owned())
    }
}
