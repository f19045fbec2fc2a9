//! Programs that `scripts/set-up-real` builds for `make test-real`.

use crate::skip;
use std::path::PathBuf;

/// The variable with the folder of these programs.
const REAL: &str = "TIDEGATE_TEST_REAL";

/// The program `name` of the part `part`; `None`, with a message, if the set-up left the part out.
///
/// # Panics
/// When the set-up has not run.
pub fn real_program(part: &str, name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os(REAL).filter(|value| !value.is_empty());
    let folder =
        PathBuf::from(folder.unwrap_or_else(|| panic!("{REAL} is not set; `make test-real` sets it")));
    let left_out = std::fs::read_to_string(folder.join("left-out")).unwrap_or_default();
    if let Some(line) = left_out.lines().find(|line| line.split(':').next() == Some(part)) {
        skip(part, line);
        return None;
    }
    let program = folder.join(part).join(name);
    assert!(program.exists(), "{} is missing; `make test-real` builds it", program.display());
    Some(program)
}
