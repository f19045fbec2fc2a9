//! The settings of the reader, made from the configuration.

use crate::Failure;
use crate::gateway::sources::checkpoint_keys;
use tidegate_config::{
    Config, FileEncoding, FileFormat, FileInput, FileMultiline, FileStart, INPUT_ATTRIBUTE, Name,
    OnLongLine as ConfiguredLongLine,
};
use tidegate_lines::{
    Boundary, Encoding, Format, LineFormat, Multiline, OnLongLine, Settings as LineSettings,
};
use tidegate_pipeline::LinePattern;
use tidegate_tail::{Glob, Input, Settings, StartAt};

/// The first byte of the keys of this source's checkpoints.
const KEY: u8 = checkpoint_keys::FILE;

/// The settings of the reader.
///
/// # Errors
/// In words: which setting it is, and what is wrong with it.
pub(super) fn of(config: &Config) -> Result<Settings, Failure> {
    let source = &config.sources.file;
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let inputs = source.inputs.iter().map(|(name, input)| input_of(name.as_str(), input, host.trim()));
    let inputs: Result<Vec<Input>, Failure> = inputs.collect();
    let mut settings = Settings::new(KEY, inputs?);
    settings.max_files = usize::try_from(source.max_files).unwrap_or(usize::MAX);
    settings.rescan = source.rescan.get();
    settings.rotate_wait = source.rotate_wait.get();
    Ok(settings)
}

/// The attributes of an input: with the name of the host unless it has one, and with its own where steps ask for it.
fn attributes(name: &str, input: &FileInput, host: &str) -> Vec<(Box<str>, Box<str>)> {
    let own = input.attributes.iter().map(|(key, value)| (key.as_str().into(), value.as_str().into()));
    let named = input.attributes.keys().any(|key| key == "host.name");
    let host = (!named && !host.is_empty()).then(|| ("host.name".into(), host.into()));
    let input = input.parse.map(|_| (INPUT_ATTRIBUTE.into(), name.into()));
    host.into_iter().chain(input).chain(own).collect()
}

/// The mistakes in patterns of paths.
pub(super) fn check(config: &Config) -> Vec<String> {
    let of_input = |(name, input): (&Name, &FileInput)| {
        let all = [("include", &input.include), ("exclude", &input.exclude)];
        let wrong = all.map(|(setting, patterns)| {
            patterns
                .iter()
                .filter_map(|pattern| glob(name.as_str(), setting, pattern).err())
                .map(|Failure(error)| error)
        });
        wrong.into_iter().flatten().collect::<Vec<String>>()
    };
    config.sources.file.inputs.iter().flat_map(of_input).collect()
}

fn glob(name: &str, setting: &str, pattern: &str) -> Result<Vec<Glob>, Failure> {
    Glob::parse(pattern)
        .map_err(|error| Failure(format!("`sources.file.inputs.{name}.{setting}`: {pattern:?}: {error}")))
}

fn input_of(name: &str, input: &FileInput, host: &str) -> Result<Input, Failure> {
    let globs = |setting: &str, patterns: &[String]| -> Result<Vec<Glob>, Failure> {
        let globs = patterns.iter().map(|pattern| glob(name, setting, pattern));
        Ok(globs.collect::<Result<Vec<_>, Failure>>()?.concat())
    };
    let include = globs("include", &input.include)?;
    if include.is_empty() {
        return Err(Failure(format!("`sources.file.inputs.{name}.include` names no files")));
    }
    let multiline =
        |multiline: &FileMultiline| multiline_of(&format!("sources.file.inputs.{name}"), multiline);
    Ok(Input {
        name: name.into(),
        include,
        exclude: globs("exclude", &input.exclude)?,
        start_at: start_at(input.start_at),
        compressed: input.compressed,
        lines: LineSettings {
            format: match input.format {
                FileFormat::Auto => Format::Auto,
                FileFormat::Plain => Format::Only(LineFormat::Plain),
                FileFormat::Docker => Format::Only(LineFormat::Docker),
                FileFormat::Cri => Format::Only(LineFormat::Cri),
            },
            encoding: match input.encoding {
                FileEncoding::Utf8 => Encoding::Utf8,
                FileEncoding::Utf16Le => Encoding::Utf16Le,
                FileEncoding::Utf16Be => Encoding::Utf16Be,
                FileEncoding::Latin1 => Encoding::Latin1,
            },
            longest_line: input.max_line.as_usize(),
            on_long_line: long_line(input.on_long_line),
            multiline: input.multiline.as_ref().map(multiline).transpose()?,
            ..LineSettings::default()
        },
        attributes: attributes(name, input, host),
    })
}

/// Where reading begins.
pub(in crate::gateway::sources) fn start_at(configured: FileStart) -> StartAt {
    match configured {
        FileStart::Beginning => StartAt::Beginning,
        FileStart::End => StartAt::End,
    }
}

/// The treatment of long lines.
pub(in crate::gateway::sources) fn long_line(configured: ConfiguredLongLine) -> OnLongLine {
    match configured {
        ConfiguredLongLine::Cut => OnLongLine::Cut,
        ConfiguredLongLine::Drop => OnLongLine::Drop,
    }
}

/// Which lines make one record, by the setting `multiline` of the group `of`.
///
/// # Errors
/// In words: which setting it is, and what is wrong with it.
pub(in crate::gateway::sources) fn multiline_of(
    of: &str,
    multiline: &FileMultiline,
) -> Result<Multiline, Failure> {
    let setting = |which: &str| format!("`{of}.multiline.{which}`");
    let compile = |which: &str, pattern: &str| {
        LinePattern::compile(pattern).map_err(|error| Failure(format!("{}: {error}", setting(which))))
    };
    let boundary = match (&multiline.start_pattern, &multiline.end_pattern) {
        (Some(start), None) => Boundary::Start(compile("start_pattern", start)?),
        (None, Some(end)) => Boundary::End(compile("end_pattern", end)?),
        _ => {
            let (start, end) = (setting("start_pattern"), setting("end_pattern"));
            return Err(Failure(format!("set either {start} or {end}")));
        }
    };
    let timeout_ns = u64::try_from(multiline.timeout.get().as_nanos()).unwrap_or(u64::MAX);
    Ok(Multiline { boundary, timeout_ns, longest: multiline.max_record.as_usize() })
}
