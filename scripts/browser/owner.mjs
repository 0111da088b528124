// The owner in a browser: a small screen, no scripts, and what a person clicks.
import assert from "node:assert/strict";
import { chromium } from "playwright-core";

import { secrets } from "./host.mjs";

const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
/** A telephone. */
const VIEWPORT = { width: 390, height: 844 };

/** A browser, with a folder of its own that goes with it, which finds the callbacks of hosted applications on this machine. */
export async function launched(hostedPort, hosted) {
  const rules = hosted.map((host) => `MAP ${host}:443 127.0.0.1:${hostedPort}`).join(",");
  const args = [...FLAGS, `--host-resolver-rules=${rules}`];
  return chromium.launch({ executablePath: "/usr/bin/chromium", args, timeout: 60_000 });
}

/** A window in which no script runs, or one in which they do. */
export async function windowOf(browser, javaScriptEnabled) {
  const context = await browser.newContext({ viewport: VIEWPORT, javaScriptEnabled, ignoreHTTPSErrors: true });
  context.setDefaultTimeout(60_000);
  return context;
}

export class Owner {
  static async in(context) {
    return Object.assign(new Owner(), { context, page: await context.newPage() });
  }

  heading() {
    return this.page.locator("h1").innerText();
  }

  async press(name) {
    await this.page.getByRole("button", { name, exact: true }).click();
  }

  /** Signs in by the link of the server's start. */
  async signIn(link) {
    secrets.add(new URL(link).searchParams.get("code"));
    await this.page.goto(link);
    assert.equal(await this.heading(), "Sign in");
    await this.press("Sign in");
    assert.equal(await this.heading(), "Your records");
    await this.#note();
  }

  /** Signs in by a password, on the page that asks for it. */
  async enter(password) {
    secrets.add(password);
    await this.page.getByLabel("Password").fill(password);
    await this.press("Sign in");
    await this.#note();
  }

  async #note() {
    for (const cookie of await this.context.cookies()) secrets.add(cookie.value);
  }

  /** Follows an application to the page where one picks, on which nothing is picked yet. */
  async follow(address) {
    await this.page.goto(address);
    assert.match(await this.heading(), /^May .* read some of your records\?$/);
    assert.equal(await this.page.locator("input[type=checkbox]:checked").count(), 0, "nothing is picked beforehand");
    assert.ok((await this.page.locator("input[name=stream]").count()) > 1, "there is something to pick");
  }

  /** Picks the first streams, each of another source where there are as many. */
  async pick(count) {
    const sources = this.page.locator("details.source");
    const many = Math.min(count, await sources.count());
    for (let at = 0; at < many; at += 1) {
      const source = sources.nth(at);
      if ((await source.getAttribute("open")) === null) await source.locator("summary").first().click();
      await source.locator("input[name=stream]").first().check();
    }
    return many;
  }

  async review() {
    await this.press("Review the selection");
    assert.match(await this.heading(), /^This is what .* would see$/);
  }

  /** Picks, reviews and allows; the address the browser ends at. */
  async allow(count) {
    await this.pick(count);
    await this.review();
    await this.press("Allow");
    assert.equal(await this.heading(), "Back at the application");
    return this.page.url();
  }

  /** Ends what an application has, on the page of grants. */
  async end(name) {
    await this.page.goto(new URL("/grants", process.env.BROWSER_MCP).href);
    const row = this.page.locator("article", { has: this.page.getByRole("heading", { name, exact: true }) });
    await row.getByRole("link", { name: /^End it/ }).click();
    assert.match(await this.heading(), /^End what /);
    await this.press("End it now");
    assert.equal(await this.heading(), "Grants");
    assert.equal(await row.count(), 0, `${name} has nothing left`);
  }
}
