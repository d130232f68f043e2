/** Manifests of Kubernetes, and what a cluster would have to say against them. */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseAllDocuments } from 'yaml'
import { inTools } from './tools.js'

/** What the tests read of a resource; the schemas know all of it. */
export interface Resource {
  apiVersion: string
  kind: string
  metadata?: Metadata
  spec?: unknown
  data?: Record<string, string>
}

interface Metadata {
  name?: string
  namespace?: string
  labels?: Record<string, string>
  annotations?: Record<string, string>
}

interface Selector {
  matchLabels?: Record<string, string>
}

interface Peer {
  podSelector?: Selector
  namespaceSelector?: Selector
  ipBlock?: { cidr: string }
}

interface Kinds {
  ConfigMap: unknown
  Deployment: {
    replicas?: number
    selector: Selector
    template: { metadata?: Metadata; spec: Pod }
  }
  HorizontalPodAutoscaler: {
    minReplicas?: number
    scaleTargetRef: { apiVersion?: string; kind: string; name: string }
    metrics?: { type: string; pods?: { metric: { name: string }; target: { averageValue: string } } }[]
  }
  HTTPRoute: {
    rules: {
      timeouts?: Record<string, string>
      matches?: { path: { type: string; value: string } }[]
      backendRefs: { name: string; port: number }[]
    }[]
  }
  Ingress: {
    rules: { http: { paths: { path: string; backend: { service: { name: string; port: { name: string } } } }[] } }[]
  }
  NetworkPolicy: {
    podSelector: Selector
    policyTypes?: string[]
    ingress?: { from?: Peer[]; ports?: { port?: string | number }[] }[]
    egress?: { to?: Peer[]; ports?: { port?: string | number }[] }[]
  }
  PodDisruptionBudget: { selector?: Selector }
  PrometheusRule: {
    groups: { name: string; rules: { alert: string; expr: string; for?: string; labels?: object }[] }[]
  }
  Secret: unknown
  Service: {
    ipFamilyPolicy?: string
    selector?: Record<string, string>
    ports?: { name: string; port: number; targetPort: string | number }[]
  }
  ServiceAccount: unknown
  ServiceMonitor: { selector: Selector; endpoints: { port: string; path?: string }[] }
}

export interface Container {
  name: string
  image?: string
  command?: string[]
  args?: string[]
  env?: { name: string; value?: string; valueFrom?: object }[]
  ports?: { name?: string; containerPort: number; hostPort?: number }[]
  restartPolicy?: string
  resources?: { requests?: Record<string, string>; limits?: Record<string, string> }
  securityContext?: {
    allowPrivilegeEscalation?: boolean
    capabilities?: { drop?: string[]; add?: string[] }
    privileged?: boolean
    procMount?: string
    readOnlyRootFilesystem?: boolean
    runAsNonRoot?: boolean
    runAsUser?: number
    seccompProfile?: { type: string }
  }
  startupProbe?: Probe
  readinessProbe?: Probe
  livenessProbe?: Probe
  volumeMounts?: { name: string; mountPath: string; subPath?: string; readOnly?: boolean }[]
}

interface Probe {
  httpGet?: { path?: string; port: string | number; host?: string }
}

export interface Pod {
  automountServiceAccountToken?: boolean
  containers: Container[]
  hostIPC?: boolean
  hostNetwork?: boolean
  hostPID?: boolean
  initContainers?: Container[]
  securityContext?: {
    fsGroup?: number
    runAsGroup?: number
    runAsNonRoot?: boolean
    runAsUser?: number
    seccompProfile?: { type: string }
    sysctls?: object[]
    windowsOptions?: { hostProcess?: boolean }
  }
  terminationGracePeriodSeconds?: number
  topologySpreadConstraints?: { labelSelector?: Selector; topologyKey?: string }[]
  volumes?: { name: string; configMap?: { name?: string }; secret?: { secretName?: string } }[]
}

export interface Manifest {
  file: string
  text: string
  /** What is wrong with it as YAML. */
  mistakes: unknown[]
  resources: Resource[]
}

const folder = fileURLToPath(new URL('../../config/kubernetes/', import.meta.url))

/** The manifests of config/kubernetes; `kustomization.yaml` is about them, and none itself. */
export function readManifests(): Manifest[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith('.yaml') && file !== 'kustomization.yaml')
    .map((file) => {
      const text = readFileSync(folder + file, 'utf8')
      return { file, text, ...parseManifest(text) }
    })
}

/** Reads YAML as Kubernetes does. Documents that are empty are left out. */
export function parseManifest(text: string): Pick<Manifest, 'mistakes' | 'resources'> {
  // What Kubernetes reads is the YAML of before 2009, in which `no` and `0440` are something else.
  const documents = parseAllDocuments(text, { version: '1.1' })
  return {
    mistakes: documents.flatMap(({ errors, warnings }) => [...errors, ...warnings]),
    resources: documents.map((document) => document.toJS() as Resource | null).filter((one) => one !== null),
  }
}

export type OfKind<K extends keyof Kinds> = Omit<Resource, 'spec'> & { kind: K; spec?: Kinds[K] }

export function ofKind<K extends keyof Kinds>(resources: readonly Resource[], kind: K): OfKind<K>[] {
  return resources.filter((one): one is OfKind<K> => one.kind === kind)
}

/** All containers of a pod, in the order of their start. */
export function containersOf({ initContainers = [], containers }: Pod): Container[] {
  return [...initContainers, ...containers]
}

const CORE = 'kubernetes-models'
const GATEWAY = '@kubernetes-models/gateway-api'
const PROMETHEUS = '@kubernetes-models/prometheus-operator'

/** Where the schemas are: packages of the set `kubernetes`, and names in them. */
const SCHEMAS: Readonly<Record<string, [module: string, name: string]>> = {
  'v1 ConfigMap': [CORE, 'IoK8sApiCoreV1ConfigMap'],
  'v1 Namespace': [CORE, 'IoK8sApiCoreV1Namespace'],
  'v1 Secret': [CORE, 'IoK8sApiCoreV1Secret'],
  'v1 Service': [CORE, 'IoK8sApiCoreV1Service'],
  'v1 ServiceAccount': [CORE, 'IoK8sApiCoreV1ServiceAccount'],
  'apps/v1 Deployment': [CORE, 'IoK8sApiAppsV1Deployment'],
  'autoscaling/v2 HorizontalPodAutoscaler': [CORE, 'IoK8sApiAutoscalingV2HorizontalPodAutoscaler'],
  'networking.k8s.io/v1 Ingress': [CORE, 'IoK8sApiNetworkingV1Ingress'],
  'networking.k8s.io/v1 NetworkPolicy': [CORE, 'IoK8sApiNetworkingV1NetworkPolicy'],
  'policy/v1 PodDisruptionBudget': [CORE, 'IoK8sApiPolicyV1PodDisruptionBudget'],
  'gateway.networking.k8s.io/v1 HTTPRoute': [GATEWAY, 'IoK8sSigsGatewayApiApisV1HTTPRoute'],
  'monitoring.coreos.com/v1 PrometheusRule': [
    PROMETHEUS,
    'ComGithubPrometheusOperatorPrometheusOperatorPkgApisMonitoringV1PrometheusRule',
  ],
  'monitoring.coreos.com/v1 ServiceMonitor': [
    PROMETHEUS,
    'ComGithubPrometheusOperatorPrometheusOperatorPkgApisMonitoringV1ServiceMonitor',
  ],
}

type Validate = ((data: unknown) => boolean) & { errors: unknown }

/** What the schema of a resource finds in it, and members that the schema does not have. */
export async function complaints(resource: Resource): Promise<unknown[]> {
  const schema = SCHEMAS[`${resource.apiVersion} ${resource.kind}`]
  if (schema === undefined) return [`there is no ${resource.apiVersion} ${resource.kind}`]
  const [module, name] = schema
  const path = inTools('kubernetes', `${module}/_schemas/${name}.js`)
  const { validate } = (await import(pathToFileURL(path).href)) as { validate: Validate }
  const { watched, unread } = watch(resource)
  const valid = validate(watched)
  return [...(valid ? [] : [validate.errors]), ...unread().map((path) => `${path} is no member`)]
}

/** The schemas let members pass that they do not have. So they are given a value that knows what has been looked at. */
function watch(value: unknown, path = ''): { watched: unknown; unread(): string[] } {
  if (typeof value !== 'object' || value === null) return { watched: value, unread: () => [] }
  const read = new Set<PropertyKey>()
  const members = new Map(Object.entries(value).map(([key, member]) => [key, watch(member, `${path}/${key}`)]))
  const watched = new Proxy(value, {
    get(target, key) {
      read.add(key)
      return members.get(String(key))?.watched ?? Reflect.get(target, key)
    },
  })
  const unread = () => [...members].flatMap(([key, member]) => (read.has(key) ? member.unread() : [`${path}/${key}`]))
  return { watched, unread }
}
