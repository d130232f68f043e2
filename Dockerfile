# The image of mcp-bridge: Node.js, the bundled bridge and an init process. See docs/operations.md for building and running.

# For reproducible builds, pin the base image by its digest: --build-arg NODE=node:24-slim@sha256:…
ARG NODE=node:24-slim

# The bundle is the same for every platform, so it is built on the build platform, without emulation.
FROM --platform=$BUILDPLATFORM ${NODE} AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# Installs the versions of the lockfile and runs no install scripts.
RUN npm ci --ignore-scripts
COPY .ci/build.mjs .ci/page.mjs .ci/
COPY .ci/chunks .ci/chunks/
COPY src src
RUN node .ci/build.mjs

# A legacy demo server for docker-compose.yml. It is not part of the image.
FROM build AS demo
USER 65532:65532
EXPOSE 3001
CMD ["node", "node_modules/@modelcontextprotocol/server-everything/dist/index.js", "streamableHttp"]

FROM ${NODE} AS bridge
# tini reaps orphaned processes of stdio servers: process 1 of a container has to. The user has a name, because some programs
# look it up.
RUN apt-get update \
  && apt-get install -y --no-install-recommends tini \
  && rm -rf /var/lib/apt/lists/* /var/cache/apt /var/log/apt /var/log/dpkg.log \
  && echo 'bridge:x:65532:65532::/tmp:/usr/sbin/nologin' >> /etc/passwd \
  && echo 'bridge:x:65532:' >> /etc/group
# npx and uvx store packages in HOME. With a read-only root file system, mount a writable folder there.
# In every container, /dev/shm is memory that can be written, and no other container sees it.
ENV NODE_ENV=production HOME=/tmp MCP_BRIDGE_HEALTH_FILE=/dev/shm/mcp-bridge-health
COPY --chmod=644 package.json LICENSE config/healthcheck.sh /app/
COPY --from=build /app/dist /app/dist
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
  org.opencontainers.image.base.name="docker.io/library/node:24-slim" \
  io.modelcontextprotocol.server.name="io.github.mcp-bridge/mcp-bridge"
