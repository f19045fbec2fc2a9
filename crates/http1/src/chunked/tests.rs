use super::*;
use proptest::prelude::*;

/// Undoes `raw`, arriving in pieces that end at `cuts`, as a connection does it. Returns the body, and how
/// many bytes of `raw` belong to it.
fn undone(raw: &[u8], cuts: &[usize], limit: usize) -> Result<Option<(Vec<u8>, usize)>, Refusal> {
    let mut chunked = ChunkedDecoder::new();
    let (mut window, mut body, mut taken) = (Vec::new(), 0, 0);
    for cut in cuts.iter().copied().chain([raw.len()]) {
        if cut <= taken {
            continue;
        }
        window.truncate(body);
        window.extend_from_slice(&raw[taken..cut]);
        let result = chunked.decode(&mut window, body, body, limit)?;
        body = result.body;
        taken = cut - (window.len() - result.rest);
        if chunked.is_done() {
            window.truncate(body);
            return Ok(Some((window, taken)));
        }
        assert_eq!(taken, cut, "all is looked at until the end");
    }
    Ok(None)
}

const FLAW: Refusal = Refusal::Malformed(SyntaxError::Chunk);

/// One row per way in which chunk framing may be written, and per way in which it may not.
#[test]
fn only_the_grammar_is_taken() {
    let good: [(&str, &str); 9] = [
        ("0\r\n\r\n", ""),
        ("5\r\nhello\r\n0\r\n\r\n", "hello"),
        ("5\r\nhel\r\n\r\n00\r\n\r\n", "hel\r\n"),
        ("A\r\n0123456789\r\n1\r\nx\r\n0\r\n\r\n", "0123456789x"),
        ("a\r\n0123456789\r\n0\r\n\r\n", "0123456789"),
        ("0000000000000001\r\nx\r\n0\r\n\r\n", "x"),
        ("1;name=value;other\r\nx\r\n0;last\r\n\r\n", "x"),
        ("1\r\nx\r\n0\r\nA: b\r\nC:\r\n\r\n", "x"),
        ("1\r\nx\r\n0\r\nA: \tb\r\n\r\n", "x"),
    ];
    for (raw, body) in good {
        assert_eq!(undone(raw.as_bytes(), &[], 100), Ok(Some((body.into(), raw.len()))), "{raw:?}");
    }
    let bad = [
        "\r\n",
        ";\r\n",
        " 1\r\n",
        "1 \r\n",
        "+1\r\n",
        "-1\r\n",
        "0x1\r\n",
        "g\r\n",
        "1\n",
        "1\rx",
        "1\r\nxx",
        "1\r\nx\n",
        "1\r\nx\rx",
        "1;\r\n",
        "1;a b\r\n",
        "1; a\r\n",
        "1 ;a\r\n",
        "1;a\n",
        "1;a\0\r\n",
        "0\r\n\n",
        "0\r\n\rx",
        "0\r\n a: b\r\n",
        "0\r\n: b\r\n",
        "0\r\na : b\r\n",
        "0\r\na\r\n",
        "0\r\na: \0\r\n",
        "0\r\na: b\n",
        "0\r\na: b\r\n c\r\n",
        "00000000000000001\r\n",
    ];
    for raw in bad {
        assert_eq!(undone(raw.as_bytes(), &[], 100), Err(FLAW), "{raw:?}");
    }
}

/// The limit is on the body, and a chunk that exceeds it is refused by its size alone.
#[test]
fn the_limit_is_enforced_before_the_bytes_arrive() {
    assert_eq!(undone(b"5\r\nhello\r\n0\r\n\r\n", &[], 5), Ok(Some((b"hello".to_vec(), 15))));
    let too_large = Err(Refusal::BodyTooLarge { limit: 4 });
    assert_eq!(undone(b"5\r\n", &[], 4), too_large);
    assert_eq!(undone(b"3\r\nabc\r\n2\r\n", &[], 4), too_large);
    assert_eq!(undone(b"ffffffffffffffff\r\n", &[], 4), too_large);
}

/// Bytes that accompany the body and are discarded are bounded too.
#[test]
fn extensions_and_trailers_are_bounded() {
    let extras = Err(Refusal::Malformed(SyntaxError::ChunkExtras));
    let extensions = "1;abcdefgh\r\nx\r\n".repeat(1 + usize::from(MAX_EXTENSIONS) / 8);
    assert_eq!(undone(extensions.as_bytes(), &[], 10_000), extras);
    let trailers = format!("0\r\n{}", "a: bcdefgh\r\n".repeat(1 + usize::from(MAX_TRAILERS) / 10));
    assert_eq!(undone(trailers.as_bytes(), &[], 10_000), extras);
}

proptest! {
    /// However a body is cut into chunks, and the chunks into reads, the body comes out, and what follows
    /// it stays.
    #[test]
    fn any_cut_gives_the_same_body(
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..12),
        mut cuts in prop::collection::vec(0..400_usize, 0..30),
    ) {
        let mut raw = Vec::new();
        for chunk in &chunks {
            raw.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            raw.extend_from_slice(chunk);
            raw.extend_from_slice(b"\r\n");
        }
        raw.extend_from_slice(b"0\r\n\r\n");
        let len = raw.len();
        raw.extend_from_slice(b"GET / HTTP/1.1");
        cuts.sort_unstable();
        cuts.retain(|cut| *cut < raw.len());
        prop_assert_eq!(undone(&raw, &cuts, 10_000), Ok(Some((chunks.concat(), len))));
    }
}
