// Our tools through the TypeScript SDK of the second major version, which speaks both eras of the protocol.
import assert from "node:assert/strict";
import { Client, ProtocolError, ResourceNotFoundError, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { check, commands, options, url } from "./checks.mjs";

async function through(way, transport, mode, revision) {
  const client = new Client({ name: "interop", version: "1" }, { versionNegotiation: { mode } });
  const refused = (error) => ProtocolError.isInstance(error);
  const missing = (error) => ResourceNotFoundError.isInstance(error);
  await client.connect(transport);
  assert.equal(client.getNegotiatedProtocolVersion(), revision, way);
  await check(`${way}, ${JSON.stringify(mode)}`, client, revision, refused, missing);
  await client.close();
}

for (const [mode, revision] of [["legacy", "2025-11-25"], ["auto", "2026-07-28"], [{ pin: "2026-07-28" }, "2026-07-28"]]) {
  for (const [way, command] of Object.entries(commands)) await through(way, new StdioClientTransport(command), mode, revision);
  await through("HTTP", new StreamableHTTPClientTransport(url, options), mode, revision);
}
