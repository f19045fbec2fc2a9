//! `tidegate token`: a new secret, and the line about it for the file of credentials.

use crate::cli::{TokenArgs, TokenKind};
use crate::{Failure, Outcome, output};
use std::io::{BufRead as _, Read as _};
use std::path::Path;
use tidegate_admission::access::{Credentials, make};

/// The longest password that is read.
const LONGEST: u64 = 1 << 10;

/// `tidegate token`
pub(crate) fn token(args: &TokenArgs) -> Outcome {
    let password = match args.kind {
        TokenKind::Basic => Some(password()?),
        TokenKind::Bearer | TokenKind::ApiKey => None,
    };
    let chosen = password.is_some();
    let made = make(password)?;
    let kind = match args.kind {
        TokenKind::Bearer => "bearer",
        TokenKind::ApiKey => "api_key",
        TokenKind::Basic => "basic",
    };
    let mut line = format!("{kind} {} {}", args.name, made.kept);
    for (option, value) in [("tenant", &args.tenant), ("bulk", &args.bulk), ("indices", &args.indices)] {
        if let Some(value) = value {
            line.push_str(&format!(" {option}={value}"));
        }
    }
    // As the gateway will read it, so that a name that cannot be one is told now.
    Credentials::parse(line.as_bytes())
        .map_err(|mistake| Failure(format!("making a line for the file: {}", mistake.trim())))?;
    if !chosen {
        output::print(&format!("{}\n", made.secret))?;
        output::error(
            "the line above is the secret: it is shown only once and not stored; the line below is for the credentials file",
        );
    }
    output::print(&format!("{line}\n"))?;
    Ok(())
}

/// The password, from standard input, so that no list of processes shows it.
fn password() -> Result<String, Failure> {
    output::error("type the password, and end the line");
    let mut password = String::new();
    let read = std::io::stdin().lock().take(LONGEST).read_line(&mut password);
    read.map_err(|error| Failure(format!("reading the password: {error}")))?;
    Ok(password.trim_end_matches(['\r', '\n']).to_owned())
}

/// The header that says who asks, with its line's end; nothing where no token is given. A file counts more.
pub(crate) fn authorization(file: Option<&Path>, token: Option<&str>) -> Result<String, Failure> {
    let token = match (file, token) {
        (Some(file), _) => {
            let text = std::fs::read_to_string(file);
            text.map_err(|error| Failure(format!("reading the token in {}: {error}", file.display())))?
        }
        (None, Some(token)) => token.to_owned(),
        (None, None) => return Ok(String::new()),
    };
    let token = token.trim();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Failure::from("the token is empty, or has characters that no token has"));
    }
    Ok(format!("Authorization: Bearer {token}\r\n"))
}
