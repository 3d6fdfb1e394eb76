//! Numbers of bytes as people write them.

const UNITS: [(&str, u64); 3] = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];

/// Reads `512KiB`, `64MiB`, `1GiB`: a whole number with its unit.
pub(crate) fn parse(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let (_, bytes) = UNITS.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*bytes)
}

/// What is expected where no size was found.
pub(crate) const EXPECTED: &str = "expected a whole number with its unit (\"512KiB\", \"64MiB\", \"1GiB\")";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_a_whole_number_with_its_unit() {
        for (text, bytes) in [("0KiB", 0), ("512KiB", 524_288), ("64MiB", 67_108_864), ("1GiB", 1 << 30)] {
            assert_eq!(parse(text), Some(bytes), "{text}");
        }
        for bad in [
            "",
            "64",
            "MiB",
            "64 MiB",
            "64MB",
            "64mib",
            "1.5GiB",
            "99999999999999999999KiB",
            "18446744073709551615GiB",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
