//! Compresses the built pages, so that the program has them as they are sent, with and without gzip.

use flate2::{Compression, GzBuilder};
use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hasher as _};
use std::io::Write as _;
use std::path::Path;

/// The files of `pages/dist`, with the paths where they are served and their types.
const FILES: [(&str, &str, &str); 4] = [
    ("index.html", "/", "text/html; charset=utf-8"),
    ("app.js", "/console/app.js", "text/javascript; charset=utf-8"),
    ("app.css", "/console/app.css", "text/css; charset=utf-8"),
    ("icon.svg", "/console/icon.svg", "image/svg+xml"),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (from, to) = (Path::new("pages/dist"), env::var("OUT_DIR")?);
    let mut table = format!("pub(crate) static ASSETS: [Asset; {}] = [\n", FILES.len());
    for (name, path, content_type) in FILES {
        println!("cargo::rerun-if-changed=pages/dist/{name}");
        let plain = fs::read(from.join(name))?;
        // Without a time, so that the same pages make the same program.
        let mut gzip = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
        gzip.write_all(&plain)?;
        let gzip = gzip.finish()?;
        let mut hash = DefaultHasher::new();
        hash.write(&plain);
        let tag = hash.finish();
        fs::write(Path::new(&to).join(name), &plain)?;
        fs::write(Path::new(&to).join(format!("{name}.gz")), &gzip)?;
        let bytes = |file: &str| format!("include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{file}\"))");
        table.push_str(&format!(
            "    asset!({path:?}, {content_type:?}, \"W/\\\"{tag:016x}\\\"\", {}, {}),\n",
            bytes(name),
            bytes(&format!("{name}.gz")),
        ));
    }
    table.push_str("];\n");
    fs::write(Path::new(&to).join("assets.rs"), table)?;
    Ok(())
}
