// The owner's session stays with the pages: no program that the browser is sent to comes to it.
import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";

import { Callbacks } from "./callbacks.mjs";
import { Host, secrets } from "./host.mjs";

const CONSOLE = new URL(process.env.BROWSER_CONSOLE);
const SERVER = new URL(process.env.BROWSER_MCP);

/** Asks for a page as a program would that has learned these headers. */
async function asked(path, headers) {
  const request = http.get({ host: SERVER.hostname, port: SERVER.port, path, headers: { accept: "text/html", host: CONSOLE.host, ...headers } });
  const [response] = await once(request, "response");
  response.resume();
  return { status: response.statusCode, location: response.headers.location };
}

function tells(headers) {
  return [headers.cookie, headers.authorization].filter(Boolean).join("; ");
}

/** Programs wait by each name of this machine, and get an answer and nothing else, whatever the owner decides. */
export async function callbacks(found, owner) {
  for (const name of ["127.0.0.1", "localhost", "[::1]"]) {
    const listening = await Callbacks.listening(false);
    const host = await Host.registered(found, `A program at ${name}`, `http://${name}:1/cb`);
    const callback = `http://${name}:${listening.port}/cb`;
    await owner.follow(host.asking(callback));
    assert.equal(new URL(owner.page.url()).origin, CONSOLE.origin);
    await owner.press("Deny");
    assert.equal(host.answered(owner.page.url()).get("error"), "access_denied");
    await owner.follow(host.asking(callback));
    host.answered(await owner.allow(1));
    assert.ok(listening.heard.length >= 2, `${name} was reached`);
    for (const headers of listening.heard) {
      assert.equal(tells(headers), "", `${name} receives nothing of the session: ${tells(headers)}`);
    }
    listening.close();
    await owner.end(host.name);
  }
}

/** A program lures the browser to the pages' own name at another port. What it receives does not sign it in. */
export async function lure(owner) {
  const listening = await Callbacks.listening(false);
  await owner.page.goto(`http://127.0.0.1:${listening.port}/lure`);
  assert.equal(await owner.heading(), "Back at the application");
  const caught = listening.heard.at(-1);
  assert.equal(new URL(owner.page.url()).hostname, CONSOLE.hostname);
  assert.equal(caught.authorization, undefined, "the second half is sent to no other port");
  for (const [, value] of (caught.cookie ?? "").matchAll(/=([^;]+)/g)) secrets.add(value);
  const { status, location } = await asked("/", caught.cookie ? { cookie: caught.cookie } : {});
  assert.deepEqual([status, location], [303, "/sign-in"], "the cookie alone is no session");
  await owner.page.goto(`${CONSOLE.origin}/`);
  assert.equal(await owner.heading(), "Your records");
  listening.close();
}
