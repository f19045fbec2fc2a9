//! Values of the standard library's types.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use serde_json::{Value as Json, json};

use crate::error::{Invalid, quote};
use crate::setting::{Ranged, Scalar};

impl Scalar for SocketAddr {
    const WHAT: &'static str = "an address";
    const EXAMPLE: &'static str = "127.0.0.1:4318";
    const NOTATION: &'static str = "An IP address and a port: `127.0.0.1:4318`, `[::1]:4318`. `0.0.0.0` means every \
         interface of the machine.";

    fn parse(text: &str) -> Result<SocketAddr, Invalid> {
        if let Ok(address) = text.parse() {
            return Ok(address);
        }
        let wrong = format!("{} is not an address", quote(text));
        let (host, port) = text.rsplit_once(':').unwrap_or((text, ""));
        let port_of = |text: &str| text.parse::<u16>().ok();
        let help = match (host, port_of(port)) {
            _ if text.parse::<IpAddr>().is_ok() => "add a port".to_owned(),
            ("" | "*", Some(port)) => {
                format!(
                    "write `0.0.0.0:{port}` for every interface or `127.0.0.1:{port}` for this machine only"
                )
            }
            ("localhost", Some(port)) => format!("write the address itself: `127.0.0.1:{port}`"),
            (_, None) if port_of(text).is_some() => {
                format!("add the IP address to listen on: `127.0.0.1:{text}`")
            }
            _ => "write an IP address and a port, for example `127.0.0.1:4318`".to_owned(),
        };
        Err(Invalid::new(wrong, help))
    }

    fn text(&self) -> String {
        self.to_string()
    }

    fn schema() -> Json {
        json!({ "type": "string", "pattern": r"^([0-9.]+|\[[0-9A-Fa-f:.%]+\]):[0-9]{1,5}$" })
    }
}

impl Scalar for String {
    const WHAT: &'static str = "a text";
    const EXAMPLE: &'static str = "k8s.namespace.name";

    fn parse(text: &str) -> Result<String, Invalid> {
        if text.is_empty() {
            return Err(Invalid::new(
                "this text is empty".to_owned(),
                "write at least one character, or leave it out",
            ));
        }
        Ok(text.to_owned())
    }

    fn text(&self) -> String {
        self.clone()
    }

    fn schema() -> Json {
        json!({ "type": "string", "minLength": 1 })
    }
}

impl Scalar for PathBuf {
    const WHAT: &'static str = "a path";
    const EXAMPLE: &'static str = "/var/lib/tidegate";
    const NOTATION: &'static str = "A file or folder; relative to the working directory of tidegate, unless the setting \
         specifies another base.";

    fn parse(text: &str) -> Result<PathBuf, Invalid> {
        if text.is_empty() || text.contains('\0') {
            return Err(Invalid::new(format!("{} is not a path", quote(text)), "write the path of a folder"));
        }
        if text.starts_with("~/") {
            let help = "write it in full, or as `${HOME}/…`";
            return Err(Invalid::new(
                format!("{} starts with `~`, which only a shell expands", quote(text)),
                help,
            ));
        }
        Ok(PathBuf::from(text))
    }

    fn text(&self) -> String {
        self.to_string_lossy().into_owned()
    }

    fn schema() -> Json {
        json!({ "type": "string", "minLength": 1 })
    }
}

impl Scalar for u32 {
    const WHAT: &'static str = "a number";
    const EXAMPLE: &'static str = "100";

    fn parse(text: &str) -> Result<u32, Invalid> {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let wrong = || Invalid::new(format!("{} is not a whole number", quote(text)), "write digits only");
        if !digits {
            return Err(wrong());
        }
        text.parse()
            .map_err(|_| Invalid::new(format!("{} is too large", quote(text)), "write a smaller number"))
    }

    fn text(&self) -> String {
        self.to_string()
    }

    fn schema() -> Json {
        json!({ "type": "integer", "minimum": 0 })
    }
}

impl Scalar for bool {
    const WHAT: &'static str = "`true` or `false`";
    const EXAMPLE: &'static str = "true";

    fn parse(text: &str) -> Result<bool, Invalid> {
        text.parse().map_err(|_| {
            Invalid::new(format!("{} is neither true nor false", quote(text)), "write one of the two")
        })
    }

    fn text(&self) -> String {
        self.to_string()
    }

    fn schema() -> Json {
        json!({ "type": "boolean" })
    }
}

impl Ranged for u32 {
    type Bound = u32;
    fn bound(&self) -> Option<&u32> {
        Some(self)
    }
}
