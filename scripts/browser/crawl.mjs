// Every link of the pages leads somewhere: they are followed from the overview on, some of each kind, and one of each kind
// is judged as pages.mjs does.
import assert from "node:assert/strict";

import { judge } from "./pages.mjs";

/** How many addresses of one kind are followed. */
const OF_KIND = 6;

/** The kind of an address: what is named in it does not count. */
function kind(address) {
  const { pathname, searchParams } = new URL(address);
  const [, first = "", ...rest] = pathname.split("/");
  const fixed = ["new", "activity", "end", "file", "delete", "download", "review"];
  const parts = rest.map((part) => (fixed.includes(part) ? part : "…"));
  const asked = [...new Set([...searchParams.keys()].map((name) => name.replace(/\[.*/, "")))].sort();
  return `/${[first, ...parts].join("/")} ${asked.join(" ")}`;
}

export async function crawled(owner, origin) {
  const { page } = owner;
  const policies = [];
  page.on("response", (response) => {
    const policy = response.headers()["content-security-policy"];
    if (policy) policies.push(policy);
  });
  const seen = new Set();
  const kinds = new Map();
  const waiting = [`${origin}/`];
  while (waiting.length > 0) {
    const address = waiting.shift();
    if (seen.has(address)) continue;
    const many = kinds.get(kind(address)) ?? 0;
    if (many >= OF_KIND) continue;
    seen.add(address);
    kinds.set(kind(address), many + 1);
    // Files are saved, not shown.
    if (/\/(file|download)(\?|$)/.test(address)) {
      const waits = page.waitForEvent("download", { timeout: 5_000 }).catch(() => null);
      const response = await page.goto(address).catch(() => null);
      const saved = await waits;
      assert.ok(saved || response?.ok(), `${address} gives a file`);
      continue;
    }
    const response = await page.goto(address);
    assert.ok(response.status() < 400, `${address}: ${response.status()}`);
    if (many === 0) await judge(page, address);
    const links = await page.locator("a[href]").evaluateAll((all) => all.map((link) => link.href?.baseVal ?? link.href));
    for (const link of links) {
      const target = new URL(link, address);
      target.hash = "";
      if (target.origin === origin) waiting.push(target.href);
    }
  }
  for (const policy of policies) assert.ok(!policy.includes("unsafe"), policy);
  return { pages: seen.size, kinds: kinds.size };
}
