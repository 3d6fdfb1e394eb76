//! The reference of the errors, from the comments of their enumeration.

use super::made_of;
use crate::failure::Failure;

/// Where they stand.
pub const SOURCE: &str = "proto/picket/v1/errors.proto";
const PREFIX: &str = "ERROR_REASON_";

pub fn page(source: &str) -> Result<String, Failure> {
    let mut text = made_of(SOURCE);
    text += "# Errors\n\n\
        An error is a gRPC status. Its `google.rpc.ErrorInfo` has the domain `picket` and one of these reasons. Behind each reason stand the \
        gRPC code, the further details, and the metadata.\n";
    let (mut about, mut found): (Vec<&str>, usize) = (Vec::new(), 0);
    for line in source.lines().map(str::trim) {
        if let Some(comment) = line.strip_prefix("//") {
            about.push(comment.trim());
        } else if let Some((name, number)) = line.strip_suffix(';').and_then(|line| line.split_once(" = ")) {
            if let Some(name) = name.strip_prefix(PREFIX) {
                if about.is_empty() {
                    return Err(Failure::new(format!("{SOURCE}: {PREFIX}{name} has no comment")));
                }
                text += &format!("\n## {name}\n\nNumber {number}. {}\n", about.join(" "));
                found += 1;
            }
            about.clear();
        } else {
            about.clear();
        }
    }
    if found == 0 { Err(Failure::new(format!("{SOURCE} has no reason"))) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_has_its_comment() {
        let source = "// Of the file.\n\n// Of all.\nenum ErrorReason {\n  // NOT_FOUND: no\n  // node.\n  ERROR_REASON_A = 4;\n}\n";
        let made = page(source).expect("a reason");
        assert!(made.ends_with("\n## A\n\nNumber 4. NOT_FOUND: no node.\n"), "{made}");
        assert!(page("ERROR_REASON_A = 4;").is_err() && page("").is_err());
    }
}
