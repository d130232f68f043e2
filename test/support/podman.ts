/**
 * Pods of Podman for tests, `npm run test:containers`. `podman kube play` runs what manifests say; what it does not know is written in
 * its words, and the test does what the kubelet does: it asks the probes and updates mounted files.
 */
import { execFile, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { env } from 'node:process'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { until } from './eventually.js'
import { temporaryFolder } from './folder.js'
import type { Container, Pod, Resource } from './kubernetes.js'

const run = promisify(execFile)

/** Why tests with pods are skipped; false where they are not. */
export const noPodman: string | false = env['MCP_BRIDGE_PODMAN'] ? false : 'there is no Podman that can run pods'

/** What a test puts in the place of an image: one that is here, and what it runs. */
type Replacement = Pick<Container, 'image' | 'command' | 'args'>

export interface Play {
  network: string
  address: string
  /** By the name of the container. */
  replace: Record<string, Replacement>
  /** Addresses of Services, by their names. */
  services?: Record<string, string>
}

export interface PlayedPod {
  /** The address of the pod, as in a URL. */
  host: string
  /** Whether a probe of a container succeeds now. */
  succeeds(container: string, probe: 'startupProbe' | 'readinessProbe' | 'livenessProbe'): Promise<boolean>
  /** Writes a file of a mounted Secret or ConfigMap anew, as the kubelet does. */
  update(volume: string, file: string, text: string): Promise<void>
  exec(container: string, ...command: string[]): Promise<string>
  logs(container: string): Promise<string>
  /** Ends the pod as the kubelet does. Resolves to the exit code of a container. */
  stop(container: string): Promise<number>
}

/** Podman reads the settings of Docker's client, where there are any, and wants more of them. */
const { DOCKER_CONFIG: _, ...environment } = env
const options = { env: environment, maxBuffer: 64 * 1024 * 1024 }

async function podman(...args: string[]): Promise<string> {
  const { stdout } = await run('podman', args, options)
  return stdout.trim()
}

/** A network with these subnets, which is removed after the test. */
export async function newNetwork(t: Test, ...subnets: string[]): Promise<string> {
  const name = `mcp-bridge-test-${randomBytes(4).toString('hex')}`
  await podman('network', 'create', '--ipv6', ...subnets.map((subnet) => `--subnet=${subnet}`), name)
  t.teardown(() => spawnSync('podman', ['network', 'rm', '--force', name]))
  return name
}

/** Runs the pod of a Deployment, with the Secrets and ConfigMaps of the same resources. */
export async function play(t: Test, pod: Pod, resources: readonly Resource[], how: Play): Promise<PlayedPod> {
  const name = `mcp-bridge-test-${randomBytes(4).toString('hex')}`
  const values = (kind: 'ConfigMap' | 'Secret', of: string | undefined) => {
    const found = resources.find(({ kind: one, metadata }) => one === kind && metadata?.name === of)
    if (!found) throw new Error(`There is no ${kind} ${of}`)
    return found as Resource & { stringData?: Record<string, string> }
  }
  const secretOf = (of: string | undefined): Record<string, string> => {
    const { data = {}, stringData = {} } = values('Secret', of)
    const decoded = Object.entries(data).map(([key, text]) => [key, Buffer.from(text, 'base64').toString()])
    return { ...Object.fromEntries(decoded), ...stringData }
  }
  // Each pod has copies of its own.
  const own = (of: string | undefined) => `${name}-${of}`
  const played: Resource[] = []
  const volumes = (pod.volumes ?? []).map((volume) => {
    if (volume.secret) {
      const secretName = own(volume.secret.secretName)
      return { ...volume, secret: { ...volume.secret, secretName, optional: false } }
    }
    if (!volume.configMap) return { name: volume.name, hostPath: { path: writable(t), type: 'Directory' } }
    return { ...volume, configMap: { ...volume.configMap, name: own(volume.configMap.name), optional: false } }
  })
  for (const { configMap, secret } of pod.volumes ?? []) {
    if (configMap)
      played.push({
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: own(configMap.name) },
        data: values('ConfigMap', configMap.name).data ?? {},
      })
    if (!secret) continue
    const file = join(temporaryFolder(t), 'secret.json')
    const data = secretOf(secret.secretName)
    writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata: {}, data }))
    await podman('secret', 'create', own(secret.secretName), file)
    t.teardown(() => spawnSync('podman', ['secret', 'rm', own(secret.secretName)]))
  }
  const converted = (container: Container): object => {
    const { startupProbe, readinessProbe, livenessProbe, ports, restartPolicy, env: variables, ...rest } = container
    return {
      ...rest,
      ...how.replace[container.name],
      imagePullPolicy: 'Never',
      env: variables?.map(({ name, value, valueFrom }) => ({
        name,
        value: valueFrom === undefined ? value : referredTo(valueFrom as Source, how.address, secretOf),
      })),
    }
  }
  const isSidecar = ({ restartPolicy }: Container) => restartPolicy === 'Always'
  const first = pod.initContainers ?? []
  played.push({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      ...pod,
      volumes,
      topologySpreadConstraints: undefined,
      restartPolicy: 'Never',
      hostAliases: Object.entries(how.services ?? {}).map(([service, ip]) => ({ ip, hostnames: [service] })),
      initContainers: first.filter((one) => !isSidecar(one)).map(converted),
      containers: [...first.filter(isSidecar), ...pod.containers].map(converted),
    },
  } as Resource)
  const file = join(temporaryFolder(t), 'pod.yaml')
  writeFileSync(file, played.map((one) => JSON.stringify(one)).join('\n---\n'))
  t.teardown(() => {
    spawnSync('podman', ['pod', 'rm', '--force', '--time', '1', name])
    for (const { configMap, secret } of pod.volumes ?? [])
      spawnSync('podman', ['volume', 'rm', '--force', own(configMap?.name ?? secret?.secretName)])
  })
  await podman('kube', 'play', `--network=${how.network}`, `--ip=${how.address}`, file)

  const host = how.address.includes(':') ? `[${how.address}]` : how.address
  const containers = [...first, ...pod.containers]
  return {
    host,
    async succeeds(container, probe) {
      const one = containers.find(({ name }) => name === container) as Container
      const { path = '/', port = '' } = one[probe]?.httpGet ?? {}
      const number = one.ports?.find(({ name }) => name === port)?.containerPort ?? port
      return fetch(`http://${host}:${number}${path}`).then(
        ({ status }) => status >= 200 && status < 400,
        () => false,
      )
    },
    async update(volume, file, text) {
      const mount = await podman('volume', 'inspect', '--format', '{{.Mountpoint}}', own(volume))
      writeFileSync(join(mount, file), text)
    },
    exec: (container, ...command) => podman('exec', `${name}-${container}`, ...command),
    logs: async (container) => {
      const { stdout, stderr } = await run('podman', ['logs', `${name}-${container}`], options)
      return stdout + stderr
    },
    async stop(container) {
      await podman('stop', `--time=${pod.terminationGracePeriodSeconds ?? 30}`, `${name}-${container}`)
      return Number(await podman('inspect', '--format', '{{.State.ExitCode}}', `${name}-${container}`))
    },
  }
}

interface Source {
  fieldRef?: { fieldPath: string }
  secretKeyRef?: { name: string; key: string }
}

/** The value of a variable that refers to something. */
function referredTo(
  { fieldRef, secretKeyRef }: Source,
  address: string,
  secretOf: (name: string) => Record<string, string>,
): string {
  if (fieldRef?.fieldPath === 'status.podIP') return address
  const value = secretKeyRef && secretOf(secretKeyRef.name)[secretKeyRef.key]
  if (value === undefined) throw new Error('Nothing is known of this source of a variable')
  return value
}

/** A folder that everybody can write to, in the place of an emptyDir. */
function writable(t: Test): string {
  const folder = temporaryFolder(t)
  chmodSync(folder, 0o777)
  return folder
}

/** Waits until a probe succeeds, as the kubelet does. */
export async function untilSucceeds(pod: PlayedPod, ...[container, probe]: Parameters<PlayedPod['succeeds']>) {
  await until(() => pod.succeeds(container, probe), `${probe} of ${container}`)
}
