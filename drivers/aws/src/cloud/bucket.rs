//! How much may be asked of EC2 (Request throttling for the Amazon EC2 API). An account has these buckets a region.

pub(crate) use picket_cloud::bucket::{Bucket, Limit};

/// Questions (Describe*, each for itself).
pub(crate) const QUESTIONS: Limit = Limit { size: 100.0, a_second: 20.0 };
/// DescribeInstances and DescribeVolumes, where they have neither a filter nor pages. Whether ids count as a filter is not said.
pub(crate) const UNFILTERED: Limit = Limit { size: 50.0, a_second: 10.0 };
/// What changes something, each action for itself.
pub(crate) const COMMANDS: Limit = Limit { size: 50.0, a_second: 5.0 };
/// The instances of StopInstances.
pub(crate) const STOPPED: Limit = Limit { size: 1_000.0, a_second: 20.0 };
/// The requests of StartInstances.
pub(crate) const STARTS: Limit = Limit { size: 5.0, a_second: 2.0 };
