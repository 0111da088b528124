"""Our tools through the Python SDK of the second major version, which speaks both eras of the protocol."""

import asyncio

import httpx2
from mcp import Client as SdkClient
from mcp import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

import checks


def wire(model):
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


class Client:
    def __init__(self, sdk):
        self.sdk = sdk

    def revision(self):
        return self.sdk.protocol_version

    async def tools(self):
        return wire(await self.sdk.list_tools())["tools"]

    async def templates(self):
        return wire(await self.sdk.list_resource_templates())["resourceTemplates"]

    async def call(self, name, arguments):
        return wire(await self.sdk.call_tool(name, arguments))

    async def read(self, uri):
        try:
            return wire(await self.sdk.read_resource(uri))
        except MCPError as error:
            raise checks.Refused(error.code, error.message, error.data) from error


async def through(way, server, mode, revision):
    async with SdkClient(server, mode=mode, read_timeout_seconds=20) as sdk:
        await checks.check(f"{way}, {mode}", Client(sdk), revision)


async def main():
    for mode, revision in [("legacy", "2025-11-25"), ("auto", "2026-07-28"), ("2026-07-28", "2026-07-28")]:
        for way, command in checks.COMMANDS.items():
            await through(way, StdioServerParameters(command=command[0], args=command[1:]), mode, revision)
        async with httpx2.AsyncClient(headers=checks.HEADERS, timeout=20) as http:
            await through("HTTP", streamable_http_client(checks.MCP_URL, http_client=http), mode, revision)


asyncio.run(asyncio.wait_for(main(), 90))
