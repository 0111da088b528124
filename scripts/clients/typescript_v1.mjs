// Our tools through the TypeScript SDK of the first major version.
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { McpError } from "@modelcontextprotocol/sdk/types.js";
import { check, commands, options, url } from "./checks.mjs";

async function through(way, transport) {
  const client = new Client({ name: "interop", version: "1" });
  await client.connect(transport);
  await client.ping();
  if ("protocolVersion" in transport) assert.equal(transport.protocolVersion, "2025-11-25", way);
  await check(way, client, "2025-11-25", (error) => error instanceof McpError);
  await client.close();
}

for (const [way, command] of Object.entries(commands)) await through(way, new StdioClientTransport(command));
await through("HTTP", new StreamableHTTPClientTransport(url, options));
