/** Manifests of Kubernetes, and what a cluster would have to say against them. */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { IDeployment } from 'kubernetes-models/apps/v1'
import type { IHorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2'
import type { INetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1'
import type { IPodDisruptionBudget } from 'kubernetes-models/policy/v1'
import type { IConfigMap, IContainer, INamespace, IPodSpec, IService } from 'kubernetes-models/v1'
import { parseAllDocuments } from 'yaml'

export type Resource =
  | IConfigMap
  | IDeployment
  | IHorizontalPodAutoscaler
  | INamespace
  | INetworkPolicy
  | IPodDisruptionBudget
  | IService

export type { IContainer as Container, IPodSpec as Pod }

export interface Manifest {
  file: string
  text: string
  /** What is wrong with it as YAML. */
  mistakes: unknown[]
  resources: Resource[]
}

const folder = fileURLToPath(new URL('../../config/kubernetes/', import.meta.url))

export function readManifests(): Manifest[] {
  return readdirSync(folder).map((file) => {
    const text = readFileSync(folder + file, 'utf8')
    // What Kubernetes reads is the YAML of before 2009, in which `no` and `0440` are something else.
    const documents = parseAllDocuments(text, { version: '1.1' })
    return {
      file,
      text,
      mistakes: documents.flatMap(({ errors, warnings }) => [...errors, ...warnings]),
      resources: documents.map((document) => document.toJS() as Resource),
    }
  })
}

export function ofKind<K extends Resource['kind']>(
  resources: readonly Resource[],
  kind: K,
): Extract<Resource, { kind: K }>[] {
  return resources.filter((one): one is Extract<Resource, { kind: K }> => one.kind === kind)
}

/** All containers of a pod, in the order of their start. */
export function containersOf({ initContainers = [], containers }: IPodSpec): IContainer[] {
  return [...initContainers, ...containers]
}

/** Where the schemas are. */
const SCHEMAS: Readonly<Record<string, string>> = {
  'v1 ConfigMap': 'IoK8sApiCoreV1ConfigMap',
  'v1 Namespace': 'IoK8sApiCoreV1Namespace',
  'v1 Service': 'IoK8sApiCoreV1Service',
  'apps/v1 Deployment': 'IoK8sApiAppsV1Deployment',
  'autoscaling/v2 HorizontalPodAutoscaler': 'IoK8sApiAutoscalingV2HorizontalPodAutoscaler',
  'networking.k8s.io/v1 NetworkPolicy': 'IoK8sApiNetworkingV1NetworkPolicy',
  'policy/v1 PodDisruptionBudget': 'IoK8sApiPolicyV1PodDisruptionBudget',
}

type Validate = ((data: unknown) => boolean) & { errors: unknown }

/** What the schema of a resource finds in it, and members that the schema does not have. */
export async function complaints(resource: { apiVersion: string; kind: string }): Promise<unknown[]> {
  const schema = SCHEMAS[`${resource.apiVersion} ${resource.kind}`]
  if (schema === undefined) return [`there is no ${resource.apiVersion} ${resource.kind}`]
  const { validate } = (await import(`kubernetes-models/_schemas/${schema}`)) as { validate: Validate }
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
