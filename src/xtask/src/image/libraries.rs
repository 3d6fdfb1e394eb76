//! The shared libraries that a program is started with, as the dynamic loader of this machine finds them.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;

/// Where they are; none for a program that is static. Its loader is among them.
pub fn of(program: &Path) -> Result<Vec<PathBuf>, Failure> {
    let said = Command::new("ldd").arg(program).env("LC_ALL", "C").output().map_err(Failure::of("ldd"))?;
    let (out, complaint) = (String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
    if complaint.contains("not a dynamic executable") {
        return Ok(Vec::new());
    }
    if !said.status.success() {
        return Err(Failure::new(format!("ldd {}: {}", program.display(), complaint.trim())));
    }
    read(&out).map_err(|Failure(lacking)| Failure(format!("{} wants {lacking}", program.display())))
}

/// Reads lines as `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f…)`, and without an arrow for the loader. What the kernel
/// brings (`linux-vdso.so.1`) is in no file.
fn read(said: &str) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    for line in said.lines().map(str::trim) {
        let (name, place) = line.split_once(" => ").unwrap_or(("", line));
        if place.starts_with("not found") {
            return Err(Failure::new(format!("{name}, which is not there")));
        }
        found.extend(place.split_whitespace().next().filter(|path| path.starts_with('/')).map(PathBuf::from));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loaders_answer_is_read() {
        let said = "\tlinux-vdso.so.1 (0x00007ffc1d9f2000)\n\
                    \tlibgcc_s.so.1 => /lib/x86_64-linux-gnu/libgcc_s.so.1 (0x00007f05)\n\
                    \tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f04)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007f06)\n";
        let expected = [
            "/lib/x86_64-linux-gnu/libgcc_s.so.1",
            "/lib/x86_64-linux-gnu/libc.so.6",
            "/lib64/ld-linux-x86-64.so.2",
        ];
        assert_eq!(read(said), Ok(expected.map(PathBuf::from).to_vec()));
        assert_eq!(read("\tstatically linked\n"), Ok(Vec::new()));
    }

    #[test]
    fn a_library_that_is_not_there_is_named() {
        let missing = read("\tlibssl.so.3 => not found\n");
        assert!(missing.is_err_and(|Failure(why)| why.contains("libssl.so.3")));
    }

    #[test]
    fn our_own_program_has_some() {
        let found = of(&std::env::current_exe().expect("a program")).expect("found");
        assert!(found.iter().all(|library| library.is_absolute() && library.is_file()), "{found:?}");
    }
}
