/** The packages for Redis. A file of its own in the build, read when one of its packages is needed. */
module.exports = {
  get '@redis/client'() {
    return require('@redis/client')
  },
}
