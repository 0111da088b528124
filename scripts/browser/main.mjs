// Hosts ask, the owner decides in Chromium, hosts read until they may not.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";

import { callbacks, lure } from "./apart.mjs";
import { asked } from "./asking.mjs";
import { Callbacks } from "./callbacks.mjs";
import { conformance } from "./conformance.mjs";
import { discovered, Host, secrets } from "./host.mjs";
import { launched, Owner, windowOf } from "./owner.mjs";
import { crawled } from "./crawl.mjs";
import { granted, made, seen } from "./granting.mjs";
import { comfort } from "./comfort.mjs";
import { followed, hostile, imported, keyboard, saved } from "./importing.mjs";
import { judge, toured } from "./pages.mjs";
import { story } from "./story.mjs";

const ORIGIN = new URL(process.env.BROWSER_MCP).origin;
/** Where the owner's pages are. */
const CONSOLE = new URL(process.env.BROWSER_CONSOLE).origin;
const CLAUDE = "https://claude.ai/api/mcp/auth_callback";
const CHATGPT = "https://chatgpt.com/connector_platform_oauth_redirect";
const done = (what) => console.log(`ok  ${what}`);

/** Claude registers twice for one connection, and asks with the second. */
async function claude(found, owner) {
  const first = await Host.registered(found, "Claude", CLAUDE);
  const host = await Host.registered(found, "Claude", CLAUDE);
  assert.notEqual(first.id, host.id);
  await owner.follow(host.asking(CLAUDE, { scope: "claudeai" }));
  const came = host.answered(await owner.allow(2));
  const said = await host.redeemed(came.get("code"));
  assert.equal(said.status, 200, JSON.stringify(said.body));
  assert.ok(said.body.expires_in <= 3600 && said.body.refresh_token);
  await host.reads("a");
  const old = host.tokens.access_token;
  assert.equal((await host.refreshed()).status, 200);
  assert.notEqual(host.tokens.access_token, old);
  await host.reads("a");
  // The token is for the tools alone, as was asked.
  const elsewhere = await fetch(`${ORIGIN}/v1/schema`, { headers: { authorization: `Bearer ${host.tokens.access_token}` } });
  assert.equal(elsewhere.status, 401);
  await owner.end("Claude");
  await host.isRefused();
  const late = await host.refreshed();
  assert.deepEqual([late.status, late.body.error], [400, "invalid_grant"]);
  done("Claude: registered twice, approved, read, renewed, ended by the owner");
}

/** ChatGPT sends `resource` with everything; a refresh token that comes twice ends it. */
async function chatgpt(found, owner) {
  const host = await Host.registered(found, "ChatGPT", CHATGPT);
  await owner.follow(host.asking(CHATGPT));
  await owner.press("Deny");
  const denied = host.answered(owner.page.url());
  assert.equal(denied.get("error"), "access_denied");
  assert.equal(denied.get("code"), null);
  await owner.follow(host.asking(CHATGPT));
  const came = host.answered(await owner.allow(1));
  const code = came.get("code");
  assert.equal((await host.redeemed(code)).status, 200);
  await host.reads("a");
  const used = host.tokens.refresh_token;
  assert.equal((await host.refreshed()).status, 200);
  const replayed = await host.refreshed(used);
  assert.deepEqual([replayed.status, replayed.body.error], [400, "invalid_grant"]);
  await host.isRefused();
  done("ChatGPT: denied, approved, read, renewed, ended by a refresh token that came twice");
}

/** Codex listens on a port that it did not register, and gives its token back itself. */
async function codex(found, owner) {
  const listening = await Callbacks.listening(false);
  const host = await Host.registered(found, "Codex", "http://127.0.0.1:1455/auth/callback");
  const callback = `http://127.0.0.1:${listening.port}/auth/callback`;
  await owner.follow(host.asking(callback));
  const came = host.answered(await owner.allow(3));
  assert.equal((await host.redeemed(came.get("code"))).status, 200);
  const hits = await host.reads("a");
  assert.ok(new Set(hits.map((hit) => hit.connection_id)).size >= 1);
  assert.equal((await host.refreshed()).status, 200);
  assert.equal((await host.revoked(host.tokens.refresh_token)).status, 200);
  await host.isRefused();
  listening.close();
  done("Codex: another port, approved, read, renewed, given back by itself");
}

/** A document about a client is fetched from the public internet alone: not from this machine. */
async function document(found, owner) {
  const near = await Callbacks.listening(true);
  for (const name of ["127.0.0.1", "localhost", "[::1]", "0x7f000001"]) {
    const address = `https://${name}:${near.port}/client.json`;
    const host = new Host(found, "A document", address);
    await owner.page.goto(host.asking(`https://${name}:${near.port}/callback`));
    assert.equal(await owner.heading(), "That did not work", address);
    assert.equal(new URL(owner.page.url()).origin, CONSOLE);
  }
  assert.deepEqual(near.seen, [], "nobody came for it");
  near.close();
  done("a client's document is not fetched from this machine");
}

/** A link that `pdpp sign-in` prints. */
function freshLink() {
  const args = ["--data-dir", `${process.env.BROWSER_WORK}/data`, "sign-in"];
  return execFileSync(process.env.PDPP, args, { encoding: "utf8", timeout: 30_000 }).trim();
}

/** A new password signs everybody out; somebody who signed in elsewhere is seen, and signed out from here. */
async function sessions(owner, other) {
  const password = randomBytes(12).toString("hex");
  const args = ["--data-dir", `${process.env.BROWSER_WORK}/data`, "owner-password"];
  execFileSync(process.env.PDPP, args, { input: `${password}\n`, stdio: ["pipe", "ignore", "ignore"], timeout: 30_000 });
  for (const one of [owner, other]) {
    await one.page.goto(`${CONSOLE}/sessions`);
    assert.equal(await one.heading(), "Sign in");
    await one.enter(password);
    assert.equal(await one.heading(), "Where you are signed in");
  }
  await owner.page.goto(`${ORIGIN}/sessions`);
  const elsewhere = owner.page.getByRole("heading", { name: "Another browser" });
  assert.equal(await elsewhere.count(), 1);
  await owner.press("Sign out all others");
  assert.equal(await elsewhere.count(), 0);
  await other.page.goto(`${ORIGIN}/`);
  assert.equal(await other.heading(), "Sign in");
  done("a new password signs out, and another browser is signed out from the list");
}

const hosted = await Callbacks.listening(true);
const browser = await launched(hosted.port, ["claude.ai", "chatgpt.com"]);
try {
  const found = await discovered();
  const owner = await Owner.in(await windowOf(browser, false));
  await owner.signIn(process.env.BROWSER_CONSOLE);
  done("signed in by the link of the start, without scripts, as everything that follows");
  await claude(found, owner);
  await chatgpt(found, owner);
  await codex(found, owner);
  await callbacks(found, owner);
  await lure(owner);
  done("no callback receives the session, and what a lure to another port of the pages' name receives is none");
  await document(found, owner);
  done(`${await conformance(found, owner)} scenarios of the conformance suite for authorization servers`);

  const judged = await Owner.in(await windowOf(browser, true));
  await judged.signIn(freshLink());
  const stranger = await Owner.in(await windowOf(browser, true));
  const host = await Host.registered(found, "A program whose name is rather long for a telephone", CHATGPT);
  done(`${await toured({ stranger, owner: judged, host, origin: CONSOLE })} pages are found good in light and dark`);

  await story(browser);
  done("from an empty server to a backup, without a terminal: files, a mail, its attachment, a month, a grant, what was read, less of it, its end");
  await granted(owner);
  done("a grant is made, narrowed, seen through, looked at and ended without a script");
  await made(judged, judge);
  await asked(judged, judge);
  done("a client of the official SDK asks beyond its grant, and reads what the owner allows");
  done(`${await seen(owner)} pages seen as a grant have what its client gets`);
  done(`${await imported(owner)} kinds of exports are uploaded, recognised, tried and imported without a script`);
  await followed(owner, judged, judge);
  done("an upload that takes long is followed, with a script and without");
  await saved(owner);
  done("a backup is saved");
  done(`${await hostile(judged, judge)} pages show a hostile record as text`);
  await comfort(browser, freshLink, found, CHATGPT);
  done("the script shows the browser's zone, copies, filters at once and takes dropped files; without it all of this has another way");
  await keyboard(judged);
  done("a record is found and opened with the keyboard alone");
  const { pages, kinds } = await crawled(judged, CONSOLE);
  done(`${pages} addresses that pages link to lead somewhere, and each of ${kinds} kinds of pages is found good`);

  const other = await Owner.in(await windowOf(browser, false));
  await sessions(owner, other);

  const log = readFileSync(process.env.BROWSER_LOG, "utf8").split("\n").filter((line) => line.startsWith("{"));
  assert.ok(log.length > 50, "there is a log");
  for (const secret of secrets) assert.ok(!log.some((line) => line.includes(secret)), "no secret stands in the log");
  done(`none of ${secrets.size} secrets stands in ${log.length} lines of the log`);
} finally {
  await browser.close();
  hosted.close();
}
