//! The services of a cloud that are asked.

/// A service of the cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    Compute,
    Volume,
    Image,
}

impl Service {
    /// Its types in the catalog, the present one first.
    pub(super) fn kinds(self) -> &'static [&'static str] {
        match self {
            Service::Compute => &["compute"],
            Service::Volume => &["block-storage", "volumev3", "block-store"],
            Service::Image => &["image"],
        }
    }

    pub(super) fn words(self) -> &'static str {
        match self {
            Service::Compute => "Nova",
            Service::Volume => "Cinder",
            Service::Image => "Glance",
        }
    }
}
