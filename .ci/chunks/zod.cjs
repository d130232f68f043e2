/** The package that checks configurations and documents. A file of its own in the build, read when something unusual is to be checked. */
module.exports = {
  get zod() {
    return require('zod')
  },
}
