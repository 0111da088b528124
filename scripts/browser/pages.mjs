// What every page owes its reader: a language, one heading, names for what is to be filled in, enough contrast in both
// schemes, no scrolling sideways on a telephone. axe-core judges; scripts are on here because it is one.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const TELEPHONE = { width: 390, height: 844 };
const SCREEN = { width: 1280, height: 900 };
/** The narrowest and the widest window that a page must fit into. */
const WIDTHS = [360, 1600];

/** Judges the page that stands there, on a telephone and on a screen, in light and dark. */
export async function judge(page, what) {
  for (const [viewport, colorScheme] of [[TELEPHONE, "light"], [TELEPHONE, "dark"], [SCREEN, "light"], [SCREEN, "dark"]]) {
    await page.setViewportSize(viewport);
    await page.emulateMedia({ colorScheme });
    const found = await measured(page);
    const where = `${what}, ${viewport.width} ${colorScheme}`;
    assert.equal(found.lang, "en", where);
    assert.equal(found.headings, 1, where);
    assert.deepEqual(found.unnamed, [], where);
    assert.deepEqual(found.scripts, ["/script.js"], where);
    assert.ok(found.width <= found.room, `${where} scrolls sideways: ${found.width} > ${found.room}`);
    assert.deepEqual(found.violations, [], where);
    for (const rule of ["color-contrast", "document-title", "html-has-lang", "region"]) {
      assert.ok(found.passes.includes(rule), `${where}: ${rule} was not judged`);
    }
  }
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 800 });
    const { scrollWidth, clientWidth } = await page.evaluate(() => {
      const { scrollWidth, clientWidth } = document.documentElement;
      return { scrollWidth, clientWidth };
    });
    assert.ok(scrollWidth <= clientWidth, `${what}, ${width} scrolls sideways: ${scrollWidth} > ${clientWidth}`);
  }
}

/** Goes to every page there is, and judges it. `stranger` is signed out, `owner` signed in; `host` may read something. */
export async function toured({ stranger, owner, host, origin }) {
  const told = [];
  let judged = 0;
  for (const { page } of [stranger, owner]) {
    page.on("pageerror", (error) => told.push(String(error)));
    page.on("request", (request) => {
      const { origin: asked } = new URL(request.url());
      if (asked !== origin && !request.isNavigationRequest()) told.push(`loads ${request.url()}`);
    });
  }
  const at = async (who, path, what, heading) => {
    if (path) await who.page.goto(origin + path);
    assert.equal(await who.heading(), heading, what);
    await judge(who.page, what);
    judged += 1;
  };
  await at(stranger, "/sign-in", "the way in", "Sign in");
  await at(stranger, "/sign-in?code=nonsense", "a link that signs in", "Sign in");
  await stranger.press("Sign in");
  await at(stranger, "", "a code that is not valid", "Sign in");
  await at(owner, "/", "the first page", "Your records");
  await at(owner, "/nowhere", "an address that is nobody's", "Not found");
  await at(owner, "/search?q=x&cursor=stale", "a place that is not there any more", "That did not work");
  await at(owner, "/sessions", "sessions", "Where you are signed in");
  await at(owner, "/device", "a code to type", "Connect a device");
  await owner.page.getByLabel("Code").fill("BBBB-BBBB");
  await owner.press("Continue");
  await at(owner, "", "a code that is not known", "Connect a device");
  await at(owner, "/grants/grt_nonsense", "what is not there", "Not found");
  const device = await host.device();
  await owner.page.goto(device.verification_uri_complete);
  await owner.press("Continue");
  await at(owner, "", "a choice", await owner.heading());
  await owner.press("Review the selection");
  await at(owner, "", "a choice of nothing", await owner.heading());
  assert.match(await owner.page.getByRole("alert").innerText(), /nothing is selected/);
  await owner.pick(3);
  await owner.review();
  await at(owner, "", "a review", await owner.heading());
  await owner.press("Allow");
  await at(owner, "", "an approval", "Allowed");
  await at(owner, "/grants", "grants with one that waits", "Grants");
  assert.equal(await owner.page.getByRole("heading", { name: "Waiting", exact: true }).count(), 1);
  await host.polled(device);
  await host.reads("a");
  await at(owner, "/", "the first page with a grant", "Your records");
  await owner.page.goto(`${origin}/grants`);
  await owner.page.getByRole("heading", { name: host.name }).getByRole("link").click();
  await at(owner, "", "a grant", host.name);
  const grant = new URL(owner.page.url()).pathname;
  await at(owner, `${grant}/activity`, "what it has read", `What ${host.name} has read`);
  await owner.page.locator("article a").first().click();
  await at(owner, "", "a record", await owner.heading());
  const denied = await host.device();
  await owner.page.goto(denied.verification_uri_complete);
  await owner.press("Continue");
  await owner.press("Deny");
  await at(owner, "", "a denial", "Denied");
  await owner.end(host.name);
  await at(owner, "", "grants with one that ended", "Grants");
  // A page that answers with a failure is one that the browser tells of.
  const failures = told.filter((line) => !/status of 40[04]/.test(line));
  assert.deepEqual(failures, [], "nothing fails, and nothing is loaded from elsewhere");
  return judged;
}

async function measured(page) {
  await page.evaluate(AXE);
  return page.evaluate(async () => {
    const inputs = [...document.querySelectorAll("input:not([type=hidden]), select, textarea")];
    // Closed parts count as well.
    for (const part of document.querySelectorAll("details")) part.open = true;
    // At the end of the page its buttons, which stay in sight, cover nothing.
    scrollTo(0, document.body.scrollHeight);
    const { violations, passes } = await globalThis.axe.run(document, {
      runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    });
    return {
      lang: document.documentElement.lang,
      headings: document.querySelectorAll("h1").length,
      unnamed: inputs.filter((input) => !input.labels?.length).map((input) => input.outerHTML),
      scripts: [...document.querySelectorAll("script")].map((one) => one.getAttribute("src")),
      width: document.documentElement.scrollWidth,
      room: document.documentElement.clientWidth,
      passes: passes.map((one) => one.id),
      violations: violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html).slice(0, 3).join(" ")}`),
    };
  });
}
