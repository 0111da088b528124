// Every link of the pages leads somewhere: they are followed from the overview on, some of each kind, and one of each kind
// is judged as pages.mjs does.
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

export async function crawled(owner, origin) {
  const { page } = owner;
  const policies = [];
  page.on("response", (response) => {
    const policy = response.headers()["content-security-policy"];
    if (policy) policies.push(policy);
  });
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
      await judge(page, address);
    }
    const links = await page.locator("a[href]").evaluateAll((all) => all.map((link) => link.href?.baseVal ?? link.href));
    for (const link of links) {
      const target = new URL(link, address);
      target.hash = "";
      if (target.origin === origin) waiting.push(target.href);
    }
  }
  for (const policy of policies) assert.ok(!policy.includes("unsafe"), policy);
  return { pages: seen.size, kinds: judged.size };
}
