// What every client must see, whichever SDK and transport it came by: `expected.json`, in the words of the wire.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";

const expected = JSON.parse(await readFile(new URL("./expected.json", import.meta.url)));
const env = process.env;

// Servers on standard input and output: over the local data, and over a server elsewhere.
export const commands = {
  "stdio, local data": { command: env.PDPP, args: ["--data-dir", env.PDPP_DATA_DIR, "mcp", "--grant", env.INTEROP_GRANT_BOTH] },
  "stdio, over a server": { command: env.PDPP, args: ["mcp", "--provider-url", env.INTEROP_URL, "--cache-root", env.INTEROP_CACHE] },
};
export const url = new URL(`${env.INTEROP_URL}/mcp`);
export const options = { requestInit: { headers: { Authorization: `Bearer ${env.INTEROP_TOKEN_BOTH}` } } };

// The SDKs of both majors have these methods. `refused` tells an error of the protocol from one the SDK made up itself;
// `missing`, one that the SDK makes of what is not found, with a code of its own and of the data only the address.
export async function check(way, client, revision, refused, missing = () => false) {
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map((tool) => tool.name).sort(), [...expected.tools].sort(), way);
  const { resourceTemplates } = await client.listResourceTemplates();
  assert.deepEqual(resourceTemplates.map((one) => one.uriTemplate), expected.templates, way);
  for (const call of expected.calls) {
    const where = `${way}: ${call.tool} ${JSON.stringify(call.arguments)}`;
    // Throws when the SDK finds that the answer does not fit the tool's schema.
    const result = await client.callTool({ name: call.tool, arguments: call.arguments });
    const text = result.content.map((item) => item.text).join("");
    if (call.error) {
      assert.equal(result.isError, true, where);
      assert.ok(text.startsWith(`error ${call.error}`), `${where}: ${text}`);
      assert.equal(result.structuredContent.error.code, call.error, where);
    } else {
      assert.ok(!result.isError, `${where}: ${text}`);
      assert.ok(text.includes(call.text), `${where}: ${text}`);
      for (const name of call.structured) assert.ok(name in result.structuredContent, `${where}: no ${name}`);
    }
  }
  for (const read of expected.reads) {
    const where = `${way}: ${read.uri}`;
    const outcome = await client.readResource({ uri: read.uri }).then((result) => ({ result }), (error) => ({ error }));
    if (read.error) {
      assert.ok(outcome.error, `${where}: was read`);
      assert.ok(refused(outcome.error), `${where}: ${outcome.error}`);
      assert.ok(outcome.error.message.includes(`error ${read.error}`), `${where}: ${outcome.error.message}`);
      if (missing(outcome.error)) {
        assert.equal(read.error, "not_found", where);
        assert.equal(outcome.error.uri, read.uri, where);
      } else {
        assert.equal(outcome.error.code, read.code[revision], where);
        assert.equal(outcome.error.data.error.code, read.error, where);
      }
    } else {
      assert.ok(outcome.result, `${where}: ${outcome.error}`);
      assert.ok(outcome.result.contents[0].text.includes(read.text), where);
    }
  }
  console.log(`   ${way}: ${expected.calls.length} calls, ${expected.reads.length} reads, ${revision}`);
}
