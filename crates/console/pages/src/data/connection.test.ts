import assert from "node:assert/strict";
import { beforeEach, test, type TestContext } from "node:test";
import { FrameSource, arrived, connection, streamRefused } from "./connection";

const STATUS = { state: "flowing", reason: "", memory: { declared: [], payload: {} }, journal: {}, sinks: [], books: { sources: [], sinks: [] } };
const FRAME = JSON.stringify(STATUS);

/** A stream that says what the test wants. */
class FakeStream {
  static readonly CLOSED = 2;
  static all: FakeStream[] = [];
  readyState = 0;
  onmessage: (event: { data: string }) => void = () => undefined;
  onerror: () => void = () => undefined;

  constructor() {
    FakeStream.all.push(this);
  }

  close(): void {
    this.readyState = FakeStream.CLOSED;
  }

  frame(data = FRAME): void {
    this.readyState = 1;
    this.onmessage({ data });
  }

  fail(readyState: number): void {
    this.readyState = readyState;
    this.onerror();
  }
}

class FakePage extends EventTarget {
  hidden = false;

  hide(hidden: boolean): void {
    this.hidden = hidden;
    this.dispatchEvent(new Event("visibilitychange"));
  }
}

beforeEach(() => {
  FakeStream.all = [];
  connection.value = "starting";
  arrived.value = 0;
  streamRefused.value = false;
});

const newest = (): FakeStream => FakeStream.all.at(-1) as FakeStream;
const settle = (): Promise<void> => new Promise((done) => setImmediate(done));

function started(context: TestContext, { hidden = false } = {}) {
  context.mock.timers.enable({ apis: ["setTimeout", "Date"] });
  const page = new FakePage();
  page.hidden = hidden;
  const gateway = { answers: true, polls: 0, taken: 0, resumed: 0, versions: [] as string[], breaks: false };
  const fetch = (): Promise<Response> => {
    gateway.polls++;
    return gateway.answers ? Promise.resolve(new Response(FRAME)) : Promise.reject(new TypeError("refused"));
  };
  Object.assign(globalThis, { document: page, EventSource: FakeStream, fetch });
  const take = (): void => {
    if (gateway.breaks) throw new Error("this page does not understand it");
    gateway.taken++;
  };
  new FrameSource({ take, sawVersion: (version) => gateway.versions.push(version), resumed: () => gateway.resumed++ }).start();
  const later = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 1_000) {
      context.mock.timers.tick(Math.min(1_000, ms - passed));
      await settle();
    }
  };
  return { page, gateway, later };
}

test("a stream that ends is left to connect again by itself", async (context) => {
  const { gateway, later } = started(context);
  newest().frame();
  newest().fail(0);
  await later(2_000);
  assert.deepEqual([connection.value, gateway.polls, FakeStream.all.length], ["live", 0, 1]);
  newest().frame();
  assert.deepEqual([gateway.taken, gateway.resumed], [2, 0]);
});

test("a stream that is refused is replaced by polling, and tried again", async (context) => {
  const { gateway, later } = started(context);
  newest().fail(FakeStream.CLOSED);
  await later(4_000);
  assert.deepEqual([connection.value, streamRefused.value], ["polling", true]);
  assert.ok(gateway.polls >= 2);
  await later(11_000);
  assert.equal(FakeStream.all.length, 2);
  newest().frame();
  const { polls } = gateway;
  await later(5_000);
  assert.deepEqual([connection.value, streamRefused.value, gateway.polls], ["live", false, polls]);
});

test("a silent stream is replaced, and the past is fetched when it is back", async (context) => {
  const { gateway, later } = started(context);
  newest().frame();
  gateway.answers = false;
  await later(7_000);
  assert.deepEqual([connection.value, gateway.resumed], ["lost", 0]);
  gateway.answers = true;
  await later(3_000);
  assert.deepEqual([connection.value, gateway.resumed], ["polling", 1]);
});

test("a pause of the whole machine is an outage, too", (context) => {
  const { gateway } = started(context);
  newest().frame();
  context.mock.timers.setTime(Date.now() + 60_000);
  newest().frame();
  assert.equal(gateway.resumed, 1);
});

test("a frame that cannot be taken leaves no old numbers marked live", async (context) => {
  const { gateway, later } = started(context);
  const reported = context.mock.method(console, "error", () => undefined);
  newest().frame();
  const then = arrived.value;
  gateway.breaks = true;
  newest().frame();
  await later(1_000);
  assert.deepEqual([connection.value, arrived.value, gateway.taken], ["lost", then, 1]);
  assert.ok(reported.mock.callCount() >= 1);
});

test("a frame that cannot be read still says its version", (context) => {
  const { gateway } = started(context);
  newest().frame('{"version":"2.0.0"}');
  assert.deepEqual(gateway.versions, ["2.0.0"]);
});

test("a page that is hidden gives its stream back, also one that was opened hidden", async (context) => {
  const { page, later } = started(context, { hidden: true });
  const keepTalking = async (seconds: number): Promise<void> => {
    for (let second = 0; second < seconds; second++) {
      newest().frame();
      await later(1_000);
    }
  };
  await keepTalking(59);
  assert.equal(newest().readyState, 1);
  await keepTalking(1);
  assert.equal(newest().readyState, FakeStream.CLOSED);
  await later(60_000);
  assert.equal(FakeStream.all.length, 1);
  page.hide(false);
  assert.equal(FakeStream.all.length, 2);
});
