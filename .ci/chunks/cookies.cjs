/** The packages for cookies of servers. A file of its own in the build, read when a server sets one. */
module.exports = {
  get 'tough-cookie'() {
    return require('tough-cookie')
  },
}
