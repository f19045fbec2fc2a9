import assert from "node:assert/strict";
import { test } from "node:test";
import { askForSession, postAsSession, renewSession, session } from "./session";

/** A gateway whose token changes with each process. */
const gateway = { token: "first", isDown: false, asked: [] as string[] };

Object.assign(globalThis, {
  fetch: (path: string, request: RequestInit): Promise<Response> => {
    const shown = new Headers(request.headers).get("x-tidegate-token") ?? "";
    gateway.asked.push(`${path} ${shown}`.trim());
    if (gateway.isDown) return Promise.reject(new TypeError("refused"));
    if (path === "/console/session") return Promise.resolve(Response.json({ token: gateway.token, operator: true, search: false }));
    return Promise.resolve(shown === gateway.token ? Response.json({ ok: true }) : new Response("no\n", { status: 403 }));
  },
});

const asked = (): string[] => gateway.asked.splice(0);

test("a session that could not be had is asked for again, one that is known is not", async () => {
  gateway.isDown = true;
  await askForSession();
  assert.equal(session.value, null);
  gateway.isDown = false;
  await askForSession();
  await askForSession();
  assert.equal(session.peek()?.token, "first");
  assert.deepEqual(asked(), ["/console/session", "/console/session"]);
});

test("what another process refuses is sent once more with its token", async () => {
  gateway.token = "second";
  const answer = await postAsSession("/console/check", "", "text/plain");
  assert.equal(answer.ok, true);
  assert.deepEqual(asked(), ["/console/check first", "/console/session", "/console/check second"]);
});

test("what this process refuses is not sent again", async () => {
  await renewSession();
  asked();
  const refuse = globalThis.fetch;
  Object.assign(globalThis, { fetch: (path: string, request: RequestInit) => (path === "/console/reload" ? (gateway.asked.push(path), Promise.resolve(new Response("no\n", { status: 403 }))) : refuse(path, request)) });
  const answer = await postAsSession("/console/reload", "", "text/plain");
  assert.deepEqual(answer, { ok: false, status: 403, message: "no" });
  assert.deepEqual(asked(), ["/console/reload", "/console/session"]);
});
