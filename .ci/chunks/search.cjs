/** The packages for searching tools. A file of its own in the build, read when somebody searches. */
module.exports = {
  get minisearch() {
    return require('minisearch')
  },
}
