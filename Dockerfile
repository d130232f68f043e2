# The image of mcp-bridge: a Node.js, the few files that the bridge is, and an init. docs/operations.md says how it is built
# and run.

# To have the same image of it for ever, name it by its digest: --build-arg NODE=node:24-slim@sha256:…
ARG NODE=node:24-slim

# What is built is the same for every platform, so it is built on the one of this machine, without emulation.
FROM --platform=$BUILDPLATFORM ${NODE} AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# What the lockfile names, and no script of any package.
RUN npm ci --ignore-scripts
COPY .ci/build.mjs .ci/
COPY src src
RUN npm run build

# A legacy server to try the bridge with, for docker-compose.yml. It is not in the image.
FROM build AS demo
USER 65532:65532
EXPOSE 3001
CMD ["node", "node_modules/@modelcontextprotocol/server-everything/dist/index.js", "streamableHttp"]

FROM ${NODE} AS bridge
# An init, because servers that are programs leave processes behind that somebody has to reap, and the first process of a
# container is the one who would have to. A name for the user, because programs ask for it.
RUN apt-get update \
  && apt-get install -y --no-install-recommends tini \
  && rm -rf /var/lib/apt/lists/* /var/cache/apt /var/log/apt /var/log/dpkg.log \
  && echo 'bridge:x:65532:65532::/tmp:/usr/sbin/nologin' >> /etc/passwd \
  && echo 'bridge:x:65532:' >> /etc/group
# Servers that npx and uvx fetch are kept below HOME. With a read-only root file system it has to be mounted.
ENV NODE_ENV=production HOME=/tmp
COPY --chmod=644 package.json LICENSE config/healthcheck.mjs /app/
COPY --from=build /app/dist /app/dist
USER 65532:65532
EXPOSE 8080 9090
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["node", "/app/healthcheck.mjs"]
ENTRYPOINT ["tini", "--", "node", "/app/dist/main.js"]
CMD ["--help"]
LABEL org.opencontainers.image.title="mcp-bridge" \
  org.opencontainers.image.description="Reverse proxy between the two eras of the Model Context Protocol" \
  org.opencontainers.image.version="0.1.0" \
  org.opencontainers.image.licenses="Apache-2.0" \
  org.opencontainers.image.base.name="docker.io/library/node:24-slim" \
  io.modelcontextprotocol.server.name="io.github.mcp-bridge/mcp-bridge"
