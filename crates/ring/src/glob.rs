//! Patterns of tenants, with the rules of Go's `filepath.Match` on Unix.

/// A malformed pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the pattern is malformed")]
pub struct BadPattern;

/// Whether `pattern` matches all of `name`: `*` and `?` match no slash, `[a-z]` and `[^a-z]` one character, `\` escapes.
///
/// # Errors
/// If the comparison reaches a malformed part of the pattern. As in Go, it need not reach one.
pub fn glob_matches(pattern: &str, name: &str) -> Result<bool, BadPattern> {
    let (mut pattern, mut name) = (pattern.as_bytes(), name.as_bytes());
    while !pattern.is_empty() {
        let (star, chunk, rest) = first_chunk(pattern);
        pattern = rest;
        if star && chunk.is_empty() {
            return Ok(!name.contains(&b'/'));
        }
        // The last chunk must use up the name.
        let fits = |left: &[u8]| left.is_empty() || !rest.is_empty();
        let mut left = match_chunk(chunk, name)?.filter(|left| fits(left));
        let mut skipped = name;
        while left.is_none() && star {
            match skipped.split_first() {
                None | Some((b'/', _)) => break,
                Some((_, later)) => skipped = later,
            }
            left = match_chunk(chunk, skipped)?.filter(|left| fits(left));
        }
        match left {
            Some(left) => name = left,
            None => return Ok(false),
        }
    }
    Ok(name.is_empty())
}

/// Splits a pattern before its next star that is not the first: whether it begins with stars, the chunk behind them, the rest.
fn first_chunk(pattern: &[u8]) -> (bool, &[u8], &[u8]) {
    let stars = pattern.iter().take_while(|&&byte| byte == b'*').count();
    let (_, pattern) = pattern.split_at(stars);
    let (mut in_class, mut escaped) = (false, false);
    let end = pattern.iter().position(|&byte| {
        match byte {
            _ if escaped => {
                escaped = false;
                return false;
            }
            b'\\' => escaped = true,
            b'[' => in_class = true,
            b']' => in_class = false,
            b'*' => return !in_class,
            _ => {}
        }
        false
    });
    let (chunk, rest) = pattern.split_at(end.unwrap_or(pattern.len()));
    (stars > 0, chunk, rest)
}

/// Matches a chunk against the beginning of a name and returns the rest of the name. After a mismatch it only looks for errors.
fn match_chunk<'a>(mut chunk: &[u8], name: &'a [u8]) -> Result<Option<&'a [u8]>, BadPattern> {
    let mut name = Some(name);
    while let Some((&operator, rest)) = chunk.split_first() {
        chunk = rest;
        name = name.filter(|name| !name.is_empty());
        match operator {
            b'[' => {
                let character = name.map(first_char);
                let negated = chunk.first() == Some(&b'^');
                if negated {
                    chunk = chunk.get(1..).unwrap_or_default();
                }
                let (matched, behind) = match_class(chunk, character.map(|(character, _)| character))?;
                chunk = behind;
                name = character.filter(|_| matched != negated).map(|(_, left)| left);
            }
            b'?' => name = name.filter(|name| name.first() != Some(&b'/')).map(|name| first_char(name).1),
            _ => {
                let mut literal = operator;
                if operator == b'\\' {
                    let (&escaped, rest) = chunk.split_first().ok_or(BadPattern)?;
                    (literal, chunk) = (escaped, rest);
                }
                name = name.and_then(|name| name.strip_prefix(&[literal]));
            }
        }
    }
    Ok(name)
}

/// Matches a class, whose bracket and negation are consumed; returns what follows its closing bracket.
fn match_class(mut class: &[u8], character: Option<char>) -> Result<(bool, &[u8]), BadPattern> {
    let (mut matched, mut ranges) = (false, 0);
    loop {
        if let (Some(rest), 1..) = (class.strip_prefix(b"]"), ranges) {
            return Ok((matched, rest));
        }
        let (low, rest) = class_char(class)?;
        class = rest;
        let mut high = low;
        if let Some(rest) = class.strip_prefix(b"-") {
            (high, class) = class_char(rest)?;
        }
        matched |= character.is_some_and(|character| (low..=high).contains(&character));
        ranges += 1;
    }
}

/// One character of a class, which something has to follow.
fn class_char(class: &[u8]) -> Result<(char, &[u8]), BadPattern> {
    let class = match class.first() {
        None | Some(b'-' | b']') => return Err(BadPattern),
        Some(b'\\') => class.get(1..).filter(|class| !class.is_empty()).ok_or(BadPattern)?,
        Some(_) => class,
    };
    let (character, rest) = first_char(class);
    if rest.is_empty() { Err(BadPattern) } else { Ok((character, rest)) }
}

/// The first character of bytes that are not empty and begin like a string, or U+FFFD for a byte within a character.
fn first_char(bytes: &[u8]) -> (char, &[u8]) {
    let first = bytes.get(..bytes.len().min(4)).unwrap_or_default();
    let character =
        (1..=first.len()).find_map(|len| std::str::from_utf8(first.get(..len)?).ok()?.chars().next());
    let len = character.map_or(1, char::len_utf8);
    (character.unwrap_or(char::REPLACEMENT_CHARACTER), bytes.get(len..).unwrap_or_default())
}

#[cfg(test)]
mod tests;
