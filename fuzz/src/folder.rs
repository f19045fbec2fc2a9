//! A folder in memory with files that the fuzzer has changed.
#![allow(dead_code, reason = "each target uses a part of it")]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A folder that goes with its value.
pub struct Folder(PathBuf);

impl Folder {
    pub fn empty() -> Folder {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let memory = Path::new("/dev/shm");
        let root = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let name = format!("tidegate-fuzz-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        let path = root.join(name);
        std::fs::create_dir(&path).expect("a folder");
        Folder(path)
    }

    /// `files`, changed as `input` says: which file, where, how many bytes, and the bytes; 255 as the number cuts the file
    /// there. What is there twice, as `files` has it, is changed again.
    pub fn of(files: &[(String, Vec<u8>)], mut input: &[u8]) -> Folder {
        let folder = Folder::empty();
        let mut files = files.to_vec();
        while let [which, low, high, count, rest @ ..] = input {
            let at = usize::from(u16::from_le_bytes([*low, *high]));
            let number = usize::from(*which) % files.len().max(1);
            let (bytes, next) = rest.split_at(usize::from(*count % 64).min(rest.len()));
            input = next;
            let Some((_, file)) = files.get_mut(number) else { continue };
            if *count == 255 {
                file.truncate(at);
                continue;
            }
            if file.len() < at + bytes.len() {
                file.resize(at + bytes.len(), 0);
            }
            file[at..at + bytes.len()].copy_from_slice(bytes);
        }
        for (name, bytes) in files {
            folder.write(&name, &bytes);
        }
        folder
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.0.join(name), bytes).expect("a file");
    }

    /// All files in it, by name.
    pub fn files(&self) -> Vec<(String, Vec<u8>)> {
        let entries = std::fs::read_dir(&self.0).expect("a folder").map_while(Result::ok);
        let files = entries.filter(|entry| entry.path().is_file());
        let mut files: Vec<_> = files
            .map(|file| {
                let bytes = std::fs::read(file.path()).expect("a file");
                (file.file_name().to_string_lossy().into_owned(), bytes)
            })
            .collect();
        files.sort();
        files
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
