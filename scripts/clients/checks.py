"""What every client must see, whichever SDK and transport it came by: `expected.json`, in the words of the wire."""

import json
import os
import pathlib

EXPECTED = json.loads((pathlib.Path(__file__).parent / "expected.json").read_text())

PDPP, URL = os.environ["PDPP"], os.environ["INTEROP_URL"]
# A name, and the command of a server on standard input and output: over the local data, and over a server elsewhere.
COMMANDS = {
    "stdio, local data": [PDPP, "--data-dir", os.environ["PDPP_DATA_DIR"], "mcp", "--grant", os.environ["INTEROP_GRANT_BOTH"]],
    "stdio, over a server": [PDPP, "mcp", "--provider-url", URL, "--cache-root", os.environ["INTEROP_CACHE"]],
}
MCP_URL = f"{URL}/mcp"
HEADERS = {"Authorization": f"Bearer {os.environ['INTEROP_TOKEN_BOTH']}"}


class Refused(Exception):
    """An error of the protocol, as the SDK surfaced it."""

    def __init__(self, code, message, data):
        super().__init__(code, message, data)
        self.code, self.message, self.data = code, message, data


def has(whole, part, where):
    assert part in whole, f"{where}: no {part!r} in {whole!r}"


async def check(way, client, revision):
    """`client` answers tools, templates, call and read with wire objects; `revision` is what it should have agreed on."""
    assert client.revision() == revision, f"{way}: agreed on {client.revision()}, not {revision}"
    tools = await client.tools()
    assert sorted(tool["name"] for tool in tools) == sorted(EXPECTED["tools"]), f"{way}: {tools}"
    templates = await client.templates()
    assert [one["uriTemplate"] for one in templates] == EXPECTED["templates"], f"{way}: {templates}"
    for call in EXPECTED["calls"]:
        where = f"{way}: {call['tool']} {call['arguments']}"
        # Whatever the SDK makes of the answer (it checks it against the tool's schema) is no error of ours to raise.
        result = await client.call(call["tool"], call["arguments"])
        text = "".join(item["text"] for item in result["content"])
        if "error" in call:
            assert result["isError"] is True, f"{where}: {result}"
            assert text.startswith(f"error {call['error']}"), f"{where}: {text}"
            assert result["structuredContent"]["error"]["code"] == call["error"], f"{where}: {result}"
        else:
            assert not result.get("isError"), f"{where}: {text}"
            has(text, call["text"], where)
            for name in call["structured"]:
                has(result["structuredContent"], name, where)
    for read in EXPECTED["reads"]:
        where = f"{way}: {read['uri']}"
        try:
            result = await client.read(read["uri"])
        except Refused as refused:
            assert "error" in read, f"{where}: {refused}"
            assert refused.code == read["code"][revision], f"{where}: {refused}"
            assert refused.message.startswith(f"error {read['error']}"), f"{where}: {refused}"
            assert refused.data["error"]["code"] == read["error"], f"{where}: {refused}"
        else:
            assert "error" not in read, f"{where}: {result}"
            has(result["contents"][0]["text"], read["text"], where)
    print(f"   {way}: {len(EXPECTED['calls'])} calls, {len(EXPECTED['reads'])} reads, {revision}")
