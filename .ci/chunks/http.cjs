/** The packages for serving HTTP. A file of its own in the build, read when one of its packages is needed. */
module.exports = {
  get fastify() {
    return require('fastify')
  },
  get 'fastify-plugin'() {
    return require('fastify-plugin')
  },
  get '@fastify/cors'() {
    return require('@fastify/cors')
  },
  get '@fastify/http-proxy'() {
    return require('@fastify/http-proxy')
  },
}
