/** The packages for metrics. A file of its own in the build, read when one of its packages is needed. */
module.exports = {
  get 'prom-client'() {
    return require('prom-client')
  },
}
