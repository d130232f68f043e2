/** The packages for reaching servers over HTTP. A file of its own in the build, read when one of its packages is needed. */
module.exports = {
  get undici() {
    return require('undici')
  },
}
