//! SPDX licence expressions: `MIT OR (Apache-2.0 AND ISC)`, and the old `MIT/Apache-2.0`.

/// Whether an expression holds when each licence in it is allowed or not. `AND` binds before `OR`, and `WITH` before both
/// (SPDX 2.3, annex D). An error says what does not read.
pub fn holds(expression: &str, allowed: &dyn Fn(&str) -> bool) -> Result<bool, String> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut words: Vec<&str> = spaced.split_whitespace().rev().collect();
    let value = either(&mut words, allowed)?;
    match words.pop() {
        None => Ok(value),
        Some(word) => Err(format!("{word:?} is one too many")),
    }
}

fn either(words: &mut Vec<&str>, allowed: &dyn Fn(&str) -> bool) -> Result<bool, String> {
    let mut value = both(words, allowed)?;
    while words.pop_if(|word| *word == "OR").is_some() {
        value |= both(words, allowed)?;
    }
    Ok(value)
}

fn both(words: &mut Vec<&str>, allowed: &dyn Fn(&str) -> bool) -> Result<bool, String> {
    let mut value = one(words, allowed)?;
    while words.pop_if(|word| *word == "AND").is_some() {
        value &= one(words, allowed)?;
    }
    Ok(value)
}

fn one(words: &mut Vec<&str>, allowed: &dyn Fn(&str) -> bool) -> Result<bool, String> {
    match words.pop() {
        Some("(") => {
            let value = either(words, allowed)?;
            if words.pop_if(|word| *word == ")").is_some() {
                Ok(value)
            } else {
                Err("a bracket is open".to_owned())
            }
        }
        Some(word @ (")" | "AND" | "OR" | "WITH")) => Err(format!("{word:?} stands where a licence should")),
        Some(licence) if words.pop_if(|word| *word == "WITH").is_some() => {
            let exception = words.pop().ok_or("nothing comes after WITH")?;
            Ok(allowed(&format!("{licence} WITH {exception}")))
        }
        Some(licence) => Ok(allowed(licence)),
        None => Err("a licence is missing".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions() {
        let allowed = |licence: &str| ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"].contains(&licence);
        for (expression, holds_good) in [
            ("MIT", Ok(true)),
            ("GPL-3.0", Ok(false)),
            ("GPL-3.0 OR MIT", Ok(true)),
            ("GPL-3.0/MIT", Ok(true)),
            ("MIT AND GPL-3.0", Ok(false)),
            ("GPL-3.0 AND MIT OR ISC", Ok(true)),
            ("GPL-3.0 AND (MIT OR ISC)", Ok(false)),
            ("Apache-2.0 WITH LLVM-exception OR GPL-3.0", Ok(true)),
            ("Apache-2.0", Ok(false)),
        ] {
            assert_eq!(holds(expression, &allowed), holds_good, "{expression}");
        }
        for nonsense in ["", "MIT OR", "(MIT", "MIT ISC", "MIT)", "AND MIT", "MIT WITH"] {
            assert!(holds(nonsense, &allowed).is_err(), "{nonsense}");
        }
    }
}
