// Every link of the pages leads somewhere: they are followed from the overview on, some of each kind, and one of each kind
// is judged as pages.mjs does, with the script and without, and gone through with the keyboard.
import assert from "node:assert/strict";

import { judge } from "./pages.mjs";

/** How many addresses of one page are followed, and how many that also ask for the same kinds of things. */
const OF_PAGE = 6;
const OF_KIND = 2;

/** The page of an address: what is named in it does not count. */
function pageOf(address) {
  const { pathname } = new URL(address);
  const [, first = "", ...rest] = pathname.split("/");
  const fixed = ["new", "activity", "end", "file", "delete", "download", "review"];
  const parts = rest.map((part) => (fixed.includes(part) ? part : "…"));
  return `/${[first, ...parts].join("/")}`;
}

/** The kind of an address: its page, and what it asks for. */
function kindOf(address) {
  const { searchParams } = new URL(address);
  const asked = [...new Set([...searchParams.keys()].map((name) => name.replace(/\[.*/, "")))].sort();
  return `${pageOf(address)} ${asked.join(" ")}`;
}

/** Goes through a page with the Tab key: it comes to everything that can be used, and shows where it is. */
async function reached(page, what) {
  const all = await page.evaluate(() => {
    // A bar of a chart is left out where the table of the chart leads to the same.
    const usable = "a[href]:not([tabindex='-1']), button, input:not([type=hidden]), select, textarea, summary";
    const shown = [...document.querySelectorAll(usable)].filter((one) => one.checkVisibility() && !one.disabled);
    const others = new Set([...document.querySelectorAll("a[href]:not([tabindex='-1'])")].map((one) => one.getAttribute("href")));
    const bars = [...document.querySelectorAll("a[href][tabindex='-1']")].filter((one) => !one.textContent.endsWith(": 0"));
    const lone = bars.filter((one) => !others.has(one.getAttribute("href")));
    const groups = new Set();
    // Arrows go from one choice of a group to the next.
    const stops = shown.filter((one) => one.type !== "radio" || (!groups.has(one.name) && groups.add(one.name)));
    stops.push(...lone);
    stops.forEach((one, at) => one.setAttribute("data-stop", one.type === "radio" ? one.name : at));
    return stops.map((one) => [one.getAttribute("data-stop"), one.outerHTML.slice(0, 200)]);
  });
  const left = new Map(all);
  for (let pressed = 0; left.size > 0 && pressed < 2 * all.length + 20; pressed += 1) {
    await page.keyboard.press("Tab");
    const [stop, isShown, html] = await page.evaluate(() => {
      const one = document.activeElement;
      const { outlineStyle, boxShadow } = getComputedStyle(one);
      const stop = one.type === "radio" ? one.name : one.getAttribute("data-stop");
      return [stop, outlineStyle !== "none" || boxShadow !== "none", one.outerHTML.slice(0, 200)];
    });
    if (stop !== null) assert.ok(isShown, `${what} does not show that this has the focus: ${html}`);
    left.delete(stop);
  }
  assert.deepEqual([...left.values()], [], `${what}: the keyboard does not come to these`);
}

export async function crawled(owner, origin) {
  const { page } = owner;
  const policies = [];
  page.on("response", (response) => {
    const policy = response.headers()["content-security-policy"];
    if (policy) policies.push(policy);
  });
  const elsewhere = [];
  page.on("request", (request) => { if (new URL(request.url()).origin !== origin) elsewhere.push(request.url()); });
  const seen = new Set();
  const followed = new Map();
  const judged = new Set();
  const waiting = [`${origin}/`];
  while (waiting.length > 0) {
    const address = waiting.shift();
    if (seen.has(address)) continue;
    const [at, kind] = [pageOf(address), kindOf(address)];
    const many = (name) => followed.get(name) ?? 0;
    if (many(at) >= OF_PAGE || many(kind) >= OF_KIND) continue;
    seen.add(address);
    for (const name of new Set([at, kind])) followed.set(name, many(name) + 1);
    // Files are saved, not shown.
    if (/\/(file|download)(\?|$)/.test(address)) {
      const waits = page.waitForEvent("download", { timeout: 1_000 }).catch(() => null);
      const response = await page.goto(address).catch(() => null);
      const saved = await waits;
      assert.ok(saved || response?.ok(), `${address} gives a file`);
      continue;
    }
    const response = await page.goto(address);
    assert.ok(response.status() < 400, `${address}: ${response.status()}`);
    const seenAs = `${at} ${new URL(address).searchParams.has("as")}`;
    if (!judged.has(seenAs)) {
      judged.add(seenAs);
      await page.route("**/script.js", (route) => route.abort());
      await page.goto(address);
      await judge(page, `${address} without the script`);
      await page.unroute("**/script.js");
      await page.goto(address);
      await judge(page, address);
      await page.goto(address);
      await reached(page, address);
    }
    const links = await page.locator("a[href]").evaluateAll((all) => all.map((link) => link.href?.baseVal ?? link.href));
    for (const link of links) {
      const target = new URL(link, address);
      target.hash = "";
      if (target.origin === origin) waiting.push(target.href);
    }
  }
  assert.deepEqual(elsewhere, [], "nothing comes from elsewhere");
  for (const policy of policies) assert.ok(!policy.includes("unsafe"), policy);
  return { pages: seen.size, kinds: judged.size };
}
