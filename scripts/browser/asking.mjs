// A client asks beyond its grant through the official SDK, the owner decides in Chromium, and the same call succeeds or not.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

import { secrets } from "./host.mjs";

export async function asked(owner, judge) {
  const args = ["--data-dir", `${process.env.BROWSER_WORK}/data`, "grant", "create", "--client", "asking", "--json"];
  args.push("--connection", "mail-work", "--stream", "messages", "--fields", "id,subject");
  const made = JSON.parse(execFileSync(process.env.PDPP, args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"], timeout: 30_000 }));
  secrets.add(made.access_token);
  const client = new Client({ name: "asking", version: "1" });
  const options = { requestInit: { headers: { authorization: `Bearer ${made.access_token}` } } };
  await client.connect(new StreamableHTTPClientTransport(new URL(process.env.BROWSER_MCP), options));
  const call = () => client.callTool({ name: "query_records", arguments: { stream: "messages", fields: ["id", "body"], limit: 1 } });
  const refused = async () => {
    const answer = await call();
    assert.equal(answer.isError, true);
    assert.equal(answer.structuredContent.error.code, "field_not_granted");
    const needed = answer.structuredContent.error.needs_broader_grant;
    assert.deepEqual(needed.fields, ["body"]);
    return needed.url;
  };
  const decide = async (name) => {
    await owner.page.goto(await refused());
    assert.match(await owner.heading(), /asks for more$/);
    if (name === "Allow once") await judge(owner.page, "an ask");
    await owner.press(name);
    assert.equal(await owner.heading(), "Decided");
  };
  await decide("Allow once");
  assert.notEqual((await call()).isError, true, "it was allowed once");
  await decide("Allow for ten minutes");
  assert.notEqual((await call()).isError, true);
  assert.notEqual((await call()).isError, true);
  // Too long for every run; a test with a clock of its own passes over them.
  if (process.env.BROWSER_TEN_MINUTES) {
    await new Promise((done) => setTimeout(done, 601_000));
    assert.ok(await refused(), "ten minutes later it is over");
    await decide("Allow for ten minutes");
    assert.notEqual((await call()).isError, true);
  }
  await owner.page.goto(new URL(`/grants/${made.grant_id}`, process.env.BROWSER_MCP).href);
  await owner.press("Take back what was added");
  await decide("Do not let it ask any more");
  assert.equal(await refused(), undefined, "it cannot ask any more");
  await client.close();
}
