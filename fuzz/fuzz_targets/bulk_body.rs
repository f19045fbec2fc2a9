//! A `_bulk` body: nothing panics, a document is what another parser finds to be an object, pieces are bodies with
//! all of the items, and an item that is written again is the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tidegate_wire::bulk::{Item, Split, items, unescape};
use tidegate_wire::output::SliceOutput;

fuzz_target!(|body: &[u8]| {
    let Ok(all) = items(body).collect::<Result<Vec<Item<'_>>, _>>() else { return };
    for item in &all {
        if let Some(index) = item.action.index
            && let Some(meant) = unescape(index, &mut [0; 512])
        {
            assert_eq!(serde_json::from_slice::<String>(index).unwrap().as_bytes(), meant);
        }
        let Some(document) = item.document else { continue };
        // The other parser takes neither deep nestings nor numbers without a bound.
        if let Ok(Value::Object(names)) = serde_json::from_slice(document) {
            assert_eq!(item.check(), Ok(()));
            // However its name is written, no script is missed.
            assert!(item.has_script() || !names.keys().any(|name| name.starts_with("script")));
        } else if item.check().is_ok() {
            assert!(document.trim_ascii().starts_with(b"{"));
            assert!(str::from_utf8(document).is_ok());
        }
        let mut room = vec![0; item.written_len(16)];
        let mut out = SliceOutput::new(&mut room);
        item.write(&[b"\"more\":1"], &mut out).unwrap();
        let len = out.len();
        // Whether it is a document is none of the question: this one may not be.
        let again = items(&room[..len]).next().unwrap().unwrap();
        assert_eq!((again.action.kind, again.document), (item.action.kind, item.document));
        assert_eq!((again.action.index, again.action.id), (item.action.index, item.action.id));
    }
    let pieces: Vec<_> = Split::new(body, body.len() / 3, 3).collect();
    assert_eq!(pieces.iter().map(|piece| piece.items).sum::<usize>(), all.len());
    for piece in pieces {
        assert_eq!(items(piece.bytes).count(), piece.items);
    }
});
