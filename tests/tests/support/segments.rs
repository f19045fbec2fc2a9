//! The files of a journal, as `design/journal.md` describes them; it shares no code with the gateway's own.

use std::collections::BTreeMap;
use std::path::Path;
use tidegate_load::remote_write::{Version, decode};

/// File names and contents.
pub(crate) type Image = BTreeMap<String, Vec<u8>>;

const MAGIC: [u8; 4] = [0xF5, b'T', b'G', 0x9A];
const HEADER: usize = 64;

/// A record: where it is, without the padding behind it, and the samples in it, each by its series' key and
/// its number.
#[derive(Debug)]
pub(crate) struct StoredRecords {
    pub(crate) file: String,
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) items: u64,
    pub(crate) samples: Vec<(u64, u64)>,
}

/// The files in `folder`.
pub(crate) fn read(folder: &Path) -> Image {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
    files.map(|file| (file.file_name().into_string().unwrap(), std::fs::read(file.path()).unwrap())).collect()
}

/// Makes `folder` hold these files and nothing else.
pub(crate) fn write(image: &Image, folder: &Path) {
    if folder.exists() {
        std::fs::remove_dir_all(folder).unwrap();
    }
    std::fs::create_dir_all(folder).unwrap();
    image.iter().for_each(|(name, bytes)| std::fs::write(folder.join(name), bytes).unwrap());
}

/// The names of the segments, oldest first: the files that begin with a record.
pub(crate) fn segments(image: &Image) -> Vec<String> {
    image.iter().filter(|(_, bytes)| bytes.starts_with(&MAGIC)).map(|(name, _)| name.clone()).collect()
}

/// All records, oldest first.
pub(crate) fn kept(image: &Image) -> Vec<StoredRecords> {
    let mut all = Vec::new();
    for file in segments(image) {
        let bytes = &image[&file];
        let mut from = 0;
        while bytes.get(from..from + 4) == Some(&MAGIC[..]) {
            let header = &bytes[from..from + HEADER];
            let u32_at = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().unwrap());
            let note = usize::from(u16::from_le_bytes([header[54], header[55]]));
            let body = from + HEADER + usize::from(header[52]) + note;
            let to = body + u32_at(44) as usize;
            let mut samples = Vec::new();
            decode(Version::V1, &bytes[body..to], 1 << 24, &mut |arrival| {
                samples.push((arrival.key, arrival.number().unwrap()));
            })
            .unwrap();
            all.push(StoredRecords { file: file.clone(), from, to, items: u32_at(40).into(), samples });
            from = to.next_multiple_of(8);
        }
    }
    all
}
