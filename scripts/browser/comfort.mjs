// What the script adds, and that each has a way without it.
import assert from "node:assert/strict";

import { Host } from "./host.mjs";
import { Owner } from "./owner.mjs";

const CONSOLE = new URL(process.env.BROWSER_CONSOLE).origin;

async function window(browser, link, javaScriptEnabled) {
  const context = await browser.newContext({ javaScriptEnabled, timezoneId: "Asia/Tokyo", permissions: ["clipboard-read", "clipboard-write"] });
  context.setDefaultTimeout(60_000);
  const owner = await Owner.in(context);
  await owner.signIn(link);
  return owner;
}

/** The sources that can be seen on a page of choices. */
const seen = (owner) => owner.page.locator("details.source:visible > summary b").allInnerTexts();

async function zones(owner) {
  await owner.page.goto(`${CONSOLE}/sessions`);
  const time = owner.page.locator("main time").first();
  const instant = new Date(await time.getAttribute("datetime"));
  const hour = String((instant.getUTCHours() + 9) % 24).padStart(2, "0");
  assert.match(await time.innerText(), new RegExp(`, ${hour}:\\d\\d$`));
  assert.match(await time.getAttribute("title"), /GMT\+09:00$/);
  assert.equal(await owner.page.locator("[data-zone]").innerText(), "Asia/Tokyo");
}

async function copies(owner) {
  await owner.page.goto(`${CONSOLE}/grants`);
  const address = await owner.page.locator("code.address").innerText();
  await owner.press("Copy");
  assert.equal(await owner.page.evaluate(() => navigator.clipboard.readText()), address);
}

/** Finds the bank on the consent page: at once while one types, or by the button, where what is ticked stays. */
async function finds(owner, host, callback, withScript) {
  await owner.follow(host.asking(callback));
  await owner.pick(1);
  const [ticked] = await seen(owner);
  const all = (await seen(owner)).length;
  await owner.page.getByLabel("Find a source").fill("amount");
  if (!withScript) await owner.press("Find");
  const left = await seen(owner);
  assert.ok(left.length > 1 && left.length < all, `${left.length} of ${all} are left`);
  assert.ok(left.includes(ticked), "what is ticked stays");
  assert.equal(await owner.page.locator("input[name=stream]:checked").count(), 1);
  assert.match(await owner.heading(), /^May .* read some of your records\?$/, "nothing was sent on");
}

async function drops(owner) {
  await owner.page.goto(`${CONSOLE}/import`);
  const data = await owner.page.evaluateHandle(() => {
    const transfer = new DataTransfer();
    transfer.items.add(new File(["# Dropped\n\nA note from nowhere.\n"], "Dropped.md", { type: "text/markdown" }));
    return transfer;
  });
  await owner.page.dispatchEvent("main", "drop", { dataTransfer: data });
  await owner.page.getByRole("heading", { level: 1, name: "What would be imported" }).waitFor();
  await owner.press("Discard");
}

/** A field that is ticked ticks its stream. */
async function ticks(owner) {
  await owner.page.goto(`${CONSOLE}/grants/new`);
  const source = owner.page.locator("details.source").first();
  await source.locator("summary").first().click();
  const stream = source.locator(".stream").filter({ has: owner.page.locator("input[name=field]") }).first();
  await stream.locator("details summary").first().click();
  await stream.locator("input[name=field]").first().check();
  assert.ok(await stream.locator("input[name=stream]").isChecked());
}

/** An agent's lines are those of `pdpp setup`, and the token stands apart. */
async function connects(owner) {
  await owner.page.goto(`${CONSOLE}/grants/new`);
  await owner.page.getByLabel("It is for").selectOption("Claude Desktop");
  await owner.pick(1);
  await owner.press("Review the selection");
  await owner.press("Make the grant");
  assert.equal(await owner.heading(), "Claude Desktop may read now");
  const lines = await owner.page.locator("pre").first().innerText();
  assert.match(lines, /claude_desktop_config\.json/);
  assert.match(lines, /"--grant", "grt_/);
  assert.equal(await owner.page.locator("code.token:visible").count(), 0);
}

export async function comfort(browser, freshLink, found, callback) {
  const host = await Host.registered(found, "A searching program", callback);
  const owner = await window(browser, freshLink(), true);
  const told = [];
  owner.page.on("pageerror", (error) => told.push(String(error)));
  await zones(owner);
  await copies(owner);
  await finds(owner, host, callback, true);
  await drops(owner);
  await ticks(owner);
  await connects(owner);
  assert.deepEqual(told, [], "the script fails nowhere");
  const without = await window(browser, freshLink(), false);
  await finds(without, host, callback, false);
}
