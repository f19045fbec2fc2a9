//! The records of a file, in the simplest words: the whole file is split, parsed, joined and grouped.

use super::*;

#[derive(Default)]
struct Part {
    text: Vec<u8>,
    offset: u64,
    time_ns: u64,
    is_cut: bool,
}

/// The records of a whole file of UTF-8 without a byte order mark, in order, when nothing comes late.
pub(super) fn records(settings: &Settings, file: &[u8]) -> Vec<Owned> {
    let mut out = Vec::new();
    let mut joined: [Option<Part>; 3] = Default::default();
    let mut groups: [Option<Part>; 3] = Default::default();
    let mut skipped = [false; 3];
    let mut format = match settings.format {
        Format::Only(format) => Some(format),
        Format::Auto => None,
    };
    let mut offset = 0;
    for whole in file.split_inclusive(|byte| *byte == b'\n') {
        let line = whole.strip_suffix(b"\n").unwrap_or(whole);
        // Bytes that do not fit a frame are not looked at.
        let limit = settings.frame_limit(format, Encoding::Utf8);
        let is_framed = line.len() <= limit;
        let line = if is_framed { line } else { &line[..limit] };
        let mut unescaped = Vec::new();
        let format = *format.get_or_insert_with(|| container::format_of(line, &mut unescaped));
        let entry = container::parse(line, format, &mut unescaped).unwrap_or(Entry::plain(line));
        let at = entry.stream as usize;
        let here = offset;
        offset += whole.len() as u64;
        if skipped[at] {
            skipped[at] = entry.is_partial;
            continue;
        }
        let mut part =
            joined[at].take().unwrap_or(Part { offset: here, time_ns: entry.time_ns, ..Part::default() });
        part.text.extend_from_slice(entry.text);
        let is_over = part.text.len() > settings.longest_line + 1;
        if entry.is_partial && !is_over {
            joined[at] = Some(part);
            continue;
        }
        skipped[at] = entry.is_partial;
        finish_line(settings, &mut groups[at], part, entry.stream, is_framed && !entry.is_partial, &mut out);
    }
    for stream in Stream::ALL {
        let at = stream as usize;
        if let Some(part) = joined[at].take() {
            finish_line(settings, &mut groups[at], part, stream, true, &mut out);
        }
        out.extend(groups[at].take().map(|group| owned(&group, stream)));
    }
    out
}

fn finish_line(
    settings: &Settings,
    group: &mut Option<Part>,
    mut line: Part,
    stream: Stream,
    is_whole: bool,
    out: &mut Vec<Owned>,
) {
    if is_whole && line.text.last() == Some(&b'\r') {
        line.text.pop();
    }
    if !is_whole || line.text.len() > settings.longest_line {
        if settings.on_long_line == OnLongLine::Drop {
            return;
        }
        line.text = decode::cut(&line.text, settings.longest_line).to_vec();
        line.is_cut = true;
    }
    let Some(multiline) = &settings.multiline else {
        out.push(owned(&line, stream));
        return;
    };
    let (is_start, is_end) = match &multiline.boundary {
        Boundary::Start(pattern) => (pattern.is_match(&line.text), false),
        Boundary::End(pattern) => (false, pattern.is_match(&line.text)),
    };
    if let Some(before) = group.take() {
        if is_start || before.text.len() + 1 + line.text.len() > multiline.longest {
            out.push(owned(&before, stream));
        } else {
            let text = [&before.text[..], &line.text].join(&b'\n');
            line = Part { text, is_cut: before.is_cut || line.is_cut, ..before };
        }
    }
    if is_end {
        out.push(owned(&line, stream));
    } else {
        *group = Some(line);
    }
}

fn owned(part: &Part, stream: Stream) -> Owned {
    Owned {
        text: String::from_utf8_lossy(&part.text).into_owned(),
        stream,
        offset: part.offset,
        time_ns: part.time_ns,
        is_cut: part.is_cut,
    }
}
