// A host: what an application does to come to a token and use it. Every secret it sees is noted, for the log must not have it.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";

const MCP = process.env.BROWSER_MCP;
const ORIGIN = new URL(MCP).origin;
const DEVICE_CODE = "urn:ietf:params:oauth:grant-type:device_code";
export const secrets = new Set();

async function json(address, options) {
  const answer = await fetch(address, options);
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, body: text ? JSON.parse(text) : undefined };
}

const form = (fields) => ({ method: "POST", body: new URLSearchParams(fields) });

/** One message to the tools. */
export async function rpc(token, method, params = {}) {
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  if (token) headers.authorization = `Bearer ${token}`;
  return json(MCP, { method: "POST", headers, body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }) });
}

/** From the refusal of a stranger to where the authorization server has its endpoints. */
export async function discovered() {
  const refused = await rpc(undefined, "initialize");
  assert.equal(refused.status, 401);
  const challenge = refused.headers.get("www-authenticate");
  const [, document] = /resource_metadata="([^"]+)"/.exec(challenge) ?? assert.fail(challenge);
  assert.equal(document, `${ORIGIN}/.well-known/oauth-protected-resource/mcp`);
  const resource = (await json(document)).body;
  assert.equal(resource.resource, MCP);
  const [issuer] = resource.authorization_servers;
  const server = (await json(`${issuer}/.well-known/oauth-authorization-server`)).body;
  assert.equal(server.issuer, issuer);
  assert.ok(server.code_challenge_methods_supported.includes("S256"));
  assert.ok(server.token_endpoint_auth_methods_supported.includes("none"));
  assert.equal(server.authorization_response_iss_parameter_supported, true);
  return { resource: resource.resource, server };
}

/** A registered application; what it is called is what the owner sees. */
export class Host {
  static async registered(found, name, callback) {
    const metadata = {
      client_name: name,
      redirect_uris: [callback],
      grant_types: ["authorization_code", "refresh_token", DEVICE_CODE],
      response_types: ["code"],
      token_endpoint_auth_method: "none",
    };
    const said = await json(found.server.registration_endpoint, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(metadata),
    });
    assert.equal(said.status, 201, JSON.stringify(said.body));
    const again = await json(said.body.registration_client_uri);
    assert.equal(again.body.client_id, said.body.client_id);
    return new Host(found, name, said.body.client_id);
  }

  constructor(found, name, id) {
    Object.assign(this, { ...found, name, id });
  }

  /** The address to send a browser to. */
  asking(callback, more = {}) {
    this.verifier = randomBytes(32).toString("base64url");
    this.state = randomBytes(16).toString("base64url");
    this.callback = callback;
    secrets.add(this.verifier);
    const address = new URL(this.server.authorization_endpoint);
    const fields = {
      response_type: "code",
      client_id: this.id,
      redirect_uri: callback,
      state: this.state,
      code_challenge: createHash("sha256").update(this.verifier).digest("base64url"),
      code_challenge_method: "S256",
      resource: this.resource,
      ...more,
    };
    for (const [name, value] of Object.entries(fields)) address.searchParams.set(name, value);
    return address.href;
  }

  /** What came back is for this request and from this server. */
  answered(address) {
    const came = new URL(address);
    assert.equal(came.origin + came.pathname, this.callback);
    assert.equal(came.searchParams.get("state"), this.state);
    assert.equal(came.searchParams.get("iss"), this.server.issuer);
    return came.searchParams;
  }

  /** A code becomes tokens. */
  async redeemed(code) {
    secrets.add(code);
    return this.#token({
      grant_type: "authorization_code",
      code,
      redirect_uri: this.callback,
      code_verifier: this.verifier,
    });
  }

  async refreshed(refreshToken = this.tokens.refresh_token) {
    return this.#token({ grant_type: "refresh_token", refresh_token: refreshToken });
  }

  /** A device asks. */
  async device() {
    const fields = { client_id: this.id, resource: this.resource };
    const said = await json(this.server.device_authorization_endpoint, form(fields));
    assert.equal(said.status, 200, JSON.stringify(said.body));
    secrets.add(said.body.device_code);
    return said.body;
  }

  /** The device fetches what it was allowed. */
  async polled(device) {
    const said = await this.#token({ grant_type: DEVICE_CODE, device_code: device.device_code });
    assert.equal(said.status, 200, JSON.stringify(said.body));
  }

  async #token(fields) {
    const said = await json(this.server.token_endpoint, form({ client_id: this.id, resource: this.resource, ...fields }));
    assert.match(said.headers.get("cache-control"), /no-store/);
    if (said.status === 200) {
      this.tokens = said.body;
      secrets.add(said.body.access_token).add(said.body.refresh_token);
    }
    return said;
  }

  async revoked(token) {
    return json(this.server.revocation_endpoint, form({ client_id: this.id, token }));
  }

  async call(method, params) {
    return rpc(this.tokens.access_token, method, params);
  }

  async tool(name, args) {
    const said = await this.call("tools/call", { name, arguments: args });
    assert.equal(said.status, 200, JSON.stringify(said.body));
    assert.ok(!said.body.result.isError, JSON.stringify(said.body));
    return said.body.result.structuredContent;
  }

  /** What a host does first with its tools. */
  async reads(query) {
    const clientInfo = { name: this.name, version: "1" };
    const begun = await this.call("initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo });
    assert.equal(begun.body.result.protocolVersion, "2025-11-25");
    const tools = await this.call("tools/list");
    assert.equal(tools.body.result.tools.length, 6);
    const found = await this.tool("search", { query });
    assert.ok(found.results.length > 0, "something is found");
    const fetched = await this.tool("fetch", { id: found.results[0].id });
    assert.equal(fetched.id, found.results[0].id);
    return found.results;
  }

  /** The tools are closed, and say so in the way that makes a host ask again. */
  async isRefused() {
    const said = await this.call("tools/list");
    assert.equal(said.status, 401);
    assert.match(said.headers.get("www-authenticate"), /error="invalid_token"/);
    assert.equal(said.body.result, undefined);
  }
}
