//! Names of metrics, units and labels, as Prometheus itself makes them of OTLP's.

use super::Naming;
use super::text::{BufferFull, Text};

/// The properties that a metric's name depends on, besides its own name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A cumulative, monotonic sum.
    Counter,
    /// A gauge.
    Gauge,
    /// Anything else.
    Other,
}

/// Writes the Prometheus name of the metric `name`; nothing when it has none.
pub(super) fn metric(
    out: &mut Text,
    naming: Naming,
    name: &[u8],
    unit: &[u8],
    kind: Kind,
) -> Result<(), BufferFull> {
    match naming {
        Naming::UnderscoreEscapingWithSuffixes => escaped(out, name, unit, kind),
        Naming::UnderscoreEscapingWithoutSuffixes => {
            let start = out.len();
            let tokens = name.split(|byte| !is_name(*byte) && *byte != b'_');
            join(out, start, tokens.filter(|token| !token.is_empty()))
        }
        Naming::NoUTF8EscapingWithSuffixes => suffixed(out, name, unit, kind),
        Naming::NoTranslation => out.put(name),
    }
}

/// Writes the Prometheus unit of an OTLP unit; nothing when it has none.
pub(super) fn unit(out: &mut Text, unit: &[u8]) -> Result<(), BufferFull> {
    let start = out.len();
    let Units { main, per } = Units::of(unit);
    words(out, start, main)?;
    if !per.is_empty() && tokens(per).next().is_some() {
        join(out, start, [&b"per"[..]].into_iter())?;
        words(out, start, per)?;
    }
    Ok(())
}

/// Writes `prefix` (empty, or what ends in an underscore) and the Prometheus name of the attribute `key`, which is not
/// empty. Of a key without a letter or a digit an underscore is left, and so `key_`.
pub(super) fn label(out: &mut Text, naming: Naming, prefix: &[u8], key: &[u8]) -> Result<(), BufferFull> {
    out.put(prefix)?;
    if !naming.escapes() {
        return out.put(key);
    }
    match key.first() {
        _ if !prefix.is_empty() => {}
        Some(b'0'..=b'9') => out.put(b"key_")?,
        Some(byte) if !byte.is_ascii_alphabetic() => out.put(b"key")?,
        _ => {}
    }
    // Runs of what no label may have, underscores included, become one underscore.
    for chunk in key.chunk_by(|one, two| one.is_ascii_alphanumeric() == two.is_ascii_alphanumeric()) {
        if chunk.first().is_some_and(u8::is_ascii_alphanumeric) {
            out.put(chunk)?;
        } else if out.all().last() != Some(&b'_') {
            out.put(b"_")?;
        }
    }
    Ok(())
}

/// Whether the name of the attribute `key` is `key` itself.
pub(super) fn is_plain_label(naming: Naming, key: &[u8]) -> bool {
    let escaped = |pair: &[u8]| pair == b"__";
    !naming.escapes()
        || (key.first().is_some_and(u8::is_ascii_alphabetic)
            && key.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
            && !key.windows(2).any(escaped))
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b':'
}

/// The words of a name: what is between characters that names may not have, and underscores.
fn tokens(name: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    name.split(|byte| !is_name(*byte)).filter(|token| !token.is_empty())
}

fn escaped(out: &mut Text, name: &[u8], unit: &[u8], kind: Kind) -> Result<(), BufferFull> {
    let start = out.len();
    let total = kind == Kind::Counter;
    let ratio = kind == Kind::Gauge && unit == b"1";
    let stays = |token: &&[u8]| !(total && *token == b"total" || ratio && *token == b"ratio");
    join(out, start, tokens(name).filter(stays))?;
    let Units { main, per } = Units::of(unit);
    // A unit of one word that is a word of the name is there already.
    let has = |unit: &[u8]| {
        let mut words = tokens(unit);
        match (words.next(), words.next()) {
            (Some(word), None) => tokens(name).any(|token| token == word),
            _ => false,
        }
    };
    let comes_anyway = total && main == b"total";
    if !comes_anyway && !has(main) {
        words(out, start, main)?;
    }
    if !per.is_empty() && tokens(per).next().is_some() {
        join(out, start, [&b"per"[..]].into_iter())?;
        words(out, start, per)?;
    }
    if total {
        join(out, start, [&b"total"[..]].into_iter())?;
    }
    if ratio {
        join(out, start, [&b"ratio"[..]].into_iter())?;
    }
    Ok(())
}

fn words(out: &mut Text, start: usize, unit: &[u8]) -> Result<(), BufferFull> {
    join(out, start, tokens(unit))
}

/// Appends words to the name that begins at `start`, each with an underscore between it and what is before.
fn join<'t>(out: &mut Text, start: usize, tokens: impl Iterator<Item = &'t [u8]>) -> Result<(), BufferFull> {
    for token in tokens {
        let first = out.len() == start;
        if !first || token.first().is_some_and(u8::is_ascii_digit) {
            out.put(b"_")?;
        }
        out.put(token)?;
    }
    Ok(())
}

/// Suffixes for a name that is kept otherwise, each only if the name does not end with it.
fn suffixed(out: &mut Text, name: &[u8], unit: &[u8], kind: Kind) -> Result<(), BufferFull> {
    let Units { main, per } = Units::of(unit);
    let mut base = name;
    let mut without = |suffix: &[u8]| {
        if let Some(rest) = base.strip_suffix(suffix)
            && rest.len() > 1
        {
            base = rest.get(..rest.len() - 1).unwrap_or_default();
        }
    };
    if kind == Kind::Gauge && unit == b"1" {
        without(b"ratio");
    }
    if kind == Kind::Counter {
        without(b"total");
    }
    if let Some(rest) = base.strip_suffix(per)
        && !per.is_empty()
        && let Some(rest) = rest.strip_suffix(b"per_")
        && rest.len() > 1
    {
        base = rest.get(..rest.len() - 1).unwrap_or_default();
    }
    out.put(base)?;
    if !main.is_empty() && !base.ends_with(main) {
        out.put(b"_")?;
        out.put(main)?;
    }
    if !per.is_empty() {
        out.put(b"_per_")?;
        out.put(per)?;
    }
    if kind == Kind::Counter {
        out.put(b"_total")?;
    }
    if kind == Kind::Gauge && unit == b"1" {
        out.put(b"_ratio")?;
    }
    Ok(())
}

/// The two sides of a unit's slash, in words.
struct Units<'a> {
    main: &'a [u8],
    per: &'a [u8],
}

impl<'a> Units<'a> {
    fn of(unit: &'a [u8]) -> Self {
        let mut sides = unit.splitn(2, |byte| *byte == b'/').map(<[u8]>::trim_ascii);
        // Text in braces is an annotation.
        let mut side = || sides.next().filter(|side| !side.contains(&b'{') && !side.contains(&b'}'));
        let (main, per) = (side().unwrap_or_default(), side().unwrap_or_default());
        Self { main: word(main), per: singular(per) }
    }
}

/// The word for a unit of the UCUM, as Prometheus has it; other units stay as they are.
fn word(unit: &[u8]) -> &[u8] {
    match unit {
        b"d" => b"days",
        b"h" => b"hours",
        b"min" => b"minutes",
        b"s" => b"seconds",
        b"ms" => b"milliseconds",
        b"us" => b"microseconds",
        b"ns" => b"nanoseconds",
        b"By" => b"bytes",
        b"KiBy" => b"kibibytes",
        b"MiBy" => b"mebibytes",
        b"GiBy" => b"gibibytes",
        b"TiBy" => b"tibibytes",
        b"KBy" => b"kilobytes",
        b"MBy" => b"megabytes",
        b"GBy" => b"gigabytes",
        b"TBy" => b"terabytes",
        b"m" => b"meters",
        b"V" => b"volts",
        b"A" => b"amperes",
        b"J" => b"joules",
        b"W" => b"watts",
        b"g" => b"grams",
        b"Cel" => b"celsius",
        b"Hz" => b"hertz",
        b"1" => b"",
        b"%" => b"percent",
        unit => unit,
    }
}

/// The word for a unit behind the slash.
fn singular(unit: &[u8]) -> &[u8] {
    match unit {
        b"s" => b"second",
        b"m" => b"minute",
        b"h" => b"hour",
        b"d" => b"day",
        b"w" => b"week",
        b"mo" => b"month",
        b"y" => b"year",
        unit => unit,
    }
}
