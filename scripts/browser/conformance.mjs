// The conformance suite's scenarios for authorization servers, with the owner approving in the browser where it waits.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import net from "node:net";

import { Host } from "./host.mjs";

const SUITE = process.env.BROWSER_CONFORMANCE;

/** The list says of every scenario whether it is run, and why not. */
function listed() {
  const text = readFileSync(new URL("authorization-scenarios.txt", import.meta.url), "utf8");
  const lines = text.split("\n").filter((line) => line && !line.startsWith("#"));
  return new Map(lines.map((line) => [line.split(/\s/, 1)[0], line.split(/\s+/)[1]]));
}

/** The scenarios of the suite about authorization, of servers and of clients. */
function known() {
  const text = execFileSync(process.execPath, [SUITE, "list"], { encoding: "utf8", timeout: 60_000 });
  const [, servers] = text.split("Authorization server scenarios");
  const names = (part) => [...part.matchAll(/^ +- (\S+)/gm)].map(([, name]) => name);
  return [...names(servers), ...names(text).filter((name) => name.startsWith("auth/"))];
}

async function freePort() {
  const server = net.createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  return port;
}

export async function conformance(found, owner) {
  const scenarios = listed();
  assert.deepEqual([...scenarios.keys()].sort(), known().sort(), "the list names every scenario");
  const port = await freePort();
  const host = await Host.registered(found, "Conformance", `http://127.0.0.1:${port}/callback`);
  const options = ["--url", found.server.issuer, "--client-id", host.id, "--resource", found.resource, "--port", String(port)];
  const suite = spawn(process.execPath, [SUITE, "authorization", ...options], { stdio: ["ignore", "pipe", "pipe"] });
  let told = "";
  const asked = new Promise((resolve) => {
    const listen = (chunk) => {
      told += chunk;
      const address = /^http\S+\/oauth\/authorize\?\S+$/m.exec(told);
      if (address) resolve(address[0]);
    };
    suite.stdout.setEncoding("utf8").on("data", listen);
    suite.stderr.setEncoding("utf8").on("data", listen);
  });
  const ended = once(suite, "exit");
  try {
    const address = await Promise.race([asked, ended.then(() => assert.fail(told))]);
    await owner.follow(address);
    await owner.pick(1);
    await owner.review();
    await owner.press("Allow");
    const [code] = await ended;
    assert.equal(code, 0, told);
    for (const [name, run] of scenarios) {
      // What was skipped passed nothing.
      if (run === "run") assert.match(told, new RegExp(`✓ ${name}: [1-9]\\d* passed, 0 failed`), told);
    }
  } finally {
    suite.kill();
  }
  return [...scenarios.values()].filter((run) => run === "run").length;
}
