import assert from "node:assert/strict";
import { test } from "node:test";
import { orderLetters, outcomeOf, type LetterProgress } from "./dead_letters";

/** A gateway that answers orders one after the other. */
const gateway = { answers: [] as Response[], asked: [] as string[] };

Object.assign(globalThis, {
  fetch: (path: string): Promise<Response> => {
    if (path === "/console/session") return Promise.resolve(Response.json({ token: "t", operator: true, search: true }));
    gateway.asked.push(path);
    return Promise.resolve(gateway.answers.shift() ?? new Response("no more\n", { status: 500 }));
  },
});

const follow = async (...answers: Response[]): Promise<[LetterProgress, LetterProgress[]]> => {
  gateway.answers = answers;
  gateway.asked = [];
  const told: LetterProgress[] = [];
  const end = await orderLetters("resend", "up", 9, (progress) => void told.push(progress), new AbortController().signal);
  return [end, told];
};

test("an order names the sink and the newest letter that was seen", async () => {
  const [end] = await follow(Response.json({ sent: 2, items: 30, kept: 0 }));
  assert.deepEqual(gateway.asked, ["/console/dead-letters/resend?sink=up&through=9"]);
  assert.deepEqual(end, { letters: 2, items: 30, kept: 0 });
});

test("letters that are left for want of time are sent by the next order", async () => {
  const [end, told] = await follow(Response.json({ sent: 2, items: 30, kept: 1 }), Response.json({ sent: 1, items: 5, kept: 0 }));
  assert.deepEqual(told, [{ letters: 2, items: 30, kept: 1 }]);
  assert.deepEqual(end, { letters: 3, items: 35, kept: 0 });
});

test("letters that are refused are not sent in circles", async () => {
  const [refused] = await follow(Response.json({ sent: 2, items: 30, kept: 1, message: "letter 3: it is damaged" }));
  assert.deepEqual(refused, { letters: 2, items: 30, kept: 1, why: "letter 3: it is damaged" });
  const [none] = await follow(Response.json({ sent: 0, items: 0, kept: 1 }));
  assert.deepEqual(none, { letters: 0, items: 0, kept: 1 });
  assert.equal(gateway.asked.length, 1);
});

test("an order that fails says what was done before", async () => {
  const [end] = await follow(Response.json({ sent: 2, items: 30, kept: 1 }), new Response("there is no memory\n", { status: 503 }));
  assert.equal(outcomeOf("resend", end), "2 letters with 30 items were sent again. There is no memory.");
});

test("the outcome is told in sentences", () => {
  assert.equal(outcomeOf("discard", { letters: 1, items: 1, kept: 0 }), "1 letter with 1 item was discarded.");
  assert.equal(outcomeOf("resend", { letters: 3, items: 1200, kept: 1, why: "letter 4: it is damaged" }), "3 letters with 1,200 items were sent again. 1 letter is kept. Letter 4: it is damaged.");
  assert.equal(outcomeOf("resend", { letters: 0, items: 0, why: "another order is being followed" }), "Another order is being followed.");
});
