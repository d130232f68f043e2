# The image of mcp-bridge, in two variants: see docs/docker.md for what is in them, for building and for running.
#   slim   (the default)      Node.js, the bundled bridge, an init process and a shell; nothing else
#   tools  (--target tools)   also npm and npx, uv and uvx, Python, and all of Debian: for servers that these start

# For reproducible builds, pin the base image by its digest: --build-arg NODE=node:24-slim@sha256:…
ARG NODE=node:24-slim
# Only the variant "tools" needs it.
ARG UV=ghcr.io/astral-sh/uv:0.9

# The bundle is the same for every platform, so it is built on the build platform, without emulation.
FROM --platform=$BUILDPLATFORM ${NODE} AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# Installs the versions of the lockfile and runs no install scripts.
RUN npm ci --ignore-scripts
COPY .ci/build.mjs .ci/exports.mjs .ci/man-page.ts .ci/page.mjs .ci/
COPY .ci/chunks .ci/chunks/
COPY src src
RUN node .ci/build.mjs

# A legacy demo server for docker-compose.yml. It is not part of the image.
FROM build AS demo
USER 65532:65532
EXPOSE 3001
CMD ["node", "node_modules/@modelcontextprotocol/server-everything/dist/index.js", "streamableHttp"]

# What both variants take from Debian. tini reaps orphaned processes of stdio servers: process 1 of a container has to. The user has a
# name, because some programs look it up.
FROM ${NODE} AS debian
RUN apt-get update \
  && apt-get install -y --no-install-recommends tini \
  && rm -rf /var/lib/apt/lists/* /var/cache/apt /var/log/apt /var/log/dpkg.log \
  && echo 'bridge:x:65532:65532::/tmp:/usr/sbin/nologin' >> /etc/passwd \
  && echo 'bridge:x:65532:' >> /etc/group

# The code of the bridge as V8 has compiled it: with little CPU, compiling is what takes longest at the start. Node.js finds it by its own
# version, the user and the path of each file. It is kept when a bridge ends that has used all its parts.
FROM debian AS compiled
COPY --chmod=644 package.json /app/
COPY --from=build /app/dist /app/dist
RUN mkdir -m 777 /app/compiled
USER 65532:65532
RUN printf '%s' '{ "listen": "http://127.0.0.1:0/mcp", "admin": "http://127.0.0.1:0", "redis": { "url": "redis://127.0.0.1:9" }, \
    "stateKeys": ["0123456789abcdef0123456789abcdef"], "mcpServers": { "http": { "url": "http://127.0.0.1:9/mcp" }, \
    "program": { "command": "node", "args": ["/app/dist/main.js", "demo", "server"] } } }' > /tmp/mcp.json \
  && export HOME=/tmp NODE_COMPILE_CACHE=/app/compiled MCP_BRIDGE_HEALTH_FILE=/tmp/health \
  && { node /app/dist/main.js --config /tmp/mcp.json & } \
  && while kill -0 $! && ! [ -e /tmp/health ]; do sleep 0.1; done \
  && sleep 1 && kill $! && wait $! \
  && chmod -R a+rX /app/compiled/*

# The files of the packages that Node.js, the init process and the shell of the health check need, without a package manager or any other
# program. Scanners find the packages in /var/lib/dpkg. npx and the like say where they are. The last line shows that no library is missing.
FROM debian AS root
RUN set -eu \
  && mkdir -p /root/slim && cd /root/slim \
  && mkdir -p usr/bin usr/lib usr/sbin usr/lib64 usr/local/bin etc var/lib/dpkg && mkdir -m 1777 tmp && mkdir -m 700 root \
  && for name in bin lib sbin lib64; do ln -s usr/$name $name; done \
  && packages=$(dpkg-query --show --showformat '${Package}\n' base-files dash libc6 libgcc-s1 libstdc++6 tini && \
    dpkg-query --show --showformat '${Package}\n' libatomic1 2>/dev/null || true) \
  && dpkg-query --listfiles $packages | sort -u | grep -v -e /gconv -e ^/usr/share/gcc -e /tini-static -e ^/usr/share/gdb -e ^/usr/share/lintian \
    | while read -r path; do if [ -L "$path" ] || [ -f "$path" ]; then echo "$path"; fi; done \
    | tar --create --no-recursion --files-from - 2>/dev/null | tar --extract --keep-directory-symlink \
  && for package in $packages; do dpkg-query --status "$package" && echo; done > var/lib/dpkg/status \
  && cp /etc/passwd /etc/group etc/ \
  && cp /usr/local/bin/node usr/local/bin/ \
  && printf '#!/bin/sh\necho "${0##*/} is not in this image: use its variant tools (docker build --target tools)" >&2\nexit 127\n' > usr/local/bin/npx \
  && chmod 755 usr/local/bin/npx && for name in npm uv uvx; do ln -s npx usr/local/bin/$name; done \
  && chroot . tini -- node --version

FROM ${UV} AS uv

FROM debian AS tools
COPY --from=uv /uv /uvx /usr/local/bin/
RUN apt-get update \
  && apt-get install -y --no-install-recommends ca-certificates python3 \
  && rm -rf /var/lib/apt/lists/* /var/cache/apt /var/log/apt /var/log/dpkg.log
# npx and uvx store packages in HOME. With a read-only root file system, mount a writable folder there.
# In every container, /dev/shm is memory that can be written, and no other container sees it.
ENV NODE_ENV=production HOME=/tmp MCP_BRIDGE_HEALTH_FILE=/dev/shm/mcp-bridge-health NODE_COMPILE_CACHE=/app/compiled
COPY --chmod=644 package.json LICENSE config/healthcheck.sh /app/
COPY --from=build /app/dist /app/dist
COPY --from=compiled --chown=0:0 /app/compiled /app/compiled
USER 65532:65532
EXPOSE 8080 9090
HEALTHCHECK --interval=10s --timeout=30s --start-period=120s CMD ["sh", "/app/healthcheck.sh"]
ENTRYPOINT ["tini", "--", "node", "--disable-sigusr1", "/app/dist/main.js"]
CMD ["--help"]
LABEL org.opencontainers.image.title="mcp-bridge" \
  org.opencontainers.image.description="Reverse proxy between the two eras of the Model Context Protocol, with npx and uvx" \
  org.opencontainers.image.version="0.1.0" \
  org.opencontainers.image.licenses="Apache-2.0" \
  org.opencontainers.image.base.name="docker.io/library/node:24-slim" \
  io.modelcontextprotocol.server.name="io.github.mcp-bridge/mcp-bridge"

FROM scratch AS slim
COPY --from=root /root/slim /
ENV PATH=/usr/local/bin:/usr/bin NODE_ENV=production HOME=/tmp \
  MCP_BRIDGE_HEALTH_FILE=/dev/shm/mcp-bridge-health NODE_COMPILE_CACHE=/app/compiled
COPY --chmod=644 package.json LICENSE config/healthcheck.sh /app/
COPY --from=build /app/dist /app/dist
COPY --from=compiled --chown=0:0 /app/compiled /app/compiled
USER 65532:65532
EXPOSE 8080 9090
# With little CPU, the start takes a while, and so does starting a check. Neither says that the bridge hangs: the check finds that itself.
HEALTHCHECK --interval=10s --timeout=30s --start-period=120s CMD ["sh", "/app/healthcheck.sh"]
# No program of the container can open the debugger of the bridge.
ENTRYPOINT ["tini", "--", "node", "--disable-sigusr1", "/app/dist/main.js"]
CMD ["--help"]
LABEL org.opencontainers.image.title="mcp-bridge" \
  org.opencontainers.image.description="Reverse proxy between the two eras of the Model Context Protocol" \
  org.opencontainers.image.version="0.1.0" \
  org.opencontainers.image.licenses="Apache-2.0" \
  io.modelcontextprotocol.server.name="io.github.mcp-bridge/mcp-bridge"
