//! The package's own files, as descriptors with comments.

use picket_proto::FILE_DESCRIPTOR_SET;
use prost::Message;
use prost_types::{FileDescriptorProto, FileDescriptorSet};

/// The files of `picket.v1`, without what they import.
pub fn files() -> Vec<FileDescriptorProto> {
    let set = FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).expect("the build wrote it");
    let own: Vec<_> = set.file.into_iter().filter(|file| file.package() == "picket.v1").collect();
    assert!(own.len() > 10, "{} files", own.len());
    own
}
