"""Our tools through the Python SDK of the first major version."""

import asyncio

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client
from mcp.shared.exceptions import McpError

import checks


def wire(model):
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


class Client:
    def __init__(self, session, agreed):
        self.session, self.agreed = session, agreed

    def revision(self):
        return self.agreed.protocolVersion

    async def tools(self):
        return wire(await self.session.list_tools())["tools"]

    async def templates(self):
        return wire(await self.session.list_resource_templates())["resourceTemplates"]

    async def call(self, name, arguments):
        return wire(await self.session.call_tool(name, arguments))

    async def read(self, uri):
        try:
            return wire(await self.session.read_resource(uri))
        except McpError as error:
            raise checks.Refused(error.error.code, error.error.message, error.error.data) from error


async def through(way, transport):
    async with transport as (read, write, *_), ClientSession(read, write) as session:
        agreed = await session.initialize()
        await session.send_ping()
        await checks.check(way, Client(session, agreed), "2025-11-25")


async def main():
    for way, command in checks.COMMANDS.items():
        await through(way, stdio_client(StdioServerParameters(command=command[0], args=command[1:])))
    await through("HTTP", streamablehttp_client(checks.MCP_URL, headers=checks.HEADERS))


asyncio.run(asyncio.wait_for(main(), 60))
