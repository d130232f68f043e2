/** How changesets become lines of CHANGELOG.md: as they are written, with no commit and no name before them. */
export default {
  async getReleaseLine({ summary }) {
    const [first = '', ...more] = summary.trim().split('\n')
    return [`- ${first}`, ...more.map((line) => (line === '' ? '' : `  ${line}`))].join('\n')
  },
  async getDependencyReleaseLine() {
    return ''
  },
}
