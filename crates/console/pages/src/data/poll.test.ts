import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { poll } from "./poll";

/** A page that may be hidden. */
class FakePage extends EventTarget {
  hidden = false;

  hide(hidden: boolean): void {
    this.hidden = hidden;
    this.dispatchEvent(new Event("visibilitychange"));
  }
}

const settle = (): Promise<void> => new Promise((done) => setImmediate(done));

/** A poll of one second whose questions are counted. */
function started(context: TestContext, hidden: boolean) {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const page = new FakePage();
  page.hidden = hidden;
  Object.assign(globalThis, { document: page });
  const ended = new AbortController();
  const asked = { times: 0 };
  const done = poll(() => Promise.resolve(asked.times++), 1_000, ended.signal);
  const later = async (ms: number): Promise<void> => {
    context.mock.timers.tick(ms);
    await settle();
  };
  return { page, ended, asked, done, later };
}

test("it asks at once and then again, until it is ended", async (context) => {
  const { ended, asked, done, later } = started(context, false);
  await later(0);
  await later(1_000);
  assert.equal(asked.times, 2);
  ended.abort();
  await done;
  await later(10_000);
  assert.equal(asked.times, 2);
});

test("it does not ask while the page is hidden, and at once when it is shown", async (context) => {
  const { page, ended, asked, done, later } = started(context, true);
  await later(5_000);
  assert.equal(asked.times, 0);
  page.hide(false);
  await later(0);
  assert.equal(asked.times, 1);
  page.hide(true);
  await later(5_000);
  assert.equal(asked.times, 1);
  ended.abort();
  await done;
});
