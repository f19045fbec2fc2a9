//! Promise: in whatever pieces frames arrive, each body is whole where it belongs, the codec gets valid frames
//! that tell the same story, and all that it does not see is given back to the peer.

use super::*;
use crate::grpc::PREFIX;
use crate::http2::frames::{Frames, PREFACE};
use std::collections::BTreeMap;
use tidegate_arena::{Arena, Floors, Share};

const HEADERS: u8 = 1;
const END_HEADERS: u8 = 4;

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below.max(1)
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    [&FrameHeader { len: payload.len(), kind, flags, stream }.bytes()[..], payload].concat()
}

/// A body of `len` bytes behind its prefix, which nobody takes for another's.
fn body(stream: u32, len: usize) -> Vec<u8> {
    let prefix = [&[0][..], &u32::try_from(len).unwrap().to_be_bytes()].concat();
    let rest =
        (0..len).map(|at| (at as u32).wrapping_mul(2_654_435_761).wrapping_add(stream).to_be_bytes()[0]);
    prefix.into_iter().chain(rest).collect()
}

/// `DATA` frames of a body, some padded, some empty, the last with or without bytes; and how much padding there is.
fn frames(dice: &mut Dice, stream: u32, body: &[u8], longest: usize) -> (Vec<Vec<u8>>, usize) {
    let (mut frames, mut rest, mut padding) = (Vec::new(), body, 0);
    loop {
        let (now, later) = rest.split_at(dice.roll(longest + 1).min(rest.len()));
        let ends = if later.is_empty() && dice.roll(2) == 0 { END_STREAM } else { 0 };
        if dice.roll(4) == 0 {
            let pad = dice.roll(200);
            padding += 1 + pad;
            let payload = [&[pad as u8][..], now, &vec![0; pad]].concat();
            frames.push(frame(DATA, ends | PADDED, stream, &payload));
        } else {
            frames.push(frame(DATA, ends, stream, now));
        }
        rest = later;
        if ends != 0 {
            return (frames, padding);
        }
    }
}

/// The codec's input, by stream: bytes of `DATA`, and how often the stream ended.
fn bodies_seen_by_the_codec(mut fed: &[u8]) -> BTreeMap<u32, (Vec<u8>, u32)> {
    assert_eq!(&fed[..PREFACE.len()], PREFACE);
    fed = &fed[PREFACE.len()..];
    let mut heard = BTreeMap::<u32, (Vec<u8>, u32)>::new();
    while !fed.is_empty() {
        let head = FrameHeader::of(fed[..HEAD].try_into().unwrap());
        let payload = &fed[HEAD..HEAD + head.len];
        if head.kind == DATA {
            let (bytes, ends) = heard.entry(head.stream).or_default();
            assert_eq!(*ends, 0, "nothing comes after the end of {}", head.stream);
            assert_eq!(head.flags & PADDED, 0, "padding goes past the codec");
            bytes.extend_from_slice(payload);
            *ends += u32::from(head.flags & END_STREAM != 0);
        }
        fed = &fed[HEAD + head.len..];
    }
    heard
}

/// One connection, with a call for each stream, which opens its window when it has its prefix.
struct Rig {
    arena: Arena,
    inflow: FrameReader,
    bodies: DirectBodies,
    owed: WindowUpdates,
    streams: Streams,
    fed: Vec<u8>,
    /// The length of each body that goes past the codec.
    past: BTreeMap<u32, usize>,
    done: BTreeMap<u32, Vec<u8>>,
}

impl Rig {
    fn new() -> Rig {
        let arena = Arena::new(16 << 20, Floors::NONE, 4 << 20, 64, 64).unwrap();
        Rig {
            streams: Streams::new(arena.clone()),
            arena,
            inflow: FrameReader::after(PREFACE.len()),
            bodies: DirectBodies::default(),
            owed: WindowUpdates::new(),
            fed: Vec::new(),
            past: BTreeMap::new(),
            done: BTreeMap::new(),
        }
    }

    fn read(&mut self, dice: &mut Dice, mut wire: &[u8]) {
        loop {
            let mut room = vec![0; 1 + dice.roll(3) * 40 + dice.roll(9000)];
            let mut out = ReadBuf::new(&mut room);
            self.streams.begin();
            let step = self.inflow.step(&mut out, &mut self.bodies, &mut self.owed, &mut self.streams);
            self.fed.extend_from_slice(out.filled());
            self.serve(dice);
            if step != ReadStep::Hungry {
                continue;
            }
            let direct = self.inflow.direct().min(wire.len());
            if direct > 0 && dice.roll(2) == 0 {
                self.fed.extend_from_slice(&wire[..direct]);
                self.inflow.passed(direct);
                wire = &wire[direct..];
                continue;
            }
            let room = self.inflow.room(&mut self.bodies, dice.roll(2) == 0);
            let some = if dice.roll(2) == 0 { room.len() } else { 1 + dice.roll(300) };
            let some = some.min(room.len()).min(wire.len());
            room[..some].copy_from_slice(&wire[..some]);
            self.inflow.filled(some);
            wire = &wire[some..];
            if some == 0 {
                return;
            }
        }
    }

    /// The calls' behaviour: open their windows, close full ones, and occasionally leave early.
    fn serve(&mut self, dice: &mut Dice) {
        let streams: Vec<(u32, usize)> = self.past.iter().map(|(stream, len)| (*stream, *len)).collect();
        for (stream, len) in streams {
            match self.bodies.place(stream) {
                Destination::Prefix(0) => {
                    let mut window = self.arena.try_window(Share::Ingest, PREFIX + len).unwrap();
                    window.append(&body(stream, len)[..PREFIX]).unwrap();
                    self.bodies.open(stream, window, PREFIX + len);
                }
                Destination::Window(0) if dice.roll(2) == 0 => {
                    let window = self.bodies.close(stream).unwrap();
                    let window = self.inflow.leave(stream, window).expect("no more lies behind a whole body");
                    self.done.insert(stream, window.to_vec());
                }
                _ => {}
            }
        }
    }
}

#[test]
fn a_body_is_whole_however_it_is_framed() {
    for seed in 0..300 {
        let mut dice = Dice(seed);
        let mut rig = Rig::new();
        let longest = [3, 100, 2000, 16 << 10][dice.roll(4)];
        let (mut queues, mut through, mut credit) = (Vec::new(), BTreeMap::new(), 0);
        for stream in (1..).step_by(2).take(1 + dice.roll(5)) {
            let most = [10, 3000, 20_000, 120_000][dice.roll(4)];
            let len = dice.roll(most.min(longest * 400));
            let bytes = body(stream, len);
            let (frames, padding) = frames(&mut dice, stream, &bytes, longest);
            credit += padding;
            if dice.roll(5) == 0 {
                if dice.roll(2) == 0 {
                    rig.bodies.add(stream, false);
                }
                through.insert(stream, bytes);
            } else {
                rig.bodies.add(stream, true);
                rig.past.insert(stream, len);
                credit += len;
            }
            let head = frame(HEADERS, END_HEADERS, stream, &vec![7; dice.roll(400)]);
            queues.push((true, [vec![head], frames].concat().into_iter().peekable()));
        }
        let mut wire = PREFACE.to_vec();
        let one_by_one = dice.roll(2) == 0;
        while queues.iter_mut().any(|(_, queue)| queue.peek().is_some()) {
            let chosen = if one_by_one { 0 } else { dice.roll(queues.len()) };
            // Streams are opened in the order of their numbers.
            let chosen =
                queues.iter().position(|(unopened, _)| *unopened).map_or(chosen, |next| chosen.min(next));
            let (unopened, queue) = &mut queues[chosen];
            *unopened = false;
            match queue.next() {
                Some(frame) => wire.extend(frame),
                None => _ = queues.remove(chosen),
            }
        }
        rig.read(&mut dice, &wire);

        assert!(rig.inflow.is_whole(), "seed {seed}");
        let mut follower = Frames::after(PREFACE.len());
        follower.follow(&rig.fed);
        assert!(follower.are_whole(), "seed {seed}");
        let heard = bodies_seen_by_the_codec(&rig.fed);
        for (stream, bytes) in through {
            assert_eq!(heard[&stream], (bytes, 1), "seed {seed}, stream {stream}");
        }
        for (stream, len) in rig.past.clone() {
            let bytes = body(stream, len);
            assert_eq!(heard[&stream], (bytes[..PREFIX].to_vec(), 1), "seed {seed}, stream {stream}");
            let done =
                rig.done.remove(&stream).or_else(|| rig.bodies.close(stream).map(|window| window.to_vec()));
            assert_eq!(done, Some(bytes), "seed {seed}, stream {stream}");
        }
        assert_eq!(rig.owed.all_of_connection(), credit, "seed {seed}");
    }
}

/// A call that gives up leaves the remaining bytes to the others.
#[test]
fn a_call_that_ends_early_leaves_the_bytes_of_others() {
    let (mut dice, mut rig) = (Dice(1), Rig::new());
    rig.bodies.add(1, true);
    rig.past.insert(1, 200_000);
    let (first, second) = (body(1, 200_000), body(3, 50_000));
    let begun = [PREFACE, &frame(DATA, 0, 1, &first[..100])[..]].concat();
    rig.read(&mut dice, &begun);
    // All of this is read into the window of the first.
    rig.bodies.add(3, true);
    let room = rig.inflow.room(&mut rig.bodies, true);
    let behind: Vec<u8> =
        second[..48_000].chunks(16_000).flat_map(|piece| frame(DATA, 0, 3, piece)).collect();
    room[..behind.len()].copy_from_slice(&behind);
    rig.inflow.filled(behind.len());
    let window = rig.bodies.remove(1).unwrap();
    rig.past.remove(&1);
    let charged = rig.arena.usage().shares.iter().map(|share| share.used).sum::<u64>();
    assert!(rig.inflow.leave(1, window).is_none(), "it is needed still");
    assert_eq!(rig.arena.usage().shares.iter().map(|share| share.used).sum::<u64>(), charged);
    rig.past.insert(3, 50_000);
    rig.read(&mut dice, &frame(DATA, END_STREAM, 3, &second[48_000..]));
    assert_eq!(rig.bodies.close(3).map(|window| window.to_vec()), Some(second));
    rig.inflow.rest();
    assert_eq!(rig.arena.usage().shares.iter().map(|share| share.used).sum::<u64>(), 0);
}

/// Wrong padding is for the codec to refuse.
#[test]
fn padding_longer_than_its_frame_reaches_the_codec() {
    let (mut dice, mut rig) = (Dice(2), Rig::new());
    rig.bodies.add(1, true);
    let wire = [PREFACE, &frame(DATA, PADDED, 1, &[9, 0, 0])[..]].concat();
    rig.read(&mut dice, &wire);
    assert_eq!(rig.fed[PREFACE.len()..][..HEAD + 1], [0, 0, 1, DATA, PADDED, 0, 0, 0, 1, 9]);
}

/// Without memory the codec gets frames that fit its buffer as it is.
#[test]
fn without_memory_the_codec_gets_short_frames() {
    let mut rig = Rig::new();
    let bytes: Vec<u8> = (0..40_000).map(|at: u32| at.to_be_bytes()[3]).collect();
    let frames = bytes.chunks(15_000).flat_map(|piece| frame(DATA, 0, 1, piece));
    let wire: Vec<u8> =
        PREFACE.iter().copied().chain(frames).chain(frame(DATA, END_STREAM, 1, &[])).collect();
    let (mut wire, mut fed) = (&wire[..], Vec::new());
    while !wire.is_empty() {
        let some = rig.inflow.room(&mut rig.bodies, false);
        assert_eq!(some.len(), UNPAID);
        let len = some.len().min(wire.len());
        some[..len].copy_from_slice(&wire[..len]);
        wire = &wire[len..];
        rig.inflow.filled(len);
        let mut out = vec![0; 2 * UNPAID];
        let mut step = ReadStep::Held;
        while step != ReadStep::Hungry {
            let mut out = ReadBuf::new(&mut out);
            rig.streams.begin();
            step = rig.inflow.step(&mut out, &mut rig.bodies, &mut rig.owed, &mut rig.streams);
            fed.extend_from_slice(out.filled());
        }
    }
    assert_eq!(bodies_seen_by_the_codec(&fed), BTreeMap::from([(1, (bytes, 1))]));
    let (mut at, mut longest) = (PREFACE.len(), 0);
    while at < fed.len() {
        let head = FrameHeader::of(fed[at..at + HEAD].try_into().unwrap());
        (at, longest) = (at + HEAD + head.len, longest.max(head.len));
    }
    assert_eq!(longest, UNPAID);
}
