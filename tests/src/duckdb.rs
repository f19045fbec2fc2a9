use crate::{finish, skip};
use serde_json::Value;
use std::process::Command;

/// Runs a query in DuckDB and returns its rows; `None`, said loudly, where there is none: `make test` names a
/// Python with the `duckdb` package in `TIDEGATE_TEST_PYTHON`.
///
/// # Panics
/// When the query fails.
pub fn duckdb(query: &str) -> Option<Vec<Value>> {
    const SCRIPT: &str = "import duckdb, json, sys\n\
        db = duckdb.connect()\n\
        db.sql(\"SET TimeZone = 'UTC'\")\n\
        for row in db.sql(sys.argv[1]).fetchall(): print(json.dumps(row))\n";
    let Some(python) = std::env::var_os("TIDEGATE_TEST_PYTHON").filter(|python| !python.is_empty()) else {
        skip("TIDEGATE_TEST_PYTHON", "TIDEGATE_TEST_PYTHON must name a Python that has the `duckdb` package");
        return None;
    };
    let printed = finish(Command::new(python).args(["-c", SCRIPT, query])).succeeded();
    Some(printed.lines().map(|line| serde_json::from_str(line).expect(line)).collect())
}
