// Somebody who never opens a terminal after `serve`: from an empty server to imported files, a mail with its attachment, a month of
// all sources, a grant for an agent, what it read, the data as it sees it, a narrower grant, its end, a password, and a backup.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

import { secrets } from "./host.mjs";
import { Owner, windowOf } from "./owner.mjs";

const PASSWORD = "a few good words of mine";
/** One pixel. */
const PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const MAIL = `From ines@example.test Mon Mar  2 09:00:00 2026
From: Ines <ines@example.test>
To: me@example.test
Subject: Plan of the harbour
Date: Mon, 02 Mar 2026 09:00:00 +0000
Message-ID: <plan@example.test>
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=cut

--cut
Content-Type: text/plain; charset=utf-8

The quay is drawn in the picture. See you on Thursday.

--cut
Content-Type: image/png; name=harbour.png
Content-Disposition: attachment; filename=harbour.png
Content-Transfer-Encoding: base64

${PICTURE}
--cut--

From bank@example.test Tue Mar  3 09:00:00 2026
From: The bank <bank@example.test>
To: me@example.test
Subject: Your statement
Date: Tue, 03 Mar 2026 09:00:00 +0000
Message-ID: <statement@example.test>

Nothing about ships.

`;

const CALENDAR = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//story//EN", "BEGIN:VEVENT", "UID:walk@example.test", "DTSTAMP:20260301T000000Z",
  "DTSTART:20260302T150000Z", "DTEND:20260302T160000Z", "SUMMARY:Walk along the quay", "END:VEVENT", "END:VCALENDAR", ""].join("\r\n");

/** A server over an empty folder; where it is, how to sign in, and how to end it. */
async function served() {
  const work = mkdtempSync(join(process.env.BROWSER_WORK, "story-"));
  const [data, told] = [join(work, "data"), join(work, "serve.log")];
  const server = spawn(process.env.PDPP, ["--data-dir", data, "serve", "--listen", "127.0.0.1:0"], { stdio: ["ignore", "ignore", openSync(told, "w")] });
  let mcp;
  for (let waited = 0; waited < 300 && !mcp; waited += 1) {
    await new Promise((done) => setTimeout(done, 100));
    mcp = /^MCP: (.*)$/m.exec(readFileSync(told, "utf8"))?.[1];
  }
  assert.ok(mcp, "the server says where its tools are");
  // At a terminal the server prints this link itself.
  const link = execFileSync(process.env.PDPP, ["--data-dir", data, "sign-in"], { encoding: "utf8", timeout: 30_000 }).trim();
  return { work, mcp, link, end: () => server.kill() };
}

async function bring(owner, file, text) {
  const { page } = owner;
  writeFileSync(file, text);
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Import" }).click();
  await page.getByLabel("Files of an export").setInputFiles([file]);
  await owner.press("Look at them");
  await page.getByRole("heading", { level: 1, name: "What would be imported", exact: true }).waitFor();
  await owner.press("Import");
  await page.getByRole("heading", { level: 1, name: "Imported", exact: true }).waitFor();
}

const go = (owner, name) => owner.page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name }).click();

/** Finds the mail from the first page, and opens the picture that came with it. */
async function findMail(owner) {
  const { page } = owner;
  await go(owner, "Overview");
  await page.getByLabel("Words to find").fill("harbour plan");
  await owner.press("Search");
  await page.locator(".hits a").first().click();
  assert.equal(await owner.heading(), "Plan of the harbour");
  assert.match(await page.locator("article.body").innerText(), /The quay is drawn/);
  const [response] = await Promise.all([page.waitForNavigation(), page.getByRole("link", { name: "Open harbour.png" }).click()]);
  assert.equal(response.headers()["content-type"], "image/png");
  assert.deepEqual(await response.body(), Buffer.from(PICTURE, "base64"));
  await page.goBack();
}

/** Goes from the bars of the first page to a month, and finds both sources on its days. */
async function seeMonth(owner) {
  const { page } = owner;
  await go(owner, "Overview");
  await page.getByRole("group", { name: "Records of each month" }).or(page.getByRole("figure", { name: "Records of each month" })).getByText("The same as a table").click();
  await page.locator("table.data a[href*='2026-03']").first().click();
  assert.match(await owner.heading(), /March 2026/);
  await page.getByLabel("Go to").fill("2026-03-02");
  await owner.press("Show");
  const titles = await page.locator("ol.list a").allInnerTexts();
  assert.ok(titles.includes("Plan of the harbour") && titles.includes("Walk along the quay"), titles.join(", "));
}

async function agent(mcp, token) {
  const client = new Client({ name: "story", version: "1" });
  const options = { requestInit: { headers: { authorization: `Bearer ${token}` } } };
  await client.connect(new StreamableHTTPClientTransport(new URL(mcp), options));
  return client;
}

/** The token that a page shows once. */
async function shownToken(page) {
  const token = (await page.locator("code.token").innerText()).trim();
  secrets.add(token);
  return token;
}

async function grantMail(owner) {
  const { page } = owner;
  await go(owner, "Grants");
  await page.getByRole("link", { name: "Make a grant" }).click();
  await page.getByLabel("What you call the application").fill("My agent");
  const mail = page.locator("details.source", { has: page.locator("input[value$='/messages']") }).first();
  await mail.locator("summary").first().click();
  await mail.locator("input[name=stream][value$='/messages']").check();
  await owner.press("Review the selection");
  await owner.press("Make the grant");
  const token = await shownToken(page);
  await page.getByRole("link", { name: "To the grant" }).click();
  return { token, address: page.url() };
}

/** Looks at what the agent read, and at the records as it sees them. */
async function look(owner, address) {
  const { page } = owner;
  await page.goto(address);
  await page.getByRole("link", { name: "What it has read" }).click();
  await page.getByLabel("Find a record among them").fill("quay");
  await owner.press("Find");
  assert.deepEqual(await page.locator("#known a").allInnerTexts(), ["Plan of the harbour"]);
  await page.goto(address);
  await page.getByRole("link", { name: "See your records as it does" }).click();
  assert.match(await page.locator(".as").innerText(), /You see this page as My agent does/);
  await page.getByLabel("Words to find").fill("quay");
  await owner.press("Search");
  assert.deepEqual(await page.locator(".hits h2").allInnerTexts(), ["Plan of the harbour"], "the walk is not the agent's to see");
  await page.getByRole("link", { name: "Back to your own view" }).click();
  assert.equal(await page.locator(".hits h2").count(), 2);
}

/** Makes a grant with less, which begins with what the first one gives. */
async function narrow(owner, address) {
  const { page } = owner;
  await page.goto(address);
  await page.getByRole("link", { name: "Make another like it" }).click();
  await page.locator("details.source[open] input[name=field][value$='/body']").evaluate((input) => { for (let one = input; one; one = one.parentElement) if (one.tagName === "DETAILS") one.open = true; });
  await page.locator("details.source[open] input[name=field][value$='/body']").uncheck();
  await owner.press("Review the selection");
  assert.equal(await page.getByText("Not any more:").count(), 1, "the difference is shown");
  await owner.press("Make the grant");
  const token = await shownToken(page);
  await page.getByRole("link", { name: "To the grant" }).click();
  return { token, address: page.url() };
}

async function end(owner, address) {
  await owner.page.goto(`${address}/end`);
  await owner.press("End it now");
}

export async function story(browser) {
  const { work, mcp, link, end: stop } = await served();
  try {
    const owner = await Owner.in(await windowOf(browser, true));
    const { page } = owner;
    await owner.signIn(link);
    assert.equal(await page.getByRole("heading", { name: "Nothing is kept yet" }).count(), 1);
    await bring(owner, join(work, "mail.mbox"), MAIL);
    await bring(owner, join(work, "calendar.ics"), CALENDAR);
    await findMail(owner);
    await seeMonth(owner);
    const first = await grantMail(owner);
    const client = await agent(mcp, first.token);
    const found = await client.callTool({ name: "search", arguments: { query: "quay" } });
    assert.ok(JSON.stringify(found.structuredContent).includes("is drawn"), "the agent finds it");
    await look(owner, first.address);
    const second = await narrow(owner, first.address);
    await end(owner, first.address);
    await assert.rejects(client.callTool({ name: "search", arguments: { query: "quay" } }), "it is over");
    const narrowed = await agent(mcp, second.token);
    const less = await narrowed.callTool({ name: "search", arguments: { query: "quay" } });
    assert.ok(!JSON.stringify(less).includes("is drawn"), "it sees less");
    await end(owner, second.address);
    await go(owner, "Settings");
    const waits = page.waitForEvent("download");
    await owner.press("Download a backup");
    assert.equal((await waits).suggestedFilename(), "pdpp-backup.tar");
    await page.getByText("Set a password", { exact: true }).click();
    await page.getByLabel("The new password").fill(PASSWORD);
    await page.getByLabel("Once more").fill(PASSWORD);
    await owner.press("Set the password");
    assert.equal(await owner.heading(), "Sign in");
    await owner.enter(PASSWORD);
    assert.equal(await owner.heading(), "Settings");
    await page.context().close();
  } finally {
    stop();
  }
}
