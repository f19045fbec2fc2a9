// Opens every page of the console in a browser, as people do: narrow and wide, dark and light, by keyboard alone.
//
//   node run.mjs [URL] [FOLDER]
//
// URL is the gateway's admin address; without it, the pages of `dist/` are served here in front of a gateway at
// http://127.0.0.1:4319 (or TIDEGATE_GATEWAY), as it is and in the scenes of `scenes/`. Screenshots go to FOLDER (or
// TIDEGATE_SCREENSHOTS), if there is one.
// Fails on errors in the browser's console, violations of the policy, serious findings of axe, and pages that scroll sideways.
import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { DISCARD, pagesOf } from "./pages.mjs";
import { serve } from "./serve.mjs";

// Packages may be installed elsewhere: the tests of the workspace share one folder.
const modules = process.env.TIDEGATE_TEST_NODE_MODULES;
const require = createRequire(modules ? path.join(path.resolve(modules), "..", "package.json") : import.meta.url);
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const CHROMIUM = process.env.TIDEGATE_TEST_CHROMIUM ?? "/usr/bin/chromium";
const ARGUMENTS = "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync".split(" ");
const WIDTHS = [360, 1440];
const SCHEMES = ["light", "dark"];
const LOADS = 9;
const FINDINGS = ["serious", "critical"];

const given = process.argv[2] || undefined;
const folder = process.argv[3] ?? process.env.TIDEGATE_SCREENSHOTS;
if (folder) mkdirSync(folder, { recursive: true });
/** Where the pages are, and what screenshots of them are called. */
let url = "";
let scene = "";

const problems = [];
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ARGUMENTS });
try {
  if (given) await everything(given);
  else await everyScene();
} catch (error) {
  problems.push(error.stack);
} finally {
  await browser.close();
}

for (const problem of problems) console.error(problem);
console.log(problems.length === 0 ? "the pages are as they should be" : `${problems.length} problems`);
process.exit(problems.length === 0 ? 0 : 1);

async function everything(at) {
  url = at.replace(/\/$/, "");
  await firstPaint();
  const pages = await pagesOf(url);
  // Both widths at once: much of the time goes by until a page has its next numbers.
  for (const colorScheme of SCHEMES) await Promise.all(WIDTHS.map((width) => visit(pages, width, colorScheme)));
  await walk();
  await reconnect();
  await openAgent(pages);
  // Only of a gateway that is there for the test.
  if (process.env.TIDEGATE_TEST_DEAD_LETTERS) {
    await openLetters();
    await orderLetters();
  }
  if (process.env.TIDEGATE_TEST_EMPTY) await begin(process.env.TIDEGATE_TEST_EMPTY);
}

/** A gateway without data has what to paste, for the kind of sender that is chosen. */
async function begin(at) {
  url = at;
  scene = "begin-";
  const started = { name: "overview", hash: "#/", ready: ".started pre" };
  await Promise.all([visit([started], 1440, "light"), visit([started], 360, "dark")]);
  const { page } = await open(1440, "light");
  await page.goto(`${url}/`);
  const kinds = page.getByLabel("Send to this gateway from");
  await page.waitForFunction(() => document.querySelectorAll(".started option").length > 1);
  await kinds.focus();
  // The list is closed, so what is typed chooses.
  await page.keyboard.type("Prometheus");
  await page.waitForFunction(() => document.querySelector(".started pre")?.textContent.includes("remote_write:"));
  // One that the gateway does not receive has the lines that turn it on.
  await kinds.selectOption("rsyslog");
  await page.waitForFunction(() => document.querySelector(".started h3")?.textContent.includes("is not set"));
  await page.context().close();
}

async function everyScene() {
  const gateway = process.env.TIDEGATE_GATEWAY;
  const plain = await serve({ gateway });
  await everything(plain.url);
  plain.stop();
  for (const file of readdirSync(new URL("scenes/", import.meta.url))) {
    scene = `${file.replace(".mjs", "")}-`;
    const staged = await serve({ gateway, scene: (await import(`./scenes/${file}`)).default });
    url = staged.url;
    const pages = await pagesOf(url);
    await Promise.all([visit(pages, 1440, "light"), visit(pages, 360, "dark")]);
    staged.stop();
  }
}

/** A page whose errors are problems, unless it is `cutOff`: answers are kept from it on purpose, which the browser reports. */
async function open(width, colorScheme, { cutOff = false } = {}) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, reducedMotion: "reduce" });
  const page = await context.newPage();
  const where = () => `${scene}${page.url().replace(url, "")} at ${width} ${colorScheme}`;
  page.on("pageerror", (error) => problems.push(`${where()}: ${error.stack}`));
  page.on("console", (message) => {
    if (message.type() !== "error") return;
    const from = message.location().url;
    // What a version does not have is answered 404; a tap whose filter changed may be asked to wait with 409.
    const expected = (message.text().includes("404") && from.includes("/console/")) || (message.text().includes("409") && from.includes("/tap"));
    if (!expected && !cutOff) problems.push(`${where()}: the browser says: ${message.text()} (${from})`);
  });
  page.on("request", (request) => {
    const target = new URL(request.url());
    if (target.origin !== url && !["data:", "blob:"].includes(target.protocol)) problems.push(`${where()}: asks for ${target.href}`);
  });
  await page.addInitScript(() => {
    window.violations = [];
    document.addEventListener("securitypolicyviolation", (event) => window.violations.push(`${event.violatedDirective}: ${event.blockedURI} ${event.sample}`));
  });
  return { page, where };
}

async function visit(pages, width, colorScheme) {
  const { page, where } = await open(width, colorScheme);
  await page.goto(`${url}/`);
  await page.waitForSelector("main h1");
  for (const { hash, name, ready, press } of pages) {
    await page.evaluate((to) => (location.hash = to), hash);
    await page.waitForSelector(ready);
    await page.waitForFunction(() => document.fonts.status === "loaded");
    await nextFrame(page);
    if (press) await page.locator(press).first().click({ timeout: 10_000 }).catch(() => problems.push(`${where()}: has no ${press} to press`));
    const sideways = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    if (sideways > 0) problems.push(`${where()}: scrolls sideways by ${sideways} pixels`);
    for (const violation of await page.evaluate(() => window.violations.splice(0))) problems.push(`${where()}: violates the policy: ${violation}`);
    await check(page, where());
    if (folder) await page.screenshot({ path: path.join(folder, `${scene}${name}-${width}-${colorScheme}.png`), fullPage: true });
  }
  await page.context().close();
}

/** How long a browser that has nothing in its cache shows nothing: the median of some loads. Other programs may be at work, so the bound is wide. */
async function firstPaint() {
  const times = [];
  for (let load = 0; load < LOADS; load++) {
    const { page } = await open(1440, "light");
    await page.goto(`${url}/`);
    await page.waitForSelector("main h1");
    const paint = await page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
    times.push(await paint.jsonValue());
    await page.context().close();
  }
  const median = Math.round(times.sort((a, b) => a - b)[Math.floor(LOADS / 2)]);
  console.log(`first paint after ${median} ms, the median of ${LOADS} loads`);
  if (median > 1000) problems.push(`the first paint came after ${median} ms`);
}

/** Waits until the page has shown the next frame: numbers that come and go must not move what stands around them. */
async function nextFrame(page) {
  const shown = await page.getAttribute(".about", "data-moment");
  await page.waitForFunction((shown) => document.querySelector(".about")?.dataset.moment !== shown, shown);
}

async function check(page, where) {
  // The policy forbids scripts of others in the page, not those of the one who holds the browser.
  await page.evaluate(`(() => { const module = undefined, exports = undefined, define = undefined; ${axe}; })()`);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  for (const violation of violations.filter((violation) => FINDINGS.includes(violation.impact))) {
    const nodes = violation.nodes.slice(0, 3).map((node) => `\n    ${node.html.slice(0, 160)}\n      ${node.failureSummary.replaceAll("\n", " ")}`);
    problems.push(`${where}: axe: ${violation.id} (${violation.impact}): ${violation.help}${nodes.join("")}`);
  }
}

/** Everything by keyboard: to the content, between pages, into a list, the help. */
async function walk() {
  const { page } = await open(1440, "light");
  await page.goto(`${url}/`);
  await page.waitForSelector("main h1");
  const focused = () => page.evaluate(() => document.activeElement?.textContent?.trim() ?? "");
  await page.keyboard.press("Tab");
  assert.match(await focused(), /Skip to the content/, "the first stop is the skip link");
  const visible = await page.evaluate(() => document.activeElement.getBoundingClientRect().top >= 0);
  assert.ok(visible, "the skip link is seen when it has the focus");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.tagName), "MAIN", "it leads to the content");

  await page.locator(".traffic .chart").focus();
  await page.keyboard.press("ArrowLeft");
  await page.waitForFunction(() => /^at \d\d:/.test(document.querySelector(".traffic .note")?.textContent ?? ""));
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => document.querySelector(".traffic .note")?.textContent === "last 15 minutes");

  await page.keyboard.press("g");
  await page.keyboard.press("s");
  await page.waitForFunction(() => location.hash === "#/sinks");
  await page.waitForFunction(() => document.activeElement?.tagName === "H1");
  assert.equal(await focused(), "Sinks", "the focus is at the title of the new page");
  assert.match(await page.title(), /Sinks/);

  await page.keyboard.press("?");
  await page.waitForSelector("dialog.help[open]");
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => document.querySelector("dialog.help[open]") === null);

  // From the title, the first stop in the list is a sink; Enter opens it.
  const link = page.locator("main table a").first();
  if (await link.count()) {
    for (let stops = 0; stops < 40; stops++) {
      await page.keyboard.press("Tab");
      if (await link.evaluate((element) => element === document.activeElement)) break;
    }
    assert.ok(await link.evaluate((element) => element === document.activeElement), "a sink is reached by Tab");
    const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
    assert.notEqual(outline, "none", "the focus is seen");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => location.hash.startsWith("#/sinks/"));
  }

  await page.keyboard.press("t");
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "light");
  await page.keyboard.press("t");
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
  assert.match(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), /rgb\(1\d, /, "the switch is stronger than the system");
  await page.context().close();
}

/** An agent is found by its health and opened by keyboard alone; what it says is text; the focus is back in the list afterwards. */
async function openAgent(pages) {
  if (!pages.some(({ name }) => name === "agent")) return;
  const { page } = await open(360, "dark");
  await page.goto(`${url}/#/agents`);
  await page.locator(".legend a").first().focus();
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => location.hash.startsWith("#/agents?status="));
  // What is typed stays while numbers come, and is taken with Enter.
  const host = page.getByLabel("Host or id");
  await host.pressSequentially("WEB");
  await nextFrame(page);
  await host.pressSequentially("-1");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => location.hash.endsWith("host=WEB-1"));
  await nextFrame(page);
  assert.equal(await host.evaluate((field) => field === document.activeElement && field.value), "WEB-1", "the focus stays in the field");
  const agent = page.locator("tbody a[href*='agent=']").first();
  await agent.focus();
  await page.keyboard.press("Enter");
  await page.waitForSelector("dialog.drawer .facts");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Close");
  await page.waitForFunction(() => document.querySelector("dialog.drawer").textContent.includes("no such file: <b>x</b>"));
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => document.querySelector("dialog.drawer") === null);
  assert.match(await page.evaluate(() => location.hash), /^#\/agents\?status=\w+&host=WEB-1$/, "the list is as it was");
  await page.waitForFunction(() => document.activeElement?.matches("tbody a"));
  await page.context().close();
}

/** Each dead letter is opened and closed by keyboard alone, and has its items: log records, spans, or points. */
async function openLetters() {
  const { page } = await open(360, "light");
  await page.goto(`${url}/#/rejects`);
  const links = page.locator("main tbody th a[href*='letter=']");
  await links.first().waitFor();
  const seen = [];
  for (let place = 0; place < (await links.count()); place++) {
    await links.nth(place).focus();
    await page.keyboard.press("Enter");
    const line = page.locator("dialog.drawer .log-line > button").first();
    await line.focus();
    await page.keyboard.press("Enter");
    await page.waitForSelector("dialog.drawer .details");
    seen.push(await page.locator("dialog.drawer .log-body").first().textContent());
    await check(page, "a dead letter at 360 light");
    await page.keyboard.press("Escape");
    await page.waitForFunction(() => document.querySelector("dialog.drawer") === null);
    assert.equal(await page.evaluate(() => location.hash), "#/rejects");
    await page.waitForFunction(() => document.activeElement?.matches("tbody th a"));
  }
  for (const item of [/^payment declined$/, /^POST \/pay, |^charge the card, /, /^payments: \d/]) {
    assert.ok(seen.some((text) => item.test(text)), `${item} is among the items: ${seen}`);
  }
  await page.context().close();
}

/** Dead letters are sent again, are rejected again, and are discarded, by keyboard alone; the outcome is told. */
async function orderLetters() {
  const { page } = await open(360, "dark");
  await page.goto(`${url}/#/rejects`);
  const follow = async (button, outcome) => {
    await page.locator(button).first().focus({ timeout: 30_000 });
    await page.keyboard.press("Enter");
    await page.waitForSelector("dialog.reload[open]");
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "Close", "nothing is done by the first key");
    await page.keyboard.press("Shift+Tab");
    await page.keyboard.press("Enter");
    await page.waitForFunction((outcome) => new RegExp(outcome).test(document.querySelector("dialog [aria-live]")?.textContent ?? ""), outcome);
    await check(page, `${outcome} at 360 dark`);
    await page.keyboard.press("Escape");
    await page.waitForFunction(() => document.querySelector("dialog.reload") === null);
  };
  await page.waitForSelector('main button[aria-label^="Send again"]');
  const listed = await lettersOf(page);
  assert.match(await page.locator(".card", { hasText: "Dropped items" }).first().textContent(), /picky\s*rejected/, "its drops are listed, too");
  await follow('main button[aria-label^="Send again"]', "letters? with .* sent again\\.$");
  // Those that are not back yet would come after the others are discarded.
  await page.waitForFunction(
    ({ count, last }) => {
      const rows = [...document.querySelectorAll("main tbody th")].map((head) => Number(head.textContent));
      return rows.filter((number) => number > last).length === count && !rows.includes(last);
    },
    { count: listed.length, last: Math.max(...listed) },
  );
  await follow(DISCARD, "letters? with .* discarded\\.$");
  await page.waitForFunction(() => document.querySelector("main").textContent.includes("No peer has rejected anything that is kept."));
  await page.waitForFunction(() => document.activeElement?.tagName === "H1");
  await page.context().close();
}

/** The numbers of the dead letters that the page lists. */
async function lettersOf(page) {
  const heads = await page.locator("main tbody th").allTextContents();
  return heads.map(Number).filter((number) => number > 0);
}

/** Without a stream the numbers go on, by polling; without an answer the page says how old they are; with both it is live again. */
async function reconnect() {
  const { page } = await open(1440, "light", { cutOff: true });
  await page.route("**/console/events", (route) => route.fulfill({ status: 503, body: "" }));
  await page.goto(`${url}/`);
  await page.waitForSelector("main h1 .dot");
  await page.waitForFunction(() => document.querySelector(".about")?.textContent?.includes("every 2 s"));
  assert.match(await page.textContent(".notice"), /Too many pages are open, or the stream is unavailable/);
  await page.route("**/status.json", (route) => route.abort());
  await page.waitForSelector(".notice.warn", { timeout: 15_000 });
  assert.match(await page.textContent(".notice.warn"), /Reconnecting… These numbers are .* old/);
  await page.unroute("**/status.json");
  await page.unroute("**/console/events");
  await page.waitForFunction(() => document.querySelector(".about")?.textContent?.endsWith("live"), undefined, { timeout: 30_000 });
  assert.equal(await page.locator(".notice").count(), 0, "a page that is live complains of nothing");
  await page.context().close();
}
