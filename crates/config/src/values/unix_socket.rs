//! A socket in the file system.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};

use crate::error::{Invalid, quote};
use crate::setting::Scalar;

/// The path of a Unix socket, written as in the endpoint of a client: `unix:/run/tidegate.sock`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnixSocket(PathBuf);

/// The longest path in bytes: the system's limit, less the suffix that the path has while the socket is created.
const LONGEST: usize = 100;

impl UnixSocket {
    /// Where the socket is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl fmt::Display for UnixSocket {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "unix:{}", self.0.display())
    }
}

impl Scalar for UnixSocket {
    const WHAT: &'static str = "a Unix socket";
    const EXAMPLE: &'static str = "unix:/run/tidegate.sock";
    const NOTATION: &'static str = "`unix:` and the absolute path of a socket: `unix:/run/tidegate.sock`.";

    fn parse(text: &str) -> Result<UnixSocket, Invalid> {
        let path = text.strip_prefix("unix:").unwrap_or(text);
        // As in a URL.
        let path = if path.starts_with("///") { path.get(2..).unwrap_or(path) } else { path };
        if !path.starts_with('/') || path.ends_with('/') || path.contains('\0') {
            return Err(Invalid::new(
                format!("{} is not the path of a Unix socket", quote(text)),
                "write `unix:` and an absolute path, for example `unix:/run/tidegate.sock`",
            ));
        }
        if path.len() > LONGEST {
            return Err(Invalid::new(
                format!("{} is too long for the path of a Unix socket", quote(text)),
                format!("write a path of at most {LONGEST} bytes"),
            ));
        }
        Ok(UnixSocket(PathBuf::from(path)))
    }

    fn text(&self) -> String {
        self.to_string()
    }

    fn schema() -> Json {
        json!({ "type": "string", "pattern": "^(unix:(//)?)?/.*[^/]$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_written_as_in_an_endpoint() {
        for text in ["unix:/run/a.sock", "unix:///run/a.sock", "/run/a.sock"] {
            let socket = UnixSocket::parse(text).map_err(|_| text).unwrap();
            assert_eq!(
                (socket.path(), socket.text()),
                (Path::new("/run/a.sock"), "unix:/run/a.sock".to_owned())
            );
        }
        let long = format!("unix:/{}", "x".repeat(LONGEST));
        for text in ["", "unix:", "unix:run/a.sock", "a.sock", "unix:/run/", "/run/\0", &long] {
            assert!(UnixSocket::parse(text).is_err(), "{text}");
        }
    }
}
