// The owner makes a grant, sees through it, narrows and ends it; and what a page shows as a grant is what its client gets.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";

import { secrets } from "./host.mjs";

const ORIGIN = new URL(process.env.BROWSER_MCP).origin;

async function read(token, target) {
  const answer = await fetch(`${ORIGIN}${target}`, { headers: { authorization: `Bearer ${token}` } });
  return { status: answer.status, body: await answer.json() };
}

/** Makes a grant from the page of grants, as a person would who has no terminal. */
export async function granted(owner) {
  const { page } = owner;
  await page.goto(`${ORIGIN}/grants`);
  await page.getByRole("link", { name: "Make a grant" }).click();
  await page.getByLabel("What you call the application").fill("A script of mine");
  await owner.pick(1);
  await owner.press("Review the selection");
  assert.equal(await owner.heading(), "This is what A script of mine would see");
  await owner.press("Make the grant");
  const token = (await page.locator("code.token").innerText()).trim();
  secrets.add(token);
  assert.equal((await read(token, "/v1/schema")).status, 200);
  await page.getByRole("link", { name: "To the grant" }).click();
  const address = page.url();
  await page.getByRole("link", { name: "See your records as it does" }).click();
  assert.match(await page.locator(".as").innerText(), /You see this page as A script of mine does/);
  await page.getByRole("link", { name: "Back to your own view" }).click();
  assert.equal(await page.locator(".as").count(), 0);
  await page.goto(address);
  await page.getByRole("link", { name: "Make another like it" }).click();
  const part = page.locator("details.source[open] details").first();
  if ((await part.getAttribute("open")) === null) await part.locator("summary").first().click();
  await page.locator("details.source[open] input[name=field]:checked").first().uncheck();
  await owner.press("Review the selection");
  assert.equal(await page.getByText("Not any more:").count(), 1, "the difference is shown");
  await page.goto(`${address}/end`);
  await owner.press("End it now");
  assert.equal((await read(token, "/v1/schema")).status, 403);
}

/** What making a grant shows on the way is judged, with its mistakes. */
export async function made(owner, judge) {
  const { page } = owner;
  await page.goto(new URL("/grants/new", process.env.BROWSER_CONSOLE).href);
  await page.getByLabel("What you call the application").fill("A judged script");
  await owner.press("Review the selection");
  assert.match(await page.getByRole("alert").innerText(), /nothing is selected/);
  await judge(page, "a new grant of nothing");
  await owner.pick(2);
  await owner.press("Review the selection");
  await judge(page, "the review of a new grant");
  await owner.press("Make the grant");
  secrets.add((await page.locator("code.token").innerText()).trim());
  await judge(page, "a grant that was made");
}

/** Compares pages seen as a grant with the answers its client gets, over the sample life. */
export async function seen(owner) {
  const args = ["--data-dir", `${process.env.BROWSER_WORK}/data`, "grant", "create", "--client", "compared", "--json"];
  args.push("--connection", "mail-work", "--stream", "messages", "--fields", "id,subject,received_at", "--since", "2026-01-01");
  const made = JSON.parse(execFileSync(process.env.PDPP, args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"], timeout: 30_000 }));
  secrets.add(made.access_token);
  const record = (one) => `/records/${one.connection_id}/${one.stream}/${encodeURIComponent(one.record_key ?? one.id)}`;
  const pairs = [
    ["/search?q=bridge", "/v1/search?q=bridge&limit=20"],
    ["/search?q=bridge&order=newest", "/v1/search?q=bridge&limit=20&order=newest"],
    ["/search?q=invoice+budget&connection=mail-work&stream=messages", "/v1/search?q=invoice+budget&limit=20&streams=messages"],
    ["/browse/mail-work/messages?order=asc", "/v1/streams/messages/records?limit=50&order=asc"],
    ["/timeline?day=2026-03-03", "/v1/streams/messages/records?limit=50&order=asc&filter[received_at][gte]=2026-03-03&filter[received_at][lt]=2026-03-04"],
  ];
  for (const [path, question] of pairs) {
    await owner.page.goto(`${ORIGIN}${path}&as=${made.grant_id}`);
    const links = await owner.page.locator("main a[href^='/records/']").evaluateAll((all) => all.map((link) => link.getAttribute("href").split("?")[0]));
    const { status, body } = await read(made.access_token, question);
    assert.equal(status, 200, question);
    assert.ok(body.data.length > 0, `${question} finds something`);
    assert.deepEqual([...new Set(links)], body.data.map(record), path);
    const shown = await owner.page.locator("main").innerText();
    const spaced = (text) => text.replace(/\s+/g, " ").trim();
    for (const one of body.data) {
      const subject = spaced(one.data?.subject ?? one.title ?? "");
      assert.ok(spaced(shown).includes(subject.slice(0, 100)), `${path} shows ${subject}`);
    }
  }
  return pairs.length;
}
